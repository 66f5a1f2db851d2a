"""Published and hand-made values, to the digits printed; conventions of bins; sentences."""

from __future__ import annotations

import json
import math
from pathlib import Path

import numpy as np
import pytest

from kit import calibration as c
from kit.errors import DataError

DATA = Path(__file__).resolve().parents[2] / "../shared/data/biorlhf"
# rows, ECE on exact edges, ECE on the floating edges i * 0.1
FILES = {
    "grpo_mve_eval_20260321_063358": (25, 0.078000, 0.078000),
    "grpo_full_v2_eval_20260324_130106": (107, 0.172430, 0.172430),
    "grpo_phase4_eval_20260401_044833": (107, 0.285364, 0.285364),
    "grpo_phase4_ablation_legacy_eval_20260403": (107, 0.198569, 0.183472),
    "grpo_phase4_ablation_matchv1_eval_20260403": (107, 0.245234, 0.242150),
}


@pytest.mark.parametrize("name", FILES)
@pytest.mark.skipif(not DATA.exists(), reason="the BioRLHF files are not beside the repository")
def test_biorlhf(name: str) -> None:
    n, exact, floating = FILES[name]
    stored = json.loads((DATA / f"{name}.json").read_text())
    conf = [row["confidence"] for row in stored["per_sample"]]
    correct = [row["total_reward"] > 0.5 for row in stored["per_sample"]]
    e = c.ece(conf, correct, bins=10, closed="left", draws=300)
    assert (e.debiased.n, round(e.value, 6)) == (n, exact)
    assert 0 <= e.debiased.low <= e.debiased.value <= e.debiased.high <= 1
    edges = [i * 0.1 for i in range(11)]
    assert round(c.ece(conf, correct, edges=edges, closed="left").value, 6) == floating
    assert c.brier(conf, correct).value == pytest.approx(stored["calibration"]["brier_score"])


@pytest.mark.parametrize(
    ("conf", "correct", "value"),
    [([0.95, 1.0], [1, 0], 0.475), ([0, 0, 0, 1], [1, 1, 1, 1], 0.75), ([1, 1], [1, 1], 0)],
)
def test_edges_of_the_unit_interval(conf: list[float], correct: list[int], value: float) -> None:
    for closed in ("left", "right"):
        assert c.ece(conf, correct, bins=10, closed=closed).value == pytest.approx(value)


@pytest.mark.parametrize("k", [10, 20, 100])
@pytest.mark.parametrize("closed", ["left", "right"])
def test_integer_percents_fall_where_they_belong(k: int, closed: str) -> None:
    at = [min(i * k // 100, k - 1) for i in range(101)]
    if closed == "right":
        at = [max(-(-i * k // 100) - 1, 0) for i in range(101)]
    sizes = [n for n in np.bincount(at, minlength=k) if n]
    percents = np.arange(101)
    for conf in (percents / 100, percents * 0.01, (percents / 100).astype(np.float32)):
        bins = c.reliability(conf, np.arange(101) % 2, bins=k, closed=closed, draws=10).bins
        assert bins["n"].tolist() == sizes


def test_bins() -> None:
    rng = np.random.default_rng(0)
    few, many = rng.choice([0.2, 0.5, 0.9], 300), rng.random(300)
    y = rng.integers(0, 2, 300)
    assert "one bin per distinct confidence (3)" in c.ece(few, y).convention
    assert "15 equal-width right-closed bins" in c.ece(many, y).convention
    assert "5 equal-width" in c.ece(many[:40], y[:40]).convention
    mass = c.reliability(many, y, bins=6, equal_mass=True).bins
    assert len(mass) == 6 and mass["n"].between(45, 55).all()
    assert {"auto", "one bin", "10 left-closed"} <= set(c.sensitivity(many, y))


@pytest.mark.parametrize(("conf", "right"), [(0.0, 3), (0.3, 7), (0.95, 2), (1.0, 4)])
def test_smece_of_a_constant(conf: float, right: int) -> None:
    y = [1] * right + [0] * (10 - right)
    assert c.smece([conf] * 10, y) == pytest.approx(abs(conf - right / 10), abs=1e-6)


def test_brier() -> None:
    conf, y = [0.3] * 10 + [0.6] * 10, [1] * 2 + [0] * 8 + [1] * 7 + [0] * 3
    assert round(c.brier(conf, y).value, 4) == 0.195
    assert c.beyond_constant(conf, y).value == pytest.approx(0.195 - 0.2475)
    assert c.compare((conf, y), (conf, y)).changes["Brier"].value == 0


def test_aurc() -> None:
    r = c.risk_coverage([0.9, 0.8, 0.7, 0.6], [1, 1, 0, 1])
    assert round(r.aurc.value, 6) == 0.145833 and r.random == 0.25
    assert r.curve["risk"].round(3).tolist() == [0, 0, 0.333, 0.25]
    tied = c.risk_coverage([0.5] * 4, [1, 1, 0, 1])
    assert tied.aurc.value == pytest.approx(0.25) and "AURC .250" in str(tied)


@pytest.mark.parametrize("n", [100, 300, 1000])
def test_null_is_what_a_calibrated_model_scores(n: int) -> None:
    rng = np.random.default_rng(n)
    conf = rng.beta(4, 1, n)
    scores = [c.ece(conf, rng.random(n) < conf, bins=10, draws=10).value for _ in range(60)]
    assert c.ece(conf, rng.random(n) < conf, bins=10).null == pytest.approx(
        np.mean(scores), rel=0.1
    )


def test_debiased_is_near_zero_when_calibrated() -> None:
    rng = np.random.default_rng(0)
    errors = []
    for _ in range(40):
        conf = rng.random(400)
        errors.append(c.ece(conf, rng.random(400) < conf, draws=50))
    assert np.mean([e.debiased.value for e in errors]) < 0.6 * np.mean([e.value for e in errors])
    assert np.mean([e.p_value < 0.05 for e in errors]) <= 0.15


def test_sentences() -> None:
    rng = np.random.default_rng(0)
    conf = rng.random(400)
    calm, bold = rng.random(400) < conf, rng.random(400) < conf * 0.6
    extreme = rng.random(400) < 0.5 + (conf - 0.5) * 0.4
    assert c.reliability(conf, calm).sentence.startswith("No miscalibration is shown (p=")
    assert "over-confident by .2" in c.reliability(conf, bold).sentence
    assert "confidences are too extreme;" in c.reliability(conf, extreme).sentence
    assert "Too few clusters" in c.reliability(conf, calm, cluster=conf > 0.5).sentence


def test_a_constant_confidence_has_no_slope() -> None:
    t = c.logistic_test([0.8] * 60, [1] * 48 + [0] * 12)
    assert t.p_value == pytest.approx(1.0) and t.extreme == 0
    assert c.logistic_test([1.0] * 60, [1] * 50 + [0] * 10).p_value < 1e-6


def test_no_curve_where_there_are_no_data() -> None:
    curve = c.reliability([0.1] * 20 + [0.15] * 20 + [0.9] * 20, [0, 1] * 30).curve
    assert curve["conf"].tolist()[:2] == [0.1, 0.15]
    assert math.isnan(curve["accuracy"][2]) and curve["conf"].tolist()[3] == 0.9


def test_a_report_reads_as_text_and_as_json() -> None:
    r = c.reliability([0.9, 0.8, None] * 20, [1, 0, 1] * 20, missing="count")
    assert "20 unknown" in str(r) and r.ece.debiased.n == 40
    assert r.in_bins(bins=5).ece.convention.startswith("5 equal-width")
    assert r.estimate == r.ece.debiased and float(r.ece) == r.ece.value


def test_comparison_demands_more_than_a_lower_ece() -> None:
    rng = np.random.default_rng(0)
    truth = rng.random(600)
    y = rng.random(600) < truth
    bold = np.clip(truth + 0.25, 0, 1)
    good = c.compare((bold, y), (truth, y))
    assert good.sentence.startswith("Better calibrated") and set(good.changes) == {
        "ECE",
        "Brier",
        "accuracy",
        "AUROC",
    }
    constant = c.compare((bold, y), ([y.mean()] * 600, y))
    assert "a constant may do as well" in constant.sentence and "AUROC" in constant.sentence
    worse = c.compare((truth, y), (bold, y))
    assert worse.sentence.startswith("Worse calibrated")
    refused = rng.random(600) < truth - 0.2
    assert (
        "accuracy is not shown"
        in c.compare((bold, y), (np.clip(truth - 0.2, 0, 1), refused)).sentence
    )
    assert c.compare((truth, y), (truth, y)).sentence.startswith("No change")


@pytest.mark.parametrize("method", ["isotonic", "platt", "beta"])
def test_recalibration(method: str) -> None:
    rng = np.random.default_rng(0)
    conf, group = rng.random(1000), rng.integers(0, 100, 1000)
    y = rng.random(1000) < conf**2
    new = c.recalibrate(conf, y, method=method, cluster=group)
    assert c.ece(new, y).value < 0.5 * c.ece(conf, y).value and new.min() >= 0 and new.max() <= 1
    assert np.array_equal(new, c.recalibrate(conf, y, method=method, cluster=group))


def test_abstain_below_keeps_its_promise() -> None:
    """The mean share of wrong answers among new prompts stays below the risk."""
    losses = []
    for seed in range(60):
        rng = np.random.default_rng(seed)
        conf, y = rng.random(200), None
        y = rng.random(200) < conf
        threshold = c.abstain_below(conf[:100], y[:100], risk=0.1)
        losses.append(((conf[100:] >= threshold) & ~y[100:]).mean())
    assert 0.05 < np.mean(losses) <= 0.105
    assert c.abstain_below([0.5] * 5, [0] * 5, risk=0.1) == math.inf


@pytest.mark.parametrize(
    ("n", "group"), [(40, ["a"] * 40), (1, None), (40, ["a", "b", "c", "d"] * 9 + ["a"] * 4)]
)
def test_fewer_than_four_clusters_test_nothing(n: int, group: list[str] | None) -> None:
    for conf in ([0.7] * n, [0.6 + i % 3 / 10 for i in range(n)]):
        r = c.reliability(conf, [i % 2 for i in range(n)], cluster=group, draws=20)
        assert math.isnan(r.test.p_value) and r.sentence == "Too few clusters to test calibration."


@pytest.mark.parametrize(("conf", "side"), [(1.0, "over"), (0.0, "under")])
def test_one_confidence_is_never_not_extreme_enough(conf: float, side: str) -> None:
    y = [int(conf == 0)] * 3 + [int(conf == 1)] * 57
    s = c.reliability([conf] * 60, y, draws=20).sentence
    assert f"{side}-confident by" in s and "extreme" not in s


def test_all_right_has_no_gap_interval_and_settings_are_checked() -> None:
    e = c.overconfidence([0.9] * 50, [1] * 50)
    assert math.isnan(e.low) and "the rarest outcome lies in 0 clusters" in e.note
    for edges in ([0, math.nan, 1], [0.5], []):
        with pytest.raises(DataError, match="edges must"):
            c.ece([0.5] * 9, [1] * 9, edges=edges)
    for folds in (0, 1):
        with pytest.raises(DataError, match="folds"):
            c.recalibrate([0.5] * 9, [1, 0, 1] * 3, folds=folds)
