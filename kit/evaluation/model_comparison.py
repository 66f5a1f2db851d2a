"""Answers of several models to the same prompts, graded by one judge and one reward, and compared."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import chain, permutations
from pathlib import Path
from typing import Any, Literal

import pandas as pd

from ..data import TaskSet, TaskSource, load, tasks_of
from ..errors import DataError
from ..judging import (
    Budget,
    JudgeSource,
    LedgerLike,
    ajudge_pairs,
    format_cost,
    wait,
)
from ..records import Grade, Response, Task, count_of, group
from ..records.tables import show, table
from ..rewards import Composer, RewardSource
from ..stats import (
    Estimate,
    compare_to_baseline,
    mean,
    per_cluster,
    simultaneous_intervals,
)
from .heldout import passes

AnswerSource = TaskSet | Iterable[Response] | str | Path
SAME = 1e-9  # rewards that differ by less are equal


@dataclass(frozen=True, kw_only=True)
class ModelComparison:
    """Models by the reward of their answers; differences are to the first model, paired by prompt.

    answers : a DataFrame, one row an answer, as `kit.table` makes it of grades, with model, passed (1, 0 or NaN),
        answer_cost (US dollars, NaN where the price is unknown) and seconds. verdicts : the same, one row a verdict.
    left_out : prompts that not all models answered.
    """

    answers: pd.DataFrame
    verdicts: pd.DataFrame
    reward_range: tuple[float, float]
    left_out: int = 0

    @property
    def models(self) -> list[str]:
        """The names of the models, in the order in which they were given."""
        return list(dict.fromkeys(self.answers["model"]))

    @cached_property
    def rewards_by_prompt(self) -> pd.DataFrame:
        """The mean reward of each model's answers to a prompt: one row a task, one column a model."""
        return self._by_prompt(self.answers)

    @cached_property
    def differences(self) -> dict[str, Estimate]:
        """Each model's reward less that of the first; the intervals hold all at once."""
        return {
            model: self._bounded(e)
            for model, e in compare_to_baseline(
                self.rewards_by_prompt, self.models[0]
            ).items()
        }

    @cached_property
    def rewards(self) -> dict[str, Estimate]:
        """The mean reward of each model over prompts."""
        return {m: self._mean(m, "score", self.reward_range) for m in self.models}

    def table(self) -> pd.DataFrame:
        """One row a model: reward, pass rate, difference to the first, wins, cost, seconds, unknown answers."""
        wins, rows = (
            self.rewards_by_prompt.sub(
                self.rewards_by_prompt[self.models[0]], axis=0
            ),
            [],
        )
        for model in self.models:
            part = self.answers[self.answers["model"] == model]
            rows.append(
                {
                    "model": model,
                    "reward": str(self.rewards[model]),
                    "pass rate": str(self._mean(model, "passed", (0.0, 1.0))),
                    "difference": str(self.differences.get(model, "")),
                    "wins": (wins[model] > SAME).sum(),
                    "losses": (wins[model] < -SAME).sum(),
                    "answers": len(part),
                    "unknown": part["score"].isna().sum(),
                    "cost of answers": _cost_text(part["answer_cost"]),
                    "cost of judge": _cost_text(part["cost"]),
                    "seconds an answer": part["seconds"].mean(),
                }
            )
        return pd.DataFrame(rows)

    def by_kind(self) -> pd.DataFrame:
        """One row a kind of prompt: prompts, each model's mean reward, each difference to the first model.

        The intervals of all differences in the table hold at once.
        """
        estimates: dict[tuple[str, str], Estimate] = {}
        rows: dict[str, dict[str, Any]] = {}
        for name, part in self.answers.groupby("kind"):
            by_prompt, kind = self._by_prompt(part), str(name)
            rows[kind] = {"kind": kind, "prompts": len(by_prompt)}
            for model in self.models:
                rows[kind][model] = by_prompt[model].mean()
            for model, e in compare_to_baseline(by_prompt, self.models[0]).items():
                estimates[kind, model] = e
        for (kind, model), e in simultaneous_intervals(estimates).items():
            rows[kind][f"{model} less {self.models[0]}"] = str(self._bounded(e))
        return pd.DataFrame(rows.values())

    def by_criterion(self) -> pd.DataFrame:
        """One row a criterion: the share of each model's answers that fulfil it; the largest spread first.

        A fault is fulfilled where it is absent. Unknown verdicts are left out and counted.
        """
        frame = self.verdicts.dropna(subset=["text"]).assign(
            fulfilled=lambda rows: rows["value"].where(
                rows["weight"] >= 0, 1 - rows["value"]
            )
        )
        places = ["task", "criterion", "text"]
        shares = frame.pivot_table(
            index=places, columns="model", values="fulfilled", sort=False
        ).reindex(columns=self.models)
        spread = shares.max(axis=1) - shares.min(axis=1)
        shares["unknown"] = (
            frame["value"].isna().groupby(list(map(frame.get, places))).sum()
        )
        return (
            shares.loc[spread.sort_values(ascending=False, kind="stable").index]
            .reset_index()
            .rename_axis(columns=None)
        )

    @property
    def sentence(self) -> str:
        """What may be claimed: which models are better or worse than the first one, and what is unknown."""
        words = [f"{m} is {_describe_gap(e)}" for m, e in self.differences.items()]
        prompts = count_of(len(self.rewards_by_prompt), "prompt")
        if self.left_out:
            prompts += f" (without {self.left_out} that not all models answered)"
        text = f"Compared with {self.models[0]} on {prompts}: {'; '.join(words)}."
        unknown = self.verdicts[self.verdicts["failure"].notna()]
        if len(unknown):
            first = "{failure}: {reason!s:.200}".format_map(unknown.iloc[0])
            text += f" Unknown: {count_of(len(unknown), 'verdict')} ({first})."
        return text

    def plot(self, **options: Any) -> Any:
        """The mean reward of each model with its interval; the sentence is the title."""
        from ..plots import forest

        return forest(
            self.rewards,
            **{"title": self.sentence, "x": "mean reward over prompts", **options},
        )

    def _bounded(self, gap: Estimate) -> Estimate:
        """A difference whose interval ends where no difference can lie."""
        low, high = self.reward_range
        most = high - low
        return replace(gap, low=max(gap.low, -most), high=min(gap.high, most))

    def _by_prompt(self, answers: pd.DataFrame) -> pd.DataFrame:
        return (
            answers.groupby(["task", "model"], sort=False)["score"]
            .mean()
            .unstack()
            .reindex(columns=self.models)
        )

    def _mean(
        self, model: str, column: str, bounds: tuple[float, float]
    ) -> Estimate:
        part = self.answers[self.answers["model"] == model]
        return mean(per_cluster(part[column], part["task"]), bounds=bounds)

    def __repr__(self) -> str:
        columns = ["model", "reward", "pass rate", "difference"]
        return f"{self.sentence}\n{self.table()[columns].to_string(index=False)}"

    def _repr_html_(self) -> str:
        return show(self.table(), caption=self.sentence).to_html()


def compare(
    tasks: TaskSource,
    answers: Mapping[str, AnswerSource] | None = None,
    *,
    judge: JudgeSource = "code",
    reward: RewardSource = "rubric",
    on_missing: Literal["raise", "skip"] = "raise",
    ledger: LedgerLike = None,
    budget: Budget | None = None,
    progress: bool = True,
) -> ModelComparison:
    """Compare models by the reward of their answers to the same prompts.

    answers : name of a model -> its answers (a file, a TaskSet, or Responses). None: the answers of the tasks, a
        model for each `source`. The first model is the one that the others are compared with.
    judge, reward, ledger, budget : as in `kit.judge` and `kit.grade`.
    on_missing : "raise" is a DataError where two models answered different prompts: a model that skips hard ones would
        look better. "skip" compares the prompts that all answered, and counts the others.

    >>> from kit.records import Criterion, Task
    >>> check = {"name": "contains", "any": ["hello"]}
    >>> task = Task(id="t", prompt="Greet.", criteria=(Criterion(id="c", text="greets", check=check),))
    >>> texts = {"small": "hello", "large": "Good day."}
    >>> answers = {m: [Response(task_id="t", id="r", text=x)] for m, x in texts.items()}
    >>> compare([task], answers).rewards_by_prompt.to_dict("records")
    [{'small': 1.0, 'large': 0.0}]
    """
    composer = Composer.from_config(reward)
    by_id = {t.id: t for t in tasks_of(tasks)}
    rows, verdict_rows, ranges = [], [], []
    by_model, left_out = _common_answers(
        _answers_by_model(tasks, answers, by_id), on_missing
    )
    for model, responses in by_model.items():
        pairs = [(by_id[r.task_id], r) for r in responses]
        verdicts = wait(
            ajudge_pairs(
                composer.answers_to_judge(pairs),
                judge=judge,
                ledger=ledger,
                budget=budget,
                progress=progress,
            )
        )
        grades = composer.grade_all(pairs, verdicts)
        ranges += [g.meta["range"] for g in grades]
        everything = TaskSet(tasks=[*by_id.values()], responses=responses)
        rows.append(
            table(grades, tasks=everything)
            .assign(model=model)
            .join(_answer_columns(pairs, grades))
        )
        verdict_rows.append(table(verdicts, tasks=everything).assign(model=model))
    lows, highs = zip(*ranges, strict=True)
    return ModelComparison(
        answers=pd.concat(rows).fillna({"kind": ""}).astype({"score": float}),
        verdicts=pd.concat(verdict_rows),
        reward_range=(min(lows), max(highs)),
        left_out=left_out,
    )


def _answer_columns(
    pairs: Sequence[tuple[Task, Response]], grades: Sequence[Grade]
) -> pd.DataFrame:
    """What a table of grades lacks, a row an answer: passed, answer_cost, seconds; NaN where unknown."""
    return pd.DataFrame(
        [
            {
                "passed": passes(task, answer, grade),
                "answer_cost": answer.meta.get("cost"),
                "seconds": answer.meta.get("seconds"),
            }
            for (task, answer), grade in zip(pairs, grades, strict=True)
        ],
        dtype=float,
    )


def _answers_by_model(
    tasks: TaskSource,
    answers: Mapping[str, AnswerSource] | None,
    by_id: Mapping[str, Task],
) -> dict[str, list[Response]]:
    """The answers of each model; DataError where models answered different prompts."""
    by_model: dict[str, list[Response]] = {}
    if answers is None:
        answers = group(
            (r.source or "unnamed", r) for r in getattr(tasks, "responses", ())
        )
    for name, source in answers.items():
        if isinstance(source, (str, Path)):
            source = load(source)
        by_model[name] = list(
            source.responses if isinstance(source, TaskSet) else source
        )
    if len(by_model) < 2:
        raise DataError(
            f"there are answers of {count_of(len(by_model), 'model')}, and a comparison needs two",
            where="compare(answers=)",
            fix="give a file for each model, or answers whose `source` names the model",
        )
    answered = {r.task_id for r in chain(*by_model.values())}
    if absent := answered - by_id.keys():
        raise DataError(
            f"there is no task {min(absent)!r}",
            where="compare(answers=)",
            fix="give the tasks that were answered",
        )
    return by_model


def _common_answers(
    by_model: Mapping[str, list[Response]], on_missing: str
) -> tuple[dict[str, list[Response]], int]:
    """The answers to prompts that all models answered, and the number of the other prompts; see `compare`."""
    answered = {name: {r.task_id for r in rows} for name, rows in by_model.items()}
    common = set.intersection(*answered.values())
    for has, lacks in permutations(answered, 2):
        different = answered[has] - answered[lacks]
        if different and (on_missing == "raise" or not common):
            raise DataError(
                f"{has!r} answered task {min(different)!r}, and {lacks!r} did not "
                f"({len(different)} such tasks)",
                where="compare(answers=)",
                fix="let all models answer the same prompts, or leave others out: "
                'on_missing="skip" (--on-missing skip)',
            )
    answers = {
        name: [r for r in rows if r.task_id in common]
        for name, rows in by_model.items()
    }
    return answers, len(set().union(*answered.values()) - common)


def _describe_gap(gap: Estimate) -> str:
    side = "better" if gap.value > 0 else "worse"
    return f"{side if gap.excludes(0) else 'not shown to differ'} ({gap})"


def _cost_text(costs: pd.Series[float]) -> str:
    """The sum in US dollars; an unknown price is never $0."""
    return format_cost(None if costs.isna().any() else costs.sum(), digits=4)
