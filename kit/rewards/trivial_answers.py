"""Answers that need no skill. A reward that pays them is broken, so each reward is tried on them.

No policy reads the task's truth or its labels: only the prompt, the sources, the rubric's text, and
the names that the stated form asks for. The texts are in `policies.yaml`.
"""

import functools
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from ..checks import applicable_verifiers, claims_of
from ..records import Response, Task
from ..system.settings import load

AnswerPolicy = Callable[[Task], str]


QUOTED_TEXT = re.compile(r"[\"“']([^\"”']{1,40})[\"”']")
PROPER_NAME = re.compile(r"\b[A-Z][\w-]+(?:\s[A-Z][\w-]+)*")
EITHER_OR = re.compile(r"([\w-]+),? or (?:the )?([\w-]+)")
CITATION_TAG = re.compile(r"</?(?:snippet|answer)")


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
    claims_of_policy = {
        "citation_stuffing": [
            (i, "This is well documented.") for i in task.sources
        ],
        "all_ids_on_one_claim": [(",".join(task.sources), words["question"])],
        "sources_copied": list(task.sources.items()),
        "prompt_cited": [(next(iter(task.sources), ""), words["prompt"])],
    }
    # Policies for tasks with sources: ids and copies without a claim of their own.
    for name, claims in claims_of_policy.items():
        if task.sources:
            # A tag inside a source would break the form, and the gate would hide the policy.
            snippets = [
                f"<snippet id={ids}>{CITATION_TAG.sub('', text)}</snippet>"
                for ids, text in claims
            ]
            texts[name] = f"<answer>{' '.join(snippets)}</answer>"
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
