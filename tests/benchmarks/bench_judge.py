"""The judge engine beside other clients, on one stub server, in one run:  python tests/benchmarks/bench_judge.py [--quick]

Each contender runs in a fresh process (CPU is its own), warmed by one round of calls so that its connections are open; ratio =
wall time over ceil(N / concurrency) x latency; the best of three. The stub counts replies per question: "twice" is how many
were answered, and would have been billed, more than once. Peers come from build/bench-venv where they are installed there (make
bench), else they are skipped by name. Wall times mean something on a quiet machine only; the load and the bare-aiohttp floor
are printed so that a reader can tell.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
STUB = Path(__file__).with_name("judge_fast_stub.py")
PEERS = ROOT / "build" / "bench-venv" / "bin" / "python"
STORM = {"429": 0.05, "500": 0.01}
OPENAI3 = ROOT / "build" / "bench-openai3"  # for inspect-ai; the other peers want openai 2
OURS = ("kit judge + ledger", "kit judge")
PLAIN = (
    "openai async, httpx",
    "openai async, aiohttp",
    "openai post, aiohttp",
    "bare aiohttp, a connection a call",
    "bare aiohttp (floor)",
)
OTHERS = {"autorubric": "autorubric", "verifiers": "verifiers", "inspect-ai": "inspect_ai"}


def prompt(i: int) -> str:
    """A judge prompt that the stub understands, about 3 kB, one criterion."""
    return f'{{"id": "c0", "criterion": "says w1"}}\n<<<ANSWER ab\nw{i % 3} answer {i} {"text " * 500}\nANSWER ab>>>'


# -- contenders: each judges n answers and returns how many verdicts it has -------------------------------------------------
def kit_judge(url: str, n: int, concurrency: int, ledger: bool) -> tuple[float, float, int]:
    """This kit's judge, with four criteria in one call."""
    from kit.judge import EndpointJudge, judge
    from kit.records import Criterion, Response, Task

    task = Task(
        id="t",
        prompt="Say words.",
        criteria=tuple(Criterion(id=f"c{i}", text=f"says w{i}") for i in range(4)),
    )
    answers = [
        Response(task_id="t", id=f"r{i}", text=f"w{i % 3} answer {i} " + "text " * 500)
        for i in range(n + concurrency)
    ]
    who = EndpointJudge("stub", base_url=url, concurrency=concurrency, timeout=30)
    path = Path(tempfile.mkdtemp()) / "ledger.sqlite" if ledger else None
    judge(task, answers[n:], judge=who, ledger=path, progress=False)
    wall, cpu = time.perf_counter(), time.process_time()
    got = judge(task, answers[:n], judge=who, ledger=path, progress=False)
    return time.perf_counter() - wall, time.process_time() - cpu, sum(v.known for v in got) // 4


async def gathered(one: object, n: int, concurrency: int) -> tuple[float, float, int]:
    """Run `one(i)` n times under a semaphore, after a round that opens the connections; how many did not fail."""
    gate = asyncio.Semaphore(concurrency)

    async def guarded(i: int) -> bool:
        async with gate:
            try:
                await one(i)  # type: ignore[operator]
                return True
            except Exception:
                return False

    await asyncio.gather(*(guarded(n + i) for i in range(concurrency)))
    wall, cpu = time.perf_counter(), time.process_time()
    done = await asyncio.gather(*(guarded(i) for i in range(n)))
    return time.perf_counter() - wall, time.process_time() - cpu, sum(done)


async def openai_client(url: str, n: int, concurrency: int, how: str) -> tuple[float, float, int]:
    """The plain client, its retries at their default."""
    import openai

    more = {"http_client": openai.DefaultAioHttpClient()} if "aiohttp" in how else {}
    client = openai.AsyncOpenAI(base_url=url, api_key="none", **more)

    async def one(i: int) -> None:
        body = {"model": "stub", "messages": [{"role": "user", "content": prompt(i)}]}
        if "post" in how:
            await client.post("/chat/completions", cast_to=dict, body=body)
        else:
            await client.chat.completions.create(**body)

    return await gathered(one, n, concurrency)


async def bare(url: str, n: int, concurrency: int, fresh: bool) -> tuple[float, float, int]:
    """aiohttp alone: no retry, no parsing, no record; the floor.

    fresh : no connection is used twice, as the kit has it (a late reply would answer the next question).
    """
    import aiohttp

    connector = aiohttp.TCPConnector(limit=0, force_close=fresh)
    async with aiohttp.ClientSession(connector=connector) as session:

        async def one(i: int) -> None:
            body = json.dumps(
                {"model": "stub", "messages": [{"role": "user", "content": prompt(i)}]}
            ).encode()
            async with session.post(
                url + "/chat/completions", data=body, headers={"Content-Type": "application/json"}
            ) as r:
                r.raise_for_status()
                json.loads(await r.read())

        return await gathered(one, n, concurrency)


async def inspect_ai(url: str, n: int, concurrency: int) -> tuple[float, float, int]:
    """inspect-ai's model layer (its own retries and connection limit)."""
    from inspect_ai.model import GenerateConfig, get_model

    model = get_model(
        "openai-api/stub/stub",
        base_url=url,
        api_key="none",
        config=GenerateConfig(max_connections=concurrency),
    )

    async def one(i: int) -> None:
        await model.generate(prompt(i))

    return await gathered(one, n, concurrency)


async def verifiers(url: str, n: int, concurrency: int) -> tuple[float, float, int]:
    """verifiers' judge (it makes a client for every call)."""
    import verifiers.v1 as vf

    judge = vf.Judge(vf.JudgeConfig(model="stub", base_url=url, api_key_var="OPENAI_API_KEY"))

    async def one(i: int) -> None:
        await judge.complete(prompt(i))

    return await gathered(one, n, concurrency)


async def autorubric(url: str, n: int, concurrency: int) -> tuple[float, float, int]:
    """autorubric's LLM client (over litellm), which its graders call."""
    from autorubric.llm import LLMClient, LLMConfig

    client = LLMClient(
        LLMConfig(
            model="openai/stub", api_base=url, api_key="none", max_parallel_requests=concurrency
        )
    )

    async def one(i: int) -> None:
        await client.generate("judge", prompt(i))

    return await gathered(one, n, concurrency)


def one(name: str, url: str, n: int, concurrency: int) -> dict[str, float]:
    """Run one contender in this process."""
    if name in OURS:
        wall, cpu, good = kit_judge(url, n, concurrency, name == OURS[0])
    elif name in PLAIN[:3]:
        wall, cpu, good = asyncio.run(openai_client(url, n, concurrency, name))
    elif name in PLAIN:
        wall, cpu, good = asyncio.run(bare(url, n, concurrency, name == PLAIN[3]))
    else:
        wall, cpu, good = asyncio.run(
            {"inspect-ai": inspect_ai, "verifiers": verifiers, "autorubric": autorubric}[name](
                url, n, concurrency
            )
        )
    return {"wall": wall, "cpu": cpu / n * 1000, "good": good}


def cached(n: int) -> float:
    """Verdicts a second from the ledger."""
    from kit.judge import EndpointJudge, Ledger, judge
    from kit.records import Criterion, Response, Task, Verdict

    task = Task(
        id="t",
        prompt="p",
        criteria=tuple(Criterion(id=f"c{i}", text=f"says w{i}") for i in range(20)),
    )
    answers = [
        Response(task_id="t", id=f"r{i}", text=f"answer {i} " + "text " * 300)
        for i in range(n // 20)
    ]
    who = EndpointJudge("stub", base_url="http://127.0.0.1:1/v1")
    book = Ledger(Path(tempfile.mkdtemp()) / "ledger.sqlite")
    for r in answers:
        book.put(
            [
                Verdict(
                    task_id="t",
                    response_id=r.id,
                    criterion_id=c.id,
                    status="met",
                    reason="because " * 8,
                    key=k,
                )
                for c, k in zip(task.criteria, who.keys(task, r, task.criteria), strict=True)
            ]
        )
    start = time.perf_counter()
    got = judge(task, answers, judge=who, ledger=book, progress=False)
    return got.spent.cached / (time.perf_counter() - start)


# -- the run -----------------------------------------------------------------------------------------------------------------
def run_one(python: str, name: str, port: int, n: int, concurrency: int) -> dict[str, float] | str:
    """A contender in its own process; a sentence when it cannot run."""
    env = {
        **os.environ,
        "OMP_NUM_THREADS": "1",
        "PYTHONPATH": f"{OPENAI3}:{ROOT}" if name == "inspect-ai" else str(ROOT),
        "OPENAI_API_KEY": "none",
        "NO_PROXY": "127.0.0.1",
    }
    cmd = [
        python,
        __file__,
        "--one",
        name,
        "--url",
        f"http://127.0.0.1:{port}/v1",
        "--n",
        str(n),
        "--concurrency",
        str(concurrency),
    ]
    try:
        p = subprocess.run(cmd, capture_output=True, text=True, timeout=240, env=env)
    except subprocess.TimeoutExpired:
        return "did not end within 240 s"
    try:
        return json.loads(p.stdout.strip().splitlines()[-1])
    except (ValueError, IndexError):
        return "failed: " + (p.stderr.strip().splitlines() or ["no output"])[-1][:120]


def table(
    title: str,
    latency: float,
    faults: dict[str, float],
    n: int,
    concurrency: int,
    allowance: float,
    names: list[str],
) -> None:
    """One scenario for all contenders; `allowance` seconds are part of the ideal (a call that is told to wait must wait once)."""
    ideal = -(-n // concurrency) * latency + allowance
    print(
        f"\n{title}: {n} calls x {latency * 1000:.0f} ms at {concurrency}, ideal {ideal:.2f} s, load {os.getloadavg()[0]:.1f}"
    )
    print(
        f"{'client':26} {'wall s':>8} {'ratio':>7} {'CPU ms/call':>12} {'answered':>9} {'twice':>6}"
    )
    for name in names:
        tried = [attempt(name, latency, faults, n, concurrency) for _ in range(1 if faults else 3)]
        good = [t for t in tried if not isinstance(t, str)]
        if not good:
            print(f"{name:26} {tried[0]}", flush=True)
            continue
        got = min(good, key=lambda g: g["wall"])
        print(
            f"{name:26} {got['wall']:8.2f} {got['wall'] / ideal:7.2f} {got['cpu']:12.2f} {got['good']:9.0f} {got['twice']:6.0f}",
            flush=True,
        )


def attempt(
    name: str, latency: float, faults: dict[str, float], n: int, concurrency: int
) -> dict[str, float] | str:
    """One contender against a stub of its own."""
    stub = subprocess.Popen(
        [sys.executable, str(STUB), str(latency), json.dumps(faults), "0.5"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        port = int(stub.stdout.readline())  # type: ignore[union-attr]
        got = run_one(str(PEERS) if name in OTHERS else sys.executable, name, port, n, concurrency)
        said = json.loads(stub.communicate("", timeout=20)[0])
    finally:
        stub.kill()
    return got if isinstance(got, str) else {**got, "twice": said["paid_twice"]}


def alternating(rounds: int) -> None:
    """The kit with its ledger beside bare aiohttp, in turns: ratios of medians in one run."""
    got: dict[str, list[dict[str, float]]] = {}
    for _ in range(rounds):
        for name in (*OURS, *PLAIN[3:]):
            one_run = attempt(name, 0.5, {}, 256, 256)
            if not isinstance(one_run, str):
                got.setdefault(name, []).append(one_run)
    print(f"\nin turns, {rounds} times: 256 calls x 500 ms at 256, load {os.getloadavg()[0]:.1f}")
    for name in OURS:
        for floor in PLAIN[3:]:
            pairs = list(zip(got[name], got[floor], strict=False))
            ratios = {k: statistics.median(a[k] / b[k] for a, b in pairs) for k in ("wall", "cpu")}
            print(
                f"{name:26} wall {ratios['wall']:.2f}x (goal 1.15), CPU {ratios['cpu']:.2f}x (goal "
                f"2.0) of {floor}, medians of pairs; {median(got[name], 'cpu'):.2f} and "
                f"{median(got[floor], 'cpu'):.2f} ms a call",
                flush=True,
            )


def median(rows: list[dict[str, float]], name: str) -> float:
    """The median of one figure."""
    return statistics.median(r[name] for r in rows)


PYTHON_CALL = """
import json, sys, time
start = time.perf_counter()
from kit.data import load_tasks
from kit.judge import EndpointJudge, judge
from kit.records import Response
folder, url, n = sys.argv[1:4]
rows = [json.loads(x) for x in open(folder + "/answers.jsonl")]
rs = [Response(task_id=r["task_id"], id=r["response_id"], text=r["response"]) for r in rows]
who = EndpointJudge("stub", base_url=url, concurrency=int(n))
judge(load_tasks(folder + "/tasks.json"), rs, judge=who, ledger=sys.argv[4], progress=False)
"""


def command(n: int, latency: float, concurrency: int, rounds: int) -> None:
    """`kit judge` beside the same call in Python, both from the start of the process; then with
    everything in the ledger. In turns: medians of so many rounds.
    """
    folder = Path(tempfile.mkdtemp())
    criteria = [{"id": f"c{i}", "text": f"says w{i}"} for i in range(4)]
    tasks = [{"id": f"t{i}", "prompt": f"Say {i}", "criteria": criteria} for i in range(10)]
    (folder / "tasks.json").write_text(json.dumps(tasks))
    rows = [
        {"task_id": f"t{i % 10}", "response_id": f"r{i}", "response": f"w{i % 3} answer {i}"}
        for i in range(n)
    ]
    (folder / "answers.jsonl").write_text("".join(json.dumps(r) + "\n" for r in rows))
    stub = subprocess.Popen(
        [sys.executable, str(STUB), str(latency), "{}", "0.5"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    env = {**os.environ, "PYTHONPATH": str(ROOT), "NO_PROXY": "127.0.0.1", "OMP_NUM_THREADS": "1"}
    try:
        url = f"http://127.0.0.1:{int(stub.stdout.readline())}/v1"  # type: ignore[union-attr]
        python = [sys.executable, "-c", PYTHON_CALL, str(folder), url, str(concurrency)]
        runs: list[list[tuple[float, float]]] = []
        kit = [sys.executable, "-m", "kit", "judge", *map(str, folder.glob("tasks.json"))]
        kit += [str(folder / "answers.jsonl"), "--judge", "endpoint:stub", "--base-url", url]
        kit += ["--concurrency", str(concurrency), "--ledger"]
        for i in range(rounds):
            mine, its = str(folder / f"p{i}.sqlite"), str(folder / f"c{i}.sqlite")
            runs.append([timed(c, env) for c in ([*python, mine], [*kit, its], [*kit, its])])
    finally:
        stub.communicate("")
    print(f"\nkit judge, {n} calls x {latency * 1000:.0f} ms at {concurrency}, {rounds} rounds:")
    for k, what in enumerate(("wall", "CPU")):
        own, ours, again = (statistics.median(r[i][k] for r in runs) for i in range(3))
        pairs = statistics.median(r[1][k] / r[0][k] for r in runs)
        print(
            f"{what:4} {ours:.2f} s by command, {own:.2f} s in Python ({pairs:.2f}x, goal 1.2); "
            f"all from the ledger {again:.2f} s (goal 1.0)",
            flush=True,
        )


def timed(cmd: list[str], env: dict[str, str]) -> tuple[float, float]:
    """Seconds of a process that must end well: of the clock, of the processor."""
    start, before = time.perf_counter(), children()
    subprocess.run(cmd, env=env, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    return time.perf_counter() - start, children() - before


def children() -> float:
    """Processor seconds of the processes that have ended."""
    import resource

    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def large(n: int) -> None:
    """A ledger of n verdicts, 4 a call: explain, costs, export; the memory that the export takes."""
    import resource

    from kit.judge import Call, Ledger
    from kit.records import Verdict

    book = Ledger(Path(tempfile.mkdtemp()) / "ledger.sqlite")
    row = dict(task_id="t", status="met", reason="because " * 8, judge="m")
    for start in range(0, n // 4, 1000):
        batch = []
        for i in range(start, min(start + 1000, n // 4)):
            verdicts = [
                Verdict(**row, response_id=f"r{i}", criterion_id=f"c{j}", key=f"{i:08x}{j}")
                for j in range(4)
            ]
            call = Call(id=f"{i:08x}", judge="m", model="m", endpoint="e", reply="{}", cost=0.001)
            batch.append((verdicts, call))
        book.put_many(batch)
    steps: dict[str, Any] = {
        "explain": lambda: book.explain(f"{n // 8:08x}0"),
        "costs": book.costs,
        "export": lambda: book.export(book.path.with_suffix(".jsonl")),
    }
    said, before = [], resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    for name, step in steps.items():
        start_s = time.perf_counter()
        step()
        said.append(f"{name} {time.perf_counter() - start_s:.3f} s")
    grown = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024
    print(f"\na ledger of {n:,} verdicts: {', '.join(said)}; memory grew by {grown:.0f} MB")


def peers() -> list[str]:
    """Peers that can be imported; the others are named with the reason."""
    found = []
    for name, module in OTHERS.items():
        ok = (
            PEERS.exists()
            and subprocess.run(
                [str(PEERS), "-c", f"import {module}"], capture_output=True
            ).returncode
            == 0
        )
        print(
            f"{name}: "
            + (
                "runs from build/bench-venv"
                if ok
                else "skipped, not importable in build/bench-venv"
            )
        )
        found += [name] if ok else []
    return found


def main() -> None:
    """Print the tables."""
    p = argparse.ArgumentParser(description=__doc__)
    p.add_argument("--quick", action="store_true", help="smaller numbers")
    p.add_argument("--pairs", type=int, help="only what is compared in turns, so many rounds")
    p.add_argument("--one")
    p.add_argument("--url")
    p.add_argument("--n", type=int, default=256)
    p.add_argument("--concurrency", type=int, default=256)
    args = p.parse_args()
    if args.one:
        print(json.dumps(one(args.one, args.url, args.n, args.concurrency)))
        return
    more = 1 if args.quick else 4
    rounds = args.pairs or (3 if args.quick else 7)
    alternating(rounds)
    command(200, 0.2, 32, rounds)
    if args.pairs:
        return
    command(500 * more, 0.5, 100, 1)
    large(100_000 if args.quick else 1_000_000)
    names = [*OURS, *PLAIN, *peers()]
    table("no faults (target: ratio <= 1.15, CPU < .5 ms)", 0.5, {}, 256, 256, 0.0, names)
    table(
        "storm: 5% 429 with Retry-After .5, 1% 500 (target: ratio <= 1.3, all answered)",
        0.5,
        STORM,
        256 * more,
        128,
        0.5,
        names,
    )
    print(
        f"\nfrom the ledger (target: 20,000 verdicts a second): {cached(4000 * more):,.0f} a second"
    )


if __name__ == "__main__":
    main()
