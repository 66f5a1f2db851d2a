"""Grades of many answers, and of the policies that need no skill."""

from collections.abc import Iterable, Mapping
from pathlib import Path

import pandas as pd

from ..data import TaskSet, TaskSource, tasks_of
from ..errors import DataError
from ..judging import JudgeSource, Ledger, ajudge_pairs, wait
from ..records import Grade, Response, Task, Verdict
from ..records.tables import show, table
from ..stats import Estimate, mean
from .components import RubricComponent
from .composer import Composer, RewardSource
from .trivial_answers import AnswerPolicy, trivial_answers


class Grades(list[Grade]):
    """Grades of answers in their order. `score` is None where too much is unknown."""

    def table(
        self, *, tasks: TaskSet | Iterable[Task] | None = None
    ) -> pd.DataFrame:
        """One row per answer: score, its interval, parts. Unknown is NaN. See `kit.table`."""
        return table(self, tasks=tasks)

    @property
    def estimate(self) -> Estimate:
        """The mean score with its interval over tasks; unknown ones are counted."""
        lows, highs = zip(*(g.meta["range"] for g in self), strict=True)
        return mean(
            self.table(),
            "score",
            cluster="task",
            bounds=(min(lows), max(highs)),
        )

    def __repr__(self) -> str:
        return f"{len(self)} grades, mean {self.estimate}" if self else "no grades"

    def _repr_html_(self) -> str:
        return show(self.table(), caption=repr(self)).to_html()


def grade(
    tasks: TaskSource,
    verdicts: Iterable[Verdict],
    *,
    reward: RewardSource = "rubric",
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
    if responses is None and isinstance(tasks, TaskSet):
        responses = tasks.responses or None
    if responses is None:
        # A rubric's score needs the verdicts alone; every other part reads the text.
        if composer.format.mode != "off" or not all(
            isinstance(c, RubricComponent) for c in composer.components
        ):
            raise DataError(
                f"reward {composer.name!r} reads the answers",
                where="grade",
                fix="give responses=",
            )
        ids = dict.fromkeys(v.answer_ids for v in verdicts)
        responses = [Response(task_id=task, id=name, text="") for task, name in ids]
    pairs = []
    for answer in responses:
        if answer.task_id not in by_id:
            raise DataError(
                f"there is no task {answer.task_id!r}",
                where=f"answer {answer.id!r}",
                fix="give its task",
            )
        pairs.append((by_id[answer.task_id], answer))
    return Grades(composer.grade_all(pairs, verdicts))


def trivial(
    tasks: TaskSource,
    *,
    judge: JudgeSource = "code",
    reward: RewardSource = "rubric",
    ledger: Ledger | str | Path | None = None,
    extra: Mapping[str, AnswerPolicy] | None = None,
) -> pd.DataFrame:
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
    composer = Composer.from_config(reward)
    pairs = []
    for task in tasks_of(tasks):
        pairs += [(task, answer) for answer in trivial_answers(task, extra)]
    # Texts repeat among tasks and policies; the ledger asks about each of them once.
    verdicts = wait(
        ajudge_pairs(
            composer.answers_to_judge(pairs),
            judge=judge,
            ledger=ledger,
            progress=judge != "code",
        )
    )
    frame = Grades(composer.grade_all(pairs, verdicts)).table()
    frame["policy"] = frame["response"].str.removeprefix("trivial-")
    frame["example"] = [answer.text for _, answer in pairs]
    # One row per policy out of one row per answer.
    rows = frame.groupby("policy", sort=False)
    policies = (
        rows[["score", "low", "high"]].mean().rename(columns={"score": "reward"})
    )
    # The mean of the known ones alone would hide the unknown ones, or show them as 0.
    is_wide = (
        policies["high"] - policies["low"] > composer.max_width * composer.scale
    )
    policies.loc[is_wide, "reward"] = None
    policies["tasks"] = rows.size()
    policies["unknown"] = policies["tasks"] - rows["score"].count()
    policies["example"] = rows["example"].first()
    # A policy that nobody can score comes first: it may be the best one.
    return policies.sort_values(
        "reward", ascending=False, na_position="first"
    ).reset_index()
