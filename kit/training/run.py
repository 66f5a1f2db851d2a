"""`train`: the stages of a job, with an evaluation before and after each, and one page at the end."""

import contextlib
import gc
import json
import logging
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property, partial
from pathlib import Path
from typing import Any, TypeVar

import msgspec
import pandas as pd

from ..data import TaskSource, load
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
    sample,
)
from ..judging import JudgeSource, LedgerLike
from ..records import Response, Task, count_of, fingerprint, to_json
from ..records.tables import plain
from ..rewards import RewardSource, trivial
from ..system import paths, ranks
from ..system.device import import_torch
from ..system.progress import bar
from . import fast_cpu, rows, trainers
from .config import (
    ConfigSource,
    Job,
    SettingsSource,
    Stage,
    partition,
    prompt_identity,
    read_job,
    with_prompts,
)
from .forecasting import Forecast, for_trivial, make_forecast
from .policies import Policy, complete_folder, merge, policy
from .reward import Reward
from .settings import Settings

logger = logging.getLogger(__name__)
T = TypeVar("T")
OnStep = Callable[[dict[str, Any]], None]
FULL_DISK = 2**26  # bytes of free space, below which a disk counts as full


def train(
    config_or_tasks: ConfigSource,
    settings: SettingsSource | None = None,
    *,
    judge: JudgeSource | None = None,
    reward: RewardSource | None = None,
    heldout: TaskSource | None = None,
    out: str | Path | None = None,
    ledger: LedgerLike = None,
    resume: bool | None = None,
    on_step: OnStep | None = None,
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
        return run_stages(job, on_step)


def forecast(
    config_or_tasks: ConfigSource,
    settings: SettingsSource | None = None,
    *,
    judge: JudgeSource | None = None,
    **changes: Any,
) -> Forecast:
    """What a run could learn and cost, from 64 answers of the untrained model; the arguments are those of `train`.

    pass@1, pass@k and how many groups are mixed: where none is, `.check()` names the remedy.
    """
    job = read_job(config_or_tasks, settings, changes=changes, judge=judge)
    for stage in job.stages:
        if stage.settings.stage == "grpo":
            return StageRunner(
                job,
                stage,
                stage.settings,
                job.out,
                Reward(
                    job.tasks,
                    judge=job.keys.judge,
                    second=job.keys.second,
                    reward=job.keys.reward,
                    ledger=job.keys.ledger,
                ),
            ).make_forecast()
    raise DataError(
        "only GRPO has a forecast",
        where="stages",
        fix="name a config with a stage grpo",
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
    try:
        # Two trainings in one folder would mix their steps and save points. Processes of one training share it.
        with (
            contextlib.nullcontext() if ranks.rank() else FileLock(out / ".lock", 0)
        ):
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
        if isinstance(e, KitError) or shutil.disk_usage(out).free > FULL_DISK:
            raise
        raise MissingError(
            "the disk is full", where=str(out), fix=f"make room; then {go_on}"
        ) from e


def run_stages(job: Job, on_step: OnStep | None) -> Result:
    """Run the stages of a job; a stage that is finished is read, not run again."""
    reward = Reward(
        [*job.tasks, *job.heldout],
        judge=job.keys.judge,
        second=job.keys.second,
        reward=job.keys.reward,
        ledger=job.keys.ledger or job.out / "ledger.sqlite",
        patience_s=job.stages[0].settings.patience_s,
        book=job.out / "judge.json",
    )
    folders = [
        job.out / f"{n}_{stage.name.replace(' ', '_')}"
        if job.keys.stages
        else job.out
        for n, stage in enumerate(job.stages, 1)
    ]
    check_folder(job.out, folders)
    if ranks.rank():
        # the first process says what to train and when, and does all the rest; its None is the end
        while order := ranks.broadcast(None):
            StageRunner(job, *order, reward).fit()
        return Result.read(job.out)
    results = train_stages(job, folders, reward, on_step)
    if job.keys.stages:
        write_json(job.out / METRICS, chain_metrics(results))
    result = Result.read(job.out)
    result.page()
    # the processes beside this one end here
    ranks.broadcast(None)
    return result


def train_stages(
    job: Job,
    folders: Sequence[Path],
    reward: Reward,
    on_step: OnStep | None,
) -> list[Result]:
    """Run each stage on the model of the stage before it; one that is `aside` is not built on."""
    results: list[Result] = []
    before: Evaluation | None = None
    demonstrations: list[dict[str, Any]] = []
    model, adapter = job.stages[0].settings.model, job.stages[0].settings.adapter
    for stage, folder in zip(job.stages, folders, strict=True):
        settings = msgspec.structs.replace(
            stage.settings, model=model, adapter=adapter
        )
        runner = StageRunner(
            job, stage, settings, folder, reward, on_step, demonstrations
        )
        # in 4 bits the model of this stage is quantised anew, and answers differently
        results.append(
            runner.result(before if settings.quantize == "none" else None)
        )
        if job.keys.stages and not stage.aside:
            before, model = results[-1].after, str(folder / "merged")
            if not (folder / "merged" / "config.json").exists():
                merge(settings.model, folder / "adapter", model, first=adapter)
            adapter = None
            # own answers of a later stage are to other questions than the demonstrations
            demonstrations += runner.training_rows()
    return results


def check_folder(out: Path, folders: Sequence[Path]) -> None:
    """DataError where `out` holds a run whose stages are not in these folders."""
    # a chain would write its table over a run of one stage, or over that of a longer chain
    if other := {
        p.parent
        for p in [*out.glob(MARK), *out.glob(f"[0-9]*_*/{MARK}")]
        if has_begun(p.parent)
    } - {*folders}:
        raise DataError(
            "this folder holds another run",
            where=str(min(other)),
            fix="choose another out, or repeat all stages of the run",
        )


def chain_metrics(stages: Sequence[Result]) -> dict[str, Any]:
    """What metrics.json holds of a chain: from before its first stage to after its last."""
    first, last = stages[0], stages[-1]
    # what one stage warns of holds for the chain
    metrics = {
        **{
            k: last.metrics[k]
            for k in "config base profile tasks_file judge judge_calls judge_cost trivial trivial_prompts".split()
            if k in last.metrics
        },
        "stage": "chain",
        "model": first.metrics["model"],
        "seconds": sum(r.metrics["seconds"] for r in stages),
        "steps": sum(r.metrics["steps"] for r in stages),
        "notes": list(
            dict.fromkeys(note for r in stages for note in r.metrics["notes"])
        ),
    }
    if first.before and last.after:
        metrics |= comparison(first.before, last.after, last.heldout)
    return metrics


class StageRunner:
    """One stage: its trainer, its files, its evaluations."""

    def __init__(
        self,
        job: Job,
        stage: Stage,
        settings: Settings,
        out: Path,
        reward: Reward,
        on_step: OnStep | None = None,
        demonstrations: Sequence[dict[str, Any]] = (),
    ):
        self.job, self.stage, self.settings = job, stage, settings
        self.out, self.reward = out, reward
        self.log = Log(out, on_step)
        # those of a run that was stopped, too
        self.read_evaluation = partial(read_evaluation, out)
        self.demonstrations = list(demonstrations)
        self.every_task = [*job.tasks, *job.heldout]
        self.trainer: Any = None

    @cached_property
    def policy(self) -> Policy:
        """The model of this stage, loaded when it is first needed."""
        return policy(self.settings, self.every_task)

    def result(self, before: Evaluation | None) -> Result:
        """Run the stage, or read it where it is finished. before : the evaluation of the stage before."""
        self.claim_folder()
        path = self.out / METRICS
        if not path.exists():
            # the model before this stage is the one after the last: it is not asked twice
            if before is not None:
                write_json(self.out / "eval_before.json", before)
            self.write_metrics(self.train())
        # what a judge that was down left unknown is asked again
        elif any(e and e.is_open for e in map(self.read_evaluation, WHEN)):
            self.write_metrics(
                json.loads(path.read_text("utf-8")) | self.comparison()
            )
        # the next stage loads a model of its own
        vars(self).pop("policy", None)
        self.trainer = None
        gc.collect()
        return Result.read(self.out)

    def write_metrics(self, metrics: Mapping[str, Any]) -> None:
        """Write metrics.json, with what the judge took so far."""
        write_json(
            self.out / METRICS,
            {
                **metrics,
                "judge_calls": self.reward.budget.calls_made,
                "judge_cost": self.reward.cost,
            },
        )

    @property
    def identity(self) -> dict[str, Any]:
        """All that makes a run this run."""
        source, tasks = self.stage.rows, list(map(to_json, self.every_task))
        return {
            "settings": plain(msgspec.structs.asdict(self.settings)),
            "rows": source if isinstance(source, str) else plain(to_json(source)),
            "tasks": fingerprint(tasks),
            # the same tasks may be split in another way
            "heldout": fingerprint(tasks[len(self.job.tasks) :]),
            "judge": self.reward.name,
            "second": self.reward.second and self.reward.second.name,
            "reward": fingerprint(plain(to_json(self.reward.composer))),
            "judge_settings": judge_settings(self.reward),
        }

    def claim_folder(self) -> None:
        """Write what this run is; DataError where the folder holds a run of something else."""
        path, identity = self.out / MARK, self.identity
        old = json.loads(path.read_text("utf-8")) if path.exists() else identity
        now = identity["settings"] | identity
        # A run of an older kit does not say its judge's settings.
        before = {"judge_settings": now["judge_settings"]} | old["settings"] | old
        other = [
            name
            for name in now
            if name != "settings" and before.get(name) != now[name]
        ]
        # half a run of one setting and half of another would be neither
        if other and has_begun(self.out):
            raise DataError(
                f"this folder holds a run with other values of {', '.join(other)}",
                where=str(self.out),
                fix="choose another out, or repeat the values of the run",
            )
        # a start that failed: what it sampled belongs to other settings
        for stale in ("rows.json", "forecast.json", "eval_*.json") if other else ():
            for file in self.out.glob(stale):
                file.unlink()
        write_json(path, identity)
        # whoever reads the folder later has the answers' prompts and criteria, too
        paths.write(
            self.out / HELDOUT,
            msgspec.json.Encoder().encode_lines(self.job.heldout),
        )

    def train(self) -> dict[str, Any]:
        """Train to the end, from the last save point where there is one; what metrics.json holds."""
        logger.info(
            "%s (%s); %s", self.policy.engine, self.policy.why, self.policy.device
        )
        # the other processes read the rows that are stored here
        self.training_rows()
        ranks.broadcast((self.stage, self.settings, self.out))
        return self.fit() or {}

    def fit(self) -> dict[str, Any] | None:
        """Train. All processes come here; the first one evaluates and writes, and gets what metrics.json holds."""
        from transformers.trainer_callback import PrinterCallback

        s = self.settings
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
        # transformers would print every log
        self.trainer.remove_callback(PrinterCallback)
        step, last = save_point(self.out / "checkpoints")
        if ranks.rank() == 0:
            path = self.out / "forecast.json"
            if s.forecast and s.stage == "grpo" and not path.exists():
                forecast = self.make_forecast()
                write_json(path, forecast)
                logger.info("%s", forecast)
                forecast.check()
            if self.job.heldout:
                self.evaluate("before")
            self.log.rewind(step)
        with bar(
            total=s.steps, initial=step, desc=s.stage, disable=ranks.rank() > 0
        ) as progress:
            self.trainer.add_callback(
                trainers.step_callback(
                    self.log,
                    progress.update,
                    self.evaluate_at,
                    adapter=last if self.policy.engine == "unsloth" else None,
                )
            )
            self.trainer.train(resume_from_checkpoint=str(last) if last else None)
        return self.with_whole_weights(self.finish)

    def evaluate_at(self, step: int) -> None:
        """An evaluation on the way, where the settings want one; after the last step there is one anyway."""
        every, steps = self.settings.eval_every, self.settings.steps
        if self.job.heldout and every and step % every == 0 and step < steps:
            look = self.with_whole_weights(self.evaluate, f"step{step}")
            # a column of steps.jsonl and of the tracker
            for name, value in look.means.items() if look else ():
                self.trainer._metrics["train"][name].append(value)

    def with_whole_weights(
        self, work: Callable[..., T], *arguments: object
    ) -> T | None:
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
        policy = self.policy
        with complete_folder(self.out / "adapter") as part:
            # with beta > 0 unsloth's model has a second adapter, the reference
            self.trainer.model.save_pretrained(part, selected_adapters=["default"])
            policy.tokenizer.save_pretrained(part)
        steps = pd.DataFrame(paths.read_log(self.out / STEPS))
        metrics: dict[str, Any] = {
            "config": self.job.name,
            "profile": self.job.profile,
            "tasks_file": self.job.tasks_file,
            "base": self.job.stages[0].settings.model,
            "stage": self.settings.stage,
            "name": self.stage.name,
            "model": self.settings.model,
            "steps": len(steps),
            "seconds": steps["seconds"].sum(),
            "engine": policy.engine,
            "engine_why": policy.why,
            "device": policy.device.name,
            "dtype": policy.device.dtype,
            "dtype_why": policy.device.why,
            # results of one seed differ between numbers of threads
            "threads": import_torch().get_num_threads(),
            "fast": getattr(self.trainer, "kit_merged", None) is not None,
            "judge": self.reward.name,
        }
        if self.settings.stage == "grpo":
            # the updates on one batch repeat its numbers
            metrics |= batch_metrics(steps.drop_duplicates("batch"))
        if self.job.heldout:
            metrics |= self.comparison()
        notes = self.notes(metrics)
        for note in notes:
            logger.warning("%s", note)
        return metrics | {"notes": notes}

    def notes(self, metrics: Mapping[str, Any]) -> list[str]:
        """What a reader must know of the metrics."""
        truncated = metrics.get("truncated", 0.0)
        unknown = metrics.get("unknown_rewards", 0.0)
        notes = (
            # in one trial 94 % were cut off, and nothing was reported
            (
                truncated > 0.5,
                f"{truncated:.0%} of the answers were cut off: raise max_answer_tokens, or ask for less.",
            ),
            (
                unknown > 0.1,
                f"{unknown:.0%} of the rewards were unknown: see the causes in rollouts.jsonl.",
            ),
            (
                not self.job.heldout,
                "Nothing is held out, so no gain is measured. Mark rows with split: heldout.",
            ),
            (
                self.settings.quantize != "none",
                "Trained and evaluated in 4 bits. The merged weights are float32 and answer a little differently.",
            ),
            (
                self.settings.control,
                "This is a control: the rewards changed hands at random, so any gain is no learning.",
            ),
        )
        return [note for is_true, note in notes if is_true]

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
            made = self.rows_of_file(source)
        elif source is None:
            made = rows.of_answers(self.training_tasks(), self.job.responses, stage)
        elif source.source == "exact":
            made = rows.exact(self.training_tasks(), source, self.settings.seed)
        else:
            made = rows.from_answers(
                source, self.training_tasks(), self.demonstrations, self.answer
            )
            logger.warning(
                "%s from own answers to %s",
                count_of(len(made), "row"),
                count_of(len(self.training_tasks()[: source.tasks]), "prompt"),
            )
        if made and ("chosen" in made[0]) != (stage == "dpo"):
            raise DataError(
                f"rows from {source!r} cannot teach {stage}",
                where=f"stage {self.stage.name!r}, rows",
                fix="source: own for DPO; exact, best, outcomes or estimates for SFT",
            )
        paths.write(path, json.dumps(made, ensure_ascii=False))
        return made

    def rows_of_file(self, path: str) -> list[dict[str, Any]]:
        """Rows of a file, without those whose prompt is held out."""
        data = load(path)
        marked, _ = partition(data.tasks, lambda task: task.held_out)
        # a demonstration of a held-out prompt would be its answer
        prompts = self.job.prompts.union(
            map(prompt_identity, (*self.job.heldout, *marked))
        )
        left_out, some = partition(
            data.tasks, lambda task: prompt_identity(task) in prompts
        )
        if left_out:
            logger.warning(
                "held out, so not trained on: %s", count_of(len(left_out), "row")
            )
        return rows.of_answers(
            with_prompts(some, self.job.keys), data.responses, self.settings.stage
        )

    def answer(
        self, tasks: Sequence[Task], samples: int, greedy: bool
    ) -> list[rows.Sample]:
        """The model's own answers to training tasks, before it is trained in this stage."""
        answers = self.sample(
            tasks, "own", samples, 0.0 if greedy else self.settings.temperature
        )
        return list(
            zip(
                (self.reward.by_id[answer.task_id] for answer in answers),
                answers,
                self.reward.grade(answers),
                strict=True,
            )
        )

    def sample(
        self, tasks: Sequence[Task], name: str, samples: int, temperature: float
    ) -> list[Response]:
        """Answers of the model as it is now."""
        generate, model = None, getattr(self.trainer, "model", self.policy.model)
        if getattr(self.trainer, "kit_merged", None):
            generate = partial(fast_cpu.generate_merged, self.trainer)
        return sample(
            model,
            self.policy.tokenizer,
            tasks,
            name=name,
            samples=samples,
            temperature=temperature,
            max_new_tokens=self.settings.max_answer_tokens,
            seed=self.settings.seed + 20_000,
            template_options=self.settings.template_options,
            generate=generate,
        )

    def evaluate(self, name: str) -> Evaluation:
        """Answers to the held-out prompts and their grades; what is stored is read.

        Where a judge was down, stored answers are graded again. A second judge grades the same answers.
        """
        old, s = self.read_evaluation(name), self.settings
        if old and not old.is_open:
            return old
        answers = (
            list(old.responses)
            if old
            else self.sample(
                self.job.heldout,
                name,
                s.eval_samples,
                s.temperature if s.eval_temperature is None else s.eval_temperature,
            )
        )
        # a judge must not see how likely the model found its own answer
        unsure = [msgspec.structs.replace(r, confidence=None) for r in answers]
        new = Evaluation(
            name=name,
            responses=tuple(answers),
            grades=tuple(self.reward.grade(unsure)),
            second=tuple(self.reward.second.grade(unsure))
            if self.reward.second
            else (),
        )
        write_json(self.out / f"eval_{name}.json", new)
        return new

    def make_forecast(self) -> Forecast:
        """What the stage can learn, from a few answers of the model as it is."""
        return make_forecast(
            self.settings,
            self.training_tasks(),
            self.reward,
            self.sample,
            self.job.heldout,
        )

    def comparison(self) -> dict[str, Any]:
        """Before and after on the held-out prompts, beside the policies without skill."""
        tasks, reward = self.job.heldout, self.reward
        before, after = map(self.evaluate, WHEN)
        metrics = comparison(before, after, tasks)
        steps = map("step{}".format, range(1, self.settings.steps))
        looks = map(self.read_evaluation, [WHEN[0], *steps, WHEN[1]])
        metrics["curve"] = [
            {"step": step, **look.means} for step, look in enumerate(looks) if look
        ]
        # The policies never change, so an LLM judge sees them once: after the last stage.
        if reward.name != "code" and self.stage is not self.job.stages[-1]:
            return metrics
        some = for_trivial(tasks, reward)
        # A run that goes on finds these verdicts in its ledger. Unknown is null, not 0.
        means = plain(
            trivial(
                some,
                judge=reward.judge,
                reward=reward.composer,
                ledger=reward.ledger,
            )
            .set_index("policy")["reward"]
            .to_dict()
        )
        write_json(self.out / "trivial.json", means)
        return metrics | {"trivial": means, "trivial_prompts": len(some)}


def batch_metrics(batches: pd.DataFrame) -> dict[str, Any]:
    """What metrics.json holds of the answers in training; batches : rows of steps.jsonl, one a batch."""
    answers = batches["answers"].sum()
    return {
        "truncated": (batches["truncated"] * batches["answers"]).sum() / answers,
        "unknown_rewards": batches["unknown_rewards"].sum() / answers,
        "groups": pd.DataFrame(batches["groups"].tolist()).sum().to_dict(),
        "seconds_judge": batches["seconds_judge"].sum(),
    }


def judge_settings(reward: Reward) -> str:
    """A fingerprint of what shapes the verdicts of both judges, but for their address, which may change."""
    settings = [plain(r.judge.identity) for r in (reward, reward.second) if r]
    for identity in settings:
        if isinstance(identity, dict):
            identity.pop("base_url", None)
    return fingerprint(settings)


def has_begun(out: Path) -> bool:
    """True where a step was made in the folder of a run, or in that of a stage."""
    return any(
        map(paths.read_log, [*out.glob(STEPS), *out.glob(f"[0-9]*_*/{STEPS}")])
    )


def save_point(folder: Path) -> tuple[int, Path | None]:
    """(step, folder) of the last checkpoint that is complete: a kill may leave a part of one."""
    return max(
        (
            (int(file.parent.name.rsplit("-", 1)[1]), file.parent)
            for file in folder.glob("checkpoint-*/trainer_state.json")
        ),
        default=(0, None),
    )


def write_json(path: Path, value: object) -> None:
    """Write a value as an indented JSON file, whole or not at all; unknown is null."""
    paths.write(path, json.dumps(plain(value), indent=1))
