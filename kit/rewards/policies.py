"""Answers that need no skill. A reward that pays them is broken, so each reward is tried on them.

No policy reads the task's truth or its labels: only the prompt, the sources, the rubric's text, and
the names that the stated form asks for. The texts are in `policies.yaml`.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from ..checks import applicable, claims_of
from ..records import Response, Task
from ..system.settings import load

Policy = Callable[[Task], str]

TRIVIAL = "trivial:"
_QUOTE = re.compile(r"[\"“']([^\"”']{1,40})[\"”']")
_NAME = re.compile(r"\b[A-Z][\w-]+(?:\s[A-Z][\w-]+)*")
_CHOICE = re.compile(r"([\w-]+),? or (?:the )?([\w-]+)")
_TAG = re.compile(r"</?(?:snippet|answer)")


@functools.cache
def _templates() -> dict[str, Any]:
    return load(Path(__file__).with_name("policies.yaml"))


def _words(task: Task) -> dict[str, str]:
    """What the templates may name."""
    prompt = task.prompt.strip()
    question = re.split(r"(?<=[.?!])\s+", prompt)[-1].rstrip("?!. ") + "."
    names = list(dict.fromkeys(_NAME.findall(prompt)))
    # A prompt without names still has long words that a lazy answer would list.
    names = names or re.findall(r"\w{5,}", prompt)
    choices = _CHOICE.findall(prompt) or [("yes", "no")]
    rubric = [c.text.rstrip(".") for c in task.criteria if c.weight > 0] or [
        question
    ]
    # The form names the subjects in the prompt, so naming them needs no skill.
    subjects = [c["subject"] for c in claims_of(task)]
    ways = {}
    for way in ("up", "down", "unchanged"):
        ways[way] = (
            ", ".join(f"{subject}: {way}" for subject in subjects)
            if len(subjects) > 1
            else way
        )
    return {
        "prompt": prompt,
        "question": question,
        "question_20_times": " ".join([question] * 20),
        "names": "; ".join(names),
        "quoted": "; ".join(_QUOTE.findall(prompt) or names),
        "first": choices[-1][0],
        "last": choices[-1][1],
        "rubric": " ".join(f"It does this: {text}." for text in rubric),
        **ways,
    }


def policies(
    task: Task, extra: Mapping[str, Policy] | None = None
) -> list[Response]:
    """One answer per trivial policy, with source "trivial:NAME" and id "trivial-NAME".

    They keep the form that the task asks for: its last two lines, or one <answer> block.
    extra : policies of your own, name -> function of the task.

    >>> [r.source for r in policies(Task(id="t", prompt="Is it up or down?"))][:3]
    ['trivial:empty', 'trivial:constant', 'trivial:parrot']
    """
    texts, words = {"empty": ""}, _words(task)
    for name, (text, answer, percent) in _templates().items():
        text = text.format(**words)
        if applicable(task):
            # The form is one line, and a prompt may have several.
            answer = " ".join(answer.format(**words).split())
            text = f"{text}\nAnswer: {answer}\nConfidence: {percent}%"
        texts[name] = f"<answer>{text}</answer>" if task.sources else text
    if task.sources:
        texts |= _with_citations(task, words)
    for name, function in (extra or {}).items():
        texts[name] = function(task)
    return [
        Response(
            task_id=task.id, id=f"trivial-{n}", text=text, source=f"{TRIVIAL}{n}"
        )
        for n, text in texts.items()
    ]


def _with_citations(task: Task, words: dict[str, str]) -> dict[str, str]:
    """Policies for tasks with sources: ids and copies without a claim of their own."""
    every = ",".join(task.sources)
    claims_of = {
        "citation_stuffing": [
            (i, "This is well documented.") for i in task.sources
        ],
        "all_ids_on_one_claim": [(every, words["question"])],
        "sources_copied": list(task.sources.items()),
        "prompt_cited": [(next(iter(task.sources)), words["prompt"])],
    }
    texts = {}
    for name, claims in claims_of.items():
        # A tag inside a source would break the form, and the gate would hide the policy.
        tags = [
            f"<snippet id={i}>{_TAG.sub('', text)}</snippet>" for i, text in claims
        ]
        texts[name] = f"<answer>{' '.join(tags)}</answer>"
    return texts
