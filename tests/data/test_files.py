"""Files, frames and data sets; save and load; joins; labels."""

import json
import re

import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kit import Criterion, Response, Task, Verdict, load, save
from kit.data import TaskSet, read_label, tasks_of, verdict_of
from kit.errors import DataError

TABLE = [
    {
        "task_id": "t",
        "prompt": "p",
        "criterion_id": "a",
        "criterion": "x",
        "weight": 2.0,
        "response": "r",
        "label": "met",
    },
    {
        "task_id": "t",
        "prompt": "p",
        "criterion_id": "b",
        "criterion": "NA",
        "weight": 1.0,
        "response": "r",
        "label": None,
    },
]


def written(folder, kind, rows):
    path = folder / f"rows.{kind}"
    frame = pd.DataFrame(rows)
    if kind == "parquet":
        frame.to_parquet(path)
    elif kind == "json":
        path.write_text(json.dumps(rows))
    elif kind == "jsonl.gz":
        frame.to_json(path, orient="records", lines=True, compression="gzip")
    else:
        frame.to_csv(path, index=False, sep="\t" if kind == "tsv" else ",")
    return path


@pytest.mark.parametrize("kind", ["csv", "tsv", "parquet", "json", "jsonl.gz", "frame", "datasets"])
def test_one_table_in_every_kind_of_file(tmp_path, kind):
    if kind == "frame":
        source = pd.DataFrame(TABLE)
    elif kind == "datasets":
        source = pytest.importorskip("datasets").Dataset.from_list(TABLE)
    else:
        source = written(tmp_path, kind, TABLE)
    s = load(source)
    assert [(c.id, c.text, c.weight) for c in s[0].criteria] == [("a", "x", 2.0), ("b", "NA", 1.0)]
    assert [r.text for r in s.responses] == ["r"] and [v.criterion_id for v in s.verdicts] == ["a"]


def test_our_name_of_a_column_says_its_type(tmp_path):
    (tmp_path / "a.csv").write_text("task_id,prompt,criterion,wt\nt,p,x,2\n")
    assert load(tmp_path / "a.csv", fields={"wt": "weight"})[0].criteria[0].weight == 2


def test_rlvr_files_hold_bare_tabs(tmp_path):
    path = tmp_path / "one.json"  # one row without brackets, indented with tabs
    path.write_text(
        '{\n\t"task_id": "t",\n\t"prompt": "a\tb",\n\t"rubric - 1. criterion": "x\ty"\n}'
    )
    s = load(path)
    assert (s[0].prompt, s[0].criteria[0].text) == ("a\tb", "x\ty")


def test_blank_criteria_are_none_and_are_counted():
    rows = [
        {
            "task_id": n,
            "prompt": "p",
            **{f"rubric - {k}. criterion": "x" * (k in (1, 3)) for k in range(1, 6)},
        }
        for n in "ab"
    ]
    s = load(rows)
    assert [[c.id for c in t.criteria] for t in s] == [["c1", "c3"]] * 2
    assert [(f.code, f.task_id, f.criterion_id, f.rows) for f in s.findings] == [
        ("empty-criterion", "a", "c2", 1),
        ("empty-criterion", "b", "c2", 1),
    ]


CRITERIA = (
    Criterion(id="a", text="x", weight=-2, check={"name": "words", "max": 3}, meta={"n": [1]}),
    Criterion(id="b", text="y", scale="points", points=5),
)


def test_save_and_load_give_the_same_back(tmp_path):
    made = TaskSet(
        tasks=[
            Task(
                id="t",
                prompt="p\u2028q",
                criteria=CRITERIA,
                truth={"a": 1},
                split="test",
                tags=("k",),
            )
        ],
        responses=[Response(task_id="t", id="r", text="\x00\t", confidence=0.5)],
        verdicts=[
            verdict_of(("t", "r", "b"), "3/5", CRITERIA[1]),
            Verdict(
                task_id="t",
                response_id="r",
                criterion_id="a",
                status="unknown",
                failure="parse",
                judge="j",
            ),
        ],
    )
    for name in ("a.jsonl", "a.jsonl.gz"):
        assert save(tmp_path / name, made) == 4
        again = load(tmp_path / name)
        assert (again.tasks, again.responses, again.verdicts) == (
            made.tasks,
            made.responses,
            made.verdicts,
        )
        assert not again.findings
    assert made.verdicts[0].value == 0.6


def test_sets_are_joined_by_equal_ids():
    tasks = load(
        [{"id": "t", "prompt": "p", "rubrics": ["x"]}, {"id": "u", "prompt": "p", "rubrics": ["x"]}]
    )
    answers = load([{"task_id": "t", "response_id": "r", "response": "a", "labels": {"c1": "met"}}])
    both = tasks.joined(answers)
    assert [r.id for r in both.answers("t")] == ["r"] and [v.value for v in both.labels("t")] == [
        1.0
    ]
    assert not both.answers("u") and not both.labels("u") and both.by_id["u"].id == "u"
    assert both.joined(answers).responses == both.responses  # what both hold counts once


@pytest.mark.parametrize(
    ("change", "lost"),
    [({"task_id": "T"}, "answer T / r"), ({"labels": {"c2": "met"}}, "label t / r / c2")],
)
def test_a_join_names_the_first_lost_id(change, lost):
    tasks = load([{"id": "t", "prompt": "p", "rubrics": ["x"]}])
    answers = load(
        [{"task_id": "t", "response_id": "r", "response": "a", "labels": {"c1": "met"}, **change}]
    )
    with pytest.raises(DataError, match=lost):
        tasks.joined(answers)
    with pytest.raises(DataError, match="differs"):
        tasks.joined(load([{"id": "t", "prompt": "other", "rubrics": ["x"]}]))


def test_labels_of_a_filled_table_join_their_answers():
    rows = [
        {
            "task_id": "t",
            "response_id": "r",
            "criterion_id": "c1",
            "inclusion": 0.5,
            "prompt": "p",
            "label": x,
            "rater": n,
        }
        for n, x in (("ann", "met"), ("bob", "no"), ("eve", None))
    ]
    labels = load(pd.DataFrame(rows))
    assert [(v.judge, v.value, v.meta["inclusion"]) for v in labels.verdicts] == [
        ("human:ann", 1.0, 0.5),
        ("human:bob", 0.0, 0.5),
    ]
    tasks = load([{"id": "t", "prompt": "p", "rubrics": ["x"]}])
    answers = load([{"task_id": "t", "response_id": "r", "response": "a"}])
    assert len(tasks.joined(answers).joined(labels).verdicts) == 2


LEVELS = Criterion(id="c", text="x", scale="ordinal", levels=("0", "1", "2"))
POINTS = Criterion(id="c", text="x", scale="points", points=5)


@pytest.mark.parametrize(
    ("label", "criterion", "expected"),
    [
        *[(x, None, ("met", None)) for x in ("met", "Yes", "TRUE", "1", 1, True, "🟢", "🟢 Yes")],
        *[(x, None, ("unmet", None)) for x in ("unmet", "no", "false", 0, False, "🔴", "🔴 No")],
        *[(x, None, ("level", 0.5)) for x in ("partly", "Partially", "🟡", "🟡 Partially")],
        ("unknown", None, ("unknown", None)),
        *[(x, None, None) for x in ("maybe", 0.5, "2", "", "yes.", "met met", None)],
        ("1", LEVELS, ("level", 0.5)),
        (2, LEVELS, ("level", 1.0)),
        ("3", LEVELS, None),
        ("met", LEVELS, ("met", None)),
        ("3/5", POINTS, ("level", 0.6)),
        *[(x, POINTS, None) for x in ("6/5", "3/4", "3", "-1/5", "1")],
    ],
)
def test_labels_have_documented_forms(label, criterion, expected):
    assert read_label(label, criterion) == expected


def test_an_unknown_label_is_neither_0_nor_false():
    v = verdict_of(("t", "r", "c"), "unknown", judge="human:ann")
    assert v.value is None and not v.is_known and v.judge == "human:ann"
    with pytest.raises(DataError, match="'c' is 'good'"):
        verdict_of(("t", "r", "c"), "good", where="here")


def test_tasks_of_takes_what_holds_tasks(tmp_path):
    s = load([{"id": "t", "prompt": "p"}])
    save(tmp_path / "a.jsonl", s)
    for thing in (
        s,
        s.tasks,
        s[0],
        str(tmp_path / "a.jsonl"),
        pd.DataFrame({"id": ["t"], "prompt": ["p"]}),
    ):
        assert [t.id for t in tasks_of(thing)] == ["t"]


def test_held_out_tasks_are_a_half():
    s = load(
        [
            {"id": n, "prompt": "p", "split": split}
            for n, split in enumerate(("train", "test", None, "val"))
        ]
    )
    assert [[t.id for t in half] for half in s.halves()] == [["0", "2"], ["1", "3"]]


# A text that is put into any field of a documented form is found again, or the row is refused.
SECRET = "⟦any⟧"
SHARED = {"task_id": "t", "prompt": "p", "group": "g", "kind": "k", "system": "s", "note": "n"}
PLACES = {
    "rlvr": {
        **SHARED,
        "rubric - 1. criterion": "x",
        "rubric - 1. criterion_origin": "o",
        "rubric - 2. criterion": "y",
        "rubric - 1. title": "z",
        "responseA": "a",
        "rubric - 1. ratingA": "🟢",
        "failure_explanation": "f",
    },
    "rubric": {
        **SHARED,
        "rubrics": [{"id": "i", "text": "x", "title": "z", "tags": ["a"], "note": "n"}, "y"],
        "response": "r",
    },
    "refiner": {
        **SHARED,
        "positive_rubrics": ["x"],
        "negative_rubrics": [{"description": "y"}],
        "sources": {"S": "text"},
    },
    "open-instruct": {
        "messages": [{"role": "system", "content": "s"}, {"role": "user", "content": "u"}],
        "dataset": "d",
        "ground_truth": {"query": "q", "rubrics": [{"description": "x", "title": "z"}]},
    },
    "verifier": {
        **SHARED,
        "truth": {"facts": [{"text": "f"}]},
        "verifiers": ["factual"],
        "question_type": "q",
    },
    "table": {
        **SHARED,
        "criterion_id": "k",
        "criterion": "x",
        "title": "z",
        "response_id": "r",
        "response": "a",
        "source": "m",
        "label": "met",
        "rater": "ann",
    },
    "answers": {
        "task_id": "t",
        "response_id": "r",
        "response": "a",
        "source": "m",
        "labels": {"k": "met"},
        "claims": ["c"],
    },
    "dpo": {**SHARED, "chosen": "c", "rejected": "r"},
    "qa": {**SHARED, "question": "q", "answer": "a", "type": "k"} | {"prompt": "p"},
    "sft": {**SHARED, "completion": "c"},
}


def places(value, path=()):
    """Paths to all texts of a row, keys of inner objects apart."""
    if isinstance(value, str):
        yield path
    for key, x in (
        value.items()
        if isinstance(value, dict)
        else enumerate(value)
        if isinstance(value, list)
        else ()
    ):
        yield from places(x, (*path, key))


def put(value, path, text):
    if not path:
        return text
    pairs = value.items() if isinstance(value, dict) else enumerate(value)
    new = {k: put(x, path[1:], text) if k == path[0] else x for k, x in pairs}
    return new if isinstance(value, dict) else list(new.values())


EVERY = [(form, path) for form, row in PLACES.items() for path in places(row)]


def strings(value):
    if isinstance(value, str):
        yield value
    inner = (
        value.values()
        if isinstance(value, dict)
        else value
        if isinstance(value, (list, tuple))
        else ()
    )
    for x in inner:
        yield from strings(x)


@settings(max_examples=400, deadline=None)
@given(
    place=st.sampled_from(EVERY),
    text=st.text(max_size=12) | st.sampled_from(["met", "train", "0", "null", "[]"]),
)
def test_any_text_in_any_field_is_found_again_or_refused(place, text):
    import msgspec

    form, path = place
    row = put(PLACES[form], path, text)
    # The word of a role that was there before loses nothing, and BioRLHF's names of verifiers become ours.
    if row == PLACES[form] or re.fullmatch("V[1-4]", text):
        return
    try:
        s = load([row], format=form)
    except DataError:
        return
    texts = [*strings(msgspec.to_builtins([s.tasks, s.responses, s.verdicts]))]
    assert not text.strip() or any(text.strip() in x for x in texts), (row, texts)


@settings(max_examples=60, deadline=None)
@given(
    texts=st.lists(st.text(min_size=1, max_size=9).filter(str.strip), min_size=1, max_size=3),
    kind=st.sampled_from(["csv", "jsonl", "parquet"]),
)
def test_any_text_survives_any_kind_of_file(tmp_path_factory, texts, kind):
    folder = tmp_path_factory.mktemp("files")
    rows = [{"task_id": f"t{n}", "prompt": text, "criterion": text} for n, text in enumerate(texts)]
    path = folder / f"a.{kind}"
    frame = pd.DataFrame(rows)
    if kind == "jsonl":
        path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    elif kind == "csv":
        import csv

        with path.open("w", newline="") as f:
            out = csv.DictWriter(f, list(rows[0]), quoting=csv.QUOTE_ALL)
            out.writeheader()
            out.writerows(rows)
    else:
        frame.to_parquet(path)
    assert [t.prompt for t in load(path)] == texts
