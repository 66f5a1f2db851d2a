"""Weighted trees of requirements, PaperBench style."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ...records import Criterion, Verdict, unknown
from ..criteria import free_id, tags_of, weight_of
from ..rows import Row
from ..taskset import Parsed
from ..values import as_text, beside, number, parsed_json

NODE_TEXTS = ("requirements", "text", "criterion")


def tree(row: Row) -> Parsed:
    """A weighted tree of requirements: the leaves become criteria, their weight the product of
    shares down from the root.

    Inner nodes are kept in `task.meta["tree"]`; a leaf names its own in `meta["node"]`. It has no
    `parent`: that would be a criterion, and shares already hold the weights above it.
    A graded tree (PaperBench's `graded_task_tree`, leaves with score and explanation) gives a
    verdict per leaf too.
    """
    graded = parsed_json(row.data.get("graded_task_tree"))
    if isinstance(graded, Mapping):
        row.used.add("graded_task_tree")
        task_id = row.task_id("paper_id", "task_id", "id")
        root = dict(graded)
    else:
        task_id = row.task_id("task_id", "id")
        root = {k: row.take(k) for k in ("requirements", "weight", "sub_tasks")}
    if as_text(root.get("id", task_id)) != task_id:
        row.keep("id of the root", root["id"])
    root["id"] = task_id
    prompt = row.text("prompt", "task", "question")
    if prompt is None and root.get("requirements") is not None:
        prompt = as_text(root["requirements"])
    row.need(
        prompt is not None,
        "the tree has no prompt and no requirements at its root",
        "requirements",
    )
    nodes, leaves = _walk(row, root, task_id)
    return row.task(task_id, prompt, leaves, meta={"tree": nodes})


def _walk(
    row: Row, root: Mapping[str, Any], task_id: str
) -> tuple[list[dict[str, Any]], list[Criterion]]:
    """(inner nodes, leaves) of a tree, in its order; the leaves' scores become verdicts of the
    row."""
    nodes: list[dict[str, Any]] = []
    leaves: list[Criterion] = []
    seen: set[str] = set()
    stack: list[tuple[Mapping[str, Any], str | None, float, str]] = [(root, None, 1.0, "root")]
    while stack:
        node, parent, share, spare = stack.pop()
        name = as_text(node["id"]) if node.get("id") not in (None, "") else spare
        field, text = next(
            ((k, as_text(node[k])) for k in NODE_TEXTS if node.get(k) is not None), (None, "")
        )
        kids = node.get("sub_tasks")
        own, read = weight_of(row, node, ("weight",), name)
        read = {w for w in read if number(node[w]) is not None} | {"id", field}
        read |= {"sub_tasks"} if kids in (None, []) or isinstance(kids, list) else set()
        if isinstance(kids, list) and kids:
            rest = {str(k): v for k, v in node.items() if k not in read and v is not None}
            row.within("sub_tasks", {k: rest[k] for k in rest if k == "score"})  # of its parts
            row.astray(rest.keys() - {"score"}, rest)
            nodes.append(
                {"id": name, "parent": parent, "text": text or None, "weight": own, "share": share}
                | ({"meta": rest} if rest else {})
            )
            stack += reversed(_children(row, task_id, kids, name, share))
            continue
        if kids not in (None, []):
            row.find(
                "field-type",
                "sub_tasks should be a list",
                severity="error",
                criterion_id=name,
                field="sub_tasks",
            )
        name = free_id(row, name, seen)
        read |= {"task_category"} | _score(row, task_id, name, node)
        rest = {str(k): v for k, v in node.items() if k not in read and v is not None}
        row.astray(rest, rest)
        leaves.append(
            Criterion(
                id=name,
                text=text,
                weight=share,
                tags=tags_of(node.get("task_category")),
                meta=beside({"own_weight": own, "node": parent}, rest),
            )
        )
    return nodes, leaves


def _score(row: Row, task_id: str, leaf: str, node: Mapping[str, Any]) -> set[str]:
    """Make a verdict of a graded leaf; the fields that were read. A score that is not valid is
    unknown."""
    if node.get("score") is None:
        return set()
    score, reason = number(node["score"]), node.get("explanation")
    reason = None if reason is None else as_text(reason)
    ids = (task_id, "submission", leaf)
    if score is None or not 0 <= score <= 1 or node.get("valid_score") is False:
        verdict = unknown(
            *ids, "parse", judge="recorded", reason=reason, meta={"score": node["score"]}
        )
        if node.get("valid_score") is not False:
            row.find(
                "unreadable-label",
                f"the score {as_text(node['score'])[:40]} is not in [0, 1]; it is unknown",
                criterion_id=leaf,
                field="score",
            )
    else:
        verdict = Verdict(
            task_id=task_id,
            response_id="submission",
            criterion_id=leaf,
            status={1.0: "met", 0.0: "unmet"}.get(score, "level"),
            value=score,
            judge="recorded",
            reason=reason,
        )
    row.verdicts.append(verdict)
    return {"score", "explanation", *["valid_score"] * isinstance(node.get("valid_score"), bool)}


def _children(
    row: Row, task_id: str, kids: list[Any], parent: str, share: float
) -> list[tuple[Mapping[str, Any], str | None, float, str]]:
    good = []
    for i, k in enumerate(kids, 1):
        if not _says_nothing(k):
            good.append((i, k))
        elif k and isinstance(k, Mapping):
            row.blank(task_id, f"{parent}.{i}")
            row.keep(f"node {parent}.{i} without text", dict(k))
    weights = []
    for i, k in good:
        w = number(k.get("weight", 1.0) if isinstance(k, Mapping) else 1.0)
        if w is None or w < 0:
            row.find(
                "bad-weight",
                "a node's weight is not a number >= 0; it counts 0",
                severity="error",
                criterion_id=f"{parent}.{i}",
                field="weight",
            )
        weights.append(w if w is not None and w > 0 else 0.0)
    total = sum(weights)
    if total <= 0:
        row.find(
            "zero-weights",
            f"the parts of {parent!r} have no weight; they do not count",
            severity="error",
            criterion_id=parent,
        )
    out = []
    for (i, k), w in zip(good, weights, strict=True):
        if not isinstance(k, Mapping):
            row.find(
                "field-type",
                "a node of the tree should be an object",
                severity="error",
                criterion_id=f"{parent}.{i}",
            )
            k = {"requirements": as_text(k)}
        part = share * w / total if 0 < total < float("inf") else 0.0
        out.append((k, parent, part, f"{parent}.{i}"))
    return out


def _says_nothing(node: Any) -> bool:
    """True for a leaf without text: no criterion, and no share of the weight."""
    row = node if isinstance(node, Mapping) else {NODE_TEXTS[0]: node}
    return not row.get("sub_tasks") and not any(
        as_text(row[k]).strip() for k in NODE_TEXTS if row.get(k) is not None
    )
