"""Summary of a rubric data set: rows, criteria, weights, types, lengths, labels.
One pass, bounded memory."""

from __future__ import annotations

import gc
from collections import Counter
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Any

from ..data.load import Source, iter_tasks
from ..data.rows import Context
from ..data.taskset import Parsed
from ..data.words import tokens_of
from ..system.progress import bar
from ..tables import pairs_html
from .lint import KEEP, Linter, LintReport, Opinion, Stream, prompt_tokens, stream_of

MANY = 500  # kinds, tags, groups kept by name


@dataclass(frozen=True, kw_only=True)
class Spread:
    """min, median, mean, max of a count; exact, from a histogram. n : values; None where there is
    none."""

    n: int
    min: float | None = None
    median: float | None = None
    mean: float | None = None
    max: float | None = None

    @staticmethod
    def of(values: Mapping[float, int]) -> Spread:
        """From a histogram value -> how often; the median of an even number is the mean of the two
        middle ones.

        >>> Spread.of({1: 1, 4: 2, 15: 1}).median
        4.0
        """
        n = sum(values.values())
        if not n:
            return Spread(n=0)
        ordered = sorted(values.items())
        middle: list[float] = []
        seen = 0
        for value, count in ordered:
            middle += [value for k in ((n - 1) // 2, n // 2) if seen <= k < seen + count]
            seen += count
        return Spread(
            n=n,
            min=ordered[0][0],
            median=sum(middle) / 2,
            mean=sum(v * c for v, c in ordered) / n,
            max=ordered[-1][0],
        )

    def __str__(self) -> str:
        if not self.n:
            return "none"
        spread = f"{self.min:g} / {self.median:g} / {self.max:g}"
        return f"{spread} (mean {self.mean:.2f}, n={self.n})"


@dataclass(frozen=True, kw_only=True)
class Summary:
    """What a set contains. Spreads are min / median / max; shares are None where nothing could be
    counted.

    labels : human verdicts by status; recorded : verdicts of judges by status; share_met : met of
        the known ones.
    """

    tasks: int
    criteria: int
    responses: int
    per_task: Spread
    prompt_tokens: Spread
    criterion_tokens: Spread
    response_tokens: Spread
    weights: Mapping[str, int]
    negative: int
    zero: int
    required: int
    by_code: int
    checks: Mapping[str, int]
    scales: Mapping[str, int]
    kinds: Mapping[str, int]
    tags: Mapping[str, int]
    groups: int
    splits: Mapping[str, int]
    with_sources: int
    with_truth: int
    labels: Mapping[str, int]
    labelled: int
    recorded: Mapping[str, int]
    share_met: Mapping[str, float | None]
    histograms: Mapping[str, Mapping[float, int]] = field(default_factory=dict)

    @property
    def checkable(self) -> float | None:
        """Share of criteria that code decides."""
        return self.by_code / self.criteria if self.criteria else None

    @property
    def coverage(self) -> float | None:
        """Share of (answer, criterion) cells that have a known human label; None without answers or
        criteria."""
        return (
            self.labelled / self.histograms["cells"][0]
            if self.histograms.get("cells", {}).get(0)
            else None
        )

    def rows(self) -> list[tuple[str, str]]:
        """The summary as (what, value) rows."""

        def top(counts: Mapping[Any, int], n: int = 6) -> str:
            best = sorted(counts.items(), key=lambda x: -x[1])
            return (
                ", ".join(f"{k} {v}" for k, v in best[:n])
                + (f", and {len(best) - n} more" if len(best) > n else "")
                if best
                else "none"
            )

        def share(x: float | None) -> str:
            return "unknown" if x is None else f"{x:.1%}"

        return [
            ("tasks", str(self.tasks)),
            ("criteria", str(self.criteria)),
            ("criteria per task (min / median / max)", str(self.per_task)),
            ("answers", str(self.responses)),
            ("decided by code", f"{share(self.checkable)} ({self.by_code} of {self.criteria})"),
            (
                "negative / zero weight / required",
                f"{self.negative} / {self.zero} / {self.required}",
            ),
            ("weights", top(self.weights)),
            ("scales", top(self.scales)),
            ("checks", top(self.checks)),
            ("kinds", top(self.kinds)),
            ("tags", top(self.tags)),
            ("groups", str(self.groups)),
            ("splits", top(self.splits)),
            ("tokens per prompt, about", str(self.prompt_tokens)),
            ("tokens per criterion, about", str(self.criterion_tokens)),
            ("tokens per answer, about", str(self.response_tokens)),
            ("tasks with snippets / ground truth", f"{self.with_sources} / {self.with_truth}"),
            ("human labels", top(self.labels)),
            ("human label coverage", share(self.coverage)),
            ("recorded verdicts", top(self.recorded)),
            *(
                (f"share met, {who}", "unknown" if x is None else f"{x:.3f}")
                for who, x in self.share_met.items()
            ),
        ]

    def __str__(self) -> str:
        return "\n".join(f"{k:<42}{v}" for k, v in self.rows())

    def _repr_html_(self) -> str:
        return pairs_html(self.rows())


class Counting:
    """Takes rows in one by one; `summary()` at the end."""

    def __init__(self) -> None:
        self.n: Counter[str] = Counter()
        self.hist: dict[str, Counter[float]] = {
            k: Counter() for k in ("per_task", "prompt", "criterion", "response", "weight")
        }
        self.named: dict[str, Counter[str]] = {
            k: Counter()
            for k in (
                "weights",
                "checks",
                "scales",
                "kinds",
                "tags",
                "splits",
                "labels",
                "recorded",
            )
        }
        self.groups: set[str] = set()
        self.met: dict[str, list[int]] = {}

    def _name(self, what: str, *keys: Any) -> None:
        names = self.named[what]
        for key in (str(k)[:80] for k in keys if k is not None):
            names[key if key in names or len(names) < MANY else "(other)"] += 1

    def add(self, p: Parsed) -> None:
        """Count one row."""
        for r in p.responses:
            self.n["responses"] += 1
            self.hist["response"][tokens_of(r.text)] += 1
        self._verdicts(p)
        t = p.task
        self.n["cells"] += len(p.responses) * (len(t.criteria) if t else p.judged)
        if t is None:
            return
        self.n.update(
            tasks=1,
            criteria=len(t.criteria),
            sources=bool(t.sources),
            truth=bool(t.truth),
        )
        self.hist["per_task"][len(t.criteria)] += 1
        self.hist["prompt"][tokens_of(t.asked)] += 1
        self._name("kinds", t.kind)
        self._name("splits", t.split)
        if t.group is not None and len(self.groups) < 200_000:
            self.groups.add(t.group)
        self._name("tags", *t.tags)
        for c in t.criteria:
            self._criterion(c)

    def _criterion(self, c: Any) -> None:
        weights = self.hist["weight"]
        self.hist["criterion"][tokens_of(c.text)] += 1
        weights[c.weight] += 1
        if len(weights) > 10_000:
            self.hist["weight"] = Counter()
            for weight, seen in weights.items():
                self.hist["weight"][round(weight, 2)] += seen
        self._name("weights", "1" if c.weight == 1 else f"{c.weight:g}")
        self._name("scales", c.scale)
        self._name("tags", *c.tags)
        self.n.update(
            negative=c.weight < 0,
            zero=c.weight == 0,
            required=c.required,
            by_code=c.check is not None,
        )
        if c.check is not None:
            self._name("checks", c.check.get("name", "?"))

    def _verdicts(self, p: Parsed) -> None:
        cells: set[tuple[str, str]] = set()
        for v in p.verdicts:
            human = v.judge.startswith("human")
            self._name("labels" if human else "recorded", v.status)
            if v.value is None:
                continue
            who = "human" if human else v.judge or "recorded"
            if len(self.met) < MANY or who in self.met:
                met = self.met.setdefault(who, [0, 0])
                met[0] += v.value > 0.5
                met[1] += 1
            if human:
                cells.add((v.response_id, v.criterion_id))
        self.n["labelled"] += len(cells)

    def summary(self) -> Summary:
        """The summary of everything taken in."""
        n, h, named = self.n, self.hist, {k: dict(v.most_common()) for k, v in self.named.items()}
        return Summary(
            tasks=n["tasks"],
            criteria=n["criteria"],
            responses=n["responses"],
            per_task=Spread.of(h["per_task"]),
            prompt_tokens=Spread.of(h["prompt"]),
            criterion_tokens=Spread.of(h["criterion"]),
            response_tokens=Spread.of(h["response"]),
            weights=named["weights"],
            negative=n["negative"],
            zero=n["zero"],
            required=n["required"],
            by_code=n["by_code"],
            checks=named["checks"],
            scales=named["scales"],
            kinds=named["kinds"],
            tags=named["tags"],
            groups=len(self.groups),
            splits=named["splits"],
            with_sources=n["sources"],
            with_truth=n["truth"],
            labels=named["labels"],
            labelled=n["labelled"],
            recorded=named["recorded"],
            share_met={k: a / b if b else None for k, (a, b) in sorted(self.met.items())},
            histograms={**{k: dict(v) for k, v in h.items()}, "cells": {0: n["cells"]}},
        )


def summarize(source: Stream) -> Summary:
    """Summarize a task set, a list of tasks, or a stream of parsed rows."""
    counting = Counting()
    for p in stream_of(source):
        counting.add(p)
    return counting.summary()


@dataclass(frozen=True, kw_only=True)
class Scan:
    """Summary and lint of one file. rows : rows of the file; skipped : rows of which nothing could
    be read."""

    name: str
    format: str
    rows: int
    skipped: int
    summary: Summary
    lint: LintReport


def scan(
    source: Source,
    *,
    format: str = "auto",
    profile: str = "t4",
    rules: str | Collection[str] = "default",
    keep: int = KEEP,
    opinion: Opinion | None = None,
    progress: bool = True,
) -> Scan:
    """Read a file once: its summary and its lint; memory does not grow with the file but for ids
    and hashes of prompts. opinion : a judge's, see `lint.opinion_of`; with it all rows are held."""
    context = Context()
    linter = Linter(
        prompt_tokens=prompt_tokens(profile),
        keep=keep,
        rules=rules,
        opinion=opinion,
    )
    counting = Counting()
    before = gc.get_threshold()
    gc.set_threshold(
        100_000, 20, 100
    )  # millions of small records and no cycles: fewer searches for garbage
    try:
        for p in bar(
            iter_tasks(source, format, context=context),
            desc="inspect",
            unit="row",
            disable=not progress,
            delay=2,
        ):
            linter.add(p)
            counting.add(p)
    finally:
        gc.set_threshold(*before)
    return Scan(
        name=context.name,
        format=context.format,
        rows=context.rows,
        skipped=context.skipped,
        summary=counting.summary(),
        lint=linter.report(),
    )
