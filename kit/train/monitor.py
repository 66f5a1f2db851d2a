"""Per-step monitoring: one row of steps.jsonl from trl's own numbers, the answers of the step, and the time split."""

from __future__ import annotations

import logging
import math
import statistics
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from transformers import TrainerCallback

from ..system import progress
from . import padding, rollouts, sentinels, world

if TYPE_CHECKING:
    from .grpo import _Run

logger = logging.getLogger(__name__)


class StepLog(TrainerCallback):
    """Collects what happened in a step and writes it when trl logs; drives the progress bar and the live view."""

    def __init__(self, run: _Run):
        self.run, self.log = run, rollouts.Log(run.out / rollouts.STEPS)
        self.rows: list[dict[str, Any]] = []
        self.summary: dict[str, Any] = summary(())
        self.bar: Any = None
        self.began = time.perf_counter()
        self.before = {"generation": 0.0, "judge": 0.0, "kit": 0.0}
        self.alarms: list[str] = []

    def on_batch(self, step: int, rows: Sequence[dict[str, Any]]) -> None:
        """The answers of a batch, as written to the rollout log."""
        self.rows, self.summary = list(rows), summary(rows)

    def on_train_begin(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        self.bar = (
            progress.bar(total=args.max_steps, initial=state.global_step, desc="GRPO", unit="step")
            if world.main()
            else None
        )
        self.began = time.perf_counter()

    def on_train_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        if self.bar is not None:
            self.bar.close()

    def on_log(self, args: Any, state: Any, control: Any, logs: Any = None, **kwargs: Any) -> None:
        """One row per step, of the answers of all processes; trl logs at every step."""
        if not logs or "reward" not in logs or not world.main():
            return
        now, times = (
            time.perf_counter(),
            self.run.trainer.kit_times,
        )  # what this call itself takes counts into the next step
        spent = {k: times[k] - self.before[k] for k in self.before}
        total, self.began, self.before = now - self.began, now, dict(times)
        row = {
            "step": state.global_step,
            "time": time.time(),
            **self.summary,
            "entropy": logs.get("entropy"),
            "kl": logs.get("kl"),
            "clip": logs.get("clip_ratio/region_mean"),
            "grad_norm": logs.get("grad_norm"),
            "lr": logs.get("learning_rate"),
            "loss": logs.get("loss"),
            "seconds": total,
            "seconds_generation": spent["generation"],
            "seconds_judge": spent["judge"],
            "seconds_kit": spent["kit"],
            "seconds_update": max(0.0, total - sum(spent.values())),
            "alarms": list(self.alarms),
            "judge_cost": self.run.reward.bill.cost,
            "judge_calls": self.run.reward.bill.calls,
            "skipped_rows": self.run.trainer.kit_skipped,
            "seconds_left": total * (args.max_steps - state.global_step),
        }
        self.log.append([row])
        if self.bar is not None:
            self.bar.update(1)
            reward = row["reward"]
            self.bar.set_postfix_str(
                "reward unknown"
                if reward is None
                else f"reward {reward:.3f}, {row['words']:.0f} words"
            )
        if self.run.on_step is not None:
            self.run.on_step(row)
        times["kit"] += time.perf_counter() - now

    def on_step_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        """Sentinels, at every step; audit and held-out evaluation, every N steps."""
        step, settings = state.global_step, self.run.settings
        for name, watch in (("sentinels", self.run.watch), ("padding", self.run.growth)):
            watch.check(self.summary)
            self._alarm(control, name, watch.alarm, settings.sentinel_stop)
        if self.run.audit is not None and step % self.run.audit.every == 0 and world.size() == 1:
            self.run.audit.check(step, self.rows)
            self._alarm(control, "judge audit", self.run.audit.alarm, settings.audit_stop)
        if (
            settings.eval_every
            and step % settings.eval_every == 0
            and step < args.max_steps
            and self.run.heldout
        ):
            e = self.run.evaluate(f"step{step}", step)
            r = e.reward()
            rollouts.Log(self.run.out / "evals.jsonl").append(
                [
                    {
                        "step": step,
                        "reward": r.value,
                        "low": r.low,
                        "high": r.high,
                        "n": r.n,
                        "prompts": r.n_clusters,
                    }
                ]
            )

    def _alarm(self, control: Any, name: str, alarm: str | None, stop: bool) -> None:
        """Say an alarm once, keep it for the rows of steps.jsonl, and end the training where that is set."""
        if not alarm:
            return
        text = f"{name}: {alarm}"
        if text not in self.alarms:
            self.alarms.append(text)
            logger.warning("%s", text)
        if stop:
            self.run.stopped = self.run.stopped or text
            control.should_training_stop = True


def summary(rows: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Reward with its interval (t over groups), group health, lengths, padding and unknown share of one batch's rollout rows."""
    groups: dict[str, list[float | None]] = {}
    for r in rows:
        groups.setdefault(r["task_id"], []).append(r["reward"])
    known = [r["reward"] for r in rows if r["reward"] is not None]
    h = rollouts.health(groups.values())
    verdicts = [v for r in rows for v in r["verdicts"]]
    criteria: dict[str, list[float]] = {}
    for v in verdicts:
        if v.get("value") is not None:
            criteria.setdefault(v["id"], []).append(v["value"])
    half = 1.96 * statistics.stdev(known) / math.sqrt(len(known)) if len(known) > 1 else math.nan
    mean = statistics.fmean(known) if known else None
    words = [len(r["text"].split()) for r in rows]
    return {
        "reward": mean,
        "reward_low": mean - half if known else None,
        "reward_high": mean + half if known else None,
        "answers": len(rows),
        "unknown_rewards": len(rows) - len(known),
        "groups": h.total,
        "mixed": h.mixed,
        "good": h.good,
        "bad": h.bad,
        "flat": h.flat,
        "groups_unknown": h.unknown,
        "words": statistics.fmean(words) if words else None,
        "tokens": statistics.fmean(r["tokens"] for r in rows) if rows else None,
        "truncated": statistics.fmean(float(r["truncated"]) for r in rows) if rows else None,
        "unknown_verdicts": sum(v["status"] == "unknown" for v in verdicts) / len(verdicts)
        if verdicts
        else None,
        "flagged": sum(bool(r.get("sentinels")) for r in rows),
        "sentinels": sentinels.count(r.get("sentinels") or () for r in rows),
        "criteria": {k: statistics.fmean(v) for k, v in criteria.items()},
        **padding.measure(rows),
    }


class LossLog(TrainerCallback):
    """One row per step of a supervised stage: loss, learning rate, and DPO's margins where there are any."""

    def __init__(self, log: rollouts.Log, on_step: Any, stage: str):
        self.log, self.call, self.stage = log, on_step, stage
        self.bar: Any = None

    def on_train_begin(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        self.bar = progress.bar(
            total=args.max_steps, initial=state.global_step, desc=self.stage.upper(), unit="step"
        )

    def on_train_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        self.bar.close()

    def on_log(self, args: Any, state: Any, control: Any, logs: Any = None, **kwargs: Any) -> None:
        """trl logs at every step."""
        if not logs or "loss" not in logs:
            return
        row = {
            "step": state.global_step,
            "time": time.time(),
            "loss": logs["loss"],
            "lr": logs.get("learning_rate"),
            "grad_norm": logs.get("grad_norm"),
            "margin": logs.get("rewards/margins"),
            "accuracy": logs.get("rewards/accuracies"),
            "entropy": logs.get("entropy"),
        }
        self.log.append([row])
        if self.bar is not None:
            self.bar.update(1)
        if self.call is not None:
            self.call(row)
