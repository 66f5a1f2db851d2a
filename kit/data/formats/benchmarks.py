"""Benchmarks: HealthBench, InFoBench, checklists (WildBench, WritingBench style), weighted trees (PaperBench style), flat tables."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from ...records import Criterion
from ..rows import Row, as_text, criteria_from, messages, number, parsed_json, tags_of, weight_of
from ..taskset import Parsed

LEVEL_KEY = re.compile(r"\s*(\d+)\s*(?:-\s*(\d+))?\s*\Z")
LISTS = ("checklist", "checklists", "rubrics", "criteria", "requirements", "rubric")


def healthbench(row: Row) -> Parsed:
    """HealthBench: chat prompt, rubrics with points -10..10 and tags, ideal completions."""
    task_id = row.task_id("prompt_id", "id", "task_id")
    system, prompt, turns = messages(row, row.take("prompt"))
    if prompt is None:
        row.context.missing["prompt"] += 1
        row.find(
            "missing-field", "the prompt has no user message", severity="error", field="prompt"
        )
    criteria = criteria_from(row, row.take("rubrics"), names=("points", "weight"))
    for c in criteria:
        if abs(c.weight) > 10:
            row.find(
                "points-range",
                f"{c.weight:g} points are outside -10..10",
                criterion_id=c.id,
                task_id=task_id,
            )
    ideal = parsed_json(row.take("ideal_completions_data"))
    if isinstance(ideal, Mapping):
        row.respond(task_id, "ideal", ideal.get("ideal_completion"), source="ideal")
        refs = ideal.get("ideal_completions_ref_completions")
        for i, text in enumerate(refs if isinstance(refs, list) else [], 1):
            row.respond(task_id, f"reference-{i}", text, source="reference")
    more = {"system": system} if system is not None else {}
    meta = {"messages": turns} if len(turns) > 1 else {}
    if ideal is not None and not isinstance(ideal, Mapping):
        meta["ideal_completions_data"] = ideal
    return row.task(
        task_id, prompt, criteria, tags=tags_of(row.take("example_tags", "tags")), meta=meta, **more
    )


def infobench(row: Row) -> Parsed:
    """InFoBench: decomposed yes / no questions, an answer, and the recorded verdicts of a judge on it."""
    task_id = row.task_id("id", "task_id")
    instruction, given = row.text("instruction", need=True), row.text("input")
    criteria = criteria_from(
        row, row.take("decomposed_questions"), prefix="q", field_name="decomposed_questions"
    )
    kinds = row.take("question_label")
    if isinstance(kinds, list) and len(kinds) == len(criteria):
        criteria = [replace(c, tags=tags_of(k)) for c, k in zip(criteria, kinds, strict=True)]
    elif kinds is not None:
        row.find(
            "field-mismatch",
            f"question_label is not a list of {len(criteria)}; it is left out",
            field="question_label",
        )
    told = row.take("eval")
    if (
        row.respond(task_id, "output", row.take("output"), source=row.optional("model"))
        and told is not None
    ):
        judge = row.optional("judge") or "recorded"
        if isinstance(told, list) and len(told) == len(criteria):
            for c, label in zip(criteria, told, strict=True):
                row.label(task_id, "output", c.id, label, judge=judge)
        else:
            row.find(
                "field-mismatch",
                f"eval is not a list of {len(criteria)} verdicts; none of them is used",
                severity="error",
                field="eval",
            )
    if not criteria:
        row.find(
            "no-criteria", "the row has no decomposed question", severity="error", task_id=task_id
        )
    prompt = f"{instruction}\n\n{given}" if instruction and given and given.strip() else instruction
    meta = {"instruction": instruction, "input": given} if given else {}
    return row.task(
        task_id,
        prompt,
        criteria,
        kind=row.optional("category"),
        tags=tags_of(row.take("subset")),
        meta=meta,
    )


def checklist(row: Row) -> Parsed:
    """A prompt with a list of criteria, as texts or objects (WildBench, WritingBench, the RLVR list form and the like)."""
    task_id = row.task_id("task_id", "id", "session_id", "index", "prompt_id")
    raw = row.take(
        "prompt", "query", "question", "instruction", "conversation_input", "messages", "input"
    )
    value, system, turns = parsed_json(raw), None, []
    if isinstance(value, (list, Mapping)):
        system, prompt, turns = messages(row, value)
    else:
        prompt = None if raw is None else as_text(raw)
    if prompt is None:
        row.context.missing["prompt"] += 1
        row.find(
            "missing-field",
            "the row has no prompt",
            severity="error",
            field="prompt",
            suggestion=f"fields of this row: {', '.join(map(str, list(row.data)[:12]))}",
        )
    name = next((n for n in LISTS if row.data.get(n) is not None), None)
    items = parsed_json(row.take(name)) if name else None
    items = [_levels(x) for x in items] if isinstance(items, list) else items
    criteria = [_ordinal(row, c) for c in criteria_from(row, items, field_name=name or "criteria")]
    if not criteria:
        row.find("no-criteria", "the row has no criterion", severity="error", task_id=task_id)
    references = parsed_json(row.data.get("references"))
    if isinstance(references, Mapping):
        row.used.add("references")
        for model, text in references.items():
            row.respond(task_id, str(model), text, source=str(model))
    for field in ("response", "output"):
        if row.data.get(field) is not None:
            row.respond(task_id, field, row.take(field), source="data")
    more = {"system": system} if system is not None else {}
    return row.task(
        task_id,
        prompt,
        criteria,
        kind=row.optional("kind", "category", "type", "primary_tag", "domain1", "intent"),
        tags=tags_of(row.take("tags", "secondary_tags")),
        meta={"messages": turns} if len(turns) > 1 else {},
        **more,
    )


def _levels(item: Any) -> Any:
    """WritingBench: {name, criteria_description, "1-2": ..., "9-10": ...} as text, title and levels, worst first."""
    if not isinstance(item, Mapping) or not isinstance(item.get("criteria_description"), str):
        return item
    keys = sorted(
        (k for k in item if isinstance(k, str) and LEVEL_KEY.match(k)),
        key=lambda k: int(LEVEL_KEY.match(k)[1]),
    )  # type: ignore[index]
    rest = {
        k: v for k, v in item.items() if k not in keys and k not in ("criteria_description", "name")
    }
    out = {**rest, "text": item["criteria_description"]}
    if item.get("name") is not None:
        out["title"] = as_text(item["name"])
    if keys:
        out["levels"] = [f"{k}: {as_text(item[k])}" for k in keys]
    return out


def _ordinal(row: Row, c: Criterion) -> Criterion:
    """A criterion with its scale when its object named levels, a scale or points."""
    levels = c.meta.get("levels")
    if isinstance(levels, (list, tuple)) and len(levels) >= 2:
        meta = {k: v for k, v in c.meta.items() if k not in ("levels", "scale")}
        return replace(c, scale="ordinal", levels=tuple(as_text(x) for x in levels), meta=meta)
    return c


def tree(row: Row) -> Parsed:
    """A weighted tree of requirements: the leaves become criteria, their weight the product of shares down from the root.

    Inner nodes are kept in `task.meta["tree"]`; `kit.data.trees.node_scores` recomputes them from leaf verdicts.
    """
    task_id = row.task_id("task_id", "id")
    nodes: list[dict[str, Any]] = []
    leaves: list[Criterion] = []
    children = row.take("sub_tasks")
    root = {
        "id": task_id,
        "requirements": row.take("requirements"),
        "weight": row.take("weight"),
        "sub_tasks": children,
    }
    stack: list[tuple[Mapping[str, Any], str | None, float, str]] = [(root, None, 1.0, "root")]
    while stack:
        node, parent, share, spare = stack.pop()
        name = as_text(node["id"]) if node.get("id") not in (None, "") else spare
        text = node.get("requirements", node.get("text", node.get("criterion")))
        kids = node.get("sub_tasks")
        own, _ = weight_of(row, node, ("weight",), name)
        if isinstance(kids, list) and kids:
            nodes.append(
                {
                    "id": name,
                    "parent": parent,
                    "text": None if text is None else as_text(text),
                    "weight": own,
                    "share": share,
                }
            )
            stack += reversed(_children(row, kids, name, share))
            continue
        if kids not in (None, []):
            row.find(
                "field-type",
                "sub_tasks should be a list",
                severity="error",
                criterion_id=name,
                field="sub_tasks",
            )
        rest = {
            str(k): v
            for k, v in node.items()
            if k not in ("id", "requirements", "weight", "sub_tasks", "task_category")
        }
        leaves.append(
            Criterion(
                id=name,
                text="" if text is None else as_text(text),
                weight=share,
                parent=parent,
                tags=tags_of(node.get("task_category")),
                meta={**rest, "own_weight": own},
            )
        )
    prompt = row.text("prompt", "task", "question")
    if prompt is None:
        prompt = as_text(root["requirements"]) if root["requirements"] is not None else None
    if prompt is None:
        row.find(
            "missing-field",
            "the tree has no prompt and no requirements at its root",
            severity="error",
            field="requirements",
        )
    return row.task(task_id, prompt, leaves, meta={"tree": nodes})


def _children(
    row: Row, kids: list[Any], parent: str, share: float
) -> list[tuple[Mapping[str, Any], str | None, float, str]]:
    good = [(i, k) for i, k in enumerate(kids, 1)]
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


def flat(rows: list[Row]) -> Parsed:
    """A flat table, one row per criterion (and answer); consecutive rows of one task belong together."""
    row = rows[0]
    task_id, prompt = (
        row.task_id("task_id", "id"),
        row.text("prompt", "question", "instruction", need=True),
    )
    criteria: dict[str, Criterion] = {}
    texts: dict[str, str] = {}
    for r in rows:
        item = {
            "text": r.take("criterion", "requirement", "rubric_item"),
            "weight": r.take("weight", "points"),
            "title": r.take("title"),
            "id": r.take("criterion_id"),
            "tags": r.take("tags"),
            "check": r.take("check"),
            "polarity": r.take("polarity"),
        }
        if item["text"] is not None and not isinstance(item["text"], str):
            item["text"] = as_text(item["text"])
        name = (
            as_text(item["id"])
            if item["id"] not in (None, "")
            else texts.get(item["text"] or "") or f"c{len(criteria) + 1}"
        )
        if name not in criteria:
            criteria[name] = criteria_from(r, [{**item, "id": name}], field_name="criterion")[0]
            texts[item["text"] or ""] = name
        elif item["text"] not in (None, criteria[name].text):
            r.find(
                "field-mismatch",
                f"criterion {name!r} has two texts in this task; the first is used",
                severity="error",
                criterion_id=name,
            )
        _flat_answer(row, r, task_id, name)
        if r is not row:
            r.used |= {
                "task_id",
                "id",
                "prompt",
                "question",
                "instruction",
                "kind",
                "category",
                "type",
                "question_type",
                "group",
                "split",
                "system",
            }
            if extra := r.leftover():
                criteria[name] = replace(criteria[name], meta={**criteria[name].meta, **extra})
            row.findings += r.findings
    return row.task(task_id, prompt, list(criteria.values()))


def _flat_answer(row: Row, r: Row, task_id: str, criterion: str) -> None:
    text = r.take("response", "answer", "output")
    label, rater = r.take("label", "met", "rating", "score"), r.optional("rater", "annotator")
    if text is None:
        if label is not None:
            r.find(
                "field-mismatch",
                "the row has a label but no response; the label is left out",
                criterion_id=criterion,
                field="label",
            )
        return
    from ...records import fingerprint

    name = r.optional("response_id") or "r-" + fingerprint([task_id, as_text(text)])[:12]
    if name not in {x.id for x in row.responses}:
        row.respond(task_id, name, text, source=r.optional("source", "model"))
    if label is not None:
        row.label(
            task_id,
            name,
            criterion,
            label,
            judge=f"human:{rater}" if rater else None,
            scale=(1.0, 5.0) if number(label) is not None and number(label) > 1 else None,
        )  # type: ignore[operator]
