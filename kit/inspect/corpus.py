"""The lint's rules across rows: repeated prompts, leaks between splits, boilerplate criteria. Memory: about 200 bytes a row."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field

from ..sources.findings import Finding
from ..sources.taskset import Parsed
from .rules import prompt_key
from .words import overlap, sketch

LEAK = 0.8  # overlap of word triples from which two prompts are the same
BOILERPLATE = 0.05  # share of tasks from which a repeated criterion is reported
KEEP = 200_000  # criterion texts counted


@dataclass
class Corpus:
    """Gathers, row by row, what rules across rows need; `findings()` at the end."""

    prompts: dict[bytes, tuple[int, str | None]] = field(default_factory=dict)
    sketches: list[tuple[int, str | None, tuple[int, ...]]] = field(default_factory=list)
    criteria: Counter[bytes] = field(default_factory=Counter)
    texts: dict[bytes, str] = field(default_factory=dict)
    groups: dict[str, set[str]] = field(default_factory=dict)
    splits: Counter[str | None] = field(default_factory=Counter)
    tasks: int = 0
    negative: int = 0
    scored: int = 0
    dropped: int = 0

    def add(self, p: Parsed) -> Iterator[Finding]:
        """Take in one row; yields findings on repeated prompts."""
        task = p.task
        if task is None:
            return
        self.tasks += 1
        self.splits[task.split] += 1
        key = prompt_key(task.prompt)
        if key:
            digest = hashlib.blake2b(key.encode("utf-8", "surrogatepass"), digest_size=12).digest()
            if digest in self.prompts:
                row, split = self.prompts[digest]
                across = split != task.split and None not in (split, task.split)
                yield Finding(code="split-leak" if across else "duplicate-prompt", severity="error" if across else "warning", row=p.row, where=p.where,
                              task_id=task.id, message=f"the same prompt as in row {row}" + (f", of split {split!r}; this is {task.split!r}" if across else ""),
                              suggestion="keep it in one split only" if across else "merge the rows or remove one")
            else:
                self.prompts[digest] = (p.row, task.split)
                if task.split is not None:
                    self.sketches.append((p.row, task.split, sketch(key.split()[:400])))
        if task.group is not None and task.split is not None:
            self.groups.setdefault(task.group, set()).add(task.split)
        for c in task.criteria:
            self.scored += c.weight != 0
            self.negative += c.weight < 0
            digest = hashlib.blake2b(c.text.strip().lower().encode("utf-8", "surrogatepass"), digest_size=8).digest()
            if digest not in self.criteria and len(self.criteria) >= KEEP:
                self.dropped += 1
                continue
            self.criteria[digest] += 1
            if self.criteria[digest] == 2:
                self.texts[digest] = c.text

    def findings(self) -> Iterator[Finding]:
        """Findings on the whole set."""
        yield from self._near_leaks()
        shared = sorted(g for g, s in self.groups.items() if len(s) > 1)
        if shared and len(self.groups) > 1:
            yield Finding(code="group-in-splits", severity="info", message=f"{len(shared)} of {len(self.groups)} groups occur in several splits "
                          f"({', '.join(shared[:5])})", suggestion="for a hold-out by group, split with splits.by_group")
        for digest, n in self.criteria.most_common(20):
            if n >= 5 and n > BOILERPLATE * self.tasks and digest in self.texts:
                yield Finding(code="boilerplate", severity="info", message=f"this criterion occurs {n} times in {self.tasks} tasks",
                              text=self.texts[digest][:200], suggestion="fine for a house rule; otherwise make it specific")
        if self.scored and not self.negative:
            yield Finding(code="one-signed-set", severity="info", message="no criterion of the set has a negative weight",
                          suggestion="add what an answer must not do: padding and guessing cost nothing here")
        if self.dropped:
            yield Finding(code="rule-limited", severity="info", message=f"repeated criteria were counted among the first {KEEP} different texts only")

    def _near_leaks(self) -> Iterator[Finding]:
        if len({s for _, s, _ in self.sketches}) < 2:
            return
        by_hash: dict[int, list[int]] = {}
        for i, (_, _, s) in enumerate(self.sketches):
            for h in s[:4]:
                by_hash.setdefault(h, []).append(i)
        shared: Counter[tuple[int, int]] = Counter()
        for members in by_hash.values():
            if 2 <= len(members) <= 20:  # a triple that very many prompts share is a common phrase, not a leak
                shared.update((j, i) for k, i in enumerate(members) for j in members[:k] if self.sketches[i][1] != self.sketches[j][1])
        for (j, i), n in shared.items():
            a, b = self.sketches[j], self.sketches[i]
            if n >= 2 and (s := overlap(a[2], b[2])) >= LEAK:
                yield Finding(code="split-leak", severity="warning", row=b[0], confidence=round(s, 2),
                              message=f"nearly the prompt of row {a[0]}: split {b[1]!r} here, {a[1]!r} there (overlap {s:.2f})",
                              suggestion="keep both in one split")
