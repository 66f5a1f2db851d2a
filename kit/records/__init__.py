"""The records that all rooms share: Criterion, Task, Response, Verdict, ComponentScore, Grade, Run.

They are frozen and typed. `msgspec` reads and writes them as JSON and refuses an unknown field or a wrong type.
"unknown" is a status of its own: it is never 0 and never False.
"""

import hashlib
import re
from collections.abc import Iterable, Sequence
from typing import Annotated, Any, Literal, TypeVar

import msgspec

from ..errors import DataError

Kind = TypeVar("Kind")
# failure -> (what it means, what to do)
FAILURES = {
    "transport": (
        "the judge could not be reached",
        "check the endpoint, then run again",
    ),
    "parse": (
        "the reply was not in the requested form, twice",
        "read the reason first; then retry=True (--retry), or another model",
    ),
    "refusal": (
        "the model refused, or its provider filtered it",
        "use another model",
    ),
    "abstain": (
        "the judge cannot tell, or there is none",
        "name a judge (--judge), or make the criterion decidable",
    ),
    "contradiction": (
        "votes or verdicts disagree evenly",
        "add a judge to the panel",
    ),
    "missing": (
        "the reply left this criterion out, twice",
        "retry=True (--retry), or how='one' (--set how=one)",
    ),
    "budget": (
        "the run was stopped before this question",
        "raise the budget and run again",
    ),
    "error": (
        "the judge, its server or the check reported an error",
        "read the reason and the log",
    ),
}
# Names of held-out splits as published sets write them; another word is an error, so that a slip cannot
# put test rows into training.
HELD_OUT = ("heldout", "held-out", "test", "validation", "val", "dev", "eval")


class Record(
    msgspec.Struct,
    frozen=True,
    kw_only=True,
    forbid_unknown_fields=True,
    tag_field="record",
):
    """Base of all records: keyword arguments, no change after making, no unknown field."""


class Criterion(Record, frozen=True, kw_only=True, tag=False):
    """One thing that an answer is judged on.

    weight : signed importance; negative for what an answer must not do; 0 is recorded and not scored, but a
        `required` criterion gates with any weight.
    scale : "binary", "ordinal" (one of `levels`, worst first) or "points" (0 to `points`).
    check : a check by code, {"name": ..., **arguments}; None = judged by a model.
    required : a must-have; the composer may gate on it. parent : the criterion above it in a tree.
    """

    id: str
    text: str
    weight: float = 1.0
    scale: Literal["binary", "ordinal", "points"] = "binary"
    levels: tuple[str, ...] = ()
    points: float | None = None
    check: dict[str, Any] | None = None
    required: bool = False
    parent: str | None = None
    title: str | None = None
    tags: tuple[str, ...] = ()
    meta: dict[str, Any] = {}

    def __post_init__(self) -> None:
        where = f"criterion {self.id!r}"
        # A DataFrame has NaN and infinity: one such weight would make every score NaN.
        if not abs(self.weight) <= 1e9:
            raise DataError(
                f"the weight is {self.weight}",
                where=where,
                fix="write a number from -1e9 to 1e9",
            )
        is_ordinal, is_points = self.scale == "ordinal", self.scale == "points"
        has_levels, has_points = len(self.levels) > 1, self.points is not None
        if is_ordinal != has_levels or is_points != has_points:
            raise DataError(
                "the scale does not fit levels or points",
                where=where,
                fix="ordinal needs 2 levels or more, points its number",
            )

    @property
    def by_code(self) -> bool:
        """True when a check by code decides this criterion."""
        return self.check is not None

    @property
    def top(self) -> float:
        """The highest level or number of points; 1 where it is met or unmet."""
        # The worst level is 0, so n levels have n - 1 steps.
        return len(self.levels) - 1 if self.levels else self.points or 1.0


class Task(Record, frozen=True, kw_only=True, tag="task"):
    """A prompt with its rubric, and what rewards may need beside it.

    history : the turns before the prompt, each {"role", "content"}. truth : facts, claims, answers for verifiers.
    sources : snippets that an answer may cite, id -> text. group : what is held out as a whole (a tissue, a topic).
    """

    id: str
    prompt: str
    criteria: tuple[Criterion, ...] = ()
    truth: dict[str, Any] = {}
    sources: dict[str, str] = {}
    system: str | None = None
    history: tuple[dict[str, str], ...] = ()
    group: str | None = None
    split: str | None = None
    kind: str | None = None
    tags: tuple[str, ...] = ()
    meta: dict[str, Any] = {}

    def __post_init__(self) -> None:
        where = f"task {self.id!r}"
        if not self.prompt.strip():
            raise DataError(
                "the prompt is empty", where=where, fix="write a prompt"
            )
        # Verdicts find their criterion by its id; two of one id would share their verdicts.
        ids = [c.id for c in self.criteria]
        if twice := {i for i in ids if ids.count(i) > 1}:
            raise DataError(
                f"criterion ids are not unique: {sorted(twice)}",
                where=where,
                fix="give each criterion an id of its own",
            )
        if self.split not in (None, "train", "training", *HELD_OUT):
            raise DataError(
                f"the split is {self.split!r}",
                where=where,
                fix=f"write train or one of {', '.join(HELD_OUT)}",
            )

    @property
    def conversation(self) -> str:
        """The prompt as one text, with the turns before it."""
        # Most tasks have one turn, and its heading would only distract a judge.
        if not self.history:
            return self.prompt
        turns = [*self.history, {"role": "user", "content": self.prompt}]
        return "\n\n".join(f"[{t['role']}]\n{t['content']}" for t in turns)

    @property
    def held_out(self) -> bool:
        """True where the task is never trained on."""
        return self.split in HELD_OUT


class Response(Record, frozen=True, kw_only=True, tag="response"):
    """An answer to a task. source : who wrote it (a model, a person, a trivial policy)."""

    task_id: str
    id: str
    text: str
    source: str | None = None
    truncated: bool = False
    confidence: Annotated[float, msgspec.Meta(ge=0, le=1)] | None = None
    meta: dict[str, Any] = {}

    @property
    def ids(self) -> tuple[str, str]:
        """(task, answer)."""
        return self.task_id, self.id


class AnswerRecord(Record, frozen=True, kw_only=True):
    """Base of what is decided about an answer."""

    task_id: str
    response_id: str

    @property
    def answer_ids(self) -> tuple[str, str]:
        """(task, answer), as `Response.ids`."""
        return self.task_id, self.response_id


class Verdict(AnswerRecord, frozen=True, kw_only=True, tag="verdict"):
    """What a judge, code or a person says of one criterion of one answer.

    status : "met", "unmet", "level" (`value` says which, in [0, 1]) or "unknown" (`failure` says why).
    p : P(met), None where none was given. judge : who decided ("code", "human:ann", "gpt-4o"). key : the ledger's.
    """

    criterion_id: str
    status: Literal["met", "unmet", "level", "unknown"]
    p: float | None = None
    value: float | None = None
    reason: str | None = None
    failure: str | None = None
    judge: str = ""
    key: str | None = None
    tokens_in: int = 0
    tokens_out: int = 0
    cost: float = 0.0
    cached: bool = False
    meta: dict[str, Any] = {}

    def __post_init__(self) -> None:
        where = f"verdict on {' / '.join(self.ids)}"
        # met and unmet say their value; an unknown verdict has none, so nothing can count it as 0.
        value = {"met": 1.0, "unmet": 0.0, "level": self.value}.get(self.status)
        if self.value not in (None, value) or (
            self.status == "level" and value is None
        ):
            raise DataError(
                f"the status is {self.status!r}, the value {self.value}",
                where=where,
            )
        # Reports count failures by cause, so each unknown verdict needs one.
        if (self.status == "unknown") != (self.failure in FAILURES):
            raise DataError(
                f"the failure is {self.failure!r}",
                where=where,
                fix=f"an unknown verdict, and no other, has one of {tuple(FAILURES)}",
            )
        for name, x in (("value", value), ("p", self.p)):
            if x is not None and not 0 <= x <= 1:
                raise DataError(f"{name} is {x}, not in [0, 1]", where=where)
        # The record is frozen for users; here it is still in the making.
        msgspec.structs.force_setattr(self, "value", value)

    @property
    def ids(self) -> tuple[str, str, str]:
        """(task, answer, criterion)."""
        return self.task_id, self.response_id, self.criterion_id

    @property
    def is_known(self) -> bool:
        """False when the status is "unknown"."""
        return self.status != "unknown"


class ComponentScore(Record, frozen=True, kw_only=True, tag=False):
    """What one reward component says of one answer: a score in [low, high], or that it does not apply."""

    name: str
    low: float = 0.0
    high: float = 0.0
    applies: bool = True
    range: tuple[float, float] = (0.0, 1.0)
    details: dict[str, Any] = {}

    @property
    def value(self) -> float | None:
        """The score, None where it does not apply or is not known."""
        # An interval has no single value, even a narrow one: the composer decides what it pays.
        return self.low if self.applies and self.low == self.high else None


class Grade(AnswerRecord, frozen=True, kw_only=True, tag="grade"):
    """The score of one answer; None where [score_low, score_high] is too wide to pay a reward."""

    score: float | None
    score_low: float
    score_high: float
    verdicts: tuple[Verdict, ...] = ()
    usage: dict[str, int] = {}
    cost: float = 0.0
    parts: dict[str, float | None] = {}
    meta: dict[str, Any] = {}


class Run(Record, frozen=True, kw_only=True, tag="run"):
    """One execution of a notebook: what went in, what came out."""

    id: str
    notebook: str
    profile: str
    seed: int
    params: dict[str, Any] = {}
    metrics: dict[str, Any] = {}
    versions: dict[str, str] = {}
    status: str = "done"
    started: str | None = None
    seconds: float | None = None
    commit: str | None = None
    cost: float = 0.0
    meta: dict[str, Any] = {}


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


# One line of a JSONL file is `to_json(record)`; its field "record" says which kind it is.
to_json = msgspec.to_builtins


def from_json(row: object, kind: type[Kind], *, where: str) -> Kind:
    """A record out of its JSON form; DataError names the place and the field.

    >>> from_json({"id": "c", "text": "x", "wieght": 2}, Criterion, where="a.jsonl, line 1")
    Traceback (most recent call last):
    ...
    kit.errors.DataError: Object contains unknown field `wieght`
      where: a.jsonl, line 1
      to do: a record has the fields of kit.Task, kit.Criterion, kit.Response or kit.Verdict; `meta` holds yours
    """
    try:
        return msgspec.convert(row, kind)
    except msgspec.ValidationError as e:
        fix = "a record has the fields of kit.Task, kit.Criterion, kit.Response or kit.Verdict; `meta` holds yours"
        if "got" in str(e):
            fix = "a number has no quotation marks, a text has them"
        elif "Expected" in str(e):
            fix = "write a value in these bounds; 95 % is 0.95"
        raise DataError(str(e), where=where, fix=fix) from None
    # A record's own check knows its id; the caller knows the file and the row.
    except DataError as e:
        raise e.at(where) from None


def canonical(value: object) -> str:
    """JSON text that is equal for equal values."""
    # The order of keys differs between writers; a key of the ledger may not.
    return msgspec.json.encode(value, order="sorted").decode()


def fingerprint(value: object) -> str:
    """First 32 hex digits of the sha256 of the canonical JSON of `value`."""
    return hashlib.sha256(canonical(value).encode()).hexdigest()[:32]


def unknown(
    task_id: str, response_id: str, criterion_id: str, failure: str, **more: Any
) -> Verdict:
    """An unknown verdict with its cause."""
    return Verdict(
        task_id=task_id,
        response_id=response_id,
        criterion_id=criterion_id,
        status="unknown",
        failure=failure,
        **more,
    )


PLURALS = {"criterion": "criteria", "match": "matches", "info": "info"}


def count_of(n: int, noun: str) -> str:
    """A number with its noun in the singular or plural.

    >>> count_of(1, "cluster"), count_of(2, "cluster"), count_of(0, "criterion")
    ('1 cluster', '2 clusters', '0 criteria')
    """
    plural = PLURALS.get(noun, f"{noun}s")
    return f"{n} {noun if n == 1 else plural}"


def group(pairs: Iterable[tuple[Any, Any]]) -> dict[Any, list[Any]]:
    """The values of (key, value) pairs by their key, in the order of the pairs."""
    out: dict[Any, list[Any]] = {}
    for key, value in pairs:
        out.setdefault(key, []).append(value)
    return out


def leaves(criteria: Sequence[Criterion]) -> tuple[Criterion, ...]:
    """The criteria that somebody must judge: those that are nobody's parent."""
    parents = {c.parent for c in criteria}
    return tuple(c for c in criteria if c.id not in parents)


def by_criterion(verdicts: Iterable[Verdict]) -> dict[str, Verdict]:
    """Verdicts on one answer by criterion id; two that disagree become one contradiction."""
    out: dict[str, Verdict] = {}
    for v in verdicts:
        old = out.get(v.criterion_id)
        # Neither the first nor the last one is right by its place.
        if old is not None and (old.status, old.value) != (v.status, v.value):
            v = unknown(*v.ids, "contradiction", judge=v.judge)
        out[v.criterion_id] = v
    return out


def strip_thinking(text: str) -> str:
    """The answer without the thought in front of it; empty where the thought never ends.

    >>> strip_thinking("<think>is it 4?</think> It is 4.")
    'It is 4.'
    >>> strip_thinking("is it 4?\\n</think>\\n\\nIt is 4.")
    'It is 4.'
    """
    before, closing, after = text.partition("</think>")
    is_opened = before.lstrip().startswith("<think>")
    # The chat templates of some models write the opening tag, so that an answer has only the closing one.
    if closing and (is_opened or "<think>" not in before):
        return after.lstrip()
    return "" if is_opened else text


def text_identity(text: str) -> str:
    """A text in lower case with single spaces: prompts that are equal so count as one prompt.

    >>> text_identity("Name a  River.\\n")
    'name a river.'
    """
    return " ".join(text.lower().split())


# What people write about an answer: the label of a criterion, and how it becomes a verdict.
Reading = tuple[Literal["met", "unmet", "level", "unknown"], float | None]

# In lower case.
WORDS: dict[str, Reading] = {
    "met": ("met", None),
    "yes": ("met", None),
    "true": ("met", None),
    "unmet": ("unmet", None),
    "no": ("unmet", None),
    "false": ("unmet", None),
    "partly": ("level", 0.5),
    "partially": ("level", 0.5),
    "unknown": ("unknown", None),
}
NUMBERS: dict[str, Reading] = {"1": ("met", None), "0": ("unmet", None)}
# RLVR's annotators write a coloured circle and words of their own.
CIRCLES: dict[str, Reading] = {
    "🟢": ("met", None),
    "🟡": ("level", 0.5),
    "🔴": ("unmet", None),
}
ANY_CIRCLE = re.compile("[🔴🟠🟡🟢🔵🟣🟤⚫⚪]")
POINTS = re.compile(r"(\d+(?:\.\d+)?)/(\d+(?:\.\d+)?)")
FORMS = (
    "met, unmet, partly, unknown, yes, no, true, false, 1, 0, a circle (🟢 met, 🟡 partly, 🔴 unmet), "
    "a level's text, or points as 3/5"
)


def is_blank(label: object) -> bool:
    """True for a label that is not filled in."""
    return label is None or (isinstance(label, str) and not label.strip())


def read_label(label: object, criterion: Criterion | None = None) -> Reading | None:
    """(status, value in [0, 1] or None) of a label; None where the label has no documented form.

    criterion : needed for a level's text (of a criterion with `levels`) and for points such as "3/5" (of one with
        `points`). The numbers 1 and 0 are labels of a binary criterion only. Any words may follow a circle.

    >>> read_label("🟢 No issues"), read_label(True), read_label(0), read_label("perhaps")
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
        match = POINTS.fullmatch(text)
        if match and float(match[2]) == criterion.points >= float(match[1]):
            return "level", float(match[1]) / criterion.points
    if text in NUMBERS and (criterion is None or criterion.scale == "binary"):
        return NUMBERS[text]
    # Two circles could mean either.
    if len(ANY_CIRCLE.findall(text)) == 1:
        return CIRCLES.get(text[0])
    return WORDS.get(text.casefold())


def verdict_of(
    ids: tuple[str, str, str],
    label: object,
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
        status=status,
        value=value,
        judge=judge,
        failure="abstain" if status == "unknown" else None,
        meta={"label": label},
    )


def check_labels(
    tasks: Iterable[Task], labels: Iterable[Verdict], where: str = ""
) -> None:
    """DataError for a label of people on another scale than its criterion, or whose levels run in another order.

    A label has the levels or points of its own file in its meta. The criterion's own labels have none there.
    """
    criteria = {(t.id, c.id): c for t in tasks for c in t.criteria}
    for v in labels:
        criterion = criteria.get((v.task_id, v.criterion_id))
        if criterion is None or not v.judge.startswith("human"):
            continue
        name = " / ".join(v.ids)
        if v.status in ("met", "unmet") and criterion.scale != "binary":
            raise DataError(
                f"{name} is met or unmet, but its criterion has levels or points",
                where=where,
                fix="write a level's text or points as 3/5, with levels or points beside the label",
            )
        ours = list(criterion.levels) or criterion.points
        theirs = v.meta.get("levels") or v.meta.get("points")
        if ours and theirs and ours != theirs:
            raise DataError(
                f"the label {name} has the levels or points {theirs}, its criterion has {ours}",
                where=where,
                fix="write the same levels in the same order, worst first, or the same number of points",
            )
