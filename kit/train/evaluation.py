"""Before and after on the same held-out prompts with the same judge: a paired interval, clustered
by prompt.

The gain is taken apart by criterion, and the trivial policies stand beside it. A claim of a gain
needs an interval that excludes 0; the sentence is written from the numbers.
"""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from .. import stats
from ..errors import KitError
from ..records import (
    Grade,
    Response,
    Task,
    grade_from_json,
    grouped,
    response_from_json,
    to_json,
)
from ..rewards.components import static_weights
from ..runs import plain
from ..stats.estimate import Estimate
from ..stats.paired import fragile
from ..system.paths import write_text
from . import rollouts
from .resample import DISCARDED


@dataclass(frozen=True, kw_only=True)
class Evaluation:
    """Answers of one policy to the held-out prompts, with their grades; rows are in the same order
    for every policy.
    """

    name: str
    responses: tuple[Response, ...]
    grades: tuple[Grade, ...]
    step: int = 0

    @property
    def scores(self) -> list[float | None]:
        """Reward per answer; None = unknown."""
        return [g.score for g in self.grades]

    @property
    def clusters(self) -> list[str]:
        """Prompt per answer."""
        return [g.task_id for g in self.grades]

    def reward(self) -> Estimate:
        """Mean reward over prompts, with a t interval over prompts."""
        return mean_by_cluster(self.scores, self.clusters, bounds=self.span)

    @property
    def span(self) -> tuple[float, float]:
        """The lowest and the highest reward that these prompts allow."""
        return rollouts.span([g.meta.get("range") for g in self.grades], self.scores)

    def strict(self, tasks: Sequence[Task] = ()) -> list[float | None]:
        """Per answer 1.0 for a strict pass (see `fulfilled`), 0.0 for none, None = unknown."""
        signs = {t.id: {c.id: c.weight for c in t.criteria} for t in tasks}
        passed = [fulfilled(g, signs.get(g.task_id, {})) for g in self.grades]
        return [None if p is None else float(p) for p in passed]

    def criteria(self, names: Names | None = None) -> dict[str, Estimate]:
        """Share of answers that meet each criterion (unknown left out), clustered by prompt.

        names : row_names(tasks); without it criteria are pooled by id and called "id c1".
        """
        rows = self.values(names)
        labels = list(dict.fromkeys(k for r in rows for k in r))
        return {k: mean_by_cluster([r.get(k) for r in rows], self.clusters) for k in labels}

    def values(
        self, names: Names | None = None, unknown: float | None = None
    ) -> list[dict[str, float]]:
        """Per answer the mean value in [0, 1] of each criterion that is known, by the criterion's
        text; `unknown` stands for one that is not.
        """
        rows = [
            ((v.criterion_id, unknown if v.value is None else v.value) for v in g.verdicts)
            for g in self.grades
        ]
        ids = [g.task_id for g in self.grades]
        return [row_means(names or {}, i, row) for i, row in zip(ids, rows, strict=True)]

    def save(self, path: Path) -> None:
        """Write the answers and grades as one JSON file."""
        rows = [
            {"response": to_json(r), "grade": to_json(g)}
            for r, g in zip(self.responses, self.grades, strict=True)
        ]
        path.parent.mkdir(parents=True, exist_ok=True)
        write_text(path, json.dumps(plain({"name": self.name, "step": self.step, "rows": rows})))


def read(path: str | Path) -> Evaluation:
    """An evaluation as `save` wrote it."""
    data = json.loads(Path(path).read_text("utf-8"))
    return Evaluation(
        name=data["name"],
        step=data["step"],
        responses=tuple(response_from_json(r["response"]) for r in data["rows"]),
        grades=tuple(grade_from_json(r["grade"]) for r in data["rows"]),
    )


def verdicts(out: Path) -> list[Mapping[str, Any]]:
    """The verdicts of a run's answers, trained on or put aside, and of its evaluations."""
    rows = [r for name in (rollouts.ROLLOUTS, DISCARDED) for r in rollouts.read(out / name)]
    texts = (p.read_text("utf-8") for p in sorted(out.glob("eval_*.json")))
    rows += [row["grade"] for text in texts for row in json.loads(text)["rows"]]
    return [v for r in rows for v in r["verdicts"]]


@dataclass(frozen=True, kw_only=True)
class Gain:
    """After minus before on the same prompts.

    reward : difference of mean rewards with its interval (paired by prompt, t over prompts).
    criteria : the same per criterion, by its text (kit.train.evaluation).
    strict : the same for strict passes, answers that meet every criterion; passing : their share
    before and after.
    words : difference in words per answer; truncated : in the share of cut answers; trivial : mean
    reward of each trivial policy; over : after minus the best of them, paired by prompt.
    Where a reward is unknown, before or after, the limits hold whatever it is (`open_to`);
    unknown : what is then said.
    """

    before: Estimate
    after: Estimate
    reward: Estimate
    criteria: dict[str, Estimate]
    words: Estimate
    truncated: Estimate
    strict: Estimate
    passing: tuple[Estimate, Estimate]
    trivial: dict[str, float | None] = field(default_factory=dict)
    over: Estimate | None = None
    unknown: str = ""

    @property
    def shown(self) -> bool:
        """True when the interval lies above 0 and rests on prompts enough for it (as
        `stats.claim`).
        """
        return math.isfinite(self.reward.low) and self.reward.low > 0 and self.enough

    @property
    def enough(self) -> bool:
        """False where a few prompts that collapse and were not drawn would turn what is seen."""
        return not fragile(self.reward)

    @property
    def sentence(self) -> str:
        """What these numbers allow one to say."""
        r = self.reward
        where = f"on {r.n_clusters} held-out prompts"
        span = f"{r.value:+.3f} [{r.low:+.3f}, {r.high:+.3f}] {where}"
        if math.isnan(r.value):
            return "No gain was shown: no held-out prompt has a known reward before and after."
        if not (math.isfinite(r.low) and math.isfinite(r.high)):
            text = f"No gain was shown: {r.value:+.3f} {where}, and no interval can be given."
        elif self.shown:
            text = f"The held-out reward rose by {span}."
        elif not self.enough and not r.low <= 0 <= r.high:
            text = f"Too few prompts to show a change: {span}; a few that collapse would turn it."
        elif r.high < 0:
            text = f"The held-out reward fell: {span}."
        else:
            text = f"No gain was shown: {span}; the interval includes 0."
        beside = "" if self.over is None else self._beside(self.over)
        return " ".join(filter(None, (text, self.unknown, beside)))

    def _beside(self, over: Estimate) -> str:
        """How the trained policy stands to the best trivial one; over : their difference."""
        best = _best(self.trivial)
        verb = "is not shown to beat" if over.value > 0 else "does not beat"
        if over.low > 0 and not fragile(over):
            verb = "beats"
        band = f" [{over.low:+.3f}, {over.high:+.3f}]" if over.low == over.low else ", no interval"
        why = (
            "; a few prompts that collapse would turn it" if over.low > 0 and fragile(over) else ""
        )
        return (
            f"The trained policy ({self.after.value:.3f}) {verb} the best trivial one ({best}, "
            f"{self.trivial[best]:.3f}): {over.value:+.3f}{band}{why}."
        )

    def table(self) -> list[dict[str, Any]]:
        """Rows for a table: what, difference, low, high; the reward first, then its criteria, then
        lengths.
        """
        rows = [
            ("reward", self.reward),
            ("strict passes", self.strict),
            *self.criteria.items(),
            ("words per answer", self.words),
            ("share cut off", self.truncated),
        ]
        return [
            {"what": name, "difference": e.value, "low": e.low, "high": e.high} for name, e in rows
        ]

    def to_json(self) -> dict[str, Any]:
        """Everything as plain values, for metrics.json."""
        named = {
            "before": self.before,
            "after": self.after,
            "gain": self.reward,
            "strict_before": self.passing[0],
            "strict_after": self.passing[1],
            "strict": self.strict,
            "words": self.words,
            "truncated": self.truncated,
            **({"over_trivial": self.over} if self.over else {}),
        }
        return plain(
            {
                **{k: e.as_dict() for k, e in named.items()},
                "gain_shown": self.shown,
                "criteria": {k: e.as_dict() for k, e in self.criteria.items()},
                "trivial": self.trivial,
                "sentence": self.sentence,
            }
        )


def fulfilled(grade: Grade, weights: dict[str, float]) -> bool | None:
    """A strict pass: True when all criteria are met and no negative one; None when a verdict is
    unknown and no other settles it.

    weights : criterion id -> signed weight; a criterion that is neither named nor one of the static
    rubrics, which name bad things, counts as positive.
    """
    weights = static_weights() | weights
    if grade.meta.get("shut"):
        return False  # it lacks the required form, and nobody judged it
    unknown = not grade.verdicts
    for v in grade.verdicts:
        if v.value is None:
            unknown = True
        elif (v.value >= 0.5) == (weights.get(v.criterion_id, 1.0) < 0):
            return False
    return None if unknown else True


def by_kind(before: Evaluation, after: Evaluation, tasks: Sequence[Task]) -> list[dict[str, Any]]:
    """Strict passes by kind of prompt: rows what, prompts, before, after, difference (paired by
    prompt).
    """
    out = []
    passed = (before.strict(tasks), after.strict(tasks))
    kinds = {t.id: t.kind or "all" for t in tasks}
    for kind in ("all", *dict.fromkeys(kinds.values())):
        rows = [
            [(v, c) for v, c in zip(p, e.clusters, strict=True) if kind in ("all", kinds.get(c))]
            for p, e in zip(passed, (before, after), strict=True)
        ]
        (old, a), (new, b) = ([list(column) for column in zip(*r, strict=True)] for r in rows)
        shares = {"before": mean_by_cluster(old, a).value, "after": mean_by_cluster(new, b).value}
        said = {"what": kind, "prompts": len(set(a))}
        out.append({**said, **shares, "difference": str(open_to(_passes(old), _passes(new), a, b))})
    return out


def _best(paid: Mapping[str, float | None]) -> Any:
    """The name of the policy that earns most; None where no reward is known."""
    known = [k for k, v in paid.items() if v is not None]
    return max(known, key=lambda k: paid[k], default=None)  # type: ignore[arg-type, return-value]


Sides = Sequence[Sequence[float | None]]  # values; with unknown ones at their lowest, highest


def compare(
    before: Evaluation,
    after: Evaluation,
    *,
    tasks: Sequence[Task] = (),
    trivial: Mapping[str, Evaluation] | None = None,
) -> Gain:
    """The gain from `before` to `after`, which answered the same prompts, as `trivial` did.

    KitError where a prompt, or an answer to one, is missing: who leaves out what is bad gains.
    """
    counts = [Counter(e.clusters) for e in (before, after)]
    if counts[0].keys() != counts[1].keys() or any(len({*n.values()}) > 1 for n in counts):
        raise KitError(
            f"{len(before.responses)} and {len(after.responses)} answers, not as many to each "
            "prompt, or not to the same prompts",
            where="compare, arguments before and after",
            fix="answer the same prompts as often; what is unknown is a grade without a score",
        )
    paid = plain({k: e.reward().value for k, e in (trivial or {}).items()})
    best = (trivial or {}).get(_best(paid))
    rows_of = row_names(tasks)
    old, new = ([e.values(rows_of, u) for u in (None, 0.0, 1.0)] for e in (before, after))
    labels = [k for k in dict.fromkeys(k for r in old[0] for k in r) if any(k in r for r in new[0])]
    clusters = before.clusters, after.clusters

    def column(sides: Any, k: str) -> Sides:
        return [[row.get(k) for row in rows] for rows in sides]

    passed = [before.strict(tasks), after.strict(tasks)]
    paid_before, paid_after = _rewards(before), _rewards(after)
    return Gain(
        before=before.reward(),
        after=after.reward(),
        reward=open_to(paid_before, paid_after, *clusters, before.span),
        criteria={k: open_to(column(old, k), column(new, k), *clusters) for k in labels},
        words=paired(_words(before), _words(after), *clusters, (0.0, math.inf)),
        truncated=paired(_cut(before), _cut(after), *clusters),
        strict=open_to(*map(_passes, passed), *clusters),
        passing=(
            mean_by_cluster(passed[0], before.clusters),
            mean_by_cluster(passed[1], after.clusters),
        ),
        trivial=paid,
        over=best
        and open_to(_rewards(best), paid_after, best.clusters, after.clusters, after.span),
        unknown=_unknown(paid_before, paid_after),
    )


def open_to(
    old: Sides,
    new: Sides,
    old_cluster: Sequence[str],
    new_cluster: Sequence[str],
    span: tuple[float, float] = (0.0, 1.0),
) -> Estimate:
    """The `paired` gain; its limits hold whatever the unknown values are: who words what it is
    unsure of so that no verifier reads it has learned nothing, however much was unread before.
    """
    import numpy as np

    clusters = old_cluster, new_cluster
    gain = paired(old[0], new[0], *clusters, span)
    if not _open(old) + _open(new):
        return gain
    least = paired(old[2], new[1], *clusters, span)
    most = paired(old[1], new[2], *clusters, span)
    return replace(  # of limits of which one is not known, none is
        gain,
        low=float(np.min([gain.low, least.low])),
        high=float(np.max([gain.high, most.high])),
    )


def _open(side: Sides) -> int:
    """How many values are unknown, or a mean of some that are; what is not asked is not."""
    return sum(low != high for low, high in zip(*side[1:], strict=True))


def _rewards(e: Evaluation) -> Sides:
    out: list[list[float | None]] = [e.scores]
    for field_name, end in zip(("score_low", "score_high"), e.span, strict=True):
        ends = [getattr(g, field_name) for g in e.grades]
        ends = [end if math.isnan(x) else x for x in ends]
        out.append([y if x is None else x for x, y in zip(e.scores, ends, strict=True)])
    return out


def _passes(passed: Sequence[float | None]) -> Sides:
    return [passed, *([end if x is None else x for x in passed] for end in (0.0, 1.0))]


def _unknown(before: Sides, after: Sides) -> str:
    """What is said where a reward is unknown; "" where none is."""
    if not _open(before) + _open(after):
        return ""
    old, new = (_open(side) / len(side[0]) for side in (before, after))
    return (
        f"Of {new:.1%} of the answers the reward is unknown, before of {old:.1%}: the limits hold "
        f"whatever it is."
    )


def paired(
    a: Sequence[float | None],
    b: Sequence[float | None],
    a_cluster: Sequence[str],
    b_cluster: Sequence[str],
    span: tuple[float, float] = (0.0, 1.0),
) -> Estimate:
    """Mean over prompts of (mean of b - mean of a), paired by prompt, t interval over prompts;
    unknown values are left out. span : the range of a value.
    """
    ids = {"new_cluster": b_cluster, "old_cluster": a_cluster}
    return stats.macro_difference(b, a, **ids, span=span, method="difference paired by prompt")


def mean_by_cluster(
    values: Sequence[float | None], clusters: Sequence[str], **more: Any
) -> Estimate:
    """Mean over prompts of their means, with a t interval over prompts; `more` : `macro_mean`'s.

    >>> e = mean_by_cluster([1, 0, 1, 1], ["a", "a", "b", "b"]); e.value, e.n_clusters
    (0.75, 2)
    """
    return stats.macro_mean(values, cluster=clusters, method="mean over prompts", **more)


def share(gain: Estimate) -> Estimate:
    """Of what lies in [-1, 1], as the difference of two shares does, the interval does too."""
    return replace(gain, low=max(gain.low, -1.0), high=min(gain.high, 1.0))


def _words(e: Evaluation) -> list[float | None]:
    return [float(len(r.text.split())) for r in e.responses]


def _cut(e: Evaluation) -> list[float | None]:
    return [float(r.truncated) for r in e.responses]


MOST = 12  # rows of their own; more would hide what they show
Names = Mapping[tuple[str, str], str]


# Which verdicts are the same criterion: those with the same text, not those with the same id, which
# repeats in every row of an RLVR file (c1, c2, ...) and means something else in each.


def row_names(tasks: Sequence[Task]) -> dict[tuple[str, str], str]:
    """(task id, criterion id) -> name of its row.

    A text gets a row of its own when it is used by several tasks, or when there are at most `MOST`
    texts; all others are pooled in two rows that say so, one for what is wanted and one for faults.

    >>> from kit.records import Criterion
    >>> c = {x: (Criterion(id="c1", text=x),) for x in "XY"}
    >>> t = [Task(id=i, prompt="p", criteria=c[x]) for i, x in ("aX", "bY")]
    >>> row_names(t)
    {('a', 'c1'): 'X', ('b', 'c1'): 'Y'}
    """
    each = ((t.id, c) for t in tasks for c in t.criteria)
    where = {(i, c.id): (c.title or c.text, c.weight < 0) for i, c in each}
    used = {k: set(ids) for k, ids in grouped((k, i) for (i, _), k in where.items()).items()}
    shared = sorted((k for k in used if len(used[k]) > 1), key=lambda k: -len(used[k]))
    own = set(used if len(used) <= MOST else shared[:MOST])
    rest = {fault: sum(k[1] == fault for k in used if k not in own) for fault in (False, True)}
    pools = {
        fault: f"{'faults' if fault else 'criteria'} of {n} other texts, pooled"
        for fault, n in rest.items()
    }
    return {place: key[0] if key in own else pools[key[1]] for place, key in where.items()}


def row_name(known: Names, task_id: str, criterion_id: str) -> str:
    """The row of a verdict; criteria that are made for an answer (cited claims) are pooled by their
    kind.
    """
    found = known.get((task_id, criterion_id))
    if found is not None:
        return found
    head, sep, kind = criterion_id.rpartition(":")
    return f"{head.split(':')[0]}: {kind}" if sep else f"id {criterion_id}"


def row_means(
    known: Names, task_id: str, verdicts: Iterable[tuple[str, float | None]]
) -> dict[str, float]:
    """Mean value per row of one answer's verdicts (criterion id, value); unknown ones are left
    out.
    """
    found = grouped((row_name(known, task_id, i), x) for i, x in verdicts if x is not None)
    return {k: sum(v) / len(v) for k, v in found.items()}
