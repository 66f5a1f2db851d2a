"""Our own JSONL: one record a line, `{"record": "task" | "response" | "verdict", ...}`; nothing is
lost either way."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from typing import Any

from ...errors import DataError
from ...records import (
    Response,
    Task,
    Verdict,
    response_from_json,
    task_from_json,
    to_json,
    verdict_from_json,
)
from ..criteria import ranked, rewarded, warded
from ..levels import levels_of, scaled
from ..names import against, sign
from ..rows import Row
from ..schemas import readable, stamped
from ..slips import OWN_CRITERION, OWN_TASK
from ..taskset import Parsed
from ..values import absent, as_text, number

OWN_ANSWER = {f.name for record in (Response, Verdict) for f in fields(record)} | {"response"}
KINDS = {Task: "task", Response: "response", Verdict: "verdict"}


def record_row(record: Task | Response | Verdict) -> dict[str, Any]:
    """A record as a row of our JSONL."""
    if type(record) not in KINDS:
        raise DataError(
            f"a {type(record).__name__} is no task, response or verdict",
            where="kit.save",
            fix="give what kit.load gave, or records (kit.Task, ...)",
        )
    return stamped("record", {"record": KINDS[type(record)], **to_json(record)})


def kit(row: Row) -> Parsed:
    """One record; a fault in it is an error that names the field."""
    try:
        return row.done(_record(row))
    except DataError as e:
        row.find(
            "unreadable-row",
            e.what,
            severity="error",
            suggestion=e.fix or (e.where if e.where != row.where else None),
        )
    return row.done(None)


def _record(row: Row) -> Task | None:
    """The task of a row, None for an answer or a verdict, which goes to the row's own."""
    ours = "record" in row.data  # else a field named "schema" is the user's own
    given = readable("record", row.data, where=row.where) if ours else row.data
    data = {str(k): v for k, v in given.items() if k != "record" and not absent(v)}
    if isinstance(data.get("criteria"), list):
        data["criteria"] = [_criterion(c, ours) for c in data["criteria"]]
    if isinstance(data.get("sources"), Mapping):
        data["sources"] = _given(data["sources"])
    _check(data, row.where)
    kind = given.get("record", "task" if "prompt" in data else None)
    if kind == "task":
        return _task(row, data)
    row.context.unread.each(data.keys() - OWN_ANSWER, row.where, data)
    if kind == "response":
        row.responses.append(response_from_json(data, where=row.where))
    elif kind == "verdict":
        row.verdicts.append(verdict_from_json(data, where=row.where))
    else:
        raise DataError(
            f"the record kind is {str(kind)[:40]!r}",
            where=row.where,
            fix="use task, response or verdict",
        )
    return None


def _criterion(given: Any, ours: bool) -> Any:
    """The fields of a criterion that are given; in one written by hand, in any order, levels, scale
    and points are read as in any list of criteria: DataError where they do not fit."""
    out = _given(given) if isinstance(given, Mapping) else given
    if ours or out is given:
        return out
    levels = levels_of(out.get("levels"))
    scale, points = scaled(out, levels)
    if points is None and (weight := out.pop("points", None)) is not None:
        out["weight"] = weight
    if against(out) and (weight := number(out.get("weight", 1))) is not None:
        out["weight"] = -abs(weight)
    return out | {"levels": list(levels), "scale": scale}


def _task(row: Row, data: Mapping[str, Any]) -> Task:
    """The task, with findings on its id and its criteria, and on fields that no record has."""
    task = task_from_json(data, where=row.where)
    row.context.unread.each(data.keys() - OWN_TASK, row.where, data)
    for c in data.get("criteria") or ():
        rewarded(row, c, c.get("weight"), as_text(c.get("id")))
        if names := {k for k in c.keys() - OWN_CRITERION if not sign(k, c[k])}:
            row.astray(names, c)
            ranked(row, c, as_text(c.get("id")), c.get("weight"))
            warded(row, {k: c[k] for k in names}, c.get("weight", 1), as_text(c.get("id")))
    row.numbers(task.criteria, "text", any("weight" in c for c in data.get("criteria") or ()))
    for c in task.criteria:
        if not c.text.strip() and c.check is None:
            row.find(
                "missing-field",
                "the criterion has no text",
                severity="error",
                criterion_id=c.id,
                field="text",
                suggestion="write it or remove it",
            )
    return task


WORDS = {dict: "an object", list: "a list", str: "text", bool: "true or false"}
TYPES: dict[str, tuple[type, ...]] = {
    "criteria": (list,),
    "truth": (dict,),
    "sources": (dict,),
    "meta": (dict,),
    "tags": (list,),
    "history": (list,),
    "levels": (list,),
    "check": (dict,),
    "system": (str,),
    "group": (str,),
    "split": (str,),
    "kind": (str,),
    "title": (str,),
    "parent": (str,),
    "required": (bool,),
    "truncated": (bool,),
    "cached": (bool,),
    "source": (str,),
    "scale": (str,),
    "status": (str,),
    "reason": (str,),
    "failure": (str,),
    "judge": (str,),
    "key": (str,),
}


NUMBERS = ("confidence", "p", "value", "points", "tokens_in", "tokens_out", "cost")


def _given(record: Mapping[Any, Any]) -> dict[str, Any]:
    """The fields of a record that are given: Parquet writes null where one is not."""
    return {str(k): v for k, v in record.items() if v is not None}


def _check(data: Mapping[str, Any], where: str) -> None:
    """Types of the fields that the records themselves do not check."""
    for name, value in data.items():
        if name in TYPES and not isinstance(value, TYPES[name]):
            word = WORDS[TYPES[name][0]]
            raise DataError(
                f"the field {name!r} is {type(value).__name__}, not {word}",
                where=where,
                fix=f"expected {word}",
            )
        held = value.values() if name == "sources" else value
        if name in ("tags", "levels", "sources") and not all(isinstance(x, str) for x in held):
            raise DataError(f"the field {name!r} must hold texts", where=where)
        if name in NUMBERS and (isinstance(value, str) or number(value) is None):
            raise DataError(f"the field {name!r} is not a finite number", where=where)
    for i, c in enumerate(data.get("criteria") or [], 1):
        if not isinstance(c, Mapping):
            raise DataError(f"criterion {i} is not an object", where=where)
        _check(c, f"{where}, criterion {i}")
