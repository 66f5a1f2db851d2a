"""`train`: the stages of a job, with an evaluation before and after each, and one page at the end."""

from __future__ import annotations

import contextlib
import gc
import json
import logging
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import msgspec

from ..errors import DataError, JudgeDownError, KitError, MissingError
from ..evaluation import (
    HELDOUT,
    MARK,
    METRICS,
    STEPS,
    WHEN,
    Evaluation,
    Log,
    Result,
    comparison,
    read_evaluation,
    read_rows,
    sample,
)
from ..records import Grade, Response, Task, fingerprint, text_identity, to_json
from ..records.tables import plain
from ..rewards import trivial
from ..system import paths
from . import callbacks, fast_cpu, ranks, rows, trainers
from .config import Job, Stage, read_job, with_prompts
from .exports import merge, save_adapter
from .forecasting import Forecast, for_trivial, make_forecast
from .policies import Policy, policy
from .reward import Reward
from .settings import Settings

logger = logging.getLogger(__name__)
FULL = 2**26  # bytes; less free space than this is a full disk


def train(
    config_or_tasks: Any,
    settings: Any = None,
    *,
    judge: Any = None,
    reward: Any = None,
    heldout: Any = None,
    out: str | Path | None = None,
    ledger: Any = None,
    resume: bool | None = None,
    on_step: Callable[[dict[str, Any]], None] | None = None,
    **changes: Any,
) -> Result:
    """Train a model on rubric rewards, and measure on held-out prompts whether it got better.

    config_or_tasks : "instructions", "rlvr", "refiner", "biorlhf", "ladder_chain", "ladder_confidence", a YAML file,
        a mapping, or tasks (a TaskSet, a list, a data file).
    settings : a preset's name, a mapping or Settings (kit.training.Settings). changes : single settings; the
        systems' own names are read, too. profile : "test", "cpu", "t4", "gpu" or "cluster" sets the sizes.
    judge, reward, ledger : as in kit.judge and kit.grade. heldout : tasks that are never trained on.
    out : the folder of the run (default: below runs/). resume : None and True go on with a run that is in `out`; False
        refuses to. on_step : called with the row of each step.

    A verdict that is unknown is no 0: an answer whose reward cannot be paid has advantage 0, and is left out of its
    group's mean and deviation. With beta > 0 its KL term still counts, and it stays in the mean over tokens.
    Policies without skill, such as empty answers, are graded beside the model on all held-out prompts. Where a judge
    other than code decides, they are graded on 2 prompts after the last stage: each prompt takes about twenty calls.
    JudgeDownError: the judge did not answer after one more try; everything is saved, and the same call goes on.

    Under torchrun or accelerate each process calls `train`, on a folder that all of them see. The first one judges,
    evaluates and writes; all return the result.
    """
    ranks.connect()
    job = read_job(
        config_or_tasks,
        settings,
        changes=changes,
        judge=judge,
        reward=reward,
        heldout=heldout,
        out=out,
        ledger=ledger,
    )
    with run_lock(job.out, resume):
        return run(job, on_step)


def forecast(
    config_or_tasks: Any, settings: Any = None, *, judge: Any = None, **changes: Any
) -> Forecast:
    """What a run could learn and cost, from 64 answers of the untrained model; the arguments are those of `train`.

    pass@1, pass@k and how many groups are mixed: where none is, `.check()` names the remedy.
    """
    job = read_job(config_or_tasks, settings, changes=changes, judge=judge)
    grpo = [s for s in job.stages if s.settings.stage == "grpo"]
    if not grpo:
        raise DataError(
            "only GRPO has a forecast",
            where="stages",
            fix="name a config with a stage grpo",
        )
    reward = Reward(
        job.tasks, judge=job.judge, reward=job.reward, ledger=job.ledger
    )
    work = StageRunner(job, grpo[0], grpo[0].settings, job.out, reward, None, ())
    work.policy = policy(work.settings, [*job.tasks, *job.heldout])
    return make_forecast(
        work.settings, work.training_tasks(), reward, work.sample, job.heldout
    )


@contextlib.contextmanager
def run_lock(out: Path, resume: bool | None = None) -> Iterator[None]:
    """Hold the folder of a run. A full disk and a dead judge end with what to do."""
    from filelock import FileLock, Timeout

    # a notebook that runs again goes on; who wants a new run says so
    if resume is False and has_begun(out):
        raise DataError(
            "this folder already holds a run",
            where=str(out),
            fix="go on with it (--resume), or choose another out",
        )
    out.mkdir(parents=True, exist_ok=True)
    go_on = f"the same command with --resume goes on in {out}"
    # two trainings in one folder would mix their steps and save points
    lock = (
        contextlib.nullcontext()
        if ranks.rank()
        else FileLock(out / ".lock", timeout=0)
    )
    try:
        with lock:
            yield
    except Timeout:
        raise DataError(
            "another process trains in this folder",
            where=str(out),
            fix="choose another out",
        ) from None
    except JudgeDownError as e:
        raise JudgeDownError(
            e.what, where=e.where, fix=f"{e.fix}; then {go_on}"
        ) from e
    # torch, SQLite and safetensors each have an error of their own for a full disk
    except Exception as e:
        # gloo says "closed by peer" or "reset by peer"
        if "by peer" in str(e):
            raise MissingError(
                "another process of this training ended", where=str(out), fix=go_on
            ) from e
        if isinstance(e, KitError) or shutil.disk_usage(out).free > FULL:
            raise
        raise MissingError(
            "the disk is full", where=str(out), fix=f"make room; then {go_on}"
        ) from e


def run(job: Job, on_step: Callable[[dict[str, Any]], None] | None) -> Result:
    """Run the stages of a job; a stage that is finished is read, not run again."""
    reward = Reward(
        [*job.tasks, *job.heldout],
        judge=job.judge,
        reward=job.reward,
        ledger=job.ledger or job.out / "ledger.sqlite",
        patience_s=job.stages[0].settings.patience_s,
        book=job.out / "judge.json",
    )
    folders = [
        job.out / f"{n}_{s.name.replace(' ', '_')}" if job.chain else job.out
        for n, s in enumerate(job.stages, 1)
    ]
    check_folder(job.out, folders)
    if ranks.rank():
        return follow(job, reward)
    before: Evaluation | None = None
    model, results = job.stages[0].settings.model, []
    demonstrations: list[dict[str, Any]] = []
    for stage, folder in zip(job.stages, folders, strict=True):
        settings = msgspec.structs.replace(
            stage.settings, model=model, **({"adapter": None} if results else {})
        )
        work = StageRunner(
            job, stage, settings, folder, reward, on_step, demonstrations
        )
        # in 4 bits the model of this stage is quantised anew, and answers differently
        same_model = settings.quantize == "none"
        results.append(work.result(before if same_model else None))
        if job.chain and not stage.aside:
            before = results[-1].after
            model = str(folder / "merged")
            if not (folder / "merged" / "config.json").exists():
                merge(
                    settings.model,
                    folder / "adapter",
                    folder / "merged",
                    first=settings.adapter,
                )
            # own answers of a later stage are to other questions than the demonstrations
            demonstrations += work.training_rows()
    if job.chain:
        paths.write(job.out / METRICS, json.dumps(chain_metrics(results), indent=1))
    result = Result.read(job.out)
    result.page()
    ranks.broadcast(None)
    return result


def check_folder(out: Path, folders: Sequence[Path]) -> None:
    """DataError where `out` holds a run whose stages are not in these folders."""
    # a chain would write its table over a run of one stage, or over that of a longer chain
    marks = [*out.glob(MARK), *out.glob(f"[0-9]*_*/{MARK}")]
    if other := {p.parent for p in marks if has_begun(p.parent)} - {*folders}:
        raise DataError(
            "this folder holds another run",
            where=str(min(other)),
            fix="choose another out, or repeat all stages of the run",
        )


def follow(job: Job, reward: Reward) -> Result:
    """Train each stage beside the first process, which says when and how, and does all the rest."""
    while order := ranks.broadcast(None):
        StageRunner(job, *order, reward, None, ()).fit()
    return Result.read(job.out)


def chain_metrics(stages: Sequence[Result]) -> dict[str, Any]:
    """What metrics.json holds of a chain: from before its first stage to after its last."""
    first, last = stages[0], stages[-1]
    names = "config base judge judge_calls judge_cost trivial trivial_prompts"
    out = {k: v for k, v in last.metrics.items() if k in names.split()}
    out |= {k: sum(r.metrics[k] for r in stages) for k in ("seconds", "steps")}
    # what one stage warns of holds for the chain
    notes = dict.fromkeys(n for r in stages for n in r.metrics["notes"])
    out |= {"stage": "chain", "model": first.metrics["model"], "notes": [*notes]}
    if first.before and last.after:
        out |= comparison(first.before, last.after, last.heldout)
    return plain(out)  # type: ignore[no-any-return]


class StageRunner:
    """One stage: its trainer, its files, its evaluations."""

    def __init__(
        self,
        job: Job,
        stage: Stage,
        settings: Settings,
        out: Path,
        reward: Reward,
        on_step: Any,
        demonstrations: Sequence[dict[str, Any]],
    ):
        self.job, self.stage, self.settings, self.out, self.reward = (
            job,
            stage,
            settings,
            out,
            reward,
        )
        self.log = Log(out, on_step)
        self.demonstrations = list(demonstrations)
        self.every_task = [*job.tasks, *job.heldout]
        self.trainer: Any = None
        self.policy: Policy | None = None

    def result(self, before: Evaluation | None) -> Result:
        """Run the stage, or read it where it is finished. before : the evaluation of the stage before."""
        self.out.mkdir(parents=True, exist_ok=True)
        self.mark()
        path = self.out / METRICS
        ends = [self.out / f"eval_{name}.json" for name in WHEN]
        if not path.exists():
            # the model before this stage is the one after the last: it is not asked twice
            if before is not None:
                before.save(ends[0])
            self.write(self.train())
        # what a judge that was down left unknown is asked again
        elif any(read_evaluation(p).is_open for p in ends if p.exists()):
            self.write(json.loads(path.read_text("utf-8")) | self.comparison())
        # the next stage loads a model of its own
        self.trainer = self.policy = None
        gc.collect()
        return Result.read(self.out)

    def write(self, metrics: Mapping[str, Any]) -> None:
        """Write metrics.json, with what the judge took so far."""
        rows = {
            **metrics,
            "judge_calls": self.reward.budget.calls_made,
            "judge_cost": self.reward.cost,
        }
        paths.write(self.out / METRICS, json.dumps(plain(rows), indent=1))

    def mark(self) -> None:
        """Write what this run is; DataError where the folder holds a run of something else."""
        source = self.stage.rows
        every = [to_json(t) for t in self.every_task]
        about: dict[str, Any] = {
            "settings": plain(msgspec.structs.asdict(self.settings)),
            "rows": source if isinstance(source, str) else plain(to_json(source)),
            "tasks": fingerprint(every),
            # the same tasks may be split in another way
            "heldout": fingerprint(every[len(self.job.tasks) :]),
            "judge": self.reward.name,
            "reward": fingerprint(plain(to_json(self.reward.composer))),
        }
        path = self.out / MARK
        if path.exists():
            old = json.loads(path.read_text("utf-8"))
            # half a run of one setting and half of another would be neither
            other = [k for k in about if k != "settings" and old.get(k) != about[k]]
            other += [
                k
                for k, v in about["settings"].items()
                if old["settings"].get(k) != v
            ]
            if other and not has_begun(self.out):
                # a start that failed: what it sampled belongs to other settings
                stale = ("rows.json", "forecast.json", "eval_*.json")
                for file in (f for name in stale for f in self.out.glob(name)):
                    file.unlink()
            elif other:
                raise DataError(
                    f"this folder holds a run with other values of {', '.join(other)}",
                    where=str(self.out),
                    fix="choose another out, or repeat the values of the run",
                )
        paths.write(path, json.dumps(about, indent=1))
        # whoever reads the folder later has the answers' prompts and criteria, too
        paths.write(
            self.out / HELDOUT,
            msgspec.json.Encoder().encode_lines(self.job.heldout),
        )

    def train(self) -> dict[str, Any]:
        """Train to the end, from the last save point where there is one; what metrics.json holds."""
        self.policy = policy(self.settings, self.every_task)
        logger.info(
            "%s (%s); %s", self.policy.engine, self.policy.why, self.policy.device
        )
        # the other processes read the rows that are stored here
        self.training_rows()
        ranks.broadcast((self.stage, self.settings, self.out))
        return self.fit()

    def fit(self) -> Any:
        """Train. All processes come here; the first one evaluates and writes, and gets what metrics.json holds."""
        from transformers.trainer_callback import PrinterCallback

        s = self.settings
        self.policy = self.policy or policy(s, self.every_task)
        if s.stage == "grpo":
            self.trainer = trainers.grpo_trainer(
                self.policy,
                s,
                self.training_tasks(),
                self.reward,
                out=self.out,
                log=self.log,
            )
        else:
            self.trainer = trainers.supervised_trainer(
                self.policy, s, self.training_rows(), out=self.out
            )
        evaluate = partial(self.with_whole_weights, self.evaluate)
        self.trainer.add_callback(
            callbacks.callback(self.log, s, evaluate if self.job.heldout else None)
        )
        # transformers would print every log
        self.trainer.remove_callback(PrinterCallback)
        last = save_point(self.out / "checkpoints")
        if ranks.rank() == 0:
            if s.forecast and s.stage == "grpo":
                self.make_forecast()
            if self.job.heldout:
                self.evaluate("before")
            self.log.rewind(int(last.name.rsplit("-", 1)[1]) if last else 0)
        # unsloth's model has its adapter already: TRL adds a "ref" adapter, and transformers loads only that one
        if last and self.policy.engine == "unsloth":
            self.trainer.add_callback(callbacks.adapter_callback(last))
        self.trainer.train(resume_from_checkpoint=str(last) if last else None)
        return self.with_whole_weights(self.finish)

    def with_whole_weights(self, work: Callable[..., Any], *arguments: Any) -> Any:
        """Do work in the first process. Under ZeRO-3 each process has a part of the weights, so all come here."""
        from trl.models import unwrap_model_for_generation

        trainer, whole = self.trainer, contextlib.nullcontext()
        if ranks.world() > 1:
            whole = unwrap_model_for_generation(
                trainer.model_wrapped, trainer.accelerator
            )
        with whole:
            return work(*arguments) if ranks.rank() == 0 else None

    def finish(self) -> dict[str, Any]:
        """Save the adapter; what metrics.json holds."""
        assert self.policy is not None
        s, notes = self.settings, []
        save_adapter(
            self.trainer.model, self.policy.tokenizer, self.out / "adapter"
        )
        steps = read_rows(self.out / STEPS)
        out: dict[str, Any] = {
            "config": self.job.name,
            "base": self.job.stages[0].settings.model,
            "stage": s.stage,
            "name": self.stage.name,
            "model": s.model,
            "steps": len(steps),
            "seconds": sum(r["seconds"] for r in steps),
            **self.policy.about,
            "fast": getattr(self.trainer, "kit_merged", None) is not None,
            "judge": self.reward.name,
        }
        if s.stage == "grpo":
            out |= self.reward_totals(steps, notes)
        if self.job.heldout:
            out |= self.comparison()
        else:
            notes.append(
                "Nothing is held out, so no gain is measured. Mark rows with split: heldout."
            )
        if s.quantize != "none":
            notes.append(
                "Trained and evaluated in 4 bits. The merged weights are float32 and answer a little differently."
            )
        if s.control:
            notes.append(
                "This is a control: the rewards changed hands at random, so any gain is no learning."
            )
        for note in notes:
            logger.warning("%s", note)
        return out | {"notes": notes}

    def reward_totals(
        self, steps: Sequence[Mapping[str, Any]], notes: list[str]
    ) -> dict[str, Any]:
        """Means over all steps, and what a reader must know of them."""
        # the updates on one batch repeat its numbers
        rows = {
            r.get("batch", r["step"]): r for r in steps if "answers" in r
        }.values()
        answers = sum(r["answers"] for r in rows) or 1
        truncation = sum(r["truncated"] * r["answers"] for r in rows) / answers
        unknown = sum(r["unknown_rewards"] for r in rows) / answers
        groups = {
            k: sum(r["groups"][k] for r in rows)
            for k in ("mixed", "good", "bad", "unknown")
        }
        # in one trial 94 % were cut off, and nothing was reported
        if truncation > 0.5:
            notes.append(
                f"{truncation:.0%} of the answers were cut off: raise max_answer_tokens, or ask for less."
            )
        if unknown > 0.1:
            notes.append(
                f"{unknown:.0%} of the rewards were unknown: see the causes in rollouts.jsonl."
            )
        seconds = sum(r.get("seconds_judge", 0.0) for r in rows)
        return {
            "truncated": truncation,
            "unknown_rewards": unknown,
            "groups": groups,
            "seconds_judge": seconds,
        }

    def training_tasks(self) -> Sequence[Task]:
        """The tasks to train on; DataError where there are none."""
        if not self.job.tasks:
            raise DataError(
                "there are no tasks to train on",
                where="tasks",
                fix="tasks: FILE in the config, with rows that are not held out",
            )
        return self.job.tasks

    def training_rows(self) -> list[dict[str, Any]]:
        """What SFT or DPO learns from; the model's own answers are sampled once and stored."""
        source, stage = self.stage.rows, self.settings.stage
        if stage == "grpo":
            return []
        path = self.out / "rows.json"
        if path.exists():
            return json.loads(path.read_text("utf-8"))  # type: ignore[no-any-return]
        if isinstance(source, str):
            out = self.rows_of_file(source)
        elif source is None:
            out = rows.of_answers(self.training_tasks(), self.job.responses, stage)
        elif source.source == "exact":
            out = rows.exact(self.training_tasks(), source, self.settings.seed)
        else:
            out = rows.from_answers(
                source, self.training_tasks(), self.demonstrations, self.answer
            )
        paths.write(path, json.dumps(out, ensure_ascii=False))
        return out

    def rows_of_file(self, path: str) -> list[dict[str, Any]]:
        """Rows of a file, without those whose prompt is held out."""
        from ..data import load

        data = load(path)
        # a demonstration of a held-out prompt would be its answer
        heldout = [*self.job.heldout, *(t for t in data.tasks if t.held_out)]
        prompts = {
            text_identity(t.conversation) for t in heldout
        } | self.job.prompts
        some = [
            t for t in data.tasks if text_identity(t.conversation) not in prompts
        ]
        if len(some) < len(data.tasks):
            logger.warning(
                "%d rows are held out: not trained on", len(data.tasks) - len(some)
            )
        tasks = with_prompts(some, self.job.keys)
        return rows.of_answers(tasks, data.responses, self.settings.stage)

    def answer(
        self, tasks: Sequence[Task], samples: int, greedy: bool
    ) -> list[tuple[Task, Response, Grade]]:
        """The model's own answers to training tasks, before it is trained in this stage."""
        responses = self.sample(
            tasks, "own", samples, 0.0 if greedy else self.settings.temperature
        )
        grades = self.reward.grade(responses)
        return [
            (self.reward.by_id[r.task_id], r, g)
            for r, g in zip(responses, grades, strict=True)
        ]

    def sample(
        self, tasks: Sequence[Task], name: str, samples: int, temperature: float
    ) -> list[Response]:
        """Answers of the model as it is now."""
        assert self.policy is not None
        return sample(
            self.policy.model if self.trainer is None else self.trainer.model,
            self.policy.tokenizer,
            tasks,
            name=name,
            samples=samples,
            temperature=temperature,
            max_new_tokens=self.settings.max_answer_tokens,
            seed=self.settings.seed + 20_000,
            template_options=self.settings.template_options,
            generate=partial(fast_cpu.generate, self.trainer)
            if getattr(self.trainer, "kit_merged", None)
            else None,
        )

    def evaluate(self, name: str) -> Evaluation:
        """Answers to the held-out prompts and their grades; what is stored is read.

        Where the judge was down, stored answers are graded again.
        """
        path, s = self.out / f"eval_{name}.json", self.settings
        old = read_evaluation(path) if path.exists() else None
        if old and not old.is_open:
            return old
        temperature = (
            s.temperature if s.eval_temperature is None else s.eval_temperature
        )
        responses = (
            old.responses
            if old
            else self.sample(self.job.heldout, name, s.eval_samples, temperature)
        )
        # a judge must not see how likely the model found its own answer
        grades = self.reward.grade(
            [msgspec.structs.replace(r, confidence=None) for r in responses]
        )
        new = Evaluation(
            name=name, responses=tuple(responses), grades=tuple(grades)
        )
        new.save(path)
        return new

    def make_forecast(self) -> None:
        """The forecast, once; it stops a run that cannot learn."""
        path = self.out / "forecast.json"
        if not path.exists():
            ahead = make_forecast(
                self.settings,
                self.training_tasks(),
                self.reward,
                self.sample,
                self.job.heldout,
            )
            paths.write(path, json.dumps(plain(ahead), indent=1))
            logger.info("%s", ahead)
            ahead.check()

    def comparison(self) -> dict[str, Any]:
        """Before and after on the held-out prompts, beside the policies without skill."""
        tasks = self.job.heldout
        old, new = map(self.evaluate, WHEN)
        metrics = comparison(old, new, tasks)
        # The policies never change, so an LLM judge sees them once: after the last stage.
        if self.reward.name != "code" and self.stage is not self.job.stages[-1]:
            return metrics
        some = for_trivial(tasks, self.reward)
        # a run that goes on finds these verdicts in its ledger
        means = trivial(
            some,
            judge=self.reward.judge,
            reward=self.reward.composer,
            ledger=self.reward.ledger,
        ).set_index("policy")["reward"]
        # unknown is null, and no 0
        cheap = plain(means.to_dict())
        paths.write(self.out / "trivial.json", json.dumps(cheap, indent=1))
        return metrics | {"trivial": cheap, "trivial_prompts": len(some)}


def has_begun(out: Path) -> bool:
    """True where a step was made in the folder of a run, or in that of a stage."""
    steps = [*out.glob(STEPS), *out.glob(f"[0-9]*_*/{STEPS}")]
    return any(read_rows(path) for path in steps)


def save_point(folder: Path) -> Path | None:
    """The last checkpoint that is complete: a kill may leave a part of one."""
    whole = [p.parent for p in folder.glob("checkpoint-*/trainer_state.json")]
    return max(whole, key=lambda p: int(p.name.rsplit("-", 1)[1]), default=None)
