"""No JSON value in any field crashes a reader, and no row is lost in silence."""

import json
import os

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kit.data import load_tasks, save_tasks
from kit.data.detect import FORMATS
from kit.data.jsonl import write_jsonl
from kit.data.tables import read_rows
from kit.errors import DataError

FIELDS = [
    "record",
    "id",
    "task_id",
    "prompt",
    "criteria",
    "rubrics",
    "rubric",
    "rubric - 1. criterion",
    "rubric - 1. weight",
    "rubric - 1. ratingA",
    "rubric - 2. criterion",
    "rubric - 2. check",
    "responseA",
    "responseB",
    "gemini_completion_1",
    "responseA_failure",
    "messages",
    "dataset",
    "ground_truth",
    "truth",
    "Answer Critical",
    "Question",
    "positive_rubrics",
    "negative_rubrics",
    "sources",
    "tool_output",
    "verifiers",
    "applicable_verifiers",
    "question_type",
    "tissue",
    "text",
    "chosen",
    "rejected",
    "points",
    "decomposed_questions",
    "eval",
    "output",
    "input",
    "instruction",
    "question_label",
    "checklist",
    "sub_tasks",
    "requirements",
    "weight",
    "question",
    "answer",
    "type",
    "criterion",
    "criterion_id",
    "response",
    "response_id",
    "labels",
    "label",
    "rater",
    "stated_confidence",
    "status",
    "failure",
    "value",
    "p",
    "tags",
    "group",
    "split",
    "kind",
    "system",
    "meta",
    "levels",
    "scale",
    "ideal_completions_data",
    "example_tags",
    "references",
    "conversations",
    "completion",
    "required",
    "title",
]
scalars = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.floats(),
    st.text(max_size=12),
    st.sampled_from(
        [
            "",
            "yes",
            "🟢",
            "4/5",
            "1/0",
            "[1]",
            '{"rubrics": [{"weight": "x"}]}',
            "[",
            "task",
            "response",
            "verdict",
            "unknown",
            "### Instruction:\nx\n### Response:\ny",
        ]
    ),
)
inner = st.sampled_from(
    [
        "criterion",
        "description",
        "weight",
        "points",
        "tags",
        "id",
        "role",
        "content",
        "rubric_item",
        "type",
        "sub_tasks",
        "text",
        "requirements",
        "Ingredient",
        "Handle",
        "check",
        "name",
        "levels",
        "title",
        "user",
        "1-2",
        "criteria_description",
    ]
)
values = st.recursive(
    scalars,
    lambda x: st.one_of(st.lists(x, max_size=3), st.dictionaries(inner, x, max_size=4)),
    max_leaves=8,
)
rows = st.lists(
    st.dictionaries(st.one_of(st.sampled_from(FIELDS), st.text(max_size=6)), values, max_size=8),
    max_size=4,
)

MANY = int(os.environ.get("KIT_FUZZ", "60"))  # examples; `make test-slow` tries many more


def accounted(t, n):
    assert t.rows == n
    held = len(t.tasks) + len(t.responses) + len(t.verdicts)
    errors = [f for f in t.findings if f.severity == "error"]
    assert held or errors or n == 0
    assert t.skipped <= len(errors)
    if t.format not in ("kit", "answers", "flat"):
        assert len(t.tasks) + t.skipped == n


@settings(max_examples=MANY, deadline=None, derandomize=True)
@given(rows, st.sampled_from(FORMATS))
def test_any_value_in_any_field_of_any_format(data, fmt):
    accounted(load_tasks(data, fmt), len(data))


@settings(max_examples=MANY * 2 // 3, deadline=None, derandomize=True)
@given(rows)
def test_detection_never_crashes(data):
    detected(data)


def detected(data):
    try:
        accounted(load_tasks(data), len(data))
    except DataError as e:
        assert "format" in str(e) or "row" in str(e)


@settings(max_examples=MANY // 2, deadline=None, derandomize=True)
@given(rows, st.sampled_from([f for f in FORMATS if f != "kit"]))
def test_what_was_read_survives_our_own_jsonl(tmp_path_factory, data, fmt):
    t = load_tasks(data, fmt)
    path = tmp_path_factory.mktemp("x") / "own.jsonl"
    save_tasks(path, t)
    if not (t.tasks or t.responses or t.verdicts):
        return
    back = load_tasks(path)
    assert json.dumps([repr(x) for x in (back.tasks, back.responses, back.verdicts)]) == json.dumps(
        [repr(x) for x in (t.tasks, t.responses, t.verdicts)]
    )


@settings(max_examples=MANY // 2, deadline=None, derandomize=True)
@given(
    st.lists(
        st.dictionaries(st.text(max_size=4), values, min_size=1, max_size=3), min_size=1, max_size=5
    ),
    st.sampled_from([7, 64, 1 << 20]),
)
def test_jsonl_and_arrays_round_trip_at_any_block_size(tmp_path_factory, data, block):
    import kit.data.stream as stream

    folder, old = tmp_path_factory.mktemp("x"), stream.BLOCK
    stream.BLOCK = block
    try:
        write_jsonl(folder / "a.jsonl", data)
        (folder / "a.json").write_text(json.dumps(data, indent="\t"))
        for name in ("a.jsonl", "a.json"):
            assert repr([r for _, r in read_rows(folder / name)]) == repr(data)
    finally:
        stream.BLOCK = old


@settings(max_examples=100, deadline=None, derandomize=True)
@given(st.binary(max_size=60), st.sampled_from([".json", ".jsonl", ".csv", ".txt"]))
def test_any_bytes_give_rows_or_a_data_error(tmp_path_factory, data, suffix):
    path = tmp_path_factory.mktemp("x") / f"f{suffix}"
    path.write_bytes(data)
    try:
        list(read_rows(path))
    except DataError as e:
        assert e.where


@pytest.mark.slow
@pytest.mark.timeout(1800)  # examples are counted, not seconds: it holds on a busy machine too
@pytest.mark.parametrize("form", [*FORMATS, None])
def test_many_rows_of_any_kind(form):
    def check(data):
        detected(data) if form is None else accounted(load_tasks(data, form), len(data))

    settings(max_examples=100 if form else 400, deadline=None, derandomize=True)(
        given(rows)(check)
    )()
