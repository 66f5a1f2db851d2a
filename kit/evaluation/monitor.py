"""What a training writes while it runs: steps.jsonl, a step a line; rollouts.jsonl, an answer a line."""

import json
import statistics
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from ..records import Grade, Response, Task, group
from ..records.tables import plain

STEPS, ROLLOUTS = "steps.jsonl", "rollouts.jsonl"
REWARD_TOLERANCE = 1e-6  # rewards of a group that differ by less are equal
Row = dict[str, Any]


class Log:
    """The two files of a run. All names of a row are TRL's own, or those of `summary`."""

    def __init__(self, out: Path, on_step: Callable[[Row], None] | None = None):
        self.out, self.on_step = out, on_step or (lambda row: None)
        self.latest: Row = {}

    def write(self, name: str, rows: Iterable[Row]) -> None:
        """Append rows to a file."""
        with open(self.out / name, "a", encoding="utf-8") as f:
            f.writelines(
                json.dumps(plain(row), ensure_ascii=False) + "\n" for row in rows
            )

    def rewind(self, step: int) -> None:
        """Drop what was written after a save point: it is written again."""
        for name in (STEPS, ROLLOUTS):
            # a kill may have come after the last save point
            rows = read_rows(self.out / name)
            (self.out / name).unlink(missing_ok=True)
            self.write(name, [row for row in rows if row["step"] <= step])

    def batch(
        self,
        step: int,
        answers: Sequence[Response],
        grades: Sequence[Grade],
        *,
        tasks: Mapping[str, Task],
        size: int,
        **more: float | None,
    ) -> None:
        """Store a step's answers with prompts (of `tasks` by id) and verdicts, and summarise them for its row.

        size : answers of a group.
        Further updates on these answers repeat the summary in their rows; its `batch` is the step that judged them.
        """
        self.write(
            ROLLOUTS,
            [
                {
                    "step": step,
                    "task_id": answer.task_id,
                    "prompt": tasks[answer.task_id].conversation,
                    "text": answer.text,
                    "reward": grade.score,
                    "low": grade.score_low,
                    "high": grade.score_high,
                    "truncated": answer.truncated,
                    "parts": grade.parts,
                    "verdicts": [
                        {
                            "id": v.criterion_id,
                            "status": v.status,
                            "value": v.value,
                            "failure": v.failure,
                        }
                        for v in grade.verdicts
                    ],
                }
                for answer, grade in zip(answers, grades, strict=True)
            ],
        )
        self.latest = summary(answers, grades, size) | more | {"batch": step}


def summary(answers: Sequence[Response], grades: Sequence[Grade], size: int) -> Row:
    """Numbers on one batch; each `size` answers are a group.

    mixed, good, bad, unknown : groups whose rewards differ, are all at the top, all below it, or not known.
    """
    scores = known_scores(grades)
    return {
        "reward": statistics.fmean(scores) if scores else None,
        "answers": len(grades),
        "unknown_rewards": len(grades) - len(scores),
        # a prompt that comes twice has two groups
        "groups": health((n // size, grade) for n, grade in enumerate(grades)),
        "words": statistics.fmean(len(a.text.split()) for a in answers),
        "truncated": statistics.fmean(a.truncated for a in answers),
        "parts": part_means(grades),
    }


def known_scores(grades: Iterable[Grade]) -> list[float]:
    """The rewards that are known."""
    return [g.score for g in grades if g.score is not None]


def part_means(grades: Iterable[Grade]) -> dict[str, float]:
    """The mean of each part of the reward, over the answers where it is known."""
    parts = [part for g in grades for part in g.parts.items()]
    values = group((name, value) for name, value in parts if value is not None)
    return dict(zip(values, map(statistics.fmean, values.values()), strict=True))


def health(pairs: Iterable[tuple[object, Grade]]) -> dict[str, int]:
    """How many groups are mixed, good, bad or unknown, of (group, grade) pairs."""
    counts = dict.fromkeys(("mixed", "good", "bad", "unknown"), 0)
    for grades in group(pairs).values():
        scores = known_scores(grades)
        # a reward of 10 is the top where rewards are scaled
        top = max(g.meta.get("range", (0.0, 1.0))[1] for g in grades)
        # one known reward has nothing to be compared with
        if len(scores) < 2:
            counts["unknown"] += 1
        elif max(scores) - min(scores) > REWARD_TOLERANCE:
            counts["mixed"] += 1
        else:
            counts["good" if scores[0] >= top - REWARD_TOLERANCE else "bad"] += 1
    return counts


def read_rows(path: Path) -> list[Row]:
    """The rows of one of the files. A last line that a kill cut short is left out."""
    # a whole line ends with a line feed, so what is behind the last one is empty or cut
    return list(
        map(
            json.loads,
            (path.read_text("utf-8") if path.exists() else "").split("\n")[:-1],
        )
    )
