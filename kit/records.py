"""The records that everything passes on: task, criterion, response, verdict, grade, run.

Frozen, typed, JSON in and out. This module knows nothing else in the kit but its errors.
Unknown is a status of its own, never 0 and never False.
"""

from __future__ import annotations

import hashlib
import json
import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import MISSING, Field, dataclass, field, fields, is_dataclass, replace
from typing import Any

from .errors import DataError, at

PAID = ("cost", "tokens_in", "tokens_out")
STATUSES = ("met", "unmet", "level", "unknown")
WRITTEN = ("weight", "required")  # of a criterion, which a file may leave out
SCALES = ("binary", "ordinal", "points")
# what tables write into an empty cell
NOTHING = frozenset(("nan", "none", "null", "n/a", "#n/a", "<na>", "na", "-", "–", "--"))
NO_ANSWER = NOTHING | {  # and words of people and judges that say neither yes nor no
    "",
    "not applicable",
    "unknown",
    "unsure",
    "skip",
    "skipped",
    "abstain",
    "?",
    "⚪",
}
# Why a verdict is unknown. "missing": the reply left this criterion out (or named it twice).
# "budget": a cap stopped the call. "error": a check's own code failed.
FAILURES = (
    "transport",
    "parse",
    "refusal",
    "abstain",
    "contradiction",
    "missing",
    "budget",
    "error",
)


def is_number(value: Any) -> bool:
    """True for a whole number or a float; False for a bool and all else.

    >>> is_number(1.5), is_number(True), is_number("1")
    (True, False, False)
    """
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def canonical(value: Any) -> str:
    """JSON text that is equal for equal values: sorted keys, no spaces, NaN refused.

    >>> canonical({"b": 1, "a": [True, None]})
    '{"a":[true,null],"b":1}'
    """
    return json.dumps(
        value, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False
    )


def fingerprint(value: Any) -> str:
    """First 32 hex digits of the sha256 of the canonical JSON of `value`.

    >>> fingerprint({"b": 1, "a": 2}) == fingerprint({"a": 2, "b": 1})
    True
    """
    return hashlib.sha256(canonical(value).encode("utf-8", "surrogatepass")).hexdigest()[:32]


@dataclass(frozen=True, kw_only=True)
class Criterion:
    """One thing that an answer is judged on.

    weight : signed importance; a negative weight marks something that the answer must not do.
        Any finite number; 0 means "recorded, not scored".
    scale : "binary" (met / unmet), "ordinal" (one of `levels`, worst first), "points"
        (0..`points`).
    check : a check by code, `{"name": ..., **arguments}` (see kit.checks); None = judged by a
        model.
    required : a must-have; the composer may gate on it.
    parent : id of the parent criterion in a tree; leaves are graded, roots computed.
    written : which of `weight` and `required` its file wrote, be it at their default: another file
        does not fill these in. No content: neither compared nor saved.

    >>> Criterion(id="c1", text="Names the river.").polarity
    'positive'
    """

    id: str
    text: str
    weight: float = 1.0
    scale: str = "binary"
    levels: tuple[str, ...] = ()
    points: float | None = None
    check: Mapping[str, Any] | None = None
    required: bool = False
    parent: str | None = None
    title: str | None = None
    tags: tuple[str, ...] = ()
    meta: Mapping[str, Any] = field(default_factory=dict)
    written: tuple[str, ...] = field(default=(), compare=False, repr=False)

    def __post_init__(self) -> None:
        if not is_number(self.weight) or not math.isfinite(self.weight):
            raise DataError(
                f"weight is {self.weight!r}, not a finite number",
                where=f"criterion {self.id!r}, field weight",
            )
        DataError.other("scale", self.scale, SCALES, f"criterion {self.id!r}, field scale")
        if self.scale == "ordinal" and len(self.levels) < 2:
            raise DataError(
                "an ordinal criterion needs at least two levels",
                where=f"criterion {self.id!r}, field levels",
            )

    @property
    def polarity(self) -> str:
        """ "positive" (weight >= 0) or "negative" (weight < 0)."""
        return "negative" if self.weight < 0 else "positive"

    @property
    def by_code(self) -> bool:
        """True when a check by code decides this criterion."""
        return self.check is not None


HELD = re.compile(  # a word of a split: "test", "valset", "testA"
    r"(?:(?:held|hold)(?:out)?|(?:dev)?test(?:s|ing)?|val(?:id(?:at(?:e|ion))?)?|dev(?:elopment)?"
    r"|eval(?:uat(?:e|ion))?|unseen)(?:set|data|split|mini|[a-c])?"
)


HELD_TOO = re.compile(  # the same in other languages, and "not for training"
    r"测试|測試|验证|驗證|评估|テスト|評価|検証|테스트|시험|평가|검증|ทดสอบ|\bтест|провер|\bprueba|\bvalida[cç]i|\bprüf"
    r"|\b(?:no|not|non|never|without|exclude[ds]?)\b\W*(?:\w+\W+)?train"
)


def is_held_out(split: Any) -> bool:
    """Whether rows of this split are never trained on: one of its words says so, and none "train".

    >>> is_held_out("Held-out"), is_held_out("testset"), is_held_out("test[:10%]")
    (True, True, True)
    >>> is_held_out("train_sft"), is_held_out(None)
    (False, False)
    """
    said = str(split).casefold()
    if HELD_TOO.search(said):
        return True
    words = re.findall("[a-z]+", said)
    return "train" not in words and any(map(HELD.fullmatch, words))


AFTER = "turns_after_prompt"  # in the meta of a task


def transcript(turns: Iterable[Mapping[str, str]]) -> str:
    """A chat as one text, each turn below its role."""
    return "\n\n".join(f"[{t['role']}]\n{t['content']}" for t in turns)


@dataclass(frozen=True, kw_only=True)
class Task:
    """A prompt with its rubric, and what the rewards may need beside it.

    prompt : the last thing that was asked; an answer answers it.
    history : the turns before the prompt, oldest first, each {"role", "content"}; () for one turn.
    Turns behind it that an answer goes on from (a tool's output) stand in meta[AFTER].
    truth : facts, numbers, directed claims, expected answer ... for verifiers.
    sources : snippets of tool output that an answer may cite, snippet id -> text.
    group : hold-out and clustering group (a tissue, a topic); None = the task itself.

    >>> Task(id="t", prompt="And in winter?", history=({"role": "user", "content": "Hot?"},)).asked
    '[user]\\nHot?\\n\\n[user]\\nAnd in winter?'
    """

    id: str
    prompt: str
    criteria: tuple[Criterion, ...] = ()
    truth: Mapping[str, Any] = field(default_factory=dict)
    sources: Mapping[str, str] = field(default_factory=dict)
    system: str | None = None
    group: str | None = None
    split: str | None = None
    kind: str | None = None
    tags: tuple[str, ...] = ()
    meta: Mapping[str, Any] = field(default_factory=dict)
    history: tuple[Mapping[str, str], ...] = ()

    def __post_init__(self) -> None:
        for turn in self.turns:
            if not isinstance(turn, Mapping) or not all(
                isinstance(turn.get(k), str) for k in ("role", "content")
            ):
                raise DataError(
                    "a turn needs role and content as text",
                    where=f"task {self.id!r}, field history",
                )
        ids = [c.id for c in self.criteria]
        if len(set(ids)) != len(ids):
            twice = sorted({i for i in ids if ids.count(i) > 1})
            raise DataError(
                f"criterion ids are not unique: {twice[:5]}",
                where=f"task {self.id!r}, field criteria",
                fix="give every criterion of a task its own id",
            )

    @property
    def turns(self) -> tuple[Mapping[str, str], ...]:
        """The chat that an answer goes on from: history, prompt, and the turns behind it."""
        after = self.meta.get(AFTER, ())
        return (*self.history, {"role": "user", "content": self.prompt}, *after)

    @property
    def asked(self) -> str:
        """What an answer answers, as one text: the prompt, among its other turns where it has
        some.
        """
        return self.prompt if len(self.turns) == 1 else transcript(self.turns)

    @property
    def held_out(self) -> bool:
        """True where `split` says that the task is not trained on, in any usual spelling."""
        return is_held_out(self.split)

    def criterion(self, criterion_id: str) -> Criterion:
        """The criterion with this id; KeyError when absent."""
        for c in self.criteria:
            if c.id == criterion_id:
                return c
        raise KeyError(criterion_id)


@dataclass(frozen=True, kw_only=True)
class Response:
    """An answer to a task. `source` names who wrote it (a model, a person, a trivial policy)."""

    task_id: str
    id: str
    text: str
    source: str | None = None
    truncated: bool = False
    confidence: float | None = None
    meta: Mapping[str, Any] = field(default_factory=dict)

    @property
    def ids(self) -> tuple[str, str]:
        """(task_id, id)."""
        return self.task_id, self.id


@dataclass(frozen=True, kw_only=True)
class Verdict:
    """What one judge (or code, or a human) says of one criterion of one response.

    status : "met", "unmet", "level" (then `value` says which, in [0, 1]) or "unknown" (then
        `failure` says why).
    p : P(met) in [0, 1], or None where no probability was given.
    value : 1.0 met, 0.0 unmet, the level's position in [0, 1], None when unknown.
    judge : name of who decided ("code", "human:r1", "gpt-4o/bare", "replay:...").
    key : fingerprint of everything that produced it; the ledger's key.

    >>> Verdict(task_id="t", response_id="r", criterion_id="c", status="met").value
    1.0
    >>> ids = dict(task_id="t", response_id="r", criterion_id="c")
    >>> Verdict(**ids, status="unknown", failure="parse").value is None
    True
    """

    task_id: str
    response_id: str
    criterion_id: str
    status: str
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
    meta: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        where = f"verdict on {self.task_id}/{self.response_id}/{self.criterion_id}"
        DataError.other("status", self.status, STATUSES, where)
        if self.status == "unknown" and self.failure not in FAILURES:
            raise DataError(
                f"an unknown verdict needs a failure kind, got {self.failure!r}",
                where=where,
                fix=f"use one of {FAILURES}",
            )
        if self.status != "level":
            object.__setattr__(self, "value", {"met": 1.0, "unmet": 0.0}.get(self.status))
        elif self.value is None or not 0.0 <= self.value <= 1.0:
            raise DataError(
                f"a level verdict needs a value in [0, 1], got {self.value!r}", where=where
            )
        if self.p is not None and not 0.0 <= self.p <= 1.0:
            raise DataError(f"p is {self.p!r}, not in [0, 1]", where=where)

    @property
    def ids(self) -> tuple[str, str, str]:
        """(task_id, response_id, criterion_id): what it is on."""
        return self.task_id, self.response_id, self.criterion_id

    @property
    def known(self) -> bool:
        """False when the status is "unknown"."""
        return self.status != "unknown"


@dataclass(frozen=True, kw_only=True)
class Part:
    """What one component says of one response: a score, an interval, or "does not apply".

    low, high : the score's interval; equal when everything is known. Both inside `range` when the
        part applies.
    applies : False = this component says nothing about this task (decided by the task alone, never
        by the answer).
    details : what the score was made from, for logs and tables.

    >>> Part(name="factual", low=.5, high=.5).value
    0.5
    >>> Part.absent("factual").value is None
    True
    """

    name: str
    low: float = 0.0
    high: float = 0.0
    applies: bool = True
    range: tuple[float, float] = (0.0, 1.0)
    details: Mapping[str, Any] = field(default_factory=dict)

    @classmethod
    def known(cls, name: str, score: float, **details: Any) -> Part:
        """A part whose score is certain."""
        return cls(name=name, low=float(score), high=float(score), details=details)

    @classmethod
    def absent(cls, name: str, **details: Any) -> Part:
        """A part that does not apply to this task."""
        return cls(name=name, applies=False, details=details)

    @property
    def value(self) -> float | None:
        """The score, or None when it does not apply or is not known."""
        return self.low if self.applies and self.low == self.high else None


@dataclass(frozen=True, kw_only=True)
class Grade:
    """The score of one response: a number, or an interval where verdicts are unknown.

    score : None when the interval [score_low, score_high] is too wide to pay a reward.
    usage : {"calls", "tokens_in", "tokens_out"}; cost in US dollars.
    """

    task_id: str
    response_id: str
    score: float | None
    score_low: float
    score_high: float
    verdicts: tuple[Verdict, ...] = ()
    usage: Mapping[str, int] = field(default_factory=dict)
    cost: float = 0.0
    parts: Mapping[str, float | None] = field(default_factory=dict)
    meta: Mapping[str, Any] = field(default_factory=dict)

    @property
    def ids(self) -> tuple[str, str]:
        """(task_id, response_id)."""
        return self.task_id, self.response_id


@dataclass(frozen=True, kw_only=True)
class Run:
    """One execution of a notebook: what went in, what came out."""

    id: str
    notebook: str
    profile: str
    seed: int
    params: Mapping[str, Any] = field(default_factory=dict)
    metrics: Mapping[str, Any] = field(default_factory=dict)
    versions: Mapping[str, str] = field(default_factory=dict)
    status: str = "done"
    started: str | None = None
    seconds: float | None = None
    commit: str | None = None
    cost: float = 0.0
    meta: Mapping[str, Any] = field(default_factory=dict)


def to_json(record: Any) -> dict[str, Any]:
    """A record as a plain dict; fields at their default are kept, so that readers need no defaults.

    >>> to_json(Criterion(id="c", text="t"))["weight"]
    1.0
    """
    return {f.name: _held(getattr(record, f.name)) for f in content(type(record))}


def content(cls: type) -> tuple[Field, ...]:
    """The fields of a record that say what it is: those that are compared and saved."""
    return tuple(f for f in fields(cls) if f.compare)


def _held(value: Any) -> Any:
    """A field's value: records in a tuple as dicts, a mapping as a dict, others as they are."""
    if isinstance(value, tuple):
        return [to_json(x) if is_dataclass(x) else x for x in value]
    return dict(value) if isinstance(value, Mapping) else value


def _build(cls: type, row: Mapping[str, Any], where: str) -> Any:
    if not isinstance(row, Mapping):
        raise DataError(f"expected an object, got {type(row).__name__}", where=where)
    known = {f.name: f for f in content(cls)}
    extra = {k: v for k, v in row.items() if k not in known}
    data = {k: v for k, v in row.items() if k in known}
    for f in known.values():
        needed = f.default is MISSING and f.default_factory is MISSING
        if needed and f.name not in data:
            raise DataError(
                f"field {f.name!r} is missing",
                where=where,
                fix=f"add {f.name!r}; found {sorted(row)[:12]}",
            )
        if isinstance(data.get(f.name), list):
            data[f.name] = tuple(data[f.name])
    if extra:  # nothing is lost: fields that we do not know travel in meta
        data["meta"] = {**(data.get("meta") or {}), **extra}
    for name in ("id", "task_id", "response_id", "criterion_id", "text", "prompt"):
        if name in data and not isinstance(data[name], str):
            raise DataError(f"field {name!r} is {type(row[name]).__name__}, not text", where=where)
    with at(where):
        return cls(**data)


def criterion_from_json(row: Mapping[str, Any], *, where: str = "criterion") -> Criterion:
    """A Criterion from its JSON form; DataError names `where` and the field."""
    made = _build(Criterion, row, where)
    return replace(made, written=tuple(n for n in WRITTEN if row.get(n) is not None))


def task_from_json(row: Mapping[str, Any], *, where: str = "task") -> Task:
    """A Task from its JSON form; DataError names `where` and the field.

    >>> row = {"id": "t", "prompt": "p", "criteria": [{"id": "c", "text": "x"}]}
    >>> task_from_json(row).criteria[0].id
    'c'
    """
    return _build(Task, _nested(row, "criteria", criterion_from_json, f"{where}, criterion"), where)


def _nested(row: Any, name: str, made: Callable[..., Any], where: str) -> Any:
    """The row with the list of records that it holds read, each with its own place."""
    if not isinstance(row, Mapping) or not isinstance(row.get(name), list):
        return row
    return {**row, name: [made(x, where=f"{where} {i}") for i, x in enumerate(row[name], 1)]}


def response_from_json(row: Mapping[str, Any], *, where: str = "response") -> Response:
    """A Response from its JSON form; accepts `response` for `text` and `response_id` for `id`.

    A missing id becomes the fingerprint of the text, so equal answers share it.
    """
    if isinstance(row, Mapping):
        row = dict(row)
        if "text" not in row and "response" in row:
            row["text"] = row.pop("response")
        if "id" not in row:
            row["id"] = (
                row.pop("response_id", None)
                or "r-" + fingerprint([row.get("task_id"), row.get("text")])[:12]
            )
    return _build(Response, row, where)


def verdict_from_json(row: Mapping[str, Any], *, where: str = "verdict") -> Verdict:
    """A Verdict from its JSON form; DataError where its value contradicts its status."""
    v = _build(Verdict, row, where)
    said = row.get("value")
    if said is not None and said != v.value:
        raise DataError(
            f"status is {v.status!r}, value is {said!r}",
            where=where,
            fix="drop the value, or mend the status",
        )
    return v


def grade_from_json(row: Mapping[str, Any], *, where: str = "grade") -> Grade:
    """A Grade from its JSON form."""
    return _build(Grade, _nested(row, "verdicts", verdict_from_json, f"{where}, verdict"), where)


def run_from_json(row: Mapping[str, Any], *, where: str = "run") -> Run:
    """A Run from its JSON form."""
    return _build(Run, row, where)


def unknown(
    task_id: str, response_id: str, criterion_id: str, failure: str, **more: Any
) -> Verdict:
    """An unknown verdict with its cause.

    >>> unknown("t", "r", "c", "transport").known
    False
    """
    return Verdict(
        task_id=task_id,
        response_id=response_id,
        criterion_id=criterion_id,
        status="unknown",
        failure=failure,
        **more,
    )


def grouped(pairs: Iterable[tuple[Any, Any]]) -> dict[Any, list[Any]]:
    """The values of (key, value) pairs by their key, keys and values in the order of the pairs.

    >>> grouped([("a", 1), ("b", 2), ("a", 3)])
    {'a': [1, 3], 'b': [2]}
    """
    out: dict[Any, list[Any]] = {}
    for key, value in pairs:
        out.setdefault(key, []).append(value)
    return out


def paid(v: Verdict, what: str = "cost") -> float:
    """What a verdict took when it was asked, also where a ledger had it: one of PAID, US dollars or
    tokens.
    """
    return v.meta.get("paid", {}).get(what, getattr(v, what))


def calls_of(v: Verdict) -> list[str]:
    """Ids of the calls behind a verdict: several where it was asked again, or of a panel."""
    return v.meta.get("calls") or ([v.meta["call"]] if "call" in v.meta else [])


def leaves(criteria: Sequence[Criterion]) -> tuple[Criterion, ...]:
    """The criteria that somebody must judge: those that are nobody's parent.

    >>> leaves([Criterion(id="a", text=""), Criterion(id="b", text="", parent="a")])[0].id
    'b'
    """
    parents = {c.parent for c in criteria}
    return tuple(c for c in criteria if c.id not in parents)


def by_criterion(verdicts: Iterable[Verdict]) -> dict[str, Verdict]:
    """Verdicts of one response by criterion id; two that disagree become one contradiction."""
    out: dict[str, Verdict] = {}
    for v in verdicts:
        old = out.get(v.criterion_id)
        if old is not None and (old.status, old.value) != (v.status, v.value):
            v = unknown(*v.ids, "contradiction", judge=v.judge)
        out[v.criterion_id] = v
    return out
