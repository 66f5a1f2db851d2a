"""Criteria out of any list: texts, objects, texts by name, lists by group."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from ..errors import DataError
from ..records import Criterion
from .labels import read_label
from .levels import ends_of, levels_of, scale_in, scaled, unread_of
from .lines import COUNTED, LABEL, PAID, POINTS, PRICED, RANK, TAKES, doubt, lines_of, worth
from .names import MUCH, against, pitfall, sign, turns
from .slips import PARTS
from .values import absent, as_text, listed, literal, number, parsed_json, unused

if TYPE_CHECKING:
    from .rows import Row

TEXT_FIELDS = (
    "criterion",
    "text",
    "description",
    "rubric_item",
    "Ingredient",
    "requirement",
    "requirements",
    "question",
    "checklist_item",
    "rubric",
    "criteria_description",
    "criteria",
    "name",
)
NAME = re.compile(r"\s*[^\s.!?]+(?:\s[^\s.!?]+){0,2}\s*")  # no sentence
# what a criterion that is only named asks for
WORDED = (
    "criteria_description",
    "description",
    "definition",
    "details",
    "explanation",
    "guidance",
    "instructions",
)
OBJECT = re.compile(rf"""\s*\{{\s*["'](?:{"|".join(TEXT_FIELDS)}|id|title|weight)["']\s*:""")
RANKED = re.compile(  # a field and its words that say how much a criterion counts
    r"(?:importance|priority|necessity|severity|criticality|obligation) \S+(?: \S+){0,2}\Z"
    r"|(?:type|kind|category|level|tier) (?:very |most |less )?(?:critical|essential|crucial|vital"
    r"|mandatory|important|optional|(?:must|should|could|nice to)(?:[- _]have)?)\Z",
    re.IGNORECASE,
)
LEVEL = re.compile(r"score[ _]?(\d+)(?:[ _]description)?", re.I)  # a field that describes a level


def weight_of(
    row: Row, item: Mapping[str, Any], names: Sequence[str], criterion_id: str, default: float = 1.0
) -> tuple[float, set[str]]:
    """(weight, fields read); a weight that is no number is 0 (recorded, not scored) and an
    error."""
    for n in names:
        if item.get(n) is not None:
            value = number(item[n])
            if value is None:
                row.find(
                    "bad-weight",
                    f"the weight {as_text(item[n])[:40]!r} is not a finite number; the "
                    f"criterion does not count",
                    severity="error",
                    criterion_id=criterion_id,
                    field=n,
                    suggestion="write a number, its decimals behind a point",
                )
                return 0.0, {n}
            return value, {n}
    if null := next((n for n in names if n in item), None):
        row.find(
            "null-weight",
            f"the weight is null; it counts {default:g}",
            criterion_id=criterion_id,
            field=null,
            suggestion="write a number, or leave the field out",
        )
    return default, set()


def pointed(row: Row, text: str, weight: float, criterion_id: str, given: Any = None) -> None:
    """Note points that stand in a criterion's text and are not its weight; an error where it has
    none and the text begins with them."""
    m = POINTS.search(text)
    if m is None:
        return
    said = next(filter(None, m.groups()))
    if worth(said) != (abs(weight) if said[0].isdigit() else weight):
        meant = not m.start() or re.search("weight|分", m[0], re.I)
        row.find(
            "points-in-text",
            f"the text says {m[0].strip()!r}, and its weight is {weight:g}",
            severity="error" if meant and not given else "warning",
            criterion_id=criterion_id,
            suggestion="write the number as its weight",
        )


def ranked(row: Row, item: Mapping[str, Any], criterion_id: str, used: Any) -> None:
    """Say that a criterion without a weight says in words how much it counts."""
    words = {k: as_text(v).strip() for k, v in item.items() if number(v) is None}
    field = next((k for k, said in words.items() if RANKED.match(f"{k} {said}")), None)
    if field and not used:
        row.find(
            "bad-weight",
            f"{field!r} is {as_text(item[field])[:40]!r}, and the criterion has no weight",
            severity="error",
            criterion_id=criterion_id,
            field=field,
            suggestion="write its weight as a number: what the word is worth, no reader knows",
        )


def warded(
    row: Row, item: Mapping[str, Any], weight: Any, criterion_id: str, text: str = ""
) -> None:
    """Say that a criterion, or the group that it is in, is called a pitfall or says what it costs,
    and pays."""
    field = next(
        (str(k) for k, v in item.items() if pitfall(f"criterion_{k}", v)),
        "text" * bool(TAKES.match(text)),
    )
    if field and (number(weight) or 0) > 0:
        row.find(
            "polarity",
            f"a pitfall, or what costs, weighs {as_text(weight)}: met, it pays",
            severity="error",
            criterion_id=criterion_id,
            field=field,
            suggestion="write a weight below 0, or drop the word",
        )


def rewarded(row: Row, item: Mapping[str, Any], weight: Any, criterion_id: str) -> None:
    """Say that a criterion is called one to be met, and costs."""
    paid = [str(k) for k, v in item.items() if sign(str(k), v) == 1]
    if paid and not against(item) and (number(weight) or 0) < 0:
        field = paid[0]
        row.find(
            "polarity",
            f"{field!r} says that it is to be met, and it weighs {as_text(weight)}: met, it costs",
            criterion_id=criterion_id,
            field=field,
            suggestion="write a weight above 0, or drop the word",
        )


TITLES = ("name", "title", "category", "group", "section", "dimension")


def flag(row: Row, item: Mapping[str, Any], criterion_id: str) -> bool | None:
    """Whether a criterion is required; None where it does not say. A word that is neither yes nor
    no is an error."""
    value = item.get("required")
    if absent(value):
        return None
    said = as_text(value).strip().casefold()
    status = read_label(said or "no")[0]
    if status in ("met", "unmet"):
        return status == "met"
    row.find(
        "bad-required",
        f"'required' is {said[:40]!r}; the criterion is read as not required",
        severity="error",
        criterion_id=criterion_id,
        field="required",
        suggestion="write true or false",
    )
    return None


def tags_of(value: Any) -> tuple[str, ...]:
    """Tags out of a list, nested lists, or text."""
    if isinstance(value, (list, tuple)):
        return tuple(t for v in value for t in tags_of(v))
    return () if absent(value) else (as_text(value),)


def criteria_from(
    row: Row,
    value: Any,
    *,
    prefix: str = "c",
    negative: bool = False,
    names: Sequence[str] = ("weight", "points"),
    field_name: str = "rubrics",
) -> list[Criterion]:
    """Criteria out of a list of texts or objects; an object's other fields go to `meta`. Numbered
    from 1 under `prefix`."""
    value = _priced(row, _items(row, value, field_name), field_name)
    given = {as_text(x.get("id")) for x in value if isinstance(x, Mapping)}
    out: list[Criterion] = []
    for i, item in enumerate(value, 1):
        name = f"{prefix}{i}"
        if name in given and not (isinstance(item, Mapping) and "id" in item):
            name = f"item-{i}"  # another one is called so
        out += _with_parts(row, item, name, negative, names)
    ranks = dict.fromkeys(
        next(filter(None, m.groups())).casefold() for c in out if (m := RANK.match(c.text))
    )
    items = [x for x in value if isinstance(x, Mapping)]
    given = any(x.keys() & names for x in items)
    row.numbers(out, field_name, given or any(map(parts_of, items)))
    if len(ranks) > 1 and not given:
        row.find(
            "bad-weight",
            f"the texts say {', '.join(ranks)}, and each weighs the same",
            severity="error",
            field=field_name,
            suggestion="write objects, each with its text and weight: what the words are worth, "
            "no reader knows",
        )
    return out


def _items(row: Row, value: Any, field_name: str) -> list[Any]:
    """The texts and objects, one for each criterion, of a value in any form."""
    value = listed(row, value, field_name)
    if isinstance(value, str):
        return lines_of(row, value, field_name)
    if isinstance(value, list) or value is None:
        return [listed(row, x, field_name) if _is_object(x) else x for x in value or ()]
    if not isinstance(value, Mapping):
        row.find(
            "field-type",
            f"the field {field_name!r} should be a list of criteria",
            severity="error",
            field=field_name,
        )
        return [value]
    said = {k: v for k, v in value.items() if v is not None}  # Parquet fills objects with null
    kinds = set(map(type, said.values()))
    named = said.keys().isdisjoint(TEXT_FIELDS)
    signed = named and kinds <= {str, list, dict} and any(against({"polarity": k}) for k in said)
    if signed or kinds == {list}:
        each = ((k, _items(row, v, field_name)) for k, v in said.items())
        return [x for k, held in each for x in _group(row, k, held, field_name)]
    if kinds == {dict}:
        return [{"id": k, **v} for k, v in said.items()]
    if "levels" not in value and "levels" in (laid := _laid_out(value)):
        return [laid]
    if kinds == {str} and named and not any(map(MUCH.match, said.values())):
        return [{"title": k, "text": v} for k, v in said.items()]
    return [value]


def _laid_out(item: Mapping[str, Any]) -> Mapping[str, Any]:
    """A criterion's object with its levels, which fields of their own describe, as levels; and with
    a name that another field words as its title."""
    steps = {k: m[1] for k in item if (m := LEVEL.fullmatch(str(k)))}
    steps |= {k: k for k in item if isinstance(k, str) and ends_of(k)}
    if len(steps) > 1 and "levels" not in item:
        item = {k: v for k, v in item.items() if k not in steps} | {
            "levels": {to: item[k] for k, to in steps.items()}
        }
    name = next((n for n in ("criterion", "name") if isinstance(item.get(n), str)), None)
    said = next((n for n in WORDED if isinstance(item.get(n), str)), None)
    named = name and said and NAME.fullmatch(item[name]) and not NAME.fullmatch(item[said])
    if not named and (said != WORDED[0] or name is None):
        return item
    rest = {k: v for k, v in item.items() if k not in (name, said)}
    return {"title": item[name], **rest, "text": item[said]}


def _priced(row: Row, items: list[Any], field_name: str) -> list[Any]:
    """Texts that all begin with their points as objects; an error where all say them elsewhere."""
    texts = [x for x in items if isinstance(x, str)]
    several = len(texts) == len(items) > 1
    marks = [m for m in map(PRICED.match, texts) if m]
    if several and len(marks) == len(texts):
        return [{"text": m.string[m.end() :], "weight": worth(m[1] or m[2])} for m in marks]
    counts = [float(m[1] or m[2]) for m in map(COUNTED.match, texts) if m]
    numbered = counts == sorted(set(counts)) or len(counts) < len(texts)
    paid = several and (all(map(PAID.search, texts)) or not numbered)
    if said := [x for x in texts if paid or LABEL.match(x)]:
        row.find(
            "points-in-text",
            f"the text {said[0][:60]!r} may say what it is worth, and each weighs the same",
            severity="error",
            field=field_name,
            suggestion="write them as objects, each with its text and weight",
        )
    return items


def _group(row: Row, name: str, held: list[Any], field_name: str) -> list[dict[str, Any]]:
    """The criteria of a list as objects, with what its name says of them: a tag, and that they must
    not be met; of a name that may be a topic, where they pay, an error says it."""
    items = [x if isinstance(x, Mapping) else {"text": x} for x in held]
    doubt(
        row,
        name,
        field_name,
        [
            number(x.get("weight", x.get("points"))) or 0
            for x in items
            if x.keys() & {"weight", "points"}
        ],
    )
    said = {"polarity": "negative"} if turns(name) else signs({"category": name})
    return [{"tags": [name], **said, **x} for x in items]


def signs(data: Mapping[str, Any]) -> dict[str, Any]:
    """The fields of a row that say whether its criterion must be met.

    >>> signs({"type": "negative", "kind": "a pitfall", "category": "Pitfall"})
    {'type': 'negative', 'category': 'Pitfall'}
    """
    return {k: v for k, v in data.items() if sign(k, v) or pitfall(k, v)}


def _with_parts(
    row: Row, item: Any, default_id: str, negative: bool, names: Sequence[str]
) -> list[Criterion]:
    """The criteria of an item. One that holds others and says what they weigh together, or that
    it is required, is their parent; else it is a group: they count by their own weights, and have
    its name as a tag."""
    field = parts_of(item) if isinstance(item, Mapping) else None
    if field is None:
        return [criterion_of(row, item, default_id, negative, names)]
    own = {k: v for k, v in item.items() if k != field and not absent(v)}
    title = next((own[k] for k in (*TITLES, *TEXT_FIELDS) if isinstance(own.get(k), str)), None)
    if any(n in own for n in (*names, "required")):
        top = criterion_of(row, {"text": title or default_id, **own}, default_id, negative, names)
        below = criteria_from(row, item[field], prefix=f"{top.id}.", names=names, field_name=field)
        return [top, *(c if c.parent else replace(c, parent=top.id) for c in below)]
    if more := {k: v for k, v in own.items() if v != title}:
        row.keep(f"group {default_id}", own)
        read = {k for k, v in more.items() if sign(str(k), v)}
        row.astray(more.keys() - {*read, "id"}, more)
    below = criteria_from(
        row,
        item[field],
        prefix=f"{default_id}.",
        negative=negative or against(own),
        names=names,
        field_name=field,
    )
    weights = {c.weight for c in below} or {0}
    heads = (*TITLES, "heading", "label", "id", "type", "kind")  # what may say what a group is
    for said in dict.fromkeys(map(as_text, (title, *map(own.get, heads)))):
        warded(row, {"group": said}, max(weights), default_id)
        doubt(row, said, field, weights - {1.0})
    return [replace(c, tags=(*tags_of(title), *c.tags)) for c in below]


def parts_of(item: Mapping[str, Any]) -> str | None:
    """The field of an item that holds criteria of its own, or None. Texts under "items" are none:
    they may be what an answer is to list."""
    held = ((n, item[n]) for n in PARTS if isinstance(item.get(n), list) and item[n])
    return next((n for n, x in held if n != "items" or isinstance(x[0], Mapping)), None)


def criterion_of(
    row: Row,
    item: Any,
    default_id: str,
    negative: bool = False,
    names: Sequence[str] = ("weight", "points"),
) -> Criterion:
    """One criterion out of a text or an object; what the record has no place for goes to `meta`."""
    given = item if isinstance(item, Mapping) else {"text": "" if absent(item) else as_text(item)}
    alone = None if given is item else item  # what should be its text
    item = _laid_out(given)
    field_name = next((n for n in TEXT_FIELDS if isinstance(item.get(n), str)), None)
    text = item[field_name] if field_name else ""
    named = "rubric_id" if absent(item.get("id")) else "id"
    own = item.get(named)
    default_id = default_id if absent(own) or own == "" else as_text(own)
    _no_object(row, text if alone is None else alone, default_id)
    if not text.strip():
        row.find(
            "missing-field",
            "the criterion has no text",
            severity="error",
            criterion_id=default_id,
            field="criterion",
            suggestion=f"its fields: {', '.join(map(str, list(item)[:8])) or 'none'}",
        )
    levels, scale, points = _scale(row, item, default_id)
    if levels and isinstance(item.get("points"), list):
        item = {k: v for k, v in item.items() if k != "points"}
    names = [n for n in names if n != "points" or points is None]
    weight, used = weight_of(row, item, names, default_id)
    signed = {k: x for k, v in item.items() if (x := sign(str(k), v))}
    if negative or -1 in signed.values():
        weight = -abs(weight)
    pointed(row, text, weight, default_id, used)
    ranked(row, item, default_id, used)
    rest = {k: v for k, v in item.items() if k not in (field_name, "title", "id")}
    warded(row, rest, weight, default_id, text)
    rewarded(row, item, weight, default_id)
    check = parsed_json(item.get("check"))
    checked = isinstance(check, Mapping) and isinstance(check.get("name"), str)
    if item.get("check") is not None and not checked:
        row.find(
            "bad-check",
            "the check is not an object with a name; the criterion is left to a judge",
            severity="error",
            criterion_id=default_id,
            field="check",
            suggestion='write it as {"name": "words", "max": 20}',
        )
    read = {n for n in used if number(item[n]) is not None} | {field_name, "title", "tags", named}
    required = flag(row, item, default_id)
    understood = {
        "check": checked or item.get("check") is None,
        "required": required is not None,
        "levels": levels and not unread_of(item.get("levels")),
        "points": points is not None,
        "scale": scale_in(item) in (scale, None),
    }
    read |= signed.keys() | {k for k, said in understood.items() if said}
    tags = tags_of(item.get("tags"))
    for tag in (t for t in tags if sign("polarity", t) is None):
        row.astray(["tags"], {"tags": tag})
    meta = {str(k): v for k, v in item.items() if k not in read}
    row.astray(meta, meta)
    return Criterion(
        id=default_id,
        text=text,
        weight=weight,
        title=None if absent(item.get("title")) else as_text(item["title"]),
        tags=tags,
        required=required or False,
        check=dict(check) if checked else None,
        scale=scale,
        levels=levels,
        points=points,
        meta=meta,
        written=("weight",) * bool(used) + ("required",) * (required is not None),
    )


def _is_object(item: Any) -> bool:
    """True for a text that is an object or a list, or begins as a criterion's object does."""
    begun = isinstance(item, str) and item.lstrip()[:1] in ("{", "[", '"')
    return begun and bool(OBJECT.match(item) or literal(item) != item)


def _no_object(row: Row, said: Any, criterion_id: str) -> None:
    """Say that what should be a criterion's text is none, or an object or a list as text."""
    if not absent(said) and (not isinstance(said, str) or _is_object(said)):
        row.find(
            "field-type",
            "a criterion should be text or an object",
            severity="error",
            criterion_id=criterion_id,
        )


def _scale(
    row: Row, item: Mapping[str, Any], name: str
) -> tuple[tuple[str, ...], str, float | None]:
    """(levels, scale, points) of a criterion's object; what cannot be read is an error of the
    file, and left out."""
    levels: tuple[str, ...] = ()
    try:
        levels = levels_of(item.get("levels"), item.get("points"))
        more = unread_of(item.get("levels"))
        row.astray(more, more)
        return levels, *scaled(item, levels)
    except DataError as e:
        field = "scale" if levels or absent(item.get("levels")) else "levels"
        more = {"criterion_id": name, "field": field, "suggestion": e.fix}
        row.find(f"bad-{field}", e.what, severity="error", **more)
        return levels, "ordinal" if levels else "binary", None


def free_id(row: Row, name: str, seen: set[str]) -> str:
    """An id that is not among those seen, to which it is added; a change is reported."""
    own = name
    name = unused(name, lambda n: n not in seen)
    if name != own:
        row.find(
            "duplicate-id",
            f"the criterion id {own!r} occurs again; it is called {name!r}",
            criterion_id=name,
        )
    seen.add(name)
    return name


def unique(row: Row, criteria: Sequence[Criterion]) -> tuple[Criterion, ...]:
    """Criteria with ids made unique."""
    if len({c.id for c in criteria}) == len(criteria):
        return tuple(criteria)
    seen: set[str] = set()
    out, called = [], {}  # a parent stands before its parts
    for c in criteria:
        name = free_id(row, c.id, seen)
        out.append(replace(c, id=name, parent=called.get(c.parent, c.parent)))
        called |= {c.id: name} if c.parent != c.id else {}
    return tuple(out)
