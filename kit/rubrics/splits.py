"""Split a task set into training and held-out tasks, with a manifest that proves it later."""

import random
from collections.abc import Hashable, Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import msgspec

from ..data import TaskSet, TaskSource, save, tasks_of
from ..errors import DataError
from ..records import Task, canonical, fingerprint, group, text_identity, to_json
from ..system import paths
from ..system.settings import check_names


@dataclass(frozen=True)
class Split:
    """Two task sets, and what proves them. train, heldout : TaskSets with their answers and labels.

    manifest : {"share", "seed", "groups", "train", "heldout"}; the last two map task id -> hash.
    """

    train: TaskSet
    heldout: TaskSet
    manifest: dict[str, Any]

    def verify(self, tasks: TaskSource) -> list[str]:
        """What differs between the manifest and these tasks, a sentence each; empty = proven."""
        return verify_split(self.manifest, tasks)

    def save(self, folder: str | Path) -> Path:
        """Write train.jsonl, heldout.jsonl and split.json into a folder."""
        save(Path(folder, "train.jsonl"), self.train)
        save(Path(folder, "heldout.jsonl"), self.heldout)
        return paths.write(Path(folder, "split.json"), canonical(self.manifest))

    def __repr__(self) -> str:
        return f"Split({len(self.train)} train, {len(self.heldout)} held out)"


def split(
    tasks: TaskSource,
    *,
    share: float = 0.25,
    seed: int = 0,
    groups: Sequence[str] = (),
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
    check_names(groups, {t.group for t in whole if t.group}, where="split(groups=)")
    units = linked_tasks(whole.tasks)
    heldout: set[str] = set()
    for unit in units.values():
        if any(t.held_out or t.group in groups for t in unit):
            heldout |= _task_ids(unit)
    if not groups:
        heldout = draw_units(
            units, max(1, round(share * len(whole))), seed, heldout
        )
    if len(heldout) in (0, len(whole)):
        raise DataError(
            "one side of the split is empty",
            where="split",
            fix="give tasks of two groups or more, with different prompts",
        )
    train = _split_side(whole, _task_ids(whole) - heldout, "train")
    test = _split_side(whole, heldout, "heldout")
    return Split(
        train,
        test,
        manifest={
            "share": share,
            "seed": seed,
            "groups": list(groups),
            "train": _task_hashes(train),
            "heldout": _task_hashes(test),
        },
    )


def draw_units(
    units: Mapping[Hashable, Sequence[Task]],
    count: int,
    seed: int,
    drawn: Set[str] = frozenset(),
) -> set[str]:
    """Ids of about `count` tasks to hold out, all tasks of a unit or none of them.

    drawn : ids that are held out already; they count. A unit that is larger than what is missing
    is drawn only where nothing is drawn yet.

    >>> units = {n: [Task(id=str(n), prompt="p")] for n in range(9)}
    >>> draw_units(units, 2, 0) == draw_units(dict(reversed(units.items())), 2, 0)
    True
    """
    ids = set(drawn)
    # Sorted first: the order of a file must not change what a seed holds out. And a generator of
    # its own: the global one depends on what ran before.
    keys = sorted(units, key=str)
    for key in random.Random(seed).sample(keys, len(keys)):
        unit = _task_ids(units[key]) - ids
        missing = count - len(ids)
        if len(unit) <= missing or (missing > 0 and not ids):
            ids |= unit
    return ids


def verify_split(manifest: Mapping[str, Any], tasks: TaskSource) -> list[str]:
    """What differs between a split's manifest and tasks, a sentence each; empty = proven.

    A task that is missing, new, changed or on both sides differs; so do a prompt or a group on both
    sides. tasks : all tasks, whatever their split says.
    """
    hashes = _task_hashes(tasks_of(tasks))
    sides: dict[str, set[str]] = {}
    faults = []
    for side in ("train", "heldout"):
        for name, value in manifest[side].items():
            sides.setdefault(name, set()).add(side)
            if name not in hashes:
                faults.append(f"task {name!r} ({side}) is missing")
            elif hashes[name] != value:
                faults.append(f"task {name!r} ({side}) was changed")
    faults += [f"task {name!r} is new" for name in hashes if name not in sides]
    # Equal hashes do not show that a new task ties the two sides together.
    for unit in linked_tasks(tasks_of(tasks)).values():
        if len(set().union(*(sides.get(t.id, ()) for t in unit))) > 1:
            names = ", ".join(t.id for t in unit[:5])
            faults.append(f"a prompt or group is on both sides: {names}")
    return faults


def linked_tasks(tasks: Sequence[Task]) -> dict[Hashable, list[Task]]:
    """Tasks that must stay together: those of a group, and those with one prompt."""
    # Slow to import, and few callers split.
    from scipy.cluster.hierarchy import DisjointSet

    prompts = {t.id: text_identity(t.conversation) for t in tasks}
    links = DisjointSet(prompts.values())
    for t in tasks:
        if t.group:
            links.add(("group", t.group))
            links.merge(prompts[t.id], ("group", t.group))
    units = group((links[prompts[t.id]], t) for t in tasks).values()
    # The root depends on the order of the tasks, the first prompt does not.
    return {min(prompts[t.id] for t in unit): unit for unit in units}


def _task_hashes(tasks: Iterable[Task]) -> dict[str, str]:
    """Id -> a fingerprint of everything in a task except its split."""
    return {t.id: fingerprint({**to_json(t), "split": None}) for t in tasks}


def _task_ids(tasks: Iterable[Task]) -> set[str]:
    return {t.id for t in tasks}


def _split_side(whole: TaskSet, ids: set[str], name: str) -> TaskSet:
    return replace(
        whole,
        tasks=[
            msgspec.structs.replace(t, split=name) for t in whole if t.id in ids
        ],
        responses=[r for r in whole.responses if r.task_id in ids],
        verdicts=[v for v in whole.verdicts if v.task_id in ids],
        # A finding about the whole set, such as a leak, need not hold of a part.
        findings=[],
    )
