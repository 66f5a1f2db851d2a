"""GRPO's options beside the plain run, seed by seed: steps to the plain run's final held-out reward; prints a table.

    python tests/benchmarks/bench_grpo_options.py [--seeds 0,1,2] [--steps 30] [--every 5] [--out DIR] [--json]

Same model, prompts, order and code-checked criteria; an option changes the training alone, so that the held-out reward means
the same in all runs. `share` is the option's steps to that reward as a share of the plain run's; a run that does not get there
counts with one evaluation more than all its steps, and is counted. Finished runs in --out are not run again.
"""

from __future__ import annotations

import argparse
import json
import tempfile
from pathlib import Path
from typing import Any

OPTIONS: dict[str, dict[str, Any]] = {
    "plain": {},
    "reweight": {"reweight": 1.0},
    "reweight, half": {"reweight": 0.5},
    "resample": {"resample": 2},
}


def tasks() -> tuple[list, list]:
    """(to train on, held out): the project's prompts with the criteria that code decides."""
    import dataclasses

    from kit.data import load_tasks
    from kit.system import paths

    rows = load_tasks(paths.data("short_answers.json")).tasks
    plain = [
        dataclasses.replace(t, criteria=tuple(c for c in t.criteria if c.by_code)) for t in rows
    ]
    train = [t for t in plain if t.split == "train"]
    return train, [t for t in plain if t.split != "train"]


def curve(option: str, seed: int, steps: int, every: int, out: Path) -> list[tuple[int, float]]:
    """(step, held-out reward) of one run, the start and the end included."""
    from kit.train import evaluation, grpo, rollouts
    from kit.train.config import GRPOSettings, build
    from kit.train.presets import preset

    folder = out / f"{option.replace(', ', '_')}_{seed}"
    if not (folder / "metrics.json").exists():
        values = {**preset("cpu"), **OPTIONS[option], "seed": seed, "steps": steps}
        settings = build(GRPOSettings, {**values, "eval_every": every, "save_every": every})
        train, held = tasks()
        grpo.train(settings, train, heldout=held, out=folder, resume=folder.exists())
    ends = {0: "before", steps: "after"}
    found = [
        (at, evaluation.read(folder / f"eval_{n}.json").reward().value) for at, n in ends.items()
    ]
    found += [(r["step"], r["reward"]) for r in rollouts.read(folder / "evals.jsonl")]
    return sorted(found)


def reached(points: list[tuple[int, float]], goal: float, every: int) -> int:
    """The first evaluated step with at least this reward; beyond the last where there is none."""
    return next((s for s, r in points if r >= goal), points[-1][0] + every)


def main() -> None:
    """Run, or read, every option and seed; print one line per option."""
    from kit.stats import mean

    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", default="0,1,2")
    parser.add_argument("--steps", type=int, default=30)
    parser.add_argument("--every", type=int, default=5)
    parser.add_argument("--out", type=Path, default=None)
    parser.add_argument("--json", action="store_true")
    args = parser.parse_args()
    out = args.out or Path(tempfile.mkdtemp(prefix="grpo_options_"))
    seeds = [int(s) for s in args.seeds.split(",")]
    runs = {(o, s): curve(o, s, args.steps, args.every, out) for s in seeds for o in OPTIONS}
    goals = {s: runs["plain", s][-1][1] for s in seeds}
    plain = {s: max(reached(runs["plain", s], goals[s], args.every), 1) for s in seeds}
    rows = []
    for option in OPTIONS:
        steps = [reached(runs[option, s], goals[s], args.every) for s in seeds]
        share = mean([n / plain[s] for n, s in zip(steps, seeds, strict=True)])
        final = mean([runs[option, s][-1][1] for s in seeds])
        rows.append(
            {
                "option": option,
                "steps": steps,
                "missed": sum(n > args.steps for n in steps),
                "share": share.value,
                "share_low": share.low,
                "share_high": share.high,
                "final": final.value,
                "final_low": final.low,
                "final_high": final.high,
            }
        )
    if args.json:
        print(json.dumps(rows, indent=2))
        return
    print(f"steps to the plain run's final held-out reward, {len(seeds)} seeds; runs in {out}")
    for r in rows:
        print(
            f"{r['option']:16} steps {r['steps']!s:14} share {r['share']:.2f} "
            f"[{r['share_low']:.2f}, {r['share_high']:.2f}]  missed {r['missed']}  "
            f"final {r['final']:.3f} [{r['final_low']:.3f}, {r['final_high']:.3f}]"
        )


if __name__ == "__main__":
    main()
