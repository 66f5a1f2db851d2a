"""Several components, one reward: weights, gates, format, scale, read from a small config."""

from __future__ import annotations

import functools
import math
import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Annotated, Any, Literal

import msgspec
from msgspec.structs import replace

from ..checks import VERIFIERS, verify
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
    nearest,
)
from .aggregate import MAX_WIDTH, How, aggregate, pay
from .citations import citation_part, claim_criteria, parse

HERE = Path(__file__).parent
Finite = Annotated[float, msgspec.Meta(ge=-1e9, le=1e9)]
Pair = tuple[Task, Response]  # an answer with its task


class Component(msgspec.Struct, frozen=True, kw_only=True):
    """One line of a config: what is scored, its name and its weight."""

    kind: str
    name: str = ""
    weight: Finite = 1.0

    def questions(self, task: Task, response: Response) -> tuple[Criterion, ...]:
        """Criteria that this component needs verdicts on, beside the task's."""
        return ()

    def part(
        self, task: Task, response: Response, verdicts: list[Verdict]
    ) -> ComponentScore:
        """The score of one answer, before the weight."""
        raise NotImplementedError

    def ends(self, low: float, high: float) -> tuple[float, float]:
        """(worst, best) of a score for the reward: a negative weight swaps the ends."""
        return (high, low) if self.weight < 0 else (low, high)


class RubricComponent(Component, frozen=True, kw_only=True):
    """The task's criteria. how, use, gate_to : see `aggregate`.

    static : names of shipped rubrics ("all", or a list) that are added to each task's own.
    """

    how: How = "net"
    use: Literal["value", "p"] = "value"
    gate_to: Finite | None = 0.0
    static: str | tuple[str, ...] = ()
    instance_rubrics_only: bool = False

    def questions(self, task: Task, response: Response) -> tuple[Criterion, ...]:
        """The static rubrics that the task does not have."""
        if self.instance_rubrics_only:
            return ()
        # A trainer may pass a task that holds them already; they count once.
        ids = {c.id for c in task.criteria}
        return tuple(c for c in static_criteria(self.static) if c.id not in ids)

    def part(
        self, task: Task, response: Response, verdicts: list[Verdict]
    ) -> ComponentScore:
        """The rubric's score."""
        criteria = task.criteria + self.questions(task, response)
        options = {"how": self.how, "use": self.use, "gate_to": self.gate_to}
        return aggregate(criteria, verdicts, name=self.name, **options)  # type: ignore[arg-type]


class CitationComponent(Component, frozen=True, kw_only=True):
    """Cited claims, for tasks that have sources; see `citation_part`."""

    f1_weight: NonNegative = 0.6
    id_weight: NonNegative = 0.4

    def questions(self, task: Task, response: Response) -> tuple[Criterion, ...]:
        """The criteria of this answer's claims."""
        return claim_criteria(task, response) if task.sources else ()

    def part(
        self, task: Task, response: Response, verdicts: list[Verdict]
    ) -> ComponentScore:
        """The citation score."""
        if not task.sources:
            return ComponentScore(name=self.name, applies=False)
        weights = {"f1_weight": self.f1_weight, "id_weight": self.id_weight}
        return citation_part(task, response, verdicts, name=self.name, **weights)


class VerifierComponent(Component, frozen=True, kw_only=True):
    """A verifier of the stated form; see `kit.checks.verify`."""

    verifier: Literal[VERIFIERS]  # type: ignore[valid-type]
    mode: str = "brier"

    def part(
        self, task: Task, response: Response, verdicts: list[Verdict]
    ) -> ComponentScore:
        """The verifier's score."""
        return replace(
            verify(task, response.text, self.verifier, mode=self.mode),
            name=self.name,
        )


KINDS = {
    "rubric": RubricComponent,
    "citations": CitationComponent,
    "verifier": VerifierComponent,
}


class Gate(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Where a component scores below `below`, the whole reward is at most `to` (before the scale)."""

    component: str
    below: Finite
    to: Finite = 0.0


class Format(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What an answer must look like.

    mode : "gate": without the form it earns the lowest that any answer can, and nothing is judged.
        "bonus": + bonus x share of the demands that it fulfils. "off": its form plays no part.
    answer_block : one <answer> block with flat snippets. pattern : a regular expression that matches in
        the answer. A thought (<think> ... </think>) is no part of it.
    """

    mode: Literal["off", "gate", "bonus"] = "off"
    answer_block: bool = False
    pattern: str | None = None
    bonus: NonNegative = 0.1

    def share(self, response: Response) -> float:
        """The share of the demands that an answer fulfils; 1 without demands."""
        demands = [not parse(response.text).fault] if self.answer_block else []
        if self.pattern is not None:
            text = strip_thinking(response.text).strip()
            demands.append(bool(re.search(self.pattern, text, re.DOTALL)))
        return sum(demands) / len(demands) if demands else 1.0


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
    components: tuple[Component, ...]
    combine: Literal["mean", "sum"] = "mean"
    gates: tuple[Gate, ...] = ()
    format: Format = Format()
    cap: Finite | None = None
    scale: Positive = 1.0
    max_width: NonNegative = MAX_WIDTH

    @classmethod
    def from_config(cls, config: Any = "rubric") -> Composer:
        """A composer from a preset's name, a mapping, or a YAML or JSON file.

        A mapping may name a `preset` and change fields of it; `weights: {name: w}` changes weights,
        `instance_rubrics_only: true` leaves the static rubrics out. DataError names a wrong field.

        >>> Composer.from_config({"preset": "refiner", "weights": {"citations": 0.3}}).weights
        {'rubric': 0.8, 'citations': 0.3}
        """
        return config if isinstance(config, cls) else _build(*_fields(config))

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the components, as in `Grade.parts`."""
        return tuple(c.name for c in self.components)

    @property
    def weights(self) -> dict[str, float]:
        """Weight of each component."""
        return {c.name: c.weight for c in self.components}

    def objectives(self) -> dict[str, float]:
        """`weights` for GDPO, which pays each part by itself; DataError where that is not the reward."""
        if self.gates or self.cap is not None or self.format.mode == "bonus":
            raise DataError(
                "GDPO pays each part by itself: gates, cap and format bonus are in no part",
                where=f"reward {self.name!r}, setting gdpo",
                fix="gdpo: false, or a reward without gates, cap and format bonus",
            )
        return self.weights

    def is_shut(self, response: Response) -> bool:
        """True where the format gate is closed: whatever a judge says, the answer earns the least."""
        return self.format.mode == "gate" and self.format.share(response) < 1

    def questions(self, task: Task, response: Response) -> tuple[Criterion, ...]:
        """What must be judged of this answer beside the task's criteria: static rubrics, claims."""
        if self.is_shut(response):
            return ()
        each = {
            q.id: q for c in self.components for q in c.questions(task, response)
        }
        return tuple(each.values())

    def criteria(self, task: Task, response: Response) -> tuple[Criterion, ...]:
        """Everything that must be judged of this answer; nothing where the format gate is closed."""
        # No verdict could change what is paid, so none is paid for.
        if self.is_shut(response):
            return ()
        return leaves(task.criteria) + self.questions(task, response)

    def to_judge(self, answers: Iterable[Pair]) -> list[Pair]:
        """The answers that a judge must see, each with the task that holds just its criteria."""
        # Where the format gate is shut, no verdict can change the reward.
        return [
            (replace(t, criteria=criteria), a)
            for t, a in answers
            if (criteria := self.criteria(t, a))
        ]

    def grades(
        self, answers: Iterable[Pair], verdicts: Iterable[Verdict]
    ) -> list[Grade]:
        """A grade for each answer, from the verdicts on all of them."""
        of = group((v.ids[:2], v) for v in verdicts)
        return [self.grade(t, a, of.get(a.ids, ())) for t, a in answers]

    def limits(self, task: Task) -> tuple[float, float]:
        """The lowest and the highest reward that an answer to this task can earn."""
        # The ranges of parts depend on the task alone, so any answer will do.
        return self._limits(
            self._parts(task, Response(task_id=task.id, id="", text=""), [])
        )

    def grade(
        self, task: Task, response: Response, verdicts: Iterable[Verdict]
    ) -> Grade:
        """The reward of one answer. Verdicts on other answers are left out.

        score : None where nothing applies, or where too much is unknown; never 0 for unknown.
        parts : component -> its score before the weight (of a narrow interval the worst end), or None;
        for GDPO and for the tracker.
        meta : the range of the reward, the interval and the details of each part, `form_missing`,
        and `excluded` (why the score is None).
        """
        mine = [v for v in verdicts if v.ids[:2] == (task.id, response.id)]
        parts = self._parts(task, response, mine)
        span = self._limits(parts)
        shut = self.is_shut(response)
        if shut:
            # What the answer says is not looked at: each part is at its worst, and so is the sum.
            for c in self.components:
                end, _ = c.ends(*parts[c.name].range)
                parts[c.name] = replace(parts[c.name], low=end, high=end)
            low = high = span[0]
        else:
            low, high = self._total(parts, self.format.share(response))
        applies = any(parts[c.name].applies and c.weight for c in self.components)
        score = pay(low, high, self.max_width * self.scale) if applies else None
        reason = "too much is unknown" if applies else "no component applies"
        scores = {}
        for c in self.components:
            p = parts[c.name]
            end = pay(*c.ends(p.low, p.high), self.max_width)
            scores[c.name] = end if p.applies else None
        # A stored verdict costs nothing.
        fresh = [v for v in mine if not v.cached]
        usage = {
            "tokens_in": sum(v.tokens_in for v in fresh),
            "tokens_out": sum(v.tokens_out for v in fresh),
        }
        meta = {
            "range": span,
            "form_missing": shut,
            "excluded": reason if score is None else None,
            "intervals": {
                n: (p.low, p.high) for n, p in parts.items() if p.applies
            },
            "details": {n: p.details for n, p in parts.items()},
        }
        return Grade(
            task_id=task.id,
            response_id=response.id,
            score=score,
            score_low=low,
            score_high=high,
            verdicts=tuple(mine),
            usage=usage,
            cost=sum(v.cost for v in mine),
            parts=scores,
            meta=meta,
        )

    def _parts(
        self, task: Task, response: Response, verdicts: list[Verdict]
    ) -> dict[str, ComponentScore]:
        return {c.name: c.part(task, response, verdicts) for c in self.components}

    def _total(
        self, parts: Mapping[str, ComponentScore], share: float
    ) -> tuple[float, float]:
        """Both ends of the reward; share : of the format's demands that are fulfilled."""
        low = high = total = 0.0
        for c in self.components:
            part = parts[c.name]
            if part.applies:
                worst, best = c.ends(part.low, part.high)
                low += c.weight * worst
                high += c.weight * best
                total += abs(c.weight)
        if self.combine == "mean" and total:
            low /= total
            high /= total
        if self.format.mode == "bonus":
            low += self.format.bonus * share
            high += self.format.bonus * share
        for gate in self.gates:
            part = parts[gate.component]
            # A gate only lowers an end, and closes the low one first: so unknown never pays.
            if part.applies and part.low < gate.below:
                low = min(low, gate.to)
                high = min(high, gate.to) if part.high < gate.below else high
        cap = math.inf if self.cap is None else self.cap
        return min(low, cap) * self.scale, min(high, cap) * self.scale

    def _limits(self, parts: Mapping[str, ComponentScore]) -> tuple[float, float]:
        wide = {}
        for name, part in parts.items():
            low, high = part.range
            wide[name] = replace(part, low=low, high=high)
        return self._total(wide, 0.0)[0], self._total(wide, 1.0)[1]


@functools.cache
def static_sets() -> dict[str, tuple[Criterion, ...]]:
    """The shipped rubrics for cited answers, by name. They name faults, so their weight is -1.

    >>> sorted(static_sets())
    ['citation_discipline', 'off_query_padding', 'wrong_entity_confabulation']
    """
    return msgspec.json.decode(
        (HERE / "static_rubrics.json").read_bytes(),
        type=dict[str, tuple[Criterion, ...]],
    )


def static_criteria(names: str | Iterable[str]) -> tuple[Criterion, ...]:
    """The criteria of the named sets ("all", one name, or several)."""
    sets = static_sets()
    if names == "all":
        names = list(sets)
    chosen = [names] if isinstance(names, str) else list(names)
    check_names(chosen, sets, where="reward, field static")
    return tuple(c for n in chosen for c in sets[n])


@functools.cache
def presets() -> dict[str, dict[str, Any]]:
    """The rewards of `presets.yaml` by name."""
    return load(HERE / "presets.yaml")


def _fields(config: Any) -> tuple[dict[str, Any], str]:
    """The fields of a reward, and the place that errors name."""
    where = f"reward {config}" if isinstance(config, str | Path) else "reward"
    if isinstance(config, str | Path):
        config = load(config) if Path(config).is_file() else {"preset": str(config)}
    if not isinstance(config, Mapping):
        raise DataError(
            f"{config!r} is no reward",
            where=where,
            fix="a preset, a file or a mapping",
        )
    config = dict(config)
    if (name := config.pop("preset", None)) is not None:
        if name not in presets():
            raise DataError(
                f"{name!r} is neither a preset nor a file",
                where=where,
                fix=nearest(name, presets()),
            )
        config = {"name": name, **presets()[name], **config}
    return config, where


def _build(config: dict[str, Any], where: str) -> Composer:
    rows = config.pop("components", ())
    weights = config.pop("weights", {})
    only = {}
    if config.pop("instance_rubrics_only", False):
        only["instance_rubrics_only"] = True
    if not rows:
        raise DataError(
            "a reward needs components",
            where=where,
            fix="components: [{kind: rubric}]",
        )
    components = []
    for n, row in enumerate(rows, 1):
        kind = row.get("kind")
        if kind not in KINDS:
            raise DataError(
                f"there is no kind {kind!r}",
                where=where,
                fix=nearest(str(kind), KINDS),
            )
        # Names must differ, and a config seldom has two components of one kind.
        name = row.get("name") or row.get("verifier") or kind
        values = {**row, "name": name, **(only if kind == "rubric" else {})}
        if name in weights:
            values["weight"] = weights[name]
        components.append(
            make(KINDS[kind], values, where=f"{where}, component {n}")
        )
    names = [c.name for c in components]
    if len(set(names)) < len(names):
        raise DataError(
            f"components share a name: {names}",
            where=where,
            fix="give each a `name`",
        )
    # Every name is checked now: a slip in a config must not surface after hours of training.
    check_names(weights, names, where=f"{where}, field weights")
    for c in components:
        if isinstance(c, RubricComponent):
            static_criteria(c.static)
    composer = make(Composer, {**config, "components": []}, where=where)
    check_names(
        [gate.component for gate in composer.gates],
        names,
        where=f"{where}, field gates",
    )
    return replace(composer, components=tuple(components))
