"""A row while it is read: fields are taken out of it one by one, and what is left goes to meta."""

import difflib
import functools
import re
from collections.abc import Collection, Mapping, Sequence
from itertools import filterfalse
from typing import Any, TypeVar

import msgspec

from ..errors import DataError
from ..records import (
    Criterion,
    Finding,
    Response,
    Task,
    Verdict,
    fingerprint,
    from_json,
    is_blank,
    verdict_of,
)
from ..system.texts import parse_json
from .files import Fields

Container = TypeVar("Container", list[Any], dict[str, Any])

# id, qid, question_id, questionId
ID = re.compile(r"(?i:(?:.*_)?[a-z]?id)|[a-z]+I[dD]")
# The layout of instruction texts: an introduction of one line, the instruction, the answer, the end of the text.
LAYOUT = re.compile(
    r"\s*(?:Below is an instruction[^\n]*\n\s*)?### Instruction:\n(.*?)\n+### Response:\n?(.*?)(?:<\|\w+\|>|</s>)?\s*",
    re.S,
)
QUESTION = ("prompt", "messages", "question", "query", "instruction")
# A name that is so like one of ours is a slip. Names of ids and numbered names are alike without meaning the same.
NEAR = 0.8
# What the ids of others begin with -> our id: `qid`, `question_id`, `ID`. A letter that could be two words is not here.
ID_OF_WORD = {
    "": "id",
    **dict.fromkeys(("q", "question", "query"), "task_id"),
    **dict.fromkeys(("t", "task", "prompt", "problem", "example"), "task_id"),
    **dict.fromkeys(("a", "answer", "response", "completion"), "response_id"),
    **dict.fromkeys(("c", "criterion", "rubric"), "criterion_id"),
}
# Our field -> what others call it. Elsewhere these names mean something else, so they are renamed where it lacks only.
OTHER_NAMES = {
    "response": ("text", "answer", "completion", "output"),
    "criterion": ("text", "description", "requirement"),
    "label": ("grade", "rating", "verdict"),
    # Of a criterion.
    "id": ("uid", "rid"),
}

# A field of a criterion in the forms of others -> our field. What changes no score is a note.
FIELD_OF = {
    **dict(
        zip(Criterion.__struct_fields__, Criterion.__struct_fields__, strict=True)
    ),
    **dict.fromkeys(
        ("criterion", "description", "rubric", "requirement", "question"), "text"
    ),
    # HealthBench's points may be negative; they say how much a criterion counts.
    "points": "weight",
    "criterion_id": "id",
    "name": "title",
    **dict.fromkeys(
        ("category", "kind", "note", "notes", "origin", "source"), "note"
    ),
    **dict.fromkeys(
        ("criterion_origin", "instruction_type", "instruction_necessity"), "note"
    ),
}


JSON_OF_TASK: dict[str, type[Any]] = {
    "truth": dict,
    "sources": dict,
    "history": list,
}


class Row(dict[str, Any]):
    """The fields of a row that nothing has read yet, and the records made of it. A null field counts as absent."""

    def __init__(self, data: Mapping[str, Any]):
        super().__init__((k, v) for k, v in data.items() if v is not None)
        self.data = data
        # For meta, but not among the unread fields.
        self.extra: Fields = {}
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

    def take(self, *names: str, default: object = None) -> Any:
        """The value of the first of these fields that is there, else the default."""
        for name in names:
            if name in self:
                return self.pop(name)
        return default

    def need(self, *names: str) -> Any:
        """The same; DataError names the fields, and those of the row, where none is there."""
        value = self.take(*names)
        if value is None:
            raise missing_field(names, self)
        return value

    def json(self, kind: type[Container], *names: str) -> Container:
        """A field that holds a list or an object, or its JSON text, as a table has it; empty where there is none."""
        value = self.take(*names, default=kind())
        if isinstance(value, str):
            value = parse_json(value, f"field {names[0]!r}")
        if not isinstance(value, kind):
            raise DataError(
                f"the field {names[0]!r} is a {type(value).__name__}, not a {kind.__name__}",
                fix='write a list as ["..."], an object as {"name": "..."}',
            )
        return value

    def id(self, *names: str) -> str | None:
        """The first of these ids as a text; None where there is none."""
        value = self.take(*names)
        if value is None:
            return None
        # True is an int in Python, and not an id.
        if type(value) not in (str, int) or value == "":
            raise DataError(
                f"the id {' or '.join(map(repr, names))} is {value!r}",
                fix="write a text or whole number",
            )
        return str(value)

    def need_id(self, name: str) -> str:
        """The same; DataError where there is none."""
        return self.id(name) or str(self.need(name))

    def rest(self) -> Fields:
        """What no field of a record holds: a lint or a user may want it later."""
        meta = self.take("meta") if isinstance(self.get("meta"), dict) else {}
        return {**meta, **self.extra, **self}


def missing_field(wanted: Sequence[str], fields: Mapping[str, Any]) -> DataError:
    """The error for a missing field, with the renames that may be meant.

    fields : those that nothing has read yet.
    """
    fix = f"add {wanted[0]!r}"
    if fields:
        names = ", ".join(map(repr, list(fields)[:12]))
        fix += (
            f", or rename the field that holds it; those not read yet are {names}"
        )
    return DataError(
        f"there is no field {' or '.join(map(repr, wanted))}",
        fix=fix,
        renames=other_names(wanted[0], fields)
        | near_names(tuple(fields), tuple(wanted)),
    )


def other_names(our: str, names: Collection[str]) -> dict[str, str]:
    """Those of the names that others give to this field of ours -> our name."""
    return dict.fromkeys(filter(names.__contains__, OTHER_NAMES.get(our, ())), our)


# The rows of a file have the same names.
@functools.lru_cache(maxsize=1000)
def near_names(
    names: tuple[str, ...], ours: Collection[str], *, cutoff: float = NEAR
) -> dict[str, str]:
    """Names of others -> the one of ours that each means: but for a slip or capital letters, or an id.

    An id that could be another's, or is a model's, is left out. Whoever prints a rename tries it first.

    >>> near_names(("wieght", "qid", "answer_id", "cid", "rid", "model_id"), ("weight",))
    {'wieght': 'weight', 'qid': 'task_id', 'answer_id': 'response_id', 'cid': 'criterion_id'}
    """
    out = {}
    for name in filterfalse(ours.__contains__, names):
        word, words = name.lower(), dict(zip(ours, ours, strict=True))
        if ID.fullmatch(name):
            word, words = word.removesuffix("id").rstrip("_"), ID_OF_WORD
        for near in difflib.get_close_matches(word, words, n=1, cutoff=cutoff):
            if words[near] not in names and not re.search(r"\d", name):
                out[name] = words[near]
    return out


def rename_fields(data: Mapping[str, Any], ours: Mapping[str, str]) -> Fields:
    """The fields under our names. Those that are called "note" there stay in meta under their own."""
    out: Fields = {}
    notes: Fields = {}
    for key, value in data.items():
        name = ours.get(key, key)
        # Several fields may be notes.
        if name == "note" and key in ours:
            notes[key] = value
        elif name in out:
            raise DataError(
                f"the field {name!r} is there twice, once as {key!r}",
                fix="keep one of them, or rename it to 'note'",
            )
        else:
            out[name] = value
    if notes:
        out["meta"] = {**notes, **(out.get("meta") or {})}
    return out


def make_criterion(item: object, name: str, sign: float = 1.0) -> Criterion:
    """A criterion out of a text or an object; DataError for a field that nothing reads.

    name : its id where it has none. sign : -1 in a list of negative rubrics, whose weights are sizes.
    """
    if isinstance(item, str):
        item = {"text": item}
    if not isinstance(item, dict):
        raise DataError(
            "the criterion is not a text",
            fix='write "text" or {"text": ..., "weight": 1}',
        )
    fields: Fields = {"id": name, "weight": 1.0, **_our_fields(item)}
    # Ids are texts, so that 7 in one file joins "7" in another.
    if type(fields["id"]) is int:
        fields["id"] = str(fields["id"])
    if fields.get("levels"):
        fields.setdefault("scale", "ordinal")
    made = from_json(fields, Criterion, where="")
    if not made.text.strip():
        raise DataError("the text of the criterion is blank", fix="write a text")
    # Published sets write a size in a negative list; -1 there could mean either sign.
    if sign < 0 and made.weight < 0:
        raise DataError(
            f"the weight of a negative rubric is {made.weight:g}",
            fix="write its size: the list says the sign",
        )
    return msgspec.structs.replace(made, weight=sign * made.weight)


def _our_fields(item: Mapping[str, Any]) -> Fields:
    """The fields of a criterion under our names. One that nothing reads could change a score: an error."""
    ours = FIELD_OF
    # HealthBench's points are weights; ours are the top of a scale.
    if item.get("scale") == "points":
        ours = {**FIELD_OF, "points": "points"}
    # A table fills the fields that a criterion lacks with null.
    fields = rename_fields({k: v for k, v in item.items() if v is not None}, ours)
    unread = tuple(filterfalse(Criterion.__struct_fields__.__contains__, fields))
    if not unread and "text" in fields:
        return fields
    renames = other_names("id", unread) | near_names(unread, tuple(FIELD_OF))
    # Where the text is missing, the only text that is there is it. Beside a title, either could be.
    if fields.keys().isdisjoint(("text", "title")):
        texts = [
            k for k in unread if isinstance(item[k], str) and not ID.fullmatch(k)
        ]
        renames = dict.fromkeys(texts, "text") | renames
    raise DataError(
        f"nothing reads these fields of a criterion: {', '.join(map(repr, unread))}"
        if unread
        else "a criterion has no text",
        fix="rename what is judged to 'text', what says how much it counts to 'weight', and what changes "
        f"no score to 'note'; a criterion has {', '.join(Criterion.__struct_fields__)}",
        renames=renames,
    )


def make_criteria(
    row: Row, items: list[Any], name: str, prefix: str = "c", sign: float = 1.0
) -> list[Criterion]:
    """The criteria of the list `name`; `prefix` with their number is the id of those without one."""
    out = []
    for n, item in enumerate(items, 1):
        try:
            out.append(make_criterion(item, f"{prefix}{n}", sign))
        except DataError as e:
            raise e.at(f"{name} {n}") from None
        if isinstance(item, str) or item.keys().isdisjoint(("id", "criterion_id")):
            row.note(
                "automatic-ids",
                f"criteria without an id are called {prefix}1, {prefix}2, ... by their place in {name!r}",
            )
    return out


def read_chat(turns: list[Any]) -> tuple[Fields, str | None]:
    """(fields of a task, the assistant's last turn) of a list of {role, content}, both texts."""
    talk = []
    for n, turn in enumerate(turns, 1):
        # Loaders of Parquet files add fields such as tool_calls: null. Fields that were renamed to "note" are in meta.
        named = turn.items() if isinstance(turn, dict) else ()
        fields = {k: v for k, v in named if v is not None and k != "meta"}
        kinds = set(map(type, fields.values()))
        if fields.keys() != {"role", "content"} or kinds != {str}:
            raise DataError(
                f"turn {n} of the chat, a {type(turn).__name__}, is not a role and a content, both texts; "
                f"its fields are {', '.join(map(repr, fields)) or 'none'}",
                fix='write {"role": "user", "content": "..."}, and rename other fields to "note"',
            )
        talk.append(fields)
    is_led = talk and talk[0]["role"] == "system"
    system = talk.pop(0)["content"] if is_led else None
    is_answered = talk and talk[-1]["role"] == "assistant"
    answer = talk.pop()["content"] if is_answered else None
    if not talk or talk[-1]["role"] != "user":
        raise DataError(
            "the chat ends neither with the user nor with an answer to the user",
            fix="end it with a turn of the role 'user', or with one of the role 'assistant' behind it",
        )
    prompt = talk.pop()["content"]
    return {"system": system, "history": talk, "prompt": prompt}, answer


def read_question(row: Row) -> Fields:
    """The fields of a task that hold the question: of a text, a chat, an instruction with its input, or a layout."""
    value = row.need(*QUESTION)
    if isinstance(value, list):
        fields, text = read_chat(value)
        if text is not None:
            raise DataError(
                "the chat of a prompt ends with an answer",
                fix="end it with the user",
            )
        return fields
    if row.data.get("instruction") is value:
        # Alpaca's input and Dolly's context are what the instruction speaks of.
        more = row.take("input", "context")
        if not is_blank(more):
            value = f"{value}\n\n{more}"
    # BioRLHF's prompts carry the layout of its SFT texts, up to the empty response.
    layout = LAYOUT.fullmatch(value) if isinstance(value, str) else None
    if layout is None or layout[2].strip():
        return {"prompt": value}
    row.extra["layout"] = value
    return {"prompt": instruction_of(layout)}


def instruction_of(layout: re.Match[str]) -> str:
    """The prompt of an instruction layout: the instruction, and its input without the heading."""
    return layout[1].strip().replace("### Input:\n", "", 1)


def make_task(row: Row, made: list[Criterion], fields: Fields) -> None:
    """Make the task of a row, with the fields that all forms share; what is left becomes meta."""
    name = row.id("task_id", "id", "prompt_id")
    for key, *others in (
        ("group",),
        ("split",),
        ("system",),
        ("kind", "category", "type"),
    ):
        fields[key] = fields.get(key) or row.take(key, *others)
    for key, kind in JSON_OF_TASK.items():
        fields[key] = fields.get(key) or row.json(kind, key)
    if name is None:
        # Made from the content, so that it is the same each time.
        name = "t-" + fingerprint(row.data)[:12]
        if made:
            row.note(
                "automatic-ids",
                "a row without an id is called t-..., by its content; answers of other files need an id to join",
            )
    fields |= {
        "id": name,
        "criteria": made,
        "tags": row.json(list, "tags", "example_tags"),
        "meta": row.rest(),
    }
    row.task = from_json(fields, Task, where="")


def add_answer(row: Row, name: str | None, text: object, **more: Any) -> Response:
    """Add an answer to the records of a row. more : fields of a Response; task_id where the row has no task.

    name : its id; made of the content where it is None, so that it is the same each time.
    """
    task_id = row.task.id if row.task else more["task_id"]
    made = name or "r-" + fingerprint([task_id, text])[:12]
    fields = {"source": name, **more, "task_id": task_id, "id": made, "text": text}
    response: Response = from_json(fields, Response, where=f"answer {made!r}")
    row.records.append(response)
    return response


def add_label(
    row: Row,
    ids: tuple[str, str, str],
    value: object,
    criterion: Criterion | None = None,
    **meta: Any,
) -> None:
    """Add the verdicts of a label to the records: one, or one for each rater. A blank label is none.

    value : a label, or rater (None where there is none) -> label. criterion : the task's own where it is absent.
    """
    if row.task:
        criterion = next(c for c in row.task.criteria if c.id == ids[2])
    by_rater = value if isinstance(value, dict) else {None: value}
    for rater, one in by_rater.items():
        if not is_blank(one):
            verdict = verdict_of(
                ids, one, criterion, judge=f"human:{rater}" if rater else "human"
            )
            verdict.meta.update(meta)
            row.records.append(verdict)
