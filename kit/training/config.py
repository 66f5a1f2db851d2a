"""A config file as a job: tasks, held-out tasks, judge, reward, stages with their settings."""

import logging
from collections.abc import Callable, Mapping, Sequence
from operator import attrgetter
from pathlib import Path
from typing import Any

import msgspec

from ..checks import AnswerForm
from ..data import TaskSet, TaskSource, tasks_of
from ..data import load as load_tasks
from ..errors import DataError, MissingError
from ..records import Response, Task, count_of, group, text_identity
from ..rubrics import draw_units
from ..system import paths, profiles
from ..system.settings import Share, check_names, load, make
from .rows import Source
from .settings import (
    CONFIGS,
    NAMES,
    Settings,
    build,
    nest,
    overlay,
    places,
    renames,
)

logger = logging.getLogger(__name__)
ConfigSource = TaskSource | Mapping[str, Any]
SettingsSource = str | Mapping[str, Any] | Settings


class Stage(msgspec.Struct, frozen=True, kw_only=True):
    """One stage of a job. rows : what SFT or DPO learns from. aside : the next stage does not build on it."""

    name: str
    settings: Settings
    rows: str | Source | None = None
    aside: bool = False


class Keys(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The keys of a config beside its settings.

    tasks, heldout : files, beside the config or in the data folder. kinds : only tasks of these kinds.
    ask : a sentence behind every prompt; "form" is the stated form (answer and confidence). system : of every task.
    train_ratio, data_seed : hold out whole prompts at random. holdout_by, holdout : hold out groups, such as tissues.
    judge : the fields of an endpoint are joined over config, profile and caller, as options are.
    second : a judge that pays nothing; it grades the same held-out answers, so that the two can be compared.
    rows : what SFT or DPO learns from. stages : a chain. profiles : profile -> values that replace these.
    """

    tasks: str | None = None
    heldout: str | None = None
    kinds: tuple[str, ...] | None = None
    ask: str | None = None
    system: str | None = None
    train_ratio: Share | None = None
    data_seed: int = 42
    holdout_by: str | None = None
    holdout: str | tuple[str, ...] | None = None
    judge: Any = None
    second: Any = None
    reward: Any = "rubric"
    rows: str | dict[str, Any] | None = None
    out: str | None = None
    ledger: Any = None
    stages: tuple[dict[str, Any], ...] = ()
    profiles: dict[str, dict[str, Any]] = {}


KEYS = Keys.__struct_fields__


class Job(msgspec.Struct, frozen=True, kw_only=True):
    """What a training needs. name : of the config. profile : of the machine.

    responses : answers of the tasks' file, which SFT and DPO learn from.
    keys : of the config. prompts : the held-out ones as the files have them, without what the config asks of all.
    """

    name: str
    profile: str
    tasks_file: str
    stages: tuple[Stage, ...]
    tasks: tuple[Task, ...]
    heldout: tuple[Task, ...]
    responses: tuple[Response, ...] = ()
    prompts: frozenset[str] = frozenset()
    keys: Keys = Keys()
    out: Path


def read_job(
    source: ConfigSource,
    settings: SettingsSource | None = None,
    *,
    changes: Mapping[str, Any],
    judge: object = None,
    reward: object = None,
    heldout: TaskSource | None = None,
    out: str | Path | None = None,
    ledger: object = None,
) -> Job:
    """A job from a config (name, file or mapping) or from tasks, with the caller's changes."""
    values, beside, name = read_config(source)
    file = source if isinstance(source, str | Path) and not values else None
    where = f"config {name}"
    changes = {
        **changes,
        **{
            k: v
            for k, v in {
                "judge": judge,
                "reward": reward,
                "ledger": ledger,
                "out": out and str(out),
            }.items()
            if v is not None
        },
    }
    profile = profiles.resolve(changes.pop("profile", None)).name
    base, over = merge_settings(values, settings, changes, profile, where)
    # objects, such as a judge, come this way, too
    keys = make(Keys, nest(of_names(base, KEYS), where=where), where=where)
    data = read_training_tasks(None if values else source, keys, beside, where)
    # split before `ask` is behind a prompt: files have their prompts without it
    train, heldout_tasks = split_tasks(data.tasks, heldout, keys, beside, where)
    return Job(
        name=name,
        profile=profile,
        tasks_file=str(keys.tasks or file or ""),
        stages=build_stages(keys, base, over, profile, beside, where),
        tasks=with_prompts(train, keys),
        heldout=with_prompts(heldout_tasks, keys),
        prompts=frozenset(map(prompt_identity, heldout_tasks)),
        keys=keys,
        responses=tuple(data.responses),
        # an absolute path stays as it is
        out=paths.runs() / Path(keys.out or name).expanduser(),
    )


def read_config(
    source: ConfigSource,
) -> tuple[dict[str, Any], Path | None, str]:
    """(values, folder, name) of a config; values are empty for tasks and data files."""
    if not isinstance(source, str | Path):
        return dict(source if isinstance(source, Mapping) else {}), None, "training"
    # a shipped name wins over a file of that name here; write ./NAME for the file
    path = CONFIGS / f"{source}.yaml"
    path = path if path.is_file() else Path(source).expanduser()
    if path.suffix in (".yaml", ".yml"):
        return load(path), path.parent, path.stem
    if path.is_file():
        return {}, path.parent, path.stem
    names = set(map(attrgetter("stem"), CONFIGS.glob("*.yaml")))
    raise MissingError(
        "there is no such config",
        where=str(source),
        fix=f"a YAML file, or one of {', '.join(sorted(names - {'names', 'presets'}))}",
    )


def merge_settings(
    values: Mapping[str, Any],
    settings: SettingsSource | None,
    changes: Mapping[str, Any],
    profile: str,
    where: str,
) -> tuple[dict[str, Any], dict[str, Any]]:
    """(all settings, those that replace a stage's own), each by place (see `places`).

    Later layers win: the config, its values for the profile, settings, changes. Without a config, the settings are it.
    """
    names = [*KEYS, *NAMES, "preset"]
    if isinstance(settings, Settings):
        settings = msgspec.structs.asdict(settings)
    elif isinstance(settings, str):
        settings = {"preset": settings}
    if not values:
        values, settings = settings or {}, None
    # its form is read first: `profiles` may be anything until then
    base = places(values, names, where=where)
    over: dict[str, Any] = {}
    for layer in (
        values.get("profiles", {}).get(profile, {}),
        settings or {},
        changes,
    ):
        over = overlay(over, places(layer, names, where=where))
    return overlay(base, over), over


def of_names(values: Mapping[str, Any], names: Sequence[str]) -> dict[str, Any]:
    """Of values by place, those of these names."""
    return {k: v for k, v in values.items() if k.split(".")[0] in names}


def build_stages(
    keys: Keys,
    base: Mapping[str, Any],
    over: Mapping[str, Any],
    profile: str,
    beside: Path | None,
    where: str,
) -> tuple[Stage, ...]:
    """The stages of a job; a training of one stage is a chain of one, without folders of its own."""
    if keys.rows is not None and keys.stages:
        raise DataError(
            "rows of a chain belong to its stages",
            where=where,
            fix="stages: [{rows: ...}]",
        )
    stages = [
        build_stage(row, base, over, profile, beside, f"{where}, stage {n}")
        for n, row in enumerate(keys.stages or ({"rows": keys.rows},), 1)
    ]
    # the table of a chain begins with a row of this name
    if len({"start", *map(attrgetter("name"), stages)}) <= len(stages):
        raise DataError(
            "two stages have one name", where=where, fix="name: a name for each"
        )
    return tuple(stages)


def build_stage(
    row: Mapping[str, Any],
    base: Mapping[str, Any],
    over: Mapping[str, Any],
    profile: str,
    beside: Path | None,
    where: str,
) -> Stage:
    """A stage from its row in `stages`, the base settings, and what replaces both. beside : the config's folder."""
    row = places(row, ["name", "aside", "rows", "preset", *NAMES], where=where)
    settings = build(
        nest(
            of_names(
                {
                    **base,
                    **row,
                    **over,
                    # what a stage is does not change with the machine
                    "stage": row.get("stage", base.get("stage", "grpo")),
                },
                (*NAMES, "preset"),
            ),
            where=where,
        ),
        profile=profile,
        where=where,
    )
    rows = row.get("rows")
    if isinstance(rows, Mapping):
        rows = make(Source, rows, where=f"{where}, rows")
    elif rows:
        rows = str(find_file(rows, beside, where))
    return Stage(
        name=str(row.get("name", settings.stage)),
        settings=settings,
        rows=rows,
        aside=bool(row.get("aside", False)),
    )


def find_file(name: str, beside: Path | None, where: str) -> Path:
    """A file: from here, beside the config, or in the data folder."""
    for folder in (Path(), beside or Path(), paths.data()):
        path = folder / Path(name).expanduser()
        if path.is_file():
            return path
    raise MissingError(
        f"there is no file {name!r}", where=where, fix="write its path"
    )


def read_tasks(name: str, beside: Path | None, where: str) -> TaskSet:
    """The rubric set of a file, or of a data set of the hub."""
    return load_tasks(
        name if name.startswith("hf://") else find_file(name, beside, where)
    )


def read_training_tasks(
    source: Any, keys: Keys, beside: Path | None, where: str
) -> TaskSet:
    """The config's tasks, or those of `source`, with the answers that SFT and DPO learn from."""
    if source is None:
        source = keys.tasks or ()
    elif keys.tasks:
        raise DataError(
            f"tasks come twice: as the first argument, and as tasks: {keys.tasks}",
            where=where,
            fix="keep one",
        )
    if isinstance(source, str | Path):
        return read_tasks(str(source), beside, where)
    return (
        source if isinstance(source, TaskSet) else TaskSet(tasks=tasks_of(source))
    )


def tasks_of_kinds(tasks: Sequence[Task], keys: Keys, where: str) -> list[Task]:
    """The tasks of the wanted kinds."""
    if keys.kinds is None:
        return list(tasks)
    # a misspelt kind would silently train on less
    kinds = {task.kind or "" for task in tasks}
    check_names(keys.kinds, kinds, where=f"{where}, key kinds")
    return [task for task in tasks if task.kind in keys.kinds]


def with_prompts(tasks: Sequence[Task], keys: Keys) -> tuple[Task, ...]:
    """The tasks with what the config asks of all."""
    prompted = []
    for task in tasks:
        ask = f" {keys.ask}" if keys.ask else ""
        if keys.ask == "form":
            ask = "\n\n" + AnswerForm().instructions(task)
        # rows of a file may have it already
        if task.prompt.endswith(ask.lstrip()):
            ask = ""
        prompted.append(
            msgspec.structs.replace(
                task, prompt=task.prompt + ask, system=keys.system or task.system
            )
        )
    return tuple(prompted)


def prompt_identity(task: Task) -> str:
    """Equal for tasks that ask the same, whatever their ids."""
    return text_identity(task.conversation)


def partition(
    tasks: Sequence[Task], belongs: Callable[[Task], bool]
) -> tuple[list[Task], list[Task]]:
    """(tasks that belong, all others)."""
    sides = group((belongs(task), task) for task in tasks)
    return sides.get(True, []), sides.get(False, [])


def split_tasks(
    tasks: Sequence[Task],
    others: TaskSource | None,
    keys: Keys,
    beside: Path | None,
    where: str,
) -> tuple[list[Task], list[Task]]:
    """(tasks to train on, held-out tasks). Rows that are marked as held out are never trained on.

    others : held-out tasks of their own (None: those of the config, if any). A task whose prompt is held out under
        another id is left out, too.
    """
    if others is None and keys.heldout:
        others = read_tasks(keys.heldout, beside, where)
    heldout, train = partition(
        tasks_of_kinds(tasks, keys, where), lambda task: task.held_out
    )
    if others is not None:
        heldout = tasks_of_kinds(tasks_of(others), keys, where)
    elif {keys.holdout, keys.holdout_by, keys.train_ratio} != {None}:
        ids = ids_to_hold_out(train, keys, where)
        drawn, train = partition(train, lambda task: task.id in ids)
        heldout += drawn
    # asked before the run: nothing in the result would show it
    identity = attrgetter("id")
    if both := set(map(identity, train)).intersection(map(identity, heldout)):
        raise DataError(
            f"{count_of(len(both), 'held-out task')} also trained on",
            where=f"{where}, task {min(both)!r}",
            fix="hold out other tasks: a gain on trained prompts shows nothing",
        )
    # the same prompt under another id would be trained on and measured on
    prompts = set(map(prompt_identity, heldout))
    twins, train = partition(train, lambda task: prompt_identity(task) in prompts)
    if twins:
        logger.warning(
            "%s: left out since the prompt is held out: %s",
            where,
            count_of(len(twins), "task"),
        )
    return train, heldout


def ids_to_hold_out(tasks: Sequence[Task], keys: Keys, where: str) -> set[str]:
    """Ids that the config holds out: named groups, a share of the groups, or a share of the prompts."""
    # tasks with one prompt stay on one side
    by = keys.holdout_by or ("prompt" if keys.holdout is None else "group")
    units = group((holdout_value(task, by, where), task) for task in tasks)
    if keys.holdout is None:
        return draw_units(
            units,
            round(
                (1 - (0.9 if keys.train_ratio is None else keys.train_ratio))
                * len(tasks)
            ),
            keys.data_seed,
        )
    names = [keys.holdout] if isinstance(keys.holdout, str) else keys.holdout
    # files write Eye and eye
    of = {str(name).casefold(): unit for name, unit in units.items()}
    if absent := [name for name in names if name.casefold() not in of]:
        raise DataError(
            f"there is no group {absent[0]!r}",
            where=f"{where}, key holdout",
            fix=f"one of {sorted(of)[:20]}",
        )
    return {task.id for name in names for task in of[name.casefold()]}


def holdout_value(task: Task, by: str, where: str) -> object:
    """The field of a task that tasks are held out by: prompt, group (a tissue), kind, or one in meta."""
    value = {
        "prompt": prompt_identity(task),
        "group": task.group,
        "tissue": task.group,
        "kind": task.kind,
        "question_type": task.kind,
    }.get(by) or task.meta.get(by)
    if value is None:
        raise DataError(
            f"the task has no {by!r} to hold out by",
            where=f"{where}, task {task.id!r}",
        )
    return value


def reference() -> list[dict[str, str]]:
    """All settings of a config: name, meaning, and the default before a preset and the profile change it."""
    defaults = {"preset": "plain"}
    for field in msgspec.structs.fields(Keys) + msgspec.structs.fields(Settings):
        is_empty = field.default in (None, (), msgspec.NODEFAULT)
        defaults[field.name] = "" if is_empty else str(field.default)
    return [
        {"name": name, "default": default, "meaning": renames()["meanings"][name]}
        for name, default in defaults.items()
    ]
