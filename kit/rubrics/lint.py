"""Lint: rules by code that are nearly always right. What needs reading, a judge is asked."""

import math
import re
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from statistics import median

import pandas as pd
from msgspec.structs import asdict

from ..checks import validate_check
from ..data import Finding, TaskSet, TaskSource, tasks_of
from ..errors import DataError
from ..judging import Budget, JudgeSource, LedgerLike
from ..plots import Figure, bars
from ..records import Criterion, Task, canonical, count_of, group, text_identity
from ..system.settings import check_names
from .judge_lint import judge_findings

SEVERITY_ORDER = ("error", "warning", "info")
# A weight this many times the median of its task decides the score alone.
EXTREME_WEIGHT_RATIO = 20
# What a training without a preset reads. A test compares the numbers with the training's own.
PROMPT_TOKENS = {"test": 1000, "cpu": 512, "t4": 1024, "gpu": 2048, "cluster": 2048}

# code -> severity, what to do
LINT_RULES = {
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

PLACEHOLDER_TEXT = re.compile(
    r"\{\{?\w+\}|\[(?:insert|add|your)\b[^\]]*\]|TODO|TBD|FIXME|_{3,}"
)
QUOTED_TEXT = re.compile(r"\"[^\"]*\"|\u201c[^\u201d]*\u201d")
# Remarks on answers, raters or the rubric: beginnings, and how each goes on. They leave out what a
# criterion may also name. Each begins with a letter, so that `re` can skip to it (8 times faster).
REMARK_FORMS = {
    "Response|response|Completion|completion": r"s? [AB12]\b",
    "Both|both|Neither|neither|All|all|No|no": (
        r" (?:three )?(?:responses?|answers?|models?|completions?) "
        r"(?:fail|miss|forg|ignor|struggl|got|are vague)"
    ),
    "Gemini|GPT|Claude|Llama|Qwen|Mistral|DeepSeek|Deepseek": (
        r"[\w.-]* (?:missed|misses|failed|fails|got|gave|forgot|ignored|overlooked|hallucinated|didn't)\b"
    ),
    "same as|duplicate of|merge with|overlaps with|split from": " (?:criterion|rubric|item|#)",
    "This|this": r" (?:criterion|rubric)\b",
    "rated|Rated|marked|Marked": r" (?:red|yellow|green)\b",
    "missed by|Missed by": r" \w+\W*\Z",
}
ANNOTATOR_REMARK = re.compile(
    "|".join(
        f"{word}{rest}"
        for words, rest in REMARK_FORMS.items()
        for word in words.split("|")
    )
)
NOTE_AT_START = re.compile(
    r"\W*(?:(?:I|we) (?:think|added|would|kept|marked|changed|removed)\b"
    r"|(?:note|nb|comment|reviewer|annotator|editor's note|reworded|not sure|needs discussion)\b"
    r"|(?:ok|n/?a|todo|duplicate|common sense|domain knowledge|see above|good practice)\b.{,25}\Z"
    r"|(?:explicit|implicit|implied|inferred|derived|stated|requested|taken)\b(?:.{,30}\b(?:prompt|"
    r"request|question|context|solution|guidelines|paragraph))?\W*\Z)",
    re.I,
)
ANY_WORD = re.compile(r"\w+")
# Words that say nothing of what is asked: two texts with the same other words ask the same.
FILLER_WORDS = frozenset(
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

    def table(self) -> pd.DataFrame:
        """A DataFrame with one row per rule: how often it applies, an example, and what to do."""
        columns = ["severity", "code", "message", "text", "suggestion"]
        frame = pd.DataFrame(map(asdict, self.findings), columns=columns).fillna("")
        return (
            frame.groupby(["severity", "code"], sort=False)
            .agg(
                findings=("code", "size"),
                message=("message", "first"),
                example=("text", "first"),
                suggestion=("suggestion", "first"),
            )
            .reset_index()
        )

    def plot(self) -> Figure:
        """Bars: findings per rule."""
        return bars(
            Counter(f"{f.code} ({f.severity})" for f in self.findings),
            title="Findings per rule",
        )

    @property
    def sentence(self) -> str:
        """The counts as one sentence."""
        counts = ", ".join(count_of(n, name) for name, n in self.severities.items())
        criteria = count_of(self.criteria, "criterion")
        return f"{counts or 'no finding'}; {self.faulty} of {criteria} faulty"

    def __str__(self) -> str:
        lines = [
            f"{row.severity}: {row.code}, {row.findings}: {row.message}"
            for row in self.table().itertuples()
        ]
        return "\n".join([*lines, self.sentence])

    def _repr_html_(self) -> str:
        return f"<p>{self.sentence}</p>{self.table().to_html(index=False)}"


def lint(
    tasks: TaskSource,
    *,
    judge: JudgeSource | None = None,
    ledger: LedgerLike = None,
    budget: Budget | None = None,
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
    check_names([profile], PROMPT_TOKENS, where="lint(profile=)")
    rows = tasks_of(tasks)
    findings = list(tasks.findings) if isinstance(tasks, TaskSet) else []
    findings += _repeated_prompts(rows)
    for task in rows:
        findings += _task_faults(task, PROMPT_TOKENS[profile])
        findings += _repeated_criteria(task)
        findings += _impossible_gates(task)
    if judge is not None:
        findings += judge_findings(rows, judge=judge, ledger=ledger, budget=budget)
    # The sort is stable: within a severity, the order of the tasks stays.
    findings.sort(key=lambda f: SEVERITY_ORDER.index(f.severity))
    return LintReport(
        findings=tuple(findings),
        criteria=sum(len(t.criteria) for t in rows),
        faulty=len(
            {
                (f.task_id, f.criterion_id)
                for f in findings
                if f.severity != "info" and f.criterion_id
            }
        ),
    )


def _lint_finding(
    code: str, message: str, task: Task, criterion: Criterion | None = None
) -> Finding:
    severity, suggestion = LINT_RULES[code]
    return Finding(
        code=code,
        severity=severity,
        message=message,
        suggestion=suggestion,
        task_id=task.id,
        criterion_id=criterion.id if criterion else None,
        text=criterion.text[:200] if criterion else None,
    )


def _task_faults(task: Task, max_tokens: int) -> Iterator[Finding]:
    """Faults of a task, and of each criterion alone."""
    # A token has about four characters.
    tokens = len(task.conversation) // 4
    if tokens > max_tokens:
        yield _lint_finding(
            "long-prompt",
            f"about {tokens} tokens, the profile reads {max_tokens}",
            task,
        )
    weights = [c.weight for c in task.criteria]
    if not weights and not task.truth:
        yield _lint_finding(
            "no-criteria",
            "no criterion and no truth: its answers get no score",
            task,
        )
    elif weights and not any(weights):
        yield _lint_finding("zero-weights", "every weight is 0", task)
    elif weights and max(weights) <= 0:
        yield _lint_finding(
            "one-signed",
            "no weight is positive: an empty answer is the best one",
            task,
        )
    sizes = list(map(abs, filter(None, weights)))
    middle = median(sizes) if len(sizes) > 2 else None
    for c in task.criteria:
        yield from _criterion_faults(c, task)
        ratio = abs(c.weight) / middle if middle else 0.0
        if ratio and not 1 / EXTREME_WEIGHT_RATIO < ratio < EXTREME_WEIGHT_RATIO:
            yield _lint_finding(
                "extreme-weight",
                f"weight {c.weight:g}, the median of the task is {middle:g}",
                task,
                c,
            )


def _criterion_faults(c: Criterion, task: Task) -> Iterator[Finding]:
    if c.check is not None:
        # Its text is a comment: code decides.
        try:
            validate_check(c, task)
        except DataError as e:
            yield _lint_finding("impossible-check", e.what, task, c)
        return
    if not any(map(str.isalnum, c.text)):
        yield _lint_finding("empty-criterion", "it has no words", task, c)
    note = ANNOTATOR_REMARK.search(c.text) or NOTE_AT_START.match(c.text)
    # the prompt, or a quotation in the criterion, with the first word of the note: no note
    about = " ".join([task.prompt, *QUOTED_TEXT.findall(c.text)]).lower()
    if note and ANY_WORD.findall(note[0].lower())[0] not in ANY_WORD.findall(about):
        yield _lint_finding(
            "annotator-note",
            f"{note[0][:40]!r} looks like a note of an annotator",
            task,
            c,
        )
    # A placeholder that the prompt has too is what the task is about.
    blank = PLACEHOLDER_TEXT.search(c.text)
    if blank and blank[0] not in task.prompt:
        yield _lint_finding(
            "unfinished", f"{blank[0]!r} was left to be filled in", task, c
        )
    elif c.text.endswith((" and", " or", " the")):
        yield _lint_finding(
            "unfinished", "it ends in the middle of a sentence", task, c
        )


def _repeated_criteria(task: Task) -> Iterator[Finding]:
    """A criterion beside an earlier one with the same words."""
    earlier: dict[tuple[str | None, str | frozenset[str]], Criterion] = {}
    for c in task.criteria:
        words = ANY_WORD.findall(c.text.lower())
        # The beginnings of words, without order: "mentions" and "mentioned" count as one.
        stems = frozenset(word[:5] for word in words if word not in FILLER_WORDS)
        # A coded criterion repeats another when the checks are equal, whatever the texts.
        key = canonical(c.check) if c.check else stems
        other = earlier.setdefault((c.parent, key), c)
        # A text of fillers alone has no words by which to compare it.
        if other is c or not (stems or c.check):
            continue
        if c.weight * other.weight < 0:
            yield _lint_finding(
                "contradiction",
                f"{other.id!r} with these words has a weight of the other sign",
                task,
                c,
            )
        elif c.check or text_identity(c.text) == text_identity(other.text):
            yield _lint_finding(
                "duplicate-criterion", f"it repeats {other.id!r}", task, c
            )
        else:
            yield _lint_finding(
                "near-duplicate", f"it has the words of {other.id!r}", task, c
            )


def _impossible_gates(task: Task) -> Iterator[Finding]:
    """Required criteria that no answer can pass together: one demands what the other forbids."""
    gates: dict[str, Criterion] = {}
    limits: dict[str, tuple[float, float]] = {}
    for c in task.criteria:
        if not c.required:
            continue
        key = canonical(c.check) if c.check else text_identity(c.text)
        other = gates.setdefault(key, c)
        if other.weight * c.weight < 0:
            yield _lint_finding(
                "impossible-gate", f"{other.id!r} requires the opposite", task, c
            )
        if c.check and c.weight >= 0:
            # Checks that differ only in their limits measure the same thing.
            measure = canonical({**c.check, "min": None, "max": None})
            low, high = limits.get(measure, (-math.inf, math.inf))
            low = max(low, c.check.get("min", low))
            high = min(high, c.check.get("max", high))
            limits[measure] = low, high
            if low > high:
                yield _lint_finding(
                    "impossible-gate",
                    f"at least {low:g} and at most {high:g} are required",
                    task,
                    c,
                )


def _repeated_prompts(tasks: Iterable[Task]) -> Iterator[Finding]:
    """Tasks that ask the same, within a split or across it."""
    by_prompt = group((text_identity(t.conversation), t) for t in tasks)
    for same in by_prompt.values():
        if len(same) > 1:
            is_leak = len({t.held_out for t in same}) == 2
            ids = ", ".join(t.id for t in same[:5])
            yield _lint_finding(
                "split-leak" if is_leak else "duplicate-prompt",
                f"{len(same)} tasks have this prompt: {ids}",
                same[1],
            )
