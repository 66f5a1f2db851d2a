"""What is not in its form is an error that names file, row and field, and what to do."""

import pytest

from kit import load
from kit.errors import DataError, MissingError
from kit.records.tables import table

GOOD = {"id": "good", "prompt": "p", "rubrics": ["x"]}
RLVR = {"task_id": "t", "prompt": "p", "rubric - 1. criterion": "x"}
TABLE = {"task_id": "t", "prompt": "p", "criterion": "x", "criterion_id": "k"}
USER = {"role": "user", "content": "u"}
OTHER = {**USER, "content": "other"}
REPLY = {"role": "assistant", "content": "a"}
ROWS = {  # a row that cannot be read -> parts of the message
    "no text": ({"rubrics": [{"desc": "x"}]}, ["rubrics 1", "'desc'", "{'desc': 'text'}"]),
    "unread": ({"rubrics": [{"text": "x", "wieght": 2}]}, ["rubrics 1", "'wieght'", "{'wieght': 'weight'}"]),
    "twice": ({"rubrics": [{"text": "x", "description": "y"}]}, ["rubrics 1", "'description'"]),
    "weight": ({"rubrics": [{"text": "x", "weight": "2"}]}, ["rubrics 1", "float", "$.weight"]),
    "weight is true": ({"rubrics": [{"text": "x", "weight": True}]}, ["rubrics 1", "$.weight"]),
    "weight is nan": ({"rubrics": [{"text": "x", "weight": float("nan")}]}, ["rubrics 1", "nan"]),
    "weight is huge": ({"rubrics": [{"text": "x", "weight": 1e308}]}, ["rubrics 1", "1e+308"]),
    "blank text": ({"rubrics": ["x", " "]}, ["rubrics 2", "text"]),
    "number": ({"rubrics": ["x", 3]}, ["rubrics 2", "criterion"]),
    "no list": ({"rubrics": {"a": 1}}, ["'rubrics'", "list"]),
    "check": ({"rubrics": [{"text": "x", "check": {"name": "wrods"}}]}, ["c1", "'wrods'", "words"]),
    "argument": ({"rubrics": [{"text": "x", "check": {"name": "words", "mx": 3}}]}, ["c1", "mx"]),
    "levels": ({"rubrics": [{"text": "x", "levels": ["one"]}]}, ["rubrics 1", "level"]),
    "same id": ({"rubrics": [{"id": "a", "text": "x"}, {"id": "a", "text": "y"}]}, ["'a'", "unique"]),
    "blank prompt": ({"prompt": " "}, ["prompt"]),
    "prompt": ({"prompt": 3}, ["$.prompt"]),
    "split": ({"split": "tset"}, ["split", "'tset'", "test"]),
    "id": ({"id": True}, ["'id'", "True"]),
    "turn": ({"prompt": [{**USER, "name": "bob"}]}, ["turn 1", "'name'", "note"]),
    "turn text": ({"prompt": ["u"]}, ["turn 1", "str", '{"role": "user"']),
    "list as text": ({"rubrics": "Is kind."}, ["field 'rubrics'", "JSON", '["...", "..."]']),
    "chat": ({"prompt": [USER, REPLY]}, ["chat"]),
    "tags": ({"tags": "a"}, ["tags", "column"]),
    "slip": ({"rubrics": None, "critera": ["x"]}, ["'critera'", "{'critera': 'criteria'}"]),
}  # fmt: skip
FORMS = {  # the same for rows of other forms: the whole row
    "rlvr rest": ({**RLVR, "rubric - 2. weight": 3}, ["rubric - 2. criterion", "add it"]),
    "rlvr field": ({**RLVR, "rubric - 1. wieght": 3}, ["rubric 1", "'wieght'"]),
    "rlvr spelling": ({**RLVR, "rubric - x. criterion": "y"}, ["rubric - x. criterion"]),
    "rlvr rating": ({**RLVR, "responseA": "a", "rubric - 1. ratingA": "good"}, ["'c1'", "'good'", "met"]),
    "rlvr no answer": ({**RLVR, "rubric - 1. ratingB": "🟢"}, ["responseB"]),
    "sign": ({"prompt": "p", "negative_rubrics": [{"text": "x", "weight": -1}]}, ["negative_rubrics 1", "-1"]),
    "snippets": (
        {"prompt": "p", "positive_rubrics": ["x"], "tool_output": "<snippet id=a>1</snippet><snippet id=a>2</snippet>"},
        ["<snippet>"],
    ),
    "json": ({"messages": [USER], "ground_truth": '{"a": '}, ["ground_truth", "JSON"]),
    "kwargs": ({"prompt": "p", "instruction_id_list": ["a"], "kwargs": []}, ["kwargs"]),
    "argument": (
        {"prompt": "p", "instruction_id_list": ["keywords:existence"], "kwargs": [{}]},
        ["keywords:existence", "keywords"],
    ),
    "table answer": ({**TABLE, "label": "met"}, ["response"]),
    "table id": ({"qid": 1, "prompt": "p", "criterion": "x"}, ["{'qid': 'task_id'}"]),
    "label": ({**TABLE, "response": "r", "label": "0.7"}, ["'k'", "'0.7'", "3/5"]),
    "answer id": ({"qid": "t", "response": "r"}, ["'task_id'", "{'qid': 'task_id'}"]),
    "answer made id": ({"task_id": "t", "rid": 1, "response": "r"}, ["'rid'", "'response_id'"]),
    "slip of an id": ({"task_di": "t", "response_id": "r", "response": "a"}, ["{'task_di': 'task_id'}"]),
    "id of a label": ({"task_id": "t", "response_id": "r", "cid": "k", "label": "met"}, ["{'cid': 'criterion_id'}"]),
    "level": ({"task_id": "t", "response_id": "r", "criterion_id": "k", "label": "warm"}, ["'levels'", "'points'"]),
    "levels of a label": (
        {"task_id": "t", "response_id": "r", "criterion_id": "k", "label": "met", "levles": '["a", "b"]'},
        ["{'levles': 'levels'}"],
    ),
    "all ids": ({"tid": "t", "answer_id": "r", "cid": "k", "label": "met"}, ["'answer_id': 'response_id'"]),
    "grade": ({"task_id": "t", "response_id": "r", "criterion_id": "k", "grade": "met"}, ["{'grade': 'label'}"]),
    "text of an answer": ({"task_id": "t", "response_id": "r", "text": "a"}, ["{'text': 'response'}"]),
    "with its prompt": ({"task_id": "t", "prompt": "p", "response_id": "r", "text": "a"}, ["{'text': 'response'}"]),
    "beside a rubric": ({**GOOD, "response_id": "r", "text": "a"}, ["'response'", "{'text': 'response'}"]),
    "text and id": ({"task_id": "t", "aid": "r", "text": "a"}, ["{'text': 'response', 'aid': 'response_id'}"]),
    "completion": ({"task_id": "t", "completion": "a"}, ["{'completion': 'response'}"]),
    "text of a criterion": ({"task_id": "t", "prompt": "p", "criterion_id": "k", "text": "x"}, ["'text': 'criterion'"]),
    "slip of a record": ({"record": "task", "id": "t", "promt": "p"}, ["`promt`", "{'promt': 'prompt'}"]),
    "second id": ({"id": 1, "qid": 7, "prompt": "p"}, ["'qid'"]),
    "task made id": ({"qid": 7, "prompt": "p", "rubrics": ["x"]}, ["'qid'", "{'qid': 'task_id'}"]),
    "answer text": ({"task_id": "t", "response": 3}, ["text"]),
    "confidence": ({"task_id": "t", "response": "r", "confidence": 3}, ["confidence", "1", "0.95"]),
    "confidence word": ({"task_id": "t", "response": "r", "confidence": "high"}, ["confidence"]),
    "label id": ({"task_id": "t", "criterion_id": "k", "label": "met", "inclusion": 1}, ["form"]),
    "pair": ({"prompt": "p", "chosen": "c"}, ["'rejected'"]),
    "pair without prompt": ({"chosen": "c", "rejected": "r"}, ["'prompt'", "to do: add 'prompt'"]),
    "pair chats": ({"chosen": [USER, REPLY], "rejected": [OTHER, REPLY]}, ["chosen"]),
    "layout": ({"text": "loose"}, ["'text'", "### Instruction"]),
    "false demonstration": ({"prompt": "p", "completion": "c", "label": False}, ["label", "leave the row out"]),
    "demonstration": ({"prompt": "p", "completion": " "}, ["learn"]),
    "kit": ({"record": "task", "id": "t", "prompt": "p", "wrong": 1}, ["wrong"]),
    "kit kind": ({"record": "grade", "task_id": "t"}, ["grade"]),
    "sign in words": ({"query": "q", "rubric": [{"type": "negative", "text": "x"}]}, ["rubric 1", "'type'"]),
    "other lists": ({"question": "q", "Answer Critical": [{"Ingredient": "i"}]}, ["'Answer Critical'"]),
    "list of labels": ({**TABLE, "response": "r", "label": [True], "rater": ["a"]}, ["[True]", "row for each rater"]),
    "rlvr 01": ({**RLVR, "rubric - 01. criterion": "y"}, ["rubric - 01. criterion"]),
    "truth object": ({"messages": [USER], "ground_truth": '{"rubriks": ["x"]}'}, ["ground_truth", "dict"]),
    "truth list": ({"messages": [USER], "ground_truth": '[{"description": "x"}]'}, ["ground_truth", "list"]),
    "open snippet": (
        {"prompt": "p", "positive_rubrics": ["x"], "tool_output": "<snippet id=a>1 <snippet id=b>2</snippet>"},
        ["<snippet>"],
    ),
    "tool list": ({"prompt": "p", "positive_rubrics": ["x"], "tool_output": ["a"]}, ["'tool_output'"]),
    "pair systems": (
        {"chosen": [{"role": "system", "content": "s"}, USER, REPLY], "rejected": [USER, REPLY]},
        ["chosen", "system"],
    ),
    "chat in Python's form": ({"messages": "[{'role': 'user', 'content': 'u'}]"}, ["'messages'", "JSON"]),
    "no form": ({"a": 1}, ["'a'", "form"]),
    "no object": (["a"], ["list", "object"]),
}  # fmt: skip


def message(rows, **options):
    with pytest.raises(DataError) as e:
        load(rows, **options)
    return str(e.value)


@pytest.mark.parametrize("name", ROWS)
def test_a_broken_rubric_row_is_refused_with_its_place(name):
    change, parts = ROWS[name]
    text = message([GOOD, {**GOOD, "id": "bad", **change}])
    assert all(part in text for part in ["row 2", *parts]), text
    assert "correct these rows" not in text


@pytest.mark.parametrize("name", FORMS)
def test_a_broken_row_of_another_form_is_refused_with_its_place(name):
    row, parts = FORMS[name]
    text = message([row])
    assert all(part in text for part in ["row 1", *parts]), text
    assert "correct these rows" not in text


@pytest.mark.parametrize(
    ("name", "body", "parts"),
    [
        ("a.jsonl", '{"prompt": "p"}\n{"prompt": "p"', ["a.jsonl, line 2", "JSON"]),
        ("a.jsonl", '{"prompt": "p"}\n{"prompt": "p", "prompt": "q"}', ["a.jsonl, line 2", "'prompt'", "twice"]),
        ("a.jsonl", '{"prompt": "p", "n": NaN}', ["a.jsonl, line 1", "NaN"]),
        ("a.jsonl", '{"prompt": "\\ud83d"}', ["a.jsonl, line 1"]),
        ("a.json", '[{"prompt": "p"}, {"prom', ["a.json"]),
        ("a.json", "3", ["a.json", "rows"]),
        ("a.jsonl", "", ["a.jsonl", "no rows"]),
        ("a.csv", "prompt,rubrics\np\n", ["a.csv, row 2", "cells"]),
        ("a.csv", 'prompt,rubrics\n"p,x\n', ["a.csv, line"]),
        ("a.csv", "prompt,prompt\np,q\n", ["a.csv", "same name"]),
        ("a.csv", "task_id;prompt\nt;p\n", ["a.csv", "semicolons", "commas"]),
        ("a.csv", "task_id,prompt,criterion,weight\nt,p,x,much\n", ["a.csv, row 2", "'weight'", "'much'"]),
        ("a.csv", "task_id,prompt,criterion,required\nt,p,x,maybe\n", ["a.csv, row 2", "'required'"]),
        ("a.csv", "task_id,prompt,criterion,check\nt,p,x,{words}\n", ["a.csv, row 2", "'check'", "JSON"]),
        ("a.parquet", "PAR1 cut", ["a.parquet"]),
        ("a.jsonl.gz", "no gzip", ["a.jsonl.gz"]),
        ("a.xlsx", "", ["'.xlsx'", ".jsonl"]),
    ],
)  # fmt: skip
def test_a_broken_file_is_one_error_with_its_place(tmp_path, name, body, parts):
    (tmp_path / name).write_text(body)
    text = message(tmp_path / name)
    assert all(part in text for part in parts), text


def test_a_file_in_another_encoding_is_refused(tmp_path):
    (tmp_path / "a.jsonl").write_bytes('{"prompt": "é"}'.encode("latin-1"))
    assert "UTF-8" in message(tmp_path / "a.jsonl")


def test_what_is_not_there_is_missing(tmp_path):
    for source in (tmp_path / "no.jsonl", "hf://datasets/kit/none/file.jsonl"):
        with pytest.raises(MissingError):
            load(source)
    with pytest.raises(MissingError, match="hf://datasets/OWNER/NAME/FILE"):
        load("hf://datasets/kit/none")


def test_a_fault_is_printed_once_with_its_number():
    rows = [{**GOOD, "id": n, "rubrics": [n]} for n in range(50)]
    rows.append({**GOOD, "id": 50, "split": "tset"})
    text = message(rows)
    assert text.startswith("the criterion is not a text\n  where: row 1, rubrics 1 and 49 more\n")
    assert text.count("criterion") == 1 and "and row 51, task '50': the split is 'tset'" in text


def test_skip_leaves_rows_out_and_counts_them():
    rows = [GOOD, {**GOOD, "id": "b", "rubrics": [3]}, {"id": "c", "prompt": "p"}]
    s = load(rows, on_error="skip")
    assert [t.id for t in s] == ["good"]
    found = [f for f in s.findings if f.severity == "error"]
    assert [(f.code, f.rows, f.where) for f in found] == [
        ("skipped-rows", 1, "row 2, rubrics 1"),
        ("skipped-rows", 1, "row 3"),
    ]
    assert "'rubric'" in found[1].message and "its fields are 'id', 'prompt'" in found[1].suggestion
    with pytest.raises(DataError):
        load(rows[1:2], on_error="skip")  # nothing is left


def test_fields_are_renamed_once_for_rows_and_criteria():
    rows = [{"key": "t", "ask": "p", "rubrics": [{"desc": "x", "points": 2}]}]
    s = load(rows, fields={"key": "task_id", "ask": "prompt", "desc": "text"})
    assert (s[0].id, s[0].prompt, s[0].criteria[0].text) == ("t", "p", "x")
    slip = message([{**GOOD, "rubrics": [{"desc": "x"}]}], fields={"dsc": "text"})
    assert "'dsc', which no row has" in slip and "did you mean 'desc'?" in slip
    assert "twice" in message([{**GOOD, "ask": "q"}], fields={"ask": "prompt"})


def test_equal_rows_are_kept_and_different_tasks_of_one_id_are_refused():
    row = {"prompt": "p", "completion": "c"}
    s = load([row, row, {**row, "completion": "d"}])
    assert len(s) == 3 == len({t.id for t in s}) == len(s.responses)
    label = {"task_id": "t", "response_id": "r", "criterion_id": "k", "label": "met"}
    for same in (s, load([label, label])):
        assert [(f.code, f.rows) for f in same.findings] == [("equal-rows", 1)]
    assert [f.code for f in load([label, {**label, "label": ""}]).findings] == ["blank-label"]
    assert "two different tasks have the id 'good'" in message([GOOD, {**GOOD, "prompt": "q"}])


LABELLED = {**TABLE, "response": "r", "response_id": "r", "label": "met"}


@pytest.mark.parametrize(
    "rows",
    [
        [TABLE, {**TABLE, "prompt": "q"}],
        [TABLE, {**TABLE, "criterion": "y"}],
        [LABELLED, {**LABELLED, "response": "s", "label": None}],
        [LABELLED, {**LABELLED, "label": "unmet"}],
    ],
)
def test_rows_of_a_table_that_disagree_are_refused(rows):
    assert "row 2" in message(rows)


MADE_ID = {k: v for k, v in TABLE.items() if k != "criterion_id"}


@pytest.mark.parametrize("row", [TABLE, {"task_id": "t", "response": "r"}, MADE_ID])
def test_an_equal_row_of_a_table_or_of_answers_is_refused(row):
    assert "row 2" in message([row, row])


def test_a_label_on_another_scale_does_not_join():
    scale = {"id": "k", "text": "x", "levels": ["0", "1", "2"]}
    points = {"id": "p", "text": "x", "scale": "points", "points": 10}
    tasks = load([{"id": "t", "prompt": "p", "rubrics": [scale, points]}])
    labels = load([{"task_id": "t", "response_id": "r", "response": "a", "labels": {"k": "1"}}])
    with pytest.raises(DataError, match="t / r / k is met or unmet"):
        tasks.joined(labels)
    ids = {"task_id": "t", "response_id": "r", "criterion_id": "k"}
    labels = load([{**ids, "label": "0", "levels": ["2", "1", "0"]}])
    with pytest.raises(DataError, match="t / r / k .*'2', '1', '0'.*'0', '1', '2'"):
        tasks.joined(load([{"task_id": "t", "response_id": "r", "response": "a"}])).joined(labels)
    with pytest.raises(DataError, match="'2', '1', '0'"):
        table([], human=labels, tasks=tasks)
    labels = load([{**ids, "criterion_id": "p", "label": "3/5", "points": 5}])
    with pytest.raises(DataError, match="points 5, its criterion has 10"):
        table([], human=labels, tasks=tasks)


def test_a_form_must_exist():
    assert "rlvr" in message([GOOD], format="rlvrr")
