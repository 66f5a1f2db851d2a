"""What a reward does to a set of answers: which criteria still separate them, which groups carry a
gradient, and what trivial answers earn.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from typing import TYPE_CHECKING, Any

import numpy as np

from ..records import Grade, Response, Task
from ..stats.estimate import Estimate
from ..stats.macro import macro_mean
from ..tables import rows_html
from .groups import GOOD_AT, GroupShares, PassRates, group_shares, pass_rates
from .trivial import TRIVIAL

if TYPE_CHECKING:
    from .exploit import Found

MARGIN = 0.15  # a trivial policy nearer than this to the real answers is flagged


@dataclass(frozen=True, kw_only=True)
class CriterionRow:
    """One criterion over the answers to its task. variance : within the group, population form;
    saturated : known values are all alike.
    """

    task_id: str
    criterion_id: str
    n: int
    unknown: int
    mean: float
    sd: float
    variance: float
    saturated: bool


@dataclass(frozen=True, kw_only=True)
class TrivialRow:
    """A trivial policy beside the real answers to the same tasks.

    real, trivial : mean over tasks; difference : real - trivial, paired by task, with a t interval
    over tasks.
    warning : None, or why this reward can be had without skill.
    """

    policy: str
    trivial: float
    real: float
    difference: Estimate
    excluded: int
    warning: str | None


@dataclass(frozen=True, kw_only=True)
class RewardReport:
    """All figures of a reward on a set of answers; `tables()` gives them as rows, `_repr_html_`
    shows them.
    """

    name: str
    reward: Estimate
    excluded: int
    groups: GroupShares
    rates: PassRates
    criteria: tuple[CriterionRow, ...]
    components: tuple[str, ...]
    component_rows: tuple[Mapping[str, Any], ...]
    correlations: np.ndarray  # (k, k), NaN where undefined
    trivial: tuple[TrivialRow, ...]

    @property
    def warnings(self) -> list[str]:
        """What a user should act on, one sentence each."""
        out = [r.warning for r in self.trivial if r.warning]
        known = [c for c in self.criteria if c.n > 1]
        saturated = sum(c.saturated for c in known)
        if known and saturated > len(known) / 2:
            out.append(
                f"{saturated} of {len(known)} criteria give every answer of their group the same "
                f"value: they teach nothing."
            )
        if self.groups.zero_advantage > 0.5:
            out.append(
                f"{self.groups.zero_advantage:.0%} of the groups have one score for all answers, "
                f"so no gradient."
            )
        if self.excluded:
            out.append(
                f"{self.excluded} answers have no reward (unknown verdicts or nothing to judge) "
                f"and are excluded."
            )
        return out

    def tables(self) -> dict[str, list[dict[str, Any]]]:
        """Rows for data frames: summary, components, correlations, criteria, trivial."""
        g, r = self.groups, self.rates
        summary = {
            "reward": self.reward.value,
            "low": self.reward.low,
            "high": self.reward.high,
            "n": self.reward.n,
            "excluded": self.excluded,
            "groups": g.groups,
            "groups_excluded": g.excluded,
            "mixed": g.mixed,
            "all_good": g.all_good,
            "all_bad": g.all_bad,
            "zero_advantage": g.zero_advantage,
            "pass_macro_over_responses": r.macro_over_responses,
            "pass_micro_over_criteria": r.micro_over_criteria,
            "verdicts_unknown": r.unknown,
        }
        pairs = [
            {"a": a, "b": b, "correlation": float(self.correlations[i, j])}
            for i, a in enumerate(self.components)
            for j, b in enumerate(self.components)
            if i < j
        ]
        trivial = [
            {
                "policy": t.policy,
                "trivial": t.trivial,
                "real": t.real,
                "difference": t.difference.value,
                "low": t.difference.low,
                "high": t.difference.high,
                "tasks": t.difference.n,
                "excluded": t.excluded,
                "warning": t.warning or "",
            }
            for t in self.trivial
        ]
        return {
            "summary": [summary],
            "components": [dict(c) for c in self.component_rows],
            "correlations": pairs,
            "criteria": [vars(c) | {} for c in self.criteria],
            "trivial": trivial,
        }

    def _repr_html_(self) -> str:
        t = self.tables()
        warn = "".join(f"<li>{escape(w)}</li>" for w in self.warnings)
        return (
            f"<h4>Reward {escape(self.name)}: {escape(str(self.reward))}</h4>"
            + (f"<ul>{warn}</ul>" if warn else "")
            + "".join(_folded(name, rows) for name, rows in t.items() if rows)
        )


def _folded(name: str, rows: Sequence[Mapping[str, Any]]) -> str:
    """A table that opens at a click; summary and trivial policies are open."""
    table = rows_html(list(rows[0]), [list(r.values()) for r in rows[:60]])
    state = " open" if name in ("summary", "trivial") else ""
    return f"<details{state}><summary>{name}</summary>{table}</details>"


def report(
    responses: Sequence[Response],
    grades: Sequence[Grade],
    *,
    name: str = "reward",
    good_at: float = GOOD_AT,
) -> RewardReport:
    """The report over graded responses; those whose source starts with "trivial:" are the trivial
    policies, the others are real.

    responses and grades in the same order. Real answers alone enter the rates, criteria, groups and
    correlations.
    """
    if len(responses) != len(grades) or any(
        (r.task_id, r.id) != (g.task_id, g.response_id)
        for r, g in zip(responses, grades, strict=False)
    ):
        from ..errors import KitError

        raise KitError(
            "responses and grades do not belong together",
            where="rewards.report.report",
            fix="pass them in the same order",
        )
    real = [
        g
        for r, g in zip(responses, grades, strict=True)
        if not (r.source or "").startswith(TRIVIAL)
    ]
    names = tuple(dict.fromkeys(k for g in real for k in g.meta.get("scores", {})))
    matrix = np.array(
        [[_nan(g.meta.get("scores", {}).get(k)) for k in names] for g in real], float
    ).reshape(len(real), len(names))
    keep = [j for j in range(len(names)) if not np.isnan(matrix[:, j]).all()]
    names, matrix = tuple(names[j] for j in keep), matrix[:, keep]
    return RewardReport(
        name=name,
        reward=_by_task([(g.task_id, g.score) for g in real]),
        excluded=sum(g.score is None for g in real),
        groups=group_shares([(g.task_id, g.score) for g in real], good_at=good_at),
        rates=pass_rates(v for g in real for v in g.verdicts),
        criteria=_criteria(real),
        components=names,
        component_rows=tuple(_component(n, matrix[:, j], real) for j, n in enumerate(names)),
        correlations=correlations(matrix),
        trivial=_trivial(responses, grades, real),
    )


def _nan(x: float | None) -> float:
    return math.nan if x is None else float(x)


def _criteria(grades: Sequence[Grade]) -> tuple[CriterionRow, ...]:
    groups: dict[tuple[str, str], list[float | None]] = {}
    for g in grades:
        for v in g.verdicts:
            groups.setdefault((v.task_id, v.criterion_id), []).append(v.value)
    out = []
    for (task_id, criterion_id), values in groups.items():
        known = np.array([x for x in values if x is not None], float)
        mean, variance = (
            (float(known.mean()), float(known.var())) if len(known) else (math.nan, math.nan)
        )
        out.append(
            CriterionRow(
                task_id=task_id,
                criterion_id=criterion_id,
                n=len(known),
                unknown=len(values) - len(known),
                mean=mean,
                sd=math.sqrt(variance),
                variance=variance,
                saturated=len(known) > 1 and variance < 1e-12,
            )
        )
    return tuple(out)


def _component(name: str, column: np.ndarray, grades: Sequence[Grade]) -> dict[str, Any]:
    groups: dict[str, list[float]] = {}
    for x, g in zip(column, grades, strict=True):
        if not math.isnan(x):
            groups.setdefault(g.task_id, []).append(float(x))
    known = column[~np.isnan(column)]
    within = [float(np.var(xs)) for xs in groups.values() if len(xs) > 1]
    return {
        "component": name,
        "n": len(known),
        "absent_or_unknown": int(len(column) - len(known)),
        "mean": float(known.mean()),
        "sd": float(known.std()),
        "within_group_variance": float(np.mean(within)) if within else math.nan,
        "contribution": float(
            np.mean([g.parts[name] for g in grades if g.parts.get(name) is not None] or [math.nan])
        ),
    }


def correlations(matrix: np.ndarray) -> np.ndarray:
    """Pearson correlations between columns over the rows where both are known; NaN below three rows
    or without spread.

    matrix : (n, k) with NaN. Returns (k, k).
    """
    k = matrix.shape[1]
    out = np.full((k, k), math.nan)
    for i in range(k):
        for j in range(i, k):
            both = ~np.isnan(matrix[:, i]) & ~np.isnan(matrix[:, j])
            a, b = matrix[both, i], matrix[both, j]
            if len(a) > 2 and a.std() > 1e-12 and b.std() > 1e-12:
                out[i, j] = out[j, i] = float(np.corrcoef(a, b)[0, 1])
    return out


def _task_means(pairs: Iterable[tuple[str, float | None]]) -> dict[str, float]:
    groups: dict[str, list[float]] = {}
    for task_id, score in pairs:
        if score is not None:
            groups.setdefault(task_id, []).append(score)
    return {t: math.fsum(xs) / len(xs) for t, xs in groups.items()}


def _by_task(pairs: Sequence[tuple[str, float | None]]) -> Estimate:
    return macro_mean(
        [s for _, s in pairs],
        cluster=[t for t, _ in pairs],
        method="mean of task means, t interval over tasks",
    )


def _trivial(
    responses: Sequence[Response], grades: Sequence[Grade], real: Sequence[Grade]
) -> tuple[TrivialRow, ...]:
    reference = _task_means([(g.task_id, g.score) for g in real])
    by_policy: dict[str, list[Grade]] = {}
    for r, g in zip(responses, grades, strict=True):
        if (r.source or "").startswith(TRIVIAL):
            by_policy.setdefault((r.source or "")[len(TRIVIAL) :], []).append(g)
    out = []
    for policy, gs in by_policy.items():
        earned = _task_means([(g.task_id, g.score) for g in gs])
        shared = [t for t in earned if t in reference]
        d = macro_mean(
            [reference[t] - earned[t] for t in shared],
            cluster=shared,
            method="paired by task, t interval over tasks",
        )
        a, b = (
            math.fsum(x[t] for t in shared) / len(shared) if shared else math.nan
            for x in (earned, reference)
        )
        warning = None
        if shared and d.value < MARGIN:
            verb = "earns as much as" if d.value <= 0 else "comes near"
            warning = (
                f"The trivial policy {policy!r} {verb} the real answers: {a:.3f} against {b:.3f}."
            )
        out.append(
            TrivialRow(
                policy=policy,
                trivial=a,
                real=b,
                difference=d,
                excluded=sum(g.score is None for g in gs),
                warning=warning,
            )
        )
    return tuple(sorted(out, key=lambda r: -r.trivial if not math.isnan(r.trivial) else math.inf))


def trivial_responses(tasks: Iterable[Task], found: Found | None = None) -> list[Response]:
    """The trivial policies' answers to all tasks (see rewards.trivial), and the best one of a
    search.
    """
    from .edits import Material
    from .trivial import policies

    tasks = list(tasks)
    glossary = Material.of(tasks).glossary
    simple = [r for t in tasks for r in policies(t, glossary)]
    return simple + (found.responses(tasks) if found else [])
