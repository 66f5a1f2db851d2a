"""The instruction-following task: held out means held out, and nobody without skill is paid."""

from __future__ import annotations

import importlib.util
import re

import pytest

import kit
from kit.checks import check
from kit.data import load_tasks
from kit.records import Response
from kit.rewards import Composer, search, standing
from kit.rewards.edits import slots
from kit.system import paths
from kit.train import job
from kit.train.chain import CONFIGS

spec = importlib.util.spec_from_file_location("maker", paths.data("make_instructions.py"))
one_sentence = importlib.util.module_from_spec(spec)
spec.loader.exec_module(one_sentence)


@pytest.fixture(scope="module")
def tasks():
    return one_sentence.tasks()


def words(tasks):
    return {w.casefold() for t in tasks for w in re.findall(r'"(\w+)"', t.prompt)}


def test_the_shipped_file_is_what_the_generator_writes(tasks, tmp_path):
    assert list(load_tasks(paths.data("instructions.jsonl")).sound().tasks) == tasks
    one_sentence.write(tmp_path / "other.jsonl", seed=1)
    other = load_tasks(tmp_path / "other.jsonl").sound().tasks
    assert {t.prompt for t in other} != {t.prompt for t in tasks}
    assert [t.kind for t in other] == [t.kind for t in tasks]


def test_held_out_prompts_share_no_topic_no_word_and_no_combination_with_training(tasks):
    train, held = ([t for t in tasks if t.split == s] for s in ("train", "heldout"))
    assert (len(train), len(held)) == (240, 84)
    assert not {t.group for t in train} & {t.group for t in held}
    assert not words(train) & words(held)
    assert sum("+" in t.kind for t in held) == 28
    assert not any("+" in t.kind for t in train)


QUOTED = {
    "all": lambda said: said,
    "backwards": lambda said: said[::-1],
    "the first": lambda said: said[:1],
    "the last": lambda said: said[-1:],
    "two": lambda said: said[:2],
    "the first and the last": lambda said: [*said[:1], *said[1:][-1:]],
}


@pytest.mark.parametrize("which", QUOTED)
def test_copying_what_is_quoted_earns_less_than_two_fifths(tasks, which):
    """A frame around the quoted words passed 84 of 84: now "this instead of that" is asked, too."""
    held = [t for t in tasks if t.split == "heldout"]
    picked = [(t, [*QUOTED[which](slots(t)), t.group]) for t in held]
    said = [
        Response(task_id=t.id, id="r", text=f"{w[0]} the very old {' and '.join(w[1:])} went home.")
        for t, w in picked
    ]
    grades = kit.grade(held, kit.judge(held, said), reward="rubric", responses=said)
    assert sum(g.score == 1 for g in grades) / len(held) < 0.4


@pytest.mark.parametrize(
    "text, failed",
    [
        ("Some old ferries carry quiet sailors home.", set()),
        ("The sailors went home on some ferries.", {"begin", "whole"}),
        ("Some old ferries carry quiet sailors home, and then they", {"finished", "whole"}),
        ("Some ferries. They carry sailors home at night.", {"finished", "whole"}),
        ("Some ferries ferries ferries ferries ferries carry old sailors home.", {"repeat"}),
        ("Some old sailors sail to a quiet home.", {"topic"}),
        ("Some ferries " + " ".join(f"list{i}" for i in range(40)), {"short", "finished", "whole"}),
        ("Some is the word for a sentence about ferries.", {"aside"}),
    ],
)
def test_each_criterion_sees_its_own_fault(text, failed):
    opener = {"name": "regex", "pattern": r"\ASome\b", "case": False}
    task = one_sentence.task_of(
        "t", "train", "ferries", ["begin"], [("", {"Begin with it.": opener})]
    )
    response = Response(task_id="t", id="r", text=text)
    assert {c.id for c in task.criteria if check(task, response, c).status != "met"} == failed


def test_no_policy_without_skill_is_paid_a_tenth(tasks):
    reward = Composer.from_config("rubric")
    held = [t for t in tasks if t.split == "heldout"][:24]
    found = search(reward, tasks[::4], evaluations=40)
    assert found.heldout.value <= 0.1, found
    # A list of every topic and word of the held-out prompts earned a third, until length was a gate.
    assert search(reward, held, evaluations=40).heldout.value <= 0.1
    assert all(row["earns"] <= 0.1 for row in standing(reward, held))


def test_the_shipped_config_trains_on_it_without_a_judge():
    done = job.read(CONFIGS / "instructions.yaml")
    assert (len(done.tasks), len(done.heldout), done.judge) == (240, 84, None)
