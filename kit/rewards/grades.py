"""Grades of many answers, and of answers that need no skill.

A reward that pays such answers is broken, so each reward is tried on them. No policy reads the task's truth or its
labels: only the prompt, the sources, the rubric's text, and the names that the stated form asks for. The texts are
in `policies.yaml`.
"""

import functools
import re
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

import pandas as pd

from ..checks import applicable_verifiers, claims_of
from ..data import TaskSet, TaskSource, tasks_of
from ..errors import DataError
from ..judging import JudgeSource, LedgerLike, ajudge_pairs, wait
from ..records import Grade, Response, Task, Verdict, count_of
from ..records.tables import show, table
from ..stats import Estimate, mean
from ..system.settings import load
from .citations import ANY_TAG
from .composer import Composer, RewardSource, RubricComponent

AnswerPolicy = Callable[[Task], str]
QUOTED_TEXT = re.compile(r"[\"“']([^\"”']{1,40})[\"”']")
PROPER_NAME = re.compile(r"\b[A-Z][\w-]+(?:\s[A-Z][\w-]+)*")
EITHER_OR = re.compile(r"([\w-]+),? or (?:the )?([\w-]+)")


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
        return (
            f"{count_of(len(self), 'grade')}, mean {self.estimate}"
            if self
            else "no grades"
        )

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
        responses = [
            Response(task_id=task, id=name, text="")
            for task, name in dict.fromkeys(v.answer_ids for v in verdicts)
        ]
    both = TaskSet(tasks=tasks_of(tasks), responses=list(responses))
    both.check("grade")
    pairs = [(both.by_id[r.task_id], r) for r in both.responses]
    return Grades(composer.grade_all(pairs, verdicts))


def trivial(
    tasks: TaskSource,
    *,
    judge: JudgeSource = "code",
    reward: RewardSource = "rubric",
    ledger: LedgerLike = None,
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
    pairs = [
        (task, answer)
        for task in tasks_of(tasks)
        for answer in trivial_answers(task, extra)
    ]
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
    # One row per answer becomes one row per policy.
    policies = (
        frame.assign(
            policy=frame["response"].str.removeprefix("trivial-"),
            is_unknown=frame["score"].isna(),
            example=[answer.text for _, answer in pairs],
        )
        .groupby("policy", sort=False)
        .agg(
            reward=("score", "mean"),
            low=("low", "mean"),
            high=("high", "mean"),
            tasks=("score", "size"),
            unknown=("is_unknown", "sum"),
            example=("example", "first"),
        )
    )
    # The mean of the known ones alone would hide the unknown ones, or show them as 0.
    is_wide = (
        policies["high"] - policies["low"] > composer.max_width * composer.scale
    )
    policies.loc[is_wide, "reward"] = None
    # A policy that nobody can score comes first: it may be the best one.
    return policies.sort_values(
        "reward", ascending=False, na_position="first"
    ).reset_index()


@functools.cache
def _policy_templates() -> dict[str, Any]:
    return load(Path(__file__).with_name("policies.yaml"))


def _template_words(task: Task) -> dict[str, str]:
    """What the templates may name."""
    prompt = task.prompt.strip()
    question = re.split(r"(?<=[.?!])\s+", prompt)[-1].rstrip("?!. ") + "."
    # A prompt without names still has long words that a lazy answer would list.
    names = list(dict.fromkeys(PROPER_NAME.findall(prompt))) or re.findall(
        r"\w{5,}", prompt
    )
    choices = EITHER_OR.findall(prompt) or [("yes", "no")]
    rubric = [c.text.rstrip(".") for c in task.criteria if c.weight > 0]
    # The form names the subjects in the prompt, so naming them needs no skill.
    subjects = [claim["subject"] for claim in claims_of(task)]
    ways = {"up": "up", "down": "down", "unchanged": "unchanged"}
    if len(subjects) > 1:
        for way in ways:
            ways[way] = ", ".join(f"{subject}: {way}" for subject in subjects)
    return {
        "prompt": prompt,
        "question": question,
        "question_20_times": " ".join([question] * 20),
        "names": "; ".join(names),
        "quoted": "; ".join(QUOTED_TEXT.findall(prompt) or names),
        "first": choices[-1][0],
        "last": choices[-1][1],
        "rubric": " ".join(
            f"It does this: {text}." for text in rubric or [question]
        ),
        **ways,
    }


def _citation_texts(task: Task, words: Mapping[str, str]) -> dict[str, str]:
    """Answers to a task with sources: ids and copies without a claim of their own."""
    claims_of_policy = {
        "citation_stuffing": [
            (i, "This is well documented.") for i in task.sources
        ],
        "all_ids_on_one_claim": [(",".join(task.sources), words["question"])],
        "sources_copied": list(task.sources.items()),
        "prompt_cited": [(next(iter(task.sources)), words["prompt"])],
    }
    texts = {}
    for name, claims in claims_of_policy.items():
        # A tag inside a source would break the form, and the gate would hide the policy.
        snippets = [
            f"<snippet id={ids}>{ANY_TAG.sub('', text)}</snippet>"
            for ids, text in claims
        ]
        texts[name] = f"<answer>{' '.join(snippets)}</answer>"
    return texts


def trivial_answers(
    task: Task, extra: Mapping[str, AnswerPolicy] | None = None
) -> list[Response]:
    """One answer per trivial policy, with source "trivial:NAME" and id "trivial-NAME".

    They keep the form that the task asks for: its last two lines, or one <answer> block.
    extra : policies of your own, name -> function of the task.

    >>> [r.source for r in trivial_answers(Task(id="t", prompt="Is it up or down?"))][:3]
    ['trivial:empty', 'trivial:constant', 'trivial:parrot']
    """
    texts, words = {"empty": ""}, _template_words(task)
    for name, (text, answer, percent) in _policy_templates().items():
        text = text.format(**words)
        if applicable_verifiers(task):
            # The form is one line, and a prompt may have several.
            answer = " ".join(answer.format(**words).split())
            text = f"{text}\nAnswer: {answer}\nConfidence: {percent}%"
        texts[name] = f"<answer>{text}</answer>" if task.sources else text
    if task.sources:
        texts |= _citation_texts(task, words)
    for name, function in (extra or {}).items():
        texts[name] = function(task)
    return [
        Response(
            task_id=task.id,
            id=f"trivial-{name}",
            text=text,
            source=f"trivial:{name}",
        )
        for name, text in texts.items()
    ]
