"""Two files as one set: nothing is doubled, nothing is lost, whatever shape each of them has."""

import itertools
import time
from collections import defaultdict
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kit import tables
from kit.data import load_tasks, save_tasks
from kit.errors import DataError
from kit.records import to_json

CRITERIA = [{"id": "a", "text": "States it."}, {"id": "b", "text": "Insults.", "weight": -2}]
TASKS = [{"id": f"t{i}", "prompt": f"Question {i}?", "criteria": CRITERIA} for i in range(4)]
LABELS = {"a": "met", "b": "unmet"}


def said(i, *names, **more):
    """A row of an answer to task i with these fields."""
    every = {"task_id": f"t{i}", "prompt": f"Question {i}?", "criteria": CRITERIA}
    every |= {"response_id": "gpt", "response": f"answer {i}", "labels": LABELS}
    return {k: every[k] for k in names} | more


def rows(*names, **more):
    return [said(i, *names, **more) for i in range(4)]


def joined(*files):
    first, *rest = map(load_tasks, files)
    for one in rest:
        first = first.joined(one)
    return first


def sizes(found):
    return len(found.tasks), len(found.responses), len(found.verdicts)


@pytest.mark.parametrize(
    "more",
    [
        rows("task_id", "prompt", labels={"a": "met"}, answer="x"),
        [{"task_id": "t0", "response": None}],
        [{"prompt": "Question 0?", "labels": {"a": "met"}}],
    ],
)
def test_what_is_said_of_a_file_that_brings_nothing_new_stays(more):
    """Answers and labels of a whole file were gone, and their errors with them: it was sound."""
    alone, both = load_tasks(more), joined(TASKS, more)
    assert sizes(both) == (4, 0, 0) and both.rows == 4 + len(more)
    assert set(alone.findings) <= set(both.findings) and both.skipped == alone.skipped
    with pytest.raises(DataError):
        both.sound()


@pytest.mark.parametrize("order", [1, -1])
def test_what_a_row_says_of_its_task_is_filled_in(order):
    """Held-out marks, references, sources and systems of the second file were thrown away."""
    more = {"sources": {"S": "text"}, "system": "Be brief.", "group": "g", "split": "test"}
    both = joined(*[TASKS, rows("prompt", "response", **more)][::order])
    task = both.tasks[0]
    assert task.held_out and len(task.criteria) == 2 and task.id == "t0"
    assert (task.sources, task.system, task.group) == ({"S": "text"}, "Be brief.", "g")
    marked = [{**t, "split": "train"} for t in TASKS]
    assert all(t.held_out for t in joined(marked, rows("prompt", split="test")).tasks)
    asked = rows("prompt", question="x", expected_answer="ref")
    asked = [{"question": r["prompt"], "expected_answer": "ref"} for r in asked]
    assert joined(TASKS, asked).tasks[0].truth == {"answer": "ref"}


def test_tasks_of_one_id_that_disagree_are_refused_by_the_field():
    for field, value in (("group", "h"), ("prompt", "Other?"), ("system", "S2")):
        one = [{**TASKS[0], "group": "g", "system": "S"}]
        with pytest.raises(DataError, match=rf"another task 't0': its {field} is"):
            joined(one, [{**one[0], field: value}])
    with pytest.raises(DataError, match="'t0': its criteria are"):
        joined(TASKS, [{**TASKS[0], "criteria": [{"id": "c", "text": "x"}]}])
    with pytest.raises(DataError, match="criterion 'a' the text is"):
        joined(TASKS, [{**TASKS[0], "criteria": [{"id": "a", "text": "x"}, CRITERIA[1]]}])
    with pytest.raises(DataError, match="weights"):
        joined(TASKS, [{**TASKS[0], "criteria": [CRITERIA[0], {**CRITERIA[1], "weight": -3}]}])


@pytest.mark.parametrize("order", [1, -1])
def test_labels_beside_a_prompt_and_its_criteria_are_on_the_task_that_asks_it(order):
    """Every task, answer and call was there twice, and means had twice as many clusters."""
    named = rows("prompt", "criteria", "response", "labels")
    both = joined(*[TASKS, named][::order])
    assert sizes(both) == (4, 4, 8) and not both.findings
    other = [{**r, "criteria": [{"id": "z", "text": "Else."}], "labels": {}} for r in named]
    both = joined(TASKS, other)
    assert [f.code for f in both.findings if f.severity == "warning"] == ["same-prompt"]
    assert sizes(both) == (8, 4, 0)


ID, TEXT = ("task_id", "response_id", "response"), ("task_id", "response")


@pytest.mark.parametrize(
    ("answers", "labels"),
    [(ID, TEXT), (TEXT, ID), (("prompt", "response"), TEXT), (TEXT, TEXT), (ID, ID)],
)
def test_an_answer_without_a_name_of_its_own_is_the_one_of_its_text(answers, labels):
    """It was judged and paid for twice, and its labels were on one of the two."""
    for order in (1, -1):
        both = joined(TASKS, *[rows(*answers), rows(*labels, "labels")][::order])
        assert sizes(both) == (4, 4, 8) and not both.findings
    twice = joined(TASKS, rows(*ID), rows("task_id", "response", response_id="llama"))
    assert sizes(twice) == (4, 8, 0)


def test_one_label_in_two_words_is_one_label():
    both = joined(TASKS, rows(*ID, labels={"a": 1}), rows(*ID, labels={"a": "met"}))
    assert sizes(both) == (4, 4, 4)


def long(*names, rater=None):
    """A table of labels, a row an answer, criterion and rater."""
    more = {"rater": rater} if rater else {}
    every = (
        {**r, "criterion_id": c, "label": LABELS[c], **more} for r in rows(*names) for c in "ab"
    )
    return list(every)


@pytest.mark.parametrize("names", [("task_id", "response_id"), ID, TEXT, (*ID, "prompt")])
def test_a_row_a_label_by_ids_is_a_label_on_what_is_there(names):
    """It was not recognised; with the text it was read as answers that occur again."""
    people = long(*names, rater="ann") + long(*names, rater="bob")
    both = joined(TASKS, rows(*ID), people)
    assert sizes(both) == (4, 4, 16)
    assert {v.judge for v in both.verdicts} == {"human:ann", "human:bob"}
    assert {f.severity for f in both.findings} <= {"info"}
    nested = rows("task_id", "response_id", "labels")
    assert sizes(joined(TASKS, rows(*ID), nested)) == (4, 4, 8)


ASKS = {"Names Paris": 2, "Insults": -1, "Cites": 1}  # not in the order of the alphabet


def table(*names, weights=False, own="", some=None, **more):
    """A row a criterion of one task, which a file of rubrics and one of labels have alike."""
    every = {"task_id": "t1", "prompt": "P1", "response": "A1", "label": "met"}
    weighed = [{"weight": w} if weights else {} for w in ASKS.values()]
    called = [{"criterion_id": f"{own}{n}"} if own else {} for n in range(3)]
    rows = [
        {k: every[k] for k in names} | {"criterion": text} | w | c | more
        for text, w, c in zip(ASKS, weighed, called, strict=True)
    ]
    return rows[some:]


BY_PROMPT = table("prompt", weights=True)
RUBRICS = (
    BY_PROMPT,
    table("task_id", "prompt", weights=True),
    [{"id": "t1", "prompt": "P1", "criteria": list(ASKS)}],
    [
        dict(id="t1", prompt="P1")
        | {"criteria": [dict(id=i, text=t) for i, t in zip("xyz", ASKS, strict=True)]}
    ],
)
SAYS = ("response", "label")


TABLES = (
    table("prompt", *SAYS),
    table("prompt", *SAYS, weights=True),
    table("task_id", *SAYS),
    table("task_id", "prompt", *SAYS, rater="ann"),
    table("task_id", *SAYS, some=-1),
)
BOTH = [(r, t) for r in RUBRICS for t in TABLES if r is not BY_PROMPT or "task_id" not in t[0]]


@pytest.mark.parametrize(("rubric", "labels"), BOTH)
@pytest.mark.parametrize("order", [1, -1])
def test_criteria_without_ids_are_the_same_by_their_texts_in_any_order(rubric, labels, order):
    """A table of labels joined only where the texts of the tasks stood in the alphabet's order."""
    both = joined(*[rubric, labels][::order])
    assert len(both.tasks) == 1 == len(both.responses) and not both.findings
    (task,), (alone,) = both.tasks, load_tasks(rubric).tasks
    assert {(c.id, c.text) for c in task.criteria} == {(c.id, c.text) for c in alone.criteria}
    on = {c.id: c.text for c in alone.criteria}
    assert [on[v.criterion_id] for v in both.verdicts] == sorted(r["criterion"] for r in labels)


def test_criteria_that_two_files_name_are_not_held_for_others_of_their_texts():
    files = [table("task_id", "prompt", own=own) for own in ("first ", "second ")]
    with pytest.raises(DataError, match="its criteria are"):
        joined(*files)
    odd = [r | {"criterion": f"{r['criterion']}!"} for r in table("prompt", *SAYS, weights=True)]
    both = joined(BY_PROMPT, odd)
    said = [f.message for f in both.findings if f.severity == "warning"]
    assert sizes(both)[0] == 2 and said[0].startswith("1 tasks (row-1) are asked in both files")


TWINS = [  # of one text
    {"id": i, "text": text, "weight": w}
    for i, text, w in (("a", "Is kind.", 1), ("b", "Is short.", 2), ("z", "Is kind.", -1))
]


@pytest.mark.parametrize("criteria", [TWINS, [c["text"] for c in TWINS]])
@pytest.mark.parametrize("order", [1, -1])
def test_a_label_named_by_a_text_that_two_criteria_have_is_on_neither(criteria, order):
    """It went to the last of the two, which cost where the first one paid, without a word."""
    rubric = [{"id": "t", "prompt": "Who?", "criteria": criteria}]
    label = {"task_id": "t", "prompt": "Who?", "response": "I", "label": "met"}
    with pytest.raises(DataError, match=r"have one text, 'Is kind.'") as said:
        joined(*[rubric, [label | {"criterion": "Is kind."}]][::order])
    assert "an id of its own" in said.value.fix
    both = joined(*[rubric, [label | {"criterion": "Is short."}]][::order])
    assert [v.criterion_id for v in both.verdicts] == [both.tasks[0].criteria[1].id]
    if criteria is TWINS:
        named = [label | {"criterion": "Is kind.", "criterion_id": i} for i in "az"]
        for one in named:
            both = joined(*[rubric, [one]][::order])
            assert [v.criterion_id for v in both.verdicts] == [one["criterion_id"]]


def test_a_row_named_by_a_text_that_two_criteria_of_its_table_have_is_an_error():
    """Its label was the first one's."""
    row = {"task_id": "t", "prompt": "Who?", "criterion": "Is kind.", "label": "met"}
    named = [row | {"criterion_id": i, "response": "I"} for i in "az"]
    assert not load_tasks(named).findings
    with pytest.raises(DataError, match="which of them the row means is not known"):
        load_tasks([*named, row | {"response": "You"}]).sound()


@pytest.mark.parametrize("ids", ["az", "xy"])
def test_a_drawn_label_on_a_text_that_two_criteria_have_goes_by_its_id(ids):
    """Where its id was that of none of them, it was the first one's."""
    marks = {"design": "random", "inclusion": 0.5, "schema": 1}
    rows = [{"task_id": "t", "response_id": "r", "criterion_id": i, **marks} for i in ids]
    rows = [r | {"criterion": "Is kind.", "answer": "I", "label": "met"} for r in rows]
    both = joined([{"id": "t", "prompt": "Who?", "criteria": TWINS}], rows)
    if ids == "az":
        assert [v.criterion_id for v in both.sound().verdicts] == ["a", "z"]
    else:
        with pytest.raises(DataError, match="'a', 'z' of the task say that"):
            both.sound()


def test_labels_on_answers_that_are_not_there_are_an_error():
    table = long("task_id", "response_id")
    both = joined(TASKS, table)
    assert [f.code for f in both.findings] == ["unknown-answer"]
    assert "8 labels" in both.findings[0].message and "('t0', 'gpt')" in both.findings[0].message
    assert not both.joined(load_tasks(rows(*ID))).findings


@pytest.mark.parametrize("scale", ["", None, "bad | fair | good"])
def test_what_kit_label_wrote_is_joined_to_its_tasks(scale):
    """A file with a part of a task's criteria, as it is drawn, was "another task"."""
    drawn = {"design": "random", "inclusion": 0.5, "schema": 1, "scale": scale}
    table = [
        {**r, "criterion": "States it.", "answer": r.pop("response"), **drawn}
        for r in long(*ID, "prompt")
        if r["criterion_id"] == "a"
    ]
    for order in (1, -1):
        both = joined(*[TASKS, table][::order])
        assert sizes(both) == (4, 4, 4) and [len(t.criteria) for t in both.tasks] == [2] * 4
    assert not both.findings


@pytest.mark.parametrize("order", [1, -1])
@pytest.mark.parametrize("kind", ["rows", "records", "table"])
@pytest.mark.parametrize(
    ("field", "one", "two"),
    [("weight", 1, -1), ("weight", 1, 3), ("weight", 2, 3), ("required", False, True)],
)
def test_what_two_files_wrote_is_not_filled_in(tmp_path, order, kind, field, one, two):
    """A weight of 1 was held for one that nobody wrote: of 1 and -1, both in a file, -1 was taken
    without a word, and what was to be there cost."""

    def asks(**more):
        first = {"id": "a", "text": "Says Nile"}
        if kind == "table":
            return [{"task_id": "t", "prompt": "p?", "criterion": "Says Nile", **more}]
        return [{"id": "t", "prompt": "p?", "criteria": [{**first, **more}]}]

    def read(given):
        found = load_tasks(given)
        save_tasks(tmp_path / "x.jsonl", found)
        return load_tasks(tmp_path / "x.jsonl") if kind == "records" else found

    made = [read(asks(**{field: x})) for x in (one, two)][::order]
    with pytest.raises(DataError, match=f"{field}|weights"):
        made[0].joined(made[1])
    # of three files one says nothing: what it is filled with stays what a file wrote
    silent = [load_tasks(asks()), made[0]][::order]
    both = silent[0].joined(silent[1])
    assert getattr(both.tasks[0].criteria[0], field) == getattr(made[0].tasks[0].criteria[0], field)
    with pytest.raises(DataError, match=f"{field}|weights"):
        both.joined(made[1])
    assert both.joined(made[0]).tasks == both.tasks


def test_which_fields_a_file_wrote_is_no_content_of_a_criterion(tmp_path):
    told, plain = (
        load_tasks([{**TASKS[0], "criteria": [{"text": "x", **w}]}]) for w in ({"weight": 1}, {})
    )
    assert told.tasks == plain.tasks and to_json(told.tasks[0]) == to_json(plain.tasks[0])
    assert "written" not in tables.row_of(told.tasks[0].criteria[0])
    found = load_tasks([{**TASKS[0], "criteria": [{"text": "x", "written": "by ann"}]}])
    assert found.tasks[0].criteria[0].meta == {"written": "by ann"}
    # answers of one task, one row of which leaves a default out
    rows = [
        {**TASKS[0], "criteria": [{"text": "x", **w}], "response": r}
        for r, w in (("A", {"weight": 1}), ("B", {}))
    ]
    assert sizes(load_tasks(rows)) == (1, 2, 0)


def test_a_table_of_labels_may_name_a_part_of_the_criteria_without_their_weights():
    table = [{**r, "criterion": CRITERIA[1]["text"]} for r in long(*ID, "prompt")]
    table = [r for r in table if r["criterion_id"] == "b"]
    for order in (1, -1):
        both = joined(*[TASKS, table][::order])
        assert sizes(both) == (4, 4, 4) and not both.findings
        assert [c.weight for c in both.tasks[3].criteria] == [1, -2]


@pytest.mark.slow
def test_sets_are_joined_in_the_time_that_they_are_read():
    """20,000 answers of tasks that share a prompt took eleven minutes, equal texts five."""
    n, asked = 3000, {"prompt": "Summarize the source."}
    tasks = [
        {**asked, "id": f"t{i}", "sources": {"S": f"{i}"}, "criteria": ["x"]} for i in range(n)
    ]
    answers = [{**asked, "sources": {"S": f"{i}"}, "response": ""} for i in range(n)]
    one, two = load_tasks(tasks), load_tasks(answers)
    start = time.process_time()
    assert sizes(one.joined(two)) == (n, n, 0)
    same = load_tasks([{"task_id": "t0", "response": "", "model": f"m{i}"} for i in range(n)])
    assert sizes(load_tasks(tasks[:1]).joined(same).joined(same)) == (1, n, 0)
    assert time.process_time() - start < 5  # it was 20


def split(rnd):
    """(files, how many tasks, answers and labels they hold together): a set over three files in
    random shapes."""
    shared, named, models = (rnd.random() < 0.5 for _ in range(3))
    tasks = []
    for i in range(rnd.randint(1, 3)):
        asked = {"prompt": "Q", "sources": {"S": f"source {i}"}} if shared else {"prompt": f"Q{i}"}
        tasks.append({"id": f"t{i}", **asked, "criteria": CRITERIA[: rnd.randint(1, 2)]})
    answers = [
        {"task": t, "id": f"own{k}", "text": f"text {k}", "model": f"m{k}" if models else None}
        for t in tasks
        for k in range(rnd.randint(0, 3))
    ]
    labels = defaultdict(dict)
    for n, c, who in itertools.product(range(len(answers)), "ab", ("ann", "bob")):
        if c in {x["id"] for x in answers[n]["task"]["criteria"]} and rnd.random() < 0.5:
            labels[n].setdefault(c, {})[who] = rnd.choice(([0, "no", False], [1, "met", True]))

    def row(n, shape, ids, labelled):
        answer, task = answers[n], answers[n]["task"]
        asked = {k: x for k, x in task.items() if k in ("prompt", "sources")}
        own = {"response_id": answer["id"]} if ids and shape == "id" else {}
        model = {"model": answer["model"]} if models else {}
        told = {c: {w: rnd.choice(x) for w, x in who.items()} for c, who in labels[n].items()}
        place = {
            "id": {"task_id": task["id"]},
            "prompt": asked,
            "repeated": {**asked, "criteria": task["criteria"]},
        }[shape]
        more = {"labels": told} if labelled and told else {}
        return {**place, **own, **model, "response": answer["text"], **more}

    shapes = ["repeated", *["id"] * named]
    one, two = rnd.choice([*shapes, "prompt"]), rnd.choice(shapes)
    some = [n for n in range(len(answers)) if rnd.random() < 0.7]
    ids = [rnd.random() < 0.5 for _ in range(2)]
    files = [
        [t if named else {k: x for k, x in t.items() if k != "id"} for t in tasks],
        [row(n, one, ids[0], False) for n in some],
        [row(n, two, ids[1], True) for n in range(len(answers))],
    ]
    count = sum(len(who) for on in labels.values() for who in on.values())
    return [f for f in files if f], (len(tasks), len(answers), count)


@settings(max_examples=40, deadline=None)
@given(st.randoms(use_true_random=False))
def test_a_set_that_lies_in_several_files_is_the_set_in_any_order(rnd):
    files, truth = split(rnd)
    sets = list(map(load_tasks, files))
    for first, *rest in itertools.permutations(sets):
        for one in rest:
            first = first.joined(one)
        assert sizes(first) == truth
        assert sizes(first.joined(first)) == truth
        assert not [f for f in first.findings if f.severity == "error"]


@pytest.mark.parametrize("named", [{"response_id": "gpt"}, {"model": "gpt"}, {}])
@pytest.mark.parametrize("back", [False, True])
def test_an_answer_by_its_prompt_of_which_two_people_speak_is_one(named, back):
    """A row a rater, named by the prompt: every answer was there, judged and paid twice."""
    criteria = [{"id": "a", "text": "It cites a source."}, {"id": "b", "text": "It is short."}]
    asks = [{"id": f"q{i}", "prompt": f"Question {i}?", "criteria": criteria} for i in range(3)]
    said = [
        {
            **named,
            **dict(prompt=f"Question {i}?", response=f"Answer {i}", rater=f"r{r}"),
            "labels": {"a": "met", "b": "unmet"},
        }
        for i in range(3)
        for r in range(2)
    ]
    sets = [load_tasks(asks), load_tasks(said)]
    got = sets[back].joined(sets[not back]).sound()
    assert (len(got.tasks), len(got.responses), len(got.verdicts)) == (3, 3, 12)
    assert {v.ids[:2] for v in got.verdicts} == {r.ids for r in got.responses}


def test_a_row_an_answer_keeps_the_name_that_it_gives():
    """A label table by the file's own response_id was on no answer."""
    task = {"id": "q", "prompt": "Ask?", "criteria": [{"id": "a", "text": "It is short."}]}
    rows = [{**task, "response_id": f"m{m}", "response": f"Answer {m}"} for m in range(2)]
    labels = [
        dict(task_id="q", response_id=f"m{m}", rater="ann", criterion_id="a", label="met")
        for m in range(2)
    ]
    got = load_tasks(rows).joined(load_tasks(labels)).sound()
    assert [r.id for r in got.responses] == [v.response_id for v in got.verdicts] == ["m0", "m1"]


@pytest.mark.parametrize("turned", [False, True])
def test_equal_texts_of_two_models_keep_their_own_labels(turned):
    """A table's model is an answer's source: m1's label stood on m0's "Yes.", by the order of rows."""
    given = [{"task_id": "q", "model": m, "response": "Yes."} for m in ("m0", "m1")]
    table = [
        dict(task_id="q", prompt="Q?", model=m, response="Yes.", rater="r", label=label)
        | dict(criterion_id="a", criterion="It is right.")
        for m, label in (("m1", "unmet"), ("m0", "met"))
    ]
    got = load_tasks(given[::-1] if turned else given).joined(load_tasks(table))
    whose = {r.id: r.source for r in got.responses}
    assert all(whose[r.id] == r.meta["model"] for r in got.responses)
    assert {whose[v.response_id]: v.status for v in got.verdicts} == {"m0": "met", "m1": "unmet"}


def test_an_answer_keeps_whose_it_is_where_its_task_says_the_same():
    """The task's own `model` took that of the answers by the same one: 2 of 4 had none."""
    task = {"id": "q", "prompt": "Q?", "model": "gpt", "criteria": CRITERIA}
    given = [{"prompt": "Q?", "model": m, "response": f"By {m}."} for m in ("gpt", "llama")]
    got = load_tasks([task]).joined(load_tasks(given))
    assert [r.meta["model"] for r in got.responses] == ["gpt", "llama"]


@pytest.mark.parametrize("more", [{}, {"prompt": "Question 0?"}])
def test_labels_by_ids_were_lost_where_the_table_says_what_the_criterion_asks(more):
    """Their column `criterion` made the table a flat one without answers: 0 labels of 4."""
    answers = [dict(task_id=f"t{i}", response_id="r", response="Yes.") for i in range(4)]
    table = [
        dict(task_id=f"t{i}", response_id="r", criterion_id="a", criterion="States it.")
        | dict(label="met" if i else "unmet")
        | {k: v.replace("0", str(i)) for k, v in more.items()}
        for i in range(4)
    ]
    files = [load_tasks(x) for x in (TASKS, answers, table)]
    for one, two, three in itertools.permutations(files):
        assert sizes(one.joined(two).joined(three).sound()) == (4, 4, 4)


def test_a_table_of_labels_by_ids_takes_its_prompts_from_the_tasks():
    """Eleven errors of missing prompts stayed, though every one stood in the tasks' file."""
    table = [
        dict(task_id=f"t{i}", response="Yes.", rater=r, criterion_id="a", label=r == "ann")
        | dict(criterion="States it.")
        for i in range(4)
        for r in ("ann", "bob")
    ]
    for one, two in itertools.permutations([load_tasks(TASKS), load_tasks(table)]):
        assert sizes(one.joined(two).sound()) == (4, 4, 8)
    every = load_tasks(TASKS)
    some = replace(every, tasks=every.tasks[:2]).joined(load_tasks(table))
    lacking = [f.row for f in some.findings if f.code == "missing-field"]
    assert lacking == [5, 7, None]  # the tasks of the others are not there
