"""A rubric reward as a function that other trainers call: TRL, verl, open-instruct.

    reward = kit.reward_function("rubrics.json", "endpoint:my-model", "default")
    trainer = GRPOTrainer(MODEL, reward_funcs=reward, train_dataset=reward.dataset())
    trainer.train()

All answers of a batch are asked together. A reward that is not known is None (one number: NaN):
these trainers leave it out; it is never 0.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ..data import TaskSet, tasks_of
from ..data.words import held_out
from ..errors import KitError
from ..judge import loop
from ..judge.factory import judge_of
from ..records import Grade, Response, Task
from ..rewards.composer import Composer
from .answers import asked, messages
from .reward import Reward

COLUMNS = ("task_id", "prompt_id", "id")  # where a row may name its task


@dataclass(frozen=True)
class Result:
    """One reward as open-instruct reads it; score is NaN where it is not known."""

    score: float
    cost: float = 0.0
    reasoning: str | None = None


def reward_function(
    tasks: Any,
    judge: Any = "code",
    config: Any = "default",
    *,
    ledger: Any = None,
    budget: Any = None,
    column: str | None = None,
    patience_s: float = 120.0,
    name: str = "rubric",
) -> RewardFunction:
    """A reward that TRL, verl or open-instruct can call.

    tasks : a path, a TaskSet, tasks, or rows that kit.load reads. judge : see kit.judge_of.
    config : a reward of kit.rewards (a preset's name, a mapping, a file, or a Composer). ledger,
        budget : as kit.judge.
    column : the extra column (or field of verl's extra_info) that holds a row's task id; default
        "task_id", "prompt_id" or "id", else the task is found by its prompt.
    patience_s : how long a batch waits for a judge that is down until JudgeDownError.

    >>> from kit.records import Criterion
    >>> c = Criterion(id="c", text="short", check={"name": "words", "max": 3})
    >>> f = reward_function([Task(id="t", prompt="Say.", criteria=(c,))], config="rubric")
    >>> f(prompts=["Say."], completions=["two words"])
    [1.0]
    """
    composer = Composer.from_config(config)
    if isinstance(tasks, TaskSet):
        tasks.sound(warn=True)
    reward = Reward(
        tasks_of(tasks),
        None if judge in (None, "code", "none") else judge_of(judge),
        composer,
        ledger=ledger,
        budget=budget,
        patience_s=patience_s,
    )
    return RewardFunction(reward, column, name)


class RewardFunction:
    """See `reward_function`. `grades` : of the last batch; `bill` : what the judge cost so far.

    Called with `completions` (TRL: lists of text or of chat messages, and columns) it gives a list;
    with `solution_str` and `extra_info`, or `solution_strs` and `extra_infos` (verl), a number or a
    list; with `prediction` and `label` (open-instruct), a Result. `asynchronous` is the same for
    trainers that await their rewards.
    """

    def __init__(self, reward: Reward, column: str | None = None, name: str = "rubric"):
        self.reward, self.column, self.__name__ = reward, column, name
        self.grades: list[Grade] = []
        self._by_prompt: dict[str, Task | None] = {}  # None: the prompt of two tasks
        for t in reward.tasks:
            for key in {_key(messages(t)), asked(t), t.prompt}:
                self._by_prompt[key] = None if key in self._by_prompt else t

    @property
    def bill(self) -> Any:
        """What the judge cost so far: calls, dollars, seconds, verdicts."""
        return self.reward.bill

    def __call__(self, prompts: Any = None, completions: Any = None, **fields: Any) -> Any:
        """The rewards of a batch, or of one answer."""
        return loop.run(self._answered(prompts, completions, fields))

    @property
    def asynchronous(self) -> Any:
        """This reward as a coroutine function on the kit's own loop: TRL runs several such rewards
        together.
        """

        async def reward(prompts: Any = None, completions: Any = None, **fields: Any) -> Any:
            return await loop.hop(self._answered(prompts, completions, fields))

        reward.__name__ = self.__name__
        return reward

    def dataset(
        self, *, chat: bool = True, tokenizer: Any = None, max_prompt_tokens: int | None = None
    ) -> Any:
        """The tasks as a `datasets.Dataset` with columns prompt and task_id, as TRL reads them.

        Those whose split holds them out (test, validation), and those that ask the same, are not in
        it, but known to the reward.
        A task's sources stand below its prompt, as the kit's own trainer shows them; with a
        tokenizer and max_prompt_tokens each is cut until the chat fits.
        """
        from datasets import Dataset

        out = held_out(self.tasks)
        return Dataset.from_list(
            [
                {
                    "prompt": messages(t, tokenizer, max_prompt_tokens) if chat else asked(t),
                    "task_id": t.id,
                }
                for t in self.tasks
                if t.id not in out
            ]
        )

    @property
    def tasks(self) -> Sequence[Task]:
        """The tasks that it knows."""
        return self.reward.tasks

    async def _answered(self, prompts: Any, completions: Any, fields: Mapping[str, Any]) -> Any:
        if completions is not None:
            scores = await self._scores(completions, self._ids(fields, len(completions)), prompts)
            if callable(log := fields.get("log_metric")) and scores:
                log(f"{self.__name__}/unknown", sum(s is None for s in scores) / len(scores))
            return scores
        if "solution_strs" in fields:
            infos = fields.get("extra_infos")
            infos = [{}] * len(fields["solution_strs"]) if infos is None else infos
            truths = fields.get("ground_truths", [None] * len(infos))
            ids = [self._id(i, g) for i, g in zip(infos, truths, strict=True)]
            return [_number(s) for s in await self._scores(fields["solution_strs"], ids)]
        if "solution_str" in fields:
            task_id = self._id(fields.get("extra_info"), fields.get("ground_truth"))
            return _number((await self._scores([fields["solution_str"]], [task_id]))[0])
        if "prediction" in fields:
            label, query = fields.get("label"), fields.get("query")
            (g,) = await self.graded([fields["prediction"]], [self._id(None, label)], [query])
            said = (f"{v.criterion_id} {v.status}: {v.reason or ''}" for v in g.verdicts)
            return Result(_number(g.score), g.cost, "; ".join(said))
        raise KitError(
            "there are no answers in this call",
            where=f"reward {self.__name__!r}, given {', '.join(fields) or 'nothing'}",
            fix="pass completions= (TRL), solution_str= (verl) or prediction= (open-instruct)",
        )

    async def graded(
        self, answers: Sequence[Any], ids: Sequence[Any], prompts: Sequence[Any] | None = None
    ) -> list[Grade]:
        """The grades of a batch, with their verdicts; ids : task ids, None = found by prompt."""
        responses = []
        sizes = {len(rows) for rows in (answers, ids, prompts) if rows is not None}
        if len(sizes) > 1:
            raise KitError(
                f"a batch of {len(answers)} answers with columns of {sorted(sizes)} rows",
                where=f"reward {self.__name__!r}",
                fix="give one row an answer",
            )
        for n, (answer, task_id) in enumerate(zip(answers, ids, strict=True)):
            if not isinstance(answer, (str, list, tuple)):
                raise KitError(
                    f"the answer is {answer!r}, no text and no chat",
                    where=f"reward {self.__name__!r}, row {n + 1}",
                )
            task = self._task(task_id, prompts[n] if prompts is not None else None, n)
            responses.append(Response(task_id=task.id, id=f"{n}", text=text_of(answer)))
        self.grades = grades = await loop.hop(self.reward.grade(responses))
        return grades

    async def _scores(
        self, answers: Sequence[Any], ids: Sequence[Any], prompts: Sequence[Any] | None = None
    ) -> list[float | None]:
        return [g.score for g in await self.graded(answers, ids, prompts)]

    def _ids(self, fields: Mapping[str, Any], n: int) -> Sequence[Any]:
        """The task ids of a batch's rows, from an extra column."""
        if self.column is not None and self.column not in fields:
            raise KitError(
                f"there is no column {self.column!r}",
                where="reward_function",
                fix=f"the columns are {', '.join(fields) or 'none'}",
            )
        names = COLUMNS if self.column is None else (self.column,)
        name = next((c for c in names if c in fields and len(fields[c]) == n), None)
        return [None] * n if name is None else fields[name]

    def _id(self, info: Any, truth: Any) -> Any:
        """The task id of one row of verl or open-instruct: in extra_info, else the label itself."""
        info = info if isinstance(info, Mapping) else {}
        names = COLUMNS if self.column is None else (self.column,)
        found = next((info[c] for c in names if info.get(c) is not None), truth)
        while isinstance(found, (list, tuple)) and len(found) == 1:
            found = found[0]
        return found

    def asking(self, prompt: Any) -> Task | None:
        """The one task that asks this, word for word; None where there is none, or several."""
        return None if prompt is None else self._by_prompt.get(_key(prompt))

    def _task(self, task_id: Any, prompt: Any, n: int) -> Task:
        named = None if task_id is None else self.reward.by_id.get(str(task_id))
        asks = self.asking(prompt)
        if named and asks and named is not asks:
            raise KitError(
                f"row {n + 1} has the id {task_id!r} and the prompt of task {asks.id!r}",
                where=f"reward {self.__name__!r}",
                fix="name the column of the tasks' ids (column=), or leave the ids out",
            )
        keys = () if prompt is None else (_key(prompt), text_of(prompt, "user"))
        found = named or next((t for t in map(self._by_prompt.get, keys) if t is not None), None)
        if found is None:
            known = ", ".join(list(self.reward.by_id)[:3])
            several = any(k in self._by_prompt for k in keys)
            raise KitError(
                f"row {n + 1} belongs to {'two tasks' if several else 'no task'} (id {task_id!r})",
                where=f"reward {self.__name__!r}",
                fix=f"give the rows a column task_id; the tasks are {known} ...",
            )
        return found


def text_of(answer: Any, role: str = "assistant") -> str:
    """The text of an answer or prompt: itself, or the last message of this role of a chat.

    >>> text_of([{"role": "assistant", "content": [{"type": "text", "text": "yes"}]}])
    'yes'
    """
    if isinstance(answer, str):
        return answer
    turns = [m for m in answer if isinstance(m, Mapping) and m.get("role") == role]
    content = next((m["content"] for m in reversed(turns) if m.get("content")), "")
    if isinstance(content, str):
        return content
    return "".join(str(p.get("text") or "") for p in content if isinstance(p, Mapping))


def _key(prompt: Any) -> str:
    """A whole chat as one text; a plain prompt stays."""
    if isinstance(prompt, str):
        return prompt
    turns = [m for m in prompt if isinstance(m, Mapping)]
    return "\n".join(f"{m.get('role')}: {text_of([m], str(m.get('role')))}" for m in turns)


def _number(score: float | None) -> float:
    return math.nan if score is None else score
