"""A very light OpenAI-compatible stub for the benchmark: the server must not be what is measured.

python judge_fast_stub.py LATENCY FAULTS_JSON RETRY_AFTER: prints its port, serves on 127.0.0.1, and at the end of its standard
input prints {"served": .., "paid_twice": ..}. A bare asyncio protocol: about a tenth of the CPU of a web framework. It judges
like tests/judge_engine/judge_stub.py: a criterion is met when the word after its last "says" occurs in the answer.
"""

from __future__ import annotations

import asyncio
import json
import random
import sys
from collections import Counter
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "judge_engine"))
from judge_stub import asked, completion, content


class Connection(asyncio.Protocol):
    """One kept-alive connection; requests are answered `latency` seconds after their last byte."""

    server: Stub

    def __init__(self, server: Stub):
        self.server, self.data, self.need = server, b"", -1

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = transport

    def data_received(self, data: bytes) -> None:
        self.data += data
        while self.data:
            if self.need < 0:
                end = self.data.find(b"\r\n\r\n")
                if end < 0:
                    return
                head = self.data[:end].lower()
                at = head.find(b"content-length:")
                size = int(head[at + 15 :].split(b"\r\n", 1)[0]) if at >= 0 else 0
                if b"expect: 100-continue" in head:
                    self.transport.write(b"HTTP/1.1 100 Continue\r\n\r\n")
                self.start, self.need = end + 4, end + 4 + size
            if len(self.data) < self.need:
                return
            body, self.data, self.need = (
                self.data[self.start : self.need],
                self.data[self.need :],
                -1,
            )
            self.server.take(self, body)

    def reply(self, status: str, body: bytes, extra: str = "") -> None:
        if not self.transport.is_closing():
            self.transport.write(
                f"HTTP/1.1 {status}\r\nContent-Type: application/json\r\nContent-Length: {len(body)}\r\n{extra}\r\n".encode()
                + body
            )


class Stub:
    """Counts what it serves; faults are drawn per request with a fixed seed."""

    def __init__(self, latency: float, faults: dict[str, float], retry_after: str):
        self.latency, self.faults, self.retry_after = latency, faults, retry_after
        self.random, self.served, self.paid = random.Random(1), Counter(), Counter()

    def take(self, to: Connection, body: bytes) -> None:
        x, loop = self.random.random(), asyncio.get_running_loop()
        if x < self.faults.get("429", 0):
            self.served["429"] += 1
            to.reply(
                "429 Too Many Requests",
                b'{"error": {"message": "slow down"}}',
                f"Retry-After: {self.retry_after}\r\n",
            )
        elif x < self.faults.get("429", 0) + self.faults.get("500", 0):
            self.served["500"] += 1
            loop.call_later(
                self.latency,
                to.reply,
                "500 Internal Server Error",
                b'{"error": {"message": "oops"}}',
            )
        else:  # the verdict is worked out now, in the time that the client spends on its next request
            loop.call_later(self.latency, to.reply, "200 OK", self.answer(body))

    def answer(self, body: bytes) -> bytes:
        request = json.loads(body)
        answer, rows = asked(request)
        self.served["good"] += 1
        self.paid.update((hash(answer), r["id"]) for r in rows)
        return json.dumps(completion(content(answer, rows, "response_format" in request))).encode()


async def main() -> None:
    stub = Stub(float(sys.argv[1]), json.loads(sys.argv[2]), sys.argv[3])
    loop = asyncio.get_running_loop()
    server = await loop.create_server(lambda: Connection(stub), "127.0.0.1", 0, backlog=2048)
    print(server.sockets[0].getsockname()[1], flush=True)
    await loop.run_in_executor(None, sys.stdin.read)
    print(
        json.dumps(
            {"served": dict(stub.served), "paid_twice": sum(n > 1 for n in stub.paid.values())}
        ),
        flush=True,
    )


if __name__ == "__main__":
    asyncio.run(main())
