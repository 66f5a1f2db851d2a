"""The two chains on the ladder set, trained again, beside the kept runs; plain script, prints both tables.

    python tests/benchmarks/bench_chain.py [--seeds 0] [--only ladder_chain,ladder_confidence] [--write]

A quarter of an hour or more a chain and seed on two cores (not measured on idle ones). --write replaces data/ladder_runs.json by what was trained here. Seeds of
the same run differ between processors (bfloat16 or float32): compare ranges, not numbers.
"""

from __future__ import annotations

import argparse
import json
import math
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from kit.errors import DataError
from kit.system import paths
from kit.train import chain, evaluation, kept

CHAINS = {"ladder_chain": (0, 1, 2), "ladder_confidence": (0, 1, 2, 3, 4)}


def pack(folder: str | Path) -> dict[str, Any]:
    """One finished chain: {stage: {seconds, answers: [[task id, text, token probability]]}}, in the
    table's order.
    """
    folder = Path(folder)
    table = json.loads((folder / "metrics.json").read_text("utf-8"))["table"]
    out = {}
    for row in table:
        found = sorted(folder.glob(f"eval_{row['stage']}_????????.json"))
        if len(found) != 1:
            raise DataError(
                f"{len(found)} evaluations of stage {row['stage']!r}",
                where=str(folder),
                fix="keep one: a chain's folder holds one way of answering",
            )
        said = [
            [r.task_id, r.text, _short(r.confidence)] for r in evaluation.read(found[0]).responses
        ]
        out[row["stage"]] = {"seconds": _short(row["seconds"]), "answers": said}
    return out


def keep(runs: Mapping[str, Mapping[str, Any]], path: str | Path | None = None) -> None:
    """Write {chain's name: {seed: pack(folder)}}; chains that the file has and `runs` has not
    stay.
    """
    path = Path(path or paths.data(kept.STORED))
    old = json.loads(path.read_text("utf-8")) if path.exists() else {}
    text = json.dumps(old | dict(runs), ensure_ascii=False, separators=(",", ":"))
    path.write_text(text + "\n", "utf-8")


def _short(value: Any) -> float | None:
    known = isinstance(value, (int, float)) and math.isfinite(value)
    return round(float(value), 4) if known else None


def main() -> None:
    """Train, print, and write where asked."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, nargs="*", help="default: those that are kept")
    parser.add_argument("--only", default=",".join(CHAINS), help="chains, with commas")
    parser.add_argument("--out", type=Path, help="folder of the chains; finished stages are kept")
    parser.add_argument("--write", action="store_true", help="replace the kept runs")
    args = parser.parse_args()
    base = args.out or Path(tempfile.mkdtemp())
    runs: dict[str, dict[str, dict]] = {}
    for name in args.only.split(","):
        for seed in args.seeds or CHAINS[name]:
            out = base / f"{name}_{seed}"
            report = chain.run(chain.read(chain.CONFIGS / f"{name}.yaml", seed=seed, out=str(out)))
            print(f"== {name}, seed {seed}, trained here\n{report.text()}", flush=True)
            runs.setdefault(name, {})[str(seed)] = pack(out)
        if args.write:
            keep(runs)
        print(f"== {name}, kept\n{json.dumps(summary(name), indent=1)}", flush=True)


def summary(name: str) -> dict[str, list[float]]:
    """Accuracy after each stage of the kept runs, one number a seed."""
    out: dict[str, list[float]] = {}
    for (_, stage), q in kept.qualities(name).items():
        out.setdefault(stage, []).append(round(q.accuracy.value, 3))
    return out


if __name__ == "__main__":
    main()
