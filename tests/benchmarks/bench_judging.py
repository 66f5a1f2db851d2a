"""The judge beside other clients on one stub server:  python tests/benchmarks/bench_judging.py [--quick]

Each contender runs in a process of its own and opens its connections with one round of calls first. Rounds alternate
between contenders; the printed figures are medians. `wall` is divided by that of bare aiohttp in the same round.
Peers run where build/bench-NAME/bin/python can import them (see run.sh), else they are skipped by name.
Wall times mean something on a quiet machine only, so the load is printed.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import re
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
FLOOR = "bare aiohttp"
KIT = ("kit", "kit with a ledger")
PEERS = {"autorubric": "autorubric", "verifiers": "verifiers", "inspect-ai": "inspect_ai"}
LATENCY = 0.5
Figures = tuple[float, float, int]  # seconds of wall, seconds of CPU, good replies


def prompt(i: int) -> str:
    """About 3 kB, one criterion."""
    return f"criterion c1: says w1\nanswer: w{i % 3} number {i} {'text ' * 500}"


# -- the stub: a bare protocol, so that the server is not what is measured --------------------------
class Connection(asyncio.Protocol):
    """Answers each request after the latency, with "met" for every criterion id that it names."""

    def connection_made(self, transport: Any) -> None:
        self.transport, self.data = transport, b""

    def data_received(self, data: bytes) -> None:
        self.data += data
        head, mark, rest = self.data.partition(b"\r\n\r\n")
        size = re.search(rb"content-length: *(\d+)", head, re.I)
        if mark and size and len(rest) >= int(size[1]):
            self.data = rest[int(size[1]) :]
            asyncio.get_running_loop().call_later(LATENCY, self.transport.write, answer(rest))


def answer(body: bytes) -> bytes:
    """An HTTP reply in the kit's form."""
    call = re.search(rb'is the text \\"(\d{4})', body)
    ids = dict.fromkeys(re.findall(rb'\{\\"id\\": \\"(c\d+)\\"', body))
    verdict = {"reason": "because of the words in the second line", "verdict": "met"}
    reply = {"call": call[1].decode() if call else "", **{i.decode(): verdict for i in ids}}
    message = {"role": "assistant", "content": json.dumps(reply)}
    usage = {"prompt_tokens": 700, "completion_tokens": 40, "total_tokens": 740}
    choice = {"index": 0, "finish_reason": "stop", "message": message}
    form = {"id": "1", "object": "chat.completion", "created": 1, "model": "stub"}
    out = json.dumps({**form, "choices": [choice], "usage": usage}).encode()
    head = f"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: {len(out)}"
    return head.encode() + b"\r\n\r\n" + out


async def stub() -> None:
    """Print the port; serve until the standard input ends."""
    loop = asyncio.get_running_loop()
    server = await loop.create_server(Connection, "127.0.0.1", 0, backlog=2048)
    print(server.sockets[0].getsockname()[1], flush=True)
    await loop.run_in_executor(None, sys.stdin.read)


# -- contenders -------------------------------------------------------------------------------------
def kit_judge(url: str, n: int, concurrency: int, ledger: bool) -> Figures:
    """Four criteria in one call."""
    import kit

    criteria = tuple(kit.Criterion(id=f"k{i}", text=f"says w{i}") for i in range(4))
    task = kit.Task(id="t", prompt="Say words.", criteria=criteria)
    answers = [
        kit.Response(task_id="t", id=f"r{i}", text=f"w{i % 3} number {i} " + "text " * 500)
        for i in range(n + concurrency)
    ]
    judge = kit.judge_of({"endpoint": "stub", "base_url": url, "concurrency": concurrency})
    path = Path(tempfile.mkdtemp()) / "ledger.sqlite" if ledger else None
    kit.judge(task, answers[n:], judge=judge, ledger=path, progress=False)
    wall, cpu = time.perf_counter(), time.process_time()
    verdicts = kit.judge(task, answers[:n], judge=judge, ledger=path, progress=False)
    good = sum(v.is_known for v in verdicts) // 4
    return time.perf_counter() - wall, time.process_time() - cpu, good


async def gathered(one: Any, n: int, concurrency: int) -> Figures:
    """Run `one(i)` n times under a semaphore, after a round that opens the connections."""
    gate = asyncio.Semaphore(concurrency)

    async def guarded(i: int) -> bool:
        async with gate:
            try:
                await one(i)
                return True
            except Exception:
                return False

    await asyncio.gather(*(guarded(n + i) for i in range(concurrency)))
    wall, cpu = time.perf_counter(), time.process_time()
    done = await asyncio.gather(*(guarded(i) for i in range(n)))
    return time.perf_counter() - wall, time.process_time() - cpu, sum(done)


async def bare(url: str, n: int, concurrency: int) -> Figures:
    """aiohttp alone: no retry, no check, no record."""
    import aiohttp

    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0)) as session:

        async def one(i: int) -> None:
            body = {"model": "stub", "messages": [{"role": "user", "content": prompt(i)}]}
            async with session.post(f"{url}/chat/completions", json=body) as reply:
                reply.raise_for_status()
                json.loads(await reply.read())

        return await gathered(one, n, concurrency)


async def peer(name: str, url: str, n: int, concurrency: int) -> Figures:
    """The client layer of another library."""
    if name == "inspect-ai":
        from inspect_ai.model import GenerateConfig, get_model

        settings = GenerateConfig(max_connections=concurrency)
        model = get_model("openai-api/stub/stub", base_url=url, api_key="none", config=settings)
        call = model.generate
    elif name == "verifiers":
        import verifiers.v1 as vf

        settings = vf.JudgeConfig(model="stub", base_url=url, api_key_var="OPENAI_API_KEY")
        call = vf.Judge(settings).complete
    else:
        from autorubric.llm import LLMClient, LLMConfig

        more = {"api_key": "none", "max_parallel_requests": concurrency}
        client = LLMClient(LLMConfig(model="openai/stub", api_base=url, **more))

        async def call(text: str) -> Any:
            return await client.generate("judge", text)

    return await gathered(lambda i: call(prompt(i)), n, concurrency)


def contend(name: str, url: str, n: int, concurrency: int) -> Figures:
    """Run one contender in this process."""
    if name in KIT:
        return kit_judge(url, n, concurrency, name == KIT[1])
    run = bare(url, n, concurrency) if name == FLOOR else peer(name, url, n, concurrency)
    return asyncio.run(run)


def cached(n: int) -> float:
    """Verdicts a second that come from the ledger, 20 criteria an answer."""
    import kit

    criteria = tuple(kit.Criterion(id=f"k{i}", text=f"says w{i}") for i in range(20))
    task = kit.Task(id="t", prompt="p", criteria=criteria)
    texts = [f"answer {i} {'text ' * 300}" for i in range(n // 20)]
    answers = [kit.Response(task_id="t", id=f"r{i}", text=x) for i, x in enumerate(texts)]
    judge = kit.judge_of({"endpoint": "stub", "base_url": "http://127.0.0.1:1/v1"})
    ids = {"task_id": "t", "status": "met", "reason": "because " * 8}
    with kit.Ledger(Path(tempfile.mkdtemp()) / "ledger.sqlite") as book:
        for r in answers:
            keys = judge.keys(task, r, criteria)
            rows = [{"criterion_id": c.id, "key": k} for c, k in zip(criteria, keys, strict=True)]
            book.put([kit.Verdict(**ids, response_id=r.id, **row) for row in rows])
        start = time.perf_counter()
        verdicts = kit.judge(task, answers, judge=judge, ledger=book, progress=False)
        return verdicts.spent.cached / (time.perf_counter() - start)


# -- the run ----------------------------------------------------------------------------------------
def python_of(name: str) -> str:
    """The interpreter of a contender; empty where it cannot run."""
    if name not in PEERS:
        return sys.executable
    python = ROOT / "build" / f"bench-{name}" / "bin" / "python"
    test = [str(python), "-c", f"import {PEERS[name]}"]
    works = python.exists() and subprocess.run(test, capture_output=True).returncode == 0
    return str(python) if works else ""


def one(name: str, n: int, concurrency: int) -> Figures:
    """One contender in a process of its own, against a stub of its own."""
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    server = subprocess.Popen([sys.executable, __file__, "--stub"], **pipes)
    try:
        url = f"http://127.0.0.1:{int(server.stdout.readline())}/v1"
        env = {**os.environ, "OPENAI_API_KEY": "none", "NO_PROXY": "127.0.0.1"}
        env |= {"OMP_NUM_THREADS": "1", "PYTHONPATH": str(ROOT) if name in KIT else ""}
        command = [python_of(name), __file__, "--one", name, "--url", url]
        command += ["--n", str(n), "--concurrency", str(concurrency)]
        done = subprocess.run(command, env=env, capture_output=True, text=True, timeout=300)
        return tuple(json.loads(done.stdout.splitlines()[-1])) if done.stdout else (0.0, 0.0, 0)
    finally:
        server.communicate("")


def compare(names: list[str], n: int, concurrency: int, rounds: int) -> None:
    """A table of medians."""
    figures: dict[str, list[Figures]] = {name: [] for name in names}
    for _ in range(rounds):
        for name in names:
            figures[name].append(one(name, n, concurrency))
    load = os.getloadavg()[0]
    print(f"\n{n} calls of {LATENCY * 1000:.0f} ms, {concurrency} in flight; load {load:.1f}")
    for name, rows in figures.items():
        pairs = zip(rows, figures[FLOOR], strict=True)
        ratio = statistics.median(a[0] / b[0] for a, b in pairs if b[0])
        wall, cpu = (statistics.median(row[k] for row in rows) for k in (0, 1))
        good = f"{min(row[2] for row in rows)} of {n} answered"
        took = f"{ratio:5.2f} x aiohttp, {1000 * cpu / n:5.2f} ms CPU a call"
        print(f"{name:18} {wall:6.2f} s, {took}, {good}", flush=True)


def main() -> None:
    """Print the tables."""
    p = argparse.ArgumentParser(description=__doc__)
    p.add_argument("--quick", action="store_true", help="three rounds, no peers")
    p.add_argument("--stub", action="store_true")
    p.add_argument("--one")
    p.add_argument("--url")
    p.add_argument("--n", type=int, default=256)
    p.add_argument("--concurrency", type=int, default=64)
    a = p.parse_args()
    if a.stub:
        asyncio.run(stub())
    elif a.one:
        print(json.dumps(contend(a.one, a.url, a.n, a.concurrency)))
    else:
        peers = [] if a.quick else [name for name in PEERS if python_of(name)]
        print("skipped:", ", ".join(set(PEERS) - set(peers)) or "none")
        for concurrency in (64, 256):
            compare([FLOOR, *KIT, *peers], a.n, concurrency, 3 if a.quick else 5)
        print(f"\nfrom the ledger (target 20,000): {cached(20_000):,.0f} verdicts a second")


if __name__ == "__main__":
    main()
