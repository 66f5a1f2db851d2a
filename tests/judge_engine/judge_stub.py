"""An OpenAI-compatible server on 127.0.0.1 that judges by a rule and misbehaves on request. Used by tests and the benchmark.

The rule: a criterion is met when the word after its last "says" occurs in the answer. Replies that went out whole are counted per
(answer, criterion): more than one means that somebody paid twice.
"""

from __future__ import annotations

import asyncio
import itertools
import json
import random
import re
import threading
import time
from collections import Counter

from aiohttp import web

HOSTILE = {
    "429": 0.05,
    "500": 0.01,
    "hang": 0.01,
    "truncated": 0.01,
    "wrong_ids": 0.01,
    "reset": 0.01,
}
_FENCED = re.compile(r"<<<ANSWER (\w+)\n(.*?)\nANSWER \1>>>", re.S)
_IDS = itertools.count()
_CRITERION = re.compile(r'^\{"id": .*\}$', re.M)


def asked(body):
    """(answer, [(id, criterion text, verdict words)]) of a request to the stub."""
    user = body["messages"][-1]["content"]
    m = _FENCED.search(user)
    return (m[2] if m else user), [json.loads(line) for line in _CRITERION.findall(user)]


def truth(answer, text):
    return "met" if text.rsplit("says", 1)[-1].strip().split()[0] in answer else "unmet"


def content(answer, rows, schema):
    if schema:
        return json.dumps(
            {r["id"]: {"reason": "looked", "verdict": truth(answer, r["criterion"])} for r in rows}
        )
    return "\n".join(
        f"REASON {r['id']}: looked\nVERDICT {r['id']}: {truth(answer, r['criterion'])}"
        for r in rows
    )


def completion(text, finish="stop", tokens_in=100, tokens_out=20, **message):
    return {
        "id": f"chatcmpl-{next(_IDS):012x}",
        "object": "chat.completion",
        "created": 1,
        "model": "stub",
        "choices": [
            {
                "index": 0,
                "finish_reason": finish,
                "message": {"role": "assistant", "content": text, **message},
            }
        ],
        "usage": {
            "prompt_tokens": tokens_in,
            "completion_tokens": tokens_out,
            "total_tokens": tokens_in + tokens_out,
        },
    }


class StubServer:
    """latency : seconds per call; faults : probabilities; handler(body, n) -> (status, dict | bytes, headers) overrides everything;
    rate : calls per second that are allowed; slots : calls at once (over: 429, or a queue when `queue`)."""

    def __init__(
        self,
        latency=0.0,
        faults=None,
        handler=None,
        seed=1,
        retry_after="0.2",
        rate=None,
        slots=None,
        queue=False,
    ):
        self.latency, self.faults, self.handler, self.retry_after = (
            latency,
            dict(faults or {}),
            handler,
            retry_after,
        )
        self.rate, self.slots, self.queue = rate, slots, queue
        self.random, self.calls, self.most, self.now = random.Random(seed), 0, 0, 0
        self.paid, self.served, self.bodies, self.headers = Counter(), Counter(), [], []
        self.keep = False
        self._tokens, self._stamp = float(rate or 0), time.monotonic()

    # -- life ---------------------------------------------------------------------------------------------------------
    def __enter__(self):
        ready = threading.Event()
        self.thread = threading.Thread(target=self._run, args=(ready,), daemon=True)
        self.thread.start()
        ready.wait(10)
        return self

    def __exit__(self, *_):
        asyncio.run_coroutine_threadsafe(self.stop(), self.loop).result(10)
        self.loop.call_soon_threadsafe(self.loop.stop)
        self.thread.join(5)

    async def stop(self):
        await self.runner.cleanup()
        others = [t for t in asyncio.all_tasks() if t is not asyncio.current_task()]
        [t.cancel() for t in others]
        await asyncio.gather(*others, return_exceptions=True)

    def _run(self, ready):
        self.loop = asyncio.new_event_loop()
        asyncio.set_event_loop(self.loop)
        self.loop.run_until_complete(self.start())
        ready.set()
        self.loop.run_forever()

    async def start(self, port=0):
        app = web.Application(client_max_size=2**26)
        app.router.add_post("/v1/{path:.*}", self.post)
        app.router.add_get("/v1/{path:.*}", self.get)
        self.runner = runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1)
        await runner.setup()
        site = web.TCPSite(runner, "127.0.0.1", port, backlog=2048)
        await site.start()
        self.port = site._server.sockets[0].getsockname()[1]
        self.url = f"http://127.0.0.1:{self.port}/v1"
        self.queued = asyncio.Semaphore(self.slots or 10**6)

    # -- answers --------------------------------------------------------------------------------------------------------
    async def get(self, request):
        return web.json_response({"data": []})

    async def post(self, request):
        raw = await request.read()
        self.calls += 1
        if self.keep:
            self.bodies.append(json.loads(raw))
            self.headers.append(dict(request.headers))
        self.now += 1
        self.most = max(self.most, self.now)
        try:
            return await self._post(request, raw, self.calls)
        finally:
            self.now -= 1

    async def _post(self, request, raw, n):
        if self.handler is not None:
            got = self.handler(json.loads(raw), n)
            status, data, headers = (*got, {})[:3] if isinstance(got, tuple) else (200, got, {})
            if self.latency:
                await asyncio.sleep(self.latency)
            body = data if isinstance(data, bytes) else json.dumps(data).encode()
            return web.Response(
                status=status, body=body, headers=headers, content_type="application/json"
            )
        if self._over():
            self.served["429"] += 1
            return web.json_response(
                {"error": {"message": "slow down"}},
                status=429,
                headers={"Retry-After": self.retry_after},
            )
        fault = self._fault()
        if fault == "429":
            self.served["429"] += 1
            return web.json_response(
                {"error": {"message": "slow down"}},
                status=429,
                headers={"Retry-After": self.retry_after},
            )
        if fault == "hang":
            self.served["hang"] += 1
        async with self.queued if self.queue else _Nothing():
            await asyncio.sleep(3600 if fault == "hang" else self.latency)
        self.served[fault or "good"] += 1
        if fault == "500":
            return web.json_response({"error": {"message": "oops"}}, status=500)
        if fault == "reset":
            request.transport.abort()
            return web.Response()
        return self._answer(json.loads(raw), fault)

    def _answer(self, body, fault):
        answer, rows = asked(body)
        if fault == "wrong_ids":
            wrong = [{**r, "id": "zz" + r["id"]} for r in rows]
            return web.json_response(completion(content(answer, wrong, True)))
        data = json.dumps(completion(content(answer, rows, "response_format" in body))).encode()
        if fault == "truncated":
            return web.Response(body=data[: len(data) // 2], content_type="application/json")
        self.paid.update((answer, r["id"]) for r in rows)
        return web.Response(body=data, content_type="application/json")

    def _over(self):
        if self.rate:
            now = time.monotonic()
            self._tokens = min(self.rate, self._tokens + (now - self._stamp) * self.rate)
            self._stamp = now
            if self._tokens < 1:
                return True
            self._tokens -= 1
        return bool(self.slots and not self.queue and self.now > self.slots)

    def _fault(self):
        x = self.random.random()
        for name, p in self.faults.items():
            if x < p:
                return name
            x -= p
        return None


class HeldStub(StubServer):
    """Holds its replies until `go()`; `arrived`: set when `n` requests are there."""

    def __init__(self, n=1, **more):
        super().__init__(**more)
        self.n, self.arrived = n, threading.Event()

    async def start(self, port=0):
        await super().start(port)
        self._open = asyncio.Event()

    def go(self):
        self.loop.call_soon_threadsafe(self._open.set)

    async def _post(self, request, raw, n):
        if n >= self.n:
            self.arrived.set()
        await self._open.wait()
        return await super()._post(request, raw, n)


class _Nothing:
    async def __aenter__(self):
        return self

    async def __aexit__(self, *_):
        return None


if (
    __name__ == "__main__"
):  # python judge_stub.py LATENCY FAULTS_JSON OPTIONS_JSON: prints its port, serves until killed
    import sys

    async def main():
        stub = StubServer(float(sys.argv[1]), json.loads(sys.argv[2]), **json.loads(sys.argv[3]))
        await stub.start()
        print(stub.port, flush=True)
        await asyncio.Event().wait()

    asyncio.run(main())
