"""A row while it is read: fields are taken out of it one by one, and what is left goes to meta."""

import difflib
import re
from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

from ..errors import DataError
from ..records import Criterion, Response, Task, Verdict, fingerprint, from_json
from .files import parse

ID = re.compile(r"(?:.*_)?[a-z]?id", re.I)  # id, qid, question_id
LAYOUT = re.compile(r"\s*### Instruction:\n(.*?)\n+### Response:\n?(.*)", re.S)
QUESTION = ("prompt", "messages", "question", "query", "instruction", "Question")

TEXTS = ("text", "criterion", "description")
# A field of a criterion in the forms of others -> our field. What changes no score is a note.
FIELD_OF = {
    **{name: name for name in Criterion.__struct_fields__},
    **dict.fromkeys(
        ("criterion", "description", "rubric_item", "Ingredient"), "text"
    ),
    # HealthBench's points may be negative; they say how much a criterion counts.
    "points": "weight",
    "criterion_id": "id",
    "Handle": "title",
    **dict.fromkeys(
        ("category", "type", "kind", "note", "notes", "origin", "source"), "note"
    ),
    **dict.fromkeys(
        ("criterion_origin", "instruction_type", "instruction_necessity"), "note"
    ),
}


# In lower case. The colours are those of RLVR's rating columns.
WORDS = {
    **dict.fromkeys(("met", "yes", "true", "🟢 yes", "🟢"), ("met", None)),
    **dict.fromkeys(("unmet", "no", "false", "🔴 no", "🔴"), ("unmet", None)),
    **dict.fromkeys(("partly", "partially", "🟡 partially", "🟡"), ("level", 0.5)),
    "unknown": ("unknown", None),
}
NUMBERS = {"1": ("met", None), "0": ("unmet", None)}
FORMS = "met, unmet, partly, unknown, yes, no, true, false, 1, 0, a level's text, or points as 3/5"


def refuse(is_wrong: bool, what: str, **place: str) -> None:
    """DataError where a condition holds. place : where and fix."""
    if is_wrong:
        raise DataError(what, **place)


def is_blank(label: Any) -> bool:
    """True for a label that is not filled in."""
    return label is None or (isinstance(label, str) and not label.strip())


def read_label(
    label: Any, criterion: Criterion | None = None
) -> tuple[str, float | None] | None:
    """(status, value in [0, 1] or None) of a label; None where the label has no documented form.

    criterion : needed for a level's text (of a criterion with `levels`) and for points such as "3/5" (of one with
        `points`). The numbers 1 and 0 are labels of a binary criterion only.

    >>> read_label("🟢 Yes"), read_label(True), read_label(0), read_label("perhaps")
    (('met', None), ('met', None), ('unmet', None), None)
    >>> levels = Criterion(id="c", text="Polite", scale="ordinal", levels=("rude", "plain", "kind"))
    >>> read_label("plain", levels), read_label(1, levels)
    (('level', 0.5), None)
    """
    text = str(label).strip()
    # A level may be called "1" or "no", so levels come before the words.
    if criterion is not None and text in criterion.levels:
        return "level", criterion.levels.index(text) / criterion.top
    if criterion is not None and criterion.points:
        # The top is a part of the label: a bare 3 could be of 3, 5 or 10.
        match = re.fullmatch(r"(\d+(?:\.\d+)?)/(\d+(?:\.\d+)?)", text)
        if match and float(match[2]) == criterion.points >= float(match[1]):
            return "level", float(match[1]) / criterion.points
    if text in NUMBERS and (criterion is None or criterion.scale == "binary"):
        return NUMBERS[text]
    return WORDS.get(text.casefold())


def verdict_of(
    ids: tuple[str, ...],
    label: Any,
    criterion: Criterion | None = None,
    *,
    judge: str = "human",
    where: str = "",
) -> Verdict:
    """The verdict of one label; DataError where the label has no documented form.

    ids : task, answer, criterion. judge : "human" or "human:NAME".

    >>> verdict_of(("t", "r", "c"), "partly").value
    0.5
    """
    reading = read_label(label, criterion)
    if reading is None:
        raise DataError(
            f"the label of {ids[2]!r} is {label!r}",
            where=where,
            fix=f"write {FORMS}",
        )
    status, value = reading
    return Verdict(
        task_id=ids[0],
        response_id=ids[1],
        criterion_id=ids[2],
        status=status,  # type: ignore[arg-type]
        value=value,
        judge=judge,
        failure="abstain" if status == "unknown" else None,
        meta={"label": label},
    )


class Finding(msgspec.Struct, frozen=True, kw_only=True):
    """One fault, or one fact worth knowing, of a rubric set.

    code : the rule. severity : "error", "warning" or "info". where : file and row. field : the field's name.
    rows : how often it is there. text : the text in question. suggestion : what to do.
    """

    code: str
    severity: str
    message: str
    where: str = ""
    rows: int = 1
    field: str | None = None
    task_id: str | None = None
    criterion_id: str | None = None
    text: str | None = None
    suggestion: str | None = None


class Row(dict[str, Any]):
    """The fields of a row that nothing has read yet, and the records made of it. A null field counts as absent."""

    def __init__(self, data: Mapping[str, Any], where: str = ""):
        super().__init__((k, v) for k, v in data.items() if v is not None)
        self.data, self.where = data, where
        self.extra: dict[str, Any] = {}  # for meta, but not among the unread fields
        self.task: Task | None = None
        self.records: list[Response | Verdict] = []
        self.notes: list[Finding] = []

    def note(
        self, code: str, message: str, *, severity: str = "info", **more: Any
    ) -> None:
        """Add a finding. `load` counts equal ones of all rows as one."""
        self.notes.append(
            Finding(code=code, message=message, severity=severity, **more)
        )

    def take(self, *names: str, default: Any = None) -> Any:
        """The value of the first of these fields that is there, else the default."""
        return next((self.pop(name) for name in names if name in self), default)

    def need(self, *names: str) -> Any:
        """The same; DataError names the field, and the nearest one of the row, where none is there."""
        value = self.take(*names)
        if value is None:
            raise missing(names, self)
        return value

    def json(self, *names: str, kind: type = dict) -> Any:
        """A field that holds a list or an object, or its JSON text, as a table has it."""
        value = self.take(*names)
        if value is None:
            return kind()
        # A cell of a CSV file holds its list or object as JSON text.
        if isinstance(value, str):
            value = parse(value, f"field {names[0]!r}")
        if not isinstance(value, kind):
            raise DataError(
                f"{f'the field {names[0]!r} is a {type(value).__name__}'}, not a {kind.__name__}"
            )
        return value

    def id(self, name: str, *, is_needed: bool = False) -> str | None:
        """An id as a text; None where there is none."""
        value = self.need(name) if is_needed else self.take(name)
        # True is an int in Python, and no id.
        is_id = isinstance(value, str | int | None) and not isinstance(value, bool)
        refuse(
            not is_id or value == "",
            f"the id {name!r} is {value!r}",
            fix="write a text or whole number",
        )
        return None if value is None else str(value)


def missing(wanted: Iterable[str], row: Mapping[str, Any]) -> DataError:
    """The error for a missing field. The remedy names the nearest field of the row."""
    wanted = list(wanted)
    if ID.fullmatch(wanted[0]):
        names = [k for k in row if ID.fullmatch(k)]
    else:
        names = [k for k in row if isinstance(row[k], str) and k not in FIELD_OF]
    # A cutoff of 0 gives the nearest name, however far it is.
    matches = difflib.get_close_matches(
        " ".join(wanted), names or row, n=1, cutoff=0
    )
    # Of two ids none is nearer: a wrong guess would swap them.
    is_clear = matches and not (ID.fullmatch(wanted[0]) and len(names) > 1)
    return DataError(
        f"there is no field {' or '.join(map(repr, wanted))}",
        fix="rename yours, for example load(..., fields="
        f"{ {matches[0] if is_clear else 'YOURS': wanted[0]} }); "
        f"the row has {', '.join(map(repr, list(row)[:12])) or 'no fields'}",
    )


def criterion(item: Any, name: str, sign: float = 1.0) -> Criterion:
    """A criterion out of a text or an object; DataError for a field that nothing reads.

    name : its id where it has none. sign : -1 in a list of negative rubrics, whose weights are sizes.
    """
    refuse(
        not isinstance(item, str | dict),
        "the criterion is no text",
        fix='write "text" or {"text": ..., "weight": 1}',
    )
    item = {"text": item} if isinstance(item, str) else item
    fields = {"id": name, "weight": 1.0, **_named(item)}
    text = fields.get("text")
    refuse(
        not isinstance(text, str) or not text.strip(),
        f"the text of the criterion is {text!r}",
        fix="write a text",
    )
    # Ids are texts, so that 7 in one file joins "7" in another.
    if type(fields["id"]) is int:
        fields["id"] = str(fields["id"])
    fields.setdefault("scale", "ordinal" if fields.get("levels") else "binary")
    made = from_json(fields, Criterion, where="")
    if sign > 0:
        return made
    # Published sets write a size in a negative list; -1 there could mean either sign.
    if made.weight < 0:
        raise DataError(
            f"the weight of a negative rubric is {made.weight:g}",
            fix="write its size: the list says the sign",
        )
    return msgspec.structs.replace(made, weight=-made.weight)


def _named(item: Mapping[str, Any]) -> dict[str, Any]:
    """The fields of a criterion under our names. One that nothing reads could change a score: an error."""
    if not any(FIELD_OF.get(key) == "text" for key in item):
        raise missing(TEXTS, item)
    fields: dict[str, Any] = {}
    for key, value in item.items():
        # HealthBench's points are weights; ours are the top of a scale.
        is_top = key == "points" and item.get("scale") == "points"
        target = "points" if is_top else FIELD_OF.get(key)
        # A table fills the fields that a criterion lacks with null.
        if value is None:
            continue
        if target in ("note", "meta"):
            fields["meta"] = {
                **fields.get("meta", {}),
                **(value if target == "meta" else {key: value}),
            }
        elif target is None or target in fields:
            matches = difflib.get_close_matches(key, FIELD_OF, n=1)
            near = matches[0] if matches else "note"
            raise DataError(
                f"nothing reads the field {key!r} of a criterion, or another field means the same",
                fix=f"rename it, for example load(..., fields={{{key!r}: {near!r}}}); "
                f"a criterion has {', '.join(Criterion.__struct_fields__)}, note",
            )
        else:
            fields[target] = value
    return fields


def criteria(
    items: Any, name: str, prefix: str = "c", sign: float = 1.0
) -> list[Criterion]:
    """The criteria of the list `name`; `prefix` with their number is the id of those without one."""
    refuse(
        not isinstance(items, list),
        f"the field {name!r} is no list",
        fix='write ["text", ...] or [{"text": ...}]',
    )
    out = []
    for n, item in enumerate(items, 1):
        try:
            out.append(criterion(item, f"{prefix}{n}", sign))
        except DataError as e:
            raise e.at(f"{name} {n}") from None
    return out


def chat(turns: Any) -> tuple[dict[str, Any], str | None]:
    """(fields of a task, the assistant's last turn) of a list of {role, content}, both texts."""
    # Loaders of Parquet files add fields such as tool_calls: null to each turn.
    talk = [{k: v for k, v in turn.items() if v is not None} for turn in turns]
    for n, turn in enumerate(talk, 1):
        is_text = all(isinstance(x, str) for x in turn.values())
        refuse(
            turn.keys() != {"role", "content"} or not is_text,
            f"turn {n} of the chat is not a role and a content, both texts",
            fix='write {"role": "user", "content": "..."}; nothing reads other fields of a turn',
        )
    has_system = talk and talk[0]["role"] == "system"
    fields: dict[str, Any] = (
        {"system": talk.pop(0)["content"]} if has_system else {}
    )
    has_answer = talk and talk[-1]["role"] == "assistant"
    answer = talk.pop()["content"] if has_answer else None
    refuse(
        not talk or talk[-1]["role"] != "user",
        "the chat ends neither with the user nor with an answer to the user",
    )
    fields |= {"history": talk[:-1], "prompt": talk[-1]["content"]}
    return fields, answer


def question(row: Row, *names: str) -> dict[str, Any]:
    """The fields of a task that hold the question: of a text, a chat, or an instruction layout."""
    value = row.need(*(names or QUESTION))
    if isinstance(value, list):
        fields, text = chat(value)
        refuse(
            text is not None,
            "the chat of a prompt ends with an answer",
            fix="end it with the user",
        )
        return fields
    # BioRLHF's prompts carry the layout of its SFT texts, up to the empty response.
    layout = LAYOUT.fullmatch(value) if isinstance(value, str) else None
    if layout is None or layout[2].strip():
        return {"prompt": value}
    row.extra["layout"] = value
    return {"prompt": layout[1].strip()}


def finish(row: Row, made: Iterable[Criterion], fields: dict[str, Any]) -> None:
    """Make the task of a row, with the fields that all forms share; what is left becomes meta."""
    name = row.id("task_id") or row.id("id") or row.id("prompt_id")
    for key in ("group", "split", "system"):
        fields[key] = fields.get(key) or row.take(key)
    fields["kind"] = fields.get("kind") or row.take("kind", "category")
    for key, kind in (("truth", dict), ("sources", dict), ("history", list)):
        fields[key] = fields.get(key) or row.json(key, kind=kind)
    fields["tags"] = row.json("tags", "example_tags", kind=list)
    meta = row.take("meta") if isinstance(row.get("meta"), dict) else {}
    if name is None:
        # Made from the content, so that it is the same each time.
        name = "t-" + fingerprint(row.data)[:12]
    # Unread fields stay with the task: a lint or a user may want them later.
    meta = {**meta, **row.extra, **row}
    fields |= {"id": name, "criteria": list(made), "meta": meta}
    row.task = from_json(fields, Task, where="")


def answer(row: Row, name: str, text: Any, **more: Any) -> Response:
    """Add an answer to the records of a row. more : fields of a Response; task_id where the row has no task."""
    fields = {"id": name, "text": text, "source": name, **more}
    fields |= {"task_id": row.task.id} if row.task else {}
    response = from_json(fields, Response, where=f"answer {name!r}")
    row.records.append(response)
    return response


def label(
    row: Row,
    ids: tuple[str, ...],
    value: Any,
    criterion: Criterion | None = None,
    **meta: Any,
) -> None:
    """Add the verdicts of a label to the records: one, or one for each rater. A blank label is none.

    value : a label, or rater (None where there is none) -> label. criterion : the task's own where it is absent.
    """
    if row.task:
        criterion = next((c for c in row.task.criteria if c.id == ids[2]), None)
        if criterion is None:
            raise DataError(
                f"there is a label on {ids[2]!r}, which is no criterion of its task"
            )
    by_rater = value if isinstance(value, dict) else {None: value}
    for rater, one in by_rater.items():
        if not is_blank(one):
            judge = f"human:{rater}" if rater else "human"
            verdict = verdict_of(ids, one, criterion, judge=judge)
            verdict.meta.update(meta)
            row.records.append(verdict)
