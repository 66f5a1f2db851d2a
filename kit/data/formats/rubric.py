"""Rubric formats: RLVR JSON and its list sibling, open-instruct with its legacy forms, positive /
negative rows with snippets."""

from __future__ import annotations

import itertools
import re
from collections.abc import Mapping
from dataclasses import replace
from functools import lru_cache
from typing import Any

from ...records import Criterion, grouped
from ..chats import Chat, ask
from ..criteria import criteria_from, criterion_of, tags_of
from ..names import sign
from ..rows import Row
from ..taskset import Parsed
from ..values import absent, as_text, listed, literal, parsed_json, says_nothing
from .instructions import checked

RUBRIC_KEY = re.compile(r"rubric\s*[-–—]\s*(\d{1,6})\s*\.\s*(\w+)\s*\Z", re.I)
COLUMN = re.compile(r"(criterion|weight)[ _-]?(\d{1,3})\Z", re.I)  # of a plain table
SNIPPET = re.compile(
    r"<snippet\b[^>]*?\bid\s*=\s*(?:\"([^\"]+)\"|'([^']+)'|([^\s\"'>]+))[^>]*>(.*?)</snippet>",
    re.S | re.I,
)
TOOLS = re.compile(r"<(tool_\w+|documents)\b[^>]*>(.*?)</\1>", re.S)
SAYS = ("text", "content", "snippet")  # the text of a source
SECTIONS = ("Answer Critical", "Valuable", "Context")
RESPONSE_KEY = re.compile(r"response([A-Z])\Z")
COMPLETION_KEY = re.compile(r"([a-z0-9]+)_completion_(\d+)\Z")


def numbered(key: Any) -> bool:
    """True for a field that holds a criterion, or what is said of one, by its number."""
    name = key[:9].lower() if isinstance(key, str) else ""
    return bool(
        (name[:6] == "rubric" and RUBRIC_KEY.match(key))
        or (name == "criterion" and COLUMN.match(key))
    )


class _Layout:
    """Which fields of an RLVR row hold what. The rows of a file have few different sets of fields,
    so each set is looked at once."""

    def __init__(self, keys: tuple[str, ...]):
        # in lower case; the letter of a rating tells the answer
        rubrics = [
            (k, int(m[1]), m[2] if m[2].startswith("rating") else m[2].lower())
            for k in keys
            if (m := RUBRIC_KEY.match(k))
        ]
        plain = [(k, int(m[2]), m[1].lower()) for k in keys if (m := COLUMN.match(k))]
        rubrics += plain if any(name == "criterion" for _, _, name in plain) else []
        self.used = frozenset(k for k, _, _ in rubrics)
        per: dict[int, dict[str, str]] = {}
        self.twice: list[tuple[str, int, str]] = []  # fields whose thing a later one names again
        for k, n, name in rubrics:
            if name in per.setdefault(n, {}):
                self.twice.append((per[n][name], n, name))
            per[n][name] = k
        self.rubrics = sorted(per.items())  # (N, {name: field})
        self.answers: list[
            tuple[str, str, str, tuple[str, ...]]
        ] = []  # field, "letter" or "model", its name, the fields on its failures
        for k in keys:
            if m := RESPONSE_KEY.match(k):
                failures = tuple(
                    f
                    for f in keys
                    if f.endswith("_failure") and f.startswith((f"response{m[1]}_", f"{m[1]}_"))
                )
                self.answers.append((k, "letter", m[1], failures))
            elif m := COMPLETION_KEY.match(k):
                self.answers.append((k, "model", m[1], ()))


_layout = lru_cache(maxsize=500)(_Layout)


def rlvr(row: Row) -> Parsed:
    """RLVR: fields `rubric - N. criterion`, per N weight, check, required, ratingA / ratingB and
    notes, which stay notes."""
    task_id, chat = row.task_id("task_id", "id"), ask(row, "prompt")
    data, layout = row.data, _layout(tuple(row.data))
    row.used |= layout.used
    for key, n, name in layout.twice:
        row.aside(
            "duplicate-field",
            key,
            data[key],
            f"rubric {n} has the field {name!r} twice; the last is used, the first is in meta",
        )
    answers = _answers(row, task_id, layout) if layout.answers else {}
    criteria, lost = [], {}
    holes: list[
        int
    ] = []  # blank numbers since the last criterion; those at the end are placeholders
    for n, names in layout.rubrics:
        fields = {name: data[k] for name, k in names.items()}
        if _empty(fields.get("criterion")):
            holes.append(n)
            if not all(map(_empty, fields.values())):
                row.find(
                    "missing-field",
                    f"rubric {n} has {', '.join(sorted(fields))} but no criterion",
                    criterion_id=f"c{n}",
                    field=f"rubric - {n}. criterion",
                )
                lost[f"rubric - {n}"] = fields
            continue
        while holes:
            row.blank(task_id, f"c{holes.pop(0)}")
        rated = {f"rating{letter}": answer for letter, answer in answers.items()}
        criteria.append(_numbered(row, n, fields, rated))
        for name in (k for k in rated if not absent(fields.get(k))):
            row.label(task_id, rated[name], f"c{n}", fields[name])
    row.numbers(criteria, "criterion", any("weight" in names for _, names in layout.rubrics))
    return row.task(
        task_id,
        chat.prompt,
        criteria,
        rubric="criterion",
        meta={**chat.meta, **lost},
        **chat.fields,
        tags=tags_of(row.take("tags")),
        truth=object_of(row, "truth"),
        sources=snippets(row, row.take("sources")),
    )


def _empty(value: Any) -> bool:
    return absent(value) or (isinstance(value, str) and says_nothing(value))


def _numbered(row: Row, n: int, fields: Mapping[str, Any], rated: Mapping[str, str]) -> Criterion:
    """Criterion N of a row. rated : fields that become verdicts; other fields that the record has
    no place for go to meta."""
    text = fields["criterion"]
    if len(fields) == 1 and isinstance(text, str):
        return Criterion(id=f"c{n}", text=text)
    if not isinstance(text, str):
        row.find("field-type", "a criterion should be text", severity="error", criterion_id=f"c{n}")
    given = {k: v for k, v in fields.items() if k == "weight" or not absent(v)}
    item = {k: v for k, v in given.items() if k not in rated}
    made = criterion_of(row, {**item, "criterion": as_text(text)}, f"c{n}", names=("weight",))
    own = {k: item[k] for k in ("id", "rubric_id") if k in item}  # it is called by its number
    own |= {k: given[k] for k in rated if isinstance(given.get(k), (list, dict))}
    return replace(made, id=f"c{n}", meta={**made.meta, **own})


def _answers(row: Row, task_id: str, layout: _Layout) -> dict[str, str]:
    """Responses of an RLVR row; letter -> response id."""
    found = {}
    for key, kind, name, failed in layout.answers:
        row.used.add(key)
        if kind == "model":
            row.respond(task_id, key, row.data[key], source=name)
            continue
        failures = {k: row.take(k) for k in failed}
        if row.respond(task_id, name, row.data[key], source=f"response{name}", meta=failures):
            found[name] = name
        else:
            for k in failures:
                row.keep(k, failures[k])
    return found


def object_of(row: Row, *names: str) -> dict[str, Any]:
    """A field that holds an object (or its JSON text); another value is kept under "value"."""
    found = row.take(*names)
    value = {} if found is None else literal(found)
    return {str(k): v for k, v in value.items()} if isinstance(value, Mapping) else {"value": value}


def snippets(row: Row, value: Any) -> dict[str, str]:
    """Snippets of tool output: an object id -> text, a list of {id, text}, or text with <snippet
    id=...> marks; null is none."""
    value = literal(value)
    if value is None:
        return {}
    if isinstance(value, (Mapping, list)):
        pairs = (
            value.items() if isinstance(value, Mapping) else map(_pair, itertools.count(1), value)
        )
        told = [(as_text(name), *_told(name, item)) for name, item in pairs]
        for name, _, more in told:
            if more:
                row.within("sources", more)
                row.keep(f"source {name}", more)
        given = [(name, as_text(text)) for name, text, _ in told if not absent(text)]
        out = {name: texts[0] for name, texts in grouped(given).items()}
        if len(out) != len(given):
            row.aside(
                "duplicate-id", "sources", value, "two snippets have one id; the first is used"
            )
        return out
    text = as_text(value)
    marked = _marked(text)
    if marked:
        row.keep("tool_output", value)
    if (opened := text.lower().count("<snippet")) > len(marked):
        row.find(
            "field-mismatch",
            f"{opened - len(marked)} of {opened} snippets have no id or no end; they cannot "
            f"be cited",
            field="sources",
        )
    if len(dict(marked)) != len(marked):
        row.find("duplicate-id", "two snippets have one id; the last is used", field="sources")
    return {i: t.strip() for i, t in marked} or {"S1": text}


def _pair(place: int, item: Any) -> tuple[Any, Any]:
    """(id, source) of an item of a list; it is called by its place where it has no id."""
    own = item.get("id", item.get("snippet_id")) if isinstance(item, Mapping) else f"S{place}"
    if own is None and len(item) == 1 and item.keys().isdisjoint(SAYS):
        return next(iter(item.items()))
    return f"S{place}" if own is None else own, item


def _told(name: Any, item: Any) -> tuple[Any, dict[str, Any]]:
    """(text, what nothing reads) of a source, which may be an object that holds its text."""
    if not isinstance(item, Mapping) or not item.keys() & set(SAYS):
        return item, {}
    text = next((item[k] for k in SAYS if not absent(item.get(k))), None)
    return text, {k: v for k, v in item.items() if v not in (name, text)}


def _marked(text: str) -> list[tuple[str, str]]:
    """(id, text) of the snippets that a text marks."""
    return [(a or b or c, inner) for a, b, c, inner in SNIPPET.findall(text)]


def shown(row: Row, chat: Chat) -> dict[str, str]:
    """The snippets that stand in the chat itself: what the policy reads is what an answer may cite.

    In tool output every snippet counts; without such a block, marks with one id and more than a
    word, which an instruction such as `<snippet id=ID1,ID2>claim</snippet>` has not.
    """
    turns = (*chat.history, *chat.after)
    text = "\n".join([*(t["content"] for t in turns if t["role"] != "tool"), chat.prompt or ""])
    tools = (t["content"] for t in turns if t["role"] == "tool")
    blocks = [*(m[2] for m in TOOLS.finditer(text)), *tools]
    found = [(i, t.strip()) for b in blocks or [text] for i, t in _marked(b)]
    if not blocks:
        several = [i for i, t in found if "," in i and len(t.split()) > 1]
        if several:
            row.find(
                "field-mismatch",
                f"the snippet {several[0]!r} is read as an instruction: its id holds a comma",
                field="prompt",
            )
        found = [(i, t) for i, t in found if "," not in i and len(t.split()) > 1]
    if len(dict(found)) != len(set(found)):
        row.find("duplicate-id", "two snippets have one id; the last is used", field="prompt")
    return dict(found)


def refiner(row: Row) -> Parsed:
    """Positive / negative rubrics with snippets; negative ones get a negative weight."""
    task_id = row.task_id("task_id", "id")
    chat = _prompt(row)
    positive = criteria_from(
        row, row.take("positive_rubrics"), prefix="p", field_name="positive_rubrics"
    )
    negative = criteria_from(
        row, row.take("negative_rubrics"), prefix="n", negative=True, field_name="negative_rubrics"
    )
    for c in positive:
        if c.weight < 0:
            row.find(
                "polarity",
                f"a positive rubric weighs {c.weight:g}: met, it costs",
                task_id=task_id,
                criterion_id=c.id,
                field="positive_rubrics",
                suggestion="move it to negative_rubrics, or write a weight above 0",
            )
    raw = row.take("sources", "snippets", "tool_output", "documents")
    return row.task(
        task_id,
        chat.prompt,
        [*positive, *negative],
        rubric="rubric",
        sources=snippets(row, raw) or shown(row, chat),
        meta=chat.meta,
        truth=object_of(row, "truth"),
        **chat.fields,
    )


def _prompt(row: Row) -> Chat:
    chat_first = row.data.get("messages") is not None and row.data.get("prompt") is None
    names = ("prompt", "query", "question", "Question")
    return ask(row, *(("messages", *names) if chat_first else (*names, "messages")))


def open_instruct(row: Row) -> Parsed:
    """open-instruct: messages, verifier key `dataset`, ground_truth JSON with rubrics; both legacy
    forms, nested or at the top."""
    task_id = row.task_id("id", "task_id")
    fields = ("messages", "prompt", "query", "question", "Question")
    chat = _prompt(row) if any(row.data.get(k) is not None for k in fields) else Chat()
    prompt = chat.prompt
    verifier = row.optional("dataset")
    truth = parsed_json(row.take("ground_truth"))
    if isinstance(truth, str) and re.search("rubric|instruction_id", f"{verifier}{truth[:200]}"):
        truth = listed(row, truth, "ground_truth")  # cut, it is an error
    while isinstance(truth, list) and len(truth) == 1:
        truth = literal(truth[0])
    source = truth if isinstance(truth, Mapping) else row.data
    criteria, used = _open_rubrics(row, source)
    if isinstance(truth, Mapping) and truth.get("instruction_id"):  # IFEval's
        criteria += checked(row, truth["instruction_id"], truth.get("kwargs"))
        used |= {"instruction_id", "kwargs"}
    if source is row.data:
        row.used |= used
        rest = {} if truth is None else {"ground_truth": truth}
    else:
        rest = {str(k): v for k, v in source.items() if k not in used}
    if prompt is None:
        texts = (source.get(k) for k in ("query", "Question", "question", "prompt"))
        prompt = next((x for x in texts if isinstance(x, str)), None)
        row.need(prompt is not None, "there is no user message and no query", "messages")
    rest = {k: v for k, v in rest.items() if k not in fields or v != prompt}
    return row.task(
        task_id,
        prompt,
        criteria,
        rubric=None if verifier and truth is not None else "rubric",
        sources=shown(row, chat),
        truth=rest,
        meta={**chat.meta, **({"verifier": verifier} if verifier else {})},
        **chat.fields,
    )


def _open_rubrics(row: Row, source: Mapping[str, Any]) -> tuple[list[Criterion], set[str]]:
    texts = ("rubrics", "positive_rubrics", "negative_rubrics")
    used = {k for k in texts if source.get(k) is not None}.union(
        k for k in (*SECTIONS, "rubric") if isinstance(source.get(k), list)
    )
    criteria: list[Criterion] = []
    if "rubrics" in used:
        criteria += criteria_from(row, source["rubrics"])
        types = source.get("rubrics_types")
        if isinstance(types, list) and len(types) == len(criteria):
            criteria = [
                replace(c, tags=(*c.tags, *tags_of(t)))
                for c, t in zip(criteria, types, strict=True)
            ]
            used.add("rubrics_types")
        elif types is not None and not isinstance(types, str):
            row.find(
                "field-mismatch",
                "rubrics_types has another length than rubrics; it is kept as it is",
                field="rubrics_types",
            )
    for name, negative in (("positive_rubrics", False), ("negative_rubrics", True)):
        if name in used:
            criteria += criteria_from(
                row, source[name], prefix=name[0], negative=negative, field_name=name
            )
    for section in (s for s in SECTIONS if s in used):
        items = enumerate(source[section], len(criteria) + 1)
        criteria += [criterion_of(row, _ingredient(x, section), f"c{n}") for n, x in items]
    if "rubric" in used:
        criteria += criteria_from(
            row, [_typed(x) for x in source["rubric"]], prefix="r" if criteria else "c"
        )
    return criteria, used


def _ingredient(item: Any, section: str) -> dict[str, Any]:
    """An entry of a section as a criterion's object."""
    said = dict(item) if isinstance(item, Mapping) else {"entry": item}
    return {"title": said.pop("Handle", None), **said, "tags": [section]}


def _typed(item: Any) -> Any:
    if isinstance(item, Mapping) and item.get("type") is not None and "tags" not in item:
        rest = {k: v for k, v in item.items() if k != "type" or sign(k, v) == -1}
        return {**rest, "tags": [item["type"]]}
    return item
