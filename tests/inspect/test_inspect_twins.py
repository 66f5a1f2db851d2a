"""A prompt stands on one side of a split: 282 of 800 pairs of twins stood on both, which the lint calls an error."""

import itertools

import pytest

import kit
from kit.data.words import asked_key
from kit.errors import DataError
from kit.records import Task
from kit.rubrics import lint, splits

WAYS = ("Name the {} river.", "name  the {} River", "Name the {} river")
TASKS = [
    Task(id=f"{i}-{j}", prompt=w.format(i), kind=f"k{i % 3}", group=f"g{j}{i % 7}")
    for i, (j, w) in itertools.product(range(12), enumerate(WAYS))
]
ALONE = [Task(id=f"t{i}", prompt=f"p{i}", kind=f"k{i % 3}") for i in range(40)]


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("how", ["plain", "group"])
def test_twins_stay_on_one_side_and_the_lint_finds_no_leak(seed, how):
    tasks = [Task(id=t.id, prompt=t.prompt, kind=t.kind) for t in TASKS]
    if how == "group":  # twins in different groups: both groups go to one side
        tasks = [Task(id=t.id, prompt=t.prompt, group=t.id[-1] + t.id[0]) for t in TASKS]
    split = kit.split(tasks, share=0.3, seed=seed)
    parts = [split.of(tasks, name) for name in ("train", "heldout")]
    assert all(parts) and sum(map(len, parts)) == len(tasks)
    keys = [{asked_key(t) for t in p} for p in parts]
    assert not keys[0] & keys[1]
    assert not [f for f in lint(parts[0] + parts[1]).of("split-leak") if f.severity == "error"]


def test_a_split_without_twins_is_the_one_that_it_was():
    """Seeds are written down with results."""
    assert kit.split(ALONE, share=0.1, seed=0).parts["heldout"] == ("t16", "t2", "t26", "t24")


def test_twins_of_a_named_group_are_held_out_with_their_group():
    tasks = [Task(id=str(i), prompt=f"p{i % 4}", group=f"g{i // 4}") for i in range(8)]
    tasks += [Task(id=f"o{i}", prompt=f"q{i}", group="other") for i in range(3)]
    split = splits.by_group(tasks, heldout=["g0"])
    assert set(split.parts["train"]) == {"o0", "o1", "o2"}


def test_tasks_that_all_ask_the_same_cannot_be_split():
    with pytest.raises(DataError, match="ask the same"):
        kit.split([Task(id=str(i), prompt="p") for i in range(3)])


@pytest.mark.parametrize("wrong", ["x", None, True, float("nan"), 0, 1])
def test_a_share_that_is_none_is_named(wrong):
    with pytest.raises(DataError, match="share"):
        kit.split(ALONE, share=wrong)


@pytest.mark.parametrize("wrong", ["a", 1.5, None, True])
def test_a_seed_that_is_none_is_named(wrong):
    """They were taken without a word, and the manifest could not be made again."""
    with pytest.raises(DataError, match="seed"):
        kit.split(ALONE, seed=wrong)


@pytest.mark.parametrize("wrong", [None, 3, ["a", "b"], [{"id": "a"}, 3]])
def test_tasks_that_are_none_are_named(wrong):
    with pytest.raises(DataError, match="no task"):
        kit.split(wrong)


def test_one_group_in_two_splits_is_said():
    tasks = [Task(id=s, prompt=f"p {s}", group="g", split=s) for s in ("train", "test")]
    assert lint(tasks).of("group-in-splits")


def test_rows_that_are_marked_as_held_out_are_not_dealt_anew():
    """Half of the rows marked `test` became "train", and the next training had no way to know."""
    marks = ["train", "test", None, "validation", "train", "test_sft", None, "dev"]
    tasks = [Task(id=f"t{i}", prompt=f"p{i}", split=s) for i, s in enumerate(marks)]
    twin = Task(id="twin", prompt="P1 ", split="train")
    split = kit.split([*tasks, twin], share=0.2)
    assert split.parts["train"] == ("t0", "t2", "t4", "t6")
    assert split.parts["heldout"] == ("t1", "t3", "t5", "t7", "twin")
    assert not splits.verify(split.manifest, [*tasks, twin])
    more = kit.split([*tasks, twin], share=0.8).parts["heldout"]
    assert set(more) > set(split.parts["heldout"]) and len(more) == 7


ASKS = {"id": "a", "prompt": "Summarize the source."}


@pytest.mark.parametrize(
    ("one", "two", "same"),
    [
        (ASKS | {"sources": {"S1": "x"}}, ASKS | {"sources": {"S1": "y"}}, False),
        (ASKS | {"system": "You are Ann."}, ASKS | {"system": "You are Bob."}, False),
        (ASKS | {"sources": {"S1": "x y"}}, ASKS | {"sources": {"S1": "X, y"}}, True),
        *[
            ({"prompt": a}, {"prompt": b}, same)
            for a, b, same in [
                ("Compute 5 + 3", "Compute 5 - 3", False),
                ("Solve x > 3", "Solve x < 3", False),
                ("Write it in C++", "Write it in C#", False),
                ("Simplify a/b", "Simplify a*b", False),
                ("What is 50% of 8?", "What is $50 of 8?", False),
                ("Compute 12 × 3", "Compute 12 ÷ 3", False),
                ("Is 3 ≤ 4?", "Is 3 ≥ 4?", False),
                ("What is a && b?", "What is a || b?", False),
                ("What is `[]` in JS?", "What is `{}` in JS?", False),
                ("Compute (2+3)*4", "Compute 2+(3*4)", False),
                ("Plot log(x) y", "Plot log x (y)", False),
                ("Solve x² = 4", "Solve x2 = 4", False),
                ("Is ¬p true?", "Is p true?", False),
                ("It costs €5", "It costs $5", False),
                ("What does 😀 say?", "What does 😡 say?", False),
                ("की", "का", False),
                ("Compute 5+3", "compute  5 + 3.", True),
                ("Sum up “Café – 1”!", 'Sum up "Cafe\u0301, 1".', True),
                ("Read `x` aloud ❤️", "read x aloud ❤", True),
                ("Sum up “Café – 1”!", 'Sum up "Cafe\u0301, 1".', True),
                ("Read `x` aloud ❤️", "read x aloud ❤", True),
                ("# Task\n- A well-known poem", "Task: a well known poem", True),
                ("What’s up in 1914–1918?", "What's up in 1914-1918?", True),
                ("Compute 5 − 3", "Compute 5 - 3", True),
                ("Solve x = 5 + 3", "Solve x  =  5  +  3", True),
                ("In 1914—1918", "In 1914\u20111918", True),
                ("Of photo\u00adsynthesis", "Of photosynthesis", True),
                ("Solve x  +  3", "Solve x  -  3", False),
                ("Write **one** line - short", "write one line, short", True),
            ]
        ],
    ],
)
def test_tasks_of_other_sources_systems_or_operators_are_no_twins(one, two, same, caplog):
    """80 rows marked train were held out: all of the file shared an instruction, and each had a
    source of its own; "5 - 3" held "5 + 3" out, later "12 ÷ 3" held "12 × 3" out."""
    more = {"criteria": ["c"], "split": "train"}
    rows = [{**one, **more, "id": "a"}, {**two, **more, "id": "b", "split": "test"}]
    found = kit.load([*rows, {**more, "id": "c", "prompt": "Other"}])
    assert [t.id for t in found.halves()[0]] == (["c"] if same else ["a", "c"])
    assert ("1 tasks are not trained on, of which 1 are marked" in caplog.text) == same
    if same:
        with pytest.raises(DataError, match="all ask what a held-out one asks"):
            kit.load(rows).halves()
