"""Rows as users have them: what a row says is read, or refused with a remedy that works when it is pasted."""

import json
import re
import shlex

import pytest

from kit import cli, load
from kit.data import read_label
from kit.errors import DataError

USER = {"role": "user", "content": "u"}


def test_the_input_of_an_instruction_is_a_part_of_the_prompt():
    rows = [
        {"instruction": "Translate.", "input": "The cat.", "output": "Le chat."},
        {"instruction": "Translate.", "input": "The dog.", "output": "Le chien."},
        {"instruction": "Name a colour.", "input": "", "output": "Green.", "text": "Below is ..."},
    ]
    s = load(rows)
    assert [t.prompt for t in s] == [
        "Translate.\n\nThe cat.",
        "Translate.\n\nThe dog.",
        "Name a colour.",
    ]
    pairs = load([{"instruction": "i", "input": "x", "chosen": "c", "rejected": "r"}])
    dolly = load([{"instruction": "i", "context": "x", "response": "a", "category": "qa"}])
    assert pairs[0].prompt == dolly[0].prompt == "i\n\nx" and dolly.responses[0].text == "a"


@pytest.mark.parametrize(
    "text",
    [
        "### Instruction:\nTranslate.\n\n### Input:\nThe cat.\n\n### Response:\nLe chat.",
        "Below is an instruction that describes a task. Write a response.\n\n### Instruction:\nTranslate.\n\n"
        "### Input:\nThe cat.\n\n### Response:\nLe chat.<|endoftext|>",
        "Below is an instruction.\n### Instruction:\nTranslate.\n\n### Input:\nThe cat.\n\n"
        "### Response:\nLe chat.</s>\n",
    ],
)
def test_an_instruction_text_is_read_with_its_introduction_and_end(text):
    s = load([{"text": text}])
    assert (s[0].prompt, s.responses[0].text) == ("Translate.\n\nThe cat.", "Le chat.")


@pytest.mark.parametrize("bad", [False, 0, "false"])
def test_an_answer_with_a_false_label_is_left_out_and_counted(bad):
    row = {"prompt": "Name a river.", "completion": "The Rhine.", "label": True}
    s = load([row, {**row, "completion": "Shut up.", "label": bad}], on_error="skip")
    assert [r.text for r in s.responses] == ["The Rhine."] and len(s) == 1
    assert [(f.code, f.rows) for f in s.findings if f.severity == "error"] == [("skipped-rows", 1)]
    with pytest.raises(DataError, match="'good'"):
        load([{**row, "label": "good"}])


RATINGS = [
    ("🟢 No issues", 1.0), ("🟡 Minor issues", 0.5), ("🔴 Major issues", 0.0), ("🔴", 0.0), ("  🟢 fine ", 1.0),
    ("🟢 No", 1.0),
]  # fmt: skip


@pytest.mark.parametrize(("rating", "value"), RATINGS)
def test_a_rating_is_a_circle_and_any_words(rating, value):
    row = {"task_id": "t", "prompt": "p", "responseA": "a", "rubric - 1. criterion": "x"}
    s = load(
        [
            {
                **row,
                "rubric - 1. ratingA": rating,
                "rubric - 2. criterion": "",
                "rubric - 2. ratingA": "",
            }
        ]
    )
    assert [v.value for v in s.verdicts] == [value]


@pytest.mark.parametrize("rating", ["🟠 some", "🔵", "🟢🔴 both", "🟢 or 🟡", "fine 🟢", "good"])
def test_another_rating_is_refused(rating):
    assert read_label(rating) is None


def test_the_form_of_a_file_is_that_of_its_rows_not_of_the_first():
    good = [
        {"id": n, "prompt": f"p{n}", "rubrics": [{"criterion": "x", "points": 3}]} for n in "ab"
    ]
    for plain in ({"id": "c", "prompt": "q", "rubrics": None}, {"id": "c", "prompt": "q"}):
        with pytest.raises(DataError, match="row 1") as e:
            load([plain, *good])
        assert "'rubric'" in str(e.value) and "on_error='skip'" in str(e.value)
        s = load([plain, *good], on_error="skip")
        assert [len(t.criteria) for t in s] == [1, 1] and s.format == "rubric"


def test_verl_rows_have_their_rubric_and_their_answer():
    shared = {"prompt": [USER], "data_source": "d", "ability": "chat"}
    rubric = {"style": "rubric", "ground_truth": "", "rubrics": [{"criterion": "x", "points": 5}]}
    rule = {"style": "rule", "ground_truth": "42"}
    s = load(
        [
            {**shared, "reward_model": rubric, "extra_info": {"index": 0, "split": "train"}},
            {**shared, "reward_model": rule, "extra_info": {"index": 1, "split": "test"}},
        ]
    )
    assert s.format == "verl" and [t.held_out for t in s] == [False, True]
    assert [(c.text, c.weight) for c in s[0].criteria] == [("x", 5.0)] and s[0].kind == "chat"
    assert s[1].truth == {"answer": "42"}


def test_answers_are_known_by_their_id_whatever_else_the_row_has():
    row = {"task_id": "t", "response_id": "r", "response": "a", "prompt": "p", "model": "m"}
    s = load([row])
    assert (s.format, [r.ids for r in s.responses]) == ("answers", [("t", "r")])
    assert s.responses[0].meta == {"prompt": "p", "model": "m"}
    rubric = load(
        [{"id": "t", "prompt": "p", "rubrics": ["x"], "response": "a", "response_id": "r7"}]
    )
    assert [r.id for r in rubric.responses] == ["r7"]


NATURAL = [  # the rubric files that people write first
    {"id": "t", "question": "q", "rubric": [{"criterion": "x", "points": 2}]},
    {"id": "t", "prompt": "q", "rubric": [{"description": "x", "weight": 2}]},
    {"id": "t", "question": "q", "criteria": [{"requirement": "x", "points": 2, "category": "k"}]},
    {"id": "t", "instruction": "q", "checklist": [{"question": "x", "weight": 2, "notes": "n"}]},
    {"id": "t", "prompt": "q", "rubrics": [{"name": "short", "description": "x", "weight": 2}]},
    {"id": "t", "prompt": "q", "rubric": '[{"criterion": "x", "points": 2}]'},
]


@pytest.mark.parametrize("row", NATURAL)
def test_natural_rubrics_are_read(row):
    s = load([row])
    assert (s[0].prompt, [(c.id, c.text, c.weight) for c in s[0].criteria]) == (
        "q",
        [("c1", "x", 2.0)],
    )
    assert [f.code for f in s.findings] == ["automatic-ids"] and "c1, c2" in s.findings[0].message


MEANT = [  # a field that some form reads, and this row's form does not
    {"prompt": "p", "input": "x"},
    {"prompt": "p", "label": True},
    {"prompt": "p", "question": "another"},
    {"prompt": "p", "rubrics": ["x"], "chosen": "c"},
    {"prompt": "p", "completion": "c", "chosen": "d", "rejected": "e"},
    {"question": "q", "answer": "a", "input": "x"},
    {"question": "q", "answer": "a", "context": "x"},
    {"prompt": "p", "rubrics": ["x", "y"], "weight": [1, 2]},
    {"prompt": "p", "rubrics": ["x", "y"], "weights": [1, 2]},
    {"task_id": "t", "prompt": "p", "criterion_id": "k", "criterion": "x", "wieght": 2},
    {"prompt": "p", "rubrics": ["x"], "responses": ["a", "b"]},
    {"prompt": "p", "prompt_id": "u", "messages": [USER, {**USER, "role": "assistant"}]},
    {"question": "q", "response_A": "a", "response_B": "b", "label": "A>B"},
]


@pytest.mark.parametrize("row", MEANT)
def test_a_field_that_any_form_reads_is_never_merely_unread(row):
    with pytest.raises(DataError, match="does not read the field"):
        load([row])


@pytest.mark.parametrize("name", ["level", "content", "labeler", "height"])
def test_a_word_of_its_own_is_kept_though_it_is_like_one_of_ours(tmp_path, name):
    file = tmp_path / "rows.jsonl"
    file.write_text(json.dumps({"prompt": "p", "rubrics": ["x"], name: "y"}) + "\n")
    (task,) = load(file)
    assert task.meta[name] == "y"
    assert re.search(f"field '{name}' .did you mean '", load(file).findings[-1].message)


def test_several_fields_may_be_notes():
    row = {
        "id": "t",
        "prompt": "p",
        "rubrics": [{"text": "x", "number": 1, "importance": "high"}],
        "input": "y",
    }
    s = load([row], fields={"number": "note", "importance": "note", "input": "note"})
    assert s[0].criteria[0].meta == {"number": 1, "importance": "high"} and s[0].meta == {
        "input": "y"
    }


def test_whole_numbers_of_a_data_frame_are_whole():
    row = {"key": 1, "prompt": "p", "instruction_id_list": ["length_constraints:number_words"]}
    s = load([{**row, "kwargs": [{"relation": "at least", "num_words": 5.0}]}])
    assert s[0].criteria[0].text == "Has at least 5 words." and s[0].criteria[0].check["min"] == 5


def test_open_instruct_rows_beside_ifeval_rows():
    row = {"messages": [USER], "dataset": "math", "ground_truth": "42"}
    for truth in (
        "[{'instruction_id': ['punctuation:no_comma'], 'kwargs': [None]}]",
        '{"func_name": "validate"}',
    ):
        with pytest.raises(DataError, match="ifeval: prompt, instruction_id_list, kwargs"):
            load([row, {**row, "dataset": "ifeval", "ground_truth": truth}])
    assert load([{**row, "ground_truth": ["42"], "dataset": ["math"]}])[0].truth == {"answer": "42"}


# -- remedies ------------------------------------------------------------------
def follow(folder, capsys, rows, *options):
    """(exit code, messages) of `kit inspect`, and of the commands that its errors print, until it loads."""
    (folder / "my team's.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    words, messages = ["inspect", "my team's.jsonl", *options], []
    for _ in range(5):
        code = cli.main(words)
        captured = capsys.readouterr()
        messages.append(captured.err)
        command = re.search(r"kit (inspect .*)", captured.err)
        if code == 0 or command is None:
            break
        words = shlex.split(command[1])
    return code, messages


RIGHT = [  # rows, what the printed command leads to
    ([{"id": "t", "prompt": "p", "rubrics": [{"text": "x", "wieght": 2}]}], 2.0),
    ([{"id": "t", "prompt": "p", "rubrics": [{"desc": "x", "points": 2}]}], 2.0),
    ([{"taskId": "t", "prompt": "p", "Criteria": [{"Text": "x", "Weight": 2}]}], 2.0),
    ([{"id": "t", "Prompt": "p", "Rubrics": [{"text": "x", "weight": 2}]}], 2.0),
    ([{"qid": "t", "prompt": "p", "rubrics": [{"text": "x", "weight": 2}]}], 2.0),
    ([{"qid": "t", "prompt": "p", "rubrics": [{"cid": "k", "desc": "x", "points": 2}]}], 2.0),
    ([{"id": "t", "prompt": "p", "rubrics": [{"uid": "k", "text": "x", "Weight": 2}]}], 2.0),
    (
        [
            {"id": "t", "prompt": "p", "rubrics": [{"text": "x", "weight": 2}]},
            {"id": "u", "prompt": "q"},
        ],
        2.0,
    ),
]


@pytest.mark.parametrize(("rows", "weight"), RIGHT)
def test_a_printed_command_works_when_it_is_pasted(tmp_path, capsys, monkeypatch, rows, weight):
    monkeypatch.chdir(tmp_path)
    code, messages = follow(tmp_path, capsys, rows)
    assert code == 0 and len(messages) == 2, messages
    (task,) = load("my team's.kit.jsonl")
    assert (task.id, task.prompt, task.criteria[0].weight) == ("t", "p", weight)


def test_a_printed_command_has_the_options_that_were_chosen(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rows = [{"qid": "t", "ask": "p", "rubrics": [{"desc": "x", "wieght": 2, "o1-n": 1}]}]
    code, messages = follow(
        tmp_path, capsys, rows, "--map", "qid=task_id,ask=prompt,o1-n=note", "--format", "rubric"
    )
    assert code == 0 and len(messages) == 2, messages
    assert load("my team's.kit.jsonl")[0].criteria[0].meta == {"o1-n": 1}


GUESSES = [  # no name is near enough to be certain
    {
        "id": "w",
        "session_id": "w",
        "conversation_input": [USER],
        "checklist": ["Is it?"],
        "intent": "fix",
    },
    {
        "task": "t",
        "rubric": [{"id": "r", "title": "x"}],
        "prompt_0": "p",
        "response_0": "a",
        "prompt_1": "q",
    },
    {"prompt_id": "p", "completion_id": "k", "prompt": [USER], "completion": "c", "rubric": "x"},
    {
        "task_id": "t",
        "prompt": "p",
        "rubrics": [{"criterion_text": "x", "criterion_weight": "Critical"}],
    },
    {"id": "q", "prompt": "p", "rubrics": [{"criterion": "x", "is_positive": False, "score": -3}]},
    {"pair_id": "a", "original_id": "9", "question": "q", "label": "A>B"},
    {"chosen": "\n\nHuman: q\n\nAssistant: a", "rejected": "\n\nHuman: q\n\nAssistant: b"},
    {"id": "t", "input": "p", "rubrics": ["x"]},
    {"id": "t", "prompt": "p", "rubrics": ["x"], "answers": ["a", "b"]},
    {"cid": "k", "response": "a"},
    {"model_id": "m", "response": "a"},
    {"cid": "k", "prompt": "p", "rubrics": ["x"]},
    {"id": "t", "prompt": "p", "rubrics": [{"parent_id": "k", "text": "x"}]},
    {"id": "t", "prompt": "p", "rubrics": [{"title": "Is kind.", "importance": "high"}]},
    {"task_id": "t", "text": "a question or an answer"},
    {"task_id": "t", "answer": "of a model, or the right one"},
]


@pytest.mark.parametrize("row", GUESSES)
def test_no_command_is_printed_where_it_would_be_a_guess(tmp_path, capsys, monkeypatch, row):
    monkeypatch.chdir(tmp_path)
    code, messages = follow(tmp_path, capsys, [row])
    assert code == 2 and len(messages) == 1
    assert "--map " not in messages[0] and "to do: " in messages[0]


def test_rows_without_criteria_are_not_sent_to_a_judge(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a.jsonl").write_text('{"prompt": "p", "completion": "c"}\n')
    assert cli.main(["inspect", "a.jsonl"]) == 0
    assert "next: add criteria to its tasks, or name it as `rows`" in capsys.readouterr().out


def test_lint_goes_on_after_a_faulty_row(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    good = {"id": "t", "prompt": "p", "rubrics": ["Is kind."]}
    rows = [good, {**good, "id": "u", "rubrics": [3]}, {**good, "id": "v", "rubrics": [4]}]
    (tmp_path / "a.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    assert cli.main(["inspect", "a.jsonl"]) == 2
    assert "line 2, rubrics 1 and 1 more" in capsys.readouterr().err
    assert cli.main(["inspect", "a.jsonl", "--on-error", "skip"]) == 0
    capsys.readouterr()
    assert cli.main(["inspect", "a.jsonl", "--lint"]) == 1
    out = capsys.readouterr().out
    assert (
        "error: a.jsonl, line 2, rubrics 1: 2 of 3 rows left out; the criterion is not a text"
        in out
    )
