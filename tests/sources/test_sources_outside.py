"""What an outsider met with files of his own: wrong readings and losses that nothing told him of."""

from __future__ import annotations

import csv
import gzip
import json
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))
from roles import demonstrations, pairs

import kit
from kit.data import load_tasks, save_tasks
from kit.errors import DataError, KitError

TREE = {
    "id": "r",
    "requirements": "Reproduce X",
    "weight": 1,
    "sub_tasks": [
        {"id": "a", "requirements": "A is done", "weight": 3, "sub_tasks": []},
        {
            "id": "g",
            "requirements": "Group",
            "weight": 1,
            "sub_tasks": [
                {"id": "b", "requirements": "B is done", "weight": 1, "sub_tasks": []},
                {"id": "c", "requirements": "C is done", "weight": 1, "sub_tasks": []},
            ],
        },
    ],
}


def _codes(found) -> set[str]:
    return {f.code for f in found.findings if f.severity != "info"}


def _jsonl(path, rows):
    path.write_text("\n".join(map(json.dumps, rows)) + "\n")
    return path


def test_a_weighted_tree_can_be_graded():
    """Its leaves named parents that were no criteria: grading failed after the paid calls."""
    tasks = load_tasks([TREE])
    answer = kit.Response(task_id="r", id="x", text="done")
    verdicts = [
        kit.Verdict(task_id="r", response_id="x", criterion_id=i, status=s)
        for i, s in (("a", "met"), ("b", "unmet"), ("c", "met"))
    ]
    grade = kit.grade(tasks, verdicts, responses=[answer])[0]
    assert grade.score == pytest.approx(3 / 4 + 1 / 8)
    assert [c.meta["node"] for c in tasks.tasks[0].criteria] == ["r", "g", "g"]
    assert not [f for f in kit.lint(tasks).findings if f.code == "extreme-weight"]


def test_verdicts_without_their_answers_are_not_graded_as_nothing():
    """A judged tree has verdicts and no answer: kit.grade gave an empty list."""
    leaf = {"id": "a", "requirements": "A", "weight": 1, "sub_tasks": [], "score": 1.0}
    graded = {"requirements": "R", "id": "r", "weight": 1, "sub_tasks": [leaf]}
    tasks = load_tasks([{"paper_id": "p", "graded_task_tree": graded}])
    assert len(tasks.verdicts) == 1
    with pytest.raises(KitError, match="1 of the 1 answers"):
        kit.grade(tasks, tasks.verdicts)


def test_verdicts_are_not_dropped_where_some_of_the_answers_are_absent():
    """Verdicts on an answer that the set does not hold were left out with no word."""
    row = {"id": "t", "prompt": "p", "rubrics": ["a"], "response": "x"}
    tasks = load_tasks([row])
    made = {"criterion_id": "c1", "status": "met"}
    here = kit.Verdict(task_id="t", response_id="response", **made)
    gone = kit.Verdict(task_id="t", response_id="gone", **made)
    with pytest.raises(KitError, match=r"1 of the 2 answers .*\n.*'gone'"):
        kit.grade(tasks, [here, gone])
    other = kit.Verdict(task_id="u", response_id="r", **made)
    with pytest.warns(UserWarning, match="1 tasks that are not here"):
        assert len(kit.grade(tasks, [here, other])) == 1


@pytest.mark.parametrize("kind", ["csv", "jsonl"])
def test_numeric_labels_have_one_scale_in_a_file(tmp_path, kind):
    """A 1 of 1-5 was read as met (1.0) beside a 2 that was 0.25: the worst label was the best."""
    rows = [
        {
            "task_id": f"t{i}",
            "prompt": f"p{i}",
            "criterion": "x",
            "response": "r",
            "label": str(1 + i % 5),
        }
        for i in range(120)
    ]
    rows = sorted(rows, key=lambda r: r["label"])  # no other label in the first 50 rows ... but 1-3
    path = tmp_path / f"h.{kind}"
    if kind == "csv":
        with path.open("w", newline="") as f:
            w = csv.DictWriter(f, list(rows[0]))
            w.writeheader()
            w.writerows(rows)
    else:
        _jsonl(path, rows)
    found = load_tasks(path)
    assert {(v.meta["label"], v.value) for v in found.verdicts} == {
        (str(1 + k), k / 4) for k in range(5)
    }
    assert {v.value for v in load_tasks(rows[:20]).verdicts} == {1.0}  # a file of ones alone is 0/1


def test_labels_of_an_unclear_scale_are_unknown():
    """0 and 5 in one column: a 1 may be the best or nearly the worst."""
    rows = [
        {"task_id": f"t{x}", "response_id": "r", "response": "a", "labels": {"c": x}}
        for x in (0, 1, 5)
    ]
    found = load_tasks(rows)
    assert [v.status for v in found.verdicts] == ["unknown"] * 3
    assert "unreadable-label" in _codes(found)
    whole = [{**r, "labels": {"c": 1 if r["labels"]["c"] < 5 else 5}} for r in rows]
    assert [v.value for v in load_tasks(whole).verdicts] == [0.0, 0.0, 1.0]


def test_a_task_of_our_own_without_its_record_field_is_read_whole():
    """Read as a checklist: truth, history and a 0-5 scale became meta, the criterion yes / no."""
    row = {
        "id": "t",
        "prompt": "p",
        "criteria": [{"id": "c", "text": "x", "scale": "points", "points": 5, "weight": 2}],
        "history": [{"role": "user", "content": "earlier"}],
        "truth": {"answer": "4"},
    }
    found = load_tasks([row])
    task = found.tasks[0]
    assert found.format == "kit"
    assert (task.criteria[0].scale, task.criteria[0].points) == ("points", 5)
    assert task.truth == {"answer": "4"} and task.history and not task.meta
    plain = {"id": "t", "prompt": "p", "criteria": [{"text": "x", "points": 5}]}
    assert load_tasks([plain]).format == "checklist"


def test_a_flat_table_with_one_id_for_two_prompts_says_so():
    """The second prompt's criteria were judged on the first prompt's answer."""
    rows = [{"task_id": "t", "prompt": p, "criterion": f"about {p}"} for p in ("one", "two")]
    found = load_tasks(rows)
    assert [(t.id, t.prompt, t.criteria[0].text) for t in found.tasks] == [
        ("t", "one", "about one"),
        ("t#2", "two", "about two"),
    ]
    with pytest.raises(DataError, match="occurs again"):
        found.sound()


def test_a_criterion_with_two_weights_says_so():
    rows = [{"task_id": "t", "prompt": "p", "criterion": "x", "weight": w} for w in ("1", "5")]
    found = load_tasks(rows)
    assert any("weights 1 and 5" in f.message for f in found.findings)
    same = [{**r, "weight": "5"} for r in rows]
    assert not _codes(load_tasks(same)) and load_tasks(same).tasks[0].criteria[0].weight == 5


LISTS = {
    "repr": repr(["Names 'it'", "Is short"]),
    "twice": json.dumps(json.dumps(["Names 'it'", "Is short"])),
    "objects": repr([{"criterion": "Names 'it'", "weight": 2}, {"criterion": "Is short"}]),
}


@pytest.mark.parametrize("cell", LISTS.values(), ids=LISTS)
def test_a_list_of_criteria_in_a_cell_is_read_however_it_was_written(cell):
    """pandas and csv write Python's repr: one criterion made of the raw text."""
    criteria = load_tasks([{"prompt": "p", "rubrics": cell}]).tasks[0].criteria
    assert [c.text for c in criteria] == ["Names 'it'", "Is short"]


@pytest.mark.parametrize("cell", ['["Names it", "Is sh', "['Names it' 'Is short']", "[{'a': open"])
def test_a_list_that_cannot_be_read_is_an_error_and_no_criterion(cell):
    found = load_tasks([{"prompt": "p", "rubrics": cell}])
    assert not found.tasks[0].criteria and found.tasks[0].meta["rubrics"] == cell
    error = next(f for f in found.findings if f.code == "unreadable-list")
    assert (error.row, error.field) == (1, "rubrics")
    with pytest.raises(DataError):
        found.sound()
    plain = "- Names it [1]\n- Is short"
    assert len(load_tasks([{"prompt": "p", "rubrics": plain}]).tasks[0].criteria) == 2


def _turn(role, content, **more):
    return {"role": role, "content": content, **more}


USER, ANSWER = _turn("user", "u"), _turn("assistant", "a")
CALL = _turn("assistant", None, tool_calls=[{"id": "1"}])
CHATS = {
    "behind the answer": {"messages": [USER, ANSWER, _turn("tool", "t")]},
    "no text": {"prompt": [USER, _turn("assistant", None), _turn("user", "v")]},
    "call": {"prompt": [USER, CALL, _turn("user", "v")]},
    "late system": {"prompt": [USER, _turn("system", "s"), _turn("user", "v")]},
}


@pytest.mark.parametrize("row", CHATS.values(), ids=CHATS)
def test_turns_do_not_disappear_unsaid(row):
    found = load_tasks([row])
    assert _codes(found) & {"unread-turns", "moved-turn", "field-type"}
    assert found.tasks[0].meta["messages"] == next(iter(row.values()))


def test_calls_and_what_tools_gave_back_are_turns_of_the_chat():
    """A call has no text and was left out; before an answer to learn from, so was the output."""
    (task,) = load_tasks([{"prompt": [USER, CALL, _turn("tool", "t")]}]).tasks
    assert [t["content"] for t in task.turns] == ["u", '[{"id": "1"}]', "t"]
    found = load_tasks([{"messages": [USER, ANSWER, _turn("tool", "t"), _turn("assistant", "b")]}])
    assert [t["content"] for t in found.tasks[0].turns] == ["u", "a", "t"]
    assert found.responses[0].text == "b" and not found.findings


def test_a_pair_on_two_chats_is_an_error():
    """Two answers to different questions were paired for DPO."""
    one = [_turn("user", "u"), _turn("assistant", "a"), _turn("user", "v"), _turn("assistant", "x")]
    other = [*one[:1], _turn("assistant", "B"), _turn("user", "W"), _turn("assistant", "y")]
    assert "context-mismatch" in _codes(load_tasks([{"chosen": one, "rejected": other}]))
    same = [*one[:3], _turn("assistant", "y")]
    assert not _codes(load_tasks([{"chosen": one, "rejected": same}]))


def test_a_bad_answer_is_no_demonstration():
    """KTO's rows and HealthBench's meta-evaluation were read as answers to imitate."""
    rows = [{"prompt": "p", "completion": x, "label": x == "good"} for x in ("good", "bad")]
    assert [r.text for _, r in demonstrations(load_tasks(rows))] == ["good"]
    meta = {
        "prompt": [_turn("user", "It hurts.")],
        "completion": "Wait.",
        "completion_id": "k",
        "rubric": "Sends the user to a doctor.",
        "binary_labels": [False, True],
        "anonymized_physician_ids": ["A", "B"],
    }
    found = load_tasks([meta])
    assert not demonstrations(found) and found.tasks[0].criteria[0].text == meta["rubric"]
    assert [(v.judge, v.status, v.response_id) for v in found.verdicts] == [
        ("human:A", "unmet", "k"),
        ("human:B", "met", "k"),
    ]


def test_a_file_is_read_by_what_it_holds(tmp_path):
    """One-line JSONL named .csv, JSONL named .gz, gzip without .gz, YAML: read as empty."""
    row = {"prompt": "a", "rubrics": ["x"]}
    line = json.dumps(row) + "\n"
    for name in ("a.csv", "b.jsonl.gz", "c.csv.gz"):
        (tmp_path / name).write_text(line)
    (tmp_path / "d.jsonl").write_bytes(gzip.compress(line.encode()))
    for path in tmp_path.iterdir():
        assert [t.prompt for t in load_tasks(path)] == ["a"], path.name
    (tmp_path / "e.yaml").write_text("- prompt: a\n")
    with pytest.raises(DataError, match=r"\.yaml files are not read"):
        load_tasks(tmp_path / "e.yaml")


def test_what_stands_around_the_rows_is_named(tmp_path):
    path = tmp_path / "a.json"
    path.write_text(json.dumps({"license": "cc", "data": [{"prompt": "p", "rubrics": ["x"]}]}))
    assert any("'license'" in f.message for f in load_tasks(path).findings)


def test_a_nul_byte_stays_in_its_cell(tmp_path):
    path = tmp_path / "a.csv"
    path.write_bytes(b"prompt,criterion\np,a\0b\n")
    tasks = load_tasks(path)
    assert tasks.tasks[0].criteria[0].text == "a\0b"
    assert "encoding" in {f.code for f in kit.lint(tasks).findings}


def _decided(instruction, arguments, answer):
    row = {"prompt": "p", "instruction_id_list": [instruction], "kwargs": [arguments]}
    task = load_tasks([row]).tasks[0]
    return kit.check(task, kit.Response(task_id=task.id, id="r", text=answer), task.criteria[0])


@pytest.mark.parametrize(
    ("answer", "status"),
    [
        ("a******a", "unmet"),
        ("a\n******\na \n", "unmet"),
        ("a******b", "met"),
        ("a\nc\n\n******\n\nab\n", "met"),
        ("******a******b******", "met"),
        ("a******b******c", "unmet"),
        ("a", "unmet"),
        ("a******  ", "unmet"),
        ("a************b", "unmet"),
    ],
)
def test_two_responses_must_differ_as_in_ifeval(answer, status):
    assert _decided("combination:two_responses", {}, answer).status == status


def test_an_end_phrase_may_stand_in_quotation_marks_as_in_ifeval():
    for text, status in (('"All done."', "met"), ("All done.", "met"), ("All done. No.", "unmet")):
        found = _decided("startend:end_checker", {"end_phrase": "All done."}, text)
        assert found.status == status


def codes(found):
    return {f.code for f in found.findings}


def test_criteria_by_name_are_criteria():
    """An object name -> {text, weight} was one criterion without text."""
    named = {"c1": {"text": "one", "weight": 2}, "c2": {"text": "two", "weight": "-1"}}
    found = load_tasks([{"prompt": "p", "criteria": named}])
    assert [(c.id, c.text, c.weight) for c in found.tasks[0].criteria] == [
        ("c1", "one", 2),
        ("c2", "two", -1),
    ]


def test_snippets_are_read_whatever_their_id_looks_like():
    """A snippet whose id holds a blank was left out of the sources with no word."""
    text = "<snippet id=a>x</snippet><Snippet url='u' id=\"b c\">y</snippet><snippet>z</snippet>"
    found = load_tasks([{"query": "q", "positive_rubrics": ["d"], "tool_output": text}])
    assert found.tasks[0].sources == {"a": "x", "b c": "y"}
    assert "1 of 3 snippets" in next(f.message for f in found.findings if f.field == "sources")


@pytest.mark.parametrize("label", [False, "False", 0, "no"])
def test_a_bad_completion_is_no_demonstration_however_its_label_is_written(label):
    """From a CSV the label is a text: every bad completion was there to be imitated."""
    rows = [{"prompt": "p", "completion": "bad", "label": label}]
    rows.append({"prompt": "q", "completion": "good", "label": "True"})
    found = load_tasks(rows)
    assert [r.meta["role"] for r in found.responses] == ["undesired", "demonstration"]


def test_an_empty_answer_to_imitate_is_named():
    assert "empty-answer" in codes(load_tasks([{"instruction": "i", "output": " "}]))


def test_an_answer_that_comes_twice_keeps_its_own_labels():
    """Both copies had one id: their labels, met and unmet, stood on one answer."""
    row = {"task_id": "t", "response": "r"}
    rows = [{**row, "labels": {"c": x}} for x in ("yes", "no")]
    found = load_tasks(rows)
    assert len({r.id for r in found.responses}) == 2 == len({v.response_id for v in found.verdicts})
    severe = load_tasks([{**row, "response_id": "1"}] * 2)
    kinds = [[f.severity for f in x.findings if f.code == "duplicate-id"] for x in (found, severe)]
    assert kinds == [["warning"], ["error"]]


def test_a_guessed_scale_of_labels_is_said():
    """Labels 1, 2, 3 were read on 1-5: a 3 of 3 was half met, with no word."""
    row = {"task_id": "t", "prompt": "p", "criterion": "c"}
    for top, severity in ((3, "warning"), (5, "info")):
        found = load_tasks([{**row, "response": str(i), "label": i} for i in range(1, top + 1)])
        assert [f.severity for f in found.findings if f.code == "label-scale"] == [severity]


LABELLED = [  # a row a label, as a database numbers them: criterion, person, answer
    dict(prompt=f"Q{i}?", task_id=f"t{i}", response=f"A{i}", criterion=c, criterion_id=c[:1])
    | dict(label="met", annotator=who)
    for c in ("Names it", "Is polite")
    for who in (1, 2)
    for i in range(6)
]


@pytest.mark.parametrize("lacks", ["prompt criterion", "task_id criterion_id"])
@pytest.mark.parametrize("ending", ["csv", "jsonl", "rows"])
@pytest.mark.parametrize("turned", [False, True])
def test_an_id_that_each_row_has_for_itself_names_no_answer_and_no_task(
    tmp_path, lacks, ending, turned
):
    """A database's key: each answer was there, judged and paid once a label, or each task was, and
    only rows of a prompt that stood side by side were warned of."""
    bare = [{k: x for k, x in r.items() if k not in lacks.split()} for r in LABELLED]
    rows = [{"id": n, **r} for n, r in enumerate(sorted(bare, key=str) if turned else bare)]
    path = tmp_path / f"l.{ending}"
    if ending == "csv":
        with path.open("w", newline="") as f:
            csv.writer(f).writerows([rows[0], *(r.values() for r in rows)])
    else:
        path.write_text("\n".join(map(json.dumps, rows)))
    found, plain = load_tasks(rows if ending == "rows" else path), load_tasks(bare)
    assert len(found.responses) == 6 and len(found.tasks) == len(plain.tasks)
    names = {r.text: r.id for r in plain.responses}  # of a row without task_id: by its place
    assert turned or all(r.id == names[r.text] for r in found.responses)
    assert len(found.verdicts) == 24 == len({(*v.ids, v.judge) for v in found.verdicts})
    (said,) = [f for f in found.sound().findings if f.severity == "warning"]
    assert (said.code, said.field) == ("field-conflict", "id")
    kept = [r.meta for r in found.responses] + [t.meta for t in found.tasks]
    assert any(m.get("id of the row") is not None for m in kept)


def test_an_id_stays_the_answers_or_the_tasks_where_rows_share_it_or_would_say_one_thing_twice():
    """Equal short answers of several samples, and tasks of one criterion, are named by their ids."""
    one = dict(criterion_id="c", label="met", annotator="ann")
    asked = [dict(task_id="t", id=f"s{n}", response="Yes."[: 3 + n % 2], **one) for n in range(8)]
    assert len({r.id for r in load_tasks(asked).responses}) == 8
    both = [r | {"criterion_id": c} for r in asked for c in "ab"]
    assert len({r.id for r in load_tasks(both).responses}) == 8
    tasks = [
        {"id": f"t{n}", "prompt": f"Q{n // 2 * (n < 4)}", "criterion": f"x{n}"} for n in range(9)
    ]
    tasks += [{"id": f"t{n}", "prompt": f"Q{n}", "criterion": "x"} for n in range(9, 16)]
    found = load_tasks(tasks)
    assert [t.id for t in found.tasks] == [r["id"] for r in tasks]
    assert "same-prompt" in codes(found)
    own = [{"id": i, "prompt": "p", "criterion": c} for i, c in (("k1", "a"), ("k2", "b"))]
    assert codes(load_tasks(own)) == {"field-conflict", "unread-field"}
    assert not load_tasks([{**r, "task_id": r["id"]} for r in own]).findings


@pytest.mark.parametrize("second", [0, 4])
def test_ids_of_rows_that_are_taken_for_names_of_answers_are_said(second):
    """A label a row, each with a key of its own: where few answers had two labels or none had,
    every answer was there twice after the join, without a word."""
    answers = [dict(task_id=f"t{i}", id="m1", response=f"It is {i}.") for i in range(20)]
    who = [(a, "ann") for a in answers] + [(a, "bob") for a in answers[:second]]
    rows = [
        a | dict(id=n, criterion_id="x", label="met", annotator=w) for n, (a, w) in enumerate(who)
    ]
    labelled = load_tasks(rows)
    assert ("same-prompt" in codes(labelled)) == bool(second)
    tasks = [dict(id=a["task_id"], prompt=f"What is {a['id']}?", criteria=["x"]) for a in answers]
    both = load_tasks(tasks).joined(load_tasks(answers))
    assert "same-text" in codes(both.joined(labelled))
    bare = [{k: x for k, x in r.items() if k != "id"} for r in rows]
    assert "same-text" not in codes(both.joined(load_tasks(bare)))
    called = [r | {"id": "m1"} for r in rows]
    assert "same-text" not in codes(both.joined(load_tasks(called)))


def test_pairs_of_transcripts_are_chats():
    """Rows of "Human: ... Assistant: ..." had no prompt."""
    head = "\n\nHuman: hi\n\nAssistant: yo\n\nHuman: so?\n\nAssistant: "
    found = load_tasks([{"chosen": head + "good", "rejected": head + "bad"}])
    task, chosen, rejected = pairs(found)[0]
    assert (task.prompt, [t["content"] for t in task.history]) == ("so?", ["hi", "yo"])
    assert (chosen.text, rejected.text) == ("good", "bad") and not found.findings
    other = {"chosen": head + "good", "rejected": head.replace("so?", "no?") + "bad"}
    assert "context-mismatch" in codes(load_tasks([other]))


@pytest.mark.parametrize(
    ("word", "read"), [("WAHR", True), ("ja", True), ("FALSCH", False), ("nein", False)]
)
def test_a_german_yes(tmp_path, word, read):
    """'WAHR' was an error and read as not required."""
    path = tmp_path / "t.csv"
    head = "task_id;response_id;prompt;criterion;required;response;label\n"
    path.write_text(head + f"1;r1;p;c;{word};a;0.5\n1;r2;p;c;{word};b;1.0\n")
    found = load_tasks(path)
    assert found.tasks[0].criteria[0].required is read
    assert [v.status for v in found.verdicts] == ["level", "met"]


@pytest.mark.parametrize("by", ["response_id", "criterion_id", "rater"])
def test_rows_of_one_task_need_not_follow_each_other(tmp_path, by):
    """Sorted by model, criterion or rater, each prompt became several tasks (`t1#2`): rows of one
    prompt lay in train, dev and test, and a second rater's labels were other answers.
    """
    rows = [
        {
            "task_id": f"t{i}",
            "prompt": f"Q {i}?",
            "response_id": f"r{k}",
            "response": f"A {i} {k}",
            "criterion_id": c,
            "criterion": f"Is it {c}?",
            "label": ["met", "unmet"][(i + k) % 2],
            "rater": rater,
        }
        for i in range(3)
        for k in (0, 1)
        for c in ("c1", "c2")
        for rater in "ab"
    ]
    found = []
    for order in (rows, sorted(rows, key=lambda r: r[by])):
        _jsonl(tmp_path / "l.jsonl", order)
        labels = load_tasks(tmp_path / "l.jsonl")
        ids = {(v.task_id, v.response_id, v.criterion_id, v.status) for v in labels.verdicts}
        found.append((ids, [t.id for t in labels.tasks], len(labels.verdicts)))
    assert found[0] == found[1] and found[0][1:] == (["t0", "t1", "t2"], 24)


def test_a_set_shows_itself_in_words_and_not_whole():
    """The text of one cell of notebook 1 had 288,935 characters."""
    tasks = load_tasks([{"id": "t", "prompt": "p" * 5000, "rubrics": ["It greets."]}])
    assert len(repr(tasks)) < 100 and "1 tasks" in repr(tasks)


def test_save_says_what_it_wants_first(tmp_path):
    """Raw TypeError and KeyError; nothing is written."""
    tasks = load_tasks([{"id": "t", "prompt": "p", "criteria": [{"id": "a", "text": "x"}]}])
    path = tmp_path / "x.jsonl"
    for args in ((tasks, path), (path, None), (path, 3), (path, "abc"), (path, [{"a": 1}])):
        with pytest.raises(DataError, match="path|no task"):
            save_tasks(*args)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("named", ["Where?", ["Where?", "And?"], ["Where?"], "And?"])
def test_a_pair_at_the_end_of_a_shared_chat_answers_that_chat(named):
    """The row's prompt was an earlier turn, or a list of some, as in a public set: "answer another
    prompt than the row's", and the answers stood under that prompt."""
    said = [("user", "Where?"), ("assistant", "Bonn."), ("user", "And?")]
    chat = [{"role": r, "content": t} for r, t in said]
    sides = {k: [*chat, {"role": "assistant", "content": k}] for k in ("chosen", "rejected")}
    query = named if isinstance(named, str) else json.dumps(named)
    found = load_tasks([{"query": query, **sides}])
    (task,) = found.tasks
    assert (task.prompt, len(task.history)) == ("And?", 2)
    assert [r.text for r in found.responses] == ["chosen", "rejected"]
    assert not [f for f in found.findings if f.severity == "error"]
    parted = [*chat[:1], {"role": "assistant", "content": "Rome."}, *sides["rejected"][2:]]
    for other in ({"query": "When?", **sides}, {"query": query, **sides, "rejected": parted}):
        assert "context-mismatch" in _codes(load_tasks([other]))


def test_pairs_of_answers_of_several_turns_are_said_to_be_no_pairs_of_texts():
    """All 158 pairs of a public set share the prompt: "answer different chats"; where a tool was
    called differently before the same last words, they were "the same text"."""
    asked = {"role": "user", "content": "Where is Bonn?"}
    ends, first = ({"role": "assistant", "content": t} for t in ("In Germany.", "I look."))
    for row in (
        {"prompt": [asked], "chosen": [first, ends], "rejected": [ends]},
        {"chosen": [asked, ends], "rejected": [asked, first, ends]},
    ):
        found = [f for f in load_tasks([row]).findings if f.severity == "error"]
        assert [f.code for f in found] == ["unread-turns"], row
        assert "answers of several turns" in found[0].message
    other = {**asked, "content": "Where is Cologne?"}
    found = load_tasks([{"chosen": [asked, ends], "rejected": [other, first, ends]}])
    assert "context-mismatch" in _codes(found)
    same = load_tasks([{"prompt": [asked], "chosen": [first, ends], "rejected": [first, ends]}])
    assert "same-pair" in _codes(same)
