"""No JSON value in any field crashes a reader, and no row is lost in silence."""

import json
import os
from dataclasses import asdict

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


TURNS = [{"role": "user", "content": "p?"}, {"role": "assistant", "content": "a"}]
LEVELS = [{"score": 0, "description": "bad"}, {"score": 1, "description": "good"}]
OPEN = {"rubrics": [{"description": "x is y", "weight": 1}]}
PLAIN = {"id": "c", "text": "x"}
PLACES = [  # a row, and where in it there may be one field more
    ({"prompt": "p?", "criteria": [{"text": "x is y"}], "response": "r."}, ("criteria", 0)),
    ({"prompt": "p?", "criteria": [{"text": "x is y", "weight": 2}]}, ()),
    ({"prompt": "p?", "criteria": [{"title": "G", "criteria": [{"text": "x"}]}]}, ("criteria", 0)),
    ({"prompt": "p?", "criteria": [{"text": "x", "levels": LEVELS}]}, ("criteria", 0, "levels", 1)),
    ({"prompt": TURNS[:1], "rubrics": [{"criterion": "x", "points": 3}]}, ("rubrics", 0)),
    ({"prompt": TURNS[:1], "rubrics": [{"criterion": "x", "points": 3}]}, ("prompt", 0)),
    ({"messages": TURNS[:1], "ground_truth": OPEN}, ("ground_truth", "rubrics", 0)),
    ({"question": "p?", "rubric": [{"rubric_item": "x", "weight": 2}]}, ("rubric", 0)),
    ({"prompt": "p?", "positive_rubrics": ["x"], "sources": [{"text": "s"}]}, ("sources", 0)),
    ({"prompt": "p?", "rubric - 1. criterion": "x", "responseA": "r"}, ()),
    ({"requirements": "p?", "sub_tasks": [{"requirements": "x", "weight": 2}]}, ("sub_tasks", 0)),
    ({"prompt": "p?", "criterion": "x is y", "response": "r.", "label": "met"}, ()),
    ({"task_id": "t", "response": "r.", "labels": {"c": "met"}}, ()),
    ({"task_id": "t", "response": "r", "labels": [{"id": "c", "label": "met"}]}, ("labels", 0)),
    ({"record": "task", "id": "t", "prompt": "p?", "criteria": [{"id": "c", "text": "x"}]}, ()),
    ({"id": "t", "prompt": "p?", "meta": {}, "truth": {}, "criteria": [PLAIN]}, ("criteria", 0)),
    ({"record": "response", "task_id": "t", "id": "r", "text": "x"}, ()),
    ({"prompt": "p?", "chosen": TURNS, "rejected": [*TURNS[:1], TURNS[1]]}, ("chosen", 1)),
    ({"prompt": "p?", "chosen": {"messages": TURNS}, "rejected": "b"}, ("chosen",)),
    ({"messages": TURNS}, ("messages", 1)),
    ({"question": "p?", "answer": "a"}, ()),
]
NAMES = st.one_of(
    st.text(min_size=1, max_size=8),
    st.sampled_from(
        "effect should poids polarity type category note 权数 分 node entry _x".split()
    ),
)


def _parts(t, meta):
    """What the records hold, without meta; or all that their metas hold, as JSON."""

    def part(x):
        if isinstance(x, dict):
            return {k: part(v) for k, v in x.items() if k != "meta"}
        return [part(v) for v in x] if isinstance(x, (list, tuple)) else x

    def metas(x):
        each = x.values() if isinstance(x, dict) else x if isinstance(x, (list, tuple)) else ()
        own = [x["meta"]] if isinstance(x, dict) and x.get("meta") else []
        return own + [m for v in each for m in metas(v)]

    rows = [asdict(x) for x in (*t.tasks, *t.responses, *t.verdicts)]
    return json.dumps(metas(rows) if meta else part(rows), default=str)


@settings(max_examples=MANY * 5, deadline=None, derandomize=True)
@given(st.sampled_from(PLACES), NAMES, values.filter(lambda x: x not in (None, "", [], {})))
def test_a_field_more_is_read_or_in_meta_and_named(at, name, value):
    """Thirteen rounds of readers found fields that no list of names knew, gone without a word."""
    row, path = at
    more = held = json.loads(json.dumps(row))
    for step in path:
        held = held[step]
    if name in held:
        return
    held[name] = value
    try:
        found = load_tasks([more])
    except DataError:
        return  # refused
    plain = load_tasks([row])
    named = [f for f in found.findings if f"{f.field}".endswith(name) or repr(name) in f.message]
    read = _parts(found, False) != _parts(plain, False)
    kept = f"{json.dumps(name)[1:]}:" in _parts(found, True)
    assert read or (kept and named) or any(f.severity == "error" for f in named)


@pytest.mark.slow
@pytest.mark.timeout(1800)  # examples are counted, not seconds: it holds on a busy machine too
@pytest.mark.parametrize("form", [*FORMATS, None])
def test_many_rows_of_any_kind(form):
    def check(data):
        detected(data) if form is None else accounted(load_tasks(data, form), len(data))

    settings(max_examples=100 if form else 400, deadline=None, derandomize=True)(
        given(rows)(check)
    )()
