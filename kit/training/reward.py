"""From answers to rewards: the judge, the composer, and None where too much is unknown."""

from __future__ import annotations

import copy
import json
import logging
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from ..data import TaskSource, tasks_of
from ..errors import DataError, JudgeDownError
from ..evaluation import known_scores, part_means
from ..judging import Budget, JudgeSource, LedgerLike, ajudge_pairs, judge_of, wait
from ..records import Grade, Response, Task
from ..rewards import Composer, RewardSource
from ..system import paths
from ..system.settings import check_names

logger = logging.getLogger(__name__)


class Reward:
    """Grades of answers, through one judge, one composer and one ledger.

    name : of the judge. budget : counts its calls and US dollars, without a cap. book : a file that keeps both for a
        run that goes on. patience_s : one wait for a judge that is down.
    second : a judge that pays nothing. It has a Reward of its own, whose calls count in the same budget.
    """

    def __init__(
        self,
        tasks: Sequence[Task],
        *,
        judge: JudgeSource | None = None,
        reward: RewardSource = "rubric",
        ledger: LedgerLike = None,
        patience_s: float = 0.0,
        book: Path | None = None,
        second: JudgeSource | None = None,
    ):
        self.by_id = {t.id: t for t in tasks}
        # made once: an endpoint keeps its connections
        self.judge = judge_of("code" if judge in (None, "none") else judge)
        self.name = str(self.judge.name)
        self.composer = Composer.from_config(reward)
        self.ledger, self.patience_s = ledger, patience_s
        self.budget, self.book, self.seconds = Budget(), book, 0.0
        if book and book.exists():
            (
                self.budget.calls_made,
                self.budget.usd_spent,
                self.budget.unpriced_calls,
            ) = json.loads(book.read_text("utf-8"))
        self.second: Reward | None = None
        if second is not None:
            # one budget for all that the run spends
            self.second = copy.copy(self)
            self.second.judge = judge_of(second)
            self.second.name = str(self.second.judge.name)

    @property
    def cost(self) -> float | None:
        """US dollars that the judge took; None where a price is not known."""
        return None if self.budget.unpriced_calls else self.budget.usd_spent

    async def agrade(self, answers: Sequence[Response]) -> list[Grade]:
        """A grade for each answer. All answers go to the judge in one call, which may compare them."""
        pairs = [(self.by_id[a.task_id], a) for a in answers]
        # one call with all answers, so that a group judge can compare them
        return self.composer.grade_all(
            pairs,
            (
                await ajudge_pairs(
                    self.composer.answers_to_judge(pairs),
                    judge=self.judge,
                    ledger=self.ledger,
                    budget=self.budget,
                )
            ),
        )

    def grade(self, answers: Sequence[Response]) -> list[Grade]:
        """`agrade` from synchronous code. A judge that is down is asked once more after one wait."""
        start = time.perf_counter()
        try:
            return wait(self.agrade(answers))
        except JudgeDownError as e:
            logger.warning(
                "the judge is down (%s): one more try in %.0f s",
                e.what,
                self.patience_s,
            )
            # what was answered is in the ledger, so only the rest is asked again
            time.sleep(self.patience_s)
            return wait(self.agrade(answers))
        finally:
            self.seconds += time.perf_counter() - start
            # a judge that dies has been paid before
            if self.book:
                paths.write(
                    self.book,
                    json.dumps(
                        [
                            self.budget.calls_made,
                            self.budget.usd_spent,
                            self.budget.unpriced_calls,
                        ]
                    ),
                )


def text_of(completion: object) -> str:
    """The text of a completion as trainers hand it over: a text, or a list of messages; "" where there is none."""
    # the list may be empty, and a call of a tool has no content
    if isinstance(completion, Sequence) and not isinstance(completion, str):
        completion = completion[-1].get("content") if completion else None
    return str(completion or "").strip()


def reward_function(
    tasks: TaskSource, judge: JudgeSource = "code", config: RewardSource = "rubric"
) -> RewardFunction:
    """A rubric reward for other trainers: TRL's GRPOTrainer calls it as it is, verl by its `compute_score`.

    tasks : a TaskSet, tasks, or a file. judge, config : as in kit.train and kit.grade.
    The result is None (TRL), or NaN (verl), where too much is unknown to pay a reward.

    TRL: the data set has the columns `prompt` and `task_id`.

        reward = kit.reward_function("rubrics.jsonl", judge="endpoint:gpt-5-mini")
        GRPOTrainer(model, reward_funcs=reward, train_dataset=rows, args=GRPOConfig(...))

    verl: `custom_reward_function.path=my_reward.py`, where extra_info holds {"task_id": ...}.

        compute_score = kit.reward_function("rubrics.jsonl", judge="local").compute_score

    inspect-ai: a scorer.

        reward = kit.reward_function("rubrics.jsonl")
        @scorer(metrics=[mean(), stderr()])
        def rubric():
            async def score(state, target):
                value = await reward.acall([state.output.completion], [state.sample_id])
                return Score(value=float("nan") if value[0] is None else value[0])
            return score

    verifiers: a rubric of one function.

        async def rubric(completion, info, **_):
            return (await reward.acall([completion], [info["task_id"]]))[0] or 0.0
        vf.SingleTurnEnv(dataset=rows, rubric=vf.Rubric(funcs=[rubric]))

    (There an unknown reward can only be 0; drop such rows where that matters.)

    >>> from kit import Criterion, Task
    >>> check = {"name": "words", "max": 3}
    >>> task = Task(id="t", prompt="Greet.", criteria=(Criterion(id="c", text="short", check=check),))
    >>> reward_function([task])(["Hello!", "one two three four"], task_id=["t", "t"])
    [1.0, 0.0]
    """
    return RewardFunction(tasks_of(tasks), judge=judge, reward=config)


class RewardFunction(Reward):
    """What `reward_function` returns: call it as TRL does, or `compute_score` as verl does."""

    __name__ = "rubric"

    def _answers(
        self, completions: Sequence[Any], task_ids: Sequence[str]
    ) -> list[Response]:
        # an id that is wrong would earn the reward of nothing
        check_names(
            sorted(set(task_ids) - self.by_id.keys()),
            self.by_id,
            where="column task_id",
        )
        return [
            Response(task_id=i, id=f"a{n}", text=text_of(c))
            for n, (i, c) in enumerate(zip(task_ids, completions, strict=True))
        ]

    async def acall(
        self, completions: Sequence[Any], task_id: Sequence[str]
    ) -> list[float | None]:
        """Rewards (n,) from asynchronous code."""
        return [
            g.score for g in await self.agrade(self._answers(completions, task_id))
        ]

    def __call__(
        self,
        completions: Sequence[Any],
        task_id: Sequence[str] = (),
        **columns: Any,
    ) -> list[float | None]:
        """Rewards (n,); None where unknown. Parts go to the tracker where the trainer offers it."""
        if len(task_id) != len(completions):
            raise DataError(
                "the rows have no column `task_id`",
                where="data set",
                fix="add the id of each row's task",
            )
        grades = self.grade(self._answers(completions, task_id))
        track(grades, columns)
        return [g.score for g in grades]

    def compute_score(
        self,
        data_source: str,
        solution_str: str,
        ground_truth: object,
        extra_info: Mapping[str, str] | None = None,
    ) -> float:
        """verl's reward of one answer; extra_info holds its `task_id`. NaN where unknown."""
        score = self(
            [solution_str], task_id=[(extra_info or {}).get("task_id", data_source)]
        )[0]
        return float("nan") if score is None else score


def track(grades: Sequence[Grade], columns: dict[str, Any]) -> None:
    """Parts of the reward and the share of unknown ones, by TRL's log_metric and log_extra."""
    if metric := columns.get("log_metric"):
        for name, value in part_means(grades).items():
            metric(f"part/{name}", value)
        metric(
            "unknown_rewards",
            (len(grades) - len(known_scores(grades))) / max(len(grades), 1),
        )
    if extra := columns.get("log_extra"):
        extra(
            "verdicts",
            [
                ", ".join(f"{v.criterion_id}: {v.status}" for v in g.verdicts)
                for g in grades
            ],
        )
