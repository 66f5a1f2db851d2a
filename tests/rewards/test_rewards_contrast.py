"""Weights for training that follow the spread within a group: what they keep, and where they stay away."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kit.errors import KitError
from kit.records import Criterion, Response, Task, Verdict, unknown
from kit.rewards import contrast
from kit.rewards.composer import Composer

WEIGHT = st.floats(-5, 5).map(lambda w: round(w, 2))
ROWS = st.lists(st.tuples(WEIGHT, st.floats(0, 0.5)), min_size=1, max_size=8)


@given(ROWS, st.floats(0, 1))
def test_signs_and_the_sum_of_each_kind_are_kept(rows, strength):
    criteria = [Criterion(id=f"c{i}", text="x", weight=w) for i, (w, _) in enumerate(rows)]
    spread = {c.id: s for c, (_, s) in zip(criteria, rows, strict=True)}
    new = contrast.weights(criteria, spread, strength)
    for sign in (1, -1):
        kind = [c for c in criteria if c.weight * sign > 0]
        assert all(0 <= new[c.id] * sign <= contrast.MOST * c.weight * sign + 1e-9 for c in kind)
        told = math.fsum(new[c.id] for c in kind) * sign
        total = math.fsum(c.weight for c in kind) * sign
        assert told <= total + 1e-9
        if all(new[c.id] * sign < contrast.MOST * c.weight * sign - 1e-9 for c in kind):
            assert told == pytest.approx(total)
    assert contrast.weights(criteria, spread, 0.0) == pytest.approx(
        {c.id: c.weight for c in criteria}
    )


def verdict(answer, criterion, status):
    return Verdict(task_id="t", response_id=answer, criterion_id=criterion, status=status)


RUBRIC = Task(
    id="t",
    prompt="p",
    criteria=(
        Criterion(id="heavy", text="met by all", weight=3.0),
        Criterion(id="light", text="met by one"),
        Criterion(id="fault", text="nobody's", weight=-1.0),
    ),
)


def group(first="met", second="unmet"):
    said = {"heavy": ("met", "met"), "light": (first, second), "fault": ("unmet", "unmet")}
    return [verdict(f"r{j}", c, s) for c, both in said.items() for j, s in enumerate(both)]


def test_a_criterion_that_separates_takes_the_weight_of_one_that_does_not():
    """Rewards 1 and .75 became 1 and 0: the same order, four times the contrast."""
    answers = ("r0", "r1")
    composer = Composer.from_config("rubric")
    new = contrast.focused(RUBRIC, composer, group(), 1.0)
    assert {c.id: c.weight for c in new.criteria} == {"heavy": 0.0, "light": 4.0, "fault": -1.0}
    paid = [
        [composer.score(t, Response(task_id="t", id=r, text="x"), group()).score for r in answers]
        for t in (RUBRIC, new)
    ]
    assert paid == [[1.0, 0.75], [1.0, 0.0]]


def test_nothing_known_and_nothing_apart_change_nothing():
    composer = Composer.from_config("rubric")
    lost = [unknown("t", f"r{j}", c.id, "parse") for c in RUBRIC.criteria for j in (0, 1)]
    for verdicts in (lost, group("met", "met"), []):
        assert contrast.focused(RUBRIC, composer, verdicts, 1.0).criteria == RUBRIC.criteria


def test_static_rubrics_are_weighted_too_and_trees_are_not():
    composer = Composer.from_config("refiner")
    ids = [
        c.id
        for c in composer.criteria(
            RUBRIC, Response(task_id="t", id="r0", text="<answer>a b</answer>")
        )
    ]
    static = next(i for i in ids if i not in {"heavy", "light", "fault"})
    apart = [verdict("r0", static, "met"), verdict("r1", static, "unmet")]
    new = contrast.focused(RUBRIC, composer, [*group(), *apart], 1.0)
    got = {c.id: c.weight for c in new.criteria}
    assert set(got) == set(ids) and got[static] < -1 and got["fault"] == 0
    tree = Task(
        id="t",
        prompt="p",
        criteria=(
            Criterion(id="top", text="x"),
            Criterion(id="heavy", text="y", parent="top"),
            Criterion(id="light", text="z", parent="top"),
        ),
    )
    assert contrast.focused(tree, composer, group(), 1.0).criteria[:3] == tree.criteria


def test_a_reward_without_weights_is_refused():
    with pytest.raises(KitError, match="no weight of a criterion counts"):
        contrast.check(Composer.from_config({"components": [{"kind": "rubric", "how": "mean"}]}))
    with pytest.raises(KitError, match="no weight of a criterion counts"):
        contrast.check(Composer.from_config("verifiers"))
    contrast.check(Composer.from_config("default"))


@given(st.lists(st.lists(st.booleans(), min_size=3, max_size=3), min_size=2, max_size=4), st.data())
def test_under_moved_weights_no_unknown_verdict_pays(met, data):
    """A criterion that all others meet lost its weight, and with it the hole that an unknown verdict
    left: 294 of 4,000 replacements raised what was paid, and answers without a reward were trained on."""
    from kit.train.reward import Reward, focused

    task = Task(id="t", prompt="p", criteria=tuple(Criterion(id=i, text=i) for i in "abc"))
    reward = Reward([task], object(), Composer.from_config("rubric"))
    answers = [Response(task_id="t", id=f"r{j}", text="x") for j in range(len(met))]
    said = [
        [verdict(r.id, i, "met" if m else "unmet") for i, m in zip("abc", ms, strict=True)]
        for r, ms in zip(answers, met, strict=True)
    ]

    def paid():
        grades = [reward.composer.score(task, r, vs) for r, vs in zip(answers, said, strict=True)]
        return [g.score for _, _, g in focused(reward, answers, grades, 1.0)]

    before, j = paid(), data.draw(st.integers(0, len(met) - 1))
    at = data.draw(st.integers(0, 2))
    said[j][at] = unknown("t", f"r{j}", "abc"[at], "parse")
    assert None not in before and paid()[j] is None
