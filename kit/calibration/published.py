"""Published evaluation files of verifier-trained models (BioRLHF layout): per-answer reward,
verifier scores, confidence.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ..errors import DataError, MissingError

# Which verifier of that system read the stated confidence: V4 scores confidence against the
# outcome.
READS_CONFIDENCE = {
    "V1": ["answer"],
    "V2": ["answer"],
    "V3": ["answer"],
    "V4": ["confidence", "truth"],
}
WEIGHTS = {"V1": 0.35, "V2": 0.30, "V3": 0.15, "V4": 0.20}


@dataclass(frozen=True, kw_only=True)
class Evaluation:
    """One evaluation file. conf, reward : (n,); scores : (n,) dicts verifier -> score; published :
    what the file itself says.
    """

    name: str
    conf: tuple[float, ...]
    reward: tuple[float, ...]
    scores: tuple[Mapping[str, float], ...]
    prompts: tuple[str, ...]
    published: Mapping[str, Any] = field(default_factory=dict)
    baseline: Mapping[str, Any] = field(default_factory=dict)

    def correct(self, above: float = 0.5) -> list[bool]:
        """What that system called correct: total reward above 0.5, which contains the confidence
        through V4.
        """
        return [r > above for r in self.reward]

    def correct_without(self, drop: tuple[str, ...] = ("V4",), above: float = 0.5) -> list[float]:
        """Correctness from the other verifiers alone (NaN where none applies), so that it does not
        contain the confidence.
        """
        from .circular import score_without

        rest = score_without(self.scores, weights=WEIGHTS, drop=drop)
        return [float("nan") if x != x else float(x > above) for x in rest]


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
        if not isinstance(r, dict) or not {"confidence", "total_reward", "verifier_scores"} <= set(
            r
        ):
            raise DataError(
                "an answer lacks confidence, total_reward or verifier_scores",
                where=f"{path}, per_sample row {i}",
            )
    return Evaluation(
        name=path.stem,
        conf=tuple(r["confidence"] for r in rows),
        reward=tuple(r["total_reward"] for r in rows),
        scores=tuple(r["verifier_scores"] for r in rows),
        prompts=tuple(str(r.get("prompt", "")) for r in rows),
        published=book.get("calibration") or {},
        baseline=book.get("baseline_comparison") or {},
    )


def find(folder: str | Path = "") -> list[Evaluation]:
    """All evaluation files of a folder (default: beside a checkout, ../shared/data/biorlhf), by
    name; [] when there are none.
    """
    from ..system import paths

    where = (
        Path(folder).expanduser() if folder else paths.ROOT.parent / "shared" / "data" / "biorlhf"
    )
    if folder and not where.is_dir():
        raise MissingError(
            "there is no such folder",
            where=str(where),
            fix="leave biorlhf_dir empty, or give the folder of *_eval_*.json",
        )
    return [read(p) for p in sorted(where.glob("*_eval_*.json"))]
