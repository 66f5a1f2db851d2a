"""Lint: rules by code that are nearly always right. What needs reading, a judge is asked."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from statistics import median
from typing import Any

from ..data import Finding, tasks_of
from ..errors import DataError
from ..records import Criterion, Task, canonical, group, text_identity

SEVERITIES = ("error", "warning", "info")
# A weight this many times the median of its task decides the score alone.
TIMES = 20
# What a training without a preset reads. A test compares the numbers with the training's own.
PROMPT_TOKENS = {"test": 1000, "cpu": 512, "t4": 1024, "gpu": 2048, "cluster": 2048}

# code -> severity, what to do
RULES = {
    "empty-criterion": ("error", "write it or remove it"),
    "impossible-check": ("error", "correct the arguments of the check"),
    "annotator-note": ("warning", "remove it, or write what the answer must do"),
    "unfinished": ("warning", "write the rest of it"),
    "extreme-weight": ("warning", "check the decimal point"),
    "duplicate-criterion": ("warning", "keep one of the two"),
    "near-duplicate": (
        "warning",
        "keep one of the two, or make the difference plain",
    ),
    "contradiction": ("warning", "keep one of the two"),
    "impossible-gate": ("error", "make one of the two optional"),
    "no-criteria": ("warning", "write criteria, or a truth for the verifiers"),
    "zero-weights": ("error", "give the criteria weights"),
    "one-signed": ("warning", "add what a good answer does"),
    "long-prompt": ("warning", "shorten it, or take a larger profile"),
    "duplicate-prompt": ("info", "keep one of them"),
    "split-leak": ("error", "put them on one side: kit.split does"),
}

UNFINISHED = re.compile(
    r"\{\{?\w+\}|\[(?:insert|add|your)\b[^\]]*\]|TODO|TBD|FIXME|_{3,}"
)
QUOTED = re.compile(r"\"[^\"]*\"|\u201c[^\u201d]*\u201d")
# Remarks on answers, raters or the rubric: beginnings, and how each goes on. They leave out what a
# criterion may also name. Each begins with a letter, so that `re` can skip to it (8 times faster).
REMARKS = {
    ("Response", "response", "Completion", "completion"): r"s? [AB12]\b",
    ("Both", "both", "Neither", "neither", "All", "all", "No", "no"): (
        r" (?:three )?(?:responses?|answers?|models?|completions?) "
        r"(?:fail|miss|forg|ignor|struggl|got|are vague)"
    ),
    (
        "Gemini",
        "GPT",
        "Claude",
        "Llama",
        "Qwen",
        "Mistral",
        "DeepSeek",
        "Deepseek",
    ): (
        r"[\w.-]* (?:missed|misses|failed|fails|got|gave|forgot|ignored|overlooked|hallucinated|didn't)\b"
    ),
    (
        "same as",
        "duplicate of",
        "merge with",
        "overlaps with",
        "split from",
    ): " (?:criterion|rubric|item|#)",
    ("This", "this"): r" (?:criterion|rubric)\b",
    ("rated", "Rated", "marked", "Marked"): r" (?:red|yellow|green)\b",
    ("missed by", "Missed by"): r" \w+\W*\Z",
}
NOTE = re.compile(
    "|".join(f"{word}{rest}" for words, rest in REMARKS.items() for word in words)
)
NOTE_AT_START = re.compile(
    r"\W*(?:(?:I|we) (?:think|added|would|kept|marked|changed|removed)\b"
    r"|(?:note|nb|comment|reviewer|annotator|editor's note|reworded|not sure|needs discussion)\b"
    r"|(?:ok|n/?a|todo|duplicate|common sense|domain knowledge|see above|good practice)\b.{,25}\Z"
    r"|(?:explicit|implicit|implied|inferred|derived|stated|requested|taken)\b(?:.{,30}\b(?:prompt|"
    r"request|question|context|solution|guidelines|paragraph))?\W*\Z)",
    re.I,
)
WORD = re.compile(r"\w+")
# Words that say nothing of what is asked: two texts with the same other words ask the same.
FILLERS = frozenset(
    "a an and are as at be by for from in is it its of on or that the to with".split()
)


@dataclass(frozen=True)
class LintReport:
    """The findings of `lint`, errors first.

    criteria : the number of criteria. faulty : how many of them have an error or a warning.
    """

    findings: tuple[Finding, ...]
    criteria: int
    faulty: int

    @property
    def counts(self) -> Counter[str]:
        """Findings per rule."""
        return Counter(f.code for f in self.findings)

    @property
    def severities(self) -> Counter[str]:
        """Findings per severity: error, warning, info."""
        return Counter(f.severity for f in self.findings)

    def table(self) -> Any:
        """A DataFrame with one row per rule: how often it applies, an example, and what to do."""
        import pandas as pd

        columns = ["severity", "code", "message", "text", "suggestion"]
        frame = pd.DataFrame(
            [[getattr(f, k) for k in columns] for f in self.findings],
            columns=columns,
        )
        return (
            frame.fillna("")
            .groupby(["severity", "code"], sort=False)
            .agg(
                findings=("code", "size"),
                message=("message", "first"),
                example=("text", "first"),
                suggestion=("suggestion", "first"),
            )
            .reset_index()
        )

    def plot(self) -> Any:
        """Bars: findings per rule."""
        from .. import plots

        counts = Counter(f"{f.code} ({f.severity})" for f in self.findings)
        return plots.bars(counts, title="Findings per rule")

    @property
    def sentence(self) -> str:
        """The counts as one sentence."""
        counts = (
            ", ".join(f"{n} {name}" for name, n in self.severities.items())
            or "no finding"
        )
        return f"{counts}; {self.faulty} of {self.criteria} criteria are faulty"

    def __str__(self) -> str:
        lines = [
            f"{r['severity']}: {r['code']}, {r['findings']}: {r['message']}"
            for r in self.table().to_dict("records")
        ]
        return "\n".join([*lines, self.sentence])

    def _repr_html_(self) -> str:
        return f"<p>{self.sentence}</p>{self.table().to_html(index=False)}"


def lint(
    tasks: Any,
    *,
    judge: Any = None,
    ledger: Any = None,
    budget: Any = None,
    profile: str = "t4",
) -> LintReport:
    """Find faults in a rubric set: duplicates, notes, impossible checks, leaks between the splits.

    tasks : a TaskSet, a file or tasks.
    judge : a judge as in `kit.judge`, asked eight questions on each criterion that code does not
        decide ("judge-..." findings of severity "info"); it costs one call per criterion.
    profile : test, cpu, t4, gpu or cluster; a training on it without a preset sets the longest prompt.

    The rules were measured on planted faults. They name 50 of 76 notes of annotators, 22 of 25
    extreme weights, 4 of 4 unfinished criteria, and none of 759 sound criteria. A near-duplicate
    is named only where the words are the same (1 of 20), a contradiction only where one text has
    two signs (1 of 21).

    >>> lint([Task(id="t", prompt="Why?", criteria=(Criterion(id="c", text="..."),))]).counts
    Counter({'empty-criterion': 1})
    """
    if profile not in PROMPT_TOKENS:
        raise DataError(
            f"there is no profile {profile!r}",
            fix=f"one of {', '.join(PROMPT_TOKENS)}",
        )
    rows = tasks_of(tasks)
    findings = [*getattr(tasks, "findings", ()), *_between(rows)]
    for task in rows:
        faults = (
            *_in_task(task, PROMPT_TOKENS[profile]),
            *_pairs(task),
            *_gates(task),
        )
        findings += [_finding(*fault, task=task) for fault in faults]
    if judge is not None:
        from .opinion import opinions

        findings += opinions(rows, judge=judge, ledger=ledger, budget=budget)
    # The sort is stable: within a severity, the order of the tasks stays.
    findings.sort(key=lambda f: SEVERITIES.index(f.severity))
    faulty = {
        (f.task_id, f.criterion_id)
        for f in findings
        if f.severity != "info" and f.criterion_id
    }
    return LintReport(
        tuple(findings), sum(len(t.criteria) for t in rows), len(faulty)
    )


def stems(text: str) -> frozenset[str]:
    """The beginnings of the words of a text, without fillers and order.

    >>> stems("The answer mentions the river.") == stems("The river is mentioned in the answer")
    True
    """
    return frozenset(
        # Five letters as a stem: "mentions" and "mentioned" count as one word.
        [w[:5] for w in WORD.findall(text.lower()) if w not in FILLERS]
    )


Fault = tuple[str, str, Criterion | None]  # rule, message, criterion


def _finding(
    code: str, message: str, criterion: Criterion | None, *, task: Task
) -> Finding:
    severity, fix = RULES[code]
    place = (
        {}
        if criterion is None
        else {"criterion_id": criterion.id, "text": criterion.text[:200]}
    )
    return Finding(
        code=code,
        severity=severity,
        message=message,
        suggestion=fix,
        task_id=task.id,
        **place,
    )


def _in_task(task: Task, most_tokens: int) -> Iterator[Fault]:
    """Faults of a task, and of each criterion alone."""
    tokens = len(task.conversation) // 4  # a token has about four characters
    if tokens > most_tokens:
        yield (
            "long-prompt",
            f"about {tokens} tokens, the profile reads {most_tokens}",
            None,
        )
    weights = [c.weight for c in task.criteria]
    if not weights and not task.truth:
        yield (
            "no-criteria",
            "no criterion and no truth: its answers get no score",
            None,
        )
    elif weights and not any(weights):
        yield "zero-weights", "every weight is 0", None
    elif weights and max(weights) <= 0:
        yield (
            "one-signed",
            "no weight is positive: an empty answer is the best one",
            None,
        )
    sizes = [abs(w) for w in weights if w]
    middle = median(sizes) if len(sizes) > 2 else None
    for c in task.criteria:
        yield from _alone(c, task)
        if middle and c.weight and not 1 / TIMES < abs(c.weight) / middle < TIMES:
            yield (
                "extreme-weight",
                f"weight {c.weight:g}, the median of the task is {middle:g}",
                c,
            )


def _alone(c: Criterion, task: Task) -> Iterator[Fault]:
    if c.check is not None:
        from ..checks import validate_check

        try:
            validate_check(c, task)
        except DataError as e:
            yield "impossible-check", e.what, c
        return  # its text is a comment: code decides
    if not any(map(str.isalnum, c.text)):
        yield "empty-criterion", "it has no words", c
    note = NOTE.search(c.text) or NOTE_AT_START.match(c.text)
    if note and not _is_subject(note[0], c, task):
        yield (
            "annotator-note",
            f"{note[0][:40]!r} looks like a note of an annotator",
            c,
        )
    # A placeholder that the prompt has too is what the task is about.
    blank = UNFINISHED.search(c.text)
    if blank and blank[0] not in task.prompt:
        yield "unfinished", f"{blank[0]!r} was left to be filled in", c
    elif c.text.endswith((" and", " or", " the")):
        yield "unfinished", "it ends in the middle of a sentence", c


def _is_subject(note: str, c: Criterion, task: Task) -> bool:
    """True where the prompt, or a quotation in the criterion, has the first word of a note."""
    texts = [task.prompt, *QUOTED.findall(c.text)]
    return WORD.findall(note.lower())[0] in WORD.findall(" ".join(texts).lower())


def _pairs(task: Task) -> Iterator[Fault]:
    """A criterion beside an earlier one with the same words."""
    earlier: dict[Any, Criterion] = {}
    for c in task.criteria:
        key = stems(c.text)
        # A coded criterion repeats another when the checks are equal, whatever the texts.
        place = (c.parent, canonical(c.check) if c.check else key)
        other = earlier.setdefault(place, c)
        # A text of fillers alone has no words by which to compare it.
        if other is c or not (key or c.check):
            continue
        if c.weight * other.weight < 0:
            yield (
                "contradiction",
                f"{other.id!r} with these words has a weight of the other sign",
                c,
            )
        elif c.check or text_identity(c.text) == text_identity(other.text):
            yield "duplicate-criterion", f"it repeats {other.id!r}", c
        else:
            yield "near-duplicate", f"it has the words of {other.id!r}", c


def _gates(task: Task) -> Iterator[Fault]:
    """Required criteria that no answer can pass together: one demands what the other forbids."""
    gates: dict[str, Criterion] = {}
    limits: dict[str, tuple[float, float]] = {}
    for c in task.criteria if any(c.required for c in task.criteria) else ():
        if not c.required:
            continue
        other = gates.setdefault(
            canonical(c.check) if c.check else text_identity(c.text), c
        )
        if other.weight * c.weight < 0:
            yield "impossible-gate", f"{other.id!r} requires the opposite", c
        if c.check and c.weight >= 0:
            # Checks that differ only in their limits measure the same thing.
            measure = canonical({**c.check, "min": None, "max": None})
            low, high = limits.get(measure, (-math.inf, math.inf))
            low = max(low, c.check.get("min", low))
            high = min(high, c.check.get("max", high))
            limits[measure] = low, high
            if low > high:
                yield (
                    "impossible-gate",
                    f"at least {low:g} and at most {high:g} are required",
                    c,
                )


def _between(tasks: Iterable[Task]) -> Iterator[Finding]:
    """Tasks that ask the same, within a split or across it."""
    for rows in group((text_identity(t.conversation), t) for t in tasks).values():
        if len(rows) == 1:
            continue
        code = (
            "split-leak"
            if len({t.held_out for t in rows}) == 2
            else "duplicate-prompt"
        )
        message = f"{len(rows)} tasks have this prompt: {', '.join(t.id for t in rows[:5])}"
        yield _finding(code, message, None, task=rows[1])
