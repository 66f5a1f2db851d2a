"""A row while it is read: fields are taken out of it one by one, and what is left goes to meta."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ..errors import DataError
from ..records import Criterion, Response, Task, Verdict, fingerprint, from_json
from .files import _json
from .labels import by_rater, is_blank, verdict_of
from .taskset import Finding

ID = re.compile(r"(?:.*_)?[a-z]?id", re.I)  # id, qid, question_id
LAYOUT = re.compile(r"\s*### Instruction:\n(.*?)\n+### Response:\n?(.*)", re.S)

# The fields of a criterion in the forms of others -> the field of our record. What changes no score is a note.
FIELD_OF = {
    **{name: name for name in Criterion.__struct_fields__},
    **dict.fromkeys(("criterion", "description", "rubric_item", "Ingredient"), "text"),
    "points": "weight",
    "criterion_id": "id",
    "Handle": "title",
    **dict.fromkeys(("category", "type", "kind", "note", "notes", "origin", "source"), "note"),
    **dict.fromkeys(("criterion_origin", "instruction_type", "instruction_necessity"), "note"),
}


@dataclass(kw_only=True)
class Reading:
    """The records of one row. made_id : True where the row has no id and `task` has one made from its content."""

    task: Task | None = None
    responses: list[Response] = field(default_factory=list)
    verdicts: list[Verdict] = field(default_factory=list)
    findings: list[Finding] = field(default_factory=list)
    made_id: bool = False


class Row(dict[str, Any]):
    """The fields of a row that nothing has read yet. A null field counts as absent."""

    def __init__(self, data: Mapping[str, Any], where: str = ""):
        super().__init__((k, v) for k, v in data.items() if v is not None)
        self.data, self.where = data, where
        self.reading = Reading()
        self.extra: dict[str, Any] = {}  # for meta, without being named as unread

    def take(self, *names: str, default: Any = None) -> Any:
        """The value of the first of these fields that is there, else the default."""
        return next((self.pop(n) for n in names if n in self), default)

    def need(self, *names: str) -> Any:
        """The same; DataError names the field, and the nearest one of the row, where none is there."""
        if not any(n in self for n in names):
            raise missing(names, self)
        return self.take(*names)

    def text(self, *names: str) -> str:
        """A field that must hold a text."""
        name = next((n for n in names if n in self), names[0])
        value = self.need(*names)
        if not isinstance(value, str) or not value.strip():
            kind = "empty" if isinstance(value, str) else f"a {type(value).__name__}, not a text"
            raise DataError(f"the field {name!r} is {kind}", fix="write a text")
        return value

    def json(self, *names: str, kind: type = dict) -> Any:
        """A field that holds a list or an object, or its JSON text, as a table has it."""
        name = next((n for n in names if n in self), names[0])
        value = self.take(*names)
        value = _json(value, f"field {name!r}") if isinstance(value, str) else value
        if value is not None and not isinstance(value, kind):
            wanted = {list: "a list", dict: "an object"}[kind]
            raise DataError(f"the field {name!r} is a {type(value).__name__}, not {wanted}")
        return kind() if value is None else value

    def id(self, *names: str) -> str | None:
        """An id, as a text."""
        name = next((n for n in names if n in self), "")
        value = self.take(*names)
        if isinstance(value, bool) or not isinstance(value, str | int | None) or value == "":
            raise DataError(f"the id in {name!r} is {value!r}", fix="write a text or whole number")
        return None if value is None else str(value)


def missing(wanted: Sequence[str], row: Mapping[str, Any]) -> DataError:
    """The error for a missing field, with the nearest field of the row as a remedy."""
    fields = list(row)
    if ID.fullmatch(wanted[0]):
        fields = [k for k in fields if ID.fullmatch(k)] or fields
    elif texts := [k for k in fields if isinstance(row[k], str) and k not in FIELD_OF]:
        fields = texts  # most fields that are missing are texts
    scores = [(difflib.SequenceMatcher(None, k, w).ratio(), k) for k in fields for w in wanted]
    near = max(scores, default=(0, ""))[1]
    advice = (
        f"if {near!r} is meant: load(..., fields={{{near!r}: {wanted[0]!r}}}); " if near else ""
    )
    return DataError(
        f"there is no field {wanted[0]!r}"
        + (f" (or {', '.join(wanted[1:])})" if wanted[1:] else ""),
        fix=f"{advice}the row has {', '.join(map(repr, list(row)[:12])) or 'no fields'}",
    )


def criterion(item: Any, name: str, sign: float = 1.0) -> Criterion:
    """A criterion out of a text or an object; DataError for a field that nothing reads.

    name : its id where it has none. sign : -1 in a list of negative rubrics, whose weights are sizes.
    """
    if isinstance(item, str):
        item = {"text": item}
    if not isinstance(item, Mapping):
        raise DataError(
            f"the criterion is a {type(item).__name__}",
            fix='write "text" or {"text": ..., "weight": 1}',
        )
    fields: dict[str, Any] = {"id": name}
    notes: dict[str, Any] = {}
    for key, value in item.items():
        target = FIELD_OF.get(key)
        if value is None:
            continue
        if target is None:
            raise _unread(key, item)
        if key == "points" and item.get("scale") == "points":
            target = "points"
        if target == "note":
            notes[key] = value
        elif target in fields and target != "id":
            raise DataError(f"the field {key!r} is a second {target}", fix="keep one of them")
        else:
            fields[target] = value
    text, weight = fields.get("text"), fields.get("weight", 1.0)
    if text is None:
        raise missing(("text", "criterion", "description"), item)
    if not isinstance(text, str) or not text.strip():
        raise DataError(f"the text of the criterion is {text!r}", fix="write a text")
    if sign < 0 and isinstance(weight, int | float):
        if weight < 0:
            raise DataError(
                f"the weight of a negative rubric is {weight}",
                fix="write its size: the list says the sign",
            )
        fields["weight"] = -weight
    if isinstance(fields["id"], int):
        fields["id"] = str(fields["id"])
    if fields.get("levels") and "scale" not in fields:
        fields["scale"] = "ordinal"
    if notes:
        fields["meta"] = {**fields.get("meta", {}), **notes}
    return from_json(fields, Criterion, where="")


def _unread(key: str, item: Mapping[str, Any]) -> DataError:
    """A field of a criterion that nothing reads could change its score, so it is no note."""
    targets = {FIELD_OF[k] for k in item if k in FIELD_OF}
    wanted = [f for f in ("text", "id") if f not in targets]
    is_text = isinstance(item[key], str) and "text" in wanted
    near = difflib.get_close_matches(key, FIELD_OF, n=1, cutoff=0.5)
    near = [FIELD_OF[near[0]]] if near else ["text"] if is_text else wanted
    what = f"nothing reads the field {key!r} of a criterion"
    if "text" in wanted:
        what += ", and it has no field 'text'"
    options = "id, text, weight, check, required, levels, title, tags, parent, note"
    target = near[0] if near else "note"
    return DataError(
        what, fix=f"a criterion has {options}; rename: load(..., fields={{{key!r}: {target!r}}})"
    )


def criteria(
    row: Row, items: Any, name: str, prefix: str = "c", sign: float = 1.0
) -> list[Criterion]:
    """The criteria of a list; `prefix` with their number is the id of those without one."""
    if not isinstance(items, list):
        raise DataError(
            f"the field {name!r} is no list", fix='write ["text", ...] or [{"text": ...}, ...]'
        )
    made = []
    for n, item in enumerate(items, 1):
        try:
            made.append(criterion(item, f"{prefix}{n}", sign))
        except DataError as e:
            raise DataError(e.what, where=_within(f"{name} {n}", e), fix=e.fix) from None
    return made


def _within(place: str, error: DataError) -> str:
    return f"{place}, {error.where}" if error.where else place


def chat(turns: Any) -> tuple[dict[str, Any], str | None]:
    """(fields of a task, the assistant's last turn) of a list of {role, content}, both texts."""
    if not isinstance(turns, list) or not turns:
        raise DataError(
            "the chat is no list of turns", fix='write [{"role": "user", "content": "..."}]'
        )
    talk = []
    for n, turn in enumerate(turns, 1):
        turn = {k: v for k, v in turn.items() if v is not None} if isinstance(turn, dict) else {}
        if turn.keys() != {"role", "content"} or not all(isinstance(x, str) for x in turn.values()):
            raise DataError(
                f"turn {n} of the chat is not a role and a content, both texts",
                fix='write {"role": "user", "content": "..."}; nothing reads other fields of a turn',
            )
        talk.append(turn)
    system = talk.pop(0)["content"] if talk[0]["role"] == "system" else None
    answer = talk.pop()["content"] if talk and talk[-1]["role"] == "assistant" else None
    if not talk or talk[-1]["role"] != "user":
        raise DataError("the chat ends neither with the user nor with an answer to the user")
    fields = {"history": talk[:-1], "prompt": talk[-1]["content"]}
    return {**fields, **({"system": system} if system is not None else {})}, answer


QUESTION = ("prompt", "messages", "question", "query", "instruction", "Question")


def question(row: Row, *names: str) -> dict[str, Any]:
    """The fields of a task that hold the question: of a text, a chat, or an instruction layout."""
    value = row.need(*(names or QUESTION))
    if not isinstance(value, str):
        fields, answer = chat(value)
        if answer is not None:
            raise DataError("the chat of a prompt ends with an answer", fix="end it with the user")
        return fields
    match = LAYOUT.fullmatch(value) if "### Response:" in value else None
    if match is None or match[2].strip():
        return {"prompt": value}
    row.extra["layout"] = value
    return {"prompt": match[1].strip()}


def finish(row: Row, made: Iterable[Criterion], fields: dict[str, Any], **more: Any) -> Reading:
    """Make the task of a row, with the fields that all forms share; what is left becomes meta."""
    fields = {**fields, **more}
    name = row.id("task_id", "id", "prompt_id")
    for key in ("group", "split", "kind", "system"):
        if key in row and fields.get(key) is None:
            fields[key] = row.take(key)
    if fields.get("kind") is None and "category" in row:
        fields["kind"] = row.take("category")
    for key in ("truth", "sources"):
        if key in row and key not in fields:
            fields[key] = row.json(key)
    if "history" in row and not fields.get("history"):
        fields["history"] = row.json("history", kind=list)
    fields["tags"] = row.json("tags", "example_tags", kind=list)
    meta = row.take("meta") if isinstance(row.get("meta"), dict) else {}
    reading = row.reading
    reading.made_id = name is None
    if name is None:
        name = "t-" + fingerprint(row.data)[:12]
    fields |= {"id": name, "criteria": list(made), "meta": {**meta, **row.extra, **row}}
    reading.task = from_json(fields, Task, where="")
    return reading


def answer(row: Row, name: str, text: Any, *, role: str | None = None, **more: Any) -> Response:
    """Add an answer to the reading of a row whose task is made."""
    if not isinstance(text, str):
        raise DataError(f"the answer {name!r} is a {type(text).__name__}, not a text")
    meta = {"role": role} if role else {}
    task_id = row.reading.task.id if row.reading.task else more.pop("task_id")
    fields = {"task_id": task_id, "id": name, "text": text, "source": name, "meta": meta, **more}
    row.reading.responses.append(from_json(fields, Response, where=""))
    return row.reading.responses[-1]


def label(row: Row, response: Response, criterion_id: str, value: Any, **meta: Any) -> None:
    """Add the verdicts of a label to a reading: one, or one for each rater. A blank label is none."""
    task = row.reading.task
    found = next((c for c in task.criteria if c.id == criterion_id), None) if task else None
    if task and found is None:
        raise DataError(f"there is a label on {criterion_id!r}, which is no criterion of its task")
    for judge, one in by_rater(value):
        if not is_blank(one):
            v = verdict_of((*response.ids, criterion_id), one, found, judge=judge)
            v.meta.update(meta)
            row.reading.verdicts.append(v)
