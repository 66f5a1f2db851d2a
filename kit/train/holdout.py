"""What is trained on and what is held out: no prompt, no id and no marked row stands on both
sides.
"""

from __future__ import annotations

import dataclasses
import logging
from collections.abc import Mapping, Sequence
from typing import Any

from ..errors import DataError, KitError
from ..records import Task
from ..rubrics.splits import asked_key

logger = logging.getLogger(__name__)

HELD = {"heldout", "held-out", "held_out", "test", "validation", "valid", "val", "dev", "eval"}
Sides = tuple[tuple[Task, ...], tuple[Task, ...]]


def split(tasks: Sequence[Task], how: Mapping[str, Any], where: str) -> Sides:
    """Tasks to train on and held-out ones; rows marked as heldout, test or validation are held out.

    how : train_ratio and data_seed (a shuffle of whole prompts), holdout_by and holdout (groups).
    A task whose prompt is held out under another id is not trained on either.
    """
    marked = [t for t in tasks if _marked(t)]
    how = {k: v for k, v in how.items() if v is not None}
    held = {t.id for t in marked}
    held |= _chosen([t for t in tasks if t.id not in held], how, where, marked)
    return _clean(
        [t for t in tasks if t.id not in held], tuple(t for t in tasks if t.id in held), where
    )


def apart(train: Sequence[Task], held: Sequence[Task], where: str) -> Sides:
    """Both sides with a file of held-out tasks of its own; an id on both sides is an error."""
    shared = {t.id for t in train} & {t.id for t in held}
    if shared:
        raise DataError(
            f"{len(shared)} held-out tasks are also trained on",
            where=f"{where}, key heldout, task {sorted(shared)[0]!r}",
            fix="hold out other rows, or leave `heldout` out and give train_ratio: 0.9",
        )
    return _clean([t for t in train if not _marked(t)], tuple(held), where)


def _marked(task: Task) -> bool:
    return str(task.split or "").strip().casefold() in HELD


def _words(text: Any) -> str:
    """Case and spaces make no other prompt, and no other group."""
    return " ".join(str(text).split()).casefold()


def _clean(train: Sequence[Task], held: tuple[Task, ...], where: str) -> Sides:
    """Leave out of the training what is asked, in the same words, on the other side."""
    asked = {asked_key(t) for t in held}
    kept = tuple(t for t in train if asked_key(t) not in asked)
    if len(kept) < len(train):
        logger.warning(
            "%s: %d tasks are not trained on: their prompt is held out under another id",
            where,
            len(train) - len(kept),
        )
    if train and not kept:
        raise DataError(
            "every prompt to train on is held out too", where=where, fix="hold out other prompts"
        )
    return kept, held


def _chosen(
    tasks: Sequence[Task], how: Mapping[str, Any], where: str, marked: Sequence[Task] = ()
) -> set[str]:
    """Ids that the config's words hold out; marked : rows that are held out as it is."""
    if not how:
        return set()
    from ..rubrics import splits

    share, seed = 1 - _ratio(how, where), _seed(how, where)
    by, named = how.get("holdout_by"), how.get("holdout")
    if by is None and named is None:
        return set(splits.shuffle(tasks, seed=seed, share=share).parts["heldout"])
    if named is not None:
        named = [_words(n) for n in (named if isinstance(named, (list, tuple)) else [named])]
    by = str(by or "group")
    grouped = [dataclasses.replace(t, group=_group(t, by, where)) for t in tasks]
    if named is not None and marked:
        there = {t.group for t in grouped}
        done = {_words(v) for t in marked if (v := _value(t, by)) is not None}
        named = [n for n in named if n in there or n not in done]
        if not named:
            return set()
    return set(splits.by_group(grouped, seed=seed, share=share, heldout=named).parts["heldout"])


def _ratio(how: Mapping[str, Any], where: str) -> float:
    ratio = how.get("train_ratio", 0.9)
    if isinstance(ratio, bool) or not isinstance(ratio, (int, float)) or not 0 < ratio < 1:
        raise KitError(
            f"train_ratio is {ratio!r}, it is the share to train on",
            where=where,
            fix="use a number between 0 and 1, as 0.9",
        )
    return float(ratio)


def _seed(how: Mapping[str, Any], where: str) -> int:
    seed = how.get("data_seed", 42)
    if isinstance(seed, bool) or not isinstance(seed, int):
        raise KitError(f"data_seed is {seed!r}", where=where, fix="use a whole number, as 42")
    return seed


def _value(task: Task, by: str) -> Any:
    return task.group if by == "group" else task.meta.get(by)


def _group(task: Task, by: str, where: str) -> str:
    """The value of the field that whole groups are held out by."""
    value = _value(task, by)
    if value is None:
        raise DataError(
            f"the task has no {by!r} to hold out by",
            where=f"{where}, task {task.id!r}",
            fix=f"fields there: {', '.join(sorted(task.meta)) or 'none'}",
        )
    return _words(value)
