"""Several components, one reward: weights, gates, format, scale, read from a small config.

A component scores one thing of an answer: its rubric, its citations, or its stated form. The composer
makes one number of their scores.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple

import msgspec
from msgspec.structs import replace

from ..checks import VerifierName, verify_answer
from ..errors import DataError
from ..records import (
    ComponentScore,
    Criterion,
    Grade,
    Response,
    Task,
    Verdict,
    group,
    leaves,
    strip_thinking,
)
from ..system.settings import (
    NonNegative,
    Positive,
    check_names,
    load,
    make,
    require_name,
)
from .citations import claim_criteria, parse_citations, score_citations
from .rubric_score import MAX_WIDTH, ScoreForm, paid_score, score_rubric

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
        return replace(
            verify_answer(task, response.text, self.verifier, mode=self.mode),
            name=self.name,
        )


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


# An answer with its task.
TaskAnswer = tuple[Task, Response]
ScoreByName = dict[str, ComponentScore]


class RewardStep(NamedTuple):
    """One step of a reward's arithmetic in words, and both ends of the sum after it."""

    text: str
    low: float
    high: float


class RewardGate(
    msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True
):
    """Where a component scores below `below`, the whole reward is at most `to` (before the scale)."""

    component: str
    below: FiniteNumber
    to: FiniteNumber = 0.0


class FormatRule(
    msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True
):
    """What an answer must look like.

    mode : "gate": without the form it earns the lowest that any answer can, and nothing is judged.
        "bonus": + bonus x share of the demands that it fulfils. "off": its form plays no part.
    answer_block : one <answer> block with flat snippets. pattern : a regular expression that matches in
        the answer. A thought (<think> ... </think>) is not part of it.
    """

    mode: Literal["off", "gate", "bonus"] = "off"
    answer_block: bool = False
    pattern: str | None = None
    bonus: NonNegative = 0.1

    def fulfilled_share(self, response: Response) -> float:
        """The share of the demands that an answer fulfils; 1 without demands."""
        fulfilled = []
        if self.answer_block:
            fulfilled.append(not parse_citations(response.text).fault)
        if self.pattern is not None:
            text = strip_thinking(response.text).strip()
            fulfilled.append(bool(re.search(self.pattern, text, re.DOTALL)))
        return sum(fulfilled) / len(fulfilled) if fulfilled else 1.0


class Composer(msgspec.Struct, frozen=True, kw_only=True):
    """A reward: components, how they combine, and what is done to their sum.

    combine : "mean": sum w s / sum |w| over the components that apply. "sum": sum w s.
    Then the format bonus, then gates and cap (upper limits), then the scale (a factor).
    max_width : the widest interval that is paid (before the scale); it pays its low end, a wider one
    is None.

    >>> composer = Composer.from_config("rubric")
    >>> task = Task(id="t", prompt="p", criteria=(Criterion(id="a", text="x"),))
    >>> verdict = Verdict(task_id="t", response_id="r", criterion_id="a", status="met")
    >>> composer.grade(task, Response(task_id="t", id="r", text="x"), [verdict]).score
    1.0
    """

    name: str = "reward"
    components: tuple[RewardComponent, ...]
    combine: Literal["mean", "sum"] = "mean"
    gates: tuple[RewardGate, ...] = ()
    format: FormatRule = FormatRule()
    cap: FiniteNumber | None = None
    scale: Positive = 1.0
    max_width: NonNegative = MAX_WIDTH

    @classmethod
    def from_config(cls, config: RewardSource = "rubric") -> Composer:
        """A composer from a preset's name, a mapping, or a YAML or JSON file.

        A mapping may name a `preset` and change fields of it; `weights: {name: w}` changes weights,
        `instance_rubrics_only: true` leaves the static rubrics out. DataError names a wrong field.

        >>> Composer.from_config({"preset": "refiner", "weights": {"citations": 0.3}}).weights
        {'rubric': 0.8, 'citations': 0.3}
        """
        if isinstance(config, cls):
            return config
        where = "reward"
        if isinstance(config, str | Path):
            where = f"reward {config}"
            config = (
                load(config) if Path(config).is_file() else {"preset": str(config)}
            )
        if not isinstance(config, Mapping):
            raise DataError(
                f"{config!r} is not a reward",
                where=where,
                fix="a preset, a file or a mapping",
            )
        fields = dict(config)
        if (name := fields.pop("preset", None)) is not None:
            require_name("preset or file", name, reward_presets(), where=where)
            fields = {"name": name, **reward_presets()[name], **fields}
        return _build_composer(fields, where)

    @property
    def weights(self) -> dict[str, float]:
        """Weight of each component, by its name in `Grade.parts`."""
        return {c.name: c.weight for c in self.components}

    def gdpo_weights(self) -> dict[str, float]:
        """`weights` for GDPO, which pays each part by itself; DataError where that is not the reward."""
        if self.gates or self.cap is not None or self.format.mode == "bonus":
            raise DataError(
                "GDPO pays each part by itself: gates, cap and format bonus are in no part",
                where=f"reward {self.name!r}, setting gdpo",
                fix="gdpo: false (--set gdpo=false), or a reward without gates, cap and format bonus",
            )
        return self.weights

    def fails_format_gate(self, response: Response) -> bool:
        """True where, whatever a judge says, the answer earns the least."""
        return (
            self.format.mode == "gate" and self.format.fulfilled_share(response) < 1
        )

    def criteria_to_judge(
        self, task: Task, response: Response
    ) -> tuple[Criterion, ...]:
        """Everything that must be judged of this answer; nothing where the format gate is closed.

        The leaves of the task's criteria, then static rubrics and claims.
        """
        # No verdict could change what is paid, so none is paid for.
        if self.fails_format_gate(response):
            return ()
        extra: dict[str, Criterion] = {}
        for component in self.components:
            extra |= {c.id: c for c in component.extra_criteria(task, response)}
        return leaves(task.criteria) + tuple(extra.values())

    def answers_to_judge(self, answers: Iterable[TaskAnswer]) -> list[TaskAnswer]:
        """The answers that a judge must see, each with the task that holds just its criteria."""
        return [
            (replace(task, criteria=criteria), response)
            for task, response in answers
            if (criteria := self.criteria_to_judge(task, response))
        ]

    def grade_all(
        self, answers: Iterable[TaskAnswer], verdicts: Iterable[Verdict]
    ) -> list[Grade]:
        """A grade for each answer, from the verdicts on all of them."""
        by_answer = group((v.answer_ids, v) for v in verdicts)
        return [self.grade(t, a, by_answer.get(a.ids, ())) for t, a in answers]

    def grade(
        self, task: Task, response: Response, verdicts: Iterable[Verdict]
    ) -> Grade:
        """The reward of one answer. Verdicts on other answers are left out.

        score : None where nothing applies, or where too much is unknown; never 0 for unknown.
        parts : component -> its score before the weight (of a narrow interval the worst end), or None;
        for GDPO and for the tracker.
        meta : the range of the reward (the ends of all answers to the task), the interval and the
        details of each part, `form_missing`, and `excluded` (why the score is None).
        """
        verdicts = [v for v in verdicts if v.answer_ids == response.ids]
        scores, steps = self.scores_and_steps(task, response, verdicts)
        _, low, high = steps[-1]
        excluded = self._why_excluded(low, high, scores)
        # Tokens of the verdicts that were judged now; a stored one costs nothing.
        fresh = [v for v in verdicts if not v.cached]
        return Grade(
            task_id=task.id,
            response_id=response.id,
            score=None if excluded else low,
            score_low=low,
            score_high=high,
            verdicts=tuple(verdicts),
            usage={
                "tokens_in": sum(v.tokens_in for v in fresh),
                "tokens_out": sum(v.tokens_out for v in fresh),
            },
            cost=sum(v.cost for v in verdicts),
            parts={c.name: self._paid_part(c, scores) for c in self.components},
            meta={
                "range": self._range_of(scores),
                "form_missing": self.fails_format_gate(response),
                "excluded": excluded,
                "intervals": {
                    name: (s.low, s.high) for name, s in scores.items() if s.applies
                },
                "details": {name: s.details for name, s in scores.items()},
            },
        )

    def _why_excluded(
        self, low: float, high: float, scores: ScoreByName
    ) -> str | None:
        """Why an answer earns no reward; None where it earns one."""
        if not any(scores[c.name].applies and c.weight for c in self.components):
            return "no component applies"
        if paid_score(low, high, self.max_width * self.scale) is None:
            return "too much is unknown"
        return None

    def scores_and_steps(
        self, task: Task, response: Response, verdicts: list[Verdict]
    ) -> tuple[ScoreByName, list[RewardStep]]:
        """The score of each component, and the arithmetic from them to the reward."""
        scores = {
            c.name: c.score(task, response, verdicts) for c in self.components
        }
        if not self.fails_format_gate(response):
            share = self.format.fulfilled_share(response)
            return scores, list(self.reward_steps(scores, (share, share)))
        # What the answer says is not looked at: each part is at its worst, and so is the sum.
        lowest, _ = self._range_of(scores)
        for c in self.components:
            worst, _ = c.worst_and_best(*scores[c.name].range)
            scores[c.name] = replace(scores[c.name], low=worst, high=worst)
        return scores, [
            RewardStep(
                "the required form is missing: the least that any answer earns",
                lowest,
                lowest,
            )
        ]

    def _paid_part(self, c: RewardComponent, scores: ScoreByName) -> float | None:
        """The worst end of a narrow interval; None for a wide one, and where it does not apply."""
        score = scores[c.name]
        if not score.applies:
            return None
        return paid_score(*c.worst_and_best(score.low, score.high), self.max_width)

    def reward_steps(
        self, scores: ScoreByName, shares: tuple[float, float]
    ) -> Iterator[RewardStep]:
        """The arithmetic of a reward, a step a line; the last one holds what is paid.

        shares : of the demands on the form that are fulfilled, for the low and the high end.
        """
        steps = list(self._combine_scores(scores))
        yield from steps
        _, low, high = steps[-1]
        if self.format.mode == "bonus":
            low += self.format.bonus * shares[0]
            high += self.format.bonus * shares[1]
            yield RewardStep("add the format bonus", low, high)
        for gate in self.gates:
            score = scores[gate.component]
            # The low end is capped as soon as the score may be below the gate, the high end
            # only when it surely is. So unknown never pays.
            if score.applies and score.low < gate.below:
                low = min(low, gate.to)
                if score.high < gate.below:
                    high = min(high, gate.to)
                yield RewardStep(
                    f"the gate of {gate.component} is closed", low, high
                )
        if self.cap is not None:
            low, high = min(low, self.cap), min(high, self.cap)
            yield RewardStep(f"at most {self.cap:g}", low, high)
        if self.scale != 1:
            low, high = low * self.scale, high * self.scale
            yield RewardStep(f"times {self.scale:g}", low, high)

    def _combine_scores(self, scores: ScoreByName) -> Iterator[RewardStep]:
        """The weighted sum, or mean, of the components that apply."""
        low = high = total = 0.0
        yield RewardStep("nothing applies", low, high)
        for c in self.components:
            score = scores[c.name]
            if score.applies:
                worst, best = c.worst_and_best(score.low, score.high)
                low += c.weight * worst
                high += c.weight * best
                total += abs(c.weight)
                yield RewardStep(f"add {c.name}, by its weight", low, high)
        if self.combine == "mean" and total:
            low, high = low / total, high / total
            yield RewardStep(
                f"divide by the sum of the weights, {total:g}", low, high
            )

    def _range_of(self, scores: ScoreByName) -> tuple[float, float]:
        """The reward's range, with each score anywhere in its own range."""
        wide = {
            name: replace(score, low=score.range[0], high=score.range[1])
            for name, score in scores.items()
        }
        *_, widest = self.reward_steps(wide, (0.0, 1.0))
        return widest.low, widest.high


# A reward as users write it: a preset's name, a file, a mapping, or itself.
RewardSource = Composer | str | Path | Mapping[str, Any]


@functools.cache
def reward_presets() -> dict[str, dict[str, Any]]:
    """The rewards of `presets.yaml` by name."""
    return load(Path(__file__).with_name("presets.yaml"))


def _build_composer(fields: dict[str, Any], where: str) -> Composer:
    weights = fields.pop("weights", {})
    only_instance = fields.pop("instance_rubrics_only", False)
    components: dict[str, RewardComponent] = {}
    for n, row in enumerate(fields.pop("components", ()), 1):
        kind, place = str(row.get("kind")), f"{where}, component {n}"
        require_name("kind", kind, COMPONENT_KINDS, where=place)
        # Names must differ, and a config seldom has two components of one kind.
        name = row.get("name") or row.get("verifier") or kind
        if name in components:
            raise DataError(
                f"two components share a name: {name}",
                where=where,
                fix="give each a `name`",
            )
        values = {
            **row,
            "name": name,
            "weight": weights.get(name, row.get("weight", 1.0)),
        }
        if only_instance and kind == "rubric":
            values.pop("static", None)
        components[name] = make(COMPONENT_KINDS[kind], values, where=place)
    if not components:
        raise DataError(
            "a reward needs components",
            where=where,
            fix="components: [{kind: rubric}]",
        )
    check_names(weights, components, where=f"{where}, field weights")
    composer = make(Composer, {**fields, "components": []}, where=where)
    check_names(
        (gate.component for gate in composer.gates),
        components,
        where=f"{where}, field gates",
    )
    return replace(composer, components=tuple(components.values()))
