"""A fake OpenAI-compatible judge server for tests of any room. It runs in a thread, on 127.0.0.1.

    with FakeServer() as server:
        kit.judge(tasks, answers, judge={"endpoint": "fake", "base_url": server.url})
        assert len(server.calls) == 1

Without arguments it judges honestly: a criterion is met when the last word of its text occurs in the answer.
`FakeServer(reply)` takes a function of the request (an `Asked`) that returns

    a str               the content of a finished reply
    a dict              the whole JSON body; `chat(content, ...)` makes one
    bytes               the raw HTTP reply; `http(body, status, **headers)` makes one
    None                the honest reply

`honest(asked, flip=...)` is that reply as a str, with the verdicts of some ids turned round. `delay` is the
time of a reply in seconds. `server.calls` are the requests that came, `server.most` the most at once.
`Asked` has: body (the JSON request), prompt (the user message), answer (the judged text), criteria (id -> text),
truth (id -> "met" or "unmet"), mark (the call's four digits), key (the API key), nth (how often this prompt came).
A prompt that is no judge call (a completion) has no criteria; the honest reply is then "echo: " and its last line.

Group calls work too: `asked.answers` is id -> text, and the honest reply has a verdict for each.
"""

from __future__ import annotations

import asyncio
import json
import re
import threading
from collections import Counter

TURN = {"met": "unmet", "unmet": "met"}


class Asked:
    """One request."""

    def __init__(self, path, headers, raw, seen):
        self.path, self.headers, self.raw = path, headers, raw
        self.body = json.loads(raw) if raw else {}
        self.system = next(
            (m["content"] for m in self.body["messages"] if m["role"] == "system"), ""
        )
        self.prompt = self.body["messages"][-1]["content"]
        marks = re.findall(r'The value of "call" is the text "(\d{4})"', self.prompt)
        self.mark = marks[-1] if marks else ""
        blocks = re.findall(r"<<<(ANSWER|a\d+) (\w{16})\n(.*?)\n\1 \2>>>", self.prompt, re.S)
        self.answers = {name: text for name, _, text in blocks}
        self.answer = self.answers.get("ANSWER", "")
        rows = [json.loads(line) for line in re.findall(r'^\{"id": .*\}$', self.prompt, re.M)]
        self.criteria = {row["id"]: row["criterion"] for row in rows}
        self.words = {row["id"]: row["verdicts"] for row in rows}
        self.truth = self.judge(self.answer)
        self.lies = {name: TURN[v] for name, v in self.truth.items()}
        self.key = headers.get("authorization", "").removeprefix("Bearer ")
        seen[re.sub(r'text "\d{4}"', "", self.prompt)] += 1
        self.nth = seen[re.sub(r'text "\d{4}"', "", self.prompt)]

    def judge(self, answer):
        words = re.findall(r"\w+", answer)
        return {
            name: "met" if re.findall(r"\w+", text)[-1] in words else "unmet"
            for name, text in self.criteria.items()
        }


def obj(asked, verdicts=None, **more):
    """The requested JSON object with these verdicts (default: the true ones)."""
    rows = asked.truth if verdicts is None else verdicts
    made = {name: {"reason": "looked", "verdict": v, **more} for name, v in rows.items()}
    return json.dumps({"call": asked.mark, **made})


def honest(asked, flip=()):
    """The honest reply; the verdicts of the ids in `flip` are turned round."""
    if asked.prompt.rstrip().endswith("yes or no, and nothing else."):
        word = re.search(r"The criterion:\n.*?(\w+)\W*\n", asked.prompt)[1]
        return "yes" if word in asked.answer.split() else "no"
    if not asked.criteria:
        return "echo: " + asked.prompt.splitlines()[-1]
    if "ANSWER" not in asked.answers:
        rows = {
            a: {c: {"reason": "looked", "verdict": v} for c, v in asked.judge(text).items()}
            for a, text in asked.answers.items()
        }
        return json.dumps({"call": asked.mark, **rows})
    return obj(asked, {n: TURN[v] if n in flip else v for n, v in asked.truth.items()})


def chat(content, finish="stop", **message):
    """The JSON body of a reply."""
    return {
        "id": "chatcmpl-1",
        "object": "chat.completion",
        "model": "fake",
        "choices": [
            {
                "index": 0,
                "finish_reason": finish,
                "message": {"role": "assistant", "content": content, **message},
            }
        ],
        "usage": {"prompt_tokens": 100, "completion_tokens": 20, "total_tokens": 120},
    }


def http(body, status="200 OK", length=None, **headers):
    """A raw HTTP reply. A header of None is left out; `_` stands for `-`."""
    raw = body if isinstance(body, bytes) else json.dumps(body).encode()
    rows = {"Content-Type": "application/json", "Content-Length": length or len(raw)}
    rows |= {name.replace("_", "-"): value for name, value in headers.items()}
    head = "".join(f"{name}: {value}\r\n" for name, value in rows.items() if value is not None)
    return f"HTTP/1.1 {status}\r\n{head}\r\n".encode() + raw


class FakeServer:
    """See the module's text."""

    def __init__(self, reply=None, *, delay=0.0):
        self.reply, self.delay = reply, delay
        self.calls, self.seen, self.now, self.most = [], Counter(), 0, 0
        self.connections = 0

    def __enter__(self):
        self.loop = asyncio.new_event_loop()
        self.thread = threading.Thread(target=self.loop.run_forever, daemon=True)
        self.thread.start()
        start = asyncio.start_server(self._serve, "127.0.0.1", 0, backlog=1024, limit=2**24)
        self.server = asyncio.run_coroutine_threadsafe(start, self.loop).result()
        self.port = self.server.sockets[0].getsockname()[1]
        self.url = f"http://127.0.0.1:{self.port}/v1"
        return self

    def __exit__(self, *_):
        asyncio.run_coroutine_threadsafe(self._stop(), self.loop).result(5)
        self.loop.call_soon_threadsafe(self.loop.stop)
        self.thread.join(5)

    async def _stop(self):
        self.server.close()
        tasks = asyncio.all_tasks() - {asyncio.current_task()}
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await asyncio.sleep(0)  # let the sockets close

    async def _serve(self, reader, writer):
        self.connections += 1
        try:
            while await self._one(reader, writer):
                pass
        except (ConnectionError, asyncio.IncompleteReadError, asyncio.CancelledError):
            pass
        finally:
            writer.close()

    async def _one(self, reader, writer):
        head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
        path = head[0].split(" ")[1]
        pairs = (line.partition(":") for line in head[1:] if line)
        headers = {name.strip().lower(): value.strip() for name, _, value in pairs}
        raw = await reader.readexactly(int(headers.get("content-length", 0)))
        asked = Asked(path, headers, raw, self.seen)
        self.calls.append(asked)
        self.now += 1
        self.most = max(self.most, self.now)
        out = self.reply(asked) if self.reply else None
        out = honest(asked) if out is None else out
        await asyncio.sleep(self.delay)
        self.now -= 1
        if isinstance(out, (str, list)):
            out = chat(out)
        return await send(writer, out if isinstance(out, bytes) else http(out))


async def send(writer, out):
    """Write bytes. `@WORD` at their end is something that bytes alone cannot do."""
    tail = re.search(rb"@(CLOSE|RESET|HANG|DRIP|ENDLESS|HEADS)$", out[-12:])
    writer.write(out[: len(out) - len(tail[0])] if tail else out)
    await writer.drain()
    how = tail[1] if tail else b""
    if how == b"RESET":
        writer.transport.abort()
    elif how == b"HANG":
        await asyncio.sleep(30)
    elif how == b"DRIP":
        for _ in range(200):
            writer.write(b" ")
            await writer.drain()
            await asyncio.sleep(0.2)
    elif how in (b"ENDLESS", b"HEADS"):
        chunk = b"10000\r\n" + b" " * 65_536 + b"\r\n"
        piece = chunk if how == b"ENDLESS" else b"X-A: " + b"a" * 60 + b"\r\n"
        for _ in range(20_000):
            writer.write(piece)
            await writer.drain()
    return not how
