"""What a training writes while it runs: steps.jsonl, a step a line; rollouts.jsonl, an answer a line."""

from __future__ import annotations

import json
import statistics
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from ..records import Grade, Response, Task, group
from ..records.tables import plain

STEPS, ROLLOUTS = "steps.jsonl", "rollouts.jsonl"
EQUAL = 1e-6  # rewards of a group that differ by less are equal


class Log:
    """The two files of a run. All names of a row are TRL's own, or those of `summary`."""

    def __init__(
        self, out: Path, on_step: Callable[[dict[str, Any]], None] | None = None
    ):
        self.out, self.on_step = out, on_step or (lambda row: None)
        self.latest: dict[str, Any] = {}

    def write(self, name: str, rows: Sequence[dict[str, Any]]) -> None:
        """Append rows to a file."""
        with open(self.out / name, "a", encoding="utf-8") as f:
            f.writelines(
                json.dumps(plain(r), ensure_ascii=False) + "\n" for r in rows
            )

    def rewind(self, step: int) -> None:
        """Drop what was written after a save point: it is written again."""
        for name in (STEPS, ROLLOUTS):
            # a kill may have come after the last save point
            rows = [r for r in read_rows(self.out / name) if r["step"] <= step]
            (self.out / name).unlink(missing_ok=True)
            self.write(name, rows)

    def batch(
        self,
        step: int,
        answers: Sequence[Response],
        grades: Sequence[Grade],
        *,
        tasks: Mapping[str, Task],
        size: int,
        **more: Any,
    ) -> None:
        """Store a step's answers with prompts (of `tasks` by id) and verdicts, and summarise them for its row.

        size : answers of a group.
        Further updates on these answers repeat the summary in their rows; its `batch` is the step that judged them.
        """
        rows = [
            {
                "step": step,
                "task_id": a.task_id,
                "prompt": tasks[a.task_id].conversation,
                "text": a.text,
                "reward": g.score,
                "low": g.score_low,
                "high": g.score_high,
                "truncated": a.truncated,
                "parts": dict(g.parts),
                "verdicts": [
                    {
                        "id": v.criterion_id,
                        "status": v.status,
                        "value": v.value,
                        "failure": v.failure,
                    }
                    for v in g.verdicts
                ],
            }
            for a, g in zip(answers, grades, strict=True)
        ]
        self.write(ROLLOUTS, rows)
        self.latest = summary(answers, grades, size) | more | {"batch": step}


def summary(
    answers: Sequence[Response], grades: Sequence[Grade], size: int
) -> dict[str, Any]:
    """Numbers on one batch; each `size` answers are a group.

    mixed, good, bad, unknown : groups whose rewards differ, are all at the top, all below it, or not known.
    """
    scores = [g.score for g in grades if g.score is not None]
    # a prompt that comes twice has two groups
    groups = health((n // size, g) for n, g in enumerate(grades))
    return {
        "reward": statistics.fmean(scores) if scores else None,
        "answers": len(grades),
        "unknown_rewards": len(grades) - len(scores),
        "groups": groups,
        "words": statistics.fmean(len(a.text.split()) for a in answers),
        "truncated": statistics.fmean(a.truncated for a in answers),
        "parts": {k: statistics.fmean(v) for k, v in parts_of(grades).items()},
    }


def parts_of(grades: Sequence[Grade]) -> dict[str, list[float]]:
    """The known values of each part of the reward."""
    return group(
        (k, x) for g in grades for k, x in g.parts.items() if x is not None
    )


def health(pairs: Any) -> dict[str, int]:
    """How many groups are mixed, good, bad or unknown, of (group, grade) pairs."""
    out = dict.fromkeys(("mixed", "good", "bad", "unknown"), 0)
    for grades in group(pairs).values():
        scores = [g.score for g in grades if g.score is not None]
        # a reward of 10 is the top where rewards are scaled
        top = max(g.meta.get("range", (0.0, 1.0))[1] for g in grades)
        # one known reward has nothing to be compared with
        if len(scores) < 2:
            out["unknown"] += 1
        elif max(scores) - min(scores) > EQUAL:
            out["mixed"] += 1
        else:
            out["good" if scores[0] >= top - EQUAL else "bad"] += 1
    return out


def read_rows(path: Path) -> list[dict[str, Any]]:
    """The rows of one of the files. A last line that a kill cut short is left out."""
    text = path.read_text("utf-8") if path.exists() else ""
    # a whole line ends with a line feed, so what is behind the last one is empty or cut
    *lines, _ = text.split("\n")
    return [json.loads(line) for line in lines]
