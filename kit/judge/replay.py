"""A judge that only repeats: recorded replies of real judges, or the verdicts of a ledger or an
exported file.

Nothing here can reach a network. What was not recorded is a MissingError that names the key.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from ..confidence import judge_score
from ..data import recorded
from ..data.schemas import readable
from ..data.tables import read_rows
from ..errors import DataError, MissingError
from ..records import Criterion, Response, Task, Verdict, fingerprint, unknown, verdict_from_json
from .ledger import Ledger
from .records import readdress

VERSION = 1
Look = Callable[[Task, Response, Criterion], "Verdict | None"]


def parse_score(text: str) -> float | None:
    """A score 1-5 out of a reply: the first character that is one, as the published scores were
    read; None = does not parse.

    >>> parse_score("4"), parse_score("2\\n\\nThe response fails 3 of"), parse_score("none")
    (4.0, 2.0, None)
    """
    return next((float(c) for c in text if c in "12345"), None)


class ReplayJudge:
    """Answers from what was recorded; a miss raises MissingError naming the key. See the three
    constructors.

    >>> old = Verdict(task_id="t", response_id="r", criterion_id="c", status="met", key="k1")
    >>> r = ReplayJudge.from_verdicts([old])
    >>> answer = Response(task_id="t", id="r", text="a")
    >>> r.verdict(Task(id="t", prompt="p"), answer, Criterion(id="c", text="x")).status
    'met'
    """

    workers = 1

    def __init__(self, name: str, look: Look, key: Callable[[Task, Response, Criterion], str]):
        self.name, self._look, self.key = name, look, key

    async def verdicts(
        self, task: Task, response: Response, criteria: Sequence[Criterion]
    ) -> list[Verdict]:
        """One verdict per criterion, in order; MissingError where one was not recorded."""
        return [self.verdict(task, response, c) for c in criteria]

    def verdict(self, task: Task, response: Response, criterion: Criterion) -> Verdict:
        """The recorded verdict on one criterion."""
        v = self._look(task, response, criterion)
        if v is None:
            raise MissingError(
                f"{self.name} recorded nothing under key {self.key(task, response, criterion)}",
                where=f"task {task.id!r}, response {response.id!r}, criterion {criterion.id!r}",
                fix="replay exactly what was judged, or ask a live judge: --judge endpoint or "
                "local",
            )
        return v

    # -- what to replay --------------------------------------------------------
    @classmethod
    def recorded(
        cls,
        judge: str = "gpt-4o",
        prompt: str = "bare",
        *,
        threshold: float | None = 3.0,
        data: recorded.RecordedJudges | None = None,
    ) -> ReplayJudge:
        """A recorded real judge: "gpt-4o", "gpt-4o-mini", "claude-sonnet", "claude-haiku" or
        "llama-8b"; prompt "bare" or "parity".

        Found by content: task.prompt, response.text and criterion.text (for "parity" also
        criterion.meta["rubric"] and task.truth["reference_answer"]), so paraphrased criteria replay
        too. With a threshold (1-5) verdicts are met / unmet and P is the mass at or above it; with
        None they are levels (score - 1) / 4 and P the expected level. P is None without
        log-probabilities.
        """
        data = data or recorded.load()
        judge = data.judge(judge)
        DataError.other("prompt", prompt, recorded.PROMPTS, "ReplayJudge.recorded(prompt=...)")
        name = f"{judge}/{prompt}"

        def key(task: Task, response: Response, c: Criterion) -> str:
            return fingerprint(
                ["replay", VERSION, name, threshold, False, question(task, response, c, prompt)]
            )

        def look(task: Task, response: Response, c: Criterion) -> Verdict | None:
            reply = data.reply(judge, question(task, response, c, prompt))
            return (
                None
                if reply is None
                else from_reply(
                    reply,
                    task,
                    response,
                    c,
                    threshold=threshold,
                    judge=name,
                    key=key(task, response, c),
                )
            )

        return cls(f"replay:{name}", look, key)

    @classmethod
    def from_ledger(cls, ledger: Ledger | str | Path, *, judge: str | None = None) -> ReplayJudge:
        """The verdicts of a ledger, read only, found by the ids of task, response and criterion,
        which the user must have kept.

        judge : the name of the judge that was asked, None when the ledger knows only one.
        """
        book = ledger if isinstance(ledger, Ledger) else Ledger(ledger, readonly=True)
        return cls.from_verdicts(book.verdicts(), judge=judge, where=str(book.path))

    @classmethod
    def from_jsonl(cls, path: str | Path, *, judge: str | None = None) -> ReplayJudge:
        """The verdicts of an exported ledger or any JSONL of verdicts; `judge` as in
        `from_ledger`. DataError names the bad line.
        """
        found = [v for where, row in read_rows(path) for v in _verdict(row, where)]
        return cls.from_verdicts(found, judge=judge, where=str(path))

    @classmethod
    def from_verdicts(
        cls, verdicts: Iterable[Verdict], *, judge: str | None = None, where: str = "verdicts"
    ) -> ReplayJudge:
        """Verdicts at hand. A name selects among several judges; two different verdicts on the
        same ids are a DataError.
        """
        rows = list(verdicts)
        names = sorted({v.judge for v in rows})
        if judge is None and len(names) > 1:
            raise DataError(
                f"several judges are recorded: {', '.join(names[:8])}",
                where=where,
                fix="name one with judge=...",
            )
        if judge is not None and judge not in names:
            raise MissingError(
                f"no judge {judge!r} is recorded",
                where=where,
                fix=f"use one of {', '.join(names[:8]) or 'none: it is empty'}",
            )
        who = judge or (names or ["nobody"])[0]
        by_ids: dict[str, Verdict] = {}
        for v in rows:
            if judge in (None, v.judge):
                old = by_ids.setdefault(_place(who, *v.ids), v)
                if (old.status, old.value, old.p) != (v.status, v.value, v.p):
                    raise DataError(
                        f"two different verdicts on {v.task_id}/{v.response_id}/{v.criterion_id}",
                        where=where,
                        fix="give the judge that was asked, with its ledger: what that holds "
                        "is not asked again",
                    )

        def key(task: Task, response: Response, c: Criterion) -> str:
            return _place(who, task.id, response.id, c.id)

        def look(task: Task, response: Response, c: Criterion) -> Verdict | None:
            old = by_ids.get(key(task, response, c))
            return None if old is None else readdress(old, task, response, c)

        return cls(f"replay:{who}", look, key)


def _place(*ids: str) -> str:
    """The key of a verdict that is found by judge, task, response and criterion."""
    return fingerprint(["replay-ids", VERSION, *ids])


def _verdict(row: Mapping[str, Any], where: str) -> list[Verdict]:
    row = readable("record", row, where=where)
    kind = row.pop("kind", "verdict")
    if kind not in ("verdict", "call"):
        raise DataError("neither a verdict nor a call", where=where, fix="export the ledger again")
    row.pop("call", None)
    return [verdict_from_json(row, where=where)] if kind == "verdict" else []


def question(task: Task, response: Response, c: Criterion, prompt: str = "bare") -> str:
    """The user message that the recorded judges saw."""
    test = c.text
    if prompt == "parity":
        test += (
            f"\n\nRubric: {c.meta.get('rubric', '')}\n\nReference Answer: "
            f"{task.truth.get('reference_answer', '')}"
        )
    return f"Query: {task.prompt}\n\nResponse: {response.text}\n\nUnit Test: {test}"


def from_reply(
    reply: recorded.Reply,
    task: Task,
    response: Response,
    c: Criterion,
    *,
    threshold: float | None,
    judge: str,
    key: str,
) -> Verdict:
    """A verdict out of a recorded 1-5 reply; one that does not parse is unknown "parse". Tokens
    and cost are in meta["paid"].
    """
    score = parse_score(reply.text)
    probs = judge_score(list(zip(reply.tokens, reply.top, strict=False)))
    expected = sum(k * v for k, v in probs.items()) if probs else None
    made: dict[str, Any] = dict(
        task_id=task.id,
        response_id=response.id,
        criterion_id=c.id,
        judge=judge,
        key=key,
        cached=True,
        meta={
            "score": score,
            "expected": expected,
            "reply": reply.text,
            "paid": {
                "tokens_in": reply.tokens_in,
                "tokens_out": reply.tokens_out,
                "cost": reply.cost,
            },
        },
    )
    if score is None:
        return unknown(failure="parse", reason=f"no score in {reply.text[:60]!r}", **made)
    shown = f"score {score:g} of 5" + ("" if expected is None else f", expected {expected:.2f}")
    if threshold is None:
        return Verdict(
            status="level",
            value=(score - 1) / 4,
            p=None if expected is None else min(max((expected - 1) / 4, 0.0), 1.0),
            reason=shown,
            **made,
        )
    above = sum(p for score, p in probs.items() if score >= threshold)
    return Verdict(
        status="met" if score >= threshold else "unmet",
        p=min(1.0, above) if probs else None,
        reason=f"{shown}; met from {threshold:g} on",
        **made,
    )
