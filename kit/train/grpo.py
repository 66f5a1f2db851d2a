"""GRPO on graded answers: held-out evaluation, training through trl, evaluation again, and
everything written down.

A run's folder: settings.json, rollouts.jsonl, steps.jsonl, eval_before.json, eval_after.json,
metrics.json, checkpoints, adapter/. A killed run goes on from its last checkpoint with the same
data order, and the ledger pays no verdict twice.
"""

from __future__ import annotations

import json
import sys
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from ..errors import DataError, JudgeDownError, KitError
from ..judge.factory import judge_of
from ..records import Grade, Response, Task, fingerprint
from ..rewards import contrast
from ..rewards.composer import Composer
from ..runs import plain
from . import (
    answers,
    audit,
    evaluation,
    evolving,
    forecast,
    inputs,
    resample,
    reward,
    rollouts,
    world,
)
from .audit import Audit
from .config import GRPOSettings, to_mapping
from .evaluation import Evaluation, Gain
from .models import Loaded, eos_ids, load, weights
from .rehearsal import SAID, rehearse
from .resume import (
    drop_reference,
    identity,
    last_checkpoint,
    mark_folder,
    read_by,
    save_adapter,
    step_of,
)
from .reward import Bill, Reward
from .trainer import arguments, trainer_class


@dataclass(frozen=True, kw_only=True)
class GRPOResult(rollouts.Result):
    """What a training left behind; see rollouts.Result.

    before, after : held-out evaluations (None without held-out prompts); gain : their paired
    comparison. seconds : training alone.
    """

    before: Evaluation | None = None
    after: Evaluation | None = None
    gain: Gain | None = None
    seconds: float = 0.0

    def rollouts(self) -> list[dict[str, Any]]:
        """Every sampled answer with its verdicts, reward and advantage."""
        return rollouts.read(self.out)


def train(
    settings: GRPOSettings,
    tasks: Sequence[Task],
    *,
    judge: Any = None,
    composer: Any = "rubric",
    out: str | Path,
    heldout: Sequence[Task] = (),
    ledger: Any = None,
    budget: Any = None,
    resume: bool = False,
    audit: Any = None,
    evolve: Any = None,
    on_step: Callable[[dict[str, Any]], None] | None = None,
    loaded: Loaded | None = None,
) -> GRPOResult:
    """Train a policy on `tasks` with GRPO; evaluate before and after on `heldout`.

    judge : see kit.judge, None when code checks every criterion; composer : a Composer, a preset's
    name or a config.
    out : folder of the run; resume : go on from its last checkpoint. ledger : default
    out/ledger.sqlite.
    audit : a second judge for `settings.audit_every`; on_step : called with each row of steps.jsonl
    (a live view, say).
    evolve : True or settings (kit.train.evolving.Evolve): criteria are proposed while training; off
    by default.
    loaded : a model that is already there (kit.train.models.load); its adapter is trained in place.

    JudgeDownError when the judge stays down: a checkpoint is saved first. KitError when the folder
    holds another run.
    """
    composer = Composer.from_config(composer)
    ready(settings, tasks, heldout, judge=judge, audit=audit, composer=composer)
    with inputs.alone(Path(out), resume=resume):
        run = _Run(settings, tasks, heldout, Path(out), resume)
        ledger = run.out / "ledger.sqlite" if ledger is None else ledger
        run.reward = Reward(
            tasks=[*tasks, *heldout],
            judge=judge,
            composer=composer,
            ledger=ledger,
            budget=budget,
            patience_s=settings.patience_s,
            bill=Bill.of(run.out / f"bill_{world.rank()}.json", resume),
        )
        run.reward.check()
        run.on_step = on_step
        evolve = evolving.settings_of(evolve)
        run.mark(audit, evolve)
        run.teach(evolve)
        if settings.audit_every:
            run.audit = Audit(
                reward=Reward(
                    tasks=tasks,
                    judge=audit,
                    composer=composer,
                    ledger=ledger,
                    budget=budget,
                    patience_s=settings.patience_s,
                ),
                log=rollouts.Log(run.out / "audits.jsonl"),
                every=settings.audit_every,
                share=settings.audit_share,
                seed=settings.seed,
            )
            if run.evolving is not None:
                run.evolving.rewards.append(run.audit.reward)
        run.loaded = loaded or load(settings)
        answers.fitting([*tasks, *filter(answers.shows, heldout)], run.loaded.tokenizer, settings)
        return run.go()


def ready(
    settings: GRPOSettings,
    tasks: Sequence[Task],
    heldout: Sequence[Task],
    *,
    judge: Any,
    audit: Any,
    composer: Any,
) -> None:
    """An error for what would stop this training later; nothing is loaded or written."""
    inputs.check(settings, [judge, audit])
    inputs.once(tasks)
    if not tasks:
        raise DataError("there are no training tasks", where="tasks")
    inputs.readable([*tasks, *heldout])
    resample.check(settings)
    if settings.reweight:
        contrast.check(composer)
    inputs.unshared(tasks, heldout)
    KitError.first(
        (
            settings.eval_every and not heldout,
            f"eval_every is {settings.eval_every}, and no task is held out",
            "setting eval_every",
            (
                "hold out tasks (train_ratio: 0.9, holdout_by: FIELD, heldout: FILE), "
                "or say eval_every: 0"
            ),
        ),
        (
            settings.audit_every and audit is None,
            "audit_every is set, and there is no second judge",
            "setting audit_every",
            "give audit=..., or audit_every: 0",
        ),
        (
            audit is not None and not settings.audit_every,
            "audit has no effect here: audit_every is 0",
            "key audit",
            "say audit_every: 10 (steps), or leave the second judge out",
        ),
    )
    rehearse(settings, _rehearsed)


def _rehearsed(settings: GRPOSettings, loaded: Loaded, out: Path) -> Any:
    """A trainer of made-up prompts and rewards."""
    from datasets import Dataset

    asked = {"prompt": [{"role": "user", "content": SAID["prompt"]}], "task_id": "rehearsal"}
    trainer = trainer_class()(
        model=loaded.model,
        reward_funcs=lambda completions, **_: [float(i % 2) for i in range(len(completions))],
        args=arguments(settings, loaded, str(out)),
        train_dataset=Dataset.from_list([asked] * settings.prompts_per_step),
        processing_class=loaded.tokenizer,
    )
    trainer.kit_setup(settings, loaded, rollouts.Log(out / rollouts.ROLLOUTS))
    return trainer


class _Run:
    """One training: the steps of `train`, with what they share."""

    def __init__(
        self,
        settings: GRPOSettings,
        tasks: Sequence[Task],
        heldout: Sequence[Task],
        out: Path,
        resume: bool,
    ):
        self.settings, self.tasks, self.heldout, self.out, self.resume = (
            settings,
            list(tasks),
            list(heldout),
            out,
            resume,
        )
        self.reward: Reward
        self.loaded: Loaded
        self.audit: Any = None
        self.evolving: evolving.Evolving | None = None
        self.watch = audit.Watch(settings.sentinel_alarm)
        self.on_step: Callable[[dict[str, Any]], None] | None = None
        self.out.mkdir(parents=True, exist_ok=True)

    def mark(self, audit: Any, evolve: evolving.Evolve | None) -> None:
        """Say in the folder what this run reads; KitError where it holds a run of something
        else.
        """
        if not world.main():
            return
        mark = {
            "settings": to_mapping(self.settings),
            "set of weights": weights(self.settings.model, self.settings.adapter),
            "tasks": fingerprint([t.id for t in self.tasks]),
            **read_by(self.reward, self.tasks, self.heldout),
            "second judge": identity(audit, self.tasks),
            "evolve": plain(evolve),
        }
        mark_folder(self.out / rollouts.SETTINGS, mark, self.resume)

    def teach(self, evolve: evolving.Evolve | None) -> None:
        """Decide what is paid in training: the reward of the evaluation, or that with evolving
        rubrics.
        """
        composer, per_component = self.reward.composer, self.settings.per_component
        self.pay = reward.functions(composer, self._graded, per_component=per_component)
        if self.settings.shuffle_rewards:
            self.pay = [reward.shuffled(f, self.settings.seed) for f in self.pay]
        self.weights = reward.weights(composer, per_component=per_component)
        if evolve is None:
            return
        model = (
            self.reward.judge
            if evolve.model is None
            else judge_of(evolve.model, where="evolve, key model")
        )
        inputs.check(self.settings, [model])
        mine = replace(self.reward, tasks=self.tasks, ranges={})
        self.evolving = evolving.Evolving(evolve, mine, evolving.asker(model, mine), self.out)

    def go(self) -> GRPOResult:
        started = time.time()
        if self.settings.forecast and not (self.resume and (self.out / "forecast.json").exists()):
            self._foresee()
        before = self.evaluate("before", 0)
        self.trivial = answers.by_policy(self.evaluate("trivial", 0, answers.trivial))
        self.trainer = self._make()
        checkpoint = last_checkpoint(self.out) if self.resume else None
        if self.resume:
            self._go_on(checkpoint)
        t0 = time.perf_counter()
        try:
            self.trainer.train(resume_from_checkpoint=str(checkpoint) if checkpoint else None)
            seconds = time.perf_counter() - t0 + self.monitor.spent_before
            self._keep()
            after = self.evaluate("after", self.settings.steps)
        except JudgeDownError:
            self._save_now()
            raise
        drop_reference(self.loaded.model)
        gain = (
            evaluation.compare(before, after, tasks=self.heldout, trivial=self.trivial)
            if before and after
            else None
        )
        metrics = self._metrics(gain, seconds, time.time() - started)
        if world.main():
            begun = step_of(checkpoint) if checkpoint else 0
            metrics = rollouts.record(self.out, metrics, begun=begun)
        return GRPOResult(
            out=self.out,
            settings=self.settings,
            metrics=metrics,
            before=before,
            after=after,
            gain=gain,
            seconds=seconds,
        )

    def _keep(self) -> None:
        """Write the adapter; DataError where nothing was learned from."""
        if self.monitor.blind and not self.monitor.known:
            raise DataError(
                f"no answer got a known reward in {self.monitor.blind_steps} batches: "
                f"{self.monitor.blind}",
                where=str(self.out),
                fix="see rollouts.jsonl there; the reward, the judge or the rows do not fit each "
                "other",
            )
        with world.whole(self.loaded.model):
            if world.main():
                save_adapter(self.loaded.model, self.loaded.tokenizer, self.out / "adapter")

    def _foresee(self) -> None:
        """Write forecast.json; KitError where nothing can be learned."""
        if world.main():
            found = forecast.forecast(
                self.loaded,
                self.tasks,
                self.reward,
                settings=self.settings,
                heldout=self.heldout,
            )
            (self.out / "forecast.json").write_text(json.dumps(plain(found.to_json())), "utf-8")
            sys.stderr.write(f"{found}\n")  # whatever is logged: it comes before hours are spent
            found.check(str(self.out))

    def _go_on(self, checkpoint: Path | None) -> None:
        """Set logs, batch and alarms back to the checkpoint, or to the start."""
        step = step_of(checkpoint) if checkpoint else 0
        if world.main():
            logs = (rollouts.ROLLOUTS, rollouts.STEPS, "audits.jsonl", evolving.LOG)
            for name in (*logs, resample.DISCARDED):
                rollouts.Log(self.out / name).rewind(step)
            rollouts.Log(self.out / "evals.jsonl").rewind(step - 1)  # that of `step` comes again
        world.wait()
        self.monitor.resume(step)
        self.trainer.kit_over = bool(self.monitor.stopped)
        if self.evolving is not None:
            self.evolving.resume()
        if checkpoint:
            self.trainer.kit_resume(checkpoint)

    def evaluate(self, name: str, step: int, make: Any = None) -> Evaluation | None:
        """Grade answers to the held-out prompts, or read what an interrupted run already has; of
        several processes the first one does it.

        make : from prompts and reward to the evaluation; default: samples of the policy.
        """
        if not self.heldout:
            return None
        path = self.out / f"eval_{name}.json"
        there = self.resume and path.exists()
        world.wait()  # all have looked
        if there:
            return evaluation.read(path)
        with world.whole(self.loaded.model):
            if world.main():
                make = make or partial(
                    answers.evaluate, self.loaded, settings=self.settings, name=name, step=step
                )
                make(self.heldout, self.reward).save(path)
            world.wait()
        return evaluation.read(path)

    def _make(self) -> Any:
        from datasets import Dataset

        from .monitor import StepLog

        args = arguments(self.settings, self.loaded, str(self.out / "checkpoints"), self.weights)
        tokenizer, limit = self.loaded.tokenizer, self.settings.max_prompt_tokens
        data = Dataset.from_list(
            [
                {"prompt": answers.messages(t, tokenizer, limit), "task_id": t.id}
                for t in inputs.order(self.tasks, self.settings)
            ]
        )
        self.monitor = monitor = StepLog(
            out=self.out,
            settings=self.settings,
            bill=self.reward.bill,
            watch=self.watch,
            names=evaluation.row_names(self.tasks),
            audit=self.audit,
            evaluate=self.evaluate if self.heldout else None,
            on_step=self.on_step,
        )
        trainer = trainer_class()(
            model=self.loaded.model,
            reward_funcs=[reward.waited(f) for f in self.pay],
            args=args,
            train_dataset=data,
            processing_class=self.loaded.tokenizer,
            callbacks=[monitor],
        )
        from transformers.trainer_callback import PrinterCallback

        trainer.remove_callback(PrinterCallback)  # nothing in the kit prints
        monitor.trainer = trainer
        trainer.kit_setup(
            self.settings, self.loaded, rollouts.Log(self.out / rollouts.ROLLOUTS), monitor.on_batch
        )
        return trainer

    async def _graded(
        self, completions: Any, completion_ids: Any, task_id: Any, **_: Any
    ) -> list[tuple[Task, Response, Grade]]:
        """One batch's answers with the tasks that they were judged by and their grades."""
        started, trainer = time.perf_counter(), self.trainer
        ends = set(eos_ids(self.loaded.model, self.loaded.tokenizer))
        step = trainer.state.global_step + 1
        texts = [c[-1]["content"] if isinstance(c, list) else c for c in completions]
        sampled = [
            Response(
                task_id=t,
                id=f"s{step}-{j}-{fingerprint([t, x])[:8]}",
                text=x.strip(),
                source=f"step {step}",
                truncated=ids[-1] not in ends,
            )
            for j, (t, x, ids) in enumerate(zip(task_id, texts, completion_ids, strict=True))
        ]
        ready = time.perf_counter()
        grades = await (
            self.reward.grade(sampled)
            if self.evolving is None
            else self.evolving.grade(step, sampled)
        )
        judged = time.perf_counter()
        flags = [audit.look(self.reward.by_id[a.task_id], a) for a in sampled]
        tokens = map(len, completion_ids)  # a masked answer has a length too
        trainer.kit_pending = list(zip(sampled, grades, flags, tokens, strict=True))
        trainer.kit_times["judge"] += judged - ready
        trainer.kit_times["kit"] += ready - started + time.perf_counter() - judged
        paid = self.evolving.reward if self.evolving else self.reward
        return reward.focused(paid, sampled, grades, self.settings.reweight)

    def _save_now(self) -> None:
        """A checkpoint at the last finished step."""
        step = self.trainer.state.global_step
        if step and not (self.out / "checkpoints" / f"checkpoint-{step}").exists():
            self.trainer._save_checkpoint(self.trainer.model, trial=None)

    def _metrics(self, gain: Gain | None, seconds: float, wall: float) -> dict[str, Any]:
        steps = rollouts.read_steps(self.out)
        bills = world.gather([self.reward.bill])
        calls = sum(b.calls for b in bills)
        cost = sum(b.cost for b in bills)
        verdicts = evaluation.verdicts(self.out)
        split = {
            k: sum(s.get(f"seconds_{k}") or 0.0 for s in steps)
            for k in ("generation", "judge", "update", "kit")
        }
        fresh = (s for s in steps if s["batch"] == s["step"])  # not the answers of the row before
        hits = sum((Counter(s.get("sentinels") or ()) for s in fresh), Counter())
        return plain(
            {
                "stage": "grpo",
                "steps": len(steps),
                "processes": world.size(),
                "seconds_training": seconds,
                "seconds_total": max(wall, seconds),  # a resumed run: of this process, if longer
                "seconds_split": split,
                "engine": self.loaded.engine,
                "engine_why": self.loaded.why,
                "device": self.loaded.device.name,
                "dtype": self.loaded.device.dtype,
                "dtype_why": self.loaded.device.why,
                "model": self.settings.model,
                "seed": self.settings.seed,
                "fast_path": self.trainer.kit_slow or "on",
                "first_reward": steps[0].get("reward") if steps else None,
                "last_reward": steps[-1].get("reward") if steps else None,
                "judge_calls": calls,
                "judge_cost": cost,
                "verdicts": len(verdicts),
                "verdicts_cached": sum(bool(v.get("cached")) for v in verdicts),
                "verdicts_unknown": sum(v["status"] == "unknown" for v in verdicts),
                "audit_alarm": self.audit.alarm if self.audit else None,
                "sentinels": hits,
                "sentinel_alarm": self.watch.alarm,
                "stopped": self.monitor.stopped,
                "judge": {
                    "name": getattr(self.reward.judge, "name", None),
                    "calls": calls,
                    "cost": cost,
                    "seconds": sum(b.seconds for b in bills),
                },
                "composer": self.reward.composer.name,
                **({"heldout": gain.to_json()} if gain else {}),
            }
        )
