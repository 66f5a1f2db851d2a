"""Honest search: 200 simulated studies through the workbench's own code. Limits: a better prompt is claimed in at most 5 % where
nothing can be gained, and in at least 80 % where one gains .05, at the size that the planner names. About 4 minutes on one core.

Arguments: studies (default 200).
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

from scipy import optimize

sys.path.insert(0, str(Path(__file__).parents[1] / "tuning"))
from simulated import PASSED, claimed, study

FALSE, FOUND, GAIN = 0.05, 0.80, 0.05


def kappa(right: float) -> float:
    """Cohen's kappa of a judge that is right with this chance, whatever the label."""
    says = PASSED * right + (1 - PASSED) * (1 - right)
    luck = PASSED * says + (1 - PASSED) * (1 - says)
    return (right - luck) / (1 - luck)


def nothing_to_gain(runs: int, tmp: Path) -> int:
    """Print the false claims for three sizes; how many sizes break the limit."""
    bad = 0
    for prompts in (60, 200, 600):
        reads = [study(prompts, i, tmp, found=8) for i in range(runs)]
        wrong = sum(claimed(read) for _, read in reads)
        naive = sum(read.dev.value > read.baseline_test.value for _, read in reads)
        bad += wrong > FALSE * runs
        print(f"nothing to gain, {prompts} prompts, 4 prompts by hand and 8 found: ", end="")
        print(
            f"{wrong} of {runs} studies claim a better one; the winner looks better on dev ", end=""
        )
        print(f"than the baseline on test in {naive}", flush=True)
    return bad


def gain_to_find(runs: int, tmp: Path, measure: str, more: float) -> int:
    """Print how often a gain of .05 is claimed at the planner's size; 1 where too rarely."""
    tmp = Path(tempfile.mkdtemp(dir=tmp))
    pilot, _ = study(300, 0, tmp, measure=measure, gain=more)
    plan = pilot.plan(GAIN)
    reads = [study(plan["needed"], 1 + i, tmp, gain=more, measure=measure)[1] for i in range(runs)]
    hits = sum(claimed(r) and r.winner == "p3" for r in reads)
    print(f"a gain of {GAIN} in {measure}: {plan}; claimed in {hits} of {runs}", flush=True)
    return int(hits < FOUND * runs)


def main(runs: int = 200) -> int:
    """All of it; the number of limits that do not hold."""
    kappas = optimize.brentq(lambda d: kappa(0.75 + d) - kappa(0.75) - GAIN, 0, 0.2)
    with tempfile.TemporaryDirectory() as folder:
        tmp = Path(folder)
        bad = nothing_to_gain(runs, tmp)
        bad += gain_to_find(runs, tmp, "accuracy", GAIN)
        bad += gain_to_find(min(runs, 100), tmp, "kappa", kappas)
    print(f"{bad} limits broken")
    return bad


if __name__ == "__main__":
    sys.exit(min(main(int(sys.argv[1]) if len(sys.argv) > 1 else 200), 1))
