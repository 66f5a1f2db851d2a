"""What a workbench keeps of a prompt that was tried, and how it shows what changed."""

from __future__ import annotations

import difflib
import itertools
import json
import math
import re
from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from ..errors import DataError, KitError
from ..records import Verdict, fingerprint, grouped, paid
from ..stats import Estimate, betting, difference
from ..stats.clusters import codes
from ..system.paths import write_text
from ..system.processes import alone
from ..tables import Results
from .seal import words
from .search import Labelled
from .study import Candidate

FILE = "bench.json"  # of a bench's folder
BASELINE = "baseline"
WORDS = {1.0: "met", 0.0: "unmet"}


@dataclass(frozen=True, repr=False)
class Trial:
    """A prompt that was tried: its text and settings, the trial it came from, its verdicts.

    verdicts : (n,) one a labelled row, None where it was not asked. stopped : why the rest was not
    asked, "" where all of train and dev was. found : by the search, whatever its name is.
    """

    name: str
    prompt: str
    settings: Mapping[str, Any] = field(default_factory=dict)
    parent: str | None = None
    verdicts: tuple[Verdict | None, ...] = ()
    stopped: str = ""
    found: bool = False

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
    def tokens(self) -> np.ndarray:
        """(n,) tokens in and out, NaN where not asked."""
        both = [v and paid(v, "tokens_in") + paid(v, "tokens_out") for v in self.verdicts]
        return np.array(both, dtype=float)

    def __repr__(self) -> str:
        words = (
            f"{self.asked} of {len(self.verdicts)} rows asked",
            self.stopped,
            f"from {self.parent!r}" if self.parent else "",
        )
        return f"trial {self.name!r}: {', '.join(filter(None, words))}"

    def candidate(self) -> Candidate:
        """As a Study takes it; found prompts are one group: train chooses among them."""
        group = "\0found" if self.found else self.name  # no trial's name
        return Candidate(self.name, self.values, self.cost, group)

    def lines(self) -> list[str]:
        """The prompt's sentences, and the settings: what a criterion became, too."""
        more = dict(self.settings)
        new = [f"criterion: {a} -> {b}" for a, b in more.pop("reword", {}).items()]
        return [*sentences(self.prompt), *new, *(f"{k} = {v}" for k, v in more.items())]

    def diff(self, other: Trial) -> list[tuple[str, str]]:
        """How this prompt differs from another's: ("same" | "gone" | "new", sentence).

        >>> a, b = Trial("a", "Be kind. Read all."), Trial("b", "Be strict. Read all.")
        >>> b.diff(a)
        [('gone', 'Be kind.'), ('new', 'Be strict.'), ('same', 'Read all.')]
        """
        kinds = {" ": "same", "-": "gone", "+": "new"}
        lines = difflib.ndiff(other.lines(), self.lines())
        return [(kinds[line[0]], line[2:]) for line in lines if line[0] in kinds]

    def kept(self) -> dict[str, Any]:
        """What a later session needs: its verdicts are in the ledger."""
        return {
            "trial": self.name,
            "prompt": self.prompt,
            "settings": dict(self.settings),
            "parent": self.parent,
            "stopped": self.stopped,
            "found": self.found,
        }


def sentences(text: str) -> list[str]:
    """The sentences and lines of a prompt."""
    return [s for s in re.split(r"(?<=[.!?:])\s+|\n+", text.strip()) if s]


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
    def words(self) -> str:
        """How many were mended, broken, lost and found."""
        kinds = [f["effect"] for f in self]
        return ", ".join(f"{kinds.count(e)} {e}" for e in ("mended", "broken", "lost", "found"))

    def _repr_html_(self) -> str:
        from .pages import flips_html

        return flips_html(self)

    def __repr__(self) -> str:
        lines = [
            f"  {f['effect']}: {f['criterion']} | {f['answer'][:60]!r} "
            f"{f['before']} -> {f['now']}, people: {f['human']}"
            for f in self[:20]
        ]
        return "\n".join([f"{len(self)} verdicts changed: {self.words}", *lines])


def row(
    trial: Trial,
    on: Mapping[str, Mapping[str, Any]],
    gap: Any,
    shift: Estimate,
    *,
    measure: str,
    cluster: np.ndarray,
) -> dict[str, Any]:
    """One row of the workbench's table, as plain values and estimates.

    shift : what it says "met" more often than the baseline. cluster : (n,) prompts of the rows.
    """
    dev, train = (on[part].get(trial.name) for part in ("dev", "train"))
    cost, tokens = (spent(x, 0 * x, cluster) for x in (1000 * trial.cost, trial.tokens))
    return {
        "trial": trial.name,
        f"{measure} on dev": "" if dev is None else str(dev.result),
        f"{measure} on train": "" if train is None else str(train.result),
        "agrees more than the baseline": "" if gap is None else str(gap.adjusted),
        "says met more (not adjusted)": "" if gap is None else _short(shift),
        "judged": "" if dev is None else f"{dev.known:.0%}",
        "$ per 1000": _short(cost),
        "tokens": _short(tokens, 0),
        "asked": trial.asked,
        "from": trial.parent or "",
        "note": trial.stopped or ("" if dev is None else dev.result.note),
    }


def _short(e: Estimate, digits: int = 3) -> str:
    # without an interval every one is the same
    return ("" if math.isnan(e.value) else e.span(digits)).removesuffix(" [no interval]")


def against(
    a: Trial, b: Trial, right: tuple[np.ndarray, np.ndarray], dev: np.ndarray, cluster: np.ndarray
) -> Results[Estimate]:
    """What `a` has more than `b` on the rows `dev`, in pairs; right : (n,) of each, there."""
    return Results(
        {
            "agreement": difference(*right, cluster=cluster),
            "met": difference(a.values[dev], b.values[dev], cluster=cluster),
            "$ per 1000": spent(1000 * a.cost[dev], 1000 * b.cost[dev], cluster),
            "tokens": spent(a.tokens[dev], b.tokens[dev], cluster),
        }
    )


def spent(a: np.ndarray, b: np.ndarray, cluster: np.ndarray) -> Estimate:
    """Mean of what was paid more, in pairs; what costs nothing costs nothing, without a doubt.

    >>> for cost in (np.zeros(4), np.ones(4)):
    ...     print(spent(cost, 0 * cost, np.arange(4)))
    .000 [.00, .00], n=4
    1.000 [no interval], n=4
    """
    out = difference(a + 2, b + 2, cluster=cluster)  # 0 and 1 would be read as shares
    if not np.nansum(b):  # nothing is paid less than nothing
        out = replace(out, low=max(out.low, 0.0))
    return replace(out, low=0.0, high=0.0) if out.n and not np.nansum(abs(a - b)) else out


def keep(
    folder: Path, about: Mapping[str, Any], trials: Iterable[Trial], doubts: list[dict[str, Any]]
) -> None:
    """Write trials and doubts, whole or not at all, beside what another bench wrote there
    meanwhile. about : as `kept` takes it.
    """
    folder.mkdir(parents=True, exist_ok=True)
    with alone(folder, FILE, lambda _: None):
        there = _read(folder, about)
        rows = json.loads(json.dumps([t.kept() for t in trials]))
        rows += _others(there["trials"], rows)
        at = {_answer(d): d for d in [*there["doubts"], *doubts]}
        data = {
            **about,
            "trials": rows,
            "doubts": list(at.values()),
        }
        write_text(folder / FILE, json.dumps(data, indent=1, ensure_ascii=False))


def _others(there: list[dict[str, Any]], ours: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The trials of the file that are not ours; where a name is ours already they get another, and
    what was made of them follows.
    """
    known = {content: name for name, content in _contents(ours).items()}
    taken = {r["trial"] for r in ours}
    names: dict[str, str] = {}
    others = []
    for row, (name, content) in zip(there, _contents(there).items(), strict=True):
        if content in known:
            names[name] = known[content]
            continue
        names[name] = _free(name, taken) if name in taken else name
        taken.add(names[name])
        others.append(row)
    for row in others:
        row["trial"], row["parent"] = names[row["trial"]], names.get(row["parent"])
        if "of" in row["settings"]:
            row["settings"]["of"] = [names[n] for n in row["settings"]["of"]]
    return others


def _contents(rows: Iterable[Mapping[str, Any]]) -> dict[str, str]:
    """name -> what each kept trial is, also when it was put away: all that it is made of."""
    by = {r["trial"]: r for r in rows}
    found: dict[str, str] = {}

    def one(name: str) -> str:
        if name not in found:
            what = [
                name.partition("~")[0],
                by[name]["prompt"],
                {**by[name]["settings"], "of": list(map(one, by[name]["settings"].get("of", ())))},
            ]
            found[name] = fingerprint(what)
        return found[name]

    return {name: one(name) for name in by}


def _answer(doubt: Mapping[str, Any]) -> tuple[Any, ...]:
    return doubt["id"], doubt.get("response"), doubt["who"]


def _read(folder: Path, about: Mapping[str, Any]) -> dict[str, Any]:
    """What is kept there. KitError where it is of other labels, another judge or form of the rows:
    all of its trials would be asked, and paid, once more.
    """
    path, fix = folder / FILE, "give this bench a folder of its own (of `kit tune`: --out)"
    if not path.exists():
        return {"trials": [], "doubts": [], "rows": about["rows"]}
    data = _sound(path)
    for what in ("judge", "form"):
        if None not in (old := data.get(what), about[what]) and old != about[what]:
            raise KitError(f"its trials are of {old}, not {about[what]}", where=str(path), fix=fix)
    if not set(data.setdefault("rows", about["rows"])) & set(about["rows"]):
        raise KitError("its trials are of other labels", where=str(path), fix=fix)
    return data


def _sound(path: Path) -> dict[str, Any]:
    """The file, read; DataError where no bench wrote it."""
    try:
        data = json.loads(path.read_text("utf-8"))
        names = [(r["trial"], r["prompt"], r["parent"], r["stopped"])[0] for r in data["trials"]]
        if len(_contents(data["trials"])) == len(names) and all(map(_answer, data["doubts"])):
            return data
        why = "two trials have one name"
    except RecursionError:
        why = "a trial is made of itself"
    except (ValueError, LookupError, TypeError, AttributeError) as e:
        why = repr(e)
    raise DataError(
        f"no bench wrote this file ({why})"[:300],
        where=str(path),
        fix="move it away; what is tried again costs nothing with the same ledger",
    )


def kept(
    folder: Path, about: Mapping[str, Any]
) -> tuple[dict[str, Trial], set[str], list[dict[str, Any]], list[str]]:
    """What `keep` wrote: trials not yet asked, the names of those that were asked in full, doubts,
    and the rows in their first order; nothing where there is nothing.

    about : ids of the "rows", the "judge" (None: it has no name), the "form" of a row.
    """
    trials, data, none = {}, _read(folder, about), (None,) * len(about["rows"])
    for row in data["trials"]:
        what = (row[k] for k in ("trial", "prompt", "settings", "parent"))
        trials[row["trial"]] = Trial(*what, none, found=row.get("found", False))
    whole = {r["trial"] for r in data["trials"] if not r["stopped"]}
    return trials, whole, data["doubts"], data["rows"]


def put_away(trials: dict[str, Trial], old: Trial) -> str:
    """An older version gets a name of its own: it was looked at, and it counts."""
    name = _free(old.name, trials)
    for t in list(trials.values()):  # what was made of it stays made of it
        of = [name if n == old.name else n for n in t.settings.get("of", ())]
        trials[t.name] = replace(
            t,
            settings={**t.settings, "of": of} if of else t.settings,
            parent=name if t.parent == old.name else t.parent,
        )
    trials[name] = replace(trials[old.name], name=name)
    return name


def _free(name: str, taken: Container[str]) -> str:
    return next(n for k in itertools.count(1) if (n := f"{name}~{k}") not in taken)


def stages(queue: np.ndarray, cluster: np.ndarray, first: int | None) -> list[np.ndarray]:
    """Rows to ask at a time, of the prompts of the queue: `first` prompts, then twice as many each
    time; None: all at once.
    """
    place = codes(cluster[queue], len(queue))[0]
    edges = [] if first is None else [first * (2**k - 1) for k in range(1, 30)]
    stage = np.searchsorted(edges, place, "right")
    return [queue[stage == k] for k in range(stage.max() + 1)]


def hopeless(gap: np.ndarray, cluster: np.ndarray) -> bool:
    """Whether what a trial is right more often (n,), NaN not known, is surely below 0.

    A prompt counts by its rows, as it does in the table: what its rows add up to is bet on.
    """
    group, n = codes(cluster, len(gap))
    seen = np.bincount(group, ~np.isnan(gap), n) > 0
    sums = np.bincount(group, np.nan_to_num(gap), n) / np.bincount(group).max()
    return betting(sums[seen], bounds=(-1, 1)).high < 0


def texts_of(row: Labelled) -> list[str]:
    """What was judged: a row is known by it, whatever its ids are."""
    return [row.task.asked, row.response.text, row.criterion.text]


def row_id(row: Labelled) -> str:
    """The row's name for the seal: its words, whatever a spreadsheet did to blanks and case."""
    return fingerprint(list(map(words, texts_of(row))))


def named(row: Labelled) -> dict[str, str]:
    """By what a kept doubt finds its row again."""
    return {"id": row_id(row), "response": row.response.id}


def again(doubts: Iterable[Mapping[str, Any]], rows: Sequence[Labelled]) -> list[dict[str, Any]]:
    """Kept doubts on the rows of today; of rows with the same words, on that of the same answer."""
    alike = grouped((row_id(r), (r.response.id, i)) for i, r in enumerate(rows))
    at = {own: dict(places) for own, places in alike.items()}
    return [
        {**d, "row": at[d["id"]].get(d.get("response"), max(at[d["id"]].values()))}
        for d in doubts
        if d["id"] in at
    ]
