"""The contract of a judge: what to ask, and how to read it. No judge does I/O.

A judge yields requests and receives replies. The runner sends them: it has the ledger, the
budget, the connections and the repetitions. So a judge is tested without a server:

    plan = judge.plan(question)
    request = next(plan)
    try:
        plan.send(Reply(text="yes"))
    except StopIteration as end:
        readings = end.value
"""

from __future__ import annotations

from collections.abc import Generator, Mapping, Sequence
from functools import partial
from typing import Any

from ..errors import DataError
from ..records import Criterion, Response, Task
from .ledger import hash_answer, short_hash, subject_keys
from .prompt import criterion_texts
from .question import Plan, Question, Reading, Step, unknown


class Judge:
    """The judge "code", which decides nothing beside the checks, and the base of all judges.

    A judge of your own has `plan`, or `readings` where it needs no model.

    identity : all that shapes a verdict, as JSON: a part of each ledger key. None: the
        verdicts cost nothing and are not stored.
    concurrency : questions at once. limit : the most seconds that one question takes.
    groups : a question holds all answers to its task. members : the judges that it asks.
    gives_p : each verdict has a P(met).
    """

    name = "code"
    identity: Any = None
    system: str | None = None
    concurrency = 1
    limit = 600.0
    groups = False
    gives_p = False
    members: Sequence[Judge] = ()

    def plan(self, question: Question) -> Plan:
        """Yield what to ask; return a reading for each of `question.places`."""
        rows: list[Reading] = []
        for response in question.answers.values():
            rows += yield partial(
                self.readings,
                question.task,
                response,
                [*question.criteria.values()],
            )
        return rows

    def readings(
        self, task: Task, response: Response, criteria: Sequence[Criterion]
    ) -> Sequence[Reading]:
        """A reading of each criterion, for a judge without a model. It runs in a thread."""
        return [
            unknown(
                "no check decides this criterion, and there is no judge", "abstain"
            )
        ] * len(criteria)

    def split(self, question: Question) -> list[Question]:
        """The questions that are asked instead, each in a plan of its own."""
        return [question]

    def context(self, question: Question, answer: str) -> Any:
        """What else shapes the verdicts on an answer: the last part of their keys."""
        rubric = list(map(criterion_texts, question.criteria.values()))
        if not self.groups:
            return rubric if len(rubric) > 1 else None
        return [
            list(map(hash_answer, question.answers.values())),
            list(question.answers).index(answer),
            rubric,
        ]

    def keys(self, question: Question) -> list[str]:
        """A ledger key for each place; none for a judge without identity."""
        if self.identity is None:
            return []
        keys: list[str] = []
        first = short_hash(self.identity)
        criteria = list(question.criteria.values())
        for name, answer in question.answers.items():
            last = short_hash(self.context(question, name))
            keys += [
                f"{first}-{middle}-{last}"
                for middle in subject_keys(question.task, answer, criteria)
            ]
        return keys

    def completion(
        self, messages: list[dict[str, str]], schema: Mapping[str, Any] | None
    ) -> Generator[Step, Any, str]:
        """A plan that returns what the judge's model writes to a chat."""
        raise DataError(
            f"{self.name!r} cannot write text",
            where="complete",
            fix="use an endpoint or a server",
        )
