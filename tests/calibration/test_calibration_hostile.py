"""Input that is wrong is refused with its row and what to do, or counted; never clipped."""

from __future__ import annotations

import math

import numpy as np
import pytest

from kit import calibration as c
from kit.errors import DataError

BAD = [
    ([0.1, math.nan], [1, 0], "conf, row 1", "count"),
    ([0.1, None], [1, 0], "conf, row 1", "count"),
    ([0.5, 0.2, 1.2], [1, 0, 1], "1.2, outside(.|\n)*row 2", "count"),
    ([80, 90, 0.0], [1, 0, 1], "80, outside(.|\n)*row 0(.|\n)*divide by 100", "100"),
    (["80%", "90%"], [1, 0], "conf, row 0", "extract"),
    ([0.3, "x"], [1, 0], "conf, row 1", "extract"),
    ([], [], "no rows", "at least one"),
    ([0.1, 0.2], [1, 2], "correct is 2(.|\n)*row 1", "score > 0.5"),
    ([0.1, 0.2], [1, 0.5], "correct is 0.5(.|\n)*row 1", "score > 0.5"),
    ([0.1, 0.2], ["yes", "no"], "correct, row 0", "True"),
    ([0.1, 0.2], [1], "2 rows, correct has 1", "one outcome"),
    ([-0.1, 0.2], [1, 0], "-0.1, outside(.|\n)*row 0", "clipped"),
    ([True, False], [1, 0], "not a probability", "swapped"),
    ([[0.1, 0.9]], [1], "shape", "classwise"),
    ([0.1, math.inf], [1, 0], "inf, outside(.|\n)*row 1", "count"),
]


@pytest.mark.parametrize("conf,correct,what,fix", BAD)
@pytest.mark.parametrize(
    "call",
    [
        c.ece,
        c.smece,
        c.brier,
        c.risk_coverage,
        lambda p, y: c.Sketch().update(p, y) if len(p) else c.ece(p, y),
    ],
)
def test_refused_with_row_and_remedy(call, conf, correct, what, fix) -> None:
    with pytest.raises(DataError, match=what) as e:
        call(conf, correct)
    assert fix in str(e.value) and "to do" in str(e.value)


def test_counted_never_clipped() -> None:
    p, y = [0.2, math.nan, 1.2, -3, None, 0.9, 0.5], [0, 1, 1, 1, 1, 1, None]
    e = c.ece(p, y, missing="count", n_boot=0)
    assert (e.n, e.missing) == (2, 5) and e.value == pytest.approx(0.15)
    r = c.reliability(p, y, missing="count", n_boot=20)
    assert (r.n, r.missing, r.ece.missing, r.smece.missing) == (2, 5, 5, 5)
    s = c.Sketch().update(p, y, missing="count").update([None], [1], missing="count")
    assert (s.rows, s.missing) == (2, 6)
    with pytest.raises(DataError, match="divide by 100"):
        c.ece([80, 90], [1, 0], missing="count")


def test_one_class() -> None:
    assert (
        c.ece([0.5, 0.5], [1, 1], n_boot=50).value == 0.5
        and c.smece([0.5, 0.6], [1, 1]).value > 0.3
    )
    for call in (c.cox, c.fit, c.recalibrate):
        with pytest.raises(DataError, match="right and wrong rows; all 3 are correct"):
            call([0.5, 0.6, 0.7], [1, 1, 1], **({"k": 2} if call is c.recalibrate else {}))


@pytest.mark.parametrize(
    "binning,what",
    [
        ({"bins": 0}, "bins is 0"),
        ({"bins": "many"}, "bins is"),
        ({"closed": "both"}, "closed is"),
        ({"edges": [0, 0]}, "increasing"),
        ({"edges": [0, 0.15]}, "row 1"),
        ({"edges": [0, 1], "bins": 3}, "both asked"),
        ({"cluster": ["a"]}, "columns differ"),
        ({"cluster": ["a", None]}, "row 1"),
        ({"weights": [1, -1]}, "row 1"),
        ({"weights": [0, 0]}, "all weights"),
        ({"missing": "skip"}, "missing is"),
    ],
)
def test_arguments(binning, what) -> None:
    with pytest.raises(DataError, match=what):
        c.ece([0.1, 0.2], [0, 1], **binning)


def test_cox_names_the_certain_row() -> None:
    with pytest.raises(DataError, match="row 1"):
        c.cox([0.2, 1.0, 0.4], [0, 1, 1])
    assert "1 rows at 0 or 1" in c.cox([0.2, 1.0, 0.4, 0.6], [0, 1, 1, 0], eps=0.01).note


@pytest.mark.parametrize("method", c.METHODS)
def test_recalibration_mends_overconfidence(method) -> None:
    rng = np.random.default_rng(1)
    q = rng.random(1500)
    conf = 1 / (1 + np.exp(-2.5 * np.log(q / (1 - q))))
    out = c.recalibrate(conf, rng.random(1500) < q, method=method, n_boot=0)
    assert out.after.value < 0.6 * out.before.value and out.conf.min() >= 0 and out.conf.max() <= 1
    grid = out.final(np.linspace(0, 1, 50))
    assert (np.diff(grid) >= -1e-9).all()


def test_clusters_are_never_split_across_folds() -> None:
    rng = np.random.default_rng(2)
    group = rng.integers(0, 12, 300)
    out = c.recalibrate(rng.random(300), rng.random(300) < 0.5, cluster=group, k=4, n_boot=0)
    assert all(len(set(out.fold[group == g])) == 1 for g in range(12))


def test_compare_claims_only_what_the_interval_supports() -> None:
    rng = np.random.default_rng(3)
    p = rng.random(800)
    y = rng.random(800) < p
    same = c.compare((p, y), (p, y), paired=True, n_boot=200)
    worse = c.compare((p, y), (np.clip(p + 0.25, 0, 1), y), paired=True, n_boot=200)
    assert (
        same.verdict.startswith("no change")
        and same.brier.value == 0
        and worse.verdict.startswith("worse")
        and worse.difference.low > 0
    )
    assert c.compare((p[:25], y[:25]), (p[25:50], y[25:50]), n_boot=200).verdict.startswith(
        "no change"
    )


def test_the_slope_of_few_clusters_with_a_wrong_row_is_not_said_to_be_known() -> None:
    """Cox's slope covered .79 to .87 at 20 prompts and a rate of .97, without a note: its degrees
    of freedom came from all prompts, though a slope is told by the few wrong rows.
    """
    covered = []
    for draw in range(120):
        rng = np.random.default_rng(draw)
        sizes = np.minimum(rng.geometric(0.2, 20), 40)
        prompt = np.repeat(np.arange(20), sizes)
        right = rng.random(len(prompt)) < rng.beta(1.455, 0.045, 20)[prompt]  # rate .97, ICC .4
        noise = rng.normal(size=20)[prompt] * 0.7 + rng.normal(size=len(prompt))
        sure = 1 / (1 + np.exp(-(1.2 * right - 0.6 + noise)))
        sure = np.clip(np.round(sure, 2), 0.02, 0.98)
        if right.all():
            continue
        slope = c.cox(sure, right * 1, cluster=prompt).slope
        if np.isfinite(slope.low):
            covered.append(slope.low <= 0.81 <= slope.high)  # of 60,000 prompts
    assert len(covered) > 60 and np.mean(covered) >= 0.92
