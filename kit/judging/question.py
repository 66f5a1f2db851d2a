"""What judging passes around: the question, the request of one call, its reply, a reading."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Generator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypedDict, TypeVar

import msgspec

from ..errors import DataError
from ..records import Criterion, Response, Task

if TYPE_CHECKING:
    from .client import Server
    from .judge import Judge

T = TypeVar("T")
Place = tuple[
    str, str
]  # the ids of answer and criterion, in a call or in the records


class Reading(TypedDict, total=False):
    """Fields of a Verdict as a judge decides them; see `kit.Verdict`."""

    status: str
    value: float | None
    p: float | None
    reason: str | None
    failure: str | None
    judge: str
    meta: dict[str, Any]
    tokens_in: int
    tokens_out: int
    cost: float
    cached: bool


def unknown(reason: str, failure: str = "parse") -> Reading:
    """An unknown reading. failure : a name in `kit.records.FAILURES`."""
    return {"status": "unknown", "failure": failure, "reason": reason[:300]}


class Question(msgspec.Struct, frozen=True, kw_only=True):
    """Answers to a task, and the criteria on which a judge decides.

    answers, criteria : by the ids that a reply repeats: "" is an answer that is alone, a1..an are
        answers that are compared; c1..cn are criteria.
    nonce : four digits that a call carries and its reply repeats.
    """

    task: Task
    answers: dict[str, Response]
    criteria: dict[str, Criterion]
    nonce: str = ""

    @classmethod
    def of(
        cls, task: Task, answers: Sequence[Response], criteria: Sequence[Criterion]
    ) -> Question:
        """A question with ids from 1 on."""
        named = {f"a{n}": answer for n, answer in enumerate(answers, 1)}
        if len(answers) == 1:
            named = {"": answers[0]}
        return cls(
            task=task,
            answers=named,
            criteria={f"c{n}": c for n, c in enumerate(criteria, 1)},
        )

    @property
    def answer(self) -> Response:
        """The only answer; DataError where there are several."""
        return _only_entry(list(self.answers.values()), "answers")

    @property
    def criterion(self) -> Criterion:
        """The only criterion; DataError where there are several (`how="one"` asks one a call)."""
        return _only_entry(list(self.criteria.values()), "criteria")

    @property
    def places(self) -> list[Place]:
        """(answer, criterion) by their ids in the call: the order of a judge's readings."""
        return list(itertools.product(self.answers, self.criteria))

    @property
    def record_ids(self) -> list[Place]:
        """The records' ids at these places."""
        return [
            (answer.id, c.id)
            for answer in self.answers.values()
            for c in self.criteria.values()
        ]

    def with_criteria(self, ids: set[str]) -> Question:
        """Only these criteria, under the same ids in the call. ids : of the records."""
        return msgspec.structs.replace(
            self, criteria={n: c for n, c in self.criteria.items() if c.id in ids}
        )


def _only_entry(rows: list[T], name: str) -> T:
    if len(rows) != 1:
        raise DataError(
            f"the question has {len(rows)} {name}, and this judge reads one",
            where="judge",
            fix='ask one criterion a call: how="one" (--set how=one)',
        )
    return rows[0]


class Request(msgspec.Struct, frozen=True, kw_only=True):
    """One call of a model.

    messages : the chat. max_tokens : room of the reply. fields : more fields of the body.
    settings : what the judge is, for the ledger.
    """

    server: Server
    model: str
    messages: list[dict[str, str]]
    max_tokens: int
    fields: Mapping[str, Any] = {}
    settings: Mapping[str, Any] | None = None


class Reply(msgspec.Struct, kw_only=True):
    """What came back. text : of a finished reply. failure, reason : why there is none.

    is_completion : the server answered with a chat completion, which is paid.
    is_cut : the text ended at max_tokens. thought : what a model that thinks sent beside its text.
    """

    text: str = ""
    failure: str = ""
    reason: str = ""
    is_completion: bool = False
    is_cut: bool = False
    thought: str = ""
    model: str = ""
    tokens_in: int = 0
    tokens_out: int = 0
    cost: float | None = 0.0
    logprobs: Any = None


# What a plan yields: a call (it receives a Reply); questions to other judges, asked at once (a
# list of their verdicts, or a JudgeDownError in its place; where all are down the plan ends); work
# that takes time and runs in a thread (what the function returns). At its end it returns a reading
# for each place.
Step = Request | list[tuple["Judge", Question]] | Callable[[], Any]
Plan = Generator[Step, Any, list[Reading]]
# A plan that ends with fields of the ledger's row of its call; without any it is asked again.
RowPlan = Generator[Step, Any, dict[str, Any]]
