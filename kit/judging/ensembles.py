"""Judges made of judges: a panel that votes, votes of one model, a cheap judge that passes its
doubts on to a strong one, a judge with a cutoff of its own, and a judge that compares all
answers to a task in one call.

They yield questions to their members. Each member is asked through the same ledger and budget,
under keys of its own; joining what they say costs nothing.
"""

import random
import statistics
from collections import Counter
from collections.abc import Sequence
from typing import Any, Literal, cast

from msgspec.structs import replace

from ..errors import DataError, JudgeDownError
from ..records import Verdict
from ..system.settings import require_name
from .judge import Judge, judge_of, split_spec
from .ledger import COSTS, short_hash
from .llm import LLMJudge
from .question import Plan, Question, Reading, unknown

# What a vote says, and what its panel says anew.
VOTE_FIELDS = ("judge", "status", "value", "p", "reason", "failure", "key")


class Ensemble(Judge):
    """A judge that is made of judges. kind : its name in a mapping; sizes : how many it takes."""

    def __init__(
        self,
        judges: Any,
        kind: str,
        name: str | None,
        sizes: Sequence[int] = range(2, 1000),
    ):
        if not isinstance(judges, list | tuple) or len(judges) not in sizes:
            raise DataError(
                f"{kind} needs two judges",
                where=f"judge {kind}",
                fix=f"write {{{kind}: [JUDGE, JUDGE]}}, each a name or a mapping",
            )
        self.members = [
            judge_of(row, where=f"judge {i} of {kind}")
            for i, row in enumerate(judges, 1)
        ]
        self.name = name or f"{kind}({', '.join(j.name for j in self.members)})"
        self.concurrency = max(j.concurrency for j in self.members)
        self.groups = any(j.groups for j in self.members)
        self.gives_p = any(j.gives_p for j in self.members)


class Panel(Ensemble):
    """Several judges that vote.

    rule : "majority" of the known votes (a tie goes by the mean P; a dead tie is unknown
        "contradiction"), or "mean": mean P(met) against one half. More than half of the
        members must have a known vote.
    The verdict's p is the mean of the members' P(met), 1 or 0 for a member without.
    meta["votes"] keeps the members' verdicts, meta["disagreement"] the smaller side's share.
    """

    def __init__(
        self,
        judges: Any = (),
        *,
        rule: Literal["majority", "mean"] = "majority",
        name: str | None = None,
    ):
        require_name("rule", rule, ("majority", "mean"), where="judge panel")
        super().__init__(judges, "panel", name)
        # Fewer known votes than half would let one member speak for the panel.
        self.rule, self.quorum = rule, len(self.members) // 2 + 1

    def plan(self, question: Question) -> Plan:
        """Ask all members at once. A member that is down is a vote less."""
        rows = yield [(judge, question) for judge in self.members]
        votes = [row for row in rows if not isinstance(row, JudgeDownError)]
        return list(map(self._combine_votes, zip(*votes, strict=True)))

    def _combine_votes(self, votes: Sequence[Verdict]) -> Reading:
        """One reading out of those of the members that are not down."""
        known_votes = [v for v in votes if v.is_known]
        n = len(known_votes)
        met = sum((v.value or 0.0) >= 0.5 for v in known_votes)
        reading: Reading = {
            **_summed_costs(votes),
            "reason": f"{met} of {n} known votes met, quorum {self.quorum}",
            "meta": {
                "votes": list(map(_vote_fields, votes)),
                "disagreement": min(met, n - met) / n if n else None,
            },
        }
        if n >= self.quorum:
            return {**reading, **self._decide_by_rule(known_votes, met / n)}
        failures = Counter(v.failure for v in votes if not v.is_known)
        failures["transport"] += len(self.members) - len(votes)
        return {
            **reading,
            "status": "unknown",
            "failure": failures.most_common(1)[0][0],
        }

    def _decide_by_rule(self, votes: Sequence[Verdict], share: float) -> Reading:
        """Status and P(met) out of enough known votes. share : of those that are met."""
        p = statistics.fmean(
            (v.value or 0.0) if v.p is None else v.p for v in votes
        )
        side = p
        # A majority decides by heads; P(met) decides only where heads are even.
        if self.rule == "majority" and share != 0.5:
            side = share
        if side == 0.5:
            return {"status": "unknown", "failure": "contradiction", "p": p}
        if any(v.status == "level" for v in votes):
            return {
                "status": "level",
                "value": statistics.fmean(v.value or 0.0 for v in votes),
                "p": p,
            }
        return {"status": "met" if side > 0.5 else "unmet", "p": p}


def votes(subject: Any = None, *, n: int = 5, **options: Any) -> Panel:
    """A panel of n samples of one endpoint; at temperature 1 where no other is set."""
    kind, model, more = split_spec(subject, where="judge votes")
    if kind != "endpoint" or not isinstance(n, int) or n < 2:
        raise DataError(
            f"{n!r} votes of {kind}",
            where="judge votes",
            fix="write {votes: {endpoint: MODEL}, n: 5} with n from 2 on",
        )
    # At temperature 0 all votes would be one vote.
    judges = [
        judge_of({"endpoint": model, "temperature": 1.0, **more}) for _ in range(n)
    ]
    # Equal keys would make one stored sample serve for all.
    for i, judge in enumerate(judges):
        judge.identity["sample"] = i
    return Panel(judges, **{"name": f"{judges[0].name} x{n}", **options})


class Escalate(Ensemble):
    """A cheap judge first; the strong one only where the cheap one is in doubt.

    judges : the cheap and the strong one. In doubt: unknown, no P(met), or
    low < P(met) < high. The last judge's verdict counts; meta["first"] keeps the cheap
    one's. Tokens and cost are the sum of both.
    """

    def __init__(
        self,
        judges: Sequence[Any] = (),
        *,
        low: float = 0.2,
        high: float = 0.8,
        name: str | None = None,
    ):
        if not 0 <= low <= high <= 1:
            raise DataError(f"low {low!r}, high {high!r}", where="judge escalate")
        super().__init__(judges, "escalate", name, range(2, 3))
        self.low, self.high = low, high

    def plan(self, question: Question) -> Plan:
        """Ask the cheap judge, then the strong one about the doubts."""
        cheap, strong = self.members
        [first] = yield [(cheap, question)]
        # Without P(met) nobody knows how sure the cheap judge is.
        doubts = {
            v.ids
            for v in first
            if not v.is_known or v.p is None or self.low < v.p < self.high
        }
        by_ids: dict[Any, Verdict] = {}
        if doubts:
            _, answers, criteria = map(set, zip(*doubts, strict=True))
            rest = Question.of(
                question.task,
                [r for r in question.answers.values() if r.id in answers],
                [c for c in question.criteria.values() if c.id in criteria],
            )
            [second] = yield [(strong, rest)]
            by_ids = {v.ids: v for v in second if v.ids in doubts}
        return [self._join_verdicts(v, by_ids.get(v.ids)) for v in first]

    def _join_verdicts(self, first: Verdict, second: Verdict | None) -> Reading:
        rows = [first, second] if second else [first]
        return {
            **_pass_on(rows),
            "meta": {
                **rows[-1].meta,
                "escalated": second is not None,
                "first": _vote_fields(first),
            },
        }


class Cutoff(Ensemble):
    """A judge with another cutoff: met where P(met) is at least `at`.

    Small judges say no too often, or too rarely. A cutoff that was learned on labels mends
    that. The member is asked as ever, so its stored verdicts serve every cutoff.
    A verdict without P(met) is unknown.

    >>> judge_of({"cutoff": {"small": None, "how": "word"}, "at": 0.4}).at
    0.4
    """

    def __init__(
        self, judge: Any = None, *, at: float = 0.5, name: str | None = None
    ):
        if not 0 < at < 1:
            raise DataError(
                f"at {at!r} is not between 0 and 1", where="judge cutoff"
            )
        super().__init__([judge], "cutoff", name, range(1, 2))
        self.at, self.gives_p = at, True
        self.name = name or f"{self.members[0].name} at {at:g}"

    def plan(self, question: Question) -> Plan:
        """Ask the member, and decide anew."""
        [verdicts] = yield [(self.members[0], question)]
        return list(map(self._decide_anew, verdicts))

    def _decide_anew(self, v: Verdict) -> Reading:
        reading: Reading = {**_pass_on([v]), "value": None}
        if v.p is not None and v.is_known:
            reading["status"] = "met" if v.p >= self.at else "unmet"
        elif v.is_known:
            reading |= unknown(
                "no P(met): how: word (--set how=word) gives it", "missing"
            )
        return reading


def _pass_on(verdicts: Sequence[Verdict]) -> Reading:
    """The last verdict as a reading, with the costs of all."""
    return cast(Reading, {**_summed_costs(verdicts), **_vote_fields(verdicts[-1])})


def _vote_fields(v: Verdict) -> dict[str, Any]:
    return {name: getattr(v, name) for name in VOTE_FIELDS}


def _summed_costs(verdicts: Sequence[Verdict]) -> Reading:
    """Tokens and cost of several verdicts; cached where all are."""
    reading: Reading = {"cached": all(v.cached for v in verdicts)}
    for name in COSTS:
        reading[name] = sum(getattr(v, name) for v in verdicts)  # type: ignore[literal-required]
    return reading


class GroupJudge(Judge):
    """A judge that sees the answers to a task together. judge : an endpoint judge.

    One call holds all answers in shuffled order under the ids a1..an, and gives each a
    verdict on each criterion; answers may tie. seed : another order. The order, and all
    answers of the group, are part of each key.
    """

    groups = True

    def __init__(
        self, judge: Any = None, *, seed: int = 0, name: str | None = None
    ):
        judge = judge_of(judge, where="judge group")
        # One word cannot say which answer it is about.
        if not isinstance(judge, LLMJudge) or judge.gives_p:
            raise DataError(
                f"{judge.name!r} cannot judge groups",
                where="judge group",
                fix='use an endpoint or a server, and how: "all"',
            )
        self.judge, self.seed = judge, seed
        self.identity = ["group", judge.identity]
        self.name = name or f"group({judge.name})"
        self.concurrency, self.limit = judge.concurrency, judge.limit

    def split(self, question: Question) -> list[Question]:
        """The question with its answers in the order of the call."""
        # Sorted first: the order must not depend on how the caller lists them.
        rows = sorted(
            question.answers.values(),
            key=lambda r: short_hash(
                [self.seed, r.text.encode("utf-8", "replace").decode(), r.id]
            ),
        )
        random.Random(self.seed).shuffle(rows)
        # A group of one has the form of a group.
        answers = {f"a{n}": r for n, r in enumerate(rows, 1)}
        return [replace(question, answers=answers)]

    def plan(self, question: Question) -> Plan:
        """One call of the member's model."""
        return self.judge.plan(question)
