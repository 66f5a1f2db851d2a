"""Components of a reward: what is scored of an answer, before weights and gates."""

from collections.abc import Iterable
from pathlib import Path
from typing import Annotated, Literal

import msgspec
from msgspec.structs import replace

from ..checks import VerifierName, verify_answer
from ..records import ComponentScore, Criterion, Response, Task, Verdict
from ..system.settings import NonNegative, check_names
from .citations import claim_criteria, score_citations
from .rubric_score import ScoreForm, score_rubric

FiniteNumber = Annotated[float, msgspec.Meta(ge=-1e9, le=1e9)]


class RewardComponent(msgspec.Struct, frozen=True, kw_only=True):
    """One line of a config: what is scored, its name and its weight."""

    kind: str
    name: str = ""
    weight: FiniteNumber = 1.0

    def extra_criteria(
        self, task: Task, response: Response
    ) -> tuple[Criterion, ...]:
        """Criteria that this component needs verdicts on, beside the task's."""
        return ()

    def score(
        self, task: Task, response: Response, verdicts: list[Verdict]
    ) -> ComponentScore:
        """The score of one answer, before the weight."""
        raise NotImplementedError

    def worst_and_best(self, low: float, high: float) -> tuple[float, float]:
        """The ends of a score as the reward sees them: a negative weight swaps them."""
        return (high, low) if self.weight < 0 else (low, high)


class RubricComponent(RewardComponent, frozen=True, kw_only=True):
    """The task's criteria. how, use, gate_to : see `score_rubric`.

    static : names of shipped rubrics ("all", or a list) that are added to each task's own.
    """

    how: ScoreForm = "net"
    use: Literal["value", "p"] = "value"
    gate_to: FiniteNumber | None = 0.0
    static: str | tuple[str, ...] = ()

    def __post_init__(self) -> None:
        # Every name is checked now: a slip in a config must not surface after hours of training.
        static_criteria(self.static)

    def extra_criteria(
        self, task: Task, response: Response
    ) -> tuple[Criterion, ...]:
        """The static rubrics that the task does not have."""
        # A trainer may pass a task that holds them already; they count once.
        ids = {c.id for c in task.criteria}
        return tuple(c for c in static_criteria(self.static) if c.id not in ids)

    def score(
        self, task: Task, response: Response, verdicts: list[Verdict]
    ) -> ComponentScore:
        """The rubric's score."""
        return score_rubric(
            task.criteria + self.extra_criteria(task, response),
            verdicts,
            how=self.how,
            use=self.use,
            gate_to=self.gate_to,
            name=self.name,
        )


class CitationComponent(RewardComponent, frozen=True, kw_only=True):
    """Cited claims, for tasks that have sources; see `score_citations`."""

    f1_weight: NonNegative = 0.6
    id_weight: NonNegative = 0.4

    def extra_criteria(
        self, task: Task, response: Response
    ) -> tuple[Criterion, ...]:
        """The criteria of this answer's claims."""
        return claim_criteria(task, response) if task.sources else ()

    def score(
        self, task: Task, response: Response, verdicts: list[Verdict]
    ) -> ComponentScore:
        """The citation score."""
        if not task.sources:
            return ComponentScore(name=self.name, applies=False)
        return score_citations(
            task,
            response,
            verdicts,
            f1_weight=self.f1_weight,
            id_weight=self.id_weight,
            name=self.name,
        )


class VerifierComponent(RewardComponent, frozen=True, kw_only=True):
    """A verifier of the stated form; see `kit.checks.verify_answer`."""

    verifier: VerifierName
    mode: str = "brier"

    def score(
        self, task: Task, response: Response, verdicts: list[Verdict]
    ) -> ComponentScore:
        """The verifier's score."""
        score = verify_answer(task, response.text, self.verifier, mode=self.mode)
        return replace(score, name=self.name)


# The shipped rubrics for cited answers, by name. They name faults, so their weight is -1.
STATIC_SETS = msgspec.json.decode(
    Path(__file__).with_name("static_rubrics.json").read_bytes(),
    type=dict[str, tuple[Criterion, ...]],
)


def static_criteria(names: str | Iterable[str]) -> tuple[Criterion, ...]:
    """The criteria of the named sets ("all", one name, or several).

    >>> [c.id for c in static_criteria("off_query_padding")]
    ['static:padding']
    """
    if names == "all":
        names = STATIC_SETS
    elif isinstance(names, str):
        names = [names]
    check_names(names, STATIC_SETS, where="reward, field static")
    return tuple(c for name in names for c in STATIC_SETS[name])


COMPONENT_KINDS: dict[str, type[RewardComponent]] = {
    "rubric": RubricComponent,
    "citations": CitationComponent,
    "verifier": VerifierComponent,
}
