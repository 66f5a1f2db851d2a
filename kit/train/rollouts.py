"""The rollout log: one JSON line per answer, appended while training, readable at any time; and one
line per step.

After a resume the steps past the checkpoint are run again: a marker line tells the reader to forget
the stale ones.
"""

from __future__ import annotations

import json
import math
import os
import statistics
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..records import Grade, Response
from ..runs import plain
from ..system.paths import write_text

ROLLOUTS, STEPS, METRICS = "rollouts.jsonl", "steps.jsonl", "metrics.json"
SETTINGS, CHAIN = "settings.json", "chain.json"  # the mark of a single stage, of a chain


class Log:
    """An append-only JSONL file; a half-written last line of a killed run is cut off before
    appending.
    """

    def __init__(self, path: Path):
        self.path = path
        path.parent.mkdir(parents=True, exist_ok=True)
        if path.exists():
            data = path.read_bytes()
            if data and not data.endswith(b"\n"):
                with open(path, "r+b") as f:
                    f.truncate(data.rfind(b"\n") + 1)

    def append(self, rows: Iterable[Mapping[str, Any]]) -> None:
        """Write rows in one go and flush them to the system."""
        text = "".join(json.dumps(plain(dict(r))) + "\n" for r in rows)
        with open(self.path, "a", encoding="utf-8") as f:
            f.write(text)
            f.flush()
            os.fsync(f.fileno())

    def rewind(self, step: int) -> None:
        """Mark that the run goes on from `step`: later rows written before this line are void."""
        if self.path.exists():
            self.append([{"resume_from": step}])


def read(path: str | Path) -> list[dict[str, Any]]:
    """The valid rows of a log in order; a torn last line and rows overtaken by a resume are left
    out.

    path : the file, or the run's folder (then its rollouts).
    """
    path = Path(path)
    path = path / ROLLOUTS if path.is_dir() else path
    rows: list[dict[str, Any]] = []
    if not path.exists():
        return rows
    for line in path.read_text("utf-8").split("\n"):  # an answer may hold U+2028
        try:
            row = json.loads(line)
        except ValueError:
            continue
        if "resume_from" in row:
            rows = [r for r in rows if r.get("step", 0) <= row["resume_from"]]
        else:
            rows.append(row)
    return rows


def read_steps(folder: str | Path) -> list[dict[str, Any]]:
    """The per-step rows of a run's folder."""
    return read(Path(folder) / STEPS)


def spent(steps: Iterable[Mapping[str, Any]]) -> float:
    """Seconds of training that rows of steps.jsonl hold."""
    return sum(row.get("seconds") or 0.0 for row in steps)


def record(folder: Path, metrics: dict[str, Any], *, begun: int) -> dict[str, Any]:
    """Write metrics.json. begun : the step that this process went on from; where no step followed,
    the seconds on record stay.
    """
    path = folder / METRICS
    if begun == metrics["steps"] and path.exists():
        old = json.loads(path.read_text("utf-8"))
        metrics = metrics | {k: v for k, v in old.items() if k.startswith("seconds_")}
    write_text(path, json.dumps(metrics, indent=2, ensure_ascii=False))
    return metrics


def row(
    step: int,
    response: Response,
    grade: Grade,
    *,
    advantage: float | None,
    tokens: int,
    seconds: float,
    sentinels: Sequence[str] = (),
) -> dict[str, Any]:
    """One line of the rollout log."""
    return {
        "step": step,
        "task_id": response.task_id,
        "response_id": response.id,
        "text": response.text,
        "reward": grade.score,
        "reward_low": grade.score_low,
        "reward_high": grade.score_high,
        "advantage": advantage,
        "truncated": response.truncated,
        "tokens": tokens,
        "parts": dict(grade.parts),
        "seconds": round(seconds, 3),
        "sentinels": list(sentinels),
        "range": grade.meta.get("range"),
        "excluded": grade.meta.get("excluded"),
        "verdicts": [
            {
                k: v
                for k, v in (
                    ("id", v.criterion_id),
                    ("status", v.status),
                    ("p", v.p),
                    ("value", v.value),
                    ("judge", v.judge),
                    ("failure", v.failure),
                    ("cached", v.cached or None),
                )
                if v is not None
            }
            for v in grade.verdicts
        ],
    }


def mean(values: Iterable[float]) -> float | None:
    """The mean; None where there is nothing."""
    found = [float(v) for v in values]
    return statistics.fmean(found) if found else None


def span(
    ranges: Sequence[Sequence[float] | None], rewards: Sequence[float | None]
) -> tuple[float, float]:
    """The lowest and the highest that rewards of prompts with these ranges can be; infinite ends
    where a range is unknown or a point, or a penalty led beyond it.

    >>> span([(0, 1), (-1, 1)], [0.5, None]), span([(0, 1)], [-0.2]), span([None], [1])
    ((-1, 1), (-inf, inf), (-inf, inf))
    """
    if not ranges or not all(ranges):
        return -math.inf, math.inf
    low = min(r[0] for r in ranges if r)
    high = max(r[1] for r in ranges if r)
    inside = all(low - 1e-9 <= x <= high + 1e-9 for x in rewards if x is not None)
    return (low, high) if inside and low < high else (-math.inf, math.inf)


@dataclass(frozen=True, kw_only=True)
class Result:
    """What a training left behind: adapter/ in `out`, one row per step, metrics.json."""

    out: Path
    settings: Any
    metrics: dict[str, Any]

    @property
    def adapter(self) -> Path:
        """The folder of the trained adapter."""
        return self.out / "adapter"

    def steps(self) -> list[dict[str, Any]]:
        """One row per step: the loss, and what the stage has beside it (margins; rewards, KL)."""
        return read_steps(self.out)


def health(
    groups: Iterable[Iterable[float | None]],
    *,
    ranges: Iterable[tuple[float, float]] | None = None,
) -> Counter[str]:
    """Groups of one step, counted by what they can teach: "mixed" rewards, which alone have a
    gradient, all at the top ("good") or the bottom ("bad") of what the prompt allows, all equal
    between ("flat"), none known ("unknown"). Rewards within 1e-6 are equal, unknown ones left out.

    ranges : lowest and highest reward that each group's prompt allows (default [0, 1]).

    >>> health([[1, 1], [0, 1], [0, 0], [0.5, 0.5], [None, None]]).total()
    5
    >>> health([[1, 1], [0, 0]], ranges=[(0, 10), (-1, 1)])
    Counter({'flat': 2})
    """
    groups = [[r for r in g if r is not None] for g in groups]
    ends = [(0.0, 1.0)] * len(groups) if ranges is None else list(ranges)
    return Counter(_kind(g, *e) for g, e in zip(groups, ends, strict=True))


def _kind(known: Sequence[float], bottom: float, top: float) -> str:
    if not known:
        return "unknown"
    if max(known) - min(known) > 1e-6:
        return "mixed"
    if known[0] >= top - 1e-6 and bottom < top:
        return "good"
    return "bad" if known[0] <= bottom + 1e-6 and bottom < top else "flat"
