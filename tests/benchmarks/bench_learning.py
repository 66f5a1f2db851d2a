"""Is something learned? `kit train instructions` over seeds, and a control; plain script, prints a table.

    python tests/benchmarks/bench_learning.py [--seeds 0,1,2,3,4] [--write data/learning.json]

Each run is the shipped config with another seed, in a process of its own; the control deals each group's rewards out at
random. Printed are strict passes (every gate, every constraint, one finished sentence) on 84 held-out prompts, greedy and
sampled, with intervals over prompts and over seeds, beside the best policy without skill and the goals. `--write` keeps the
answers for the notebook. Five seeds and the control take half an hour on two idle cores.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import subprocess
import sys
import tempfile
from pathlib import Path

GOALS = {"mean": 0.75, "worst": 0.65, "never trained": 0.5, "finished": 0.7, "without skill": 0.1}


def one(seed: int, control: bool, out: str) -> None:
    """Train once and write the answers of both evaluations as JSON."""
    from kit.train import answers, grpo, job, models
    from kit.train.chain import CONFIGS

    given = {"seed": seed, "shuffle_rewards": control, "forecast": False, "save_every": 0}
    wanted = job.read(CONFIGS / "instructions.yaml", **given)
    loaded = models.load(wanted.settings)

    def say() -> dict:
        found = {}
        for how, heat in (("greedy", 0.0), ("sampled", None)):
            some = answers.sample_answers(
                loaded,
                wanted.heldout,
                samples=1,
                settings=wanted.settings,
                seed=5,
                temperature=heat,
            )
            found[how] = {a.task_id: a.text for a in some}
        return found

    before = say()
    done = grpo.train(
        wanted.settings, wanted.tasks, composer=wanted.reward, out=f"{out}.run", loaded=loaded
    )
    loaded.model.eval()
    rewards = [round(row["reward"], 4) for row in done.steps()]
    run = {"control": control, "seconds": round(done.seconds), "rewards": rewards, "after": say()}
    Path(out).write_text(json.dumps({"before": before, "run": run}), "utf-8")


def train(seeds: list[int]) -> dict:
    """All runs, one after the other."""
    runs, before = {}, {}
    arms = [(f"seed {s}", s, False) for s in seeds] + [("control", seeds[0], True)]
    for name, seed, control in arms:
        with tempfile.TemporaryDirectory() as folder:
            out = str(Path(folder, "run.json"))
            command = [sys.executable, __file__, "--one", str(seed), "--out", out]
            subprocess.run(command + ["--control"] * control, check=True)
            got = json.loads(Path(out).read_text("utf-8"))
        before, runs[name] = before or got["before"], got["run"]
        print(f"{name}: {got['run']['seconds']} s", flush=True)
    return {"before": before, "runs": runs}


def report(path: Path) -> None:
    """The table of kept runs beside the goals."""
    from kit.rewards import Composer, search
    from kit.train import stored

    tasks = stored.heldout()
    for how in stored.HOWS:
        kept = stored.runs(how, path)
        print(f"\n{how}: strict passes")
        for row in stored.table(kept, tasks):
            print(
                "  ".join(
                    f"{k} {v:.3f}" if isinstance(v, float) else f"{v}" for k, v in row.items()
                )
            )
        for k in kept:
            gain = stored.over_seeds([dataclasses.replace(k, control=False)], tasks)
            ended = k.after.criteria()["id finished"].value
            print(f"{k.name}: {gain.after[0]:.3f}, gain {gain.prompts}; finished {ended:.3f}")
    found = search(Composer.from_config("rubric"), tasks, seconds=60)
    print(
        f"\nbest policy without skill: {found.heldout} ({found.evaluations} tried)\ngoals: {GOALS}"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", default="0,1,2,3,4")
    parser.add_argument("--write", help="keep the answers in this file")
    parser.add_argument("--kept", help="train nothing, report on this file")
    parser.add_argument("--one", type=int, help=argparse.SUPPRESS)
    parser.add_argument("--control", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--out", help=argparse.SUPPRESS)
    a = parser.parse_args()
    if a.one is not None:
        one(a.one, a.control, a.out)
        return
    if a.kept:
        report(Path(a.kept))
        return
    path = Path(a.write or Path(tempfile.mkdtemp(), "learning.json"))
    old = json.loads(path.read_text("utf-8")) if path.exists() else {}
    new = old | train([int(s) for s in a.seeds.split(",")])
    path.write_text(json.dumps(new, indent=0, ensure_ascii=False) + "\n", "utf-8")
    report(path)


if __name__ == "__main__":
    main()
