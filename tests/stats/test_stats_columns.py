"""How columns are read, what is refused, and what does not change a number."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import kit
from kit import calibration, stats
from kit.errors import DataError

RNG = np.random.default_rng(0)
N = 120
FRAME = pd.DataFrame(
    {
        "judge": RNG.integers(0, 2, N).astype(float),
        "human": RNG.integers(0, 2, N).astype(float),
        "second": RNG.integers(0, 2, N).astype(float),
        "conf": RNG.random(N).round(2),
        "task": RNG.integers(0, 25, N),
    }
)
LABELS = FRAME["human"].where(FRAME["task"] % 2 == 0)
CALLS: dict[str, Callable[..., Any]] = {
    "mean": lambda f: stats.mean(f, "conf", cluster="task"),
    "difference": lambda f: stats.difference(f, "conf", "human", cluster="task"),
    "kappa": lambda f: stats.kappa(f, "judge", "human", cluster="task"),
    "accuracy": lambda f: stats.accuracy(f, "judge", "human", cluster="task"),
    "agree": lambda f: stats.agree(f, "judge", "human", cluster="task").raw,
    "gain": lambda f: stats.agreement_difference(f, "judge", "second", "human", cluster="task"),
    "auroc": lambda f: stats.auroc(f, "conf", "human", cluster="task"),
    "label mean": lambda f: stats.label_mean(f, "judge", "label", design="random", cluster="task"),
    "brier": lambda f: calibration.brier(f, "conf", "human", cluster="task"),
    "ece": lambda f: calibration.ece(f, "conf", "human", cluster="task", draws=100).debiased,
    "risk": lambda f: calibration.risk_coverage(f, "conf", "human", cluster="task").aurc,
    "gap": lambda f: calibration.overconfidence(f, "conf", "human", cluster="task"),
    "smece": lambda f: stats.Estimate(calibration.smece(f, "conf", "human")),
}


def limits(e: Any) -> list[float]:
    return [e.value, e.low, e.high]


@pytest.mark.parametrize("name", CALLS)
def test_index_order_and_dtype_change_nothing(name: str) -> None:
    frame = FRAME.assign(label=LABELS)
    expected = limits(CALLS[name](frame))
    odd = frame.set_axis(RNG.permutation(N) * 3 - 7)
    assert limits(CALLS[name](odd)) == expected
    shuffled = frame.sample(frac=1, random_state=1)
    assert limits(CALLS[name](shuffled)) == pytest.approx(expected, abs=1e-9, nan_ok=True)
    small = frame.astype({"judge": "float32", "conf": "float32", "task": str})
    assert limits(CALLS[name](small)) == pytest.approx(expected, abs=1e-6, nan_ok=True)


def test_an_id_has_one_name_in_files_and_in_tables() -> None:
    of_file = FRAME.rename(columns={"task": "task_id"})
    for frame in (FRAME, of_file):
        limits_by_name = [
            limits(stats.mean(frame, "conf", cluster=name)) for name in ("task", "task_id")
        ]
        groups = kit.per_group(frame, "task_id", stats.mean, "conf", cluster="task")
        assert limits_by_name[0] == limits_by_name[1] != limits(stats.mean(frame, "conf"))
        assert len(groups) == FRAME["task"].nunique()


def test_weights_of_two_are_doubled_rows() -> None:
    x, w = [0.2, 0.9, 0.4], [2, 1, 2]
    assert stats.mean(x, weights=w).value == pytest.approx(np.mean(np.repeat(x, w)))


def test_unknown_rows_are_left_out_and_counted() -> None:
    e = stats.kappa([1, None, 0, 1, 0, 1, 0], [1, 1, 0, math.nan, 0, 1, 0])
    assert (e.n, e.missing, e.value) == (5, 2, 1.0)
    e = stats.mean([1, None, math.nan, 0], cluster=["a", "b", "c", "d"])
    assert (e.n, e.n_clusters, e.missing) == (2, 2, 2)
    assert stats.mean([None, None]).note == stats.mean([]).note == "there are no known rows"


def test_levels_are_shared() -> None:
    assert stats.kappa([True, False, True], [1, 0, 1]).value == 1
    assert stats.accuracy(["yes", "no"], ["no", "no"]).value == 0.5
    assert stats.kappa([1.0, 0.0], [1, 1], categories=[0, 1]).n == 2
    order = ["bad", "fair", "good"]
    e = stats.kappa(["bad", "good"] * 9, ["fair", "good"] * 9, categories=order, weights="linear")
    assert 0 < e.value < 1
    scores = stats.agree([0.9, 0.2, 0.6], [1, 0, 0], threshold=0.5)
    assert scores.confusion.tolist() == [[1, 0], [1, 1]]


ERRORS = {
    "no number": lambda: stats.mean(["1", "2"]),
    "is not a number": lambda: stats.mean([1, "x"]),
    "is not in": lambda: stats.mean([2], bounds=(0, 1)),
    "differ in length": lambda: stats.difference([1, 2], [1]),
    "1 cluster for 2 rows": lambda: stats.mean([1, 0], cluster=["a"]),
    "a cluster is unknown": lambda: stats.mean([1, 0], cluster=["a", None]),
    "no column 'x'": lambda: stats.mean(FRAME, "x"),
    "different categories": lambda: stats.kappa(["Yes", "no"], ["yes", "no"]),
    "among the categories": lambda: stats.kappa([1, 2], [1, 3], categories=[1, 2]),
    "order of the levels": lambda: stats.kappa(["a", "b"], ["a", "b"], weights="linear"),
    "weights is 'cubic'": lambda: stats.kappa([1, 2], [1, 2], weights="cubic"),
    "neither 0 nor 1": lambda: stats.auroc([0.1, 0.2], [0.5, 1]),
    "design is 'other'": lambda: stats.label_mean([1], [1], design="other"),
    "shifted design": lambda: stats.label_mean([1, 0], [0.5, None], design="shifted"),
    "fewer than 5": lambda: stats.policy_difference(
        [1, 0], [1, 0], ["a", "b"], new="a", old="b", cluster=[1, 2]
    ),
    "'base'": lambda: stats.compare_to_baseline({"a": [1]}, "base"),
    "gain 0": lambda: stats.prompts_for(0, spread=1),
    "out of range": lambda: stats.labels_needed(0.1, 1.5, q1=1, q0=1),
    "'conf': 1, 'correct': 2": lambda: calibration.ece([0.5], [1, 0]),
    "confidence 80": lambda: calibration.ece([80, 0.5], [1, 0]),
    "correct 0.5": lambda: calibration.ece([0.5], [0.5]),
    "confidence nan, correct 1": lambda: calibration.ece([None, 0.5], [1, 0]),
    "missing is": lambda: calibration.ece([None, 0.5], [1, 0], missing="skip"),
    "no row has a confidence": lambda: calibration.ece([None], [1], missing="count"),
    "bins is 0": lambda: calibration.ece([0.5], [1], bins=0),
    "closed is": lambda: calibration.ece([0.5], [1], closed="up"),
    "edges must rise": lambda: calibration.ece([0.5], [1], edges=[0, 0.4]),
    "method is": lambda: calibration.recalibrate([0.5] * 9, [1, 0, 1] * 3, method="x"),
    "clusters for 5 folds": lambda: calibration.recalibrate([0.5, 0.4], [1, 0]),
    "right and wrong rows": lambda: calibration.recalibrate([0.5] * 9, [1] * 9),
    "risk is": lambda: calibration.abstain_below([0.5], [1], risk=1.5),
    "1 row before": lambda: calibration.compare(([0.5], [1]), ([0.5] * 2, [1, 0])),
}
ERRORS["is not a number "] = ERRORS.pop("no number")


@pytest.mark.parametrize("text", ERRORS)
def test_errors(text: str) -> None:
    with pytest.raises(DataError, match=text.strip()):
        ERRORS[text]()


REFUSALS = {
    "too few clusters": stats.mean([1, 0, 1, 0, 1], cluster=list("aaaab")),
    "the rarest outcome lies in 1 cluster,": stats.kappa([1] * 9 + [0], [1] * 9 + [0]),
    "the rarest outcome lies in 0 clusters": calibration.brier([0.9] * 9, [1] * 9),
    "right and wrong rows are needed": stats.auroc([0.1, 0.2], [1, 1]),
    "all rows are equal": stats.mean([0.3] * 5),
    "it is undefined": stats.kappa([1, 1], [1, 1]),
    "labels lie in 2 clusters": stats.label_mean(
        [0.5] * 6, [0.5, 0.1, *[None] * 4], design="random"
    ),
    "labels alone": stats.label_mean([1] * 30, [1] * 20 + [None] * 10, design="random"),
    "the rarest outcome": stats.label_mean([1] * 30, [1] * 20 + [None] * 10, design="shifted"),
}


@pytest.mark.parametrize("note", REFUSALS)
def test_refusals_say_why(note: str) -> None:
    e = REFUSALS[note]
    assert note in e.note and (math.isnan(e.low) or note in ("labels alone",))


COLUMN = st.lists(st.sampled_from([0.0, 0.25, 0.5, 1.0, None]), min_size=1, max_size=40)


@settings(max_examples=60, deadline=None)
@given(COLUMN, st.integers(1, 9), st.randoms(use_true_random=False))
def test_interval_holds_its_value(values: list[float | None], clusters: int, random: Any) -> None:
    cluster = [random.randrange(clusters) for _ in values]
    for e in (stats.mean(values, cluster=cluster), stats.mean(values, bounds=(0, 1))):
        assert math.isnan(e.low) or (e.low - 1e-12 <= e.value <= e.high + 1e-12)
        assert e.n + e.missing == len(values)
    twice = stats.difference(values, values[::-1], cluster=cluster)
    back = stats.difference(values[::-1], values, cluster=cluster)
    assert [twice.value, twice.low] == pytest.approx([-back.value, -back.high], nan_ok=True)
