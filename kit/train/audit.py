"""A second judge looks at a sample of the answers while training runs; an alarm when reward rises
and audited quality does not.
"""

from __future__ import annotations

import logging
import random
import statistics
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from ..errors import JudgeDownError
from ..records import Response
from .reward import Reward
from .rollouts import Log

RISE = 0.05  # a training reward that rose by less than this needs no explanation
logger = logging.getLogger(__name__)


@dataclass
class Audit:
    """Grades a share of the answers of every N-th step with another judge, on the same rubric.

    alarm : None, or what is wrong, in one sentence with its numbers.
    """

    reward: Reward
    log: Log
    every: int
    share: float
    seed: int = 0
    rows: list[dict[str, Any]] = field(default_factory=list)
    alarm: str | None = None

    def resume(self, rows: Sequence[dict[str, Any]]) -> None:
        """Take over the audits of an interrupted run."""
        self.rows = list(rows)
        self.alarm = next((r["alarm"] for r in self.rows if r.get("alarm")), None)

    def check(self, step: int, answers: Sequence[dict[str, Any]]) -> dict[str, Any]:
        """Audit one step's rollout rows; appends to audits.jsonl and sets `alarm`."""
        from .answers import wait

        known = [a for a in answers if a["reward"] is not None]
        count = min(len(known), max(1, round(self.share * len(known))))
        picked = random.Random(f"{self.seed}/{step}").sample(known, count) if known else []
        answered = [
            Response(
                task_id=a["task_id"], id=a["response_id"], text=a["text"], truncated=a["truncated"]
            )
            for a in picked
        ]
        try:
            scores = [g.score for g in wait(self.reward.grade(answered))]
        except JudgeDownError as e:  # a dead auditor stops no training: the audit is unknown
            logger.warning("judge audit at step %d: %s", step, e.what)
            scores = [None] * len(picked)
        pairs = [(a["reward"], s) for a, s in zip(picked, scores, strict=True) if s is not None]
        row = {
            "step": step,
            "answers": len(pairs),
            "unknown": len(picked) - len(pairs),
            "training": statistics.fmean(p[0] for p in pairs) if pairs else None,
            "audit": statistics.fmean(p[1] for p in pairs) if pairs else None,
        }
        self.rows.append(row)
        self.alarm = self.alarm or judge_rows(self.rows)
        row["alarm"] = self.alarm
        self.log.append([row])
        return row


def judge_rows(rows: Sequence[dict[str, Any]]) -> str | None:
    """The alarm for a sequence of audits: the later half's training reward rose, the audited reward
    did not.

    >>> paid, seen = (0.2, 0.3, 0.8, 0.9), (0.2, 0.2, 0.1, 0.2)
    >>> judge_rows([{"training": t, "audit": a} for t, a in zip(paid, seen, strict=True)])
    'the training reward rose by 0.60, the audited reward by -0.05, over 4 audits'
    """
    known = [r for r in rows if r.get("training") is not None and r.get("audit") is not None]
    if len(known) < 4:
        return None
    half = len(known) // 2
    rise = {
        k: statistics.fmean(r[k] for r in known[-half:])
        - statistics.fmean(r[k] for r in known[:half])
        for k in ("training", "audit")
    }
    if rise["training"] < RISE or rise["audit"] > 0.2 * rise["training"]:
        return None
    return (
        f"the training reward rose by {rise['training']:.2f}, "
        f"the audited reward by {rise['audit']:.2f}, over {len(known)} audits"
    )
