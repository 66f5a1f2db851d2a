"""What outsiders' files lost or misread: each test is one incident."""

from __future__ import annotations

import csv
import json

import pandas
import pytest

import kit
from kit.__main__ import main
from kit.calibration.files import sketch_file
from kit.checks import check
from kit.data import iter_tasks, load_tasks, read_columns
from kit.errors import DataError
from kit.records import Response

USER, ANSWER = {"role": "user", "content": "Why?"}, {"role": "assistant", "content": "So."}


def codes(tasks):
    return {f.code for f in tasks.findings if f.severity == "error"}


def test_a_verdict_stored_met_and_unmet_is_an_error():
    """The grade was [0, 1] with nothing unknown, and no finding said why."""
    rows = [
        {"record": "task", "id": "1", "prompt": "p", "criteria": [{"id": "c", "text": "x"}]},
        {"record": "response", "task_id": "1", "id": "r", "text": "t"},
    ]
    place = {"task_id": "1", "response_id": "r", "criterion_id": "c", "judge": "j"}
    said = [{"record": "verdict", **place, "status": s} for s in ("met", "unmet")]
    assert "two-labels" in codes(load_tasks([*rows, *said]))
    assert "two-labels" not in codes(load_tasks([*rows, said[0], said[0]]))
    failed = {**said[0], "status": "unknown", "failure": "parse"}
    assert "two-labels" not in codes(load_tasks([*rows, failed, said[0]]))
    both = load_tasks([*rows, *said]).joined(load_tasks(rows[:1]))
    assert sum(f.code == "two-labels" for f in both.findings) == 1


def test_a_cut_rubric_of_open_instruct_is_an_error():
    """The cut JSON was the task's truth, without a finding: nothing would have been judged."""
    row = {"messages": [USER], "dataset": "rubric", "ground_truth": '{"rubrics": [{"descr'}
    tasks = load_tasks([row])
    assert {"unreadable-list", "no-criteria"} <= codes(tasks)
    assert '{"rubrics": [{"descr' in json.dumps(dict(tasks.tasks[0].meta)).replace("\\", "")


@pytest.mark.parametrize("prompt", [{}, {"prompt": "Why?"}])
def test_a_pair_whose_chat_goes_on_after_the_answer_keeps_its_prompt(prompt):
    """The turn behind the answer was taken for the prompt, so 'So.' answered 'Thanks'."""
    thanks = {"role": "user", "content": "Thanks"}
    row = {"chosen": [USER, ANSWER, thanks], "rejected": [USER, ANSWER | {"content": "No."}]}
    tasks = load_tasks([row | prompt])
    assert codes(tasks) == {"unread-turns"}
    assert (tasks.tasks[0].prompt, tasks.responses[0].text) == ("Why?", "So.")
    assert tasks.tasks[0].meta["chosen"][-1] == thanks


def test_open_instruct_gives_back_the_truth_it_was_given():
    """The query that the format repeats beside the rubric came back as a truth."""
    truth = {"query": "p", "rubrics": [{"description": "Names the river.", "weight": 1}]}
    turns = [{"role": "user", "content": "p"}]
    row = {"messages": turns, "dataset": "rubric", "ground_truth": json.dumps(truth)}
    assert load_tasks([row]).tasks[0].truth == {}


@pytest.mark.parametrize(
    "held",
    [
        {
            "id": {"0": "a", "1": "b"},
            "prompt": {"0": "p", "1": "q"},
            "criteria": {"0": ["x"], "1": ["y"]},
        },
        {"id": ["a", "b"], "prompt": ["p", "q"], "criteria": [["x"], ["y"]]},
        {
            "columns": ["id", "prompt", "criteria"],
            "index": [0, 1],
            "data": [["a", "p", ["x"]], ["b", "q", ["y"]]],
        },
    ],
)
def test_a_table_by_column_is_no_single_task(tmp_path, held):
    """DataFrame.to_json writes columns; they were read as one task with the prompt '{"0": ...}'."""
    path = tmp_path / "a.json"
    path.write_text(json.dumps(held))
    with pytest.raises(DataError, match="by its columns"):
        load_tasks(path)


# (instruction, arguments, answer, met by the published checker)
IFEVAL = [
    ("length_constraints:number_paragraphs", {"num_paragraphs": 2}, "a\n***\nb\n***\n", True),
    ("length_constraints:number_paragraphs", {"num_paragraphs": 2}, "***\na\n***\nb", True),
    ("length_constraints:number_paragraphs", {"num_paragraphs": 2}, "a\n***\n", False),
    ("length_constraints:number_paragraphs", {"num_paragraphs": 2}, "a ****** b", False),
    ("length_constraints:number_paragraphs", {"num_paragraphs": 1}, "a ** b", True),
    ("keywords:existence", {"keywords": ["alpha", "beta"]}, "Alphabet betas", True),
    ("keywords:existence", {"keywords": ["alpha", "beta"]}, "Alphabet", False),
    ("detectable_format:number_highlighted_sections", {"num_highlights": 2}, "** ** **b**", False),
    ("detectable_format:number_highlighted_sections", {"num_highlights": 2}, "*a* and **b**", True),
    ("detectable_content:postscript", {"postscript_marker": "P.S."}, "Bye. P. S. hi", True),
    ("detectable_content:postscript", {"postscript_marker": "P.P.S"}, "Bye\nP.S. hi", False),
    ("punctuation:no_comma", {}, "a\uff0cb", True),
    ("length_constraints:number_paragraphs", {"num_paragraphs": 2.0}, "a\n***\nb", True),
    (
        "length_constraints:nth_paragraph_first_word",
        {"num_paragraphs": 2.0, "nth_paragraph": 2.0, "first_word": "So"},
        "a\n\nSo b",
        True,
    ),
    ("fr:keywords:forbidden_words", {"forbidden_words": ["été"]}, "En été.", False),
    ("ja:detectable_format:json_format", {}, "[1]", True),
]


@pytest.mark.parametrize(("name", "arguments", "answer", "met"), IFEVAL)
def test_ifeval_as_its_published_checker_decides(name, arguments, answer, met):
    row = {"key": 1, "prompt": "p", "instruction_id_list": [name], "kwargs": [arguments]}
    task = load_tasks([row]).tasks[0]
    found = check(task, Response(task_id="1", id="r", text=answer), task.criteria[0])
    assert found.status == ("met" if met else "unmet")


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("fr:detectable_format:title", {}),
        ("es:detectable_format:constrained_response", {}),
        ("ja:punctuation:no_comma", {}),
        ("ja:keywords:forbidden_words", {"forbidden_words": ["美容"]}),
        ("de:punctuation:no_comma", {}),
    ],
)
def test_what_another_language_measures_in_its_own_way_is_left_to_a_judge(name, arguments):
    """The English checks decided: of Japanese verdicts by code 31 % differed from the published
    ones, of right French titles each."""
    row = {"key": 1, "prompt": "p", "instruction_id_list": [name], "kwargs": [arguments]}
    t = load_tasks([row])
    assert not t.tasks[0].criteria[0].by_code
    assert [f.code for f in t.findings] == ["no-check"]


def test_an_argument_that_an_instruction_does_not_take_is_kept_and_named():
    """It was kept, and nothing said that the check does not measure it."""
    asked = {"num_words": 3, "relation": "at least", "language": "de", "n": None}
    ids = ["length_constraints:number_words", "punctuation:no_comma"]
    t = load_tasks([{"prompt": "p", "instruction_id_list": ids, "kwargs": [asked, {"max": 2}]}])
    assert [c.meta["kwargs"] for c in t.tasks[0].criteria] == [
        {k: v for k, v in asked.items() if v is not None},
        {"max": 2},
    ]
    named = [(f.severity, f.field) for f in t.findings]
    assert named == [("info", "kwargs: language"), ("info", "kwargs: max")]


def test_an_empty_chat_is_no_prompt_and_roles_have_no_case():
    """The empty list was the prompt '[]', a warning; {"role": "User"} was nobody's turn."""
    rubrics = [{"criterion": "C", "points": 5}]
    rows = [
        {"prompt_id": "a", "prompt": [], "rubrics": rubrics},
        {"prompt_id": "b", "prompt": [USER | {"role": "User"}], "rubrics": rubrics},
    ]
    tasks = load_tasks(rows)
    assert [t.prompt for t in tasks.tasks] == ["", "Why?"]
    assert sum(f.code == "missing-field" and f.row == 1 for f in tasks.findings) == 1


def test_a_bad_label_is_named_by_its_own_line(tmp_path):
    """Every bad label of a task was said to stand in the task's first line."""
    path = tmp_path / "a.csv"
    path.write_text(
        "task_id,prompt,criterion,response,label\n1,p,c1,ans,yes\n1,p,c2,ans,maybe\n1,p,c3,ans,huh\n"
    )
    tasks = load_tasks(path)
    bad = [f.where for f in tasks.findings if f.code == "unreadable-label"]
    assert bad == ["a.csv, line 3", "a.csv, line 4"]
    assert len(tasks.verdicts) == 3


def test_a_table_of_a_german_excel(tmp_path, caplog):
    """WAHR was no label; the weight column beside criteria meta."""
    path = tmp_path / "a.csv"
    path.write_text("id;prompt;criteria;weight\r\n1;p;c;1.5\r\n2;q;d;-2.0\r\n")
    assert [t.criteria[0].weight for t in load_tasks(path).tasks] == [1.5, -2.0]
    path.write_text("task_id;prompt;criterion;response;label\n1;p;c;a;WAHR\n1;p;c;b;FALSCH\n")
    assert [v.status for v in load_tasks(path).verdicts] == ["met", "unmet"]
    path.write_text("conf;right\r\n0.9;WAHR\r\n0.125;FALSCH\r\n")
    found = sketch_file(path, confidence="conf", correct="right")
    assert "divided by ';'" in caplog.text
    assert found.brier == pytest.approx(0.1**2 + 0.125**2)


def test_weights_beside_criteria_fit_or_are_an_error():
    rows = [{"prompt": "p", "criteria": ["a", "b"], "weights": [2, -1]}]
    assert [c.weight for c in load_tasks(rows).tasks[0].criteria] == [2, -1]
    rows = [{"prompt": "p", "criteria": ["a", "b"], "weight": 3}]
    tasks = load_tasks(rows)
    assert "field-mismatch" in codes(tasks)
    assert tasks.tasks[0].meta["weight"] == 3


def test_lines_that_end_in_a_bare_carriage_return(tmp_path):
    path = tmp_path / "a.jsonl"
    path.write_bytes(b'{"prompt": "p", "criteria": ["a"]}\r{"prompt": "q", "criteria": ["a"]}\r')
    assert [t.prompt for t in load_tasks(path).tasks] == ["p", "q"]


def test_a_trailing_comma_is_no_file_cut_off(tmp_path):
    path = tmp_path / "a.json"
    path.write_text('[{"prompt": "p", "criteria": ["a",]},]')
    with pytest.raises(DataError) as e:
        load_tasks(path)
    assert "cut off" not in str(e.value)
    path.write_text('[{"prompt": "p", "criteria": ["a"], "n": tr')
    with pytest.raises(DataError, match="cut off"):
        load_tasks(path)


def test_decimal_commas_are_refused(tmp_path):
    """1,5 was 1.5 and 1.234 was 1.234 beside it: one of the two is a thousand."""
    path = tmp_path / "a.csv"
    path.write_text("id;prompt;criteria;weight\n1;p;c;1,5\n2;q;d;1.234\n")
    said = [f for f in load_tasks(path).findings if f.code == "bad-weight"]
    assert [(f.severity, f.field) for f in said] == [("error", "weight")]
    path.write_text("conf;right\n0,5;1\n0.234;0\n")
    assert read_columns(path, ["conf"])["conf"] == ["0,5", "0.234"]
    with pytest.raises(DataError, match="0,5"):
        sketch_file(path, confidence="conf", correct="right")


def test_a_mixed_file_is_said_to_be_one_and_read_alike_in_any_order():
    """Ten rows of prompts with criteria and ten pairs: whichever stood first decided, in silence."""
    pairs = [{"prompt": f"p{i}", "chosen": "a", "rejected": "b"} for i in range(10)]
    rubrics = [{"prompt": f"q{i}", "rubrics": ["Is short."]} for i in range(10)]
    one, two = load_tasks(pairs + rubrics), load_tasks(rubrics + pairs)
    assert one.format == two.format
    assert "mixed-formats" in str(one.findings) and "10 of 20" in str(one.findings)
    late = load_tasks(
        [{**r, "prompt": f"{r['prompt']} {i}"} for i in range(6) for r in rubrics] + pairs
    )
    assert late.format == "checklist" and "10 of 70" in str(late.findings)


def test_what_is_left_unread_in_a_json_file_is_counted(tmp_path):
    """A second array, in the object or behind the first, was passed over without a number."""
    path, rows = tmp_path / "a.json", [{"prompt": "p", "rubrics": ["x"]}]
    path.write_text(json.dumps({"data": rows, "more": [1, 2, 3]}))
    assert "'more' (3 items)" in str(load_tasks(path).findings)
    path.write_text(json.dumps(rows) + "\n{broken")
    found = load_tasks(path)
    assert found.skipped == 1 and "from line 2 on" in str(found.findings)
    with pytest.raises(DataError, match="several lists of rows: 'train' "):
        path.write_text(json.dumps({"train": rows, "test": rows}))
        load_tasks(path)


def test_a_criterion_is_negative_by_its_type_or_flag_too():
    """`type: negative` was read with weight +1, in silence."""
    items = [{"text": "a", "type": "negative"}, {"text": "b", "negative": True}]
    items += [{"text": "c", "polarity": "-"}, {"text": "d", "type": "positive", "weight": 2}]
    task = load_tasks([{"prompt": "p", "rubrics": items}]).tasks[0]
    assert [c.weight for c in task.criteria] == [-1, -1, -1, 2]


def test_what_a_turn_of_the_history_holds_beside_its_text_is_kept():
    turns = [{"role": "user", "content": "h1", "name": "Bob"}, ANSWER]
    task = load_tasks([{"prompt": "P", "criteria": ["x"], "history": turns}]).tasks[0]
    assert [t["content"] for t in task.history] == ["h1", "So."]
    assert task.meta["history"] == turns


def test_labels_beside_the_answer_and_criteria_of_one_row_are_read():
    criteria = [{"id": "c1", "text": "t1"}, {"id": "c2", "text": "t2"}]
    row = {"id": "1", "prompt": "P", "criteria": criteria, "response": "r"}
    found = load_tasks([{**row, "labels": {"c1": 1, "c2": 0}}])
    assert [v.status for v in found.verdicts] == ["met", "unmet"]
    ours = {"record": "task", "id": "1", "prompt": "P", "criteria": criteria, "labels": {"c1": 1}}
    assert "unread-field" in codes(load_tasks([ours]))


@pytest.mark.parametrize("text", ["1_0", "\u0663"])
def test_what_only_python_takes_for_a_number_is_none(text):
    row = {"prompt": "p", "rubrics": [{"text": "c", "weight": text}]}
    assert "bad-weight" in codes(load_tasks([row]))


def test_another_dash_and_marks_of_lists():
    """A word processor's dash hid a criterion; "- " stayed in the texts of a list."""
    row = {"prompt": "p", "rubric \u2013 1. criterion": "Is short.", "rubric \u2013 1. weight": 2}
    assert load_tasks([row]).tasks[0].criteria[0].weight == 2
    for listed in ("- a\n- b", "1. a\n2. b"):
        task = load_tasks([{"prompt": "p", "rubrics": listed}]).tasks[0]
        assert [c.text for c in task.criteria] == ["a", "b"]


@pytest.mark.parametrize(
    ("head", "said"),
    [(b"PK\x03\x04xx", "Excel"), (b"<!DOCTYPE html><p>404", "web page"),
     (b"version https://git-lfs.github.com/spec/v1\n", "git-LFS")],
)  # fmt: skip
def test_files_that_are_no_data_are_called_by_their_name(tmp_path, head, said):
    (tmp_path / "a.csv").write_bytes(head)
    with pytest.raises(DataError, match=said):
        load_tasks(tmp_path / "a.csv")


@pytest.mark.parametrize("row", [{"id": "x"}, {"task_id": "x"}, {"id": "x", "source": "mine"}])
@pytest.mark.parametrize(
    ("own", "scale"),
    [
        ({"levels": ["bad", "ok", "good"], "weight": 2}, ("ordinal", None, 2)),
        ({"scale": "points", "points": 5, "weight": 2}, ("points", 5, 2)),
        ({"scale": "points", "points": 5}, ("points", 5, 1)),
    ],
)
def test_a_criterion_has_one_scale_whichever_other_keys_its_row_has(row, own, scale):
    """Levels were judged met or unmet in a row with `id`, and 1 of 5 points was met or 0 in a row
    with `task_id`."""
    found = load_tasks([{**row, "prompt": "Q", "criteria": [{"id": "c", "text": "Clear", **own}]}])
    (c,) = found.tasks[0].criteria
    assert (c.scale, c.points, c.weight) == scale
    assert {f.field for f in found.findings} <= {"source"}


@pytest.mark.parametrize(
    "rubric",
    [
        {"rubric": {"positive": ["Is kind", "Is short"], "negative": ["Is rude"]}},
        {"rubrics": {"Pos": ["Is kind", "Is short"], "Negative": [{"text": "Is rude"}]}},
    ],
)
def test_a_list_called_negative_holds_what_must_not_be(rubric):
    """Being rude paid as much as being kind."""
    (task,) = load_tasks([{"prompt": "p", **rubric}]).sound().tasks
    assert [c.weight for c in task.criteria] == [1, 1, -1]


@pytest.mark.parametrize("sign", [{"type": "negative"}, {"sign": "-"}, {"is_negative": "true"}])
def test_a_row_of_a_table_says_the_sign_of_its_criterion(sign):
    """`type: negative` became the kind of the task, and the fault paid."""
    rows = [
        {"prompt": "p", "criterion": "Is kind"},
        {"prompt": "p", "criterion": "Is rude", **sign},
    ]
    (task,) = load_tasks(rows).sound().tasks
    assert [c.weight for c in task.criteria] == [1, -1] and task.kind is None


BESIDE = {"prompt": "Q", "response": "R"}
KIND = {"criterion": "Is kind", "points": 3}


@pytest.mark.parametrize(
    ("row", "field"),
    [
        ({**BESIDE, "rubrics": [{**KIND, "criteria_met": True}]}, "criteria_met"),
        ({**BESIDE, "criteria": [{"text": "Is kind", "label": "met"}]}, "label"),
        ({**BESIDE, "criterion": "Is kind", "human": "met"}, "human"),
        ({**BESIDE, "rubric": [{"criterion": "Kind", "max_points": 4}]}, "max_points"),
        ({**BESIDE, "rubric": [{"criterion": "Kind", "ratings": [{"points": 4}]}]}, "ratings"),
        ({"instruction": "p", "output": "4", "orig_score1_description": "no"}, None),
        ({"prompt": "p", "positive": ["Is kind"], "negative": ["Is rude"]}, "negative"),
        ({"prompt": "p", "criteria": ["Is kind", "Is rude"], "scores": [3, -2]}, "scores"),
    ],
)
def test_labels_levels_and_weights_that_nothing_reads_are_errors(row, field):
    """A note or a warning: the file was sound, and its labels and levels were gone."""
    errors = {f.field for f in load_tasks([row]).findings if f.severity == "error"}
    assert errors >= {field or "orig_score1_description"}


def test_a_table_calls_its_labels_verdicts_too():
    rows = [
        {**BESIDE, "criterion": f"Is {w}", "verdict": v} for w, v in (("a", "met"), ("b", "no"))
    ]
    assert [v.value for v in load_tasks(rows).sound().verdicts] == [1, 0]


@pytest.mark.parametrize("order", ["model", "criterion", "label", "prompt"])
@pytest.mark.parametrize("ids", [True, False])
def test_a_flat_table_in_any_order_is_inspected_as_it_is_loaded(order, ids, tmp_path, capsys):
    """Of 10 tasks the command made 20, sorted by model, with 10 errors of ids that occur again."""
    rows = [
        {
            **({"task_id": f"t{i}"} if ids else {}),
            **{"prompt": f"Which river is number {i}?", "criterion": c, "weight": w},
            **{"response": f"{m} says {i}", "model": m, "label": ("met", "no")[(i + w) % 2]},
        }
        for i in range(10)
        for c, w in (("Names the river", 1), ("Insults the reader", -2))
        for m in ("gpt", "llama")
    ]
    path = tmp_path / "t.csv"
    with path.open("w", newline="") as file:
        table = csv.DictWriter(file, list(rows[0]))
        table.writeheader()
        table.writerows(sorted(rows, key=lambda r: str(r[order])))
    found, parts = kit.load(path), list(iter_tasks(path))
    assert [p.task for p in parts if p.task] == found.tasks and len(found.tasks) == 10
    assert [r for p in parts for r in p.responses] == found.responses
    assert sorted(v.ids for p in parts for v in p.verdicts) == sorted(v.ids for v in found.verdicts)
    assert not [f for p in parts for f in p.findings if f.severity != "info"]
    assert main(["inspect", str(path), "--lint", "--json"]) == 0
    said = json.loads(capsys.readouterr().out)
    assert (said["lint"]["tasks"], said["lint"]["criteria"]) == (10, 20)


def test_an_empty_list_in_a_cell_is_an_empty_history(tmp_path):
    """pandas writes it beside rows that have turns: "nothing reads the field 'history'"."""
    rows = [{"id": f"t{n}", "prompt": "p", "rubrics": ["Is kind."]} for n in range(3)]
    given = [[USER, ANSWER], [], {}]
    frame = pandas.DataFrame(
        [r | {"history": h, "truth": {}} for r, h in zip(rows, given, strict=True)]
    )
    frame.to_csv(tmp_path / "t.csv", index=False)
    found = load_tasks(tmp_path / "t.csv").sound()
    assert [len(t.history) for t in found] == [2, 0, 0]
    assert not [f for f in found.findings if f.severity != "info"]


@pytest.mark.parametrize("first", [1, 60])
def test_a_chat_as_a_prompt_stands_beside_rows_that_have_a_history(first):
    """A row of our own fields made all of the file ours: "field 'prompt' is tuple, not text"."""
    rubric = [{"id": "c", "text": "Is kind.", "weight": 2}]
    own = [
        {"id": f"t{n}", "prompt": f"P{n}", "history": [USER, ANSWER], "criteria": rubric}
        for n in range(first)
    ]
    chat = {"id": "x", "prompt": [USER, ANSWER, {**USER, "content": "And?"}], "criteria": rubric}
    found = load_tasks([*own, chat])
    assert not found.skipped and found.sound() and len(found) == first + 1
    assert found.by_id["x"].prompt == "And?"
    assert found.by_id["x"].history == found.by_id["t0"].history
    with pytest.raises(DataError, match="'prompt' is list, not text"):
        load_tasks([chat], "kit").sound()


@pytest.mark.parametrize("prompt", ["Why?", [{"role": "system", "content": "S"}, USER]])
def test_completions_of_several_turns_answer_the_prompt_before_them(prompt):
    """Refused as answers to another prompt; the same completion of SFT or KTO was read."""
    asked = {"role": "user", "content": "Really?"}
    said = {k: [ANSWER, asked, {**ANSWER, "content": k}] for k in ("chosen", "rejected")}
    found = load_tasks([{"prompt": prompt, **said}]).sound()
    one = load_tasks([{"prompt": prompt, "completion": said["chosen"]}])
    assert found.tasks[0].turns == one.tasks[0].turns == (USER, ANSWER, asked)
    assert found.tasks[0].system == one.tasks[0].system
    assert [r.text for r in found.responses] == ["chosen", "rejected"]
    apart = {**said, "rejected": [{**ANSWER, "content": "No."}, *said["rejected"][1:]]}
    assert any(f.severity == "error" for f in load_tasks([{"prompt": prompt, **apart}]).findings)


def test_people_whose_initials_are_y_and_n_are_people():
    """Read as a count of words "yes" and "no": one rater's label was anybody's, two were unread."""
    labels = {"a": {"y": "partly"}, "b": {"x": "met", "y": "unmet"}, "c": {"n": "met"}}
    ids = {"task_id": "t", "response_id": "r", "response": "x"}
    said = {
        (v.criterion_id, v.judge, v.value) for v in load_tasks([ids | {"labels": labels}]).verdicts
    }
    assert said == {
        ("a", "human:y", 0.5),
        ("b", "human:x", 1.0),
        ("b", "human:y", 0.0),
        ("c", "human:n", 1.0),
    }


@pytest.mark.parametrize(
    "label", [{"no": True}, {"no": 1}, {"yes": 3, "no": 1}, {"confidence": 0.9}]
)
def test_an_object_that_says_no_label_is_not_read_as_one(label):
    """{"no": true} and {"fail": 1} were "met", a confidence alone was a share."""
    found = load_tasks(
        [{"task_id": "t", "response_id": "r", "response": "x", "labels": {"c": label}}]
    )
    assert [(v.status, v.judge) for v in found.verdicts] == [("unknown", "human")]
    assert [f.code for f in found.findings if f.severity == "warning"] == ["unreadable-label"]
