"""Coverage of the ECE interval: the population's binned error must lie in it about 95% of the time. Small here, full when slow."""

from __future__ import annotations

import numpy as np
import pytest

from kit import calibration

K = 15


def truth(tilt: float, shape: tuple[float, float]) -> float:
    """Population ECE in 15 equal-width bins of confidences ~ Beta(shape) whose accuracy is p + tilt * p(1-p)."""
    from scipy import stats

    p = (np.arange(300_000) + 0.5) / 300_000
    w = stats.beta.pdf(p, *shape)
    b = np.minimum((p * K).astype(int), K - 1)
    return float(np.abs(np.bincount(b, weights=w * tilt * p * (1 - p))).sum() / w.sum())


def coverage(
    n: int,
    tilt: float,
    shape: tuple[float, float],
    runs: int,
    *,
    per: int = 1,
    rho: float = 0.0,
    seed: int = 0,
) -> float:
    """Share of runs whose interval holds the truth; `per` rows a cluster share a latent with correlation rho."""
    from scipy import special

    rng, goal, hit = np.random.default_rng(seed), truth(tilt, shape), 0
    for _ in range(runs):
        p = rng.beta(*shape, n)
        z = rng.standard_normal(n)
        if per > 1:
            z = np.sqrt(rho) * np.repeat(rng.standard_normal(n // per), per) + np.sqrt(1 - rho) * z
        y = special.ndtr(z) < p + tilt * p * (1 - p)
        e = calibration.ece(
            p,
            y,
            bins=K,
            n_boot=300,
            seed=int(rng.integers(1 << 30)),
            cluster=np.repeat(np.arange(n // per), per) if per > 1 else None,
        )
        hit += e.low <= goal <= e.high
    return hit / runs


CASES = [
    (300, 0.0, (2, 2), 1, 0.0),
    (300, 0.4, (2, 2), 1, 0.0),
    (300, -0.8, (5, 2), 1, 0.0),
    (1000, -0.4, (2, 2), 1, 0.0),
    (1000, -0.2, (2, 2), 1, 0.0),
    (2000, -0.8, (5, 2), 1, 0.0),
    (1200, -0.8, (2, 2), 8, 0.4),
    (1200, 0.0, (2, 2), 8, 0.4),
]


def test_coverage_is_not_absurd() -> None:
    # the percentile bootstrap of the plug-in covers about a fifth of the time here
    assert coverage(300, 0.4, (2, 2), 40) >= 0.85


@pytest.mark.slow
@pytest.mark.parametrize("n,tilt,shape,per,rho", CASES)
def test_coverage(n: int, tilt: float, shape: tuple[float, float], per: int, rho: float) -> None:
    # conservative where calibration is not rejected (the lower limit is then 0 by design), so no upper bound
    assert coverage(n, tilt, shape, 1000, per=per, rho=rho) >= 0.93


@pytest.mark.parametrize("clusters", [None, 8, 20])
def test_the_curves_hold_a_steep_truth(clusters: int | None) -> None:
    """Kernel widths as large as the error itself: .01 to .5 of the points of a steep curve were
    inside, and .58 to .9 of the isotonic one's."""
    from scipy import special

    rng, held = np.random.default_rng(5), []
    for _ in range(10):
        group = None if clusters is None else rng.integers(0, clusters, 1000)
        z = rng.standard_normal(1000)
        if clusters is not None:
            z = np.sqrt(0.4) * rng.standard_normal(clusters)[group] + np.sqrt(0.6) * z
        p = rng.beta(2, 1.5, 1000)
        y = special.ndtr(z) < special.expit(12 * (p - 0.6))
        r = calibration.reliability(p, y, cluster=group, n_boot=100)
        for c, here in ((r.smooth, r.smooth.density > 0.2), (r.corp, abs(r.corp.x - 0.5) < 0.4)):
            truth = special.expit(12 * (c.x - 0.6))
            held.append(((c.low <= truth) & (truth <= c.high))[here].mean())
    assert np.mean(held[::2]) >= 0.9
    assert np.mean(held[1::2]) >= 0.9


@pytest.mark.slow  # reads the recorded judges: 4 s
@pytest.mark.parametrize("judge", ["gpt-4o-mini", "gpt-4o"])
def test_the_smooth_curves_width_is_what_cross_validation_takes(judge: str) -> None:
    """A width of .20 said .77 [.73, .80] where .49 of 109 was observed."""
    import kit
    from kit.calibration import smooth
    from kit.data import recorded

    data = recorded.load()
    table = kit.table(
        kit.judge(data.taskset(), judge={"replay": f"{judge}/bare", "threshold": 3.0}),
        human=data.human_verdicts(threshold=3.0),
        tasks=data.taskset(),
    ).dropna(subset=["p", "human"])
    p, y = table["p"].to_numpy(float), table["human"].to_numpy(float)
    _, group = np.unique(table["group"].astype(str), return_inverse=True)

    def loss(width: float) -> float:  # Brier score out of fold, prompts whole
        fold, out = np.random.default_rng(0).permutation(group.max() + 1)[group] % 10, np.zeros(10)
        for k in range(10):
            new = fold == k
            fit = smooth.weights_at(np.ones((~new).sum()), p[~new], p[new], width)
            out[k] = ((np.clip(y[~new] @ fit, 0, 1) - y[new]) ** 2).sum()
        return float(out.sum() / len(p))

    best = min(loss(w) for w in (0.01, 0.02, 0.03, 0.05, 0.07, 0.1, 0.2, 0.3))
    assert loss(smooth.width_of(len(p), np.unique(p))) <= best + 5e-4 < loss(0.2)
    curve, middle = (
        kit.reliability(table, "p", "human", cluster="group").smooth,
        abs(p - 0.5) < 0.45,
    )
    assert abs(np.interp(p[middle], curve.x, curve.y).mean() - y[middle].mean()) < 0.02


@pytest.mark.parametrize("conf", [[0.5, 0.6] * 4, [0.5] * 8])
@pytest.mark.parametrize("wrong", [0, 1])
def test_outcomes_all_alike_in_clusters_have_wide_limits(conf: list[float], wrong: int) -> None:
    """'array of sample points is empty': 0/0 in the clusters' design effect."""
    y = [0] * wrong + [1] * (8 - wrong)
    r = calibration.reliability(conf, y, cluster=list("aabbccdd"))
    alone = calibration.reliability(conf, y)
    for curve, plain in ((r.bins, alone.bins), (r.corp, alone.corp)):
        assert 0 < curve.low[0] < plain.low[0] and curve.high[0] > 0.9
    assert np.nanmax(r.smooth.low) < 0.6


def test_limits_know_the_clusters_behind_a_bin_and_need_no_resamples() -> None:
    """One confidence a cluster: three clusters stood behind a bin, whose limits held .86 to .90;
    and those of two resamples were narrower still."""
    from scipy import stats

    rng, held = np.random.default_rng(2), []
    for _ in range(40):
        group = np.repeat(np.arange(20), rng.integers(2, 17, 20))
        p = np.round(0.3 + 0.6 * rng.random(20), 1)[group]
        rate = 0.35 + 0.5 * p**2
        u = stats.beta.ppf(rng.random(20)[group], rate / 4, (1 - rate) / 4)
        r = calibration.reliability(p, rng.random(len(p)) < u, cluster=group, n_boot=2)
        truth = 0.35 + 0.5 * r.bins.conf**2
        held += ((r.bins.low <= truth) & (truth <= r.bins.high)).tolist()
    assert np.mean(held) >= 0.95
    assert (r.bins.band_high - r.bins.band_low > 0.1).all()


@pytest.mark.parametrize("clusters,sure", [(40, False), (8, True)])
def test_a_change_of_the_error_holds_under_clusters(clusters: int, sure: bool) -> None:
    """Signs of noisy gaps made both errors look alike, and clusters of wrong answers were not
    drawn: .79 at 40 clusters, .74 at 8 of nearly certain answers."""
    from scipy import stats

    def ece(p, rate):
        bins = np.unique(np.ceil(p * 15 - 1e-9), return_inverse=True)[1]
        return np.abs(np.bincount(bins, p - rate)).sum() / len(p)

    def rows(n, rng):
        if sure:
            p = rng.choice([0.9, 0.99], n)
            return p, np.where(p == 0.9, 0.93, 0.97)
        p = np.round(0.3 + 0.6 * rng.random(n), 1)
        return p, 0.35 + 0.5 * p**2

    rng, held = np.random.default_rng(3), []
    p, rate = rows(100_000, rng)
    truth = ece(np.round(p * 0.6 + 0.3, 2), rate) - ece(p, rate)
    for _ in range(30):
        group = np.repeat(np.arange(clusters), rng.integers(2, 17, clusters))
        p, rate = rows(len(group), rng)
        u = stats.beta.ppf(rng.random(clusters)[group], rate / 4, (1 - rate) / 4)
        y, new = rng.random(len(p)) < u, np.round(p * 0.6 + 0.3, 2)
        c = calibration.compare((p, y), (new, y), paired=True, cluster=group, n_boot=100)
        held.append(c.difference.low <= truth <= c.difference.high)
    assert np.mean(held) >= 0.92


def beta(rng, rate, icc, clusters):
    """A rate for every cluster (C,), of mean `rate` and correlation `icc`."""
    return rng.beta(rate * (1 / icc - 1), (1 - rate) * (1 / icc - 1), clusters)


def stated(rng, clusters, icc, rate):
    """Rows in clusters of 2 to 16: a confidence that knows a little of its row's outcome."""
    group = np.repeat(np.arange(clusters), rng.integers(2, 17, clusters))
    y = (rng.random(len(group)) < beta(rng, rate, icc, clusters)[group]).astype(int)
    noise = np.sqrt(icc) * rng.normal(size=clusters)[group]
    noise += np.sqrt(1 - icc) * rng.normal(size=len(group))
    p = 1 / (1 + np.exp(-(0.8 * (2 * y - 1) + noise + np.log(rate / (1 - rate)))))
    return np.clip(p.round(2), 0.02, 0.98), y, group


def relearnt(rng, clusters, icc, rate):
    """Before and after: stated at random, then what follows the cluster's rate; a fifth of the
    answers is drawn anew."""
    group = np.repeat(np.arange(clusters), rng.integers(2, 17, clusters))
    own = beta(rng, rate, icc, clusters)[group]
    y = (rng.random(len(own)) < own).astype(int)
    new = np.where(rng.random(len(own)) < 0.8, y, rng.random(len(own)) < own).astype(int)
    old = rng.choice([0.8, 0.9, 0.95, 1.0], len(own))
    after = rate + 0.5 * (own - rate) + 0.1 * rng.normal(size=len(own))
    return (old, y), (np.clip(after, 0.02, 0.98).round(2), new), group


def changed(rng, clusters, icc, rate):
    before, after, group = relearnt(rng, clusters, icc, rate)
    return calibration.compare(before, after, paired=True, cluster=group, n_boot=0).brier


RARE = {
    "constant": lambda *a: calibration.against_constant(*(v := stated(*a))[:2], cluster=v[2]),
    "augrc": lambda *a: calibration.risk_coverage(*(v := stated(*a))[:2], cluster=v[2]).augrc,
    "brier": changed,
}


def rare_coverage(name, rate, clusters, icc, runs):
    goal = RARE[name](np.random.default_rng(1), 4000, icc, rate).value
    rng, held = np.random.default_rng(7), 0
    for _ in range(runs):
        e = RARE[name](rng, clusters, icc, rate)
        held += e.low <= goal <= e.high
    return held / runs


@pytest.mark.parametrize(
    ("name", "rate", "clusters"),
    [("constant", 0.05, 8), ("constant", 0.95, 20), ("augrc", 0.05, 8), ("brier", 0.95, 8)],
)
def test_rare_outcomes_in_clusters_that_were_not_drawn_are_allowed_for(name, rate, clusters):
    """Covered .68, .75, .45 and .47: the interval knew only confidences of the other outcome."""
    assert rare_coverage(name, rate, clusters, 0.8, 40) >= 0.92


@pytest.mark.slow  # 300 draws a cell
@pytest.mark.parametrize("icc", [0.1, 0.8])
@pytest.mark.parametrize("clusters", [8, 20, 40])
@pytest.mark.parametrize("rate", [0.05, 0.95])
@pytest.mark.parametrize("name", list(RARE))
def test_rare_outcomes_hold_in_every_cell(name, rate, clusters, icc):
    assert rare_coverage(name, rate, clusters, icc, 300) >= 0.92


def test_pairs_of_which_none_differs_are_no_certainty():
    """A loss of .03 by prompts that fail whole lay in the interval of 8 prompts in .205: of no
    width, and "accuracy kept". Only one column for both sides says that the answers are the same.
    """
    group, y = np.repeat(np.arange(8), 3), np.array([1, 0, 1] * 8)
    before, after = np.full(24, 0.9), np.where(y, 0.8, 0.2)
    got = calibration.compare((before, y), (after, y.copy()), paired=True, cluster=group, n_boot=0)
    assert got.accuracy.low < -0.1 and "one column of outcomes" in got.accuracy.note
    assert "accuracy kept" not in got.verdict
    columns = {"p": before, "q": after, "y": y, "task": group}
    same = calibration.compare(columns, ("p", "y"), ("q", "y"), paired=True, cluster="task")
    assert same.accuracy.half_width == 0


def lower_limits(k: int, per: int, shape: str, draws: int) -> float:
    """Share of draws whose lower limit passes the true binned error: k values, `per` rows each."""
    conf = np.round(np.linspace(0.02, 0.98, k), 4)
    some = np.where(np.arange(k) % 8 == 0, 0.25 * np.sign(conf - 0.5), 0.0)
    gap = 0.3 * (conf - 0.5) if shape == "all" else some
    rng, above = np.random.default_rng([k, per]), 0
    for _ in range(draws):
        j = rng.integers(0, k, k * per)
        right = rng.random(len(j)) < (conf - gap)[j]
        above += calibration.ece(conf[j], right, n_boot=50).low > np.abs(gap).mean()
    return above / draws


@pytest.mark.parametrize(
    ("k", "per", "shape"), [(60, 6, "all"), (60, 20, "some"), (30, 10, "some")]
)
def test_the_lower_limit_knows_what_debiasing_leaves(k, per, shape):
    """With 60 values of 6 rows the lower limit passed the truth in .23 of draws; where only one
    value in eight is off, in .45 to .89 of them, however many rows there were."""
    assert lower_limits(k, per, shape, 60) <= 0.1


@pytest.mark.slow  # 400 draws a cell
@pytest.mark.parametrize("shape", ["all", "some"])
@pytest.mark.parametrize(("k", "per"), [(30, 5), (45, 6), (60, 6), (60, 17), (30, 500)])
def test_the_lower_limit_holds_in_every_cell(k, per, shape):
    assert lower_limits(k, per, shape, 400) <= 0.05


def test_one_wrong_row_of_forty_does_not_make_the_brier_score_anything():
    """Few stated values, one or two wrong rows: limits up to 1, and wider than with no wrong row
    and with two; .984 held at twice the width."""
    tops = []
    for wrong in range(4):
        right = [0] * wrong + [1] * (100 - wrong)
        tops.append(calibration.brier([0.9, 0.99] * 50, right).value.high)
    assert tops == sorted(tops) and tops[-1] < 0.1
    rng, held, wide = np.random.default_rng(7), [], []
    says, right = np.array([0.9, 0.99]), np.array([0.97, 0.98])
    truth = float((right * (1 - says) ** 2 + (1 - right) * says**2).mean())
    for _ in range(300):
        at = rng.integers(0, 2, 40)
        e = calibration.brier(says[at], rng.random(40) < right[at]).value
        held.append(e.low <= truth <= e.high)
        wide.append(e.high - e.low)
    assert np.mean(held) >= 0.94 and np.median(wide) < 0.2


@pytest.mark.parametrize(("per", "wrong"), [(1, 0), (1, 1), (5, 0), (5, 1)])
def test_clusters_of_one_confidence_with_at_most_one_wrong_row_tell_their_error(per, wrong):
    """100 answers at .7, all right, each its own prompt: an error of .300 [.00, .92], p .141, and
    an MCE of [.14, .46]: the quantile had the degrees of freedom of the one that was wrong."""
    conf, group = np.full(100 * per, 0.7), np.repeat(np.arange(100), per)
    right = (np.arange(100 * per) >= wrong).astype(int)
    e = calibration.ece(conf, right, cluster=group)
    assert 0.23 < e.low < e.high < 0.35 and e.p_value <= 0.002
    mce = calibration.mce(conf, right, cluster=group)
    assert 0.23 < mce.low < mce.high < 0.35


@pytest.mark.parametrize(("clusters", "rate"), [(20, 0.98), (100, 0.99), (1000, 0.999)])
def test_clusters_that_are_all_right_as_often_as_they_say_are_no_error(clusters, rate):
    """1,000 rows that say .999, none of them wrong in a third of all draws: p .001, for signs of
    what was drawn know of no wrong row."""
    for per in (1, 5):
        n = clusters * per
        e = calibration.ece([rate] * n, np.ones(n), cluster=np.arange(n) // per, n_boot=300)
        assert e.p_value > 0.05 and e.low == 0


@pytest.mark.parametrize(("rate", "stated", "per"), [(0.95, 0.7, 1), (0.98, 0.9, 5), (0.9, 0.9, 5)])
def test_the_error_of_one_confidence_holds_where_few_clusters_differ(rate, stated, per):
    rng, held = np.random.default_rng(4), 0
    for _ in range(100):
        own = np.repeat(beta(rng, rate, 0.4, 40), per) if per > 1 else rate
        right = rng.random(40 * per) < own
        e = calibration.ece(
            [stated] * 40 * per, right, cluster=np.arange(40 * per) // per, n_boot=99
        )
        held += e.low <= abs(rate - stated) + 1e-12 and abs(rate - stated) <= e.high
    assert held >= 92
