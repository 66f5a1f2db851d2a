"""Several components, one reward: weights, gates, caps, format, scale, declared in a small
config.

The config is a dict or a YAML file. Every step's contribution is kept, and the contributions sum
to the reward.
Formulas: convex and additive composition as in the refiner, weighted mean over applicable
verifiers as in BioRLHF.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any, Literal

from ..errors import KitError, at
from ..records import Criterion, Grade, Part, Response, Task, Verdict, by_criterion, grouped
from ..settings.read import ABOVE_0, known_names, make, within
from ..tables import rows_html
from . import components
from .aggregate import MAX_WIDTH, own, pay, usage
from .components import Component, Gate, component, values


class Steps:
    """The running interval of a reward and what each step did to its lower and upper end."""

    def __init__(self) -> None:
        self.rows: list[list[Any]] = []  # [name, change of low, change of high]
        self.low = self.high = 0.0

    def add(self, name: str, low: float, high: float) -> None:
        self.rows.append([name, low, high])
        self.low, self.high = math.fsum(r[1] for r in self.rows), math.fsum(r[2] for r in self.rows)

    def limit(self, name: str, to: float, *, at_low: bool, at_high: bool) -> None:
        low = min(self.low, to) if at_low else self.low
        high = min(self.high, to) if at_high else self.high
        self.rows.append([name, low - self.low, high - self.high])
        self.low, self.high = low, high

    def multiply(self, factor: float) -> None:
        self.rows = [[n, lo * factor, hi * factor] for n, lo, hi in self.rows]
        self.low, self.high = self.low * factor, self.high * factor

    def parts(self, *, known_only: bool) -> dict[str, float | None]:
        out: dict[str, float | None] = {}
        for name, low, high in self.rows:
            unknown = known_only and low != high
            out[name] = None if unknown or out.get(name, 0.0) is None else out.get(name, 0.0) + low  # type: ignore[operator]
        return out


@dataclass(frozen=True, kw_only=True)
class Composer:
    """A reward: components, how they combine, and what is done to the sum.

    combine : "mean" = sum w s / sum w over the components that apply (convex); "sum" = sum w s
    (additive).
    gates, cap : upper limits; scale : factor on the final reward (10 in the
    refiner).
    max_width : see rewards.aggregate.grade; the width is measured before scaling.

    >>> from kit.records import Criterion, Response, Task, Verdict
    >>> c = Composer.from_config({"components": [{"kind": "rubric", "how": "mean"}]})
    >>> t = Task(id="t", prompt="p", criteria=(Criterion(id="a", text="x"),))
    >>> v = Verdict(task_id="t", response_id="r", criterion_id="a", status="met")
    >>> c.score(t, Response(task_id="t", id="r", text="x"), [v]).score
    1.0
    """

    name: str
    components: tuple[Component, ...]
    combine: Literal["mean", "sum"] = "mean"
    gates: tuple[Gate, ...] = ()
    format: components.Format = field(default_factory=components.Format)
    cap: float | None = None
    scale: float = 1.0
    max_width: float = MAX_WIDTH

    def __post_init__(self) -> None:
        where = f"reward {self.name!r}"
        total = self.scale * sum(abs(c.weight) for c in self.components)
        above = dict.fromkeys(("cap", "scale"), (ABOVE_0, math.inf, "a number above 0"))
        with at(where):
            within(vars(self) | {"weights": total}, above)
        names = [c.name for c in self.components]
        if len(set(names)) != len(names):
            raise KitError(
                f"two components share a name: {names}", where=where, fix="give each its own `name`"
            )
        if names:
            asked = [g.component for g in self.gates]
            known_names(asked, names, where=f"{where}, field gates", what="component")

    @classmethod
    def from_config(cls, config: Composer | Mapping[str, Any] | str | Path = "default") -> Composer:
        """A composer from a dict, a YAML or JSON file, or the name of a preset; KitError names the
        wrong field. A composer stays.
        """
        return config if isinstance(config, cls) else _build(*values(config))

    def criteria(self, task: Task, response: Response) -> tuple[Criterion, ...]:
        """Everything that must be judged for this response: rubric leaves, static rubrics, one set
        per cited claim. Nothing where the format gate is shut: no verdict could change what is
        paid.
        """
        if self._shut(task, response):
            return ()
        each = (components.criteria(c.kind, c.options, task, response) for c in self.components)
        alike = grouped((c.id, c) for criteria in each for c in criteria)
        return tuple(first for first, *_ in alike.values())

    def _shut(self, task: Task, response: Response) -> bool:
        """A required form is missing: the answer earns gate_to, whatever it says (S x format), or
        the least that any answer can where that is less.
        """
        form = self.format
        return (form.mode == "gate" and form.gate_to <= 0) and not form.check(task, response).ok

    def parts(
        self, task: Task, response: Response, verdicts: Iterable[Verdict]
    ) -> list[tuple[Component, Part]]:
        """What each component says, before weights."""
        verdicts = own(verdicts, task.id, response.id)
        return [
            (c, components.score(c.kind, c.name, c.options, task, response, verdicts))
            for c in self.components
        ]

    def limits(self, task: Task) -> tuple[float, float]:
        """The lowest and the highest reward that any answer to this task can earn; (0, 0) where
        nothing applies.

        A gate or a cap can make the upper end lower than 1 x scale, and so can a formula: the
        direction verifier's best is .8 + .2 n/(n+1).

        >>> a, b = Criterion(id="a", text="x"), Criterion(id="b", text="y", weight=-1)
        >>> t = Task(id="t", prompt="p", criteria=(a, b))
        >>> Composer.from_config("default").limits(t)
        (-1.0, 1.0)
        """
        return self._limits(self.parts(task, Response(task_id=task.id, id="", text=""), ()))

    def _limits(self, parts: list[tuple[Component, Part]]) -> tuple[float, float]:
        used = [(c, p.range) for c, p in parts if p.applies and c.weight]
        if not used:
            return 0.0, 0.0
        total = math.fsum(abs(c.weight) for c, _ in used) if self.combine == "mean" else 1.0
        ends = [sorted((c.weight * low, c.weight * high)) for c, (low, high) in used]
        low, high = (math.fsum(e[i] for e in ends) / total for i in (0, 1))
        low, high = self._gated(low, high, parts)
        if self.format.mode == "gate":
            low = min(low, self.format.gate_to)
        elif self.format.mode == "bonus":
            high += self.format.bonus
        cap = math.inf if self.cap is None else self.cap
        return min(low, cap) * self.scale, min(high, cap) * self.scale

    def _gated(
        self, low: float, high: float, parts: Sequence[tuple[Component, Part]]
    ) -> tuple[float, float]:
        """The ends under the gates: one that can close lowers `low`; one that never opens, both."""
        ends = {c.name: p.range for c, p in parts if p.applies}
        for g in (g for g in self.gates if g.component in ends):
            low = min(low, g.to) if ends[g.component][0] < g.below else low
            high = min(high, g.to) if ends[g.component][1] < g.below else high
        return low, high

    def score(self, task: Task, response: Response, verdicts: Iterable[Verdict]) -> Grade:
        """The reward. score is None (exclude from training) when nothing applies, or too much is
        unknown.

        parts : contribution per component and step, summing to the score; None = does not apply,
        unknown and not paid, or without effect behind a shut format gate.
        meta : "range" (see `limits`), "scores" and "details" per component, "flags" (format,
        truncated), "shut" (a required form is missing: nothing was judged), "excluded" (the
        reason, or None), "foreign" (verdicts on another response
        or task, left out).
        """
        given = tuple(verdicts)
        verdicts = own(given, task.id, response.id)
        parts = self.parts(task, response, verdicts)
        used = [(c, p) for c, p in parts if p.applies and c.weight]
        total = math.fsum(abs(c.weight) for c, _ in used) if self.combine == "mean" else 1.0
        steps, shut = Steps(), self._shut(task, response)
        for c, p in () if shut else used:
            ends = sorted((c.weight * p.low / total, c.weight * p.high / total))
            steps.add(c.name, ends[0], ends[1])
        flags = self._shape(steps, task, response, parts, shut)
        steps.multiply(self.scale)
        ends = steps.low / self.scale, steps.high / self.scale
        pays = used and pay(*ends, max_width=self.max_width) is not None
        why = "unknown verdicts" if used else "nothing applies"
        return Grade(
            task_id=task.id,
            response_id=response.id,
            score=steps.low if pays else None,
            score_low=steps.low,
            score_high=steps.high,
            verdicts=verdicts,
            usage=usage(verdicts),
            cost=math.fsum(v.cost for v in verdicts),
            parts={c.name: None for c, p in parts if shut or not p.applies}
            | steps.parts(known_only=not pays),
            meta={
                "scores": {c.name: p.value for c, p in parts},
                "details": {c.name: dict(p.details) for c, p in parts},
                "intervals": {c.name: (p.low, p.high) for c, p in parts if p.applies},
                "flags": flags,
                "excluded": None if pays else why,
                "shut": shut,
                "unknown": sum(not v.known for v in by_criterion(verdicts).values()),
                "foreign": len(given) - len(verdicts),
                "composer": self.name,
                "range": self._limits(parts),
            },
        )

    def _shape(
        self,
        steps: Steps,
        task: Task,
        response: Response,
        parts: Sequence[tuple[Component, Part]],
        shut: bool,
    ) -> dict[str, Any]:
        """Gates, format and cap; an answer without its form passes no gate: nothing was judged."""
        by_name = {c.name: p for c, p in parts}
        for g in self.gates:
            p = by_name.get(g.component)
            if p is not None and p.applies:
                low, high = (shut or end < g.below for end in (p.low, p.high))
                steps.limit(f"gate:{g.component}", g.to, at_low=low, at_high=high)
        found = self.format.check(task, response)
        if self.format.mode == "gate" and not found.ok:
            # where faults cost, 0 would be more than many an answer in the form earns
            to = min(self.format.gate_to, self._limits(parts)[0] / self.scale if shut else math.inf)
            steps.limit("format", to, at_low=True, at_high=True)
        elif self.format.mode == "bonus":
            steps.add("format", self.format.bonus * found.score, self.format.bonus * found.score)
        if self.cap is not None:
            steps.limit("cap", self.cap, at_low=True, at_high=True)
        return {
            "format_ok": found.ok,
            "format_problems": found.problems,
            "truncated": response.truncated,
        }

    def table(self) -> list[dict[str, Any]]:
        """The config as rows for a notebook: step, kind, weight, share of the total weight,
        options.
        """
        total = math.fsum(abs(c.weight) for c in self.components) or 1.0
        rows = [
            {
                "step": c.name,
                "kind": c.kind,
                "weight": c.weight,
                "share": abs(c.weight) / total,
                "options": ", ".join(f"{k}={v}" for k, v in c.options.items()) or "-",
            }
            for c in self.components
        ]
        cap = [] if self.cap is None else [("cap", f"{self.cap:g}")]
        extra = [
            *(("gate " + g.component, f"below {g.below:g}: at most {g.to:g}") for g in self.gates),
            ("format", components.shown(self.format)),
            *cap,
            ("combine", self.combine),
            ("scale", f"{self.scale:g}"),
            ("unknown", f"width <= {self.max_width:g}: the low end; wider: excluded"),
        ]
        return rows + [
            {"step": s, "kind": "step", "weight": None, "share": None, "options": o}
            for s, o in extra
        ]

    def _repr_html_(self) -> str:
        head = ("step", "kind", "weight", "share", "options")
        rows = [[r[k] for k in head] for r in self.table()]
        return rows_html(head, rows, caption=f"Reward {self.name}")


def _build(config: dict[str, Any], where: str) -> Composer:
    """The composer of these fields; each wrong one is named."""
    names = [f.name for f in fields(Composer)]
    config = {k: v for k, v in config.items() if v is not None}
    known_names(config, [*names, "preset"], where=where, what="field")
    rows = config.pop("components", None)
    if not isinstance(rows, (list, tuple)) or not rows:
        raise KitError(
            "components must be a list of mappings with at least one entry",
            where=f"{where}, field components",
        )
    gates = config.pop("gates", ())
    made: dict[str, Any] = {
        "components": tuple(component(r, f"{where}, component {i}") for i, r in enumerate(rows, 1)),
        "gates": tuple(make(Gate, g, where=f"{where}, gate {i}") for i, g in enumerate(gates, 1)),
    }
    if "format" in config:
        row = config.pop("format")
        row = {"mode": row} if isinstance(row, str) else row
        made["format"] = make(components.Format, row, where=f"{where}, field format")
    config = {"name": Path(where).stem, **config, "components": ()}
    return replace(make(Composer, config, where=where), **made)


def grades(
    tasks: Iterable[Task],
    responses: Sequence[Response],
    verdicts: Iterable[Verdict],
    *,
    composer: Composer,
) -> list[Grade]:
    """A grade per response from verdicts that are there already; no judge is called."""
    by_id = {t.id: t for t in tasks}
    if lost := next((r for r in responses if r.task_id not in by_id), None):
        raise KitError(
            f"response {lost.id!r} answers task {lost.task_id!r}, which is not here",
            where="tasks",
            fix="pass the task too",
        )
    groups = grouped((v.ids[:2], v) for v in verdicts)
    return [composer.score(by_id[r.task_id], r, groups.get(r.ids, ())) for r in responses]
