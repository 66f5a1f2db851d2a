"""The judge beside other libraries on one stub server:  python tests/benchmarks/bench_judging.py [--quick]

Everyone judges the same answers against the same criterion, one call an answer, in the way that its documentation
shows; the stub replies "met" in the form that each one reads, 0.5 s after the request. A contender is a process that
lives through all rounds, so imports do not count, and it opens its connections with one round of calls before the
clock starts. Rounds take the contenders in turn, there and back; `x aiohttp` is the median of the ratios within a
round. The stub has a process of its own, whose CPU time stands beside that of each contender. Peers run where
build/bench-NAME/bin/python can import them (run.sh makes it), else they are named as not installed. Peers take part
in fewer rounds. Wall times mean something on a quiet machine only, so the load is printed.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import functools
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
FLOOR, KIT, LEDGER = "aiohttp", "kit", "kit+ledger"
PEERS = {"autorubric": "autorubric", "verifiers": "verifiers", "inspect-ai": "inspect_ai"}
TARGETS = {64: 1.12, 256: 1.6}  # in flight -> wall of the kit over that of bare aiohttp
CACHED = 20_000  # verdicts a second
LATENCY, CALLS = 0.5, 256
ROUNDS, PEER_ROUNDS = 7, 2

QUESTION = "Say three words."
CRITERION = "The answer begins with a word and a number."
REASON = "The answer begins with the word w1 and a number, as the criterion wants."


def text_of(i: int) -> str:
    """An answer of about 2.5 kB, another one for each number."""
    return f"w{i % 3} number {i} {'text ' * 500}"


# -- the stub: a bare protocol, so that the server is not what is measured --------------------------
CONTENT = {
    FLOOR: {"reason": REASON, "verdict": "met"},
    KIT: {"call": "0000", "c1": {"reason": REASON, "verdict": "met"}},
    "autorubric": {"criterion_status": "MET", "explanation": REASON},
    "verifiers": {"verdicts": [{"name": "c1", "reason": REASON, "verdict": "yes"}]},
    "inspect-ai": f"{REASON}\n\nGRADE: C",
}
MARK = b'is the text \\"'  # before the four digits that the kit's reply must repeat


def reply_to(name: str) -> bytes:
    """The whole HTTP reply to a contender, made once."""
    content = CONTENT[name] if isinstance(CONTENT[name], str) else json.dumps(CONTENT[name])
    message = {"role": "assistant", "content": content}
    usage = {"prompt_tokens": 700, "completion_tokens": 40, "total_tokens": 740}
    choice = {"index": 0, "finish_reason": "stop", "message": message}
    form = {"id": "1", "object": "chat.completion", "created": 1, "model": "stub"}
    body = json.dumps({**form, "choices": [choice], "usage": usage}).encode()
    head = (
        f"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
    )
    return head.encode() + body


REPLIES = {name.encode(): reply_to(name) for name in CONTENT}


class Connection(asyncio.Protocol):
    """Answers each request after the latency. The path begins with the contender's name."""

    def connection_made(self, transport: Any) -> None:
        self.transport, self.data = transport, b""
        self.later = asyncio.get_running_loop().call_later

    def data_received(self, data: bytes) -> None:
        self.data = self.data + data if self.data else data
        end = self.data.find(b"\r\n\r\n")
        if end < 0:
            return
        size = self.data[:end].lower().partition(b"content-length:")[2].split(b"\r\n", 1)[0]
        if len(self.data) >= end + 4 + int(size):
            whole, self.data = self.data, b""  # nobody sends a request before the last reply
            reply = REPLIES[whole[: whole.index(b"/v1/")].rpartition(b"/")[2]]
            place = whole.rfind(MARK)
            if place >= 0:
                reply = reply.replace(b"0000", whole[place + len(MARK) :][:4], 1)
            self.later(LATENCY, self.transport.write, reply)


async def stub() -> None:
    """Print the port; serve until the standard input ends."""
    loop = asyncio.get_running_loop()
    server = await loop.create_server(Connection, "127.0.0.1", 0, backlog=2048)
    print(server.sockets[0].getsockname()[1], flush=True)
    await loop.run_in_executor(None, sys.stdin.read)


# -- contenders: each makes a function that judges one answer, True where it is met -----------------
async def bare(url: str, concurrency: int) -> Callable[[str], Any]:
    """aiohttp alone: no retry, no check, no record."""
    import aiohttp

    session = aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0))

    async def one(text: str) -> bool:
        words = f"Task: {QUESTION}\nCriterion: {CRITERION}\nAnswer: {text}\nReply with JSON."
        body = {"model": "stub", "messages": [{"role": "user", "content": words}]}
        async with session.post(f"{url}/chat/completions", json=body) as reply:
            reply.raise_for_status()
            data = json.loads(await reply.read())
        return json.loads(data["choices"][0]["message"]["content"])["verdict"] == "met"

    return one


async def autorubric(url: str, concurrency: int) -> Callable[[str], Any]:
    """`Rubric.grade` with a `CriterionGrader`, which asks about one criterion a call."""
    from autorubric import LLMConfig, Rubric
    from autorubric.graders import CriterionGrader

    options = {"api_key": "none", "max_parallel_requests": concurrency}
    model = LLMConfig(model="openai/stub", api_base=url, **options)
    grader = CriterionGrader(judge_model_config=model)
    rubric = Rubric.from_dict([{"name": "c1", "weight": 1.0, "requirement": CRITERION}])

    async def one(text: str) -> bool:
        result = await rubric.grade(to_grade=text, grader=grader, query=QUESTION)
        return result.error is None and result.score == 1.0

    return one


async def verifiers(url: str, concurrency: int) -> Callable[[str], Any]:
    """The built-in `RubricJudge`, which scores a finished trace."""
    import verifiers.v1 as vf
    from verifiers.v1.judges.rubric import RubricJudge, RubricJudgeConfig
    from verifiers.v1.trace import AgentInfo, TraceTask

    path = Path(tempfile.mkdtemp()) / "rubric.json"
    path.write_text(json.dumps([{"name": "c1", "text": CRITERION}]))
    options = {"api_key_var": "OPENAI_API_KEY", "view": "last_reply", "max_criteria": 1}
    judge = RubricJudge(RubricJudgeConfig(path=path, model="stub", base_url=url, **options))
    task = vf.TaskData(idx=0, prompt=QUESTION)
    about = {"task": TraceTask(type="Task", data=task), "agent": AgentInfo(config=vf.AgentConfig())}

    async def one(text: str) -> bool:
        return await judge.score(task, vf.Trace(**about, root_reply=text)) == 1.0

    return one


async def inspect_ai(url: str, concurrency: int) -> Callable[[str], Any]:
    """The scorer `model_graded_qa`, called as an evaluation calls it."""
    from inspect_ai.model import GenerateConfig, ModelName, ModelOutput, get_model
    from inspect_ai.scorer import Target, model_graded_qa
    from inspect_ai.solver import TaskState

    config = GenerateConfig(max_connections=concurrency)
    model = get_model("openai-api/stub/stub", base_url=url, api_key="none", config=config)
    scorer, target, about = model_graded_qa(model=model), Target(CRITERION), ModelName("none/none")

    async def one(text: str) -> bool:
        output = ModelOutput.from_content("none", text)
        state = TaskState(about, 1, 1, QUESTION, [], output=output)
        return (await scorer(state, target)).value == "C"

    return one


ASYNC = {FLOOR: bare, "autorubric": autorubric, "verifiers": verifiers, "inspect-ai": inspect_ai}


async def gathered(one: Callable[[str], Any], texts: list[str], concurrency: int) -> list[Any]:
    """What `one` says of each text, or its error."""
    gate = asyncio.Semaphore(concurrency)

    async def guarded(text: str) -> Any:
        async with gate:
            return await one(text)

    return await asyncio.gather(*map(guarded, texts), return_exceptions=True)


def kit_judge(url: str, concurrency: int, ledger: bool) -> Callable[[list[str]], list[Any]]:
    """`kit.judge` with an endpoint."""
    import kit

    task = kit.Task(id="t", prompt=QUESTION, criteria=(kit.Criterion(id="k", text=CRITERION),))
    judge = kit.judge_of({"endpoint": "stub", "base_url": url, "concurrency": concurrency})
    book = kit.Ledger(Path(tempfile.mkdtemp()) / "ledger.sqlite") if ledger else False

    def judge_all(texts: list[str]) -> list[Any]:
        answers = [kit.Response(task_id="t", id=x[:20], text=x) for x in texts]
        verdicts = kit.judge(task, answers, judge=judge, ledger=book, progress=False)
        return [v.status == "met" or v.reason for v in verdicts]

    return judge_all


def contend(name: str, url: str, concurrency: int) -> None:
    """Run a round for each number on the standard input; print seconds of wall and CPU, and errors."""
    out = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)  # what libraries print is no figure
    with asyncio.Runner() as runner:
        if name in (KIT, LEDGER):
            judge_all = kit_judge(url, concurrency, name == LEDGER)
        else:
            one = runner.run(ASYNC[name](url, concurrency))

            def judge_all(texts: list[str]) -> list[Any]:
                return runner.run(gathered(one, texts, concurrency))

        for line in sys.stdin:
            texts = [text_of(int(line) + i) for i in range(concurrency + CALLS)]
            results = judge_all(texts[:concurrency])
            wall, cpu = time.perf_counter(), time.process_time()
            results += judge_all(texts[concurrency:])
            took = time.perf_counter() - wall, time.process_time() - cpu
            errors = [f"{r!r:.200}" for r in results if r is not True]
            print(json.dumps([*took, len(errors), *errors[:1]]), file=out)


def cached(n: int) -> float:
    """Verdicts a second that come from the ledger, 20 criteria an answer."""
    import kit
    from kit.judging import Question

    criteria = tuple(kit.Criterion(id=f"k{i}", text=f"says w{i}") for i in range(20))
    task = kit.Task(id="t", prompt="p", criteria=criteria)
    texts = [f"answer {i} {'text ' * 300}" for i in range(n // 20)]
    answers = [kit.Response(task_id="t", id=f"r{i}", text=x) for i, x in enumerate(texts)]
    judge = kit.judge_of({"endpoint": "stub", "base_url": "http://127.0.0.1:1/v1"})
    ids = {"task_id": "t", "status": "met", "reason": "because " * 8}
    with kit.Ledger(Path(tempfile.mkdtemp()) / "ledger.sqlite") as book:
        for r in answers:
            keys = judge.keys(Question.of(task, [r], criteria))
            rows = [
                {"criterion_id": c.id, "key": k}
                for c, k in zip(criteria, keys.values(), strict=True)
            ]
            book.put([kit.Verdict(**ids, response_id=r.id, **row) for row in rows])
        start = time.perf_counter()
        verdicts = kit.judge(task, answers, judge=judge, ledger=book, progress=False)
        return verdicts.spent.cached / (time.perf_counter() - start)


# -- the run ----------------------------------------------------------------------------------------
@functools.cache
def python_of(name: str) -> str:
    """The interpreter of a contender; empty where it is not installed."""
    if name not in PEERS:
        return sys.executable
    python = ROOT / "build" / f"bench-{name}" / "bin" / "python"
    find = f"import importlib.util as u; raise SystemExit(not u.find_spec({PEERS[name]!r}))"
    works = python.exists() and subprocess.run([str(python), "-c", find]).returncode == 0
    return str(python) if works else ""


def start(stack: contextlib.ExitStack, python: str, *arguments: str) -> Any:
    """A process of this file that ends with the benchmark."""
    name = arguments[1] if len(arguments) > 1 else ""
    env = {**os.environ, "OPENAI_API_KEY": "none", "NO_PROXY": "127.0.0.1", "OMP_NUM_THREADS": "1"}
    env |= {
        "LITELLM_LOCAL_MODEL_COST_MAP": "True",
        "PYTHONPATH": "" if name in PEERS else str(ROOT),
    }
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.DEVNULL}
    command = [python, __file__, *arguments]
    process = subprocess.Popen(command, env=env, text=True, **pipes)
    stack.callback(process.wait)
    stack.callback(process.kill)  # callbacks run last to first
    return process


class Rounds:
    """The stub and the contenders at one number of calls in flight."""

    def __init__(self, names: list[str], concurrency: int, stack: contextlib.ExitStack):
        import psutil

        self.concurrency, self.first = concurrency, 0
        stub = start(stack, sys.executable, "--stub")
        self.clock = psutil.Process(stub.pid).cpu_times
        url, self.workers = f"http://127.0.0.1:{int(stub.stdout.readline())}", {}
        for name in names:
            place = f"{url}/{KIT if name == LEDGER else name}/v1"
            more = ["--url", place, "--concurrency", str(concurrency)]
            self.workers[name] = start(stack, python_of(name), "--contend", name, *more)

    def one(self, name: str) -> dict[str, Any]:
        """The figures of a contender in one round."""
        worker, self.first = self.workers[name], self.first + 10_000
        before, line = sum(self.clock()[:2]), ""
        with contextlib.suppress(OSError):
            print(self.first, file=worker.stdin, flush=True)
            line = worker.stdout.readline()
        wall, cpu, errors, *why = json.loads(line or '[0, 0, 1, "the process ended"]')
        server = (sum(self.clock()[:2]) - before) / (CALLS + self.concurrency)
        row = {"wall": wall, "cpu": 1000 * cpu / CALLS, "stub": 1000 * server}
        return {**row, "errors": errors, "why": "".join(why)}

    def run(self, rounds: int) -> dict[str, dict[str, Any]]:
        """Name -> medians over the rounds, ratios to bare aiohttp within a round, and errors."""
        rows: dict[str, dict[int, Any]] = {name: {} for name in self.workers}
        for name in self.workers:  # imports and first calls
            self.one(name)
        for k in range(rounds):
            names = [name for name in rows if name not in PEERS or k < PEER_ROUNDS]
            for name in names[:: -1 if k % 2 else 1]:
                rows[name][k] = self.one(name)
        out = {}
        for name, made in rows.items():
            row = {key: median(r[key] for r in made.values()) for key in ("wall", "cpu", "stub")}
            row["ratios"] = sorted(r["wall"] / rows[FLOOR][k]["wall"] for k, r in made.items())
            row["errors"] = sum(r["errors"] for r in made.values())
            out[name] = row | {
                "ratio": median(row["ratios"]),
                "why": max(r["why"] for r in made.values()),
            }
        return out


def show(concurrency: int, rows: dict[str, dict[str, Any]]) -> None:
    """A table, then whether the targets are met."""
    load = os.getloadavg()[0]
    print(f"\n{CALLS} calls of {LATENCY * 1000:.0f} ms, {concurrency} in flight; load {load:.1f}")
    print(f"{'':12} {'wall s':>7} {'x aiohttp':>10} {'(range)':>12} {'CPU ms':>7} {'stub ms':>8}")
    for name, row in rows.items():
        span = f"{row['ratios'][0]:.2f}-{row['ratios'][-1]:.2f}"
        figures = f"{row['wall']:7.2f} {row['ratio']:10.2f} {span:>12} {row['cpu']:7.2f} {row['stub']:8.2f}"
        lost = f"  {row['errors']} LOST: {row['why']}" if row["errors"] else ""
        print(f"{name:12} {figures}{lost}")
    ours = [rows[name] for name in (KIT, LEDGER)]
    for name, row in zip((KIT, LEDGER), ours, strict=True):
        met = "met" if row["ratio"] <= TARGETS[concurrency] else "MISSED"
        print(f"{name}: {row['ratio']:.2f} x aiohttp, target {TARGETS[concurrency]}: {met}")
    for name in PEERS:
        if name in rows:
            row = rows[name]
            worse = all(row[key] > max(our[key] for our in ours) for key in ("ratio", "cpu"))
            times = f"{row['wall'] / ours[0]['wall']:.1f} x the kit's wall, {row['cpu'] / ours[0]['cpu']:.1f} x its CPU"
            print(
                f"{name}: {times}: {'slower and dearer' if worse else 'NOT slower and dearer'}",
                flush=True,
            )


def main() -> None:
    """Print the tables."""
    p = argparse.ArgumentParser(description=__doc__)
    p.add_argument("--quick", action="store_true", help="three rounds, no peers")
    p.add_argument(
        "--rounds", type=int, help=f"{ROUNDS} by default, of which peers do {PEER_ROUNDS}"
    )
    p.add_argument("--stub", action="store_true", help=argparse.SUPPRESS)
    p.add_argument("--contend", help=argparse.SUPPRESS)
    p.add_argument("--url", help=argparse.SUPPRESS)
    p.add_argument("--concurrency", type=int, help=argparse.SUPPRESS)
    a = p.parse_args()
    if a.stub:
        asyncio.run(stub())
    elif a.contend:
        contend(a.contend, a.url, a.concurrency)
    else:
        compare([] if a.quick else list(PEERS), a.rounds or (3 if a.quick else ROUNDS))


def compare(peers: list[str], rounds: int) -> None:
    """All tables."""
    there = [name for name in peers if python_of(name)]
    print("not installed:", ", ".join(name for name in peers if name not in there) or "none")
    for concurrency in TARGETS:
        with contextlib.ExitStack() as stack:
            names = [FLOOR, KIT, LEDGER, *there]
            show(concurrency, Rounds(names, concurrency, stack).run(rounds))
    rate = median(cached(20_000) for _ in range(3))
    met = "met" if rate >= CACHED else "MISSED"
    print(f"\nfrom the ledger: {rate:,.0f} verdicts a second, target {CACHED:,}: {met}")


if __name__ == "__main__":
    main()
