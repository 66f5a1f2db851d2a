"""What to label next: a draw with its design written down, and what the labels will be worth."""

from __future__ import annotations

import math
import os
import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any

from .. import stats
from ..checks.text import THOUGHT, answered
from ..data import TaskSet, answers_of, tasks_of
from ..data.schemas import stamped
from ..data.values import as_text, guarded, number
from ..errors import DataError
from ..records import Criterion, Response, Task, Verdict, grouped
from .beside import sign
from .labels import Key, Labels, read_labels, strays, verdicts_of

DESIGNS = ("random", "stratified")
SOUND = 0.85  # sensitivity and specificity of a judge of whom no label tells
ALIKE = 0.3  # correlation of verdicts on one prompt, as assumed where the labels do not say
LEFT_OUT = "left out: judges do not read them"
PILOT = 20  # labels from which a judge's errors are read instead of assumed


@dataclass(frozen=True)
class Draw:
    """Rows to label, and what they are worth.

    rows : as they are written: ids, texts, an empty label (old ones stay), design, inclusion.
    fresh : how many of them have no label yet. worth : what the interval will be, in sentences.
    """

    rows: tuple[Mapping[str, Any], ...]
    fresh: int
    design: str
    worth: tuple[str, ...]
    half_width: float

    def __str__(self) -> str:
        head = f"{len(self.rows)} rows, {self.fresh} to be labelled; drawn: {self.design}"
        return "\n".join([head, *self.worth])


@dataclass(frozen=True)
class _Pool:
    """What can be drawn: verdicts by stratum, in order."""

    strata: Mapping[str, list[Key]]
    tasks: Mapping[str, Task]
    answers: Mapping[tuple[str, str], Response]


def draw(
    tasks: Any,
    answers: Any,
    *,
    n: int = 40,
    design: str = "random",
    grades: Any = None,
    labels: Any = None,
    seed: int = 0,
) -> Draw:
    """Draw what to label next, at random or stratified by the judge's verdict.

    n : verdicts to add.
    grades : the judge's; needed for "stratified", and to say what the interval will be worth.
    labels : a file of an earlier draw goes on, from the same rows and strata (its rows and labels
    are kept, probabilities are those of both draws); of other labels those on rows that are drawn
    are filled in.
    Criteria that code decides are left out. Equal seeds draw equal rows.
    """
    _check(n, design, grades)
    verdicts = {v.ids: v for v in ([] if grades is None else verdicts_of(grades))}
    pool = _pool(tasks, answers, design, verdicts)
    there = TaskSet(tasks=list(pool.tasks.values()), responses=list(pool.answers.values()))
    old = read_labels(labels, there)
    kept = _kept(old, pool, design)
    sizes = _allocation({s: len(u) for s, u in pool.strata.items()}, kept, n, design)
    # a second draw with the first one's numbers is no draw from what the first one left
    rng = random.Random(f"{seed} after {len(old.inclusion)}" if old.inclusion else seed)
    inclusion: dict[Key, float] = {}
    drawn = set(old.inclusion)
    for name, keys in pool.strata.items():
        taken = [k for k in keys if kept[name] and k in drawn]
        rest = [k for k in keys if not kept[name] or k not in drawn]
        taken += rng.sample(rest, min(sizes[name], len(rest)))
        inclusion.update(dict.fromkeys(taken, len(taken) / len(keys)))
    if not inclusion:
        raise DataError(
            "there is nothing to label",
            where="kit label",
            fix="give answers to tasks with criteria for a judge",
        )
    begun = {key[:2] for key in old.inclusion}
    answers = sorted(pool.answers.items(), key=lambda a: (a[0] not in begun, rng.random()))
    rows = _rows(pool, answers, inclusion, old, design)
    worth, half = _worth(pool, list(inclusion), verdicts, old)
    worth += strays(old, chain.from_iterable(pool.strata.values()))
    return Draw(tuple(rows), sum(not r["label"] for r in rows), design, tuple(worth), half)


def _check(n: int, design: str, grades: Any) -> None:
    DataError.first(
        (n < 1, f"{n} rows", "--n", "give 1 or more"),
        (
            design not in DESIGNS,
            f"{design!r} is not known",
            "--design",
            f"use {' or '.join(DESIGNS)}",
        ),
        (
            design == "stratified" and grades is None,
            "there are no verdicts to stratify by",
            "--design",
            "give --grades, the judge's",
        ),
    )


def _pool(tasks: Any, answers: Any, design: str, verdicts: Mapping[Key, Verdict]) -> _Pool:
    from ..rewards.aggregate import leaves

    by_id = {t.id: t for t in tasks_of(tasks)}
    asked = {i: [c.id for c in leaves(t.criteria) if not c.by_code] for i, t in by_id.items()}
    texts = {r.ids: r for r in answers_of(answers, by_id.values())}
    if lost := [task for task, _ in texts if task not in by_id]:
        raise DataError(
            f"there is no task {lost[0]!r}",
            where="ANSWERS",
            fix="give the tasks that these answers answer",
        )
    keys = ((*ids, c) for ids in texts for c in asked[ids[0]])
    every = design == "random"
    strata = grouped(("all" if every else _stratum(verdicts.get(k)), k) for k in keys)
    return _Pool(strata, by_id, texts)


def _stratum(v: Verdict | None) -> str:
    if v is None or v.value is None:
        return "unknown"
    return "met" if sign(v.value) else "unmet"


def _kept(old: Labels, pool: _Pool, design: str) -> dict[str, int]:
    """Verdicts of an earlier draw by stratum; all 0 where the labels are of no draw."""
    if old.design is None or not old.inclusion:
        return dict.fromkeys(pool.strata, 0)
    if old.design != design:
        raise DataError(
            f"these labels were drawn {old.design}",
            where="--labels",
            fix=f"go on with --design {old.design}, or begin a new file",
        )
    drawn = set(old.inclusion)
    kept = {name: len(drawn.intersection(keys)) for name, keys in pool.strata.items()}
    share = {k: kept[s] / len(keys) for s, keys in pool.strata.items() for k in keys}
    if any(abs(p - share.get(k, 0.0)) > 1e-7 for k, p in old.inclusion.items()):
        raise DataError(
            "these labels were drawn from other rows",
            where="--labels",
            fix="go on with the answers and --grades of the first draw, or begin a new file; "
            "without its column `inclusion` the old one's labels are filled in where they fit",
        )
    return kept


def _allocation(
    size: Mapping[str, int], kept: Mapping[str, int], n: int, design: str
) -> dict[str, int]:
    """How many to add to each stratum: the fewest first, so that strata come out equal.

    >>> _allocation({"met": 90, "unmet": 5}, {"met": 0, "unmet": 0}, 20, "stratified")
    {'met': 15, 'unmet': 5}
    """
    if design == "random":
        return {name: min(n, size[name] - kept[name]) for name in size}
    add = dict.fromkeys(size, 0)
    for _ in range(n):
        open_ = [s for s in size if kept[s] + add[s] < size[s]]
        if not open_:
            break
        add[min(open_, key=lambda s: kept[s] + add[s])] += 1
    return add


def _rows(
    pool: _Pool,
    answers: Sequence[tuple[tuple[str, str], Response]],
    inclusion: Mapping[Key, float],
    old: Labels,
    design: str,
) -> list[dict[str, Any]]:
    """The rows answer by answer, so that each is read once; no verdict is shown.

    In a random order: those that are filled in when people stop are a sample of the same design.
    What several raters said of one has a row each, with the columns that they added. An answer's
    thoughts, which judges do not read, stand in no row but of a criterion that names their tags.
    """
    earlier = [v for said in old.said.values() for v in said]
    raters = {v.judge for v in earlier} - {"human"}
    added = dict.fromkeys(k for v in earlier for k in v.meta.get("columns", ()))
    thinking = any(answered(r.text) != r.text for _, r in answers)
    out = []
    for (task_id, response_id), response in answers:
        task = pool.tasks[task_id]
        for c in task.criteria:
            key = (task_id, response_id, c.id)
            if key not in inclusion:
                continue
            row = {
                "task_id": guarded(task_id),
                "response_id": guarded(response_id),
                "criterion_id": guarded(c.id),
                **dict.fromkeys(["rater"] * bool(raters) + ["label"], ""),
                "criterion": guarded(c.text),
                "scale": guarded(
                    " | ".join(c.levels) or (f"0 to {c.points:g} points" if c.points else "")
                ),
                "prompt": guarded(task.asked),
                "answer": guarded(answered(response.text)),
                **({"thoughts": guarded(_thoughts(c, response.text))} if thinking else {}),
                "design": design,
                "inclusion": round(inclusion[key], 12),
            }
            row |= {k: "" for k in added if k not in row}
            said = [_said(v, c) for v in old.said.get(key, ())] or [{}]
            out += [stamped("labels", row | {k: x[k] for k in row.keys() & x}) for x in said]
    return out


def _said(v: Verdict, c: Criterion) -> dict[str, str]:
    """A label as it was written, and whose it is; a number, whose scale its file tells, as a
    level's words, as points of all points, or as a share."""
    label, place = v.meta.get("label", "unknown"), v.meta.get("level")
    label = "" if label is None else as_text(label)
    if v.value is not None and (label == "unknown" or number(label.partition("/")[0]) is not None):
        label = {1.0: "met", 0.0: "unmet"}.get(v.value, f"{100 * v.value:.15g}%")
        if place is not None:
            label = c.levels[int(place)] if c.levels else f"{place:.15g}/{c.points:.15g}"
    rater = v.judge.removeprefix("human").removeprefix(":")
    own = {k: guarded(x) for k, x in v.meta.get("columns", {}).items()}
    return {**own, "label": guarded(label), "rater": guarded(rater)}


def _thoughts(c: Criterion, text: str) -> str:
    """What a row holds beside an answer that has thoughts: for a criterion that names their tags
    the whole, which it is asked of; for others that they are left out."""
    if answered(text) == text:
        return ""
    return text if THOUGHT.search(c.text) else LEFT_OUT


def _worth(
    pool: _Pool, chosen: Sequence[Key], verdicts: Mapping[Key, Verdict], old: Labels
) -> tuple[list[str], float]:
    """What the pass rate's interval will be, half width, with and without the judge."""
    n = len(chosen)
    clusters = len({pool.tasks[k[0]].group or k[0] for k in chosen})
    effect = stats.design_effect(max(n / clusters, 1.0), ALIKE)
    every = [key for keys in pool.strata.values() for key in keys]
    said = {key: _stratum(verdicts.get(key)) for key in every}
    judged = [s for s in said.values() if s != "unknown"]
    p = judged.count("met") / len(judged) if judged else 0.5
    q1, q0, how = _errors(said, old)
    rate = min(max((p + q0 - 1) / (q1 + q0 - 1), 0.02), 0.98) if q1 + q0 > 1 else p
    alone = stats.half_width(n, rate, effect=effect)
    lines = [f"{n} labels in {clusters} prompts: the pass rate from labels alone +-{alone:.2f}"]
    if not judged:
        return [*lines, "with --grades, also what a judge's verdicts add"], alone
    found, missed = rate * q1, rate * (1 - q1)  # of what people call met
    kind, seen = (1 - rate) * (1 - q0), (1 - rate) * q0  # of the rest
    passes = {
        "met": found / max(found + kind, 1e-9),
        "unmet": missed / max(missed + seen, 1e-9),
        "unknown": 0.5,
    }
    variance = p * (1 - p) / len(every)
    for name, mu in passes.items():
        share = sum(s == name for s in said.values()) / len(every)
        held = sum(said[key] == name for key in chosen)
        variance += share**2 * mu * (1 - mu) / (held + 0.5)
    half = 1.96 * math.sqrt(effect * variance)
    lines += [
        f"corrected by them over {len(every)} verdicts +-{half:.2f} ({how})",
        f"the judge's accuracy +-{stats.half_width(n, found + seen, effect=effect):.2f}",
    ]
    if half >= alone:
        lines.append("this judge is so weak, or n so small, that its verdicts add nothing")
    return lines, min(half, alone)


def _errors(said: Mapping[Key, str], old: Labels) -> tuple[float, float, str]:
    """Sensitivity and specificity: from the labels that there are, else assumed."""
    pairs = [
        (said[key] == "met", sign(value))
        for key, value in old.values.items()
        if value is not None and said.get(key, "unknown") != "unknown"
    ]
    yes = [met for met, truth in pairs if truth]
    no = [not met for met, truth in pairs if not truth]
    if min(len(yes), len(no)) * 2 < PILOT:
        return SOUND, SOUND, f"if the judge is right in {SOUND:.0%} of either kind, assumed"
    q1, q0 = ((sum(side) + 1) / (len(side) + 2) for side in (yes, no))
    return q1, q0, f"the judge is right in {q1:.0%} of met and {q0:.0%} of unmet so far"


def write(rows: Sequence[Mapping[str, Any]], out: str | os.PathLike[str]) -> Path:
    """Write rows to label as CSV (a spreadsheet takes no text for a formula) or JSONL.

    A file that is there is not written over: it may hold labels.
    """
    path = Path(out)
    if path.exists():
        raise DataError(
            "this file is there, and may hold labels",
            where=str(path),
            fix="give --out another name, and this file with --labels to go on with it",
        )
    path.parent.mkdir(parents=True, exist_ok=True)
    if path.suffix.lower() != ".csv":
        from ..data.jsonl import write_jsonl

        write_jsonl(path, rows)
        return path
    import csv
    import io

    from ..system.paths import write_text

    text = io.StringIO()
    # all in quotes: csv leaves a lone carriage return without, and readers end the line there
    table = csv.DictWriter(text, list(rows[0]), lineterminator="\n", quoting=csv.QUOTE_ALL)
    table.writeheader()
    table.writerows(rows)
    write_text(path, text.getvalue())
    return path
