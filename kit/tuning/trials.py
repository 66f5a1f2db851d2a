"""What a workbench keeps of a prompt that was tried, and how it shows what changed."""

from __future__ import annotations

import difflib
import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ..records import Verdict
from ..stats.estimate import Estimate
from .candidates import Candidate
from .search import Labelled

WORDS = {1.0: "met", 0.0: "unmet"}


@dataclass(frozen=True, repr=False)
class Trial:
    """A prompt that was tried: its text and settings, the trial it came from, its verdicts.

    verdicts : (n,) one a labelled row, None where it was not asked. stopped : why the rest was not
    asked, "" where all of train and dev was.
    """

    name: str
    prompt: str
    settings: Mapping[str, Any] = field(default_factory=dict)
    parent: str | None = None
    verdicts: tuple[Verdict | None, ...] = ()
    stopped: str = ""

    @classmethod
    def new(
        cls, name: str, prompt: str, settings: Mapping[str, Any], parent: str | None, n: int
    ) -> Trial:
        """A trial of which nothing was asked yet."""
        return cls(name, prompt, dict(settings), parent, (None,) * n)

    @property
    def values(self) -> np.ndarray:
        """(n,) 1 met, 0 unmet, NaN unknown or not asked."""
        known = [None if v is None else v.value for v in self.verdicts]
        return np.array([np.nan if x is None else float(x >= 0.5) for x in known])

    @property
    def asked(self) -> int:
        """How many rows it was asked."""
        return sum(v is not None for v in self.verdicts)

    @property
    def cost(self) -> np.ndarray:
        """(n,) dollars, also where the ledger had it; NaN where not asked."""
        return np.array([math.nan if v is None else paid(v, "cost") for v in self.verdicts])

    @property
    def tokens(self) -> float:
        """Tokens in and out a verdict, NaN where nothing was asked."""
        each = [paid(v, "tokens_in") + paid(v, "tokens_out") for v in self.verdicts if v]
        return float(np.mean(each)) if each else math.nan

    def __repr__(self) -> str:
        words = [f"{self.asked} of {len(self.verdicts)} rows asked", self.stopped]
        words.append(f"from {self.parent!r}" if self.parent else "")
        return f"trial {self.name!r}: {', '.join(filter(None, words))}"

    def candidate(self) -> Candidate:
        """As a Study takes it; found prompts are one group: train chooses among them."""
        group = "found" if re.fullmatch(r"found \d+", self.name) else self.name
        return Candidate(self.name, self.values, self.cost, group, {"prompt": self.prompt})

    def diff(self, other: Trial) -> list[tuple[str, str]]:
        """How this prompt differs from another's: ("same" | "gone" | "new", sentence).

        >>> a, b = Trial("a", "Be kind. Read all."), Trial("b", "Be strict. Read all.")
        >>> b.diff(a)
        [('gone', 'Be kind.'), ('new', 'Be strict.'), ('same', 'Read all.')]
        """
        kinds = {" ": "same", "-": "gone", "+": "new"}
        lines = difflib.ndiff(sentences(other.prompt), sentences(self.prompt))
        return [(kinds[line[0]], line[2:]) for line in lines if line[0] in kinds]

    def kept(self) -> dict[str, Any]:
        """What a later session needs: its verdicts are in the ledger."""
        return {
            "trial": self.name,
            "prompt": self.prompt,
            "settings": dict(self.settings),
            "parent": self.parent,
            "stopped": self.stopped,
        }


def sentences(text: str) -> list[str]:
    """The sentences and lines of a prompt."""
    return [s for s in re.split(r"(?<=[.!?:])\s+|\n+", text.strip()) if s]


def paid(v: Verdict, what: str) -> float:
    """What a verdict cost when it was asked ("cost", "tokens_in", "tokens_out")."""
    return float(v.meta.get("paid", {}).get(what, getattr(v, what)))


def flip(
    row: Labelled, part: str, at: int, a: Verdict | None, b: Verdict | None
) -> dict[str, Any] | None:
    """One answer and criterion under two trials: what each said, why, and what people say.

    effect : "mended" (wrong before, right now), "broken", "lost" (unknown now), "found" (unknown
    before), "same". None where one of the trials was not asked.
    """
    if a is None or b is None:
        return None
    before, now, human = said(a), said(b), WORDS[row.human]
    return {
        "row": int(at),
        "part": part,
        "effect": _effect(before, now, human),
        "slice": row.task.kind or "",
        "criterion": row.criterion.text,
        "answer": row.response.text,
        "human": human,
        "before": before,
        "now": now,
        "reason before": a.reason or "",
        "reason now": b.reason or "",
        "P before": a.p,
        "P now": b.p,
        "prompt": row.task.asked,
        "task": row.task.id,
        "response": row.response.id,
    }


def said(v: Verdict) -> str:
    """ "met", "unmet" or "unknown"; a level counts as met from one half on."""
    return "unknown" if v.value is None else WORDS[float(v.value >= 0.5)]


def _effect(before: str, now: str, human: str) -> str:
    if before == now:
        return "same"
    if "unknown" in (before, now):
        return "lost" if now == "unknown" else "found"
    return "mended" if now == human else "broken"


class Flips(list[dict[str, Any]]):
    """Changed verdicts, broken ones first; a list that shows itself."""

    @property
    def counts(self) -> dict[str, int]:
        """How many were mended, broken, lost and found."""
        kinds = [f["effect"] for f in self]
        return {e: kinds.count(e) for e in ("mended", "broken", "lost", "found")}

    def _repr_html_(self) -> str:
        from .pages import flips_html

        return flips_html(self)

    def __repr__(self) -> str:
        head = ", ".join(f"{n} {e}" for e, n in self.counts.items())
        lines = [
            f"  {f['effect']}: {f['criterion']} | {f['answer'][:60]!r} "
            f"{f['before']} -> {f['now']}, people: {f['human']}"
            for f in self[:20]
        ]
        return "\n".join([f"{len(self)} verdicts changed: {head}", *lines])


def row(trial: Trial, on: Mapping[str, Mapping[str, Any]], gap: Any, measure: str) -> dict:
    """One row of the workbench's table, as plain values and estimates."""
    dev, train = (on[part].get(trial.name) for part in ("dev", "train"))
    return {
        "trial": trial.name,
        f"{measure} on dev": _shown(dev),
        f"{measure} on train": _shown(train),
        "agrees more than the baseline": "" if gap is None else str(gap.adjusted),
        "judged": "" if dev is None else f"{dev.known:.0%}",
        "$ per 1000": _dollars(trial.cost),
        "tokens": "" if math.isnan(trial.tokens) else f"{trial.tokens:.0f}",
        "asked": trial.asked,
        "from": trial.parent or "",
        "note": trial.stopped,
    }


def _shown(scored: Any) -> str | Estimate:
    return "" if scored is None else str(scored.result)


def _dollars(cost: np.ndarray) -> str:
    known = cost[~np.isnan(cost)]
    return f"{1000 * known.mean():.3f}" if len(known) else ""
