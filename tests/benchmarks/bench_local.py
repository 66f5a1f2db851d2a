"""Criteria a second of the local probability judge against one prompt per criterion; a plain script.

    python tests/benchmarks/bench_local.py [--criteria 20] [--words 300] [--rounds 3] [--model FOLDER]

Same model, same tokens, same readings (checked): only the prefix is shared and the questions are batched. Times are the
median of the rounds; the two ways take turns, so that a busy neighbour hits both.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import time

from kit.judge.local import LocalJudge
from kit.records import Criterion, Response, Task


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--criteria", type=int, default=20)
    parser.add_argument("--words", type=int, default=300)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--model", default=None)
    args = parser.parse_args()
    if args.model is None:
        from kit.data import models

        args.model = models.smollm2()
    fast = LocalJudge.from_pretrained(args.model, least_mass=0.0)
    slow = LocalJudge(fast.model, fast.tokenizer, way="single", least_mass=0.0)
    task = Task(id="t", prompt="Explain how tides arise and why there are two a day.")
    answer = Response(
        task_id="t",
        id="r",
        text="The moon pulls on the near side of the sea more than on the far side. "
        * (args.words // 15),
    )
    criteria = [
        Criterion(
            id=f"c{i}",
            text=f"Point {i}: the answer says that {'the moon pulls ' * (1 + i % 4)}on the sea.",
        )
        for i in range(args.criteria)
    ]
    fast.read(task, answer, criteria[:2]), slow.read(task, answer, criteria[:2])  # warm
    times: dict[str, list[float]] = {"shared": [], "one each": []}
    for _ in range(args.rounds):
        for name, judge in (("shared", fast), ("one each", slow)):
            start = time.perf_counter()
            readings = judge.read(task, answer, criteria)
            times[name].append(time.perf_counter() - start)
            times.setdefault("readings", []).append(readings)  # type: ignore[arg-type]
    a, b = times["readings"][0], times["readings"][1]
    rate = {name: args.criteria / statistics.median(times[name]) for name in ("shared", "one each")}
    row = {
        "model": str(args.model).rsplit("/", 1)[-1],
        "dtype": str(fast.model.dtype),
        "device": str(fast.model.device),
        "prefix_tokens": len(fast._tokens(task, answer, criteria)[0]),
        "criteria": args.criteria,
        "per_second": {k: round(v, 2) for k, v in rate.items()},
        "ratio": round(rate["shared"] / rate["one each"], 2),
        "target_ratio": 5,
        "largest_p_difference": max(abs(x.p - y.p) for x, y in zip(a, b, strict=True)),
        "mean_mass": sum(x.mass for x in a) / len(a),
    }
    sys.stdout.write(json.dumps(row, indent=2) + "\n")


if __name__ == "__main__":
    main()
