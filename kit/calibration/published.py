"""Published evaluation files of verifier-trained models (BioRLHF layout), and their claims
recomputed: per-answer reward, verifier scores, confidence.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ..errors import DataError, MissingError
from ..stats.estimate import band
from .ece import ECE, ece

WEIGHTS = {"V1": 0.35, "V2": 0.30, "V3": 0.15, "V4": 0.20}
CIRCULAR = ("V4",)  # scores the stated confidence against the outcome: no measure of calibration
NEEDED = frozenset(("confidence", "total_reward", "verifier_scores"))
THEIRS = [i * 0.1 for i in range(11)]  # a little above .3, .6 and .7
NAMED = 40  # characters of a file's name that tell it from the others


@dataclass(frozen=True, kw_only=True)
class Evaluation:
    """One evaluation file. conf, reward : (n,); scores : (n,) dicts verifier -> score; published,
    baseline : what the file itself says.
    """

    name: str
    conf: tuple[float, ...]
    reward: tuple[float, ...]
    scores: tuple[Mapping[str, float], ...]
    published: Mapping[str, Any] = field(default_factory=dict)
    baseline: Mapping[str, Any] = field(default_factory=dict)

    def correct(self, above: float = 0.5) -> list[bool]:
        """What that system called correct: total reward above 0.5, which contains the confidence
        through V4.
        """
        return [r > above for r in self.reward]

    def correct_without(self) -> list[float]:
        """Correctness from the other verifiers alone (NaN where none applies), so that it does not
        contain the confidence.
        """
        rest = map(score_without, self.scores)
        return [math.nan if math.isnan(x) else float(x > 0.5) for x in rest]


def score_without(row: Mapping[str, float | None], drop: Sequence[str] = CIRCULAR) -> float:
    """The composed score of one answer, sum(w s) / sum(w), over the verifiers that apply, without
    some; NaN where none is left.

    >>> score_without({"V1": 1.0, "V2": None, "V4": 0.0})
    1.0
    """
    used = {k: v for k, v in row.items() if v is not None and k not in drop}
    if strange := used.keys() - WEIGHTS.keys():
        raise DataError(
            f"{min(strange)!r} has no weight",
            where="verifier_scores",
            fix=f"known: {', '.join(WEIGHTS)}",
        )
    total = sum(WEIGHTS[k] for k in used)
    return sum(WEIGHTS[k] * v for k, v in used.items()) / total if total else math.nan


def read(path: str | Path) -> Evaluation:
    """Read one file; DataError names the file and the row."""
    path = Path(path)
    try:
        book = json.loads(path.read_text(encoding="utf-8"))
    except json.JSONDecodeError as e:
        raise DataError(f"broken JSON: {e.msg}", where=f"{path}, line {e.lineno}") from None
    rows = book.get("per_sample") if isinstance(book, dict) else None
    if not isinstance(rows, list) or not rows:
        raise DataError("no answers in this file", where=f"{path}, field per_sample")
    for i, r in enumerate(rows):
        if not isinstance(r, dict) or not r.keys() >= NEEDED:
            raise DataError(
                f"an answer lacks one of {', '.join(sorted(NEEDED))}",
                where=f"{path}, per_sample row {i}",
            )
    return Evaluation(
        name=path.stem,
        conf=tuple(r["confidence"] for r in rows),
        reward=tuple(r["total_reward"] for r in rows),
        scores=tuple(r["verifier_scores"] for r in rows),
        published=book.get("calibration") or {},
        baseline=book.get("baseline_comparison") or {},
    )


def find(folder: str | Path = "") -> list[Evaluation]:
    """All evaluation files of a folder (default: beside a checkout, ../shared/data/biorlhf), by
    name; [] when there are none.
    """
    from ..system import paths

    beside = paths.ROOT.parent / "shared" / "data" / "biorlhf"
    where = Path(folder).expanduser() if folder else beside
    if folder and not where.is_dir():
        raise MissingError(
            "there is no such folder",
            where=str(where),
            fix="leave biorlhf_dir empty, or give the folder of *_eval_*.json",
        )
    return [read(p) for p in sorted(where.glob("*_eval_*.json"))]


def recompute(files: Iterable[Evaluation], *, seed: int = 0) -> list[dict[str, Any]]:
    """One row per file: ECE with exact edges, with the edges as published, interval, null value."""
    rows = []
    for e in files:
        exact = ece(e.conf, e.correct(), bins=10, closed="left", seed=seed)
        theirs = ece(e.conf, e.correct(), edges=THEIRS, closed="left", n_boot=0)
        note = f"plug-in {exact.value:.6f}; with edges i*0.1 as published {theirs.value:.6f}"
        rows.append(
            {
                "file": e.name[:NAMED],
                "n": exact.n,
                "exact edges": exact.value,
                "as published": theirs.value,
                "low": exact.low,
                "high": exact.high,
                "calibrated": exact.null,
                "ece": exact,
                "note": note,
            }
        )
    return rows


def without_confidence(e: Evaluation, *, seed: int = 0) -> ECE:
    """ECE against a correctness that does not itself contain the confidence."""
    return ece(e.conf, e.correct_without(), bins=10, closed="left", seed=seed, missing="count")


def claim(e: Evaluation, honest: ECE) -> str:
    """What the recomputed interval says of the published comparison, in words."""
    before = e.baseline.get("sft_ece")
    after = e.published["ece"]
    holds = "it holds" if honest.low <= before <= honest.high else "it does not hold"
    return (
        f"published: SFT {before}, GRPO {after:.3f}. With n={honest.n} the interval for GRPO is "
        f"{band(honest.low, honest.high)}; {holds} the SFT value, and the SFT value has an "
        "interval of its own that was not published."
    )
