"""The lint's rules across rows: repeated prompts, leaks between splits, boilerplate criteria.
Memory: about 100 bytes a row."""

from __future__ import annotations

from array import array
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from hashlib import blake2b
from heapq import nlargest

from ..data.findings import Finding
from ..data.seen import Seen
from ..data.taskset import Parsed
from ..data.words import asked_key

BOILERPLATE = 0.05  # share of tasks from which a repeated criterion is reported
KEEP = 200_000  # criterion texts, and groups, that are counted


@dataclass
class Corpus:
    """Gathers, row by row, what rules across rows need; `findings()` at the end."""

    prompts: Seen = field(default_factory=Seen)  # numbers the distinct prompts
    rows: array[int] = field(
        default_factory=lambda: array("Q")
    )  # of each distinct prompt its row, and the number of its split
    sides: array[int] = field(default_factory=lambda: array("I"))
    splits: dict[str | None, int] = field(default_factory=dict)  # split -> its number, in order
    criteria: dict[bytes, int] = field(default_factory=dict)
    texts: dict[bytes, str] = field(default_factory=dict)
    groups: dict[str, int] = field(
        default_factory=dict
    )  # group -> the number of its split, -1 for several
    n: Counter[str] = field(default_factory=Counter)  # tasks, criteria scored ... by name
    bare: array[int] = field(
        default_factory=lambda: array("Q")
    )  # rows of tasks that nothing scores

    def add(self, p: Parsed) -> Iterator[Finding]:
        """Take in one row; yields findings on repeated prompts."""
        task = p.task
        if task is None:
            return
        self.n["tasks"] += 1
        if not task.criteria and not task.truth:
            self.bare.append(p.row)
        side = self.splits.setdefault(task.split, len(self.splits))
        key = asked_key(task)
        if key:
            known, new = self.prompts.add(key)
            if not new:
                row = self.rows[known]
                split = list(self.splits)[self.sides[known]]
                across = split != task.split and None not in (split, task.split)
                yield Finding(
                    code="split-leak" if across else "duplicate-prompt",
                    severity="error" if across else "warning",
                    row=p.row,
                    where=p.where,
                    task_id=task.id,
                    message=f"the same prompt as in row {row}"
                    + (f", of split {split!r}; this is {task.split!r}" if across else ""),
                    suggestion="keep it in one split only"
                    if across
                    else "merge the rows or remove one",
                )
            else:
                self.rows.append(p.row)
                self.sides.append(side)
        if task.group is not None and task.split is not None:
            if task.group in self.groups or len(self.groups) < KEEP:
                if self.groups.setdefault(task.group, side) != side:
                    self.groups[task.group] = -1
            else:
                self.n["lost"] += 1
        for c in task.criteria:
            self.n["scored"] += c.weight != 0
            self.n["negative"] += c.weight < 0
            digest = blake2b(
                c.text.strip().lower().encode("utf-8", "surrogatepass"), digest_size=8
            ).digest()
            seen = self.criteria.get(digest, 0)
            if not seen and len(self.criteria) >= KEEP:
                self.n["dropped"] += 1
                continue
            self.criteria[digest] = seen + 1
            if seen == 1:
                self.texts[digest] = c.text[:200]

    def findings(self) -> Iterator[Finding]:
        """Findings on the whole set."""
        tasks = self.n["tasks"]
        if 0 < len(self.bare) < tasks:
            yield Finding(
                code="no-criteria",
                severity="warning",
                row=self.bare[0],
                message=f"{len(self.bare)} of {tasks} tasks have no criterion and no truth "
                f"(rows {', '.join(map(str, self.bare[:5]))}): their answers are not scored",
                suggestion="write criteria for them, or keep them in a file of prompts",
            )
        shared = sorted(g for g, s in self.groups.items() if s < 0)
        if shared:
            yield Finding(
                code="group-in-splits",
                severity="info",
                message=f"{len(shared)} of {len(self.groups)} groups occur in several splits "
                f"({', '.join(shared[:5])})",
                suggestion="for a hold-out by group, split with splits.by_group",
            )
        for digest, n in nlargest(20, self.criteria.items(), key=lambda x: x[1]):
            if n >= 5 and n > BOILERPLATE * tasks and digest in self.texts:
                yield Finding(
                    code="boilerplate",
                    severity="info",
                    message=f"this criterion occurs {n} times in {tasks} tasks",
                    text=self.texts[digest],
                    suggestion="fine for a house rule; otherwise make it specific",
                )
        if self.n["scored"] and not self.n["negative"]:
            yield Finding(
                code="one-signed-set",
                severity="info",
                message="no criterion of the set has a negative weight",
                suggestion="add what an answer must not do: padding and guessing cost nothing here",
            )
        for missed, what, of in (
            (self.n["dropped"], "repeated criteria were counted", "different texts"),
            (self.n["lost"], "groups in several splits were looked for", "groups"),
        ):
            if missed:
                yield Finding(
                    code="rule-limited",
                    severity="info",
                    message=f"{what} among the first {KEEP} {of} only",
                )
