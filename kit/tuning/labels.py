"""Labelled answers as rows, their three parts, and the readings of sealed tests."""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import reduce
from pathlib import Path
from typing import Any

import numpy as np
from msgspec.structs import replace

from ..errors import DataError
from ..records import Criterion, Response, Task, fingerprint, leaves
from ..records.tables import labels_of
from ..system import paths

PARTS, SHARES = ("train", "dev", "test"), (0.4, 0.3, 0.3)
LEAST = 3  # prompts that each part needs


@dataclass(frozen=True)
class Row:
    """One label: does this answer meet this criterion? human is 1.0 (met) or 0.0.

    task : with the criteria that people labelled on this answer. cluster : the prompt, or the
    task's group; all rows of a cluster are in one part.
    """

    task: Task
    response: Response
    criterion: Criterion
    human: float
    cluster: str

    @property
    def id(self) -> str:
        """A fingerprint of the texts, whatever their ids are; case and blanks do not count."""
        texts = (self.task.conversation, self.response.text, self.criterion.text)
        return fingerprint([" ".join(t.casefold().split()) for t in texts])[:16]


def load_labels(source: Any) -> Any:
    """The TaskSet of a file, or of several that are joined by their ids: tasks, answers, labels."""
    from ..data import load

    # A TaskSet is iterable, too: without this it would be taken for a list of sources.
    single = hasattr(source, "verdicts") or isinstance(source, str | Path)
    sources = [source] if single else source
    sets = [s if hasattr(s, "verdicts") else load(s) for s in sources]
    return reduce(lambda first, other: first.joined(other), sets)


def rows_of(labels: Any) -> tuple[list[Row], list[str]]:
    """The rows, in the order answers x criteria, and notes on labels that could not be used.

    Raters are averaged; .5 and more is met, an even split between met and unmet is no label.
    """
    frame = labels_of(labels)
    ties = int(frame["human"].isna().sum())
    ids = frame[["task", "response", "criterion"]].itertuples(
        index=False, name=None
    )
    pairs = zip(ids, frame["human"], strict=True)
    human = {k: float(v >= 0.5) for k, v in pairs if v == v}
    out, first = [], {}
    for r in labels.responses:
        task = labels.by_id[r.task_id]
        criteria = leaves(task.criteria)
        mine = tuple(
            c for c in criteria if (*r.ids, c.id) in human and not c.by_code
        )
        name = task.group or " ".join(task.conversation.casefold().split())
        # Answers with labels on other criteria become answers to a task of its own: a judge must not
        # be asked what nobody labelled.
        alike = first.setdefault(task.id, mine) == mine
        task = replace(
            task, id=task.id if alike else f"{task.id} / {r.id}", criteria=mine
        )
        answer = replace(r, task_id=task.id)
        out += [Row(task, answer, c, human[(*r.ids, c.id)], name) for c in mine]
    if len({row.human for row in out}) < 2:
        raise DataError(
            f"{len(out)} labels, all alike or none",
            where="labels",
            fix="give answers with labels of people, some met and some unmet",
        )
    return out, [
        f"{ties} labels are unknown, or raters split evenly"
    ] if ties else []


def split(clusters: Iterable[str]) -> np.ndarray:
    """The part (n,) of each row, by a hash of its cluster: it stays when rows are added.

    >>> split(["a", "b", "a"])[0] == split(["b", "a"])[1]
    True
    """
    names, edges = list(clusters), np.cumsum(SHARES)[:2]
    # A hash, not a draw: a prompt keeps its part when others are added, so a sealed test stays sealed.
    digests = [
        hashlib.sha256(f"0|{c}".encode("utf-8", "replace")).digest() for c in names
    ]
    places = [int.from_bytes(d[:8], "big") / 2**64 for d in digests]
    return np.array(PARTS)[np.searchsorted(edges, places, "right")]


def readings(folder: Path, rows: Sequence[str]) -> list[dict[str, Any]]:
    """Earlier readings of a test that share a row with these, oldest first."""
    every = [json.loads(path.read_text("utf-8")) for path in folder.glob("*.json")]
    # One row in common is enough: whoever saw a part of the test has seen it.
    matches = [reading for reading in every if set(rows) & set(reading["rows"])]
    return sorted(matches, key=lambda reading: reading["at"])


def keep_reading(
    folder: Path, request: str, rows: Sequence[str], result: Any
) -> None:
    """Write a reading down; a file of its own, so that processes do not disturb each other."""
    row = {"at": time.strftime("%FT%TZ", time.gmtime()), "request": request}
    text = json.dumps({**row, "rows": list(rows), "result": result})
    paths.write(folder / f"{request}.json", text)
