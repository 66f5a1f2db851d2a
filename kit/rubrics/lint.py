"""Lint: what is wrong with a rubric data set, rule by rule, each finding with row, criterion,
reason, severity, suggestion.

Rules are code and read words alone, so that the findings are the same everywhere. Each rule carries
how often it was right on sets it was not written on (`precision`); one that was wrong too often is
off unless asked for. A stream of any length is read once, in bounded memory.
"""

from __future__ import annotations

import html
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

from ..data.findings import SEVERITIES, Finding
from ..data.taskset import Parsed, TaskSet
from ..errors import DataError
from ..records import Task, grouped
from ..settings.read import nearest
from ..tables import rows_html
from . import precision
from .corpus import Corpus
from .opinion import opinions
from .rules import check_row

KEEP = 500  # findings kept per rule; all are counted
PROMPT_TOKENS = {"test": 512, "cpu": 1024, "t4": 2048, "gpu": 6144, "cluster": 6144}
Stream = TaskSet | Iterable[Parsed] | Iterable[Task]
Opinion = Callable[[Sequence[Parsed]], Iterable[Finding]]


def prompt_tokens(profile: str) -> int:
    """The longest prompt that a profile takes, in tokens; DataError for a profile that does not
    exist.

    >>> prompt_tokens("t4")
    2048
    """
    if profile not in PROMPT_TOKENS:
        raise DataError(
            f"there is no profile {profile!r}",
            where="profile",
            fix=f"use one of {', '.join(PROMPT_TOKENS)}",
        )
    return PROMPT_TOKENS[profile]


def named(rules: str | Collection[str]) -> str | Collection[str]:
    """The choice of rules; DataError for a name that no rule has: it would find nothing.

    >>> named("default"), named("subjective")
    ('default', ('subjective',))
    """
    if rules in ("default", "all"):
        return rules
    rules = (rules,) if isinstance(rules, str) else tuple(rules)
    known = precision.FACTS | precision.READ.keys()
    if lost := next((r for r in rules if r not in known), None):
        raise DataError(
            f"there is no lint rule {lost!r}", where="rules", fix=nearest(str(lost), known)
        )
    return rules


@dataclass(frozen=True, kw_only=True)
class LintReport:
    """What the lint found. counts : findings per rule, all of them; findings : at most KEEP per
    rule, worst first.

    flawed : criteria with an error or a warning, or in a task that has one.
    """

    findings: tuple[Finding, ...]
    counts: dict[str, int]
    severities: dict[str, int]
    tasks: int
    criteria: int
    flawed: int = 0
    by_severity: dict[str, dict[str, int]] = field(default_factory=dict)

    def of(self, code: str) -> list[Finding]:
        """The kept findings of one rule."""
        return [f for f in self.findings if f.code == code]

    @property
    def note_share(self) -> float | None:
        """Share of criteria that look like annotator notes; None without criteria."""
        return self.counts.get("annotator-note", 0) / self.criteria if self.criteria else None

    @property
    def usable(self) -> float | None:
        """Share of the set's criteria that can be used as they are: no error, no warning. None
        without criteria."""
        return 1 - self.flawed / self.criteria if self.criteria else None

    def groups(self, most: int = 20) -> Iterator[tuple[Finding, list[int], int]]:
        """(first finding, rows, how often) per rule and text, at most `most` groups a rule; the
        rest is counted in `counts`."""
        held = grouped(((f.severity, f.code, f.text or f.message), f) for f in self.findings)
        shown: Counter[tuple[str, str]] = Counter()
        for (severity, code, _), found in held.items():
            shown[severity, code] += 1
            if shown[severity, code] <= most:
                yield found[0], [f.row for f in found if f.row], len(found)

    def table(self) -> list[dict[str, Any]]:
        """One row per rule: code, severity, how many, how often such findings are right, the first
        rows, an example, what to do."""
        out = []
        for severity in SEVERITIES:
            for code, n in sorted(
                self.by_severity.get(severity, {}).items(), key=lambda x: (-x[1], x[0])
            ):
                hits = [f for f in self.findings if f.code == code and f.severity == severity]
                first = hits[0] if hits else None
                out.append(
                    {
                        "severity": severity,
                        "rule": code,
                        "findings": n,
                        "precision": precision.precision(code),
                        "rows": [f.row for f in hits[:8] if f.row],
                        "example": (first.text or first.message) if first else "",
                        "message": first.message if first else "",
                        "suggestion": first.suggestion if first else "",
                    }
                )
        return out

    def __str__(self) -> str:
        head = ", ".join(
            f"{self.severities.get(s, 0)} {s}{'s' if s != 'info' else ''}" for s in SEVERITIES
        )
        lines = [f"lint: {head} in {self.tasks} tasks, {self.criteria} criteria"]
        if self.usable is not None:
            lines.append(
                f"  usable as they are: {self.criteria - self.flawed} of {self.criteria} criteria "
                f"({self.usable:.1%}), by the rules that were on"
            )
        for row in self.table():
            rows = ", ".join(map(str, row["rows"]))
            sure = precision.told(row["rule"])
            more = ", ..." if row["findings"] > len(row["rows"]) else ""
            place = f"rows {rows}{more}" if rows else "the file as a whole"
            example = f" | {row['example'][:80]!r}" if row["example"] != row["message"] else ""
            lines += [
                f"  {row['severity']:<8}{row['rule']:<22}{row['findings']:>7}  {place}",
                f"          {row['message'][:110]}{example}",
            ]
            if row["suggestion"]:
                lines.append(
                    f"          -> {row['suggestion'][:110]}" + (f" ({sure})" if sure else "")
                )
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        head = (
            "severity", "rule", "findings", "first rows",
            "message", "example", "what to do", "right elsewhere",
        )  # fmt: skip
        rows = [
            (
                r["severity"],
                r["rule"],
                r["findings"],
                r["rows"],
                r["message"],
                r["example"][:160],
                r["suggestion"],
                precision.told(r["rule"]),
            )
            for r in self.table()
        ]
        lines = str(self).split("\n")[: 2 if self.criteria else 1]
        return f"<p>{'<br>'.join(map(html.escape, lines))}</p>{rows_html(head, rows)}"


def _what(f: Finding) -> tuple[str | int | None, ...]:
    return f.code, f.row, f.criterion_id, f.message


class Linter:
    """Takes rows in one by one; `report()` at the end. For streams; `lint` is the short way.

    rules : "default" (those that are right often enough), "all", or the rules' names. opinion :
    rows -> findings of a judge (`opinion.opinions`), or None; with it all rows are held. told :
    what the reader found, where the rows do not have it with them: it counts once.
    """

    def __init__(
        self,
        *,
        prompt_tokens: int = 2048,
        keep: int = KEEP,
        rules: str | Collection[str] = "default",
        opinion: Opinion | None = None,
        told: Iterable[Finding] = (),
    ):
        self.told = set(map(_what, told))
        self.opinion, self.rows = opinion, []
        self.prompt_tokens, self.keep, self.rules = prompt_tokens, keep, named(rules)
        self.corpus, self.kept = Corpus(), []
        self.counts: Counter[str] = Counter()
        self.by_severity: dict[str, Counter[str]] = {}
        self.criteria = self.flawed = 0

    def _on(self, code: str) -> bool:
        usual = self.rules == "default" and precision.default(code)
        return usual or self.rules == "all" or (self.rules != "default" and code in self.rules)

    def _take(self, findings: Iterable[Finding], own: Collection[str] = ()) -> set[str | None]:
        """Count findings and keep the first; the criteria (None: the task) that have an error or a
        warning.

        own : rules whose findings came with the row; those are the reader's, and never off.
        """
        flawed = set()
        for f in findings:
            if f.code not in own and not self._on(f.code):
                continue
            if f.severity == "error" and precision.severity(f.code, "error") != "error":
                f = replace(f, severity="warning")
            if f.severity != "info":
                flawed.add(f.criterion_id)
            counter = self.by_severity.setdefault(f.severity, Counter())
            counter[f.code] += 1
            self.counts[f.code] += 1
            if counter[f.code] <= self.keep:
                self.kept.append(f)
        return flawed

    def add(self, p: Parsed) -> None:
        """Lint one row."""
        if self.opinion:
            self.rows.append(p)
        flawed = self._take(p.findings, {f.code for f in p.findings})
        n = len(p.task.criteria) if p.task else 0
        self.criteria += n
        said = self.told.union(map(_what, p.findings))
        made = [*check_row(p, prompt_tokens=self.prompt_tokens), *self.corpus.add(p)]
        flawed |= self._take(f for f in made if _what(f) not in said)
        known = {c.id for c in p.task.criteria} if p.task else set()
        self.flawed += n if None in flawed else len(known & flawed)

    def report(self) -> LintReport:
        """The report on everything taken in."""
        self._take(self.corpus.findings())
        if self.opinion:
            told = list(self.opinion(self.rows))
            self._take(told, {f.code for f in told})
        kept = sorted(
            self.kept,
            key=lambda f: (SEVERITIES.index(f.severity), -self.counts[f.code], f.code, f.row or 0),
        )
        return LintReport(
            findings=tuple(kept),
            counts=dict(self.counts),
            tasks=self.corpus.n["tasks"],
            criteria=self.criteria,
            flawed=self.flawed,
            severities={s: sum(c.values()) for s, c in self.by_severity.items()},
            by_severity={s: dict(c) for s, c in self.by_severity.items()},
        )


def stream_of(source: Stream) -> Iterator[Parsed]:
    """A task set, parsed rows or tasks, as parsed rows."""
    rows = source.parsed() if isinstance(source, TaskSet) else source
    for i, item in enumerate(rows, 1):
        yield item if isinstance(item, Parsed) else Parsed(row=i, where=f"task {i}", task=item)


def opinion_of(
    judge: Any, ledger: Any = None, budget: Any = None, progress: bool = False
) -> Opinion | None:
    """What asks this judge; None without one."""
    return (
        None
        if judge is None
        else partial(opinions, judge=judge, ledger=ledger, budget=budget, progress=progress)
    )


def lint(
    source: Stream,
    *,
    profile: str = "t4",
    rules: str | Collection[str] = "default",
    keep: int = KEEP,
    judge: Any = None,
    ledger: Any = None,
    budget: Any = None,
    progress: bool = False,
) -> LintReport:
    """Lint a task set, a list of tasks, or a stream of parsed rows (`data.iter_tasks`).

    profile : its prompt length decides what is too long. rules : "default", "all" or names. keep :
    findings kept per rule; all are counted.
    judge : a judge or its name, as in `kit.judge`: it is asked what words cannot decide, once per
    criterion; its opinions are findings "judge-..." of severity "info". ledger, budget : for it.
    """
    from ..system.progress import bar

    linter = Linter(
        prompt_tokens=prompt_tokens(profile),
        keep=keep,
        rules=rules,
        opinion=opinion_of(judge, ledger, budget, progress),
        told=getattr(source, "findings", ()),
    )
    for p in bar(
        stream_of(source),
        desc="lint",
        unit="row",
        disable=not progress,
    ):
        linter.add(p)
    return linter.report()
