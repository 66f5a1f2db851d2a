"""Verbs that join rooms: verdicts become grades, tasks become a training, a reward is tried on
empty words.

What needs one room only is that room's own function; see `kit.guide()`.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .data import TaskSet, tasks_of
from .errors import KitError
from .records import Criterion, Grade, Response, Task, Verdict
from .tables import rows_html, table

if TYPE_CHECKING:
    import pandas as pd

    from .rubrics.splits import Split

CONFIGS = (".yaml", ".yml")


class Grades(list[Grade]):
    """A list of grades that shows itself as a table; `.table()` is one tidy row per grade."""

    def table(self, *, tasks: Any = None) -> pd.DataFrame:
        """A tidy DataFrame: task, response, score, low, high, unknown, cost, parts."""
        return table(self, tasks=tasks)

    def _repr_html_(self) -> str:
        head = ("task", "response", "score", "lowest", "highest")
        rows = [(*g.ids, g.score, g.score_low, g.score_high) for g in self[:20]]
        return rows_html(head, rows) + f"<p>{len(rows)} of {len(self)} grades</p>"

    def __repr__(self) -> str:
        unknown = sum(g.score is None for g in self)
        return f"{len(self)} grades, {unknown} without a score (too much is unknown)"


def grade(
    tasks: Any,
    verdicts: Iterable[Verdict],
    *,
    reward: Any = "rubric",
    responses: Sequence[Response] | None = None,
) -> Grades:
    """One grade per answer from its verdicts; no judge is called.

    tasks : a TaskSet or a list of tasks; verdicts : what `kit.judge` gave, or labels by people.
    reward : a Composer, "rubric", "default", a mapping or a file; see kit.rewards.
    responses : the answers (default: those of the task set that have a verdict).
    The default scores as `kit judge` does (its --aggregate net).
    A grade is an interval where verdicts are unknown; its score is None where that is too wide.

    >>> task = {"prompt": "Say hi.", "rubrics": ["It greets."]}
    >>> import kit
    >>> tasks = kit.load([task])
    >>> one = Verdict(task_id=tasks.tasks[0].id, response_id="r", status="met",
    ...               criterion_id=tasks.tasks[0].criteria[0].id)
    >>> answer = Response(task_id=one.task_id, id="r", text="Hi!")
    >>> grade(tasks, [one], responses=[answer])[0].score
    1.0
    """
    from .rewards import Composer, grades

    verdicts = list(verdicts)
    if responses is None:
        judged = {v.ids[:2] for v in verdicts}
        known = getattr(tasks, "responses", None)
        if known is None:
            raise KitError(
                "the answers are not here",
                where="kit.grade",
                fix="give responses=, or a TaskSet that holds them",
            )
        responses = [r for r in known if r.ids in judged]
        _complete(judged, responses, {t.id for t in tasks.tasks})
    rows = getattr(tasks, "tasks", tasks)
    return Grades(grades(rows, responses, verdicts, composer=Composer.from_config(reward)))


def _complete(
    judged: Collection[tuple[str, str]], responses: Sequence[Response], known: Collection[str]
) -> None:
    """KitError where judged answers to these tasks are not among the responses; a warning for
    verdicts on other tasks."""
    other = sorted({task for task, _ in judged if task not in known})
    here = {(task, r) for task, r in judged if task in known}
    absent = sorted(here - {r.ids for r in responses})
    if absent or (judged and not responses):
        n, (task, first) = len(absent) or len(judged), (absent or sorted(judged))[0]
        raise KitError(
            f"{n} of the {len(judged)} answers that have verdicts are not in the task set",
            where=f"kit.grade, task {task!r}, response {first!r}",
            fix="give responses=; a file of verdicts alone does not hold the answers' texts",
        )
    if other:
        warnings.warn(
            f"kit.grade leaves out the verdicts on {len(other)} tasks that are not here "
            f"({', '.join(map(repr, other[:3]))})",
            stacklevel=3,
        )


def only(tasks: Any, wanted: Callable[[Criterion], bool]) -> list[Task]:
    """The tasks with only those criteria for which `wanted(criterion)` is true.

    >>> task = Task(id="t", prompt="p", criteria=(Criterion(id="a", text="x"),))
    >>> only([task], lambda c: c.by_code)[0].criteria
    ()
    """
    rows = tasks_of(tasks)
    return [replace(t, criteria=tuple(c for c in t.criteria if wanted(c))) for t in rows]


def trivial(
    tasks: Any, *, judge: Any = "code", reward: Any = "rubric", ledger: Any = None
) -> pd.DataFrame:
    """What a reward pays to answers without skill (empty, constant, parroting, hedging ...), best
    paid first.

    Columns: policy, task, score (NaN where unknown). A policy near the real answers will be found
    by training.
    """
    from .judge.run import judge as ask
    from .rewards.trivial import TRIVIAL, policies

    rows = tasks_of(tasks)
    answers = [r for t in rows for r in policies(t)]
    got = ask(rows, answers, judge=judge, ledger=ledger, progress=False)
    frame = grade(rows, got, reward=reward, responses=answers).table()
    frame["policy"] = [r.source.removeprefix(TRIVIAL) for r in answers]
    order = frame.groupby("policy")["score"].mean().sort_values(ascending=False).index
    rank = {name: i for i, name in enumerate(order)}
    by_rank = frame.sort_values("policy", key=lambda names: names.map(rank), kind="stable")
    return by_rank[["policy", "task", "score"]].reset_index(drop=True)


def split(
    tasks: Any,
    *,
    share: float = 0.25,
    seed: int = 0,
) -> Split:
    """Train and held-out tasks with a manifest of hashes; whole groups where tasks name them.
    Tasks that ask the same, but for case, spaces and punctuation, stay on one side.

    Tasks that are marked as held out (`split`: "test", "validation" ...) stay so, unless all are.

    share : of the tasks held out, in (0, 1); marked ones count.
    """
    from .rubrics import splits

    rows = tasks_of(tasks)
    make = splits.by_group if len({t.group for t in rows}) > 1 else splits.shuffle
    if 0 < sum(t.held_out for t in rows) < len(rows):
        return splits.marked(rows, make, seed=seed, share=share)
    return make(rows, seed=seed, share=share)


def train(
    tasks: Any,
    settings: Any = None,
    *,
    judge: Any = None,
    reward: Any = None,
    heldout: Sequence[Task] | None = None,
    out: str | Path | None = None,
    ledger: Any = None,
    resume: bool | None = None,
    on_step: Callable[[dict[str, Any]], None] | None = None,
    loaded: Any = None,
    **changes: Any,
) -> Any:
    """Train a small model on rubric rewards with GRPO, and compare it with itself on held-out
    prompts.

    tasks : a TaskSet, tasks, or rows that kit.load reads; or a training config (YAML) or a chain's,
        of which everything that is given beside it replaces a value.
    settings : a preset's name ("cpu", "t4", "gpu"), a mapping, or settings from kit.train.config;
        default: the profile's preset. changes : single settings, `steps=10`.
    judge : as in kit.judge (None: code decides every criterion); reward : as in kit.grade.
    heldout : default: the tasks whose split is heldout, test or validation; these are never
        trained on, nor are their prompts under another id.
    out : folder, default in the runs folder.
    resume : go on with the run in `out`; default: when one has begun there.
    loaded : a model that is there already (kit.train.models.load), trained in place.
    The result has .gain, .steps(), .rollouts(), .adapter.
    """
    from .system import paths
    from .train import chain, grpo, inputs, job

    if isinstance(tasks, (str, Path)) and Path(tasks).suffix in CONFIGS:
        given = dict(judge=judge, reward=reward, heldout=heldout, out=out, ledger=ledger)
        given = {k: str(v) if isinstance(v, Path) else v for k, v in given.items() if v is not None}
        if loaded is not None or not isinstance(heldout, str | Path | None):
            raise KitError(
                "a config loads its own model, and its held-out tasks from a file",
                where="kit.train",
                fix="leave out loaded, give heldout as a path; or give tasks, not a config",
            )
        given = {**_values(settings or {}), **given, **changes}
        if chain.is_chain(tasks):
            return chain.run(chain.read(tasks, **given))
        return job.run(job.read(tasks, **given), resume=resume, on_step=on_step)
    from .judge.factory import judge_of

    if isinstance(tasks, TaskSet):
        tasks.sound(warn=True)
    rows = tasks_of(tasks, "kit.train")
    train_on, held = inputs.split(rows, {}, "kit.train", heldout and list(heldout))
    out = paths.runs() / "training" if out is None else Path(out)
    return grpo.train(
        settings_of(settings, changes),
        train_on,
        judge=None if judge is None else judge_of(judge),
        composer="rubric" if reward is None else reward,
        out=out,
        heldout=held,
        ledger=ledger,
        resume=inputs.begun(out) if resume is None else resume,
        on_step=on_step,
        loaded=loaded,
    )


def settings_of(settings: Any, changes: Mapping[str, Any]) -> Any:
    """Training settings from a preset's name, a mapping or settings, with changes on top."""
    from .settings import profiles
    from .train import config

    if isinstance(settings, config.Settings):
        return replace(settings, **changes) if changes else settings
    if settings is None:
        name = profiles.resolve().name
        settings = "gpu" if name == "cluster" else name
    return config.from_mapping({**_values(settings), **changes})


def _values(settings: Any) -> dict[str, Any]:
    """Settings as a config holds them: of a preset's name, a mapping, or settings."""
    from .train import config

    if isinstance(settings, config.Settings):
        return config.to_mapping(settings)
    return {"preset": settings} if isinstance(settings, str) else dict(settings)
