"""Lint: what is wrong with a rubric data set, rule by rule, each finding with row, criterion,
reason, severity, suggestion.

Rules are code and read words alone, so that the findings are the same everywhere; sentence vectors
are used only when they
are asked for (similarity "minilm"), and the report says so. Each rule carries how often it was
right on sets it was not
written on (`precision`); one that was wrong too often is off unless asked for. A stream of any
length is read once, in
bounded memory.
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
from ..records import Task
from ..tables import rows_html
from . import precision
from .corpus import Corpus
from .opinion import opinions
from .rules import check_row, specific
from .similar import Embed, embedder
from .words import words

KEEP = 500  # findings kept per rule; all are counted
EMBED_LIMIT = 3_000  # criteria up to which vectors are made
SETTLED = (
    "near-duplicate",
    "duplicate-criterion",
    "contradiction",
    "annotator-note",
)  # words decided
COSINE = 0.93  # near-duplicates within a row
FAR = 0.05  # a criterion below this cosine to its prompt, and nearer to others, is unrelated
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


@dataclass(frozen=True, kw_only=True)
class LintReport:
    """What the lint found. counts : findings per rule, all of them; findings : at most KEEP per
    rule, worst first.

    similarity : "words", or "minilm" where sentence vectors were asked for.
    flawed : criteria with an error or a warning, or in a task that has one.
    """

    findings: tuple[Finding, ...]
    counts: dict[str, int]
    severities: dict[str, int]
    tasks: int
    criteria: int
    similarity: str
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
        held: dict[tuple[str, str, str], list[Finding]] = {}
        for f in self.findings:
            held.setdefault((f.severity, f.code, f.text or f.message), []).append(f)
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
        lines = [
            f"lint: {head} in {self.tasks} tasks, {self.criteria} criteria (compared by "
            f"{self.similarity})"
        ]
        if self.usable is not None:
            lines.append(
                f"  usable as they are: {self.criteria - self.flawed} of {self.criteria} criteria "
                f"({self.usable:.1%}), by the rules that were on"
            )
        for row in self.table():
            rows = (
                ", ".join(map(str, row["rows"]))
                + (", ..." if row["findings"] > len(row["rows"]) else "")
                if row["rows"]
                else "the file"
            )
            lines.append(
                f"  {row['severity']:<8}{row['rule']:<22}{row['findings']:>7}  rows {rows}"
                if row["rows"]
                else f"  {row['severity']:<8}{row['rule']:<22}{row['findings']:>7}  the file "
                f"as a whole"
            )
            lines.append(
                f"          {row['message'][:110]}"
                + (f" | {row['example'][:80]!r}" if row["example"] != row["message"] else "")
            )
            sure = precision.told(row["rule"])
            if row["suggestion"]:
                sure = f" ({sure})" if sure else ""
                lines.append(f"          -> {row['suggestion'][:110]}{sure}")
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


class Linter:
    """Takes rows in one by one; `report()` at the end. For streams; `lint` is the short way.

    rules : "default" (those that are right often enough), "all", or the rules' names. embed : texts
    -> unit vectors, or None. opinion : rows -> findings of a judge (`opinion.opinions`), or None;
    with it all rows are held.
    """

    def __init__(
        self,
        *,
        prompt_tokens: int = 2048,
        embed: Embed | None = None,
        keep: int = KEEP,
        rules: str | Collection[str] = "default",
        opinion: Opinion | None = None,
    ):
        self.opinion, self.rows = opinion, []
        self.prompt_tokens, self.embed, self.keep, self.rules = prompt_tokens, embed, keep, rules
        self.corpus, self.kept = Corpus(), []
        self.counts: Counter[str] = Counter()
        self.by_severity: dict[str, Counter[str]] = {}
        self.criteria = self.flawed = 0
        self.held: list[tuple[int, str, Task]] = []  # for the embedding, while the set is small
        self.over = False

    def _on(self, code: str) -> bool:
        if isinstance(self.rules, str):
            return self.rules == "all" or precision.default(code)
        return code in self.rules

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
        if self.embed and p.task and not self.over:
            self.held.append((p.row, p.where, p.task))
            if self.criteria > EMBED_LIMIT:
                self.over, self.held = True, []
        flawed |= self._take(check_row(p, prompt_tokens=self.prompt_tokens))
        flawed |= self._take(self.corpus.add(p))
        known = {c.id for c in p.task.criteria} if p.task else set()
        self.flawed += n if None in flawed else len(known & flawed)

    def report(self) -> LintReport:
        """The report on everything taken in."""
        self._take(self.corpus.findings())
        if self.opinion:
            told = list(self.opinion(self.rows))
            self._take(told, {f.code for f in told})
        by_vector = bool(self.embed and not self.over and self.criteria)
        if self.embed and self.over:
            message = (
                f"the set has more than {EMBED_LIMIT} criteria: sentence vectors were not made"
            )
            self._take([Finding(code="rule-limited", severity="info", message=message)])
        if by_vector:
            known = {(f.task_id, f.criterion_id) for f in self.kept if f.code in SETTLED}
            fresh = by_embedding(self.held, self.embed)  # type: ignore[arg-type]
            self._take(f for f in fresh if (f.task_id, f.criterion_id) not in known)
        order = {s: i for i, s in enumerate(SEVERITIES)}
        kept = sorted(
            self.kept, key=lambda f: (order[f.severity], -self.counts[f.code], f.code, f.row or 0)
        )
        return LintReport(
            findings=tuple(kept),
            counts=dict(self.counts),
            tasks=self.corpus.tasks,
            criteria=self.criteria,
            flawed=self.flawed,
            severities={s: sum(c.values()) for s, c in self.by_severity.items()},
            similarity="minilm" if by_vector else "words",
            by_severity={s: dict(c) for s, c in self.by_severity.items()},
        )


def by_embedding(held: list[tuple[int, str, Task]], embed: Embed) -> Iterator[Finding]:
    """Near-duplicates within rows, and criteria far from their prompt, by sentence vectors."""
    import numpy as np

    pairs = [(row, where, t, c) for row, where, t in held for c in t.criteria if c.text.strip()]
    if not pairs:
        return
    vectors = embed([c.text for *_, c in pairs])
    prompts = embed([t.prompt[:1000] for _, _, t in held])
    index = {t.id: i for i, (_, _, t) in enumerate(held)}
    of: dict[str, list[int]] = {}
    for i, (row, where, t, c) in enumerate(pairs):
        where_at: dict[str, Any] = {
            "row": row,
            "where": where,
            "task_id": t.id,
            "criterion_id": c.id,
            "text": c.text[:200],
        }
        for j in of.get(t.id, ()):
            s = float(vectors[i] @ vectors[j])
            other = pairs[j][3]
            digits = [
                [w for w in x.text.split() if any(ch.isdigit() for ch in w)] for x in (c, other)
            ]
            if s >= COSINE and digits[0] == digits[1] and (c.weight < 0) == (other.weight < 0):
                yield Finding(
                    code="near-duplicate",
                    severity="warning",
                    message=f"means nearly the same as {other.id!r} (cosine {s:.2f})",
                    confidence=round(s, 2),
                    suggestion="merge them: they count twice",
                    **where_at,
                )
        of.setdefault(t.id, []).append(i)
        near = float(vectors[i] @ prompts[index[t.id]])
        tokens = words(c.text)
        if (
            near < FAR
            and c.check is None
            and len(held) > 3
            and not t.sources
            and specific(tokens, frozenset(tokens))
            and float(np.max(prompts @ vectors[i])) > near + 0.35
        ):
            best = int(np.argmax(prompts @ vectors[i]))
            yield Finding(
                code="far-from-prompt",
                severity="warning",
                message=f"far from its prompt (cosine {near:.2f}), near that of row "
                f"{held[best][0]}",
                confidence=0.7,
                suggestion="check that it belongs to this prompt",
                **where_at,
            )


def stream_of(source: Stream) -> Iterator[Parsed]:
    """A task set, parsed rows or tasks, as parsed rows."""
    if isinstance(source, TaskSet):
        yield from source.parsed()
        return
    for i, item in enumerate(source, 1):
        yield item if isinstance(item, Parsed) else Parsed(row=i, where=f"task {i}", task=item)


def opinion_of(
    judge: Any, ledger: Any = None, budget: Any = None, progress: bool = False
) -> Opinion | None:
    """What asks this judge; None without one."""
    if judge is None:
        return None
    return partial(opinions, judge=judge, ledger=ledger, budget=budget, progress=progress)


def lint(
    source: Stream,
    *,
    profile: str = "t4",
    similarity: str = "words",
    embed: Embed | None = None,
    rules: str | Collection[str] = "default",
    keep: int = KEEP,
    judge: Any = None,
    ledger: Any = None,
    budget: Any = None,
    progress: bool = False,
) -> LintReport:
    """Lint a task set, a list of tasks, or a stream of parsed rows (`data.iter_tasks`).

    profile : its prompt length decides what is too long. similarity : "words", or "minilm" for
    sentence vectors beside them
    (sets of at most EMBED_LIMIT criteria; MissingError where the model is not in the cache). embed
    : a function texts ->
    unit vectors in its place. rules : "default", "all" or names. keep : findings kept per rule; all
    are counted.
    judge : a judge or its name, as in `kit.judge`: it is asked what words cannot decide, once per
    criterion; its opinions are findings "judge-..." of severity "info". ledger, budget : for it.
    """
    from ..system.progress import bar

    linter = Linter(
        prompt_tokens=prompt_tokens(profile),
        embed=embed or embedder(similarity),
        keep=keep,
        rules=rules,
        opinion=opinion_of(judge, ledger, budget, progress),
    )
    for p in bar(stream_of(source), desc="lint", unit="row", disable=not progress):
        linter.add(p)
    return linter.report()
