"""Slow: SFT -> DPO -> GRPO for real, SmolLM2-135M on the fact set, by the config that ships. `make test-slow`.

Run once on 2026-11-21, 2 CPU cores shared with other work (load 7 to 9), float32, seed 0; 24 / 12 / 10 steps, 42 rows and 42 pairs,
355 s, 314 s and 547 s of training. 14 held-out prompts of a field that no stage saw (medicine), 4 answers each; accuracy and
calibration on the 12 of them that have facts to check. 95% intervals over prompts, ECE debiased, of the stated confidence.

    stage  accuracy            reward              ECE of stated conf.        states one          reward minus start
    start  .083 [ .01, .16]    .042 [.00, .08]     unknown (2 answers)        .036 [-.02, .09]
    SFT    .146 [ .02, .27]    .086 [.03, .14]     .695 [.56, .85], n=35      .750 [ .61, .89]    +.044 [-.03, +.12]
    DPO    .208 [-.01, .43]    .149 [.04, .26]     .453 [.00, .73], n=18      .411 [ .25, .57]    +.107 [ .00, +.21]
    GRPO   .146 [ .00, .29]    .115 [.04, .19]     .682 [.49, .88], n=25      .536 [ .33, .74]    +.074 [-.01, +.16]

Read honestly: no stage is shown to be more accurate than the start (paired differences +.06 [-.09, .22], +.13 [-.08, .33],
+.06 [-.09, .22]), nor GRPO better than DPO. Of the rewards only DPO's difference excludes 0, by .0006, before any correction for
three looks. What was learnt is the form: SFT teaches to state a confidence, far above how often the answers are right. A model of
135M does not know these facts, and ten steps on other fields teach none. The best trivial policy (hedge) gets .077. No answer of
the GRPO stage tripped a sentinel; the kit's own code took .19% of its steps. The chain was stopped once, after DPO, and went on.

This test as it stands, run alone the same day (1,226 s, load 2 to 5): passed; accuracy .062 / .146 / .208 / .208, reward .023 / .092 /
.140 / .146, reward minus start SFT +.069 [.01, .13], DPO +.117 [-.01, +.24], GRPO +.123 [.02, .23]. Which stage's interval excludes 0
differs from the run above, of the same seed and earlier code (why was not looked into): three looks at 14 prompts carry no such claim.
"""

from __future__ import annotations

import math

import pytest

from kit.system import paths
from kit.train import chain, rollouts

pytestmark = pytest.mark.slow
CONFIG = chain.CONFIGS / "facts_chain.yaml"


@pytest.mark.timeout(3600)
def test_the_chain_on_the_fact_set(tmp_path):
    """What holds for any seed: three stages run, SFT teaches to state a confidence, and every number comes with its interval."""
    if not (paths.home() / "models" / "SmolLM2-135M-Instruct" / "config.json").exists():
        pytest.skip("SmolLM2-135M is not in the cache")
    report = chain.run(chain.read(CONFIG, out=str(tmp_path / "run")))
    print(report.text())
    start, sft, dpo, grpo = report.table
    assert [q.stage for q in report.table] == [
        "start",
        "sft",
        "dpo",
        "grpo",
    ] and start.gain.value == 0
    assert (
        sft.stated.value > start.stated.value + 0.3
        and sft.reward.n_clusters == 14
        and sft.accuracy.n_clusters == 12
    )
    for q in (sft, dpo, grpo):
        told = (
            (q.accuracy, q.reward, q.gain)
            if math.isnan(q.ece.value) and q.ece.n < 10
            else (q.accuracy, q.reward, q.gain, q.ece)
        )
        assert all(math.isfinite(x) for e in told for x in (e.value, e.low, e.high))
    losses = [s["loss"] for s in rollouts.read_steps(tmp_path / "run" / "1_sft")]
    assert losses[-1] < losses[0]
