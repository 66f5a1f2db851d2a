"""Pass rate and rubric score with a judge's errors taken out by labels, and the difference of two
policies under one judge."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from .. import stats
from ..errors import DataError
from ..stats.rates import DESIGNS
from ..stats.scores import HOW
from ..tables import rows_html
from .beside import HALF, Beside, beside

OWN = {"random": "random", "stratified": "probability"}  # designs of `kit label` -> of statistics
SAID = (
    "random: a random sample of verdicts or of whole prompts; probability: drawn with the "
    "probability in the column `inclusion`; by_label: chosen by their label, half met and half "
    "unmet, say; shifted: from elsewhere"
)
SHOWN = 20  # criteria that a table in a terminal shows


@dataclass(frozen=True)
class Rated:
    """Corrected rates: the estimate, and what judge or labels say alone.

    passed : share of verdicts that give credit (met; unmet where the weight is negative) as people
    would give them; of labels from elsewhere ("shifted"): of the verdicts without label. judge,
    people : the same as the judge says it, and from the labels alone.
    score : mean weighted rubric score, corrected too; None where the design does not allow it.
    """

    design: str
    passed: stats.Estimate
    judge: stats.Estimate
    people: stats.Estimate
    score: stats.RubricScore | None
    criteria: tuple[tuple[str, str, stats.Estimate, int], ...]
    notes: tuple[str, ...]

    def data(self) -> dict[str, Any]:
        """As JSON."""
        rows = [
            {"id": i, "text": t, "labels": n, "pass_rate": e.as_dict()}
            for i, t, e, n in self.criteria
        ]
        return {
            "design": self.design,
            "pass_rate": self.passed.as_dict(),
            "judge_alone": self.judge.as_dict(),
            "labels_alone": self.people.as_dict(),
            "score": None if self.score is None else self.score.estimate.as_dict(),
            "criteria": rows,
            "notes": list(self.notes),
        }

    def lines(self) -> list[tuple[str, str, str]]:
        """(name, estimate, how) of the numbers."""
        alone = "not corrected" if self.design == "random" else "not corrected, not at random"
        out = [
            ("pass rate", str(self.passed), self.passed.method),
            ("  the judge alone", str(self.judge), "not corrected"),
            ("  the labels alone", str(self.people), alone),
        ]
        if self.score is not None:
            out.append(("rubric score", str(self.score.estimate), self.score.estimate.method))
        return out

    def __str__(self) -> str:
        lines = [
            *(f"{name:<19} {value}  ({how})" for name, value, how in self.lines()),
            *self.notes,
        ]
        if self.criteria:
            lines += ["", f"{'labels':>6}  {'pass rate':<34}  criterion"]
        lines += [
            f"{n:>6}  {e!s:<34}  {' '.join(f'{i}: {text}'.split())}"
            for i, text, e, n in self.criteria[:SHOWN]
        ]
        beyond = len(self.criteria) - SHOWN
        return "\n".join(lines + ([f"... and {beyond} more (--json)"] if beyond > 0 else []))

    def _repr_html_(self) -> str:
        head = ("criterion", "labels", "pass rate")
        rows = [(f"{i}: {text}", n, str(e)) for i, text, e, n in self.criteria]
        notes = rows_html(("note",), [(n,) for n in self.notes]) if self.notes else ""
        return rows_html(("", "estimate", "how"), self.lines()) + notes + rows_html(head, rows)


def rate(
    tasks: Any,
    labels: Any,
    grades: Any,
    *,
    design: str | None = None,
    how: str = "flip",
    cut: float = HALF,
    level: float = 0.95,
) -> Rated:
    """Pass rate and rubric score that people would give, from many verdicts and a few labels.

    tasks, labels, grades : files, or what `kit.load` and `kit.judge` gave.
    design : how the labelled rows were chosen, one of stats.rates.DESIGNS; None: as the file of
    `kit label` says (another file does not say it: DataError).
    how : the score's denominator, as in stats.rubric_score; [0, 1] for "flip".
    Criteria that code decides are left out. Intervals are clustered by the tasks' group.
    """
    DataError.other("how", how, HOW, "--how")
    rows = beside(tasks, labels, grades).judged()
    chosen = _design(rows, design)
    if chosen == "shifted":  # what people could not say elsewhere is no row of these answers
        both = enumerate(zip(rows.label, rows.labelled, strict=True))
        rows = rows.rows(i for i, (x, seen) in both if x is not None or not seen)
    people = rows.favourable(rows.sides(cut)[1])
    passed = _passed(rows, chosen, cut, level)
    score, why = _score(rows, chosen, how, level)
    new = rows.rows(i for i, x in enumerate(people) if x is None or chosen != "shifted")
    judge = stats.mean(new.favourable(new.sides(cut)[0]), cluster=new.cluster, level=level)
    alone = _alone(rows, people, level)
    notes = (*_notes(rows, passed, alone, chosen), *filter(None, [why]))
    return Rated(chosen, passed, judge, alone, score, _criteria(rows, chosen, cut, level), notes)


def _design(rows: Beside, given: str | None) -> str:
    """The design as statistics name it: what the file says, or what was given."""
    own = OWN.get(rows.design or "", rows.design)
    out = given or own
    DataError.first(
        (
            out is None,
            "the labels do not say how they were chosen, and the right estimator depends on it",
            "--design",
            f"give --design; {SAID}",
        ),
        (given not in (None, *DESIGNS), f"design is {given!r}", "--design", SAID),
        (
            None not in (given, own) and given != own,
            f"the labels were drawn {rows.design}, not {given}",
            "labels",
            "leave --design out",
        ),
        (out not in DESIGNS, f"the design {out!r} is not known", "labels", SAID),
        (
            out == "probability"
            and any(
                p is None and label is not None
                for p, label in zip(rows.inclusion, rows.label, strict=True)
            ),
            "the labels do not say their probability",
            "labels",
            "write the probability of each labelled row into the column `inclusion`",
        ),
    )
    return str(out)


def _passed(rows: Beside, design: str, cut: float, level: float) -> stats.Estimate:
    judge, people = map(rows.favourable, rows.sides(cut))
    return stats.pass_rate(
        judge,
        people,
        design=design,
        cluster=rows.cluster,
        inclusion=rows.inclusion if design == "probability" else None,
        level=level,
    )


def _alone(rows: Beside, people: Sequence[float | None], level: float) -> stats.Estimate:
    """The labels without the judge."""
    at = [i for i, x in enumerate(people) if x is not None]
    weights = rows.weights()
    more = {} if weights is None else {"weights": [weights[i] for i in at]}
    return stats.mean(
        [people[i] for i in at], cluster=[rows.cluster[i] for i in at], level=level, **more
    )


def _score(
    rows: Beside, design: str, how: str, level: float
) -> tuple[stats.RubricScore | None, str]:
    """The corrected rubric score, or why there is none; "partly" is one half of it, for both."""
    if design in ("by_label", "shifted"):
        return None, "no rubric score: its correction needs labels drawn at random"
    if design == "probability" and not _within_verdicts(rows):
        return None, "no rubric score: labels of one verdict were drawn with several probabilities"
    if any(rows.tree):
        return None, "no rubric score: the rubric is a tree, no sum of its criteria"
    if any(
        gate and (v is None or v < 1 or (y is not None and y < 1))
        for gate, v, y in zip(rows.gate, rows.verdict, rows.label, strict=True)
    ):
        return (
            None,
            "no rubric score: must-haves that are not met decide it (`kit judge` scores it)",
        )
    answer = [f"{t}\0{r}" for t, r in zip(rows.task, rows.response, strict=True)]
    heavy: dict[str, float] = {}
    for a, w in zip(answer, rows.weight, strict=True):
        heavy[a] = heavy.get(a, 0.0) + (max(w, 0.0) if how == "positive_normalised" else abs(w))
    at = [i for i, a in enumerate(answer) if heavy[a] > 0]
    if not at or all(rows.label[i] is None for i in at):
        return None, "no rubric score: no label is on a criterion that counts"
    columns = (rows.verdict, rows.weight, answer, rows.cluster, rows.label)
    verdict, weight, answer, cluster, human = ([c[i] for i in at] for c in columns)
    return stats.rubric_score(
        verdict, weight, how=how, level=level, answer=answer, cluster=cluster, human=human
    ), ""


def _within_verdicts(rows: Beside) -> bool:
    """True where all labelled rows of one verdict had one probability to be drawn."""
    drawn = {
        (v, p)
        for v, p, label in zip(rows.verdict, rows.inclusion, rows.label, strict=True)
        if label is not None
    }
    return len(drawn) == len({v for v, _ in drawn})


def _criteria(
    rows: Beside, design: str, cut: float, level: float
) -> tuple[tuple[str, str, stats.Estimate, int], ...]:
    """Pass rates of the criteria that hold labels of two clusters or more."""
    out, groups = [], rows.criteria()
    for (name, text), part in groups.items():
        has = [i for i, x in enumerate(part.label) if x is not None]
        if len({part.cluster[i] for i in has}) < 2 or len(groups) == 1:
            continue
        try:
            found = _passed(part, design, cut, level)
        except DataError:  # all of it labelled: nothing to read the judge's rate from
            continue
        out.append((name, text, found, len(has)))
    return tuple(sorted(out, key=lambda r: -r[3]))


def _notes(rows: Beside, passed: stats.Estimate, alone: stats.Estimate, design: str) -> list[str]:
    """What a reader must know beside the numbers."""
    out = [*filter(None, [passed.note]), *rows.notes()]
    if design == "random" and passed.half_width > alone.half_width:
        out.append("the labels alone give a narrower interval: the judge adds nothing here")
    return out


def against(
    tasks: Any,
    labels: Any,
    grades: Any,
    other: Any,
    *,
    other_labels: Any = None,
    design: str | None = None,
    level: float = 0.95,
) -> stats.Estimate:
    """The share of credit of `grades` less that of `other`, the judge's errors taken out of both.

    grades, other : the same tasks, answered by two policies and graded by one judge. labels :
    of some verdicts of each, drawn at random; other_labels : those of `other` where both policies'
    answers have the same ids.
    """
    one = beside(tasks, labels, grades).judged()
    two = beside(tasks, labels if other_labels is None else other_labels, other).judged()
    for rows in (one, two):
        if (chosen := _design(rows, design)) != "random":
            raise DataError(
                f"the labels were drawn by {chosen}; a corrected difference needs random ones",
                where="--design",
                fix="draw labels of both with `kit label` (random)",
            )
    if other_labels is None:
        _apart(one, two)
    names = ["new"] * len(one) + ["old"] * len(two)
    return stats.policy_difference(
        [*one.favourable(one.verdict), *two.favourable(two.verdict)],
        [*one.favourable(one.label), *two.favourable(two.label)],
        names,
        new="new",
        old="old",
        cluster=[*one.cluster, *two.cluster],
        level=level,
    )


def _apart(one: Beside, two: Beside) -> None:
    """DataError where one label would count for the answers of both policies."""
    seen = {key for key, there in zip(_keys(one), one.labelled, strict=True) if there}
    both = next((key for key in _keys(two) if key in seen), None)
    if both is not None:
        raise DataError(
            f"the label of {' / '.join(both)} would count for both policies",
            where="--against",
            fix="give the other answers ids of their own, or their labels with --against-labels",
        )


def _keys(rows: Beside) -> list[tuple[str, str, str]]:
    return list(zip(rows.task, rows.response, rows.criterion, strict=True))
