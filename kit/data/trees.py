"""Weighted criterion trees: scores of inner nodes and of the root, recomputed from the leaves' verdicts."""

from __future__ import annotations

from collections.abc import Iterable

from ..records import Task, Verdict, by_criterion


def node_scores(task: Task, verdicts: Iterable[Verdict]) -> dict[str, tuple[float, float]]:
    """Per inner node of `task.meta["tree"]` its score as an interval (low, high) in [0, 1].

    A leaf's weight is its share of the root; a node's score is the weighted mean of its leaves' values. An unknown leaf
    spans 0 to 1. A node without weight is (0, 1): nothing is known of it.

    >>> from kit.records import Criterion
    >>> leaves = (Criterion(id="a", text="x", weight=0.75, parent="t"), Criterion(id="b", text="y", weight=0.25, parent="t"))
    >>> task = Task(id="t", prompt="p", criteria=leaves, meta={"tree": [{"id": "t", "parent": None}]})
    >>> node_scores(task, [Verdict(task_id="t", response_id="r", criterion_id="a", status="met")])
    {'t': (0.75, 1.0)}
    """
    told = by_criterion(verdicts)
    parent = {n["id"]: n.get("parent") for n in task.meta.get("tree", ())}
    sums = {n: [0.0, 0.0, 0.0] for n in parent}  # weight, low, high
    for c in task.criteria:
        v = told.get(c.id)
        value = v.value if v is not None else None
        low, high = (0.0, 1.0) if value is None else (value, value)
        node, seen = c.parent, set()
        while node in sums and node not in seen:
            seen.add(node)
            for i, x in enumerate((1.0, low, high)):
                sums[node][i] += c.weight * x
            node = parent[node]
    return {n: (low / w, high / w) if w > 0 else (0.0, 1.0) for n, (w, low, high) in sums.items()}
