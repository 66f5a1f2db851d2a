"""The held-out answers of a trained policy with the model's own confidence, for calibration.

The confidence is exp(mean log-probability of the answer's tokens): a score in (0, 1] that must be
recalibrated before it is read as a probability. Correct means that the answer met every criterion
of its rubric as far as the verdicts are known.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from ..records import Response, Task
from . import evaluation

STAGES = ("before", "after")


def rows(
    found: evaluation.Evaluation, tasks: Iterable[Task], correct: Callable[[Task, Response], Any]
) -> list[dict[str, Any]]:
    """Rows {stage, task_id, kind, stated, token, correct} of an evaluation, for kit.calibration.

    stated : the confidence in the text, NaN where none is read; token : of the answer's tokens;
    correct : 1.0 or 0.0 by `correct(task, response)` (kit.train.quality.correct), NaN where
    unknown.
    """
    from ..confidence import extract

    by_id = {t.id: t for t in tasks}
    out = []
    for r in found.responses:
        task = by_id[r.task_id]
        stated = extract(r.text).value
        right = correct(task, r)
        row = {"stage": found.name, "task_id": r.task_id, "kind": task.kind}
        numbers = {"stated": stated, "token": r.confidence, "correct": right}
        out.append(row | {k: math.nan if v is None else float(v) for k, v in numbers.items()})
    return out


def read(folder: str | Path, tasks: Any = ()) -> list[dict[str, Any]]:
    """Rows {stage, task_id, confidence, correct} of the evaluations below a run's folder; answers
    without either are left out.

    tasks : the tasks, for the signs of their weights (default: every weight positive).
    """
    signs = {t.id: {c.id: c.weight for c in t.criteria} for t in tasks}
    out = []
    for stage in STAGES:
        for path in sorted(Path(folder).glob(f"**/eval_{stage}.json")):
            found = evaluation.read(path)
            for r, g in zip(found.responses, found.grades, strict=True):
                correct = evaluation.fulfilled(g, signs.get(r.task_id, {}))
                if r.confidence is not None and correct is not None:
                    out.append(
                        {
                            "stage": stage,
                            "task_id": r.task_id,
                            "confidence": r.confidence,
                            "correct": correct,
                        }
                    )
    return out
