"""How time and memory grow with the size: judging, lint, report, calibration, ledger.

`python tests/benchmarks/bench_growth.py [judge lint report calibrate ledger] [--quick]`; --quick
leaves out the largest size of each. Each size runs in a process of its own; the time is that of the
processor, so a busy machine changes little. Exit code 1 when a bound is broken.
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT), str(ROOT / "tests" / "benchmarks")]
SIZES = {
    "judge": (1_000, 10_000, 50_000),  # answers
    "lint": (1_000, 10_000, 100_000),  # rows
    "report": (1, 50, 1_000),  # runs
    "calibrate": (10**5, 10**6, 10**7),  # rows
    "ledger": (100_000, 1_000_000),  # verdicts
}
# what is measured at the largest size, and the most it may be
BOUNDS = {
    "judge": {"growth": 1.5, "memory MB": 400},
    "lint": {"growth": 1.5},
    "report": {"seconds": 15, "page MB": 8},
    "calibrate": {"growth": 1.5, "memory MB": 400},
    "ledger": {"growth": 1.5, "explain s": 0.05, "costs s": 1.8, "export MB": 100},
}


def command(*words: str) -> None:
    """A kit command that must succeed; what it prints is dropped."""
    from kit.__main__ import main

    with contextlib.redirect_stdout(io.StringIO()):
        assert main([*words, "--progress", "none"]) == 0, words


def judge(n: int, folder: Path) -> Callable[[], dict[str, float]]:
    """`kit judge`, four criteria decided by code."""
    criteria = [
        {"id": f"c{i}", "text": f"says w{i}", "check": {"name": "contains", "any": [f"w{i}"]}}
        for i in range(4)
    ]
    tasks = [{"id": f"t{i}", "prompt": f"Say {i}", "criteria": criteria} for i in range(10)]
    (folder / "tasks.json").write_text(json.dumps(tasks))
    with (folder / "answers.jsonl").open("w") as f:
        for i in range(n):
            ids = {"task_id": f"t{i % 10}", "response_id": f"r{i}"}
            f.write(json.dumps({**ids, "response": f"w{i % 3} answer {i} " + "text " * 40}) + "\n")
    names = [str(folder / x) for x in ("tasks.json", "answers.jsonl", "g.jsonl", "l.sqlite")]

    def go() -> dict[str, float]:
        command("judge", *names[:2], "--judge", "code", "--out", names[2], "--ledger", names[3])
        return {}

    return go


def lint(n: int, folder: Path) -> Callable[[], dict[str, float]]:
    """Reading, summary and lint of an RLVR file of eight criteria a row."""
    import bench_sources

    from kit.rubrics import scan

    bench_sources.write(folder / "rows.jsonl", n)

    def go() -> dict[str, float]:
        assert scan(folder / "rows.jsonl").rows == n
        return {}

    return go


def report(n: int, folder: Path) -> Callable[[], dict[str, float]]:
    """`kit report` over runs of a sweep, ten metrics each."""
    from kit import runs
    from kit.records import Run, to_json
    from kit.runs import report as made

    for i in range(n):
        gains = {
            f"metric {k}": {"value": (i * 7 + k) % 100 / 100, "low": 0.0, "high": 1.0, "n": 20}
            for k in range(10)
        }
        params = {"learning_rate": i // 5 * 1e-5, "seed": i % 5}
        kept = {"params": params, "seed": i % 5, "metrics": gains, "status": "done", "seconds": 1.0}
        (folder / f"r{i:05d}").mkdir()
        run = Run(id=f"r{i:05d}", notebook="03_train_grpo", profile="test", **kept)
        runs.write_json(folder / run.id / "metrics.json", to_json(run))

    def go() -> dict[str, float]:
        return {"page MB": made.write(folder).stat().st_size / 1e6}

    return go


def calibrate(n: int, folder: Path) -> Callable[[], dict[str, float]]:
    """`kit calibrate` of a Parquet file."""
    import numpy as np
    import pyarrow as pa
    import pyarrow.parquet as pq

    rng, path = np.random.default_rng(0), folder / "rows.parquet"
    with pq.ParquetWriter(
        path, pa.schema([("p", pa.float64()), ("right", pa.int64()), ("prompt", pa.int64())])
    ) as out:
        for start in range(0, n, 10**5):
            p = rng.random(10**5)
            columns = {"p": p, "right": (rng.random(10**5) < p**1.1).astype(np.int64)}
            columns["prompt"] = (start + np.arange(10**5)) // 8
            out.write_table(pa.table(columns))
    words = ("--confidence", "p", "--correct", "right", "--cluster", "prompt")

    def go() -> dict[str, float]:
        command("calibrate", str(path), *words)
        return {}

    return go


def ledger(n: int, folder: Path) -> Callable[[], dict[str, float]]:
    """explain, costs and export of a ledger of n verdicts, four a call."""
    from kit.judge import Call, Ledger
    from kit.records import Verdict

    book = Ledger(folder / "ledger.sqlite")
    row = {"task_id": "t", "status": "met", "reason": "because " * 8, "judge": "m"}
    for start in range(0, n // 4, 1000):
        batch = []
        for i in range(start, start + 1000):
            key = f"{i:08x}"
            verdicts = [
                Verdict(**row, response_id=f"r{i}", criterion_id=f"c{j}", key=f"{key}{j}")
                for j in range(4)
            ]
            call = Call(id=key, judge="m", model="m", endpoint="e", reply="{}", cost=0.001)
            batch.append((verdicts, call))
        book.put_many(batch)

    def go() -> dict[str, float]:
        out, begin = {}, time.process_time()
        book.explain(f"{n // 8:08x}0")
        out["explain s"] = time.process_time() - begin
        begin = time.process_time()
        book.costs()
        out["costs s"] = time.process_time() - begin
        before = peak()
        book.export(folder / "out.jsonl")
        return {**out, "export MB": peak() - before}

    return go


def peak() -> float:
    """Most memory that this process held so far, MB."""
    status = Path("/proc/self/status")
    if status.exists():  # ru_maxrss begins with that of the process that started this one
        line = next(x for x in status.read_text().splitlines() if x.startswith("VmHWM"))
        return int(line.split()[1]) / 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def one(part: str, n: int) -> dict[str, float]:
    """Figures of one size. memory MB : what the work added to what was held before it."""
    with tempfile.TemporaryDirectory() as name:
        go = globals()[part](n, Path(name))
        before = peak()
        begin = sum(os.times()[:4])
        more = go()
        return {"seconds": sum(os.times()[:4]) - begin, "memory MB": peak() - before, **more}


def measured(part: str, n: int) -> dict[str, float]:
    """`one` in a process of its own."""
    line = [sys.executable, __file__, "--one", part, str(n)]
    done = subprocess.run(line, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"{part} of {n:,}: {done.stderr[-1500:]}")
    return json.loads(done.stdout.splitlines()[-1])


def main(parts: list[str], quick: bool) -> int:
    """The table; how many bounds are broken."""
    broken = 0
    for part in parts:
        print(f"\n{part}: {globals()[part].__doc__}")
        last: tuple[int, dict[str, float]] | None = None
        for n in SIZES[part][:-1] if quick else SIZES[part]:
            got = measured(part, n)
            if last:  # time a further row beside the average until there
                rate = (got["seconds"] - last[1]["seconds"]) / (n - last[0])
                got["growth"] = rate / (last[1]["seconds"] / last[0])
            last = n, got
            print(f"{n:>12,}  " + ", ".join(f"{k} {v:.3g}" for k, v in got.items()), flush=True)
        for name, most in BOUNDS[part].items():
            if last and last[1].get(name, 0) > most:
                broken += 1
                print(f"  BROKEN: {name} {last[1][name]:.3g}, the bound is {most}")
    return broken


if __name__ == "__main__":
    if sys.argv[1:2] == ["--one"]:
        print(json.dumps(one(sys.argv[2], int(sys.argv[3]))))
        sys.exit()
    asked = [a for a in sys.argv[1:] if a in SIZES]
    sys.exit(bool(main(asked or list(SIZES), "--quick" in sys.argv)))
