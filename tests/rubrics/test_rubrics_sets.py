"""Summary, which criteria tell answers apart, and splits that can be proven."""

import json
from dataclasses import replace

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

import kit
from kit.data import TaskSet
from kit.errors import DataError
from kit.records import Criterion, Response, Task, Verdict
from kit.rubrics import discrimination, split, summarize, verify_split


def label(response, criterion, status, judge="human"):
    ids = {"task_id": "t", "response_id": response, "criterion_id": criterion}
    failure = "abstain" if status == "unknown" else None
    return Verdict(**ids, status=status, judge=judge, failure=failure)


@pytest.fixture
def small():
    criteria = (
        Criterion(id="a", text="Names a crater.", weight=2, required=True),
        Criterion(id="b", text="Is rude.", weight=-1),
        Criterion(id="c", text="Is JSON.", check={"name": "json"}),
    )
    tasks = [
        Task(id="t", prompt="Describe the moon.", criteria=criteria, group="g", kind="facts"),
        Task(id="u", prompt="Describe the sun.", split="test"),
    ]
    answers = [Response(task_id="t", id=i, text="x", source="s") for i in "xy"]
    rows = "x a met, y a unmet, x b unmet, y b unmet, x c unknown".split(", ")
    labels = [label(*row.split()) for row in rows]
    return TaskSet(tasks=tasks, responses=answers, verdicts=labels)


def test_a_summary_counts_what_is_there(small):
    numbers = summarize(small).numbers()
    wanted = {
        "tasks": 2, "held out": 1, "groups": 1, "criteria": 3, "criteria per task, median": 1.5,
        "negative weights": 1, "required": 1, "decided by code": 1 / 3, "answers": 2, "labels": 5,
        "label coverage": 4 / 6,
    }  # fmt: skip
    assert {k: numbers[k] for k in wanted} == wanted


def test_a_summary_of_prompts_alone():
    summary = summarize([Task(id="t", prompt="p")])
    assert (summary.checkable, summary.coverage) == (None, None)
    assert "tasks" in summary._repr_html_()


def test_a_summary_draws_itself(small):
    for what in ("criteria", "weights", "lengths", "kinds", "checks"):
        assert len(summarize(small).plot(what).data)
    with pytest.raises(DataError, match="unknown names: weight"):
        summarize(small).plot("weight")


def test_criteria_that_tell_answers_apart_come_first(small):
    rows = discrimination(small).set_index("criterion")
    assert rows.index[0] == "a"
    assert rows["apart"].to_dict() == {"a": True, "b": False, "c": False}
    assert rows.loc["a", ["answers", "met", "spread"]].tolist() == [2, 0.5, 1]
    assert rows.loc["c", ["answers", "unknown"]].tolist() == [0, 1]


def test_verdicts_of_a_judge_are_compared_too(small):
    verdicts = [label("x", "b", "met", "j"), label("y", "b", "unmet", "j")]
    rows = discrimination(small, verdicts)
    assert rows[["criterion", "apart"]].to_numpy().tolist() == [["b", True]]


# -- splits --------------------------------------------------------------------
def tasks_of(rows):
    """Tasks of (prompt, group, is held out)."""
    return [
        Task(id=str(n), prompt=f"Prompt {p}", group=g and f"g{g}", split="test" if out else None)
        for n, (p, g, out) in enumerate(rows)
    ]


rows = st.lists(
    st.tuples(st.integers(0, 12), st.integers(0, 4), st.sampled_from([False] * 5 + [True])),
    min_size=2,
    max_size=40,
)


@given(rows, st.floats(0.05, 0.9), st.integers(0, 5))
def test_no_group_and_no_prompt_is_on_both_sides(made, share, seed):
    tasks = tasks_of(made)
    try:
        result = split(tasks, share=share, seed=seed)
    except DataError:
        return  # one side is empty: all tasks hang together
    train, heldout = result.train.tasks, result.heldout.tasks
    assert sorted(t.id for t in [*train, *heldout]) == sorted(t.id for t in tasks)
    assert not {t.prompt for t in train} & {t.prompt for t in heldout}
    assert not {t.group for t in train if t.group} & {t.group for t in heldout}
    assert {t.id for t in tasks if t.held_out} <= {t.id for t in heldout}
    assert all(t.held_out for t in heldout) and not any(t.held_out for t in train)
    assert result.verify(tasks) == []
    assert split(tasks, share=share, seed=seed).manifest == result.manifest


def test_the_share_is_reached():
    tasks = tasks_of([(n, 0, False) for n in range(100)])
    assert len(split(tasks, share=0.2).heldout) == 20
    other = split(tasks, share=0.2, seed=1)
    assert other.manifest["heldout"] != split(tasks, share=0.2).manifest["heldout"]


def test_groups_are_held_out_by_name():
    tasks = tasks_of([(n, n % 3 + 1, False) for n in range(9)])
    assert {t.group for t in split(tasks, groups=["g2"]).heldout} == {"g2"}
    with pytest.raises(DataError, match="unknown names: g9"):
        split(tasks, groups=["g9"])


@pytest.mark.parametrize(
    ("prompts", "how", "fault"),
    [((1, 2), {"share": 0}, "share"), ((1, 2), {"share": 7}, "share"), ((1, 1), {}, "one side")],
)
def test_what_cannot_be_split_is_an_error(prompts, how, fault):
    with pytest.raises(DataError, match=fault):
        split(tasks_of([(p, 0, False) for p in prompts]), **how)


def test_verify_names_what_changed():
    tasks = tasks_of([(n, 0, False) for n in range(8)])
    manifest = json.loads(json.dumps(split(tasks).manifest))
    assert verify_split(manifest, tasks) == []
    assert verify_split(manifest, tasks[1:])[0] == f"task '0' ({side(manifest, '0')}) is missing"
    changed = [msgspec.structs.replace(tasks[0], prompt="Other"), *tasks[1:]]
    assert "was changed" in verify_split(manifest, changed)[0]
    extra = Task(id="new", prompt="New")
    assert verify_split(manifest, [*tasks, extra]) == ["task 'new' is new"]
    # A manifest that puts one prompt on both sides proves nothing.
    twin = msgspec.structs.replace(tasks[0], id="twin")
    other = "heldout" if side(manifest, "0") == "train" else "train"
    forged = split([twin, Task(id="z", prompt="z")]).manifest
    manifest[other]["twin"] = {**forged["train"], **forged["heldout"]}["twin"]
    assert "both sides" in verify_split(manifest, [*tasks, twin])[0]


def side(manifest, name):
    return "train" if name in manifest["train"] else "heldout"


def test_answers_and_labels_follow_their_tasks(small, tmp_path):
    other = replace(small, tasks=[small[0], msgspec.structs.replace(small[1], split="test")])
    result = split(other, share=0.5)
    assert len(result.train.responses) == 2 and len(result.train.verdicts) == 5
    assert result.heldout.responses == []
    result.save(tmp_path)
    assert kit.load(tmp_path / "train.jsonl").verdicts == result.train.verdicts
    manifest = json.loads((tmp_path / "split.json").read_text())
    assert verify_split(manifest, other) == []
