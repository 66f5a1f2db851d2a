"""Benchmarks: HealthBench, InFoBench, checklists (WildBench, WritingBench style), weighted trees
(PaperBench style), flat tables."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from ...records import Criterion, Verdict, fingerprint, unknown
from ..chats import ask
from ..rows import (
    SHARED,
    Row,
    as_text,
    beside,
    criteria_from,
    listed,
    number,
    parsed_json,
    tags_of,
    weight_of,
)
from ..taskset import Parsed
from .rubric import object_of, snippets

LEVEL_KEY = re.compile(r"\s*(\d+)\s*(?:-\s*(\d+))?\s*\Z")
NODE_TEXTS = ("requirements", "text", "criterion")
LABELS = ("label", "met", "rating", "score")  # what a flat table calls a label
LISTS = ("checklist", "checklists", "rubrics", "criteria", "requirements", "rubric")


def healthbench(row: Row) -> Parsed:
    """HealthBench: chat prompt, rubrics with points -10..10 and tags, ideal completions."""
    if "binary_labels" in row.data:
        return _meta_evaluation(row)
    task_id = row.task_id("prompt_id", "id", "task_id")
    chat = ask(row, "prompt")
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
        read = {"ideal_completion"} | (
            {"ideal_completions_ref_completions"} if isinstance(refs, list) else set()
        )
        ideal = {str(k): v for k, v in ideal.items() if k not in read and v is not None}
    if ideal:
        row.keep("ideal_completions_data", ideal)
    return row.task(
        task_id,
        chat.prompt,
        criteria,
        tags=tags_of(row.take("example_tags", "tags")),
        meta=chat.meta,
        **chat.fields,
    )


def _meta_evaluation(row: Row) -> Parsed:
    """HealthBench's meta-evaluation: one criterion, one answer, and whether physicians hold it
    met."""
    task_id, chat = row.task_id("id", "task_id"), ask(row, "prompt")
    criterion = Criterion(id="c1", text=row.text("rubric", need=True) or "")
    name = row.optional("completion_id") or "completion"
    given, raters = (
        parsed_json(row.take(n)) for n in ("binary_labels", "anonymized_physician_ids")
    )
    if row.respond(task_id, name, row.take("completion"), source="data") and given is not None:
        names = [as_text(r) for r in raters] if isinstance(raters, list) else []
        paired = isinstance(given, list) and len(set(names)) == len(names) == len(given)
        label = dict(zip(names, given, strict=True)) if paired else given
        row.label(task_id, name, "c1", label)
        if raters is not None and not paired:
            row.keep("anonymized_physician_ids", raters)
            row.find(
                "field-mismatch",
                "anonymized_physician_ids is not one name for each of binary_labels; it is kept "
                "in meta",
                field="anonymized_physician_ids",
            )
    else:
        for field, value in (("binary_labels", given), ("anonymized_physician_ids", raters)):
            if value is not None:
                row.keep(field, value)
    group = row.optional("prompt_id") or "q-" + fingerprint(chat.prompt)[:12]
    return row.task(task_id, chat.prompt, [criterion], group=group, meta=chat.meta, **chat.fields)


def infobench(row: Row) -> Parsed:
    """InFoBench: decomposed yes / no questions, an answer, and the recorded verdicts of a judge on
    it."""
    task_id = row.task_id("id", "task_id")
    chat, given = ask(row, "instruction"), row.data.get("input")
    criteria = criteria_from(
        row, row.take("decomposed_questions"), prefix="q", field_name="decomposed_questions"
    )
    kinds = row.take("question_label")
    if isinstance(kinds, list) and len(kinds) == len(criteria):
        criteria = [replace(c, tags=tags_of(k)) for c, k in zip(criteria, kinds, strict=True)]
    elif kinds is not None:
        row.find(
            "field-mismatch",
            f"question_label is not a list of {len(criteria)}; it is kept in meta",
            field="question_label",
        )
        row.keep("question_label", kinds)
    told, text = row.take("eval"), row.take("output")
    source = None if text is None else row.optional("model")
    answered = row.respond(task_id, "output", text, source=source)
    if answered and isinstance(told, list) and len(told) == len(criteria):
        judge = row.optional("judge") or "recorded"
        for c, label in zip(criteria, told, strict=True):
            row.label(task_id, "output", c.id, label, judge=judge)
    elif told is not None:
        wanted = f"a list of {len(criteria)} verdicts" if answered else "beside an output"
        row.find(
            "field-mismatch",
            f"eval is not {wanted}; none of them is used, they are kept in meta",
            severity="error",
            field="eval",
        )
        row.keep("eval", told)
    instruction = row.data.get("instruction")
    return row.task(
        task_id,
        chat.prompt,
        criteria,
        rubric="decomposed question",
        kind=row.optional("category"),
        tags=tags_of(row.take("subset")),
        meta={**chat.meta, **({"instruction": instruction, "input": given} if given else {})},
        **chat.fields,
    )


def checklist(row: Row) -> Parsed:
    """A prompt with a list of criteria, as texts or objects (WildBench, WritingBench, the RLVR list
    form and the like)."""
    task_id = row.task_id("task_id", "id", "session_id", "index", "prompt_id")
    chat = ask(
        row, "prompt", "query", "question", "instruction", "conversation_input", "messages", "input"
    )
    name = next((n for n in LISTS if row.data.get(n) is not None), None)
    items = listed(row, row.take(name), name) if name else None
    items = [_levels(x) for x in items] if isinstance(items, list) else items
    criteria = [_ordinal(row, c) for c in criteria_from(row, items, field_name=name or "criteria")]
    references = parsed_json(row.data.get("references"))
    if isinstance(references, Mapping):
        row.used.add("references")
        for model, text in references.items():
            row.respond(task_id, str(model), text, source=str(model))
    for field in ("response", "output"):
        if row.data.get(field) is not None:
            row.respond(task_id, field, row.take(field), source="data")
    return row.task(
        task_id,
        chat.prompt,
        criteria,
        rubric="criterion",
        kind=row.optional("kind", "category", "type", "primary_tag", "domain1", "intent"),
        tags=tags_of(row.take("tags", "secondary_tags")),
        truth=object_of(row, "truth"),
        sources=snippets(row, row.take("sources")),
        meta=chat.meta,
        **chat.fields,
    )


def _levels(item: Any) -> Any:
    """WritingBench: {name, criteria_description, "1-2": ..., "9-10": ...} as text, title and
    levels, worst first."""
    if not isinstance(item, Mapping) or not isinstance(item.get("criteria_description"), str):
        return item
    keys = sorted(
        (k for k in item if isinstance(k, str) and LEVEL_KEY.match(k)),
        key=lambda k: int(LEVEL_KEY.match(k)[1]),
    )  # type: ignore[index]
    rest = {k: v for k, v in item.items() if k not in keys and k != "criteria_description"}
    if "text" in rest:
        rest["text (given)"] = rest.pop("text")
    out = {"text": item["criteria_description"], **rest}
    if item.get("name") is not None and "title" not in item:
        out["title"] = as_text(out.pop("name"))
    if keys:
        if "levels" in out:
            out["levels (given)"] = out.pop("levels")
        out["levels"] = [f"{k}: {as_text(item[k])}" for k in keys]
    return out


def _ordinal(row: Row, c: Criterion) -> Criterion:
    """A criterion with its scale when its object named levels, a scale or points."""
    levels = c.meta.get("levels")
    if isinstance(levels, (list, tuple)) and len(levels) >= 2:
        meta = {k: v for k, v in c.meta.items() if k != "levels" and (k, v) != ("scale", "ordinal")}
        return replace(c, scale="ordinal", levels=tuple(as_text(x) for x in levels), meta=meta)
    return c


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
    if prompt is None:
        row.find(
            "missing-field",
            "the tree has no prompt and no requirements at its root",
            severity="error",
            field="requirements",
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
    stack: list[tuple[Mapping[str, Any], str | None, float, str]] = [(root, None, 1.0, "root")]
    while stack:
        node, parent, share, spare = stack.pop()
        name = as_text(node["id"]) if node.get("id") not in (None, "") else spare
        field, text = next(
            ((k, node[k]) for k in NODE_TEXTS if node.get(k) is not None), (None, None)
        )
        kids = node.get("sub_tasks")
        own, read = weight_of(row, node, ("weight",), name)
        read = {w for w in read if number(node[w]) is not None} | {"id", field}
        read |= {"sub_tasks"} if kids in (None, []) or isinstance(kids, list) else set()
        text = "" if text is None else as_text(text)
        if isinstance(kids, list) and kids:
            rest = {str(k): v for k, v in node.items() if k not in read and v is not None}
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
        read |= {"task_category"} | _score(row, task_id, name, node)
        rest = {str(k): v for k, v in node.items() if k not in read and v is not None}
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
        meta = {"score": node["score"]}
        verdict = unknown(*ids, "parse", judge="recorded", reason=reason, meta=meta)
    else:
        status = {1.0: "met", 0.0: "unmet"}.get(score, "level")
        verdict = Verdict(
            task_id=task_id,
            response_id="submission",
            criterion_id=leaf,
            status=status,
            value=score,
            judge="recorded",
            reason=reason,
        )
    row.verdicts.append(verdict)
    valid = {"valid_score"} if isinstance(node.get("valid_score"), bool) else set()
    return {"score", "explanation"} | valid


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
    if not isinstance(node, Mapping):
        return node is None or not as_text(node).strip()
    return not node.get("sub_tasks") and not any(
        as_text(node[k]).strip() for k in NODE_TEXTS if node.get(k) is not None
    )


def flat(rows: list[Row]) -> Parsed:
    """A flat table, one row per criterion (and answer); consecutive rows of one task belong
    together."""
    row = rows[0]
    task_id, chat = row.task_id("task_id", "id"), ask(row, "prompt", "question", "instruction")
    shared = {name: row.optional(*fields) for name, fields in SHARED.items()}
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
            "required": r.take("required"),
        }
        if item["text"] is not None and not isinstance(item["text"], str):
            item["text"] = as_text(item["text"])
        name = (
            as_text(item["id"])
            if item["id"] not in (None, "")
            else texts.get(item["text"] or "") or f"c{len(criteria) + 1}"
        )
        made = criteria_from(r, [{**_given(item), "id": name}], field_name="criterion")[0]
        first = criteria.setdefault(name, made)
        texts.setdefault(item["text"] or "", name)
        if made != first and replace(made, meta=first.meta, text=made.text or first.text) != first:
            if made.text not in ("", first.text):
                r.find(
                    "field-mismatch",
                    f"criterion {name!r} has two texts in this task; the first is used",
                    severity="error",
                    criterion_id=name,
                )
            if item["weight"] is not None and made.weight != first.weight:
                r.find(
                    "field-mismatch",
                    f"criterion {name!r} has the weights {first.weight:g} and {made.weight:g} in "
                    "this task; the first is used",
                    severity="error",
                    criterion_id=name,
                    field="weight",
                )
            row.keep(f"criterion {name} in row {r.number}", _given(item))
        elif any(first.meta.get(k) != v for k, v in made.meta.items()):
            row.keep(f"criterion {name} in row {r.number}", made.meta)
        _flat_answer(row, r, task_id, name)
        if r is not row:
            r.used |= {k for k in row.used if r.data.get(k) == row.data.get(k)}
            for field, value in r.leftover().items():
                meta = criteria[name].meta
                if meta.get(field, value) == value:
                    criteria[name] = replace(criteria[name], meta={**meta, field: value})
                else:
                    row.keep(f"{field} in row {r.number}", value)
            row.findings += r.findings
    return row.task(
        task_id,
        chat.prompt,
        list(criteria.values()),
        meta=chat.meta,
        truth=object_of(row, "truth"),
        sources=snippets(row, row.take("sources")),
        **{**shared, **chat.fields},
    )


def _given(item: Mapping[str, Any]) -> dict[str, Any]:
    return {k: v for k, v in item.items() if v is not None}


def _flat_answer(row: Row, r: Row, task_id: str, criterion: str) -> None:
    text = r.take("response", "answer", "output")
    label = r.take(*LABELS)
    if text is None:
        if label is not None:
            r.find(
                "field-mismatch",
                "the row has a label but no response; the label is kept in meta",
                criterion_id=criterion,
                field="label",
            )
            row.keep(f"label of {criterion} in row {r.number}", label)
        return
    own = "r-" + fingerprint([task_id, as_text(text)])[:12]
    name, source = r.optional("response_id") or own, r.optional("source", "model")
    known = {x.id: x for x in row.responses}
    if name in known and known[name].text != as_text(text):
        r.find(
            "field-mismatch",
            f"response {name!r} has two texts in this task; this one is called {own!r}",
            severity="error",
            field="response_id",
        )
        name = own
    if name not in known:
        row.respond(task_id, name, text, source=source)
    elif source not in (None, known[name].source):
        row.keep(f"source of {name} in row {r.number}", source)
    if label is not None:
        rater = r.optional("rater", "annotator")
        row.label(task_id, name, criterion, label, judge=f"human:{rater}" if rater else None)
