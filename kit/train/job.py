"""A training job from one file: which tasks, which judge, which reward, where to, and the settings of the stage.

stage: grpo            # sft, dpo, grpo
preset: cpu
tasks: short_answers.json   # beside the config, in the kit's data folder, or an absolute path
judge: embedding       # none, embedding, local, or {endpoint: MODEL, base_url: URL}
reward: rubric         # a preset of kit.rewards, or a config
out: my_run            # below the runs folder, or an absolute path
lr: 5.0e-4             # any setting of the stage
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from ..errors import KitError, MissingError
from ..records import Task
from ..system import paths
from .config import GRPOSettings, Settings, from_mapping, load_values

KEYS = ("tasks", "heldout", "rows", "judge", "audit", "reward", "out", "ledger")


@dataclass(frozen=True, kw_only=True)
class Job:
    """Everything a training needs; tasks of split "heldout" are held out, unless a file of its own is given."""

    settings: Settings
    tasks: tuple[Task, ...]
    heldout: tuple[Task, ...]
    rows: tuple[Mapping[str, Any], ...]
    judge: Any
    audit: Any
    reward: Any
    out: Path
    ledger: Path | None


def read(path: str | Path, **changes: Any) -> Job:
    """A job from a YAML or JSON file; `changes` replace values of it."""
    path = Path(path)
    return build(
        {**load_values(path), **changes}, beside=path.parent, where=str(path), name=path.stem
    )


def build(
    values: Mapping[str, Any],
    *,
    beside: Path | None = None,
    where: str = "config",
    name: str = "training",
) -> Job:
    """A job from a mapping; relative paths are looked for beside the config, then in the kit's data folder."""
    values = dict(values)
    own = {k: values.pop(k) for k in KEYS if k in values}
    for key in values:  # a mistyped key of the job itself; settings are looked at by from_mapping
        if near := get_close_matches(str(key), KEYS, n=1, cutoff=0.8):
            raise KitError(
                f"there is no key {key!r}", where=where, fix=f"did you mean {near[0]!r}?"
            )
    settings = from_mapping(values, where=where)
    every = _tasks(own.get("tasks"), beside, where) if own.get("tasks") else ()
    if not every and settings.stage == "grpo":
        raise KitError("the config names no tasks", where=where, fix="add `tasks: FILE`")
    held = (
        _tasks(own["heldout"], beside, where)
        if own.get("heldout")
        else tuple(t for t in every if t.split == "heldout")
    )
    train = every if own.get("heldout") else tuple(t for t in every if t.split != "heldout")
    out = Path(own.get("out") or name).expanduser()
    return Job(
        settings=settings,
        tasks=train,
        heldout=held,
        rows=_rows(own.get("rows"), beside, where),
        judge=judge_of(own.get("judge", "none"), where),
        audit=judge_of(own.get("audit", "none"), where),
        reward=own.get("reward", "rubric"),
        out=out if out.is_absolute() else paths.runs() / out,
        ledger=Path(own["ledger"]).expanduser() if own.get("ledger") else None,
    )


def run(job: Job, *, resume: bool = False, on_step: Any = None) -> Any:
    """Run the job's stage; the result of grpo.train, or of stages.train."""
    if isinstance(job.settings, GRPOSettings):
        from . import grpo

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
            on_step=on_step,
        )
    from . import stages

    return stages.train(job.settings, job.rows, out=job.out, resume=resume, on_step=on_step)


def judge_of(value: Any, where: str) -> Any:
    """A judge from its name or its options in a config (kit.judge.factory); None for "none"."""
    if value in (None, "none"):
        return None
    from ..judge import factory

    return factory.judge_of(value, where=f"{where}, key judge")


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
        fix="give a path beside the config, or an absolute one",
    )


def _tasks(value: Any, beside: Path | None, where: str) -> tuple[Task, ...]:
    from ..data import load_tasks

    return tuple(load_tasks(_find(value, beside, where)).sound().tasks)


def _rows(value: Any, beside: Path | None, where: str) -> tuple[Mapping[str, Any], ...]:
    if not value:
        return ()
    from ..data.tables import read_rows

    return tuple(row for _, row in read_rows(_find(value, beside, where)))
