"""Which verdicts are the same criterion: those with the same text, not those with the same id.

Ids repeat in every row of an RLVR file (c1, c2, ...), and mean something else in each.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence

from ..records import Task

MOST = 12  # rows of their own; more would hide what they show
Names = Mapping[tuple[str, str], str]


def names(tasks: Sequence[Task]) -> dict[tuple[str, str], str]:
    """(task id, criterion id) -> name of its row.

    A text gets a row of its own when it is used by several tasks, or when there are at most `MOST`
    texts; all others are pooled in two rows that say so, one for what is wanted and one for faults.

    >>> from kit.records import Criterion
    >>> c = {x: (Criterion(id="c1", text=x),) for x in "XY"}
    >>> t = [Task(id=i, prompt="p", criteria=c[x]) for i, x in ("aX", "bY")]
    >>> names(t)
    {('a', 'c1'): 'X', ('b', 'c1'): 'Y'}
    """
    used: dict[tuple[str, bool], set[str]] = defaultdict(set)
    where: dict[tuple[str, str], tuple[str, bool]] = {}
    for t in tasks:
        for c in t.criteria:
            key = (c.title or c.text, c.weight < 0)
            used[key].add(t.id)
            where[t.id, c.id] = key
    shared = sorted((k for k in used if len(used[k]) > 1), key=lambda k: -len(used[k]))
    own = set(used if len(used) <= MOST else shared[:MOST])
    rest = {fault: sum(k[1] == fault for k in used if k not in own) for fault in (False, True)}
    pools = {
        fault: f"{'faults' if fault else 'criteria'} of {n} other texts, pooled"
        for fault, n in rest.items()
    }
    return {place: key[0] if key in own else pools[key[1]] for place, key in where.items()}


def name(known: Names, task_id: str, criterion_id: str) -> str:
    """The row of a verdict; criteria that are made for an answer (cited claims) are pooled by their
    kind.
    """
    found = known.get((task_id, criterion_id))
    if found is not None:
        return found
    head, sep, kind = criterion_id.rpartition(":")
    return f"{head.split(':')[0]}: {kind}" if sep else f"id {criterion_id}"


def means(
    known: Names, task_id: str, verdicts: Iterable[tuple[str, float | None]]
) -> dict[str, float]:
    """Mean value per row of one answer's verdicts (criterion id, value); unknown ones are left
    out.
    """
    found: dict[str, list[float]] = defaultdict(list)
    for i, value in verdicts:
        if value is not None:
            found[name(known, task_id, i)].append(value)
    return {k: sum(v) / len(v) for k, v in found.items()}
