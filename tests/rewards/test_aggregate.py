"""From verdicts to one score: forms, trees, gates, and what unknown verdicts do."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from reward_cases import verdict

from kit.errors import DataError
from kit.records import Criterion, unknown
from kit.rewards import score_rubric

HOWS = ("mean", "flip", "net", "signed", "open_instruct")


def score(weights, values, how, **options):
    criteria = [Criterion(id=f"c{i}", text="x", weight=w) for i, w in enumerate(weights)]
    verdicts = [verdict(f"c{i}", v) for i, v in enumerate(values)]
    part = score_rubric(criteria, verdicts, how=how, **options)
    return part.low, part.high


# weights, values, then what mean, flip, net, signed and open_instruct make of them
FORMS = [
    ((1, 1, 1, 1), (1, 1, 1, 0), (0.75, 0.75, 0.75, 0.75, 0.75)),
    ((3, 1), (1, 0), (0.5, 0.75, 0.75, 0.75, 0.75)),
    ((1, -1), (1, 0), (1.0, 1.0, 1.0, 0.5, 1.0)),
    ((1, -1), (0, 0), (0.5, 0.5, 0.0, 0.0, 0.0)),
    ((1, -1), (1, 1), (0.5, 0.5, 0.0, 0.0, 0.0)),
    ((1, -1), (0, 1), (0.0, 0.0, -1.0, -0.5, -1.0)),
    ((2, -1), (0.5, 0), (0.75, 2 / 3, 0.5, 1 / 3, 0.5)),
    ((0.25, 0.25), (1, 1), (1.0, 1.0, 1.0, 1.0, 0.5)),
    ((-1, -1), (1, 0), (0.5, 0.5, -0.5, -0.5, -1.0)),
    ((1, 0), (1, 0), (1.0, 1.0, 1.0, 1.0, 1.0)),
]


@pytest.mark.parametrize(("weights", "values", "scores"), FORMS)
def test_forms(weights, values, scores):
    for how, wanted in zip(HOWS, scores, strict=True):
        assert score(weights, values, how) == pytest.approx((wanted, wanted)), how


INTERVALS = [
    ((1, 1), (1, None), "mean", (0.5, 1.0)),
    ((1, -1), (1, None), "net", (0.0, 1.0)),
    ((1, -1), (None, None), "flip", (0.0, 1.0)),
    ((1, -1), (None, 1), "signed", (-0.5, 0.0)),
    ((1, 0), (1, None), "net", (1.0, 1.0)),
]


@pytest.mark.parametrize(("weights", "values", "how", "interval"), INTERVALS)
def test_an_unknown_verdict_makes_an_interval(weights, values, how, interval):
    assert score(weights, values, how) == interval


def test_a_verdict_that_is_missing_or_contradicts_itself_is_unknown():
    criteria = [Criterion(id="a", text="x"), Criterion(id="b", text="y")]
    twice = [verdict("a", 1.0), verdict("a", 0.0), verdict("b", 1.0), verdict("zzz", 0.0)]
    for verdicts in ([verdict("b", 1.0)], twice):
        part = score_rubric(criteria, verdicts)
        assert (part.low, part.high, part.value) == (0.5, 1.0, None)
        assert part.details["criteria"] == {"a": None, "b": 1.0}


def test_p_is_used_where_it_is_asked_for():
    verdicts = [verdict("a", 1.0, p=0.7)]
    assert score_rubric([Criterion(id="a", text="x")], verdicts, use="p").value == 0.7
    assert score_rubric([Criterion(id="a", text="x")], verdicts).value == 1.0


MUST = Criterion(id="must", text="x", required=True)
MUST_NOT = Criterion(id="must", text="x", weight=-1, required=True)
GATE = Criterion(id="must", text="x", weight=0, required=True)
GATES = [
    (MUST, 1.0, 0.0, (1.0, 1.0)),
    (MUST, 0.0, 0.0, (0.0, 0.0)),
    (MUST, None, 0.0, (0.0, 1.0)),
    (MUST, 0.0, None, (0.5, 0.5)),
    (MUST_NOT, 0.0, 0.0, (1.0, 1.0)),
    (MUST_NOT, 1.0, -1.0, (-1.0, -1.0)),
    (GATE, 1.0, 0.0, (1.0, 1.0)),
    (GATE, 0.0, 0.0, (0.0, 0.0)),
]


@pytest.mark.parametrize(("criterion", "value", "gate_to", "interval"), GATES)
def test_required_criteria(criterion, value, gate_to, interval):
    criteria = [Criterion(id="a", text="x"), criterion]
    part = score_rubric(criteria, [verdict("a", 1.0), verdict("must", value)], gate_to=gate_to)
    assert (part.low, part.high) == interval


TREE = [
    Criterion(id="top", text="x", weight=3),
    Criterion(id="b", text="x", weight=1),
    Criterion(id="t1", text="x", parent="top", weight=1),
    Criterion(id="t2", text="x", parent="top", weight=-1),
]
TREES = [
    ((1.0, 0.0, 1.0), "flip", 1.0),
    ((1.0, 1.0, 1.0), "flip", (3 * 0.5 + 1) / 4),
    ((1.0, 1.0, 1.0), "mean", (0.5 + 1) / 2),
    ((0.0, 0.0, 0.0), "net", 3 * 0.5 / 4),
]


@pytest.mark.parametrize(("values", "how", "wanted"), TREES)
def test_a_parent_is_the_score_of_its_children(values, how, wanted):
    verdicts = [verdict(n, v) for n, v in zip(("t1", "t2", "b"), values, strict=True)]
    assert score_rubric(TREE, verdicts, how=how).value == pytest.approx(wanted)


def leaf(parent, weight=1):
    return Criterion(id="leaf", text="x", parent=parent, weight=weight, required=True)


PARENT = Criterion(id="p", text="x")
FAULT = Criterion(id="p", text="x", weight=-1)
BESIDE = [Criterion(id="a", text="x"), Criterion(id="b", text="x", parent="p")]
# rows with a parent, the value of the required leaf, and the interval: "a" is met, "b" is not
REQUIRED = [
    ([PARENT, leaf("p")], 1.0, (0.75, 0.75)),
    ([PARENT, leaf("p")], 0.0, (0.0, 0.0)),
    ([PARENT, leaf("p")], None, (0.0, 0.75)),
    ([PARENT, leaf("p", -1)], 1.0, (0.0, 0.0)),
    # below a fault: what the leaf names must not be there
    ([FAULT, leaf("p")], 0.0, (1.0, 1.0)),
    ([FAULT, leaf("p")], 1.0, (0.0, 0.0)),
    ([FAULT, leaf("p")], None, (0.0, 1.0)),
    ([FAULT, leaf("p", -1)], 0.0, (0.0, 0.0)),
    # a parent whose children have no weight is not scored, and its leaf is a gate
    ([PARENT, leaf("q", 0), Criterion(id="q", text="x", weight=9)], 1.0, (0.5, 0.5)),
    ([PARENT, leaf("q", 0), Criterion(id="q", text="x", weight=9)], 0.0, (0.0, 0.0)),
]


@pytest.mark.parametrize(("rows", "value", "interval"), REQUIRED)
def test_a_required_leaf_of_a_tree_gates_the_answer(rows, value, interval):
    verdicts = [verdict("a", 1.0), verdict("b", 0.0), verdict("leaf", value)]
    part = score_rubric([*BESIDE, *rows], verdicts)
    assert (part.low, part.high) == interval


FAULTS = [
    ([Criterion(id="a", text="x", parent="zzz")], "no criterion at the top"),
    ([Criterion(id=i, text="x", parent=p) for i, p in ("ab", "ba")], "no criterion at the top"),
]


@pytest.mark.parametrize(("criteria", "words"), FAULTS)
def test_a_broken_rubric_is_an_error(criteria, words):
    with pytest.raises(DataError, match=words):
        score_rubric(criteria, [])


@pytest.mark.parametrize("criteria", [[], [Criterion(id="a", text="x", weight=0)]])
def test_a_rubric_without_weights_does_not_apply(criteria):
    assert not score_rubric(criteria, []).applies


values = st.sampled_from([0.0, 0.25, 0.5, 1.0, None])
weights = st.sampled_from([-2.0, -1.0, 0.0, 0.5, 1.0, 3.0])
rubrics = st.lists(st.tuples(weights, st.booleans(), st.integers(-1, 3)), min_size=1, max_size=7)


@settings(max_examples=300, deadline=None)
@given(rubrics, st.data(), st.sampled_from(HOWS))
def test_a_verdict_that_becomes_unknown_never_raises_the_low_end(rows, data, how):
    criteria = [
        # the parent, where it has one, comes before: so this is a tree
        Criterion(
            id=f"c{i}", text="x", weight=w, required=r, parent=f"c{p}" if 0 <= p < i else None
        )
        for i, (w, r, p) in enumerate(rows)
    ]
    found = [data.draw(values) for _ in criteria]
    lost = data.draw(st.integers(0, len(criteria) - 1))
    verdicts = [verdict(f"c{i}", v) for i, v in enumerate(found)]
    before = score_rubric(criteria, verdicts, how=how)
    verdicts[lost] = unknown("t", "r", f"c{lost}", "transport")
    after = score_rubric(criteria, verdicts, how=how)
    if before.applies:
        assert before.range[0] <= after.low <= before.low <= before.high <= after.high + 1e-12
        assert after.high <= before.range[1] + 1e-12
