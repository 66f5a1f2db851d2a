"""Per-step monitoring: one row of steps.jsonl from trl's own numbers, the answers of the step, and
the time split.
"""

from __future__ import annotations

import logging
import statistics
import time
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from transformers import TrainerCallback

from ..records import grouped
from ..rewards.contrast import NONE, spreads
from ..stats import macro_mean
from ..system import progress
from . import audit, evaluation, rollouts, world
from .config import GRPOSettings
from .reward import Bill

logger = logging.getLogger(__name__)
BLIND_STEPS = 3  # batches without one known reward, from the start on, that end a run
TIMES = ("generation", "judge", "kit")


class Bar(TrainerCallback):
    """The progress bar of a training, in the process that writes."""

    title = "GRPO"

    def on_train_begin(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        own = {} if world.main() else {"disable": True}
        self.bar = progress.bar(
            total=args.max_steps,
            initial=state.global_step,
            desc=self.title,
            unit="step",
            **own,
        )
        self.began = time.perf_counter()

    def on_train_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        self.bar.close()


class StepLog(Bar):
    """Collects what happened in a step and writes it when trl logs; drives the progress bar and the
    live view.

    names : evaluation.row_names of the tasks; evaluate : called with a name and a step, for
    `settings.eval_every`; None where nothing is held out.
    stopped : the alarm that ended the training; blind : why no reward was ever known, None as soon
    as one is.
    """

    def __init__(
        self,
        *,
        out: Path,
        settings: GRPOSettings,
        bill: Bill,
        watch: audit.Watch,
        names: evaluation.Names | None = None,
        audit: Any = None,
        evaluate: Callable[[str, int], Any] | None = None,
        on_step: Callable[[dict[str, Any]], None] | None = None,
    ):
        self.out, self.settings, self.bill = out, settings, bill
        self.watch, self.audit = watch, audit
        self.names = names or {}
        self.evaluate, self.call = evaluate, on_step or (lambda row: None)
        self.log = rollouts.Log(out / rollouts.STEPS)
        self.trainer: Any = None  # set when it is made
        self.rows: list[dict[str, Any]] = []
        self.summary: dict[str, Any] = summary(())
        self.batch, self.blind_steps, self.known = 0, 0, 0
        self.blind: str | None = None
        self.stopped: str | None = None
        self.before = dict.fromkeys(TIMES, 0.0)
        self.alarms: list[str] = []
        self.spent_before = 0.0  # seconds of training by the processes before

    def resume(self, step: int) -> None:
        """Take over what the logs of an interrupted run say, up to `step`."""
        done = [row for row in rollouts.read_steps(self.out) if row["step"] <= step]
        self.spent_before = rollouts.spent(done)
        self.alarms = list(done[-1].get("alarms") or ()) if done else []
        for row in done:
            if row.get("batch", row["step"]) == row["step"]:
                self._ended("sentinels", self.watch.check(row), self.settings.sentinel_stop)
                self.known += row["answers"] - row["unknown_rewards"]
        rows = rollouts.read(self.out)
        last = max((r["step"] for r in rows), default=0)
        self.rows = [r for r in rows if r["step"] == last]
        self.batch, self.summary = last, self._summary(self.rows)
        if self.audit is not None:
            self.audit.resume(rollouts.read(self.out / "audits.jsonl"))
            self._ended("judge audit", self.audit.alarm, self.settings.audit_stop)

    def on_batch(self, step: int, rows: Sequence[dict[str, Any]]) -> None:
        """The answers of a batch, as written to the rollout log."""
        self.rows, self.summary, self.batch = list(rows), self._summary(rows), step

    def _summary(self, rows: Sequence[dict[str, Any]]) -> dict[str, Any]:
        return summary(rows, self.names, self.settings.group_size)

    def on_log(self, args: Any, state: Any, control: Any, logs: Any = None, **kwargs: Any) -> None:
        """One row per step, of the answers of all processes; trl logs at every step."""
        if not logs or "loss" not in logs or not world.main():
            return
        now = time.perf_counter()  # what this call itself takes counts into the next step
        row = self._row(state.global_step, args.max_steps, logs, now)
        self.log.append([row])
        self._show(row)
        self.call(row)
        self.trainer.kit_times["kit"] += time.perf_counter() - now

    def _row(self, step: int, steps: int, logs: dict[str, Any], now: float) -> dict[str, Any]:
        times = self.trainer.kit_times
        spent = {k: times[k] - self.before[k] for k in TIMES}
        total, self.began, self.before = now - self.began, now, dict(times)
        skipped, self.trainer.kit_skipped = self.trainer.kit_skipped, 0
        return {
            "step": step,
            "batch": self.batch,
            "time": time.time(),
            **self.summary,
            "entropy": logs.get("entropy"),
            "kl": logs.get("kl"),
            "clip": logs.get("clip_ratio/region_mean", logs.get("cispo_clip_ratio")),
            "grad_norm": logs.get("grad_norm"),
            "lr": logs.get("learning_rate"),
            "loss": logs.get("loss"),
            "seconds": total,
            **{f"seconds_{k}": v for k, v in spent.items()},
            "seconds_update": max(0.0, total - sum(spent.values())),
            "alarms": list(self.alarms),
            "judge_cost": self.bill.cost,
            "judge_calls": self.bill.calls,
            "skipped_rows": skipped,
            "seconds_left": total * (steps - step),
        }

    def _show(self, row: dict[str, Any]) -> None:
        self.bar.update(1)
        reward, words = row["reward"], row["words"]
        said = "reward unknown" if reward is None else f"reward {reward:.3f}, {words:.0f} words"
        self.bar.set_postfix_str(said)

    def on_step_begin(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        """Held-out evaluation, every N steps: of the step before, which is logged by now, so that
        a run that stops here goes on here.
        """
        step, every = state.global_step, self.settings.eval_every
        if self.evaluate and every and step and step % every == 0:
            r = self.evaluate(f"step{step}", step).reward()
            row = {"step": step, "reward": r.value, "low": r.low, "high": r.high, "n": r.n}
            rollouts.Log(self.out / "evals.jsonl").append([{**row, "prompts": r.n_clusters}])

    def on_step_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        """Sentinels and unknown rewards, at every new batch; the audit, every N steps."""
        step = state.global_step
        if self.batch == step:
            self._look(control, step, args.max_steps)
        if self.audit is not None and step % self.audit.every == 0 and world.size() == 1:
            self.audit.check(step, self.rows)
            self._alarm(control, "judge audit", self.audit.alarm, self.settings.audit_stop)

    def _look(self, control: Any, step: int, steps: int) -> None:
        alarm = self.watch.check(self.summary)
        self._alarm(control, "sentinels", alarm, self.settings.sentinel_stop)
        if self.settings.truncated == "mask" and self.summary["truncated"] == 1.0:
            logger.warning("step %d: every answer is cut and masked, nothing is learned", step)
        unknown = self.summary["unknown_rewards"]
        self.known += self.summary["answers"] - unknown
        if not unknown or unknown < self.summary["answers"]:
            return
        self.blind_steps += 1
        why = reasons(self.rows)
        logger.warning("step %d: every reward is unknown, nothing is learned (%s)", step, why)
        if not self.known:
            self.blind = why
            control.should_training_stop |= self.blind_steps >= min(BLIND_STEPS, steps)

    def _alarm(self, control: Any, name: str, alarm: str | None, stop: bool) -> None:
        """Say an alarm once, keep it for the rows of steps.jsonl, and end the training where that
        is set.
        """
        if not alarm:
            return
        text = f"{name}: {alarm}"
        if text not in self.alarms:
            self.alarms.append(text)
            logger.warning("%s", text)
        control.should_training_stop |= self._ended(name, alarm, stop)

    def _ended(self, name: str, alarm: str | None, stop: bool) -> bool:
        """Whether this alarm ends the run; kept, so that a resumed run trains no step more."""
        if alarm and stop:
            self.stopped = self.stopped or f"{name}: {alarm}"
        return bool(alarm and stop)


def reasons(rows: Sequence[dict[str, Any]]) -> str:
    """Why rewards are unknown, counted: the composer's reason, then the failures of verdicts.

    >>> reasons([{"excluded": "nothing applies", "verdicts": []}] * 2)
    'nothing applies: 2 answers'
    """
    why = Counter(r.get("excluded") or "no reward" for r in rows)
    failed = Counter(v["failure"] for r in rows for v in r["verdicts"] if v.get("failure"))
    parts = [f"{k}: {n} answers" for k, n in why.most_common(3)]
    return ", ".join(parts + [f"{k}: {n} verdicts" for k, n in failed.most_common(3)])


def summary(
    rows: Sequence[dict[str, Any]], names: evaluation.Names | None = None, size: int = 0
) -> dict[str, Any]:
    """One batch's rollout rows: reward with its interval (t over prompts), group health, lengths,
    unknown share.

    reward : mean over prompts of their answers' mean, as in the evaluation; the interval is None
    for a single prompt. saturated : share of the groups' criteria that all their answers meet
    alike: they teach nothing. size : of a group, in whose order the rows come; 0: a prompt has one.
    """
    groups = grouped((i // size if size else r["task_id"], r) for i, r in enumerate(rows))
    unknown = sum(r["reward"] is None for r in rows)
    rewards = [r["reward"] for r in rows]
    bounds = rollouts.span([r.get("range") for r in rows], rewards)
    reward = macro_mean(rewards, cluster=[r["task_id"] for r in rows], bounds=bounds)
    h = rollouts.health(
        [[r["reward"] for r in g] for g in groups.values()],
        ranges=[g[0].get("range") or (0.0, 1.0) for g in groups.values()],
    )
    verdicts = [v for r in rows for v in r["verdicts"]]
    said = ([(v["id"], v.get("value")) for r in g for v in r["verdicts"]] for g in groups.values())
    spread = [s for pairs in said for s in spreads(pairs).values()]
    return {
        "reward": _known(reward.value),
        "reward_low": _known(reward.low),
        "reward_high": _known(reward.high),
        "answers": len(rows),
        "unknown_rewards": unknown,
        "groups": h.total(),
        "mixed": h["mixed"],
        "good": h["good"],
        "bad": h["bad"],
        "flat": h["flat"],
        "groups_unknown": h["unknown"],
        "words": rollouts.mean(len(r["text"].split()) for r in rows),
        "tokens": rollouts.mean(r["tokens"] for r in rows),
        "truncated": rollouts.mean(float(r["truncated"]) for r in rows),
        "unknown_verdicts": rollouts.mean(v["status"] == "unknown" for v in verdicts),
        "flagged": sum(bool(r.get("sentinels")) for r in rows),
        "sentinels": audit.count(r.get("sentinels") or () for r in rows),
        "criteria": _criteria(rows, names or {}),
        "saturated": rollouts.mean(s < NONE for s in spread),
    }


def _criteria(rows: Sequence[dict[str, Any]], names: evaluation.Names) -> dict[str, float]:
    """Mean over answers of each criterion, by its text."""
    said = ((r["task_id"], ((v["id"], v.get("value")) for v in r["verdicts"])) for r in rows)
    means = (evaluation.row_means(names, task, values) for task, values in said)
    found = grouped(pair for row in means for pair in row.items())
    return {k: statistics.fmean(v) for k, v in found.items()}


def _known(value: float) -> float | None:
    return None if value != value else value


class LossLog(Bar):
    """One row per step of a supervised stage: loss, learning rate, and DPO's margins where there
    are any.
    """

    def __init__(self, log: rollouts.Log, on_step: Any, stage: str):
        self.log, self.call, self.title = log, on_step or (lambda row: None), stage.upper()

    def on_log(self, args: Any, state: Any, control: Any, logs: Any = None, **kwargs: Any) -> None:
        """trl logs at every step."""
        if not logs or "loss" not in logs:
            return
        now = time.perf_counter()
        seconds, self.began = now - self.began, now
        row = {
            "step": state.global_step,
            "time": time.time(),
            "seconds": seconds,
            "loss": logs["loss"],
            "lr": logs.get("learning_rate"),
            "grad_norm": logs.get("grad_norm"),
            "margin": logs.get("rewards/margins"),
            "accuracy": logs.get("rewards/accuracies"),
            "entropy": logs.get("entropy"),
        }
        self.log.append([row])
        self.bar.update(1)
        self.call(row)
