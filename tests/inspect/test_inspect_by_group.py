"""Splits by group: the first user of it, notebook 01, met a TypeError."""

from __future__ import annotations

from kit.records import Task
from kit.rubrics import splits

TASKS = [Task(id=f"t{i}", prompt=f"p{i}", group=f"g{i % 5}") for i in range(20)]


def test_by_group_keeps_groups_whole_and_can_be_proven() -> None:
    split = splits.by_group(TASKS, seed=1, share=0.3)
    sides = [{t.group for t in split.of(TASKS, name)} for name in ("train", "heldout")]
    assert sides[1] and not sides[0] & sides[1]
    assert splits.verify(splits.as_dict(split), TASKS) == []
    assert splits.verify(splits.as_dict(split), TASKS[1:]) != []


def test_named_groups_are_held_out() -> None:
    split = splits.by_group(TASKS, heldout=["g2"])
    assert {t.group for t in split.of(TASKS, "heldout")} == {"g2"}
