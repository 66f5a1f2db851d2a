"""Aggregation: formulas, intervals, gates, trees, and the properties that hold for all of them."""

import dataclasses
import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kit.errors import DataError, KitError
from kit.records import Criterion, Task, Verdict, unknown
from kit.rewards.aggregate import HOWS, grade, leaves, pay

SETTINGS = settings(max_examples=60, deadline=None, derandomize=True)


def task(*weights, **more):
    return Task(
        id="t",
        prompt="p",
        criteria=tuple(
            Criterion(id=f"c{i}", text=f"text {i}", weight=w) for i, w in enumerate(weights)
        ),
        **more,
    )


def verdict(cid, value):
    if value is None:
        return unknown("t", "r", cid, "transport")
    if value in (0.0, 1.0):
        return Verdict(
            task_id="t", response_id="r", criterion_id=cid, status="met" if value else "unmet"
        )
    return Verdict(task_id="t", response_id="r", criterion_id=cid, status="level", value=value)


def verdicts(*values):
    return [verdict(f"c{i}", v) for i, v in enumerate(values)]


@pytest.mark.parametrize(
    ("how", "expected"),
    [
        ("mean", (1 + 0 + 1) / 3),
        ("flip", (2 * 1 + 1 * 0 + 1 * 1) / 4),
        ("signed_unclipped", 2 / 4),
        ("signed", 0.5),
        ("positive_normalised", 2 / 3),
    ],
)
def test_formulas(how, expected):
    assert grade(task(2, 1, -1), verdicts(1, 0, 0), how=how).score == pytest.approx(
        expected, abs=1e-15
    )


def test_mean_is_met_over_n_as_in_system_1():
    assert grade(task(1, 1, 1, 1), verdicts(1, 1, 0, 1)).score == 0.75


def test_open_instruct_form_goes_below_zero_and_its_divisor_is_at_least_one():
    assert grade(task(0.5, -1), verdicts(0, 1), how="positive_normalised").score == -1.0
    assert grade(task(0.5, -1), verdicts(1, 0), how="positive_normalised").score == 0.5


def test_clipping_makes_different_failures_tie():
    t = task(1, -1, -1)
    one, two = verdicts(0, 1, 0), verdicts(0, 1, 1)
    assert grade(t, one, how="signed").score == grade(t, two, how="signed").score == 0.0
    assert grade(t, one, how="signed_unclipped").score > grade(t, two, how="signed_unclipped").score


def test_unknown_is_an_interval_then_none():
    t = task(*[1] * 20)
    g = grade(t, verdicts(*[1] * 19, None))
    assert (g.score, g.score_low, g.score_high) == (0.95, 0.95, 1.0)
    assert grade(t, verdicts(*[1] * 17, None, None, None)).score is None
    assert grade(t, verdicts(*[1] * 17, None, None, None), max_width=0.2).score == 0.85


def test_missing_and_foreign_and_doubled_verdicts():
    g = grade(task(1, 1), [verdict("c0", 1.0), verdict("zz", 1.0)], max_width=1)
    assert (g.score_low, g.score_high, g.meta["unknown"], g.meta["foreign"]) == (0.5, 1.0, 1, 1)
    g = grade(task(1, 1), [verdict("c0", 1.0), verdict("c0", 0.0), verdict("c1", 1.0)], max_width=1)
    assert (g.score_low, g.score_high) == (0.5, 1.0)


def test_skipping_unknowns_would_pay_for_them():
    """The naive default drops unknown verdicts: +2 met, +10 and +8 unmet goes from .10 to 1.00 when the misses become unknown."""
    t, known, lost = task(2, 10, 8), verdicts(1, 0, 0), verdicts(1, None, None)

    def naive(vs):
        w = {c.id: c.weight for c in t.criteria}
        vs = [v for v in vs if v.known]
        return sum(w[v.criterion_id] * v.value for v in vs) / sum(w[v.criterion_id] for v in vs)

    assert naive(known) == pytest.approx(0.1) and naive(lost) == 1.0  # the fault
    for how in HOWS:
        a, b = (
            grade(t, known, how=how, max_width=1).score,
            grade(t, lost, how=how, max_width=1).score,
        )
        assert b is None or b <= a


def test_unknown_as_false_would_pay_on_negative_criteria():
    """The naive default stores a parse failure as False, which pays where the criterion is a fault."""
    t = task(-1)
    assert (
        sum(
            -c.weight * (1 - (v.value or 0.0))
            for c, v in zip(t.criteria, verdicts(None), strict=True)
        )
        == 1.0
    )  # the fault
    assert grade(t, verdicts(None), how="flip", max_width=1).score == 0.0


def test_gates():
    must = Task(
        id="t",
        prompt="p",
        criteria=(
            Criterion(id="c0", text="a", required=True),
            Criterion(id="c1", text="b", weight=3),
        ),
    )
    assert grade(must, verdicts(0, 1)).score == 0.0
    assert grade(must, verdicts(0, 1), gate_to=None).score == 0.5
    assert grade(must, verdicts(0, 1), gate_to=0.2).score == 0.2
    g = grade(must, verdicts(None, 1), max_width=1)
    assert (g.score, g.score_low, g.score_high) == (0.0, 0.0, 1.0)
    never = Task(
        id="t",
        prompt="p",
        criteria=(
            Criterion(id="c0", text="a", weight=-1, required=True),
            Criterion(id="c1", text="b", weight=3),
        ),
    )
    assert (
        grade(never, verdicts(1, 1), how="flip").score == 0.0
        and grade(never, verdicts(0, 1), how="flip").score == 1.0
    )
    assert (
        grade(never, verdicts(1, 0), how="signed_unclipped").score == -0.25
    )  # a gate limits, it never lifts


def test_ordinal_levels():
    t = Task(
        id="t",
        prompt="p",
        criteria=(
            Criterion(id="c0", text="a", scale="ordinal", levels=("poor", "fair", "good")),
            Criterion(id="c1", text="b"),
        ),
    )
    assert grade(t, verdicts(0.5, 1.0)).score == 0.75


def test_trees():
    c = (
        Criterion(id="root", text="", weight=2),
        Criterion(id="c0", text="", parent="root", weight=3),
        Criterion(id="c1", text="", parent="root"),
        Criterion(id="c2", text="", weight=1),
    )
    t = Task(id="t", prompt="p", criteria=c)
    assert [x.id for x in leaves(c)] == ["c0", "c1", "c2"]
    assert grade(t, verdicts(1, 0, 0), how="flip").score == pytest.approx(2 * 0.75 / 3)
    assert grade(t, verdicts(1, 0, 0), how="mean").score == pytest.approx(0.25)
    assert grade(t, verdicts(1, None, 0), how="flip", max_width=1).score_high == pytest.approx(
        2 / 3
    )
    for bad in (
        Criterion(id="x", text="", parent="nowhere"),
        Criterion(id="x", text="", parent="x"),
    ):
        with pytest.raises(DataError):
            grade(Task(id="t", prompt="p", criteria=(*c, bad)), [])


def test_nothing_scored_is_unknown_not_zero():
    assert grade(task(), []).score is None
    assert grade(task(0, 0), verdicts(1, 1)).score is None


def test_wrong_names_are_refused():
    with pytest.raises(KitError, match="no how 'sum'"):
        grade(task(1), verdicts(1), how="sum")
    with pytest.raises(KitError, match="no use 'q'"):
        grade(task(1), verdicts(1), use="q")


def test_probabilities_may_replace_statuses():
    v = dataclasses.replace(verdict("c0", 1.0), p=0.7)
    assert grade(task(1), [v], use="p").score == 0.7 and grade(task(1), [v]).score == 1.0


rubrics = st.lists(
    st.tuples(
        st.floats(-3, 3).map(lambda x: round(x, 2)),
        st.sampled_from([None, 0.0, 1.0, 0.25, 0.5]),
        st.booleans(),
        st.sampled_from([None, "c0", "c1"]),
    ),
    min_size=1,
    max_size=9,
)


def build(rows):
    criteria = []
    for i, (w, _, required, parent) in enumerate(rows):
        criteria.append(
            Criterion(
                id=f"c{i}",
                text=str(i),
                weight=w,
                required=required,
                parent=parent if i > 1 else None,
            )
        )
    t = Task(id="t", prompt="p", criteria=tuple(criteria))
    ids = {c.id for c in leaves(t.criteria)}
    return t, [verdict(f"c{i}", v) for i, (_, v, _, _) in enumerate(rows) if f"c{i}" in ids]


@SETTINGS
@given(
    rubrics, st.sampled_from(HOWS), st.sampled_from([0.0, 0.3, None]), st.floats(0, 2), st.data()
)
def test_unknown_never_raises(rows, how, gate_to, max_width, data):
    t, vs = build(rows)
    lost = data.draw(st.sets(st.sampled_from(range(len(vs)))))
    worse = [
        unknown("t", "r", v.criterion_id, "parse") if i in lost else v for i, v in enumerate(vs)
    ]
    a = grade(t, vs, how=how, gate_to=gate_to, max_width=max_width)
    b = grade(t, worse, how=how, gate_to=gate_to, max_width=max_width)
    assert b.score_low <= a.score_low and b.score_high >= a.score_high
    if a.score is not None:
        assert b.score is None or b.score <= a.score
    else:
        assert b.score is None


@SETTINGS
@given(rubrics, st.sampled_from(HOWS), st.randoms())
def test_order_and_names_change_nothing(rows, how, random):
    t, vs = build(rows)
    a = grade(t, vs, how=how, max_width=9)
    cs, shuffled = list(t.criteria), list(vs)
    random.shuffle(cs), random.shuffle(shuffled)
    b = grade(dataclasses.replace(t, criteria=tuple(cs)), shuffled, how=how, max_width=9)
    name = {c.id: f"new-{hash(c.id) % 97}-{c.id}" for c in cs}
    renamed = dataclasses.replace(
        t,
        criteria=tuple(
            dataclasses.replace(c, id=name[c.id], parent=name.get(c.parent)) for c in cs
        ),
    )
    c = grade(
        renamed,
        [dataclasses.replace(v, criterion_id=name[v.criterion_id]) for v in shuffled],
        how=how,
        max_width=9,
    )
    assert (
        (a.score, a.score_low, a.score_high)
        == (b.score, b.score_low, b.score_high)
        == (c.score, c.score_low, c.score_high)
    )
    assert {name[k]: v for k, v in a.parts.items()} == c.parts


@SETTINGS
@given(rubrics, st.sampled_from(HOWS), st.sampled_from([0.0, None]))
def test_scores_lie_in_the_stated_range(rows, how, gate_to):
    t, vs = build(rows)
    g = grade(t, vs, how=how, gate_to=gate_to, max_width=9)
    low, high = g.meta["range"]
    assert low <= g.score_low <= g.score_high <= high
    limits = {
        "mean": (0, 1),
        "flip": (0, 1),
        "signed": (0, 1),
        "signed_unclipped": (-1, 1),
        "net": (-math.inf, 1),
        "positive_normalised": (-math.inf, 3),
    }[how]
    assert limits[0] - 1e-12 <= low and high <= limits[1] * max(1, 1) + (
        1e-12 if how != "positive_normalised" else math.inf
    )


@SETTINGS
@given(rubrics, st.sampled_from(["mean", "flip", "signed_unclipped", "positive_normalised"]))
def test_contributions_sum_to_the_score(rows, how):
    t, vs = build([(w, v if v is not None else 1.0, r, None) for w, v, r, _ in rows])
    g = grade(t, vs, how=how, gate_to=None)
    if g.score is not None:
        assert math.fsum(g.parts.values()) == pytest.approx(g.score, abs=1e-12)


def test_pay():
    assert pay(0.4, 0.5) == 0.4 and pay(0.4, 0.51) is None and pay(0.3, 0.3) == 0.3


@pytest.mark.parametrize("wrong", [{"max_width": "0.1"}, {"gate_to": math.nan}, {"gate_to": "0"}])
def test_a_bound_that_is_no_number_is_named(wrong):
    task = Task(id="t", prompt="p", criteria=(Criterion(id="a", text="a"),))
    with pytest.raises(KitError, match=next(iter(wrong))):
        grade(task, [], **wrong)


@pytest.mark.parametrize("how", ["mean", "flip", "net"])
def test_a_group_that_scores_nothing_is_not_there(how):
    """A weighted group of criteria that are recorded, not scored, was paid as a known 0 (or 1)."""
    note = Criterion(id="note", text="n", weight=0, parent="g")
    group, a = Criterion(id="g", text="g", weight=2, required=True), Criterion(id="a", text="a")
    met = [
        Verdict(task_id="t", response_id="r", criterion_id=i, status="met") for i in ("note", "a")
    ]
    whole = Task(id="t", prompt="p", criteria=(group, note, a))
    assert grade(whole, met, how=how).score == 1.0
    alone = Task(id="t", prompt="p", criteria=(group, note))
    assert grade(alone, met[:1], how=how).score is None
