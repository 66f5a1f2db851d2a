"""Split a task set into training and held-out tasks, with a manifest that proves it later."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import msgspec

from ..data import TaskSet, save, tasks_of
from ..errors import DataError
from ..records import Task, canonical, fingerprint, group, text_identity, to_json
from ..system import paths


@dataclass(frozen=True)
class Split:
    """Two task sets, and what proves them. train, heldout : TaskSets with their answers and labels.

    manifest : {"share", "seed", "groups", "train", "heldout"}; the last two map task id -> hash.
    """

    train: TaskSet
    heldout: TaskSet
    manifest: dict[str, Any]

    def verify(self, tasks: Any) -> list[str]:
        """What differs between the manifest and these tasks, a sentence each; empty = proven."""
        return verify(self.manifest, tasks)

    def save(self, folder: str | Path) -> Path:
        """Write train.jsonl, heldout.jsonl and split.json into a folder."""
        folder = Path(folder)
        path = paths.write(folder / "split.json", canonical(self.manifest))
        save(folder / "train.jsonl", self.train)
        save(folder / "heldout.jsonl", self.heldout)
        return path

    def __repr__(self) -> str:
        return f"Split({len(self.train)} train, {len(self.heldout)} held out)"


def split(
    tasks: Any, *, share: float = 0.25, seed: int = 0, groups: Sequence[str] = ()
) -> Split:
    """Hold tasks out: whole groups, so that no topic and no prompt is on both sides.

    tasks : a TaskSet, a file or tasks. share : the share of tasks to hold out, in (0, 1).
    groups : groups to hold out by name; then nothing else is drawn.
    Tasks that are marked as held out stay so, with their group; the rest of the share is drawn.

    >>> rows = [Task(id=str(i), prompt=f"Question {i}?", group=str(i // 2)) for i in range(8)]
    >>> half = split(rows, share=0.5)
    >>> half, half.verify(rows)
    (Split(4 train, 4 held out), [])
    """
    whole = tasks if isinstance(tasks, TaskSet) else TaskSet(tasks=tasks_of(tasks))
    if not 0 < share < 1:
        raise DataError(
            f"the share is {share}", where="split(share=)", fix="a number in (0, 1)"
        )
    if absent := set(groups) - {t.group for t in whole}:
        raise DataError(
            f"there are no groups {sorted(absent)}", where="split(groups=)"
        )
    units = _units(whole.tasks)
    heldout: set[str] = set()
    for unit in units:
        if any(t.held_out or t.group in groups for t in unit):
            heldout |= {t.id for t in unit}
    target = 0 if groups else max(1, round(share * len(whole)))
    # Its own generator: the global one depends on what ran before.
    random.Random(seed).shuffle(units)
    for unit in units:
        # A unit that is larger than what is missing is taken only where nothing is held out yet.
        room = target - len(heldout)
        if (
            unit[0].id not in heldout
            and room > 0
            and (len(unit) <= room or not heldout)
        ):
            heldout |= {t.id for t in unit}
    if len(heldout) in (0, len(whole)):
        raise DataError(
            "one side of the split is empty",
            where="split",
            fix="give tasks of two groups or more, with different prompts",
        )
    train = _part(whole, [t for t in whole if t.id not in heldout], "train")
    test = _part(whole, [t for t in whole if t.id in heldout], "heldout")
    manifest = {
        "share": share,
        "seed": seed,
        "groups": list(groups),
        "train": {t.id: _hash(t) for t in train},
        "heldout": {t.id: _hash(t) for t in test},
    }
    return Split(train, test, manifest)


def verify(manifest: Mapping[str, Any], tasks: Any) -> list[str]:
    """What differs between a split's manifest and tasks, a sentence each; empty = proven.

    A task that is missing, new, changed or on both sides differs; so do a prompt or a group on both
    sides. tasks : all tasks, whatever their split says.
    """
    rows = tasks_of(tasks)
    now = {t.id: t for t in rows}
    side_of: dict[str, set[str]] = {}
    out = []
    for side in ("train", "heldout"):
        for name, value in manifest[side].items():
            side_of.setdefault(name, set()).add(side)
            if name not in now:
                out.append(f"task {name!r} ({side}) is missing")
            elif _hash(now[name]) != value:
                out.append(f"task {name!r} ({side}) was changed")
    out += [f"task {name!r} is new" for name in now if name not in side_of]
    # Equal hashes do not show that a new task ties the two sides together.
    for unit in _units(rows):
        sides = set().union(*(side_of.get(t.id, ()) for t in unit))
        if len(sides) > 1:
            names = ", ".join(t.id for t in unit[:5])
            out.append(f"a prompt or group is on both sides: {names}")
    return out


def _units(tasks: Sequence[Task]) -> list[list[Task]]:
    """Tasks that must stay together: those of a group, and those with one prompt."""
    root: dict[Any, Any] = {}

    def find(key: Any) -> Any:
        while root.setdefault(key, key) != key:
            root[key] = root[root[key]]
            key = root[key]
        return key

    prompts = {t.id: ("prompt", text_identity(t.conversation)) for t in tasks}
    for t in tasks:
        root[find(prompts[t.id])] = find(
            ("group", t.group) if t.group else prompts[t.id]
        )
    return list(group((find(prompts[t.id]), t) for t in tasks).values())


def _hash(task: Task) -> str:
    """A fingerprint of everything in a task except its split."""
    return fingerprint({**to_json(task), "split": None})


def _part(whole: TaskSet, tasks: list[Task], name: str) -> TaskSet:
    ids = {t.id for t in tasks}
    return replace(
        whole,
        tasks=[msgspec.structs.replace(t, split=name) for t in tasks],
        responses=[r for r in whole.responses if r.task_id in ids],
        verdicts=[v for v in whole.verdicts if v.task_id in ids],
        # A finding about the whole set, such as a leak, need not hold of a part.
        findings=[],
    )
