"""GRPO on graded answers: held-out evaluation, training through trl, evaluation again, and everything written down.

A run's folder: settings.json, rollouts.jsonl, steps.jsonl, eval_before.json, eval_after.json, metrics.json, checkpoints,
adapter/. A killed run goes on from its last checkpoint with the same data order, and the ledger pays no verdict twice.
"""

from __future__ import annotations

import dataclasses
import json
import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from .. import progress
from ..errors import DataError, JudgeDownError, KitError
from ..records import Response, Task, fingerprint
from ..runs import plain
from . import evaluation, rollouts, sentinels, world
from .audit import Audit
from .config import GRPOSettings, to_mapping
from .device import import_torch
from .evaluation import Evaluation, Gain
from .models import Loaded, eos_ids, load
from .reward import Bill, Reward


@dataclass(frozen=True, kw_only=True)
class GRPOResult:
    """What a training left behind.

    before, after : held-out evaluations (None without held-out prompts); gain : their paired comparison; trivial : mean
    held-out reward of each trivial policy. metrics : what metrics.json holds. seconds : training alone.
    """

    out: Path
    settings: GRPOSettings
    metrics: dict[str, Any]
    before: Evaluation | None = None
    after: Evaluation | None = None
    gain: Gain | None = None
    seconds: float = 0.0
    trivial: dict[str, float | None] = field(default_factory=dict)

    def rollouts(self) -> list[dict[str, Any]]:
        """Every sampled answer with its verdicts, reward and advantage."""
        return rollouts.read(self.out)

    def steps(self) -> list[dict[str, Any]]:
        """One row per step: reward, lengths, group health, entropy, KL, time split."""
        return rollouts.read_steps(self.out)

    @property
    def adapter(self) -> Path:
        """The folder of the trained adapter."""
        return self.out / "adapter"


def train(settings: GRPOSettings, tasks: Sequence[Task], *, judge: Any = None, composer: Any = "rubric", out: str | Path,
          heldout: Sequence[Task] = (), ledger: Any = None, budget: Any = None, resume: bool = False, audit: Any = None,
          on_step: Callable[[dict[str, Any]], None] | None = None, loaded: Loaded | None = None) -> GRPOResult:
    """Train a policy on `tasks` with GRPO; evaluate before and after on `heldout`.

    judge : see kit.judge, None when code checks every criterion; composer : a Composer, a preset's name or a config.
    out : folder of the run; resume : go on from its last checkpoint. ledger : default out/ledger.sqlite.
    audit : a second judge for `settings.audit_every`; on_step : called with each row of steps.jsonl (a live view, say).
    loaded : a model that is already there (kit.train.models.load); its adapter is trained in place.

    JudgeDownError when the judge stays down: a checkpoint is saved first. KitError when the folder holds another run.
    """
    from ..rewards.composer import Composer

    run = _Run(settings, tasks, heldout, Path(out), resume)
    composer = composer if isinstance(composer, Composer) else Composer.from_config(composer)
    ledger = run.out / "ledger.sqlite" if ledger is None else ledger
    run.reward = Reward(tasks=[*tasks, *heldout], judge=judge, composer=composer, ledger=ledger, budget=budget, patience_s=settings.patience_s)
    run.on_step = on_step
    if settings.audit_every:
        if audit is None:
            raise KitError("audit_every is set, and there is no second judge", where="setting audit_every", fix="give audit=..., or audit_every: 0")
        run.audit = Audit(reward=Reward(tasks=tasks, judge=audit, composer=composer, ledger=ledger, budget=budget, patience_s=settings.patience_s),
                          log=rollouts.Log(run.out / "audits.jsonl"), every=settings.audit_every, share=settings.audit_share, seed=settings.seed)
    run.loaded = loaded or load(settings)
    return run.go()


def sample_answers(loaded: Loaded, tasks: Sequence[Task], *, samples: int, settings: GRPOSettings, seed: int, name: str = "policy",
                   batch: int = 64) -> list[Response]:
    """`samples` answers per task at the training temperature; the same seed gives the same random numbers.

    confidence of an answer: exp(mean log-probability of its tokens at that temperature), in (0, 1]; on every engine and device.
    """
    from . import sampling

    torch = import_torch()
    prompts = [p for t in tasks for p in [prompt_ids(loaded.tokenizer, t)] * samples]
    owners = [(t, j) for t in tasks for j in range(samples)]
    fast = settings.fast and loaded.engine == "transformers" and sampling.fast_ok(loaded.model) is None
    engine = sampling.Engine(loaded.model) if fast else None
    ends, found = eos_ids(loaded.model, loaded.tokenizer), []
    generator = torch.Generator().manual_seed(seed)
    for at in progress.bar(range(0, len(prompts), batch), desc=f"answers of {name}", unit="batch", delay=2.0):
        part = prompts[at:at + batch]
        if engine is not None:
            got = sampling.sample(engine, part, max_new_tokens=settings.max_answer_tokens, temperature=settings.temperature,
                                  top_p=settings.top_p, top_k=settings.top_k, eos_ids=ends, generator=generator)
            found += list(zip(got.ids, got.truncated, map(sequence_confidence, got.logprobs), strict=True))
        else:
            found += _generate(loaded, part, settings, ends, seed + at)
    return [answer(loaded.tokenizer, t, ids, cut, f"{name}-{j}", sure) for (t, j), (ids, cut, sure) in zip(owners, found, strict=True)]


def evaluate(loaded: Loaded, heldout: Sequence[Task], reward: Reward, *, settings: GRPOSettings, name: str, step: int = 0) -> Evaluation:
    """Sampled and graded answers of a policy to held-out prompts, with the settings' sampling and seed.

    The reward sees what it sees in training, the text: the answers' token confidence is recorded, not graded.
    """
    answers = sample_answers(loaded, heldout, samples=settings.eval_samples, settings=settings, seed=settings.seed + 10_000, name=name)
    grades = wait(reward.grade([dataclasses.replace(a, confidence=None) for a in answers]))
    return Evaluation(name=name, responses=tuple(answers), grades=tuple(grades), step=step)


def trivial_rewards(tasks: Sequence[Task], reward: Reward) -> dict[str, float | None]:
    """Mean reward of each trivial policy on these prompts; None where nothing of it is known."""
    from ..rewards import trivial

    answers = [r for t in tasks for r in trivial.policies(t)]
    sums: dict[str, list[float]] = {}
    for r, g in zip(answers, wait(reward.grade(answers)), strict=True):
        scores = sums.setdefault((r.source or r.id).removeprefix(trivial.TRIVIAL), [])
        if g.score is not None:
            scores.append(g.score)
    return {k: sum(v) / len(v) if v else None for k, v in sums.items()}


def prompt_ids(tokenizer: Any, task: Task) -> list[int]:
    """Token ids of a task's prompt in the model's chat layout, ready for the answer."""
    return list(tokenizer.apply_chat_template(messages(task), add_generation_prompt=True, tokenize=True, return_dict=True)["input_ids"])


def messages(task: Task) -> list[dict[str, str]]:
    """A task as chat messages."""
    system = [{"role": "system", "content": task.system}] if task.system else []
    return [*system, {"role": "user", "content": task.prompt}]


def answer(tokenizer: Any, task: Task, ids: Sequence[int], truncated: bool, name: str, confidence: float | None = None) -> Response:
    """A sampled answer as a record; confidence : exp(mean log-probability of its tokens), a score that is no probability yet."""
    text = tokenizer.decode(ids, skip_special_tokens=True).strip()
    return Response(task_id=task.id, id=f"{name}-{fingerprint([task.id, name, text])[:8]}", text=text, source=name, truncated=truncated,
                    confidence=None if confidence is None else min(confidence, 1.0))


def sequence_confidence(logprobs: Sequence[float]) -> float | None:
    """exp(mean log-probability), in (0, 1]; None for an answer of no tokens.

    >>> sequence_confidence([math.log(0.5), math.log(0.125)])
    0.25
    """
    return math.exp(math.fsum(logprobs) / len(logprobs)) if logprobs else None


class _Tape:
    """A logits processor that changes nothing and keeps the log-probability of each sampled token before top-k and top-p.

    It holds one step's (rows, vocabulary) at a time, where `output_logits` would keep them all. temperature : of the sampling.
    """

    def __init__(self, temperature: float):
        self.temperature, self.last, self.found = temperature, None, []

    def __call__(self, input_ids: Any, scores: Any) -> Any:
        self.take(input_ids[:, -1])
        self.last = (scores.detach().float() / self.temperature).log_softmax(-1)
        return scores

    def take(self, tokens: Any) -> None:
        """Note the log-probabilities of the tokens (rows,) that were drawn from the last scores."""
        if self.last is not None:
            self.found.append(self.last.gather(-1, tokens[:, None].to(self.last.device))[:, 0].tolist())


def _generate(loaded: Loaded, prompts: Sequence[Sequence[int]], settings: GRPOSettings, ends: Sequence[int],
              seed: int) -> list[tuple[list[int], bool, float | None]]:
    """Answers of the model's own `generate`: token ids, whether cut off, confidence."""
    torch = import_torch()
    width, pad = max(map(len, prompts)), loaded.tokenizer.pad_token_id
    device = next(loaded.model.parameters()).device
    ids = torch.tensor([[pad] * (width - len(p)) + list(p) for p in prompts], device=device)
    mask = torch.tensor([[0] * (width - len(p)) + [1] * len(p) for p in prompts], device=device)
    training, tape = loaded.model.training, _Tape(settings.temperature)
    loaded.model.eval()
    with torch.no_grad(), torch.random.fork_rng():
        torch.manual_seed(seed)
        got = loaded.model.generate(input_ids=ids, attention_mask=mask, max_new_tokens=settings.max_answer_tokens, do_sample=True,
                                    temperature=settings.temperature, top_p=settings.top_p, top_k=settings.top_k, pad_token_id=pad,
                                    logits_processor=[tape])
    loaded.model.train(training)
    tape.take(got[:, -1])
    out = []
    for row, line in enumerate(got[:, width:].tolist()):
        stop = next((j for j, t in enumerate(line) if t in ends), None)
        kept = line if stop is None else line[:stop + 1]
        out.append((kept, stop is None, sequence_confidence([step[row] for step in tape.found[:len(kept)]])))
    return out


class _Run:
    """One training: the steps of `train`, with what they share."""

    def __init__(self, settings: GRPOSettings, tasks: Sequence[Task], heldout: Sequence[Task], out: Path, resume: bool):
        self.settings, self.tasks, self.heldout, self.out, self.resume = settings, list(tasks), list(heldout), out, resume
        self.reward: Reward
        self.loaded: Loaded
        self.audit: Any = None
        self.watch = sentinels.Watch(settings.sentinel_alarm)
        self.on_step: Callable[[dict[str, Any]], None] | None = None
        self.trainer: Any = None
        self.stopped: str | None = None  # the alarm that ended the run
        self.trivial: dict[str, float | None] = {}
        self._check()

    def _check(self) -> None:
        if not self.tasks:
            raise DataError("there are no training tasks", where="tasks")
        shared = {t.id for t in self.tasks} & {t.id for t in self.heldout}
        if shared:
            raise DataError(f"{len(shared)} held-out tasks are also trained on", where=f"task {sorted(shared)[0]!r}",
                            fix="hold out other prompts: a gain on trained prompts shows nothing")
        self.out.mkdir(parents=True, exist_ok=True)
        if not world.main():
            return  # the first process looks at the folder for all
        mark = {"settings": to_mapping(self.settings), "tasks": fingerprint([t.id for t in self.tasks])}
        path = self.out / "settings.json"
        if not self.resume and (self.out / rollouts.ROLLOUTS).exists():
            raise KitError("this folder already holds a run", where=str(self.out), fix="choose another folder, or resume=True")
        if self.resume and path.exists():
            old = json.loads(path.read_text("utf-8"))
            if plain(old) != plain(mark):
                wrong = [k for k, v in mark["settings"].items() if plain(old["settings"].get(k)) != plain(v)] or ["tasks"]
                raise KitError(f"the run in this folder has another {wrong[0]}", where=str(self.out), fix="resume with the same settings and tasks")
        path.write_text(json.dumps(plain(mark), indent=2), "utf-8")

    def go(self) -> GRPOResult:
        started = time.time()
        before = self.evaluate("before", 0)
        if self.heldout and world.main():
            self.trivial = trivial_rewards(self.heldout, self.reward)
        self.trainer = self._make()
        checkpoint = last_checkpoint(self.out) if self.resume else None
        if self.resume and world.main():
            step = int(checkpoint.name.split("-")[1]) if checkpoint else 0
            for name in (rollouts.ROLLOUTS, rollouts.STEPS, "audits.jsonl", "evals.jsonl"):
                rollouts.Log(self.out / name).rewind(step)
        if self.resume:
            world.wait()
            for row in rollouts.read_steps(self.out):
                self.watch.check(row)
            if self.audit is not None:
                self.audit.resume(rollouts.read(self.out / "audits.jsonl"))
        t0 = time.perf_counter()
        try:
            self.trainer.train(resume_from_checkpoint=str(checkpoint) if checkpoint else None)
        except JudgeDownError:
            self._save_now()
            raise
        seconds = time.perf_counter() - t0
        with world.whole(self.loaded.model):
            if world.main():
                self.loaded.model.save_pretrained(str(self.out / "adapter"))
                self.loaded.tokenizer.save_pretrained(str(self.out / "adapter"))
        after = self.evaluate("after", self.settings.steps)
        gain = evaluation.compare(before, after, tasks=self.heldout, trivial=self.trivial) if before and after else None
        metrics = self._metrics(gain, seconds, time.time() - started)
        if world.main():
            (self.out / "metrics.json").write_text(json.dumps(metrics, indent=2, ensure_ascii=False), "utf-8")
        return GRPOResult(out=self.out, settings=self.settings, metrics=metrics, before=before, after=after, gain=gain, seconds=seconds,
                          trivial=self.trivial)

    def evaluate(self, name: str, step: int) -> Evaluation | None:
        """Grade samples on the held-out prompts, or read what an interrupted run already has; of several processes the first one does it."""
        if not self.heldout:
            return None
        path = self.out / f"eval_{name}.json"
        there = self.resume and path.exists()
        world.wait()  # all have looked
        if there:
            return evaluation.read(path)
        with world.whole(self.loaded.model):
            if world.main():
                evaluate(self.loaded, self.heldout, self.reward, settings=self.settings, name=name, step=step).save(path)
            world.wait()
        return evaluation.read(path)

    def _make(self) -> Any:
        from datasets import Dataset

        from .monitor import StepLog
        from .trainer import arguments, trainer_class

        args = arguments(self.settings, self.loaded, str(self.out / "checkpoints"))
        for t in self.tasks:
            n = len(prompt_ids(self.loaded.tokenizer, t))
            if n > self.settings.max_prompt_tokens:
                raise DataError(f"the prompt has {n} tokens, more than max_prompt_tokens={self.settings.max_prompt_tokens}", where=f"task {t.id!r}")
        data = Dataset.from_list([{"prompt": messages(t), "task_id": t.id} for t in order(self.tasks, self.settings)])
        monitor = StepLog(self)
        trainer = trainer_class()(model=self.loaded.model, reward_funcs=self._reward_function(), args=args, train_dataset=data,
                                  processing_class=self.loaded.tokenizer, callbacks=[monitor])
        from transformers.trainer_callback import PrinterCallback

        trainer.remove_callback(PrinterCallback)  # nothing in the kit prints
        trainer.kit_setup(self.settings, self.loaded, rollouts.Log(self.out / rollouts.ROLLOUTS), monitor.on_batch)
        return trainer

    def _reward_function(self) -> Callable[..., Any]:
        async def rubric(completions: Any, completion_ids: Any, task_id: Any, **_: Any) -> list[float | None]:
            started, trainer = time.perf_counter(), self.trainer
            ends, step = set(eos_ids(self.loaded.model, self.loaded.tokenizer)), trainer.state.global_step + 1
            texts = [c[-1]["content"] if isinstance(c, list) else c for c in completions]
            answers = [Response(task_id=t, id=f"s{step}-{j}-{fingerprint([t, x])[:8]}", text=x.strip(), source=f"step {step}",
                                truncated=ids[-1] not in ends) for j, (t, x, ids) in enumerate(zip(task_id, texts, completion_ids, strict=True))]
            ready = time.perf_counter()
            grades = await self.reward.grade(answers)
            judged = time.perf_counter()
            flags = [sentinels.look(self.reward.by_id[a.task_id], a) for a in answers]
            trainer.kit_pending = list(zip(answers, grades, flags, strict=True))
            trainer.kit_times["judge"] += judged - ready
            trainer.kit_times["kit"] += ready - started + time.perf_counter() - judged
            return [g.score for g in grades]

        return rubric

    def _save_now(self) -> None:
        """A checkpoint at the last finished step."""
        t = self.trainer
        if t is None or t.state.global_step == 0:
            return
        if not (self.out / "checkpoints" / f"checkpoint-{t.state.global_step}").exists():
            t._save_checkpoint(t.model, trial=None)

    def _metrics(self, gain: Gain | None, seconds: float, wall: float) -> dict[str, Any]:
        steps, bill = rollouts.read_steps(self.out), sum_bills(world.gather([self.reward.bill]))
        done = len(steps)
        split = {k: sum(s.get(f"seconds_{k}") or 0.0 for s in steps) for k in ("generation", "judge", "update", "kit")}
        hits: dict[str, int] = {}
        for s in steps:
            for k, n in (s.get("sentinels") or {}).items():
                hits[k] = hits.get(k, 0) + n
        return plain({
            "stage": "grpo", "steps": done, "processes": world.size(), "seconds_training": seconds, "seconds_total": wall, "seconds_split": split,
            "engine": self.loaded.engine, "engine_why": self.loaded.why, "device": self.loaded.device.name, "dtype": self.loaded.device.dtype,
            "dtype_why": self.loaded.device.why, "model": self.settings.model, "seed": self.settings.seed, "fast_path": self.trainer.kit_slow or "on",
            "first_reward": steps[0].get("reward") if steps else None, "last_reward": steps[-1].get("reward") if steps else None,
            "judge_calls": bill.calls, "judge_cost": bill.cost, "verdicts": bill.verdicts, "verdicts_cached": bill.cached,
            "verdicts_unknown": bill.unknown, "audit_alarm": self.audit.alarm if self.audit else None,
            "sentinels": hits, "sentinel_alarm": self.watch.alarm, "stopped": self.stopped,
            "judge": {"name": getattr(self.reward.judge, "name", None), "calls": bill.calls, "cost": bill.cost, "seconds": bill.seconds},
            "composer": self.reward.composer.name,
            **({"heldout": gain.to_json()} if gain else {})})


def order(tasks: Sequence[Task], settings: GRPOSettings) -> list[Task]:
    """The prompts of all steps in the order they are trained on: pass after pass, each in an order that seed and pass decide.

    Written out as one epoch, so that a resumed run goes on with the same prompts.
    """
    import random

    wanted, out = settings.steps * settings.prompts_per_step, []
    for turn in range(-(-wanted // len(tasks))):
        out += random.Random(f"{settings.seed}/{turn}").sample(list(tasks), len(tasks))
    return out[:wanted]


def sum_bills(bills: Sequence[Bill]) -> Bill:
    """What the judges of all processes cost together."""
    return Bill(**{f.name: sum(getattr(b, f.name) for b in bills) for f in dataclasses.fields(Bill)})


def last_checkpoint(out: str | Path) -> Path | None:
    """The newest complete checkpoint of a run's folder."""
    found = sorted((p for p in (Path(out) / "checkpoints").glob("checkpoint-*") if (p / "trainer_state.json").exists()),
                   key=lambda p: int(p.name.split("-")[1]))
    return found[-1] if found else None


def wait(work: Any) -> Any:
    """The result of a coroutine, from a script, a cell of a notebook whose loop runs, or a callback; Ctrl-C stops it."""
    from ..judge import loop

    return loop.run(work)
