"""The instruction-following task: held out means held out, and nobody without skill is paid."""

from __future__ import annotations

import importlib.util
import itertools
import re

import pytest

import kit
from kit.checks import check
from kit.data import load_tasks
from kit.records import Response
from kit.rewards import Composer, search, standing, trivial
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


def strict(tasks, texts):
    said = [Response(task_id=t.id, id="r", text=x) for t, x in zip(tasks, texts, strict=True)]
    return sum(g.score == 1 for g in kit.grade(tasks, kit.judge(tasks, said), responses=said))


def frames(task, count):
    """Every fixed sentence around some of the quoted words, in any order."""
    said = slots(task)
    for n in range(count + 1):
        for chosen in itertools.permutations(range(count), n):
            first, *rest = [said[i] for i in chosen] or ["Perhaps"]
            named = " and ".join([*rest, task.group])
            yield from (f"{first} the very old {named} went home{end}" for end in ".?")


def test_no_frame_around_quoted_words_passes_more_than_the_one_that_is_named(tasks):
    """A capital letter told the opener, no quotes told the question: .68, where .38 was stated."""
    held = [t for t in tasks if t.split == "heldout"]
    best = 0
    for count in range(4):
        some = [t for t in held if len(slots(t)) == count]
        each = zip(*(frames(t, count) for t in some), strict=True)
        best += max(strict(some, texts) for texts in each)
    named = strict(held, [trivial.slot_frame(t).text for t in held])
    assert named == best < 0.47 * len(held)


def test_hyphens_and_foreign_marks_hide_no_list(tasks):
    """ "ants-cats calm-coffee ..." was 18 words; one text passed 32 of 84 prompts, all unread."""
    held = [t for t in tasks if t.split == "heldout"]
    every = sorted({w for t in held for w in [*slots(t), t.group]})
    for mark in ("-", "\u02bc", "\u034f", "\u0332", "\u20e3", "."):
        pairs = [mark.join(every[i : i + 3]) for i in range(0, len(every), 3)]
        assert strict(held, [f"There {' '.join(pairs[:18])}."] * len(held)) == 0
        assert strict(held, [f"There {mark.join(every)}@x.y of the old home."] * len(held)) == 0


@pytest.mark.parametrize(
    "topic, one",
    [("buses", "bus"), ("foxes", "fox"), ("geese", "goose"), ("mice", "mouse"), ("wolves", "wolf")],
)
def test_a_topic_is_named_by_its_singular_too(tasks, topic, one):
    """15 answers of the trained models fell by this alone: .76 where .80 was right."""
    task = next(t for t in tasks if t.group == topic)
    gate = next(c for c in task.criteria if c.id == "topic")
    said = Response(task_id=task.id, id="r", text=f"Is the {one} asleep in the old barn?")
    assert check(task, said, gate).status == "met"


@pytest.mark.parametrize(
    "text, failed",
    [
        ("Some old ferries carry quiet sailors home.", set()),
        ("The sailors went home on some ferries.", {"begin", "whole"}),
        ("Some old ferries carry quiet sailors home, and then they", {"finished", "whole"}),
        ("Some ferries. They carry sailors home at night.", {"finished", "whole"}),
        ("Some ferries ferries ferries ferries ferries carry old sailors home.", {"repeat"}),
        ("Some old sailors sail to a quiet home.", {"topic"}),
        ("Some ferries carry cafés home at night.", {"short"}),
        (
            "Some ferries " + " ".join(f"list{i}" for i in range(22)) + ".",
            {"short", "finished", "whole"},
        ),
        (
            "Some ferries carry tired-happy-hungry-wet-cold-old-sad-glad-tall-small-slow-fast-new "
            "sailors to a quiet home at night in a long winter.",
            {"short"},
        ),
        ("Some! The old ferries carry sailors home.", {"finished", "whole"}),
        ("Some ferries go home.", {"own", "finished", "whole"}),
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
    """ "holds: .000" stood alone, beside a sentence around the quoted words that earned .2 to .6."""
    reward = Composer.from_config("rubric")
    held = [t for t in tasks if t.split == "heldout"][:24]
    found = search(reward, tasks[::4], evaluations=40)
    assert found.heldout.value <= 0.1 and not found.gameable, found
    assert found.quoted.value > 0.2 and "words that the prompt quotes: " in str(found)
    # A list of every topic and word of the held-out prompts earned a third, until length was a gate.
    assert search(reward, held, evaluations=40).heldout.value <= 0.1
    assert all(row["earns"] <= 0.1 for row in standing(reward, held))


def test_the_shipped_config_trains_on_it_without_a_judge():
    done = job.read(CONFIGS / "instructions.yaml")
    assert (len(done.tasks), len(done.heldout), done.judge) == (240, 84, None)
