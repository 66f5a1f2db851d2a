"""Several judges, or several samples of one, as one: majority or mean P(met), disagreement kept.

Or one after the other: the cheap one first, the strong one only where the cheap one is in doubt.
"""

from __future__ import annotations

import asyncio
import dataclasses
import statistics
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

from ..errors import BudgetError, JudgeDownError, KitError
from ..records import Criterion, Response, Task, Verdict, calls_of, fingerprint, paid, unknown
from .asking import ask
from .keys import redact
from .records import PASSING, READER, Forecast, Question, keys_of

VERSION = 1
BILL = ("passing", "calls", "paid")  # what `_bill` keeps
RULES = ("majority", "mean")


class Joined:
    """A judge made of judges: workers, keys and forecast of all of them.

    mark : the members' keys of one criterion -> what is hashed as the joined key.
    """

    def __init__(self, judges: Sequence[Any], mark: Callable[[list[str]], list[Any]]):
        self.judges, self._mark = tuple(judges), mark
        known = [w for j in judges if (w := getattr(j, "workers", None))]
        if known:
            self.workers = min(known)
        if all(hasattr(j, "key") or hasattr(j, "keys") for j in judges):
            self.keys = self._keys

    def _keys(self, task: Task, response: Response, criteria: Sequence[Criterion]) -> list[str]:
        members = [keys_of(j, task, response, criteria) or [] for j in self.judges]
        return [fingerprint(self._mark(list(row))) for row in zip(*members, strict=True)]

    def forecast(self, task: Task, response: Response, criteria: Sequence[Criterion]) -> Forecast:
        """The most that it can cost: all judges on everything (one without a forecast is free)."""
        asked = [j for j in self.judges if hasattr(j, "forecast")]
        return sum((j.forecast(task, response, criteria) for j in asked), Forecast())


class Panel(Joined):
    """A judge made of judges; members go through the ledger each under their own keys, all at once.

    rule : "majority" of the known votes (a tie is decided by the mean P, a dead tie is unknown
        "contradiction"), or "mean": the mean P(met) against one half.
    quorum : known votes that are needed, default more than half of the members; fewer make the
        verdict unknown. A member that fails is an unknown vote with its cause.
    p : mean of the members' P(met) (one without counts 1 or 0); with share=True the share of met
        votes.
    meta : votes by status, disagreement (share of known votes against the larger side, in [0, .5]),
        p_sd, members (status, P, reason, failure of each). Tokens and cost are the members' sum.
    """

    def __init__(
        self,
        judges: Sequence[Any],
        *,
        rule: str = "majority",
        quorum: int | None = None,
        share: bool = False,
        name: str | None = None,
    ):
        self.rule, self.share = rule, share
        self.quorum = quorum if quorum is not None else len(judges) // 2 + 1
        own = [o for j in judges if (o := getattr(j, "_own", None))]
        KitError.first(
            (
                len(judges) < 2 or rule not in RULES or not 1 <= self.quorum <= len(judges),
                f"a panel of {len(judges)} with rule {rule!r}, quorum {self.quorum!r}",
                "Panel(judges, rule=..., quorum=...)",
                f"two or more judges, rule one of {RULES}, quorum from 1 to their number",
            ),
            (
                len(set(own)) < len(own),
                "a judge sits twice in the panel",
                "Panel(judges)",
                "name every judge once; for several votes of one judge: votes",
            ),
        )
        self.name = name or "panel(" + ", ".join(j.name for j in judges) + ")"
        super().__init__(
            judges, lambda row: ["panel", VERSION, self.rule, self.quorum, self.share, row]
        )

    async def verdicts(
        self, task: Task, response: Response, criteria: Sequence[Criterion]
    ) -> list[Verdict]:
        """One verdict per criterion, in order."""
        rows = await members(self.judges, task, response, criteria)
        return [
            combine(
                list(votes), rule=self.rule, quorum=self.quorum, share=self.share, judge=self.name
            )
            for votes in zip(*rows, strict=True)
        ]


async def members(
    judges: Sequence[Any], task: Task, response: Response, criteria: Sequence[Criterion]
) -> list[list[Verdict]]:
    """Each judge's verdicts, all asked at once; one that fails gives unknown ones with its cause.

    Raises BudgetError, and the first failure where every judge fails.
    """
    rows = await asyncio.gather(
        *(ask(j, task, response, criteria) for j in judges), return_exceptions=True
    )
    faults = [r for r in rows if isinstance(r, BaseException)]
    for e in faults:
        if len(faults) == len(rows) or isinstance(e, BudgetError) or not isinstance(e, Exception):
            raise e
    out, q = [], Question(task, response, criteria)
    for j, row in zip(judges, rows, strict=True):
        if isinstance(row, BaseException):
            kind = "transport" if isinstance(row, KitError) else "error"
            why = getattr(row, "what", f"{type(row).__name__}: {row}"[:200])
            row = q.unknowns(kind, judge=j.name, reason=redact(why))
        out.append(row)
    return out


def self_consistency(make: Callable[[int], Any], n: int = 5, *, name: str | None = None) -> Panel:
    """n samples of one judge; P(met) is the share of met votes (Wang et al. 2023, arXiv
    2203.11171).

    make : sample number -> judge; give each sample its own key, e.g. `lambda i: EndpointJudge("m",
    temperature=1.0, sample=i)`.
    """
    judges = [make(i) for i in range(n)]
    return Panel(judges, share=True, name=name or f"{judges[0].name} x{n}")


def combine(
    votes: Sequence[Verdict],
    *,
    rule: str = "majority",
    quorum: int | None = None,
    share: bool = False,
    judge: str = "panel",
) -> Verdict:
    """One verdict out of several on the same criterion.

    >>> row = dict(task_id="t", response_id="r", criterion_id="c")
    >>> votes = ("met", 0.9), ("met", 0.6), ("unmet", 0.3)
    >>> v = combine([Verdict(**row, status=said, p=p) for said, p in votes])
    >>> v.status, round(v.p, 3), round(v.meta["disagreement"], 3)
    ('met', 0.6, 0.333)
    """
    known = [v for v in votes if v.known]
    quorum = quorum if quorum is not None else len(votes) // 2 + 1
    met = sum(_value(v) >= 0.5 for v in known)
    ps = [_value(v) if v.p is None else v.p for v in known]
    ps = [float(_value(v) >= 0.5) for v in known] if share else ps
    p = statistics.fmean(ps) if ps else None
    made: dict[str, Any] = dict(
        judge=judge,
        tokens_in=sum(v.tokens_in for v in votes),
        tokens_out=sum(v.tokens_out for v in votes),
        cost=sum(v.cost for v in votes),
        cached=all(v.cached for v in votes),
        meta=_record(votes, met, len(known), ps),
    )
    ids = votes[0].ids
    if len(known) < quorum:
        cause = (
            Counter(v.failure for v in votes if not v.known).most_common(1)[0][0]
            if len(known) < len(votes)
            else "missing"
        )
        why = "; ".join(f"{v.judge}: {v.failure}, {v.reason or ''}" for v in votes if not v.known)
        return unknown(
            *ids,
            str(cause),
            reason=f"{len(known)} of {len(votes)} votes are known, {quorum} needed ({why[:600]})",
            **made,
        )
    side = (
        2 * met - len(known) if rule == "majority" and 2 * met != len(known) else (p or 0.0) - 0.5
    )
    if side == 0:
        return unknown(
            *ids,
            "contradiction",
            p=p,
            reason=f"{met} votes met, {len(known) - met} not, mean P one half",
            **made,
        )
    odd = sum(map(_odd, known))
    shown = f"{met} of {len(known)} votes met, mean P {p:.2f}"
    shown += f"; the P of {odd} speaks against the own verdict" if odd else ""
    row = dict(task_id=ids[0], response_id=ids[1], criterion_id=ids[2], p=p, reason=shown, **made)
    if any(v.status == "level" for v in known):
        return Verdict(status="level", value=statistics.fmean(_value(v) for v in known), **row)
    return Verdict(status="met" if side > 0 else "unmet", **row)


def _value(v: Verdict) -> float:
    return float(v.value or 0.0)


def _record(votes: Sequence[Verdict], met: int, known: int, ps: Sequence[float]) -> dict[str, Any]:
    """What is kept of the members: votes, reasons, how far they are apart, what they cost.

    passing : a member could not be reached: the verdict is not stored, the next run asks it again.
    """
    fields = ("judge", "status", "value", "p", "reason", "failure", "key")
    return {
        "votes": dict(Counter(v.status for v in votes)),
        "members": [{name: getattr(v, name) for name in fields} for v in votes],
        "disagreement": min(met, known - met) / known if known else None,
        "p_sd": statistics.pstdev(ps) if ps else None,
        "reader": READER,
        **_bill(votes),
    }


def _bill(votes: Sequence[Verdict]) -> dict[str, Any]:
    """What verdicts made of these keep of their calls, and whether they are stored."""
    found: dict[str, Any] = {
        "passing": any(v.failure in PASSING or v.meta.get("passing") for v in votes),
        "calls": sorted({c for v in votes if not v.cached for c in calls_of(v)}),
        "paid": any(map(paid, votes)) and {"cost": sum(map(paid, votes))},
    }
    return {name: value for name, value in found.items() if value}


def doubtful(v: Verdict, low: float = 0.2, high: float = 0.8) -> bool:
    """True where a verdict should go to a stronger judge: unknown, without P, or low < P < high.

    And where P lies on the other side of one half: the word of a sample is not what was likely. Of
    a panel that agrees on a level, P is that level's value, and tells of no doubt.
    """
    agreed = v.status == "level" and v.meta.get("p_sd") == 0
    return not v.known or v.p is None or (low < v.p < high and not agreed) or _odd(v)


def _odd(v: Verdict) -> bool:
    """True where verdict and P(met) are on different sides of one half."""
    return v.p is not None and v.status != "level" and (_value(v) - 0.5) * (v.p - 0.5) < 0


class Escalate(Joined):
    """A judge made of two: `cheap` answers all criteria, `strong` those in doubt (unknown, no P, or
    low < P < high).

    The final verdict is the last judge's; meta["first"] keeps the cheap one's status and P. Where
    the strong judge fails, the verdict is unknown with its cause, unless fallback=True lets a known
    cheap verdict stand. Cost and tokens are the sum of both.
    """

    def __init__(
        self,
        cheap: Any,
        strong: Any,
        *,
        low: float = 0.2,
        high: float = 0.8,
        fallback: bool = False,
        name: str | None = None,
    ):
        if not 0 <= low <= high <= 1:
            raise KitError(
                f"low {low!r}, high {high!r}",
                where="Escalate(low=..., high=...)",
                fix="0 <= low <= high <= 1",
            )
        self.cheap, self.strong, self.low, self.high, self.fallback = (
            cheap,
            strong,
            low,
            high,
            fallback,
        )
        self.name = name or f"{cheap.name} -> {strong.name}"
        mark = ["escalate", VERSION, low, high, fallback]
        super().__init__((cheap, strong), lambda row: [*mark, *row])

    async def verdicts(
        self, task: Task, response: Response, criteria: Sequence[Criterion]
    ) -> list[Verdict]:
        """One verdict per criterion, in order."""
        first = await _either(self.cheap, task, response, criteria)
        open_ = [i for i, v in enumerate(first) if doubtful(v, self.low, self.high)]
        rest = [criteria[i] for i in open_]
        down = all(v.failure == "transport" for v in first)
        asked = ask if down else _either  # when neither can be reached the run ends
        second = await asked(self.strong, task, response, rest) if open_ else []
        later = dict(zip(open_, second, strict=True))
        return [self._final(v, later.get(i)) for i, v in enumerate(first)]

    def _final(self, first: Verdict, second: Verdict | None) -> Verdict:
        last = (
            first
            if second is None or (self.fallback and first.known and not second.known)
            else second
        )
        both = [v for v in (first, second) if v is not None]
        kept = {k: v for k, v in last.meta.items() if k not in BILL}  # the last judge's own
        return dataclasses.replace(
            last,
            key=None,
            meta={
                **kept,
                "reader": READER,
                "escalated": second is not None,
                "first": {
                    "judge": first.judge,
                    "status": first.status,
                    "p": first.p,
                    "reason": first.reason,
                    "failure": first.failure,
                },
                **_bill(both),
            },
            judge=last.judge,
            cost=sum(v.cost for v in both),
            cached=all(v.cached for v in both),
            tokens_in=sum(v.tokens_in for v in both),
            tokens_out=sum(v.tokens_out for v in both),
        )


async def _either(
    judge: Any, task: Task, response: Response, criteria: Sequence[Criterion]
) -> list[Verdict]:
    """One judge's verdicts; unknown with the cause where it cannot be reached."""
    try:
        return await ask(judge, task, response, criteria)
    except JudgeDownError as e:
        return Question(task, response, criteria).unknowns(
            "transport", judge=judge.name, reason=e.what
        )
