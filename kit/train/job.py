"""A training job from one file: tasks, judge, reward, where to, and the settings of the stage.

stage: grpo            # sft, dpo, grpo
preset: cpu
tasks: short_answers.json   # beside the config, in the kit's data folder, or an absolute path
heldout: FILE          # or a split here: train_ratio: 0.9, data_seed: 42 (a seeded shuffle);
holdout_by: tissue     # whole groups (a field of the rows); holdout: [eye, thymus] names them
ask: "..."             # added to every prompt
evolve: true           # criteria proposed while training: {model: endpoint:M, keep: 5, ask_every:
1} judge: code            # kit.judge.factory: code, local, endpoint:MODEL, {panel: [...]}, ...
rows: FILE             # what sft and dpo learn from, in any form that kit.load reads
reward: rubric         # a preset of kit.rewards, or a config
out: my_run            # below the runs folder, or an absolute path
lr: 5e-4               # any setting of the stage; other systems' names are read too (names.py)
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any

from ..data import load_tasks, read_rows
from ..errors import KitError, MissingError, at
from ..records import Task
from ..rewards.composer import Composer
from ..settings.read import known_names, load, texts
from ..system import paths
from . import forecast, grpo, inputs, stages
from .config import STAGES, GRPOSettings, Settings, from_mapping
from .evolving import Evolve, settings_of
from .names import REFINER, translate, usable

KEYS = ("tasks", "heldout", "rows", "judge", "audit", "reward", "evolve", "out", "ledger", "ask")
TEXTS = ("tasks", "heldout", "rows", "out", "ledger", "ask", "holdout_by")
FILES = ("tasks", "heldout", "rows", "reward", "answers")
SPLIT = ("train_ratio", "data_seed", "holdout_by", "holdout")


@dataclass(frozen=True, kw_only=True)
class Job:
    """Everything a training needs; rows marked heldout, test or validation are not trained on."""

    settings: Settings
    tasks: tuple[Task, ...]
    heldout: tuple[Task, ...]
    rows: tuple[Mapping[str, Any], ...]
    judge: Any
    audit: Any
    reward: Any
    evolve: Evolve | None
    out: Path
    ledger: Path | None


def read(path: str | Path, **changes: Any) -> Job:
    """A job from a YAML or JSON file; `changes` replace values of it."""
    path = Path(path)
    values = load(path, what="training config")
    known = names_of({**values, **changes})
    where = str(path)
    if changes.keys() & REFINER.keys() and "reward" in values:
        changes = {"reward": values["reward"], **changes}
    changes = here(translate(changes, known, where="command line"))
    values = translate(values, known, where=where) | changes
    return build(values, beside=path.parent, where=where, name=path.stem)


def here(changes: Mapping[str, Any]) -> dict[str, Any]:
    """Changes of a config; a file that lies where the command runs is meant, whatever the kit ships
    under its name.
    """
    texts = {k: v for k, v in changes.items() if k in FILES and isinstance(v, str)}
    found = {k: Path(v).expanduser().absolute() for k, v in texts.items()}
    return {**changes, **{k: str(path) for k, path in found.items() if path.is_file()}}


def names_of(values: Mapping[str, Any]) -> list[str]:
    """Every key that a config of this stage may have."""
    stage = STAGES.get(str(values.get("stage", "grpo")), GRPOSettings)
    return [*KEYS, *SPLIT, "stage", "preset", *(f.name for f in fields(stage))]


def build(
    values: Mapping[str, Any],
    *,
    beside: Path | None = None,
    where: str = "config",
    name: str = "training",
) -> Job:
    """A job from a mapping; relative paths are looked for beside the config, then in the kit's data
    folder.
    """
    known = names_of(values)
    values = translate(values, known, where=where)
    known_names(values, [*known, *usable(known)], where=where, what="key or setting")
    own = {k: values.pop(k) for k in (*KEYS, *SPLIT) if k in values}
    texts(own, TEXTS, where=where)
    settings = from_mapping(values, where=where)
    _used(own, settings.stage, where)
    inputs.check(settings)  # before a judge loads its model
    every = _tasks(own.get("tasks"), beside, where) if own.get("tasks") else ()
    if not every and settings.stage == "grpo":
        raise KitError("the config names no tasks", where=where, fix="add `tasks: FILE`")
    every = asking(every, own.get("ask"))
    how = {k: own[k] for k in SPLIT if own.get(k) is not None}
    held = None
    if own.get("heldout"):
        _one_way(how, where)
        held = asking(_tasks(own["heldout"], beside, where), own.get("ask"))
    train, held = inputs.split(every, how, where, held)
    file = own.get("rows")
    out = Path(own.get("out") or name).expanduser()
    out = out if out.is_absolute() else paths.runs() / out
    inputs.place(out)
    reward = reward_of(own.get("reward", "rubric"), beside, where)
    return Job(
        settings=settings,
        tasks=train,
        heldout=held,
        rows=stages.of_file(_find(file, beside, where), settings.stage) if file else (),
        judge=judge_of(own.get("judge", "none"), where),
        audit=judge_of(own.get("audit", "none"), where, "audit"),
        reward=reward,
        evolve=settings_of(own.get("evolve"), where),
        out=out,
        ledger=Path(own["ledger"]).expanduser() if own.get("ledger") else None,
    )


def _used(own: Mapping[str, Any], stage: str, where: str) -> None:
    """SFT and DPO learn from rows, GRPO from tasks: the other kind has no effect."""
    unread, fix = {"rows"}, "give `tasks: FILE`"
    if stage != "grpo":
        unread = own.keys() - {"rows", "out", "ledger"}
        fix = f"leave it out; with tasks and evaluation: a chain, stages: [{{stage: {stage}}}]"
    unused = [k for k in own if k in unread and own[k] not in (None, "none", False)]
    if unused:
        raise KitError(
            f"{', '.join(unused)} would have no effect in a stage {stage!r} of its own",
            where=where,
            fix=fix,
        )


def _one_way(how: Mapping[str, Any], where: str) -> None:
    """A file of held-out tasks and a split of the others would be two answers to one question."""
    if how:
        raise KitError(
            f"`heldout` and {min(how)!r} both say what is held out",
            where=where,
            fix="keep one of them",
        )


def asking(tasks: Iterable[Task], ask: str | None) -> tuple[Task, ...]:
    """The tasks with a sentence added to every prompt."""
    if not ask:
        return tuple(tasks)
    return tuple(replace(t, prompt=f"{t.prompt} {ask}".strip()) for t in tasks)


def run(job: Job, *, resume: bool | None = False, on_step: Any = None) -> Any:
    """Run the job's stage; the result of grpo.train, or of stages.train. resume : None, when its
    folder holds a run.
    """
    if resume is None:
        resume = inputs.begun(job.out)
    if isinstance(job.settings, GRPOSettings):
        return grpo.train(
            job.settings,
            job.tasks,
            judge=job.judge,
            composer=job.reward,
            out=job.out,
            heldout=job.heldout,
            ledger=job.ledger,
            resume=resume,
            audit=job.audit,
            evolve=job.evolve,
            on_step=on_step,
        )
    return stages.train(job.settings, job.rows, out=job.out, resume=resume, on_step=on_step)


def foresee(job: Job) -> Any:
    """What the run would learn and cost (kit.train.forecast.Forecast); nothing is trained. Verdicts
    are kept in the ledger of the run, which finds them there.
    """
    s = job.settings
    if not isinstance(s, GRPOSettings):
        raise KitError("only GRPO has a forecast", where=f"stage {s.stage!r}")
    ledger = job.ledger
    if ledger is None and job.judge is not None:
        job.out.mkdir(parents=True, exist_ok=True)
        ledger = job.out / "ledger.sqlite"
    return forecast.of(
        job.tasks,
        s,
        reward=job.reward,
        judge=job.judge,
        ledger=ledger,
        heldout=job.heldout,
    )


def reward_of(value: Any, beside: Path | None, where: str) -> Any:
    """A reward's name, config or file, which may lie beside the config; KitError for one that is
    none, before a model loads.
    """
    if beside and isinstance(value, str) and (beside / value).is_file():
        value = str(beside / value)
    with at(f"{where}, key reward"):
        Composer.from_config(value)
    return value


def judge_of(value: Any, where: str, key: str = "judge") -> Any:
    """A judge from its name or its options in a config (kit.judge.factory); None for "none"."""
    if value in (None, "none"):
        return None
    from ..judge import factory

    return factory.judge_of(value, where=f"{where}, key {key}")


def _find(value: Any, beside: Path | None, where: str) -> Path:
    path = Path(str(value)).expanduser()
    for candidate in (
        [path]
        if path.is_absolute()
        else [*([beside / path] if beside else []), paths.data(str(path))]
    ):
        if candidate.is_file():
            return candidate
    raise MissingError(
        f"the file {str(value)!r} is not there",
        where=where,
        fix="give a path from here (--set), one beside the config, or an absolute one",
    )


def _tasks(value: Any, beside: Path | None, where: str) -> tuple[Task, ...]:
    return tuple(load_tasks(_find(value, beside, where)).sound().tasks)


def _rows(value: Any, beside: Path | None, where: str) -> tuple[Mapping[str, Any], ...]:
    if not value:
        return ()
    return tuple(row for _, row in read_rows(_find(value, beside, where)))
