"""Benchmarks: HealthBench, InFoBench, checklists (WildBench, WritingBench style), flat tables."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from dataclasses import replace
from typing import Any

from ...records import Criterion, fingerprint
from ..chats import ask
from ..criteria import criteria_from, signs, tags_of
from ..labels import FIELDS, SAID, by_criterion, entry, giver
from ..names import mark, marked
from ..rows import LISTS, SHARED, Row
from ..taskset import Parsed
from ..values import as_text, blank, listed, parsed_json, unused
from .rubric import object_of, snippets

LABELS = SAID[:-1]  # what a flat table calls a label
ANSWERS = ("response", "answer", "output")
APART = ("source", "model", "sample", "sample_index")  # equal texts of two are two answers
WEIGHTS = ("weight", "points")
OF_ONE = tuple("weight points levels scale title tags check required importance penalty".split())


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
        row.within("ideal_completions_data", ideal)
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
            row.aside(
                "field-mismatch",
                "anonymized_physician_ids",
                raters,
                "anonymized_physician_ids is not one name for each of binary_labels; it is kept "
                "in meta",
            )
    else:
        row.used -= {"binary_labels", "anonymized_physician_ids"}
    return row.task(
        task_id,
        chat.prompt,
        [criterion],
        group=row.optional("prompt_id") or "q-" + fingerprint(chat.prompt)[:12],
        meta=chat.meta,
        **chat.fields,
    )


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
        row.aside(
            "field-mismatch",
            "question_label",
            kinds,
            f"question_label is not a list of {len(criteria)}; it is kept in meta",
        )
    told, text = row.take("eval"), row.take("output")
    answered = row.respond(
        task_id, "output", text, source=None if text is None else row.optional("model")
    )
    if answered and isinstance(told, list) and len(told) == len(criteria):
        judge = row.optional("judge") or "recorded"
        for c, label in zip(criteria, told, strict=True):
            row.label(task_id, "output", c.id, label, judge=judge)
    elif told is not None:
        wanted = f"a list of {len(criteria)} verdicts" if answered else "beside an output"
        row.aside(
            "field-mismatch",
            "eval",
            told,
            f"eval is not {wanted}; none of them is used, they are kept in meta",
            severity="error",
        )
    return row.task(
        task_id,
        chat.prompt,
        criteria,
        rubric="decomposed question",
        kind=row.optional("category"),
        tags=tags_of(row.take("subset")),
        meta={
            **chat.meta,
            **({"instruction": row.data.get("instruction"), "input": given} if given else {}),
        },
        **chat.fields,
    )


def checklist(row: Row) -> Parsed:
    """A prompt with a list of criteria, as texts or objects (WildBench, WritingBench, the RLVR list
    form and the like)."""
    task_id = row.task_id("task_id", "id", "session_id", "index", "prompt_id")
    chat = ask(
        row, "prompt", "query", "question", "instruction", "conversation_input", "messages", "input"
    )
    given = row.take(*LISTS)
    name = next((n for n in LISTS if row.data.get(n) is given), LISTS[0])
    criteria = criteria_from(row, _weighted(row, listed(row, given, name)), field_name=name)
    references = parsed_json(row.data.get("references"))
    if isinstance(references, Mapping):
        row.used.add("references")
        for model, text in references.items():
            row.respond(task_id, str(model), text, source=str(model))
    given_answers(row, task_id, "response", "output")
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


def given_answers(row: Row, task_id: str, *fields: str) -> None:
    """Add the answers that these fields hold, with the row's labels on the first; an only one has
    the row's response_id."""
    held = [field for field in fields if row.data.get(field) is not None]
    own = row.optional("response_id") if len(held) == 1 else None
    labels = next((n for n in FIELDS if by_criterion(row.data.get(n)) is not None), None)
    for field in held:
        row.respond(task_id, own or field, row.take(field), source="data")
        if labels and labels not in row.used:
            row.label_all(task_id, own or field, labels)


def _weighted(row: Row, items: Any) -> Any:
    """The texts of a list with the weights that stand in a column of their own: one number for one
    text, or a list of as many.
    """
    name = next((n for n in ("weights", "weight") if row.data.get(n) is not None), None)
    texts = [items] if isinstance(items, str) and "\n" not in items.strip() else items
    if name is None or not isinstance(texts, list) or not all(isinstance(t, str) for t in texts):
        return items
    given = parsed_json(row.data[name])
    given = given if isinstance(given, list) else [given]
    if len(given) != len(texts):
        row.find(
            "field-mismatch",
            f"{name!r} holds {len(given)} for {len(texts)} criteria; it is kept in meta and they "
            "count alike",
            severity="error",
            field=name,
            suggestion="give every criterion a weight",
        )
        return items
    row.take(name)
    return [{"text": t, "weight": w} for t, w in zip(texts, given, strict=True)]


def flat(rows: list[Row]) -> Parsed:
    """A flat table, one row per criterion (and answer), of one task.

    Rows with labels may stand in any order: their criteria stand by id, or by text. A row that
    stands twice counts once."""
    row = rows[0]
    once: dict[str, Row] = {}
    again = [r for r in rows if once.setdefault(as_text(r.data), r) is not r]
    rows = list(once.values())
    task_id = row.task_id("task_id", "id")
    chat = ask(row, "prompt", "question", "instruction")
    held = {"truth": object_of(row, "truth"), "sources": snippets(row, row.take("sources"))}
    said = [k for r in rows for k in signs(r.data)]  # of a criterion, not of the task
    shared = {
        name: row.optional(*(f for f in fields if f not in said)) for name, fields in SHARED.items()
    }
    shared["split"] = next((m for r in rows if (m := marked(r.data, False))), shared["split"])
    criteria: dict[str, Criterion] = {}
    texts: dict[str, dict[str, None]] = {}  # of criteria -> the ids that they have
    given: dict[str, list[str]] = {}  # of an answer without an id: whose it is
    labelled = any(None not in (r.take(*ANSWERS), r.take(*LABELS)) for r in rows)
    if labelled and again:
        row.find(
            "duplicate-row",
            f"{len(again)} rows of this task are equal to an earlier one: their labels count once",
            suggestion="remove them; labels of several people need a column rater",
        )
    for r in sorted(rows, key=_place) if labelled else rows:
        item = {k: r.take(k) for k in (*OF_ONE, *signs(r.data))}
        item |= {"text": as_text(r.take("criterion") or ""), "id": r.take("criterion_id")}
        name = _named(r, item, texts.get(item["text"], ())) or f"c{len(criteria) + 1}"
        own = {"id": name, **_given(item)}
        if name not in criteria and own.keys().isdisjoint(WEIGHTS):
            own |= {k: None for k in WEIGHTS if k in r.data}  # an empty cell
        made = criteria_from(r, [own], field_name="criterion")[0]
        first = criteria.setdefault(name, made)
        texts.setdefault(item["text"], {})[name] = None
        if made != first and replace(made, meta=first.meta, text=made.text or first.text) != first:
            named = {"weight": item["points"], **_given(item)}
            for field in ("text", "weight", "levels", "scale", "points"):
                used, said = (as_text(getattr(c, field))[:60] for c in (first, made))
                if named.get(field) not in (None, "") and said != used:
                    r.find(
                        "field-mismatch",
                        f"criterion {name!r} has the {field.rstrip('s')}s {used} and {said} in "
                        "this task; the first is used",
                        severity="error",
                        criterion_id=name,
                        field=field,
                    )
            row.keep(f"criterion {name} in row {r.number}", _given(item))
        elif any(first.meta.get(k) != v for k, v in made.meta.items()):
            row.keep(f"criterion {name} in row {r.number}", made.meta)
        _flat_answer(row, r, task_id, name, given)
        if r is not row:
            both = row.data, shared  # a mark of another row may be the task's
            r.used |= {k for k in (*row.used, "split") if r.data.get(k) in [x.get(k) for x in both]}
            for field, value in r.leftover().items():
                meta = criteria[name].meta
                if meta.get(field, value) == value and mark(field, value) is None:
                    criteria[name] = replace(criteria[name], meta={**meta, field: value})
                else:
                    row.keep(f"{field} in row {r.number}", value)
            row.findings += r.findings
            row.kept |= {f"{field} in row {r.number}": x for field, x in r.kept.items()}
    return row.task(
        task_id,
        chat.prompt,
        list(criteria.values()),
        meta=chat.meta,
        **{**held, **shared, **chat.fields},
    )


def _place(row: Row) -> tuple[bool, str, str]:
    """Where a row's criterion stands: by its id, c2 before c10; those without one last, by text."""
    own = row.take("criterion_id")
    name = "" if own is None else as_text(own)
    numbered = re.sub(r"\d+", lambda m: m[0].zfill(9), name)
    return not name, numbered, "" if name else as_text(row.take("criterion") or "")


def _named(row: Row, item: Mapping[str, Any], there: Collection[str]) -> str | None:
    """The id of a row's criterion: its own, else that of the one of its text; an error where
    several have it. there : their ids."""
    if item["id"] not in (None, ""):
        return as_text(item["id"])
    if len(there) > 1:
        row.find(
            "field-mismatch",
            f"the criteria {', '.join(map(repr, there))} have the text {item['text'][:60]!r}: "
            "which of them the row means is not known",
            severity="error",
            field="criterion",
            suggestion="write its criterion_id",
        )
    return next(iter(there), None)


def _given(item: Mapping[str, Any]) -> dict[str, Any]:
    return {k: v for k, v in item.items() if v not in (None, "")}


def _flat_answer(
    row: Row, r: Row, task_id: str, criterion: str, given: dict[str, list[str]]
) -> None:
    """Add the answer of a row, where it is a new one, and what its label says of it. given : whose
    the answers of this task are that were named by their text."""
    text = r.take(*ANSWERS)
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
    name = r.optional("response_id") or own
    source = r.optional("source", "model")
    known = {x.id: x for x in row.responses}
    if name in known and known[name].text != as_text(text):
        r.find(
            "field-mismatch",
            f"response {name!r} has two texts in this task; this one is called {own!r}",
            severity="error",
            field="response_id",
        )
        name = own
    if name == own and (who := [as_text(r.data[k]) for k in APART if not blank(r.data.get(k))]):
        name = unused(own, lambda n: given.setdefault(n, who) == who)
    if name != own and name in given and name not in known:
        r.find(
            "duplicate-id",
            f"the answer {own!r} to this task occurs again, of {', '.join(who)}; this one is "
            f"called {name!r}",
            task_id=task_id,
            suggestion="give every answer of a task its own response_id",
        )
    if name not in known:
        row.respond(task_id, name, text, source=source)
    elif source not in (None, known[name].source):
        row.keep(f"source of {name} in row {r.number}", source)
    if label is not None:
        field, judge = giver(r.data)
        row.kept |= {f"label of {criterion} in row {r.number}": label} if entry(label) else {}
        r.used.add(field or "label")
        r.label(task_id, name, criterion, label, judge=judge)
        if r is not row:
            row.verdicts += r.verdicts
