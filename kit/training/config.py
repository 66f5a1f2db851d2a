"""A config file as a job: tasks, held-out tasks, judge, reward, stages with their settings."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from ..errors import DataError, MissingError
from ..records import Response, Task, group, text_identity
from ..rubrics import draw_units
from ..system import paths, profiles
from ..system.settings import Share, load, make
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
    judge: str | dict[str, Any] | None = None
    reward: str | dict[str, Any] = "rubric"
    rows: str | dict[str, Any] | None = None
    out: str | None = None
    ledger: str | None = None
    stages: tuple[dict[str, Any], ...] = ()
    profiles: dict[str, dict[str, Any]] = {}


KEYS = Keys.__struct_fields__


class Job(msgspec.Struct, frozen=True, kw_only=True):
    """What a training needs. name : of the config.

    responses : answers of the tasks' file, which SFT and DPO learn from.
    keys : of the config. prompts : the held-out ones as the files have them, without what the config asks of all.
    """

    name: str
    stages: tuple[Stage, ...]
    tasks: tuple[Task, ...]
    heldout: tuple[Task, ...]
    responses: tuple[Response, ...] = ()
    prompts: frozenset[str] = frozenset()
    keys: Keys = Keys()
    judge: Any = None
    reward: Any = "rubric"
    out: Path
    ledger: Any = None
    chain: bool = False


def read_job(
    source: Any,
    settings: Any = None,
    *,
    changes: Mapping[str, Any],
    judge: Any = None,
    reward: Any = None,
    heldout: Any = None,
    out: Any = None,
    ledger: Any = None,
) -> Job:
    """A job from a config (name, file or mapping) or from tasks, with the caller's changes."""
    from ..data import tasks_of

    values, beside, name = read_config(source)
    where = f"config {name}"
    passed = {"judge": judge, "reward": reward, "out": out, "ledger": ledger}
    changes = {**changes, **{k: v for k, v in passed.items() if v is not None}}
    profile = profiles.resolve(changes.pop("profile", None)).name
    base, over = merge_settings(values, settings, changes, profile, where)
    keys = read_keys(base, where)
    tasks = None if values else source
    if tasks is not None and keys.tasks:
        raise DataError(
            f"tasks come twice: as the first argument, and as tasks: {keys.tasks}",
            where=where,
            fix="keep one",
        )
    # a data file brings the answers that SFT and DPO learn from, so it is loaded whole
    if isinstance(tasks, str | Path):
        tasks = read_tasks(str(tasks), None, f"file {name}")
    if tasks is None and keys.tasks:
        tasks = read_tasks(keys.tasks, beside, where)
    every = tasks_of_kinds([] if tasks is None else tasks_of(tasks), keys, where)
    if heldout is None and keys.heldout:
        heldout = read_tasks(keys.heldout, beside, where)
    other = (
        None if heldout is None else tasks_of_kinds(tasks_of(heldout), keys, where)
    )
    # split before `ask` is behind a prompt: files have their prompts without it
    train, heldout_tasks = split_tasks(every, keys, where, other)
    folder = Path(keys.out or name).expanduser()
    return Job(
        name=name,
        stages=build_stages(keys, base, over, profile, beside, where),
        tasks=tuple(with_prompts(train, keys)),
        heldout=tuple(with_prompts(heldout_tasks, keys)),
        prompts=frozenset(text_identity(t.conversation) for t in heldout_tasks),
        keys=keys,
        responses=tuple(getattr(tasks, "responses", ())),
        judge=keys.judge,
        reward=keys.reward,
        out=folder if folder.is_absolute() else paths.runs() / folder,
        ledger=keys.ledger,
        chain=bool(keys.stages),
    )


def merge_settings(
    values: Mapping[str, Any],
    settings: Any,
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
    config = places(values, names, where=where)
    sizes = values.get("profiles", {}).get(profile, {})
    over: dict[str, Any] = {}
    for layer in (sizes, settings or {}, changes):
        over = overlay(over, places(layer, names, where=where))
    return overlay(config, over), over


def read_keys(values: Mapping[str, Any], where: str) -> Keys:
    """The keys of a config out of all settings. Objects, such as a judge, come this way, too."""
    values = nest(
        {k: v for k, v in values.items() if k.split(".")[0] in KEYS}, where=where
    )
    plain_kinds = (str, int, float, Mapping, Sequence)
    objects = {
        k: v
        for k, v in values.items()
        if v is not None and not isinstance(v, plain_kinds)
    }
    keys = make(
        Keys, {k: v for k, v in values.items() if k not in objects}, where=where
    )
    return msgspec.structs.replace(keys, **objects)


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
    stages = tuple(
        build_stage(row, base, over, profile, beside, f"{where}, stage {n}")
        for n, row in enumerate(keys.stages or ({"rows": keys.rows},), 1)
    )
    # the table of a chain begins with a row of this name
    if len({s.name for s in stages} | {"start"}) < len(stages) + 1:
        raise DataError(
            "two stages have one name", where=where, fix="name: a name for each"
        )
    return stages


def read_config(source: Any) -> tuple[dict[str, Any], Path | None, str]:
    """(values, folder, name) of a config; values are empty for tasks and data files."""
    if isinstance(source, Mapping):
        return dict(source), None, "training"
    if not isinstance(source, str | Path):
        return {}, None, "training"
    # a shipped name wins over a file of that name here; write ./NAME for the file
    path = CONFIGS / f"{source}.yaml"
    path = path if path.is_file() else Path(source).expanduser()
    if path.suffix in (".yaml", ".yml"):
        return load(path), path.parent, path.stem
    if path.is_file():
        return {}, path.parent, path.stem
    names = ", ".join(
        sorted(
            p.stem
            for p in CONFIGS.glob("*.yaml")
            if p.stem not in ("names", "presets")
        )
    )
    raise MissingError(
        "there is no such config",
        where=str(source),
        fix=f"a YAML file, or one of {names}",
    )


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
    # what a stage is does not change with the machine
    values = {**base, **row, **{k: v for k, v in over.items() if k != "stage"}}
    mine = {
        k: v for k, v in values.items() if k.split(".")[0] in (*NAMES, "preset")
    }
    settings = build(nest(mine, where=where), profile=profile, where=where)
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
    for path in (
        Path(name).expanduser(),
        *([beside / name] if beside else []),
        paths.data(name),
    ):
        if path.is_file():
            return path
    raise MissingError(
        f"there is no file {name!r}", where=where, fix="write its path"
    )


def read_tasks(name: str, beside: Path | None, where: str) -> Any:
    """The rubric set of a file, or of a data set of the hub."""
    from ..data import load as read

    return read(
        name if name.startswith("hf://") else find_file(name, beside, where)
    )


def tasks_of_kinds(tasks: Sequence[Task], keys: Keys, where: str) -> list[Task]:
    """The tasks of the wanted kinds."""
    kinds = {t.kind for t in tasks} if keys.kinds is None else {*keys.kinds}
    # a misspelt kind would silently train on less
    if absent := kinds - {t.kind for t in tasks}:
        raise DataError(
            f"no task is of the kind {', '.join(sorted(absent))}",
            where=f"{where}, key kinds",
        )
    return [t for t in tasks if t.kind in kinds]


def with_prompts(tasks: Sequence[Task], keys: Keys) -> list[Task]:
    """The tasks with what the config asks of all."""
    from ..checks import AnswerForm

    out = []
    for t in tasks:
        more = {} if keys.system is None else {"system": keys.system}
        ask, space = keys.ask or "", " "
        if ask == "form":
            ask, space = AnswerForm().instructions(t), "\n\n"
        # rows of a file may have it already
        if ask and not t.prompt.endswith(ask):
            more["prompt"] = f"{t.prompt}{space}{ask}"
        out.append(msgspec.structs.replace(t, **more))
    return out


def split_tasks(
    tasks: Sequence[Task],
    keys: Keys,
    where: str,
    other: Sequence[Task] | None = None,
) -> tuple[list[Task], list[Task]]:
    """(tasks to train on, held-out tasks). Rows that are marked as held out are never trained on.

    other : held-out tasks of their own. A task whose prompt is held out under another id is left out, too.
    """
    train = [t for t in tasks if not t.held_out]
    heldout_tasks = [t for t in tasks if t.held_out]
    if other is not None:
        # asked before the run: nothing in the result would show it
        if both := {t.id for t in train} & {t.id for t in other}:
            raise DataError(
                f"{len(both)} held-out tasks are also trained on",
                where=f"{where}, task {min(both)!r}",
                fix="hold out other tasks: a gain on trained prompts shows nothing",
            )
        heldout_tasks = list(other)
    elif (
        keys.holdout is not None
        or keys.holdout_by is not None
        or keys.train_ratio is not None
    ):
        ids = ids_to_hold_out(train, keys, where)
        heldout_tasks += [t for t in train if t.id in ids]
    # the same prompt under another id would be trained on and measured on
    prompts = {text_identity(t.conversation) for t in heldout_tasks}
    ids = {t.id for t in heldout_tasks}
    others = [t for t in train if t.id not in ids]
    rest = [t for t in others if text_identity(t.conversation) not in prompts]
    if twins := len(others) - len(rest):
        logger.warning(
            "%s: %d tasks are left out, since their prompt is held out",
            where,
            twins,
        )
    return rest, heldout_tasks


def ids_to_hold_out(tasks: Sequence[Task], keys: Keys, where: str) -> set[str]:
    """Ids that the config holds out: named groups, a share of the groups, or a share of the prompts."""
    share = 1 - (0.9 if keys.train_ratio is None else keys.train_ratio)
    if keys.holdout_by is None and keys.holdout is None:
        # tasks with one prompt stay on one side
        units = group((text_identity(t.conversation), t) for t in tasks)
    else:
        by = keys.holdout_by or "group"
        units = group((holdout_value(t, by, where), t) for t in tasks)
    if keys.holdout is not None:
        groups = [keys.holdout] if isinstance(keys.holdout, str) else keys.holdout
        # files write Eye and eye
        of = {str(k).casefold(): unit for k, unit in units.items()}
        if absent := [n for n in groups if n.casefold() not in of]:
            raise DataError(
                f"there is no group {absent[0]!r}",
                where=f"{where}, key holdout",
                fix=f"one of {sorted(of)[:20]}",
            )
        return {t.id for n in groups for t in of[n.casefold()]}
    return draw_units(units, round(share * len(tasks)), keys.data_seed)


def holdout_value(task: Task, by: str, where: str) -> Any:
    """The field of a task that groups are held out by: group (a tissue), kind, or one in meta."""
    fields = {
        "group": task.group,
        "tissue": task.group,
        "kind": task.kind,
        "question_type": task.kind,
    }
    value = fields.get(by) or task.meta.get(by)
    if value is None:
        raise DataError(
            f"the task has no {by!r} to hold out by",
            where=f"{where}, task {task.id!r}",
        )
    return value


def reference() -> list[dict[str, str]]:
    """All settings of a config: name, meaning, and the default before a preset and the profile change it."""
    meanings = renames()["meanings"]
    defaults = {"preset": "plain"}
    for kind in (Keys, Settings):
        for field in msgspec.structs.fields(kind):
            is_empty = field.default in (None, (), msgspec.NODEFAULT)
            defaults[field.name] = "" if is_empty else field.default
    return [
        {"name": name, "meaning": meanings[name], "default": str(default)}
        for name, default in defaults.items()
    ]
