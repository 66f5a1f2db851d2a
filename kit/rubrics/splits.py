"""Splits of a task set, with a manifest of hashes by which a split can be proven later."""

from __future__ import annotations

import hashlib
import math
import random
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

from ..data import tasks_of
from ..data.words import held_out, together
from ..errors import DataError
from ..records import Task, canonical, fingerprint, grouped, is_number, to_json


@dataclass(frozen=True, kw_only=True)
class Split:
    """A division of tasks. parts : name -> task ids in order; manifest : see `manifest`."""

    parts: Mapping[str, tuple[str, ...]]
    manifest: Mapping[str, Any]

    def of(self, tasks: Iterable[Task], name: str) -> list[Task]:
        """The tasks of one part, with `split` set to its name, in the part's order."""
        DataError.other("the part", name, self.parts, "split")
        by_id = {t.id: t for t in tasks}
        return [replace(by_id[i], split=name) for i in self.parts[name]]


def hash_of(task: Task) -> str:
    """Fingerprint of everything in a task but its split."""
    # splits were recorded before tasks had turns
    left = {"split"} if task.history else {"split", "history"}
    return fingerprint(_tidy({k: v for k, v in to_json(task).items() if k not in left}))


def _tidy(value: Any) -> Any:
    """JSON with text keys and NaN as text, so that a hash is always possible."""
    if isinstance(value, Mapping):
        return {str(k): _tidy(v) for k, v in value.items()}
    if isinstance(value, (list, tuple)):
        return [_tidy(v) for v in value]
    if isinstance(value, float) and not math.isfinite(value):
        return f"<{value}>"
    return value if isinstance(value, (str, int, float, bool, type(None))) else str(value)


def manifest(
    tasks: Iterable[Task], parts: Mapping[str, Sequence[str]], **how: Any
) -> dict[str, Any]:
    """How a split was made (method, seed, shares), per part its size, a sha256 over the tasks'
    hashes, and each task's hash."""
    by_id = {t.id: hash_of(t) for t in tasks}
    hashes = {name: {i: by_id[i] for i in ids} for name, ids in parts.items()}
    return {
        "kit_split": 1,
        **how,
        "parts": {
            name: {"n": len(parts[name]), "sha256": _checksum(of), "tasks": of}
            for name, of in hashes.items()
        },
    }


def _checksum(hashes: Mapping[str, str]) -> str:
    """sha256 over the hashes of a part's tasks, in any order."""
    return hashlib.sha256(canonical(sorted(hashes.values())).encode()).hexdigest()


def verify(split: Mapping[str, Any], tasks: Iterable[Task]) -> list[str]:
    """What differs between a manifest and these tasks: one sentence per missing, changed or doubly
    used task; empty = proven.

    >>> t = [Task(id=str(i), prompt=f"p{i}") for i in range(10)]
    >>> verify(shuffle(t, seed=1).manifest, t), verify(shuffle(t, seed=1).manifest, t[1:])
    ([], ["task '0' of part 'train' is missing"])
    """
    now = {t.id: hash_of(t) for t in tasks}
    split = split.get("manifest", split)  # as_dict(split) is understood too
    out, seen = [], {}
    for name, part in split["parts"].items():
        for i, h in part["tasks"].items():
            if i not in now:
                out.append(f"task {i!r} of part {name!r} is missing")
            elif now[i] != h:
                out.append(f"task {i!r} of part {name!r} was changed")
            if i in seen:
                out.append(f"task {i!r} is in {seen[i]!r} and in {name!r}")
            seen[i] = name
        if _checksum(part["tasks"]) != part["sha256"]:
            out.append(f"the checksum of part {name!r} does not fit its tasks")
    return out


def _check(tasks: Iterable[Task], share: float, seed: int) -> list[Task]:
    tasks = tasks_of(tasks)
    n = len(tasks)
    whole = isinstance(seed, int) and not isinstance(seed, bool)
    part = is_number(share) and 0 < share < 1
    own = len({t.id for t in tasks}) == n
    DataError.first(
        (not part, f"the held-out share is {share!r}", "share", "use a number between 0 and 1"),
        (not whole, f"the seed is {seed!r}", "seed", "use a whole number, such as 0"),
        (n < 2, f"{n} tasks cannot be split", "tasks", None),
        (not own, "two tasks share an id", "tasks", "give every task its own id"),
    )
    return tasks


def _finish(tasks: list[Task], held: set[str], order: list[Task], **how: Any) -> Split:
    parts = {
        "train": tuple(t.id for t in order if t.id not in held),
        "heldout": tuple(t.id for t in order if t.id in held),
    }
    return Split(parts=parts, manifest=manifest(tasks, parts, **how))


def shuffle(
    tasks: Iterable[Task],
    *,
    seed: int = 42,
    share: float = 0.1,
) -> Split:
    """A seeded shuffle; the last `share` is held out (at least one task on each side), tasks with
    one prompt on one side."""
    tasks = _check(tasks, share, seed)
    order, side = list(tasks), together(tasks)
    random.Random(seed).shuffle(order)
    n = min(len(order) - 1, max(1, round(len(order) * share)))
    held = _take(reversed(order), n, side, len(order) - 1)
    return _finish(tasks, held, order, method="shuffle", seed=seed, share=share)


def _take(order: Iterable[Task], n: int, side: Mapping[str, list[str]], most: int) -> set[str]:
    """The ids of the first n tasks, each with those that stay on its side; at most `most`."""
    held: set[str] = set()
    for t in order:
        if len(held) < n and t.id not in held and len(held) + len(side[t.id]) <= most:
            held.update(side[t.id])
    if not held:
        raise DataError(
            "one side of the split is empty: all tasks ask the same",
            where="tasks",
            fix="give at least two different prompts",
        )
    return held


def by_group(
    tasks: Iterable[Task],
    *,
    seed: int = 42,
    share: float = 0.1,
    heldout: Iterable[str] | None = None,
) -> Split:
    """Whole groups are held out: the named ones, or shuffled groups until `share` of the tasks is
    reached. No group: its own. A task that asks what a held-out one asks is held out with its
    group."""
    tasks = _check(tasks, share, seed)
    side = together(tasks, groups=True)
    groups = grouped((t.group if t.group is not None else f"\0{t.id}", t.id) for t in tasks)
    if heldout is not None:
        chosen = set(heldout)
        if missing := sorted(chosen - set(groups)):
            raise DataError(
                f"there is no group {missing[0]!r}",
                where="heldout",
                fix=f"groups: {', '.join(sorted(groups)[:20])}",
            )
    else:
        order, chosen, n = sorted(groups), set(), 0
        random.Random(seed).shuffle(order)
        for g in order[:-1]:
            if n >= share * len(tasks):
                break
            if g not in chosen and n + len(side[groups[g][0]]) < len(tasks):
                ids = set(side[groups[g][0]])
                chosen |= {name for name, members in groups.items() if members[0] in ids}
                n += len(ids)
    ids = {i for g in chosen for i in side[groups[g][0]]}
    if not ids or len(ids) == len(tasks):
        raise DataError(
            "one side of the split is empty",
            where="groups",
            fix="there must be at least two groups, not all held out, with prompts of their own",
        )
    return _finish(
        tasks,
        ids,
        tasks,
        method="by_group",
        seed=seed,
        share=share,
        heldout=sorted(g for g in chosen if not g.startswith("\0")),
    )


def marked(tasks: Sequence[Task], make: Callable[..., Split], *, seed: int, share: float) -> Split:
    """Held out are the tasks that are marked so and those that ask the same; of the others `make`
    draws what is missing to `share` of all."""
    held = held_out(tasks)
    left = [t for t in tasks if t.id not in held]
    more = share * len(tasks) - len(held)
    if more >= 1:
        held.update(make(left, seed=seed, share=more / len(left)).parts["heldout"])
    return _finish(list(tasks), held, list(tasks), method="marked", seed=seed, share=share)


def as_dict(split: Split) -> dict[str, Any]:
    """A split as JSON."""
    return asdict(split)
