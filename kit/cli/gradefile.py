"""The file that `kit judge` writes: how a line is made, kept in order, and kept by --resume."""

from __future__ import annotations

import contextlib
import json
import math
import os
import re
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from itertools import accumulate
from pathlib import Path
from typing import Any

from .. import checks
from ..data.jsonl import dumps
from ..data.schemas import stamped
from ..errors import DataError
from ..judge.records import PASSING, keys_of
from ..records import PAID, Grade, Response, Task, Verdict, leaves, paid, to_json
from ..system import paths, progress
from ..tables import plain

Key = tuple[str, str]  # an answer: its task, its id


@dataclass(frozen=True)
class Grading:
    """How this run grades: by which tasks and judge, and how verdicts become a score."""

    tasks: Mapping[str, Task]
    who: Any
    how: str
    max_width: float | None

    def grade(self, r: Response, got: Sequence[Verdict]) -> Grade:
        """The grade of an answer; its cost is that of its verdicts when they were asked, also by a
        run that was killed before it wrote the line.
        """
        from ..rewards.aggregate import grade, usage

        more = {} if self.max_width is None else {"max_width": self.max_width}
        g = grade(self.tasks[r.task_id], got, how=self.how, response_id=r.id, **more)
        if not any(v.cached for v in g.verdicts):
            return g
        spent = [replace(v, cached=False, **{k: paid(v, k) for k in PAID}) for v in g.verdicts]
        return replace(g, usage=usage(spent), cost=math.fsum(v.cost for v in spent))

    def fits(self, r: Response, got: Sequence[Verdict]) -> bool:
        """Whether these are on this text, by these criteria, of this judge, as their keys say."""
        task = self.tasks[r.task_id]
        every = leaves(task.criteria)
        asked = [c for c in every if c.check is None]
        keys = keys_of(self.who, task, r, asked) or [None] * len(asked)
        today = {c.id: checks.key(task, r, c) for c in every if c.check is not None}
        today |= {c.id: k for c, k in zip(asked, keys, strict=True)}
        return today == {v.criterion_id: v.key for v in got}


SCORED = re.compile(rb'"score":\s*[^n\s]')
ASIDE = re.compile(r"\d{8}-\d{6}\.\d{6}\.before")


class Grades:
    """The output: a line per answer, written as soon as it is there, and at the end put in the
    order of the answers, those of an earlier run among them.

    resume : lines that are there stay, but for half a line at the end (a crash), those with a
        verdict that a new call can change (the judge was away, a cap was reached), and `stale`
        ones: of another text, rubric or judge. Those are judged again; DataError where all are
        stale, as those of a server with another address: that would be paid once more.
    before : where what was there is kept, until a run has come to its end.
    """

    def __init__(
        self, out: Path, answers: Sequence[Response], grading: Grading, *, resume: bool
    ) -> None:
        self.out, now = out, datetime.now().strftime("%Y%m%d-%H%M%S.%f")
        self.before = out.with_name(f"{out.name}.{now}.before")
        self.grading, self.of = grading, {r.ids: r for r in answers}
        self.at = {key: i for i, key in enumerate(self.of)}
        self.sizes: dict[Key, int] = {}  # bytes of each line, in the order of the file
        self.stale = 0
        if out.exists() and resume:
            self._keep()
        elif out.exists():
            self._aside("it is written anew")
            out.unlink()
        out.parent.mkdir(parents=True, exist_ok=True)
        self.others = len(self.sizes.keys() - self.of.keys())
        self.kept = len(self.sizes) - self.others
        self.left = [r for key, r in self.of.items() if key not in self.sizes]
        self.broken = False

    def __enter__(self) -> Grades:
        self.file = self.out.open("ab")
        self.bar = progress.bar(total=len(self.left), desc="judging", unit="answer", delay=2.0)
        return self

    def put(self, g: Grade) -> None:
        """One answer is finished."""
        if self.broken:  # after half a line on a full disk nothing more is written
            return
        text, self.broken = line(g), True
        self.file.write(text)
        self.file.flush()
        self.broken = False
        self.sizes[g.ids] = len(text)
        self.bar.update(1)

    def __exit__(self, *_: Any) -> None:
        try:
            os.fsync(self.file.fileno())
        finally:
            self.file.close()
            self.bar.close()
        # lines of answers that are not among these follow
        order = sorted(self.sizes, key=lambda k: self.at.get(k, len(self.at)))
        if order != list(self.sizes):
            with contextlib.suppress(OSError):  # a full disk: all lines are there
                self._reorder(order)

    def _reorder(self, order: Sequence[Key]) -> None:
        starts = dict(zip(self.sizes, accumulate(self.sizes.values(), initial=0), strict=False))
        with open(self.out, "rb") as old, paths.whole(self.out) as part, open(part, "wb") as new:
            for key in order:
                old.seek(starts[key])
                new.write(old.read(self.sizes[key]))

    def _aside(self, why: str) -> None:
        """Keep what is there beside, where it holds a score."""
        with open(self.out, "rb") as file:
            scored = any(map(SCORED.search, file))
        if scored:
            shutil.copyfile(self.out, self.before)
            progress.say(f"{self.out}: {why}; until the end, what it held is in {self.before.name}")

    def ended(self) -> None:
        """The answers are judged: what earlier runs had kept beside goes."""
        for path in self.out.parent.iterdir():
            stamp = path.name.removeprefix(f"{self.out.name}.")
            if path.name != stamp and ASIDE.fullmatch(stamp):
                path.unlink()

    def _keep(self) -> None:
        """Read line by line what is there; a line ends at \\n and nowhere else."""
        with open(self.out, "rb") as old, paths.whole(self.out) as part, open(part, "wb") as new:
            for n, text in enumerate(old, 1):
                where = f"{self.out}, line {n}"
                key, kept = self._kept(text, where) if text.endswith(b"\n") else (("", ""), b"")
                if key in self.sizes:
                    raise DataError(
                        f"{key[1]!r} is graded twice",
                        where=where,
                        fix="take one of the lines out, or run without --resume",
                    )
                if kept:
                    self.sizes[key] = len(kept)
                    new.write(kept)
            if self.stale and not self.sizes.keys() & self.of.keys():
                raise DataError(
                    f"all {self.stale} grades are by another judge, of other texts or rubrics",
                    where=str(self.out),
                    fix="give the judge that was asked, or run without --resume: all are judged "
                    "anew",
                )
            if self.stale:
                self._aside(f"{self.stale} grades are of another text, rubric or judge")

    def _kept(self, text: bytes, where: str) -> tuple[Key, bytes]:
        """The answer that a line grades, and the line; empty where it is to be judged again."""
        from ..people.labels import grade_of  # with numpy

        try:
            row = json.loads(text.decode("utf-8", "surrogatepass"))
        except (ValueError, RecursionError):
            row = None
        g = grade_of(row, where)
        key = g.ids
        if any(v.failure in PASSING for v in g.verdicts):
            return key, b""
        r = self.of.get(key)
        if r is None or self.grading.fits(r, g.verdicts):
            return key, text if r is None else line(self.grading.grade(r, g.verdicts))
        self.stale += 1
        return key, b""


def line(g: Grade) -> bytes:
    """A grade as a line of the file."""
    data = to_json(g)
    for v in data["verdicts"]:
        for name in ("task_id", "response_id"):
            v.pop(name)
    names = ("task_id", "response_id", "score", "score_low", "score_high")
    more = ("verdicts", "usage", "cost", "parts")
    return dumps(plain(stamped("grades", {k: data[k] for k in (*names, *more)}))) + b"\n"
