"""Nothing in a row is lost in silence: what stood in a file is found in its task, or a finding says what is gone."""

import copy
import datetime
import gzip
import json
from decimal import Decimal

import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import kit
from kit import rubrics
from kit.checks import check
from kit.claims.base import applicable
from kit.data import iter_tasks, load_tasks
from kit.data.tables import read_rows
from kit.errors import DataError, KitError
from kit.records import Response


def codes(found):
    return {f.code for f in found.findings if f.severity == "error"}


CHAT = [{"role": "system", "content": "s"}, {"role": "user", "content": "u"}]
EXAMPLES = {
    "rlvr": {
        "task_id": "t",
        "prompt": "p",
        "rubric - 1. criterion": "c one",
        "rubric - 1. weight": 2,
        "rubric - 1. criterion_origin": "o",
        "rubric - 1. ratingA": "green",
        "rubric - 2. criterion": "",
        "rubric - 3. criterion": "c three",
        "rubric - 3. required": True,
        "rubric - 3. check": {"name": "words", "max": 9},
        "responseA": "a",
        "A_failure": "f",
        "sources": [{"id": "S1", "text": "x", "url": "w"}],
        "instruction_type": "i",
    },
    "refiner": {
        "task_id": "t",
        "messages": CHAT,
        "positive_rubrics": [{"title": "t", "description": "d", "weight": 1}],
        "negative_rubrics": ["n"],
        "tool_output": "before <snippet id=a>x</snippet> after",
    },
    "open-instruct": {
        "id": "t",
        "messages": CHAT,
        "dataset": "rubric",
        "ground_truth": {
            "query": "u",
            "rubrics": [{"description": "d", "title": "t", "weight": 1}],
        },
    },
    "healthbench": {
        "prompt_id": "t",
        "prompt": [*CHAT, {"role": "assistant", "content": "a"}, {"role": "user", "content": "v"}],
        "rubrics": [{"criterion": "c", "points": 3, "tags": ["g"]}],
        "ideal_completions_data": {"ideal_completion": "i", "group": "g"},
        "example_tags": ["e"],
    },
    "infobench": {
        "id": "t",
        "instruction": "i",
        "input": "j",
        "decomposed_questions": ["q", "r"],
        "question_label": [["a"], ["b"]],
        "output": "o",
        "eval": [True, False],
        "category": "c",
    },
    "checklist": {
        "id": "t",
        "query": "q",
        "checklist": [{"name": "n", "criteria_description": "d", "1-2": "bad", "3-4": "good"}],
        "references": {"gpt": "r"},
    },
    "tree": {
        "id": "t",
        "requirements": "root",
        "weight": 1,
        "sub_tasks": [
            {
                "id": "a",
                "requirements": "x",
                "weight": 1,
                "sub_tasks": [],
                "score": 1,
                "explanation": "e",
            },
            {"id": "b", "requirements": "y", "weight": 2, "task_category": "k", "sub_tasks": []},
        ],
    },
    "dpo": {"id": "t", "prompt": "p", "chosen": "c", "rejected": "r", "score": 1},
    "sft": {"id": "t", "instruction": "i", "input": "j", "output": "o"},
    "qa": {"id": "t", "question": "q", "answer": "a", "type": "k"},
    "verifier": {
        "id": "t",
        "prompt": "p",
        "ground_truth": {"facts": ["f"]},
        "applicable_verifiers": ["factual"],
        "question_type": "k",
        "tissue": "l",
        "answer": "a",
    },
    "prompts": {"id": "t", "instruction": "i", "input": "j", "response": "r"},
    "flat": {
        "task_id": "t",
        "prompt": "p",
        "criterion": "c",
        "weight": 1,
        "response": "r",
        "label": "yes",
        "rater": "x",
    },
    "instructions": {
        "key": 1,
        "prompt": "p",
        "instruction_id_list": ["punctuation:no_comma", "keywords:existence"],
        "kwargs": [{}, {"keywords": ["a", "b"]}],
    },
}
# Rows that are odd at one place each: this is where a marker was lost once.
ODD = [
    ("healthbench", {"prompt": CHAT, "completion": "c", "rubric": "r", "binary_labels": [True],
                     "anonymized_physician_ids": ["x", "y"]}),
    ("tree", {"paper_id": "t", "graded_task_tree": {"id": "r", "requirements": "R", "weight": 1,
              "sub_tasks": [{"id": "a", "requirements": "x", "sub_tasks": [], "own_weight": "w"},
                            {"requirements": "", "note": "n", "sub_tasks": []}]}}),
    ("infobench", {"instruction": "i", "decomposed_questions": ["q"], "eval": ["x"], "model": "m",
                   "judge": "j"}),
    ("infobench", {"instruction": "i", "decomposed_questions": ["q"], "output": "o",
                   "eval": [{"ann": "yes"}], "judge": "j"}),
    ("checklist", {"query": "q", "checklist": [{"criteria_description": "d", "1-2": "bad",
                                                "levels": ["l"]}, {"text": " ", "points": "w"}]}),
    ("rlvr", {"prompt": "p", "rubric - 1. criterion": "c", "rubric - 1. ratingB": "green",
              "rubric - 2. weight": 2, "D_failure": "f", "x_completion_1": ["g"]}),
    ("open-instruct", {"Question": "q", "Answer Critical": [{"Ingredient": "i", "Why": "w"},
                                                            {"Handle": "h"}]}),
    ("dpo", {"chosen": CHAT, "rejected": ["r"], "question": "q"}),
]  # fmt: skip
EXTRA = (
    "prompt",
    "question",
    "query",
    "instruction",
    "input",
    "id",
    "task_id",
    "text",
    "system",
    "kind",
)
EXTRA += (
    "category",
    "type",
    "group",
    "split",
    "tags",
    "title",
    "notes",
    "messages",
    "label",
    "truth",
)


def places(value, path=()):
    """Paths of all leaves of a row, and of its objects (where a field may be added)."""
    yield path
    if isinstance(value, dict):
        for k, v in value.items():
            yield from places(v, (*path, k))
    elif isinstance(value, list):
        for i, v in enumerate(value):
            yield from places(v, (*path, i))


def put(row, path, value, name):
    """The row with a value at a path; into an object it goes as a field of this name."""
    row = copy.deepcopy(row)
    at = row
    for step in path[:-1]:
        at = at[step]
    there = at[path[-1]] if path else row
    if isinstance(there, dict):
        there[name] = value
    elif isinstance(there, list):
        there.append(value)
    else:
        at[path[-1]] = value
    return row


def anywhere(t, text):
    """True when the text stands in a record, as it is or escaped."""
    held = repr([t.tasks, t.responses, t.verdicts])
    return text in held


SHAPES = [  # ways in which a text may stand in a field
    lambda m: m,
    lambda m: f" {m}\u2028\n",
    lambda m: [m, 1],
    lambda m: {"k": m},
    lambda m: {m: 1},
    lambda m: [[{"role": "user", "content": m}]],
    lambda m: json.dumps([{"text": m}]),
]


@settings(max_examples=600, deadline=None, derandomize=True)
@given(st.sampled_from([*EXAMPLES.items(), *ODD]), st.data())
def test_any_string_put_anywhere_into_a_row_is_found_again(example, data):
    form, row = example
    path = data.draw(st.sampled_from(list(places(row))))
    name = data.draw(st.sampled_from(EXTRA))
    changed = put(row, path, data.draw(st.sampled_from(SHAPES))("Marker417"), name)
    found = load_tasks([changed], form)
    gone = any(f.code == "unreadable-row" or "Marker417" in str(f) for f in found.findings)
    assert anywhere(found, "Marker417") or gone, (form, path, name)


@settings(max_examples=100, deadline=None, derandomize=True)
@given(st.data())
def test_what_a_later_row_of_a_flat_task_says_is_found_again(data):
    """An unreadable polarity of the second row of a task was gone."""
    row = EXAMPLES["flat"] | {"polarity": "negative", "check": None}
    name = data.draw(st.sampled_from([*row, *EXTRA]))
    shape = data.draw(st.sampled_from(SHAPES))
    found = load_tasks([row, row | {name: shape("Marker417")}], "flat")
    assert anywhere(found, "Marker417"), (name, shape("Marker417"))


@settings(max_examples=150, deadline=None, derandomize=True)
@given(st.sampled_from(sorted(EXAMPLES)), st.data())
def test_two_strings_in_two_fields_are_both_found_again(form, data):
    row = EXAMPLES[form]
    names = data.draw(st.lists(st.sampled_from(EXTRA), min_size=2, max_size=2, unique=True))
    for i, name in enumerate(names):
        row = {**row, name: f"Marker{i}"}
    found = load_tasks([row], form)
    assert anywhere(found, "Marker0") and anywhere(found, "Marker1"), (form, names)


def test_blank_numbered_criteria_are_placeholders_not_criteria():
    """A real row has 16 criteria and 24 blank ones: meeting all 16 scored .40."""
    row = {"task_id": "t", "prompt": "p"}
    for n in range(1, 41):
        row[f"rubric - {n}. criterion"] = f"names thing {n}" if n <= 16 else " " if n % 2 else ""
        row[f"rubric - {n}. criterion_origin"] = "" if n > 16 else "prompt"
    t = load_tasks([row])
    assert t.criteria == 16 and {f.code for f in t.findings} == {"unread-field", "numbers-in-text"}
    assert load_tasks([{"prompt": "p", "rubrics": ["a b", "", {"description": " "}]}]).criteria == 1


def test_instruction_and_input_make_the_prompt():
    """PandaLM: the instruction alone gave 829 false duplicates."""
    rows = [
        {"instruction": "Translate.", "input": text, "response1": "x"} for text in ("one", "two")
    ]
    assert [x.prompt for x in load_tasks(rows)] == ["Translate.\n\none", "Translate.\n\ntwo"]


def test_fields_at_odds_are_a_finding_and_both_are_kept():
    t = load_tasks([{"id": "a", "task_id": "b", "prompt": "p", "query": "q"}] * 2)
    said = {f.field: f.message for f in t.findings if f.code == "field-conflict"}
    assert set(said) == {"query", "id"} and "2 of 2 rows" in said["query"]
    assert t.tasks[0].prompt == "p" and t.tasks[0].meta["query"] == "q"
    assert t.tasks[0].id == "b" and t.tasks[0].meta["id"] == "a"


def test_a_chat_of_several_turns_is_kept_whole():
    """213 rows of HealthBench came down to their last turn."""
    turns = EXAMPLES["healthbench"]["prompt"]
    t = load_tasks([EXAMPLES["healthbench"]]).tasks[0]
    assert (t.system, t.prompt) == ("s", "v") and list(t.history) == turns[1:3]
    ends = load_tasks([{"prompt": turns[:-1], "rubrics": [{"criterion": "c", "points": 1}]}])
    assert "unread-turns" in {f.code for f in ends.findings}
    assert ends.tasks[0].meta["messages"] == turns[:-1]


@pytest.mark.parametrize("encoding", ["utf-16", "utf-32"])
@pytest.mark.parametrize("name", ["x.json", "x.jsonl", "x.csv"])
def test_other_encodings_are_read_and_said(tmp_path, encoding, name):
    text = {
        "x.json": '[{"prompt": "naïve café"}]',
        "x.jsonl": '{"prompt": "naïve café"}\n',
        "x.csv": "prompt,b\nnaïve café,1\n",
    }[name]
    path = tmp_path / name
    path.write_bytes(text.encode(encoding))
    t = load_tasks(path)
    assert t.tasks[0].prompt == "naïve café" and t.skipped == 0
    assert [f.code for f in t.findings if f.code == "encoding"] == ["encoding"]


def test_a_damaged_byte_is_named(tmp_path):
    path = tmp_path / "x.jsonl"
    path.write_bytes('{"prompt": "Größe"}\n'.encode() + b'{"prompt": "bro\xffken"}\n')
    with pytest.raises(DataError, match="byte 38 is 0xff"):
        load_tasks(path)
    path.write_text('{"prompt": "naïve"}', "utf-16-le")
    with pytest.raises(DataError, match="not UTF-8"):
        load_tasks(path)


@pytest.mark.parametrize("fault", ['"prompt": "p50 }', '"prompt": p50}', "]"])
def test_reading_ends_at_a_broken_element_of_an_array_and_says_so(tmp_path, fault):
    """One broken row of a hundred hid the fifty after it behind "1 skipped"."""
    rows = [
        json.dumps({"task_id": f"t{i}", "prompt": f"p{i}", "rubrics": [{"description": "d"}] * 3})
        for i in range(100)
    ]
    rows[50] = (
        '{"task_id": "t50", "rubrics": [{"description": "d"}, {"description": "e"}], ' + fault
    )
    path = tmp_path / "x.json"
    path.write_text("[" + ",\n".join(rows) + "]")
    t = load_tasks(path)
    assert {x.id for x in t} == {f"t{i}" for i in range(50)} and t.skipped == 1
    assert any("from line 51 on, was not read" in f.message for f in t.findings)


def test_a_broken_end_says_how_much_was_not_read(tmp_path):
    path = tmp_path / "x.json"
    path.write_text('[{"prompt": "a"},\n{"prompt": "b"},\n{"prompt": "c", oh dear' + "x" * 900)
    t = load_tasks(path)
    assert len(t) == 2 and any("from line 3 on, was not read" in f.message for f in t.findings)


def test_a_missing_comma_is_said(tmp_path):
    path = tmp_path / "x.json"
    path.write_text('[{"prompt": "a"}\n{"prompt": "b"}]')
    t = load_tasks(path)
    assert len(t) == 1 and any("expected ','" in f.message for f in t.findings)


@pytest.mark.parametrize("name", ["x.jsonl.gz", "x.json.gz", "x.csv.gz"])
def test_a_gz_that_is_cut_off_is_read_up_to_the_cut(tmp_path, name):
    rows = [{"prompt": f"prompt number {i * 7919 % 10007}", "n": str(i)} for i in range(4000)]
    lines = [json.dumps(r) for r in rows]
    text = {
        "x.jsonl.gz": "\n".join(lines),
        "x.json.gz": "[" + ",".join(lines) + "]",
        "x.csv.gz": "prompt,n\n" + "\n".join(f"{r['prompt']},{r['n']}" for r in rows),
    }[name]
    data = gzip.compress(text.encode())
    path = tmp_path / name
    path.write_bytes(data[: len(data) // 2])
    t = load_tasks(path)
    assert len(t) > 500 and any("cut off" in f.message for f in t.findings)
    with pytest.raises(DataError):
        list(read_rows(path))


def test_values_that_json_does_not_know_become_text_and_are_said(tmp_path):
    import pyarrow as pa
    import pyarrow.parquet as pq

    row = {
        "prompt": "p",
        "on": datetime.datetime(2024, 5, 1, 9),
        "of": Decimal("1.50"),
        "raw": b"ab",
    }
    for source in ([row], tmp_path / "x.parquet"):
        if source != [row]:
            pq.write_table(pa.Table.from_pylist([row]), source)
        t = load_tasks(source)
        assert t.tasks[0].meta == {"on": "2024-05-01T09:00:00", "of": "1.50", "raw": "ab"}
        assert {f.field for f in t.findings if f.code == "value-type"} == {"on", "of", "raw"}


def test_an_address_is_fetched_or_refused_clearly(monkeypatch):
    import fsspec

    with fsspec.open("memory://kit/x.jsonl", "wb") as f:
        f.write(b'{"prompt": "p"}\n')
    assert load_tasks("memory://kit/x.jsonl").tasks[0].prompt == "p"
    with pytest.raises(KitError, match="cannot be read"):
        load_tasks("memory://kit/gone.jsonl")
    monkeypatch.setenv("KIT_OFFLINE", "1")
    with pytest.raises(KitError, match="KIT_OFFLINE"):
        load_tasks("https://example.org/y.jsonl")


def test_a_line_separator_inside_a_text_is_no_end_of_line():
    t = load_tasks([{"prompt": "p", "rubrics": "- names\u2028the river\n- names the sea"}])
    assert [c.text for c in t.tasks[0].criteria] == ["names\u2028the river", "names the sea"]


def test_a_wide_table_of_ratings_is_refused_clearly():
    with pytest.raises(DataError, match="wide table"):
        load_tasks(
            [{"conversation": "hi", "text": "hi", **{f"Q{i}": str(i % 4) for i in range(9)}}]
        )


def test_scores_of_a_graded_tree_become_verdicts():
    leaf = {
        "requirements": "r",
        "weight": 1,
        "sub_tasks": [],
        "valid_score": True,
        "explanation": "why",
    }
    tree = {
        "id": "root",
        "requirements": "all",
        "weight": 1,
        "score": 0.5,
        "sub_tasks": [
            {**leaf, "id": "a", "score": 1.0},
            {**leaf, "id": "b", "score": 0.0},
            {**leaf, "id": "c", "score": 0.0, "valid_score": False},
        ],
    }
    t = load_tasks([{"paper_id": "rice", "graded_task_tree": tree, "judge_type": "simple"}])
    assert [(v.criterion_id, v.status, v.reason) for v in t.verdicts] == [
        ("a", "met", "why"),
        ("b", "unmet", "why"),
        ("c", "unknown", "why"),
    ]
    assert t.tasks[0].meta["judge_type"] == "simple"


@pytest.mark.parametrize(
    ("instruction", "arguments", "good", "bad"),
    [
        ("punctuation:no_comma", {}, "One two.", "One, two."),
        (
            "length_constraints:number_words",
            {"relation": "less than", "num_words": 3},
            "a b",
            "a b c",
        ),
        ("length_constraints:number_paragraphs", {"num_paragraphs": 2}, "a\n***\nb", "a\n\nb"),
        (
            "length_constraints:nth_paragraph_first_word",
            {"num_paragraphs": 2, "nth_paragraph": 2, "first_word": "sea"},
            "One.\n\nSea air.",
            "Sea air.\n\nOne.",
        ),
        ("keywords:forbidden_words", {"forbidden_words": ["rock"]}, "rocket", "a rock"),
        (
            "keywords:letter_frequency",
            {"letter": "q", "let_relation": "at least", "let_frequency": 2},
            "Qq",
            "q",
        ),
        (
            "detectable_format:number_highlighted_sections",
            {"num_highlights": 2},
            "*a* **b**",
            "*a* b",
        ),
        ("detectable_format:title", {}, "<<My title>>\nx", "My title"),
        ("detectable_content:postscript", {"postscript_marker": "P.S."}, "x\nP.S. y", "x"),
        ("startend:quotation", {}, '"x y"', 'x "y"'),
        ("combination:two_responses", {}, "a\n******\nb", "a\n***\nb"),
        ("combination:repeat_prompt", {"prompt_to_repeat": "Say hi."}, "Say hi. hi", "hi"),
        ("change_case:english_lowercase", {}, "all low", "Not low"),
        (
            "change_case:capital_word_frequency",
            {"capital_frequency": 1, "capital_relation": "at least"},
            "so LOUD",
            "so Loud",
        ),
        (
            "detectable_format:multiple_sections",
            {"section_spliter": "PART", "num_sections": 2},
            "PART 1 a PART 2 b",
            "PART 1",
        ),
    ],
)
def test_instruction_rows_are_criteria_by_code(instruction, arguments, good, bad):
    row = {
        "key": 1,
        "prompt": "p",
        "instruction_id_list": [instruction],
        "kwargs": [{**arguments, "n": None}],
    }
    t = load_tasks([row])
    task = t.tasks[0]
    assert t.format == "instructions" and not t.findings
    for text, status in ((good, "met"), (bad, "unmet")):
        answer = Response(task_id=task.id, id="r", text=text)
        assert check(task, answer, task.criteria[0]).status == status


def test_an_unknown_instruction_is_left_to_a_judge_and_said():
    row = {
        "key": 1,
        "prompt": "p",
        "instruction_id_list": ["count:odd_words"],
        "kwargs": [{"n": 3}],
    }
    t = load_tasks([row])
    assert not t.tasks[0].criteria[0].by_code and "n 3" in t.tasks[0].criteria[0].text
    assert [f.code for f in t.findings] == ["no-check"]


def test_answers_to_one_prompt_in_rows_without_an_id_are_answers_to_one_task():
    """180 labelled answers to 12 prompts were 180 tasks: intervals "by prompt" were 3 times too
    narrow, and nothing said so. A flat table of them had 12."""
    row = {"prompt": "Q", "criteria": [{"id": "c", "text": "x"}], "labels": {"c": 1}}
    rows = [row | {"response": f"R{i}", "model": f"m{i}"} for i in range(3)]
    out = load_tasks([*rows, row | {"prompt": "Other", "response": "S", "labels": {"c": 0}}])
    assert [t.id for t in out.tasks] == ["row-1", "row-4"]
    assert [(r.task_id, r.text) for r in out.responses][1:] == [
        ("row-1", "R1"),
        ("row-1", "R2"),
        ("row-4", "S"),
    ]
    assert out.responses[2].meta["model"] == "m2"
    assert {v.response_id for v in out.verdicts} == {r.id for r in out.responses}
    assert not [f for f in out.findings if f.severity != "info"]


@pytest.mark.parametrize("name", ["a.jsonl", "a.jsonl.gz", "a.parquet"])
def test_a_stream_has_as_many_tasks_as_the_same_rows_loaded(tmp_path, name):
    """Mended for kit.load alone: `kit inspect` counted each answer as a task of its own."""
    row = {"prompt": "Q", "criteria": [{"id": "c", "text": "x"}], "labels": {"c": 1}}
    rows = [row | {"prompt": f"Q{i % 4}", "response": f"R{i}", "who": i} for i in range(12)]
    pd.DataFrame(rows).to_parquet(tmp_path / "a.parquet")
    text = "\n".join(map(json.dumps, rows))
    (tmp_path / "a.jsonl").write_text(text)
    (tmp_path / "a.jsonl.gz").write_bytes(gzip.compress(text.encode()))
    read, whole = list(iter_tasks(tmp_path / name)), load_tasks(tmp_path / name)
    assert [p.task for p in read if p.task] == whole.tasks and len(whole.tasks) == 4
    assert [r for p in read for r in p.responses] == whole.responses
    assert [v for p in read for v in p.verdicts] == whole.verdicts
    assert [f for p in read for f in p.findings] == whole.findings
    seen = rubrics.scan(tmp_path / name, progress=False).summary
    assert (seen.tasks, seen.responses, seen.coverage) == (4, 12, 1.0)


def test_rows_without_an_id_that_share_a_prompt_and_no_criteria_are_named():
    rows = [{"prompt": "Q", "criteria": [x], "response": "R"} for x in ("x", "y")]
    out = load_tasks(rows)
    assert [f.code for p in iter_tasks(rows) for f in p.findings] == ["same-prompt"]
    assert len(out.tasks) == 2 and [f.code for f in out.findings] == ["same-prompt"]


@pytest.mark.parametrize("asks", [{"verifiers": ["factual"]}, {"question_type": "factual"}])
def test_a_task_of_our_own_with_verifiers_keeps_its_criteria(asks):
    """They were not judged: lint called the field unread, with a fix that the row had already."""
    criteria = [{"id": "a", "text": "Is polite."}, {"id": "b", "text": "Names Oslo.", "weight": 2}]
    row = {"id": "t", "prompt": "Which capital has Norway?", "criteria": criteria}
    out = load_tasks([{**row, "truth": {"facts": [{"id": "f", "text": "Oslo"}]}, **asks}])
    task = out.tasks[0]
    assert [(c.id, c.text, c.weight) for c in task.criteria] == [
        ("a", "Is polite.", 1),
        ("b", "Names Oslo.", 2),
    ]
    assert task.truth["facts"] and applicable(task) == ("factual",) and not out.findings


@pytest.mark.parametrize("field", ["passage", "question_id", "uid", "reference_answer"])
def test_rows_of_one_prompt_on_different_passages_are_tasks_of_their_own(field):
    """Summaries of 500 texts under one instruction were 500 answers to one task, about the first
    text."""
    row = {"prompt": "Summarize the passage.", "criteria": ["Faithful"]}
    rows = [{**row, field: f"T{i}", "response": f"R{i}"} for i in range(3)]
    found = load_tasks(rows)
    assert [t.meta[field] for t in found.tasks] == ["T0", "T1", "T2"]
    assert "same-prompt" in {f.code for f in found.findings}


DOCS = (
    "The cat sat on the mat and slept.",
    "Rome was founded in 753 BC, they say.",
    "Water boils at 100 degrees.",
)
WISHES = ("Says who did it.", "Says when it was.", "Is short and kind.")


@pytest.mark.parametrize("ids", ["none", "one", "rows"])
@pytest.mark.parametrize("answered", [False, True])
@pytest.mark.parametrize("shared", [False, True])
def test_documents_under_one_instruction_in_a_column_of_any_name_are_not_one_task(
    ids, answered, shared
):
    """Three reports, "Summarise the report." and a criterion a row: one task about the first
    report, whose answers were held to the criteria of all; a warning at most."""
    rows = [
        {"prompt": "Summarise the report.", "report_text": text, "criterion": wish}
        | ({"response": f"It says that {text}", "label": "met"} if answered else {})
        for text, own in zip(DOCS, WISHES, strict=True)
        for wish in (WISHES if shared else [own])
    ]
    names = {"none": {}, "one": {"id": "t"}, "rows": None}[ids]
    rows = [{**({"id": n} if names is None else names), **r} for n, r in enumerate(rows)]
    found = load_tasks(rows)
    if ids == "rows" and shared and not answered:  # each names its task
        assert len(found.tasks) == len(rows) and found.findings[0].code == "same-prompt"
        return
    with pytest.raises(DataError, match="differ in 'report_text'") as said:
        found.sound()
    assert "task_id" in said.value.fix and "sources" in said.value.fix
    named = [{**r, "task_id": r["report_text"][:4]} for r in rows]
    assert len(load_tasks(named).sound().tasks) == 3
    held = [{k: v for k, v in r.items() if k != "id"} for r in rows]
    held = [{"sources" if k == "report_text" else k: v for k, v in r.items()} for r in held]
    assert [list(t.sources.values()) for t in load_tasks(held).sound()] == [[x] for x in DOCS]


def test_a_text_beside_a_criterion_or_a_label_makes_no_documents():
    """What is said of the criterion or of the label, by its name or by where it recurs."""
    rows = [
        {"prompt": f"Question {n}?", "criterion": wish, "in_our_words": f"We mean by it: {wish}"}
        for n in range(3)
        for wish in WISHES
    ]
    assert [len(t.criteria) for t in load_tasks(rows).sound()] == [3, 3, 3]
    assert codes(load_tasks(rows[:3]))  # of one task alone nobody knows
    bare = [{k: v for k, v in r.items() if k != "in_our_words"} for r in rows]
    for name in ("criterion_note", "rationale", "response_note", "comments"):
        texts = (r["in_our_words"] for r in rows)
        load_tasks([{**r, name: x} for r, x in zip(bare[:3], texts, strict=False)]).sound()
    said = {"response": "It is so for three reasons.", "label": "met"}
    assert load_tasks(
        [{**r, **said, "why": f"For {n} we say so."} for n, r in enumerate(bare)]
    ).sound()


def test_rows_that_differ_in_what_tells_of_the_answer_are_one_task():
    """Who wrote it, when, and what was said of it make no task."""
    row = {"prompt": "p", "criteria": ["x"]}
    more = [{"model": f"m{i}", "score": i, "created_at": f"{i}", "note": f"n{i}"} for i in range(3)]
    rows = [{**row, **m, "response": f"R{i}"} for i, m in enumerate(more)]
    found = load_tasks(rows)
    assert len(found.tasks) == 1 and found.tasks[0].meta["model"] == "m0"
    assert [r.meta["model"] for r in found.responses[1:]] == ["m1", "m2"]


RUBRIC = [{"id": "x", "text": "Is right", "weight": 2}, {"id": "y", "text": "Is short"}]
ASKS = {"task_id": "t", "prompt": "p", "criteria": RUBRIC}


@pytest.mark.parametrize("door", ["rows", "jsonl", "json", "in data", "csv", "parquet", "stream"])
@pytest.mark.parametrize("named", ["task_id", "id", "prompt_id"])
def test_rows_of_one_id_that_differ_in_the_answer_alone_are_one_task(tmp_path, named, door):
    """The ordinary export of several models' answers beside one rubric: a false "the id occurs
    again", and a task of its own for each answer. In a table of pandas the labels were not read."""
    given = [("Yes", "gpt", "met"), ("No", "llama", "unmet"), ("Yes", "mistral", "unmet")]
    rows = [
        {named: "t", "prompt": "p", "criteria": RUBRIC, "response": r, "model": m}
        | {"labels": {"x": label}, "notes": {"by": [m]}}
        for r, m, label in given
    ]
    frame, file = pd.DataFrame(rows), tmp_path / f"a.{door.removeprefix('in ')}"
    if door == "csv":
        frame.to_csv(file, index=False)
    elif door == "parquet":
        frame.to_parquet(file)
    elif door == "jsonl":
        frame.to_json(file, orient="records", lines=True)
    else:
        file = tmp_path / "a.json"
        file.write_text(json.dumps({"data": rows} if door == "in data" else rows))
    out = load_tasks(rows if door in ("rows", "stream") else file)
    assert [t.id for t in out.tasks] == ["t"] and len(out.tasks[0].criteria) == 2
    assert [(r.text, r.meta["model"]) for r in out.responses] == [(r, m) for r, m, _ in given]
    names = [r.id for r in out.responses]
    assert [(v.ids, v.status) for v in out.verdicts] == [
        (("t", name, "x"), label) for name, (_, _, label) in zip(names, given, strict=True)
    ]
    assert "duplicate-id" not in {f.code for f in out.findings} and out.sound()
    seen = list(iter_tasks(rows))
    assert [r for p in seen for r in p.responses] == load_tasks(rows).responses
    kit.save(tmp_path / "own.jsonl", out)
    assert load_tasks(tmp_path / "own.jsonl").responses == out.responses


@pytest.mark.parametrize(
    ("field", "first", "second"),
    [
        ("prompt", "p", "q"),
        ("criteria", RUBRIC, RUBRIC[:1]),
        ("system", "Be kind.", "Be curt."),
        ("sources", {"S1": "Rome"}, {"S1": "Oslo"}),
        ("split", "train", "test"),
        ("passage", "Rome", "Oslo"),
    ],
)
def test_rows_of_one_id_that_ask_other_things_are_an_error_that_says_which(field, first, second):
    """The error named neither the first row nor what differs."""
    rows = [
        {**ASKS, "response": r, field: x} for r, x in (("a", first), ("b", first), ("c", second))
    ]
    out = load_tasks(rows)
    assert [t.id for t in out.tasks] == ["t", "t#2"]
    assert [r.task_id for r in out.responses] == ["t", "t", "t#2"]
    (found,) = [f for f in out.findings if f.code == "duplicate-id"]
    said = found.message
    assert found.severity == "error" and field in said and "row 1 " in said and "row 3" in said


def test_people_who_label_one_answer_in_rows_of_their_own_label_one_answer():
    """Each of two raters' rows became an answer, with the labels of one; in an answers' file the
    second rater's label of llama's answer stood on gpt's, which has the same text."""
    said = [("gpt", "met", "ann"), ("llama", "unmet", "ann"), ("llama", "unmet", "bob")]
    more = [{"response": "Yes", "model": m, "labels": {"x": x}, "rater": r} for m, x, r in said]
    for row in (ASKS, {**ASKS, "task_id": None}, {"task_id": "t"}):
        out = load_tasks([{**row, **m} for m in more])
        names = [r.id for r in out.responses]
        assert [r.meta["model"] for r in out.responses] == ["gpt", "llama"]
        given = [(names.index(v.response_id), v.judge, v.status) for v in out.verdicts]
        assert given == [
            (0, "human:ann", "met"),
            (1, "human:ann", "unmet"),
            (1, "human:bob", "unmet"),
        ]


@pytest.mark.parametrize(
    ("text", "turned"), [({}, False), ({}, True), ({"response": "Yes"}, False)]
)
@pytest.mark.parametrize("raters", [(None,), ("ann", "bob")])
def test_label_rows_beside_the_answer_they_name_are_labels_of_that_answer(text, turned, raters):
    """In one file with the answer a label by ids was the label of another answer, r1#2."""
    named = {"task_id": "t", "response_id": "r1"}
    label = {**named, **text, "label": "met"}
    said = [{**label, "criterion_id": c, "rater": r} for c in "xy" for r in raters]
    rows = [{**named, "response": "Yes"}, *said]
    out = load_tasks(rows[::-1] if turned else rows, "answers")
    assert [r.ids for r in out.responses] == [("t", "r1")]
    assert not [f for f in out.findings if f.severity == "error"]
    judges = ["human" if r is None else f"human:{r}" for r in raters]
    assert sorted((*v.ids, v.judge) for v in out.verdicts) == [
        ("t", "r1", c, judge) for c in "xy" for judge in judges
    ]


def test_an_answer_or_a_label_of_an_answers_file_that_stands_twice_is_told():
    """An answer that said its source went without a word."""
    own = {"task_id": "t", "response_id": "r1"}
    twice = load_tasks([{**own, "response": "Yes", "source": "gpt"}] * 2)
    assert [r.id for r in twice.responses] == ["r1", "r1#2"]
    assert [f.severity for f in twice.findings if f.code == "duplicate-id"] == ["error"]
    label = {**own, "criterion_id": "x", "label": "met"}
    once = load_tasks([label, label])
    assert len(once.verdicts) == 1
    assert [f.severity for f in once.findings if f.code == "duplicate-row"] == ["warning"]
    odd = load_tasks([label, {**label, "label": "unmet"}])
    assert "two-labels" in {f.code for f in odd.findings}


def test_an_answer_that_stands_twice_beside_its_rubric_is_named_and_a_reference_counts_once():
    """Of rows without an id they were two, and nothing said so; each row repeated the reference."""
    rows = [{**ASKS, "response": r, "references": {"gpt": "ref"}} for r in "aba"]
    out = load_tasks(rows)
    assert sorted(r.text for r in out.responses) == ["a", "a", "b", "ref"]
    assert [f.severity for f in out.findings if f.code == "duplicate-id"] == ["warning"]
    bare = load_tasks([{k: v for k, v in r.items() if k != "task_id"} for r in rows])
    assert [f.severity for f in bare.findings if f.code == "duplicate-id"] == ["warning"]
    again = load_tasks([ASKS, ASKS])  # the task itself
    assert "asks the same" in next(f.message for f in again.findings if f.severity == "error")


BLUE = {"role": "assistant", "content": "It is blue."}


@pytest.mark.parametrize(
    ("fields", "answer"),
    [
        ({"completion": [BLUE]}, "It is blue."),
        ({"completion": BLUE}, "It is blue."),
        ({"criteria": ["x"], "response": {"from": "gpt", "value": "It is blue."}}, "It is blue."),
        ({"criteria": ["x"], "response": [BLUE, {"role": "tool", "content": "?"}, BLUE]}, None),
        ({"criteria": ["x"], "response": {"text": "It is blue."}}, "It is blue."),
        ({"chosen": BLUE, "rejected": {"role": "assistant", "content": "No."}}, "It is blue."),
    ],
    ids=str,
)
def test_an_answer_that_is_a_chat_or_a_turn_is_its_last_answer(fields, answer):
    """A judge and a trainer got the JSON text of the turns, as TRL's page on forms writes them."""
    found = load_tasks([{"prompt": "What colour?", **fields}])
    codes = {f.code for f in found.findings}
    assert found.responses[0].text == "It is blue."
    assert codes == ({"unread-turns"} if answer is None else set())


def test_several_answers_under_one_name_are_an_error():
    """They were one answer, the JSON text of a list."""
    found = load_tasks([{"prompt": "p", "criteria": ["x"], "response": ["a", "b"]}])
    assert [(f.code, f.severity) for f in found.findings] == [("field-type", "error")]


@pytest.mark.parametrize("mark", ["label", "kto_tag"])
def test_undesired_chats_are_not_to_be_imitated(mark):
    """150 of 300 rows of LLaMA-Factory's file for KTO were demonstrations."""
    chat = [{"role": "user", "content": "q"}, {"role": "assistant", "content": "a"}]
    rows = [{"messages": chat, mark: x} for x in (True, False, "false")]
    found = load_tasks(rows)
    roles = [r.meta["role"] for r in found.responses]
    assert roles == ["demonstration", "undesired", "undesired"] and not found.findings
    assert load_tasks([{"messages": chat, mark: "sports"}]).findings


def test_raters_who_did_not_label_give_no_unknown_verdicts():
    """Parquet unites the raters of all rows: of 4 labels there were 12, and no grade."""
    row = {"prompt": "p", "criteria": [{"id": "a", "text": "x"}], "response": "R"}
    found = load_tasks([{**row, "labels": {"a": {"r1": 1, "r2": None, "r3": None}}}])
    assert [(v.judge, v.status) for v in found.verdicts] == [("human:r1", "met")]


def test_answers_that_name_their_task_by_its_prompt_are_its_answers():
    """IFBench's own file of responses has a prompt and a response: 294 tasks without criteria came
    beside the 300, and no answer was judged."""
    rows = [{"prompt": f"Q{i}", "criteria": ["x"]} for i in range(3)]
    assert len(load_tasks(rows).joined(load_tasks([{"prompt": "Q0", "response": "R"}])).tasks) == 3
    tasks = load_tasks([{**r, "id": f"k{i}"} for i, r in enumerate(rows)])
    said = [{"prompt": f"Q{i}", "response": f"R{i}"} for i in (2, 0, 2)]
    both = tasks.joined(load_tasks(said))
    told = [(r.task_id, r.id, r.text) for r in both.responses]
    assert len(both.tasks) == 3 and not [f for f in both.findings if f.severity == "error"]
    again = ("k2", "response#2", "R2")
    assert told == [("k2", "response", "R2"), ("k0", "response", "R0"), again]


@pytest.mark.parametrize(
    ("given", "sources"),
    [
        ({"S1": "x", "S2": None}, {"S1": "x"}),
        ([{"id": "S1", "text": "x"}, {"id": "S2", "text": None}, None], {"S1": "x"}),
        ("{'S1': 'x', 'S2': 'y'}", {"S1": "x", "S2": "y"}),
        ('[{"id": "S1", "text": "x"}]', {"S1": "x"}),
        ([{"S1": "x"}, {"S7": "y"}, "z"], {"S1": "x", "S7": "y", "S3": "z"}),
        ({"S1": {"text": "x", "title": "t"}}, {"S1": "x"}),
    ],
)
def test_sources_of_every_table_are_the_texts_that_may_be_cited(given, sources):
    """Parquet writes null where another row has a source: it became one with the text "null";
    the sources of a CSV by pandas were one, Python's repr."""
    found = load_tasks([{"id": "a", "prompt": "p", "sources": given, "criteria": ["c"]}])
    assert dict(found.tasks[0].sources) == sources
    more = "title" in str(given)
    assert [f.field for f in found.findings] == ["sources: title"] * more
    assert found.tasks[0].meta == ({"source S1": {"title": "t"}} if more else {})


def test_the_truth_in_a_cell_is_the_object_that_it_says():
    """No verifier found the expected answer in Python's repr, and nothing said so."""
    row = {"id": "a", "prompt": "p", "criteria": ["c"], "truth": "{'expected_answer': '5'}"}
    assert load_tasks([row]).tasks[0].truth == {"expected_answer": "5"}


@pytest.mark.parametrize("field", ["source", "model", "sample"])
def test_equal_texts_of_two_models_in_a_table_are_two_answers(field):
    """Of ten answers of a model that were right in five, the five wrong ones remained: its right
    ones were the other model's, with the labels of both."""
    said = [("gpt", "Yes", "met"), ("llama", "Yes", "unmet"), ("llama", "No", "met")]
    row = {"prompt": "Q", "criterion": "Right"}
    rows = [{**row, field: m, "response": t, "label": x} for m, t, x in said]
    found = load_tasks([*rows, {**row, "response": "Yes", "label": "met", "rater": "ann"}])
    names = [r.id for r in found.responses]
    assert [r.text for r in found.responses] == ["Yes", "Yes", "No"] and len(set(names)) == 3
    given = [(names.index(v.response_id), v.status) for v in found.verdicts]
    assert given == [(0, "met"), (1, "unmet"), (2, "met"), (0, "met")]
    assert [f.code for f in found.findings if f.severity != "info"] == ["duplicate-id"]


def test_a_label_row_that_stands_twice_counts_once():
    """Thirty rows of which fifteen stood twice gave 45 verdicts, and a mean with n = 45."""
    row = {"prompt": "Q", "response": "A", "criterion": "c", "label": "met"}
    found = load_tasks([row, {**row, "response": "B"}, row, {**row, "rater": "ann"}])
    assert [v.judge for v in found.verdicts] == ["human", "human", "human:ann"]
    assert "1 rows" in next(f.message for f in found.findings if f.code == "duplicate-row")


@pytest.mark.parametrize("named", ["task_id", "prompt"])
def test_answers_of_a_second_model_that_are_joined_keep_their_model_and_their_labels(named):
    """Those whose text the first model had given too were gone, and all of this model that were
    left were wrong; by prompt they were refused for an id that no file had."""
    rows = [{"id": f"t{i}", "prompt": f"Q{i}", "criteria": ["x"]} for i in range(2)]
    place = {"task_id": "t{}", "prompt": "Q{}"}[named]
    gpt, llama, more = (
        [{named: place.format(i), "response": t[i], "model": m} for i in range(2)]
        for m, t in (("gpt", "YN"), ("llama", "YY"), (None, "YN"))
    )
    both = load_tasks(rows).joined(load_tasks(gpt)).joined(load_tasks(llama))
    said = sorted((r.task_id, r.text, r.meta["model"]) for r in both.responses)
    assert said == [
        ("t0", "Y", "gpt"),
        ("t0", "Y", "llama"),
        ("t1", "N", "gpt"),
        ("t1", "Y", "llama"),
    ]
    assert len({r.ids for r in both.responses}) == 4
    assert [f.severity for f in both.findings if f.code == "duplicate-id"] == ["warning"]
    assert both.joined(load_tasks(llama)).responses == both.responses
    assert len(both.joined(load_tasks(more)).responses) == 4  # whose they are is not said


def test_a_joined_answer_of_one_id_is_told_more_of_or_refused():
    """The confidence of the second file was dropped, or the second answer, and nothing said so."""
    task = load_tasks([{"id": "t", "prompt": "p", "criteria": ["x"]}])
    row = {"task_id": "t", "response_id": "r", "response": "Yes"}
    told = load_tasks([{**row, "confidence": 0.9, "model": "gpt"}])
    both = task.joined(load_tasks([row])).joined(told)
    assert [(r.confidence, r.meta) for r in both.responses] == [(0.9, {"model": "gpt"})]
    for other in ({"confidence": 0.1}, {"model": "llama"}):
        with pytest.raises(DataError, match="another answer 'r'"):
            both.joined(load_tasks([{**row, **other}]))


def test_a_prompt_of_several_tasks_names_none_of_them():
    tasks = load_tasks([{"id": i, "prompt": "Q", "criteria": [i]} for i in "ab"])
    with pytest.raises(DataError, match="'a', 'b' ask what"):
        tasks.joined(load_tasks([{"prompt": "Q", "response": "R"}]))


@pytest.mark.parametrize("field", ["system", "passage"])
def test_an_answer_is_not_paired_by_the_number_of_its_row(field):
    """The first answer was one to the first task of its prompt, whatever its system asked for."""
    rows = [{"prompt": "Q", field: i, "criteria": [i]} for i in ("S1", "S2")]
    both = load_tasks(rows).joined(load_tasks([{"prompt": "Q\n", field: "S2", "response": "R"}]))
    assert [r.task_id for r in both.responses] == ["row-2"] and len(both.tasks) == 2
    with pytest.raises(DataError, match="'row-1', 'row-2' ask what"):
        load_tasks(rows).joined(load_tasks([{"prompt": "Q", "response": "R"}]))


def test_answers_that_ask_what_no_task_asks_are_counted():
    """Eight of 172 answers stood on tasks of their own without a criterion, and nothing said so."""
    tasks = load_tasks([{"id": "a", "prompt": "Q", "system": "S", "criteria": ["x"]}])
    said = [{"prompt": p, "system": s, "response": "R"} for p, s in (("Q", "S"), ("Q", "T"))]
    both = tasks.joined(load_tasks([*said, {"prompt": "q", "response": "R"}]))
    found = [f for f in both.findings if f.code == "unknown-task"]
    assert [r.task_id for r in both.responses] == ["a", "row-2", "row-3"]
    assert [(f.severity, f.message[:9]) for f in found] == [("warning", "2 answers")]


@pytest.mark.parametrize("text", ['{\n  "a": 1.00,\n  "a": 2}', "[1,\n2]", '["a", "b"]'])
def test_an_answer_that_is_json_stays_as_it_stands(text):
    """Of 319 real pairs 12 taught another layout: the text was parsed and written anew."""
    found = load_tasks([{"prompt": "Give JSON.", "chosen": text, "rejected": "no"}])
    assert found.responses[0].text == text and not found.findings


@pytest.mark.parametrize("write", [str, json.dumps])
def test_a_chat_that_pandas_wrote_into_a_cell_is_a_chat(write):
    """The prompt, or what was learnt, was the text "[{'role': 'system', ...": rubrics were read."""
    user, said = {"role": "user", "content": "It's?"}, {"role": "assistant", "content": "A"}
    chat = [{"role": "system", "content": "S"}, user]
    task = load_tasks([{"prompt": write(chat), "rubrics": write([{"criterion": "x"}])}]).tasks[0]
    assert (task.system, task.prompt, task.criteria[0].text) == ("S", "It's?", "x")
    assert load_tasks([{"messages": write([*chat, said])}]).responses[0].text == "A"
    pair = load_tasks([{"prompt": "Q", "chosen": write([said]), "rejected": write([said, user])}])
    assert pair.responses[0].text == "A"
    answer = load_tasks([{"task_id": "t", "response_id": "r", "response": write([said])}])
    assert answer.responses[0].text == "A"


def test_a_chat_that_numpy_wrote_into_a_cell_is_a_chat_or_an_error():
    """Parquet to CSV by pandas: both answers of a pair were the repr of the whole chat."""
    user, said = {"role": "user", "content": "It's {} {}?"}, {"role": "assistant", "content": "A"}
    cells = str(pd.Series([user, said]).to_numpy())
    assert "}\n {" in cells
    found = load_tasks([{"chosen": cells, "rejected": cells.replace("'A'", "'B'")}])
    assert found.tasks[0].prompt == "It's {} {}?" and not found.findings
    assert [r.text for r in found.responses] == ["A", "B"]
    nested = "[{'role': 'user', 'content': array([{'text': 'Hi'}], dtype=object)}]"
    for row in ({"prompt": nested, "criterion": "x"}, {"prompt": "Q", "response": nested}):
        found = load_tasks([row])
        assert [f.code for f in found.findings if f.severity == "error"] == ["unreadable-list"]


def test_pairs_of_several_answers_keep_their_prompt():
    rows = [{"prompt": "Q", "chosen": ["a", "b"], "rejected": ["c", "d"]}]
    assert load_tasks(rows).tasks[0].prompt == "Q" and len(load_tasks(rows).findings) == 2


def test_a_list_of_answers_beside_a_prompt_alone_is_answers():
    """Two answers were an info: nothing reads the field 'responses'."""
    found = load_tasks([{"prompt": "p?", "responses": ["a", "b"]}])
    assert [r.text for r in found.responses] == ["a", "b"] and not found.findings


@pytest.mark.parametrize("field", ["judge_model", "llm_judge", "evaluator", "grader", "judge"])
def test_labels_that_a_model_gave_are_no_persons(field):
    """kit agree measured a judge against a model and called it people."""
    flat = {"prompt": "a?", "criterion": "x", "response": "ans", "label": "met", field: "gpt-4o"}
    rows = {"task_id": "q", "response": "ans", "labels": {"c1": "met"}, field: "gpt-4o"}
    for row in (flat, rows):
        assert [v.judge for v in load_tasks([row]).verdicts] == ["gpt-4o"]
    person = load_tasks([{**rows, "judge_model": None, field: None, "expert": "ann"}])
    assert [v.judge for v in person.verdicts] == ["human:ann"]


def test_who_gave_a_label_is_read_alike_in_a_row_a_list_and_an_object():
    """A judge that calls itself human hid the rater beside it, and judge_model was a row's alone."""
    for who, judge in (
        ({"judge": "human", "rater": "ann"}, "human:ann"),
        ({"judge_model": "gpt-4o"}, "gpt-4o"),
    ):
        one = {"criterion_id": "c1", "label": "met", **who}
        held = ({"c1": "met"}, [one], {"c1": {"label": "met", **who}})
        for i, labels in enumerate(held):
            row = {"task_id": "q", "response": "a", "labels": labels, **(who if i == 0 else {})}
            assert [v.judge for v in load_tasks([row]).verdicts] == [judge]


@pytest.mark.parametrize(
    "answers",
    [
        {"completion": [{"role": "assistant", "content": "a", "turn": "SECOND"}]},
        {
            "chosen": [{"role": "assistant", "content": "a", "turn": "SECOND"}],
            "rejected": [{"role": "assistant", "content": "b", "turn": "SECOND"}],
        },
    ],
)
def test_fields_of_a_prompts_turns_are_kept_where_the_answer_has_fields_too(answers):
    """The answer's turns were kept behind the prompt's as they had been rebuilt; "it is kept in
    meta" was false of the prompt's."""
    asked = [{"role": "user", "content": [{"type": "text", "text": "u"}], "turn": "FIRST"}]
    found = kit.load([{"prompt": asked, **answers}])
    kept = found.tasks[0].meta["messages"]
    assert kept[0] == asked[0] and kept[1]["turn"] == "SECOND"


@pytest.mark.parametrize(
    ("parts", "text", "kind"),
    [
        (
            [{"type": "thinking", "thinking": "HIDDEN"}, {"type": "text", "text": "4."}],
            "4.",
            "think",
        ),
        (
            [{"type": "reasoning", "text": "HIDDEN"}, {"type": "output_text", "text": "4."}],
            "4.",
            "re",
        ),
        ([{"type": "text", "text": "4."}, {"type": "tool_use", "name": "f"}], "4.", "tool_use"),
        ([{"type": "text", "text": "4."}, {"type": "image_url", "image_url": "u"}], "4.", "image"),
        ([{"type": "markdown", "text": "4."}, "so"], "4.\nso", "markdown"),
        ([{"type": "thinking", "thinking": "HIDDEN"}], "", "thinking"),
        ([{"type": "tool_use", "name": "f"}], '{"type": "tool_use", "name": "f"}', "tool_use"),
    ],
)
def test_what_is_judged_of_an_answer_in_parts_is_what_it_says(parts, text, kind):
    """The hidden reasoning was judged, as JSON or as text, and nothing was said."""
    turns = [{"role": "assistant", "content": parts}]
    for row in ({"task_id": "t", "response_id": "r"}, {"prompt": "2+2?"}):
        found = load_tasks([{**row, "response": turns}])
        assert [r.text for r in found.responses] == [text]
        assert found.responses[0].meta["turns"] == turns
        (said,) = [f for f in found.findings if f.code == "field-type"]
        assert said.severity == "warning" and kind in said.message
    history = [{"role": "user", "content": "2+2?"}, *turns, {"role": "user", "content": "Sure?"}]
    told = load_tasks([{"prompt": history, "response": "Yes."}])
    assert "HIDDEN" not in told.tasks[0].history[1]["content"] and told.tasks[0].meta["messages"]
    assert kind in told.findings[0].message


def test_blocks_of_text_of_one_answer_are_one_text():
    """An answer with citations has a block for each sentence: a line each was judged."""
    blocks = [{"type": "text", "text": t} for t in ("The grass is ", "green", " and tall.")]
    blocks[1]["citations"] = []
    thought = {"text": "HIDDEN", "thought": True}
    turn = {"role": "assistant", "content": [thought, *blocks]}
    (said,) = kit.load([{"task_id": "t", "response": [turn]}]).responses
    assert said.text == "The grass is green and tall."


def test_an_answer_in_parts_that_are_text_needs_no_word():
    """Only what is left out or shown as JSON is said."""
    said = [{"type": "text", "text": "4."}, {"type": "text", "value": "Sure."}, "So."]
    turns = [{"role": "assistant", "content": said}]
    found = load_tasks([{"task_id": "t", "response_id": "r", "response": turns}])
    assert (found.responses[0].text, found.findings) == ("4.Sure.So.", [])


@pytest.mark.parametrize("held", [json.dumps, repr, list])
@pytest.mark.parametrize(
    ("kinds", "text"),
    [
        (("thinking", "text"), "4."),
        (("reasoning", "output_text"), "4."),
        (("text", "text"), "H4."),  # as the services join them
    ],
)
def test_parts_of_an_answer_that_a_cell_holds_as_text_are_parts(held, kinds, text, tmp_path):
    """Each cell of a CSV file does: the JSON was judged and learned, hidden reasoning and all."""
    parts = [{"type": kind, "text": said} for kind, said in zip(kinds, "H4", strict=True)]
    parts[1]["text"] = "4."
    row = {"task_id": "t", "response_id": "r", "response": held(parts)}
    pair = {"prompt": "2+2?", "chosen": held(parts), "rejected": held(parts[1:])}
    for rows in ([row], [{"prompt": "p", "rubric": ["A"], **row}], [pair]):
        found = load_tasks(rows)
        assert found.responses[0].text == text
        assert bool(found.findings) == (kinds[0] != "text")
    assert [r.text for r in found.responses] == [text, "4."]


@pytest.mark.parametrize(
    "answer",
    [
        [{"type": "circle", "r": 3}, {"type": "text", "x": 1}],
        [{"type": "function", "name": "f"}],
        [{"name": "a"}],
    ],
)
def test_an_answer_that_is_json_is_no_parts(answer):
    """What was asked for may be JSON whose objects have a type."""
    said = json.dumps(answer)
    found = load_tasks([{"task_id": "t", "response_id": "r", "response": said}])
    assert (found.responses[0].text, found.findings) == (said, [])
