"""The two chains on the ladder set, trained again, beside the kept runs; plain script, prints both tables.

    python tests/benchmarks/bench_chain.py [--seeds 0] [--only ladder_chain,ladder_confidence] [--write]

A quarter of an hour or more a chain and seed on two cores (not measured on idle ones). --write replaces data/ladder_runs.json by what was trained here. Seeds of
the same run differ between processors (bfloat16 or float32): compare ranges, not numbers.
"""

from __future__ import annotations

import argparse
import json
import tempfile
from pathlib import Path

from kit.train import chain, kept

CHAINS = {"ladder_chain": (0, 1, 2), "ladder_confidence": (0, 1, 2, 3, 4)}


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
            runs.setdefault(name, {})[str(seed)] = kept.pack(out)
        if args.write:
            kept.keep(runs)
        print(f"== {name}, kept\n{json.dumps(summary(name), indent=1)}", flush=True)


def summary(name: str) -> dict[str, list[float]]:
    """Accuracy after each stage of the kept runs, one number a seed."""
    out: dict[str, list[float]] = {}
    for (_, stage), q in kept.qualities(name).items():
        out.setdefault(stage, []).append(round(q.accuracy.value, 3))
    return out


if __name__ == "__main__":
    main()
