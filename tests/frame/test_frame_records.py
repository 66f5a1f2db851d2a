"""Records: JSON both ways, unknown is never 0, ids not positions, errors that say where."""

from __future__ import annotations

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kit import records
from kit.errors import DataError, KitError
from kit.records import Criterion, Grade, Response, Task, Verdict

texts = st.text(max_size=20)
criteria = st.builds(
    Criterion,
    id=texts,
    text=texts,
    weight=st.floats(-10, 10),
    required=st.booleans(),
    tags=st.tuples(texts),
    meta=st.dictionaries(texts, st.integers()),
)
verdicts = st.one_of(
    st.builds(
        Verdict,
        task_id=texts,
        response_id=texts,
        criterion_id=texts,
        status=st.sampled_from(("met", "unmet")),
        p=st.none() | st.floats(0, 1),
        reason=st.none() | texts,
    ),
    st.builds(
        Verdict,
        task_id=texts,
        response_id=texts,
        criterion_id=texts,
        status=st.just("level"),
        value=st.floats(0, 1),
    ),
    st.builds(
        Verdict,
        task_id=texts,
        response_id=texts,
        criterion_id=texts,
        status=st.just("unknown"),
        failure=st.sampled_from(records.FAILURES),
    ),
)


@settings(max_examples=150, deadline=None, derandomize=True)
@given(
    st.builds(
        Task,
        id=texts,
        prompt=texts,
        criteria=st.lists(criteria, max_size=4, unique_by=lambda c: c.id).map(tuple),
        sources=st.dictionaries(texts, texts),
    ),
    verdicts,
    st.builds(Response, task_id=texts, id=texts, text=texts, truncated=st.booleans()),
)
def test_json_round_trip(task: Task, verdict: Verdict, response: Response) -> None:
    def through(record: object, back: object) -> object:
        return back(json.loads(json.dumps(records.to_json(record))))  # type: ignore[operator]

    assert through(task, records.task_from_json) == task
    assert through(verdict, records.verdict_from_json) == verdict
    assert through(response, records.response_from_json) == response
    grade = Grade(
        task_id="t", response_id="r", score=None, score_low=0.0, score_high=1.0, verdicts=(verdict,)
    )
    assert through(grade, records.grade_from_json) == grade


def test_unknown_has_no_value_and_needs_a_cause() -> None:
    v = Verdict(
        task_id="t", response_id="r", criterion_id="c", status="unknown", failure="parse", value=0.0
    )
    assert v.value is None and not v.known
    with pytest.raises(DataError, match="failure kind"):
        Verdict(task_id="t", response_id="r", criterion_id="c", status="unknown")


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ({"id": "t"}, "'prompt' is missing"),
        ({"id": 3, "prompt": "p"}, "'id' is int"),
        ([], "expected an object"),
        (
            {"id": "t", "prompt": "p", "criteria": [{"id": "c", "text": "x", "weight": "1"}]},
            "weight is '1'",
        ),
        (
            {
                "id": "t",
                "prompt": "p",
                "criteria": [{"id": "c", "text": "x"}, {"id": "c", "text": "y"}],
            },
            "not unique",
        ),
        (
            {"id": "t", "prompt": "p", "criteria": [{"id": "c", "text": "x", "scale": "stars"}]},
            "scale is 'stars'",
        ),
    ],
)
def test_bad_rows_say_where(row: object, message: str) -> None:
    with pytest.raises(DataError, match=message) as e:
        records.task_from_json(row, where="tasks.jsonl, line 7")  # type: ignore[arg-type]
    assert "tasks.jsonl, line 7" in str(e.value)


def test_fields_that_nobody_knows_are_kept() -> None:
    assert records.task_from_json({"id": "t", "prompt": "p", "rating": 5}).meta == {"rating": 5}


def test_two_verdicts_that_disagree_are_a_contradiction() -> None:
    met = Verdict(task_id="t", response_id="r", criterion_id="c", status="met")
    unmet = Verdict(task_id="t", response_id="r", criterion_id="c", status="unmet")
    assert records.by_criterion([met, unmet])["c"].failure == "contradiction"
    assert records.by_criterion([met, met])["c"].status == "met"


def test_errors_carry_what_where_and_fix() -> None:
    e = KitError("w", where="x", fix="y")
    assert (e.what, e.where, e.fix) == ("w", "x", "y") and e.exit_code == 2
