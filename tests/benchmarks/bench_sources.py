"""Time and peak memory of summary + lint on a made-up file. `python tests/benchmarks/bench_sources.py [rows] [--json-array]`."""

import json
import random
import resource
import sys
import tempfile
import time
from pathlib import Path

NOUNS = "river engine treaty planet recipe theorem vaccine bridge poem market glacier violin enzyme orbit harbour contract lantern forest circuit garden".split()
VERBS = "names explains compares lists dates measures defines quotes draws summarises".split()


def rows(n: int, *, criteria: int = 8, seed: int = 0):
    """n RLVR rows with different texts, as real sets have them."""
    rng = random.Random(seed)
    for i in range(n):
        a, b, c = rng.sample(NOUNS, 3)
        row = {
            "task_id": f"t{i}",
            "prompt": f"Write about the {a} number {i} and its {b}, with the {c} in mind. "
            + " ".join(rng.choices(NOUNS, k=40)),
            "split": "train" if i % 10 else "heldout",
            "kind": a,
        }
        for k in range(1, criteria + 1):
            row[f"rubric - {k}. criterion"] = (
                f"The response {rng.choice(VERBS)} the {rng.choice(NOUNS)} of {rng.choice(NOUNS)} {i} and the {rng.choice(NOUNS)}."
            )
            if k == 1:
                row["rubric - 1. criterion_origin"] = "Gemini missed it"
        if i % 3 == 0:
            row |= {
                "responseA": "An answer. " * 20,
                "rubric - 1. ratingA": rng.choice(["yes", "no"]),
            }
        yield row


def write(path: Path, n: int, *, array: bool = False, criteria: int = 8) -> None:
    """The file, row by row."""
    with path.open("w") as f:
        f.write("[\n" if array else "")
        for i, row in enumerate(rows(n, criteria=criteria)):
            f.write((",\n" if array and i else "") + json.dumps(row) + ("" if array else "\n"))
        f.write("\n]" if array else "")


def peak() -> float:
    """Peak memory of this process so far, MiB."""
    status = Path("/proc/self/status")
    if status.exists():  # ru_maxrss begins with that of the process that started this one
        line = next(x for x in status.read_text().splitlines() if x.startswith("VmHWM"))
        return int(line.split()[1]) / 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def children() -> float:
    """CPU seconds of the processes that this one started and waited for."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def measure(n: int, *, array: bool = False, criteria: int = 8) -> dict[str, float]:
    """Rows, megabytes, seconds and peak memory in MiB of one scan without an embedding."""
    from kit.rubrics import scan

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / ("b.json" if array else "b.jsonl")
        write(path, n, array=array, criteria=criteria)
        before, others = peak(), children()
        start, cpu = time.perf_counter(), time.process_time()
        found = scan(path)
        seconds, cpu = time.perf_counter() - start, time.process_time() - cpu
        return {
            "rows": found.rows,
            "criteria": found.summary.criteria,
            "megabytes": path.stat().st_size / 1e6,
            "seconds": seconds,
            "cpu_seconds": cpu,
            "children_cpu_seconds": children() - others,
            "peak_mib": peak(),
            "mib_before": before,
        }


def memory(n: int, *, what: str, array: bool = False) -> dict[str, float]:
    """Rows, megabytes and peak memory in MiB of reading a file (what="read") or of a scan without an embedding ("inspect")."""
    from kit.data import iter_tasks
    from kit.rubrics import scan

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / ("b.json" if array else "b.jsonl")
        write(path, n, array=array, criteria=5)
        rows = (
            scan(path).rows
            if what == "inspect"
            else sum(p.task is not None for p in iter_tasks(path))
        )
        return {"rows": rows, "megabytes": path.stat().st_size / 1e6, "peak_mib": peak()}


if __name__ == "__main__":
    numbers = [int(a) for a in sys.argv[1:] if a.isdigit()]
    for key, value in measure(
        numbers[0] if numbers else 100_000, array="--json-array" in sys.argv
    ).items():
        print(f"{key:<12}{value:,.1f}")
