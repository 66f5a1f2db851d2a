"""Summary and lint of a file in one pass, for files of any size."""

from __future__ import annotations

import gc
from collections.abc import Collection
from dataclasses import dataclass

from ..data.load import Source, iter_tasks
from ..data.rows import Context
from ..system.progress import bar
from .lint import KEEP, Linter, LintReport, Opinion, prompt_tokens
from .summary import Counting, Summary


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
