"""What a judge is, what it is asked and what it gives: Judge, Question, Call, Forecast."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Protocol, runtime_checkable

from ..checks.text import THOUGHT, answered
from ..records import Criterion, Response, Task, Verdict, unknown

# Failures that say nothing of the answer and cost nothing: never stored as an answer, asked again
# by the next run.
PASSING = frozenset({"transport", "budget", "error"})
# How replies are read; raise it when some reply gives another verdict than before. Stored verdicts
# of an earlier reader are read again from their replies when they are looked up.
READER = 21


@runtime_checkable
class Judge(Protocol):
    """Anything that gives verdicts.

    `verdicts` returns exactly one Verdict per criterion, in that order; a fault of the judge is an
    unknown verdict with its failure kind, never an exception (exceptions: programming errors,
    BudgetError, JudgeDownError).
    Optional: `key(task, response, criterion) -> str`, the fingerprint of everything that shapes a
    verdict except the ids of task and response (a judge without it is never cached), or
    `keys(task, response, criteria) -> list[str]`, which is faster; `workers: int` (questions at
    once); `forecast(task, response, criteria) -> Forecast` (for estimates); `async close()`.
    A judge that pays for calls has `replies(question)`, an asynchronous iterator of
    (verdicts, Call): what one reply gave, ready to be recorded; and `parts(question)` where it
    asks one question in several calls at once.
    """

    name: str

    async def verdicts(
        self, task: Task, response: Response, criteria: Sequence[Criterion]
    ) -> list[Verdict]:
        """One verdict per criterion, in order."""
        ...


@dataclass(frozen=True, slots=True)
class Question:
    """What is asked of one answer: the criteria, in order, with their ledger keys.

    keys : as long as `criteria`; () for a judge that cannot be cached. whole : the answer with its
    thoughts, for those of the criteria that name their tags, where others do not.
    """

    task: Task
    response: Response
    criteria: Sequence[Criterion]
    keys: Sequence[str] = ()
    whole: Response | None = None

    def only(self, positions: Sequence[int]) -> Question:
        """The same for some of its criteria, by position."""
        if len(positions) == len(self.criteria):
            return self
        keys = [self.keys[i] for i in positions] if self.keys else ()
        criteria = [self.criteria[i] for i in positions]
        return Question(self.task, self.response, criteria, keys, self.whole)

    def shown(self, c: Criterion) -> Response:
        """The answer as a criterion is asked of it: with its thoughts where it names their tags."""
        return self.whole if self.whole is not None and THOUGHT.search(c.text) else self.response

    def apart(self) -> list[Question]:
        """The same as questions that each show one text: the answer, and that with its thoughts."""
        if self.whole is None:
            return [self]
        named = [bool(THOUGHT.search(c.text)) for c in self.criteria]
        plain = self.only([i for i, names in enumerate(named) if not names])
        whole = self.only([i for i, names in enumerate(named) if names])
        parts = replace(plain, whole=None), replace(whole, response=self.whole, whole=None)
        return [q for q in parts if q.criteria]

    def of(self, criteria: Sequence[Criterion]) -> Question:
        """The same for some of its criteria."""
        at = {c.id: i for i, c in enumerate(self.criteria)}
        return self.only([at[c.id] for c in criteria])

    def key(self, i: int) -> str | None:
        """The key of the criterion at position i; None where there is none."""
        return self.keys[i] if self.keys else None

    def unknown(self, i: int, failure: str, **more: Any) -> Verdict:
        """An unknown verdict on the criterion at position i."""
        c = self.criteria[i]
        return unknown(self.task.id, self.response.id, c.id, failure, key=self.key(i), **more)

    def unknowns(self, failure: str, **more: Any) -> list[Verdict]:
        """Unknown verdicts on all of its criteria."""
        return [self.unknown(i, failure, **more) for i in range(len(self.criteria))]

    def again(self, i: int, v: Verdict) -> Verdict:
        """A stored or shared verdict as this question's own.

        New ids, `cached`, nothing paid now (`meta["paid"]` has the price).
        """
        return readdress(v, self.task, self.response, self.criteria[i])


def question(judge: Any, task: Task, response: Response, criteria: Sequence[Criterion]) -> Question:
    """The question to this judge, with its keys, made once and handed down. Its answer is what a
    check by code reads: without thoughts, unless a criterion names their tags; of several criteria
    only those that do are asked of the whole."""
    said = answered(response.text)
    named = [c for c in criteria if said != response.text and THOUGHT.search(c.text)]
    plain = response if said == response.text else replace(response, text=said)
    if not named or len(named) == len(criteria):
        shown = response if named else plain
        return Question(task, shown, criteria, keys_of(judge, task, shown, criteria) or ())
    q = Question(task, plain, criteria, (), response)
    keys: dict[str, str] = {}
    for part in q.apart():
        found = keys_of(judge, task, part.response, part.criteria) or ()
        keys |= zip((c.id for c in part.criteria), found, strict=False)
    return replace(q, keys=[keys[c.id] for c in criteria] if keys else ())


def keys_of(
    judge: Any, task: Task, response: Response, criteria: Sequence[Criterion]
) -> list[str] | None:
    """The ledger keys of these questions, or None for a judge that cannot be cached."""
    if hasattr(judge, "keys"):
        return judge.keys(task, response, criteria)
    if hasattr(judge, "key"):
        return [judge.key(task, response, c) for c in criteria]
    return None


class Unkept:
    """A judge whose verdicts are neither looked up nor stored; its calls, which are paid, are."""

    def __init__(self, judge: Any):
        self._judge = judge

    def __getattr__(self, name: str) -> Any:
        if name in ("key", "keys"):
            raise AttributeError(name)
        return getattr(self._judge, name)


@dataclass(frozen=True, kw_only=True)
class Call:
    """One paid request and its raw reply, kept so that the verdicts can be parsed again.

    request : what was asked, as JSON text (no key, no header); reply : the raw text of the reply;
    seconds : wall time of the last attempt.
    """

    id: str
    judge: str
    model: str
    endpoint: str
    request: str = "{}"
    reply: str = ""
    status: str = "ok"
    tokens_in: int = 0
    tokens_out: int = 0
    tokens_cached: int = 0
    cost: float = 0.0
    seconds: float = 0.0
    created: float = 0.0
    meta: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class Forecast:
    """What a question is expected to cost: requests, tokens, US dollars (None: price unknown)."""

    calls: int = 0
    tokens_in: int = 0
    tokens_out: int = 0
    cost: float | None = 0.0

    def __str__(self) -> str:
        known = self.cost is not None
        money = f"${self.cost:.4f}" if known else "an unknown price (give --price IN,OUT)"
        tokens = f"about {self.tokens_in} tokens in, {self.tokens_out} out"
        return f"{self.calls} calls, {tokens}, {money}"

    def __add__(self, other: Forecast) -> Forecast:
        return Forecast(
            calls=self.calls + other.calls,
            tokens_in=self.tokens_in + other.tokens_in,
            tokens_out=self.tokens_out + other.tokens_out,
            cost=None if self.cost is None or other.cost is None else self.cost + other.cost,
        )


def readdress(v: Verdict, task: Task, response: Response, criterion: Criterion) -> Verdict:
    """A verdict with new ids, `cached`, nothing paid now (`meta["paid"]` has the price)."""
    fields = {
        **v.__dict__,
        "task_id": task.id,
        "response_id": response.id,
        "criterion_id": criterion.id,
        "cached": True,
    }
    if v.tokens_in or v.tokens_out or v.cost:
        paid = {
            "tokens_in": v.tokens_in,
            "tokens_out": v.tokens_out,
            "cost": v.cost,
        }
        fields |= {
            "meta": {**v.meta, "paid": paid},
            "tokens_in": 0,
            "tokens_out": 0,
            "cost": 0.0,
        }
    return rebuilt(fields)


def rebuilt(fields: dict[str, Any]) -> Verdict:
    """A Verdict from all its fields, checked before: five times faster than checking again."""
    v = object.__new__(Verdict)
    object.__setattr__(v, "__dict__", fields)
    return v


def checked(got: Sequence[Verdict], judge: Any, q: Question) -> list[Verdict]:
    """One verdict per criterion in order, whatever a judge returned: by id; else "missing"."""
    given = [v for v in got if isinstance(v, Verdict)] if isinstance(got, Iterable) else []
    by_id = {v.criterion_id: v for v in given}
    twice = Counter(v.criterion_id for v in given) if len(by_id) < len(given) else {}
    out = []
    for i, c in enumerate(q.criteria):
        v = by_id.get(c.id)
        if v is None or twice.get(c.id, 1) > 1:
            failure = "missing" if v is None else "contradiction"
            v = q.unknown(i, failure, judge=getattr(judge, "name", ""))
        if q.keys and v.key != q.keys[i]:
            v = replace(v, key=q.keys[i])
        out.append(v)
    return out
