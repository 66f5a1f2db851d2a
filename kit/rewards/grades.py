"""Grades of many answers, and of the policies that need no skill."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from ..data import tasks_of
from ..errors import DataError
from ..records import Grade, Response, Verdict
from .composer import Composer, RubricComponent
from .policies import Policy, policies


class Grades(list[Grade]):
    """Grades of answers in their order. `score` is None where too much is unknown."""

    def table(self, *, tasks: Any = None) -> Any:
        """One row per answer: score, its interval, parts. Unknown is NaN. See `kit.table`."""
        from ..records.tables import table

        return table(self, tasks=tasks)

    @property
    def estimate(self) -> Any:
        """The mean score with its interval over tasks; unknown ones are counted."""
        from ..stats import mean

        ends = [end for g in self for end in g.meta["range"]]
        return mean(
            [g.score for g in self],
            cluster=[g.task_id for g in self],
            bounds=(min(ends), max(ends)),
        )

    def __repr__(self) -> str:
        return f"{len(self)} grades, mean {self.estimate}" if self else "no grades"

    def _repr_html_(self) -> str:
        from ..records.tables import show

        if not self:
            return repr(self)
        return show(self.table(), caption=repr(self))._repr_html_()


def grade(
    tasks: Any,
    verdicts: Iterable[Verdict],
    *,
    reward: Any = "rubric",
    responses: Iterable[Response] | None = None,
) -> Grades:
    """Turn verdicts into rewards, one grade per answer. No judge is asked.

    tasks : a TaskSet or tasks. reward : a preset's name, a mapping, a YAML file, or a Composer.
    responses : the answers (default: those of the TaskSet). A reward of the rubric alone needs
        none: then each answer that has a verdict gets a grade.
    DataError where an answer's task is not among the tasks, or a reward needs the answers' texts.

    >>> from kit.records import Criterion, Task
    >>> task = Task(id="t", prompt="p", criteria=(Criterion(id="a", text="x"),))
    >>> verdict = Verdict(task_id="t", response_id="r", criterion_id="a", status="met")
    >>> grade([task], [verdict])[0].score
    1.0
    """
    composer = Composer.from_config(reward)
    by_id = {t.id: t for t in tasks_of(tasks)}
    verdicts = list(verdicts)
    answers = list(
        getattr(tasks, "responses", ()) if responses is None else responses
    )
    if not answers and responses is None:
        # A rubric's score needs the verdicts alone; every other part reads the text.
        alone = all(isinstance(c, RubricComponent) for c in composer.components)
        if not alone or composer.format.mode != "off":
            raise DataError(
                f"reward {composer.name!r} reads the answers",
                where="grade",
                fix="give responses=",
            )
        ids = dict.fromkeys(v.ids[:2] for v in verdicts)
        answers = [Response(task_id=t, id=r, text="") for t, r in ids]
    for a in answers:
        if a.task_id not in by_id:
            raise DataError(
                f"there is no task {a.task_id!r}",
                where=f"answer {a.id!r}",
                fix="give its task",
            )
    pairs = [(by_id[a.task_id], a) for a in answers]
    return Grades(composer.grades(pairs, verdicts))


def trivial(
    tasks: Any,
    *,
    judge: Any = "code",
    reward: Any = "rubric",
    ledger: Any = None,
    extra: Mapping[str, Policy] | None = None,
) -> Any:
    """What a reward pays for answers that need no skill: a table, the best policy first.

    Columns: policy, reward (mean over tasks), low and high (the mean with every unknown verdict at
    its worst and best; far apart, the reward is NaN), tasks, unknown (answers without a reward),
    example.
    judge : who decides the criteria that code does not; with "code" they stay unknown.
    extra : policies of your own, name -> function of the task.

    >>> from kit.records import Criterion, Task
    >>> check = {"name": "words", "max": 3}
    >>> task = Task(id="t", prompt="Greet.", criteria=(Criterion(id="c", text="x", check=check),))
    >>> trivial([task]).set_index("policy").loc["parrot", "reward"]
    np.float64(1.0)
    """
    from ..judging import ajudge_pairs
    from ..system.loop import wait

    composer = Composer.from_config(reward)
    pairs = [(t, a) for t in tasks_of(tasks) for a in policies(t, extra)]
    # Texts repeat among tasks and policies; the ledger asks about each of them once.
    verdicts = wait(
        ajudge_pairs(
            composer.to_judge(pairs),
            judge=judge,
            ledger=ledger,
            progress=judge != "code",
        )
    )
    frame = Grades(composer.grades(pairs, verdicts)).table()
    frame["policy"] = frame["response"].str.removeprefix("trivial-")
    frame["example"] = [a.text for _, a in pairs]
    rows = frame.groupby("policy", sort=False)
    table = (
        rows[["score", "low", "high"]].mean().rename(columns={"score": "reward"})
    )
    # The mean of the known ones alone would hide the unknown ones, or show them as 0.
    is_wide = table["high"] - table["low"] > composer.max_width * composer.scale
    table.loc[is_wide, "reward"] = None
    table["tasks"] = rows.size()
    table["unknown"] = table["tasks"] - rows["score"].count()
    table["example"] = rows["example"].first()
    # A policy that nobody can score comes first: it may be the best one.
    return table.sort_values(
        "reward", ascending=False, na_position="first"
    ).reset_index()
