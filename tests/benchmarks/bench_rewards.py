"""How fast verdicts become rewards: graded one by one, as a matrix, and through the composer, beside a plain loop over dicts.

Run: python tests/benchmarks/bench_rewards.py [--responses 10000] [--criteria 20]. Prints a table; no network, no model.
"""

from __future__ import annotations

import argparse
import random
import time
from collections.abc import Callable

from kit.claims.direction import claims
from kit.records import Criterion, Response, Task, Verdict
from kit.rewards.aggregate import grade
from kit.rewards.composer import Composer


def naive(weights: dict[str, float], rows: list[dict[str, float]]) -> list[float]:
    """The loop that everybody writes: dicts of floats, no unknowns, no interval, no contributions."""
    return [
        sum(w * row[i] if w > 0 else -w * (1 - row[i]) for i, w in weights.items())
        / sum(abs(w) for w in weights.values())
        for row in rows
    ]


def best(function: Callable[[], object], repeats: int = 3) -> float:
    """Shortest wall time of some runs, in seconds."""
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        function()
        times.append(time.perf_counter() - start)
    return min(times)


def main() -> None:
    """Print responses per second and the ratio to the plain loop."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--responses", type=int, default=10_000)
    parser.add_argument("--criteria", type=int, default=20)
    args = parser.parse_args()
    rng = random.Random(0)
    n, k = args.responses, args.criteria
    criteria = tuple(
        Criterion(id=f"c{i}", text="x", weight=rng.choice([1.0, 2.0, -1.0])) for i in range(k)
    )
    task = Task(id="t", prompt="p", criteria=criteria)
    values = [{c.id: float(rng.random() < 0.6) for c in criteria} for _ in range(n)]
    verdicts = [
        [
            Verdict(task_id="t", response_id=str(r), criterion_id=i, status="met" if x else "unmet")
            for i, x in row.items()
        ]
        for r, row in enumerate(values)
    ]
    responses = [
        Response(task_id="t", id=str(r), text="an answer of a few words") for r in range(n)
    ]
    weights = {c.id: c.weight for c in criteria}
    composer = Composer.from_config({"components": [{"kind": "rubric", "how": "flip"}]})
    text = "TSH rises because T4 falls. The yield does not increase, but the purity stays the same. Confidence: 80%"
    subjects = {"TSH": [], "T4": [], "yield": [], "purity": []}
    rows = {
        "plain loop over dicts (no unknowns, no parts)": best(lambda: naive(weights, values)),
        "grade(), one by one": best(lambda: [grade(task, v, how="flip") for v in verdicts]),
        "Composer.score(), one by one": best(
            lambda: [composer.score(task, r, v) for r, v in zip(responses, verdicts, strict=True)]
        ),
    }
    base = rows["plain loop over dicts (no unknowns, no parts)"]
    print(f"{n} responses x {k} criteria")
    for name, seconds in rows.items():
        print(
            f"  {name:<48}{seconds:8.3f} s {n / seconds:12,.0f} responses/s   {seconds / base:6.2f} x the plain loop"
        )
    m = 500
    seconds = best(lambda: [claims(text, subjects) for _ in range(m)])
    print(
        f"  {'direction verifier, answers of 3 sentences':<48}{seconds:8.3f} s {m / seconds:12,.0f} answers/s"
    )


if __name__ == "__main__":
    main()
