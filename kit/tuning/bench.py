"""The workbench: change a judge's prompt, see what that changed, and find out whether to believe it.

Every prompt is a trial. It is judged on train and dev, and never on the sealed test, which is read
once, for the trial that was chosen. All trials are compared at once, because the more prompts you
try, the likelier one looks better by luck.
"""

from __future__ import annotations

import difflib
import hashlib
import html
import json
import re
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pandas as pd
from msgspec.structs import replace

from ..errors import DataError
from ..judging import Budget, Ledger, judge_of, open_ledger
from ..judging import judge as run_judge
from ..judging.factory import split_spec
from ..people import label_rows
from ..plots import forest
from ..records import Response, fingerprint
from ..records.tables import IDS, Results, met_of, plain, show, table
from ..stats import (
    Estimate,
    agreement_difference,
    claim,
    format_number,
    kappa,
    simultaneous_intervals,
)
from ..system import paths
from ..system.settings import check_names
from .audit import CHANGES, AuditReport, audit
from .search import examples, search

BASELINE = "baseline"
PARTS, EDGES = (
    ("train", "dev", "test"),
    (0.4, 0.7),
)  # 40, 30 and 30 % of the prompts
LEAST = 3  # prompts that each part needs
ENOUGH = 0.8  # share of rows that a trial must judge to be chosen
EFFECTS = ("broken", "mended", "lost", "recovered")
WORDS = {1.0: "met", 0.0: "unmet"}
# 30 prompts of dev and 30 of test show a gain of about .3 in agreement; fewer show next to nothing
ADVICE = (
    "label answers to 100 prompts or more (30 show gains above .3 only); "
    "until then table() compares all rows, with its interval"
)


@dataclass(frozen=True)
class Trial:
    """A prompt with the judge's settings, and the rows of train and dev with its verdicts."""

    name: str
    prompt: str
    settings: Mapping[str, Any]
    verdicts: pd.DataFrame | None = None

    def diff(self, other: Trial) -> list[str]:
        """What this prompt has less ("- ") and more ("+ ") than another one, by sentence.

        >>> Trial("b", "Be strict. Read all.", {}).diff(Trial("a", "Be kind. Read all.", {}))
        ['- Be kind.', '+ Be strict.']
        """
        lines = []
        for t in (other, self):
            settings = [f"{name} = {value}" for name, value in t.settings.items()]
            lines.append(
                re.split(r"(?<=[.!?:])\s+|\n+", t.prompt.strip()) + settings
            )
        return [line for line in difflib.ndiff(*lines) if line[0] in "+-"]


class Flips(list[dict[str, Any]]):
    """Verdicts that two trials do not share, broken ones first. A notebook shows them as a table.

    diff : what the prompt of the new trial has less and more.
    """

    diff: Sequence[str] = ()

    def __repr__(self) -> str:
        effects = [flip["effect"] for flip in self]
        words = ", ".join(f"{effects.count(e)} {e}" for e in EFFECTS)
        return f"{len(self)} verdicts changed: {words}"

    def _repr_html_(self) -> str:
        lines = html.escape("\n".join(self.diff))
        table = show(self, caption=repr(self))._repr_html_()
        return f"<pre style='white-space:pre-wrap'>{lines}</pre>{table}"


@dataclass(frozen=True)
class Reading:
    """What the sealed test says.

    dev, test : kappa of the winner. Dev less test is its optimism: it was chosen for its dev.
    gain : of the winner over the baseline on test. sentence : what may be claimed.
    """

    dev: Estimate
    test: Estimate
    gain: Estimate
    sentence: str

    def __repr__(self) -> str:
        return self.sentence


class Workbench:
    """A workbench on labelled answers, to change a judge's prompt and see what that changed.

    labels : a file or TaskSet with labels of people (met or unmet), or several sources that are
        joined by their ids: [tasks, answers, labels].
    judge : "endpoint:MODEL", "small", "replay:small", a mapping with options, or a function
        prompt, **settings -> judge.
    ledger : a file or Ledger in which verdicts are stored. prompt : where to begin (the judge's
        own). seals : the folder of test readings (beside the runs).
    rows is a DataFrame with a label each, trials name -> Trial, doubts row -> reason.

    >>> bench = Workbench(paths.data("judge_labels.jsonl"), judge="replay:small")
    >>> _ = bench.try_("strict", paths.data("judge_prompts", "strict.txt").read_text("utf-8"))
    >>> bench.flips("baseline", "strict")
    31 verdicts changed: 10 broken, 17 mended, 0 lost, 4 recovered
    """

    def __init__(
        self,
        labels: Any,
        *,
        judge: Any,
        ledger: Ledger | str | Path | None = None,
        prompt: str | None = None,
        seals: str | Path | None = None,
        budget: Budget | None = None,
    ):
        # A search asks the same question again and again.
        self.ledger = open_ledger(ledger)
        # A name or a mapping: each prompt makes another judge of it.
        if prompt is None and isinstance(judge, str | Mapping):
            prompt = getattr(judge_of(judge), "system", None)
        if prompt is None:
            raise DataError(
                "this judge has no prompt to begin with",
                where="workbench(judge=...)",
                fix="name an endpoint, small, server or local judge; or give a function and prompt=",
            )
        self.judge, self.prompt, self.budget = judge, prompt, budget
        self.seals = Path(seals or paths.runs() / "seals")
        self.trials: dict[str, Trial] = {}
        self.data, rows = label_rows(labels)
        texts = rows[["prompt", "answer", "text"]].to_numpy().tolist()
        # A sealed row is known by its texts, whatever its ids are.
        self.rows = rows.assign(
            part=split(rows["cluster"]), id=[fingerprint(t) for t in texts]
        )
        lost = self.rows.index[self.rows["human"].isna()]
        self.doubts = dict.fromkeys(lost, "the raters: unknown, or evenly split")
        prompts = self.rows.groupby("part")["cluster"].nunique()
        few = [part for part in PARTS if prompts.get(part, 0) < LEAST]
        self.small = (
            f"fewer than {LEAST} prompts fall into {', '.join(few)}" if few else ""
        )
        if few:
            # Too few to choose on one part and to test on another: a comparison is all they carry.
            self.rows["part"] = "dev"
        self.part = self.rows["part"]

    # -- trials
    def try_(self, name: str, prompt: str | None = None, **settings: Any) -> Trial:
        """Judge train and dev with this prompt and keep the result as a trial.

        prompt : default the baseline's. settings : options of the judge (how="one", temperature=1),
        or judge= another judge; votes=n; panel=[trials]; escalate=[cheap trial, strong trial];
        reword={criterion: new text}. The same trial again costs nothing.
        """
        # The baseline is in every comparison, so it is judged before anything else.
        if name != BASELINE:
            self.trial(BASELINE)
        prompt = self.prompt if prompt is None else prompt
        old = self.trials.get(name)
        if old is None:
            verdicts = self.ask(self.rows[self.part != "test"], prompt, **settings)
            self.trials[name] = Trial(name, prompt, settings, verdicts)
        elif (old.prompt, old.settings) != (prompt, settings):
            message = "there is another trial of this name"
            raise DataError(message, where=name, fix="give it a name of its own")
        return self.trials[name]

    def trial(self, name: str) -> Trial:
        """A trial by its name; the baseline is judged at its first use."""
        if name == BASELINE:
            return self.try_(BASELINE)
        check_names([name], self.trials, where="trials of the workbench")
        return self.trials[name]

    def judge_of(
        self,
        prompt: str,
        *,
        panel: Sequence[str] = (),
        escalate: Sequence[str] = (),
        votes: int = 0,
        judge: Any = None,
        **options: Any,
    ) -> Any:
        """The judge of a trial with this prompt and these settings."""
        if panel or escalate:
            trials = [self.trial(name) for name in panel or escalate]
            members = [self.judge_of(t.prompt, **t.settings) for t in trials]
            return judge_of({"panel" if panel else "escalate": members, **options})
        base = self.judge if judge is None else judge
        if callable(base):
            return base(prompt, **options)
        kind, subject, more = split_spec(base)
        # Whatever prompt the mapping brought is replaced: a trial has one prompt.
        more.pop("prompt", None)
        made = {kind: subject, **more, **options, "system": prompt}
        return judge_of({"votes": made, "n": votes} if votes else made)

    def answers(self, rows: pd.DataFrame) -> list[Response]:
        """The answers to which these rows belong."""
        ids = set(zip(rows["task"], rows["response"], strict=True))
        return [r for r in self.data.responses if r.ids in ids]

    def ask(
        self,
        rows: pd.DataFrame,
        prompt: str,
        *,
        reword: Mapping[str, str] = {},
        **settings: Any,
    ) -> pd.DataFrame:
        """These rows with the columns of `Verdicts.table`, and `met`: 1, 0, or NaN where unknown.

        All criteria of an answer go out together, whoever asks. They shape each other's verdicts,
        so the search finds in the ledger what a trial asked, and the other way round.
        """
        check_names(reword, set(self.rows["text"]), where="reword")
        tasks = []
        for t in self.data:
            new = [replace(c, text=reword.get(c.text, c.text)) for c in t.criteria]
            tasks.append(replace(t, criteria=tuple(new)))
        verdicts = run_judge(
            tasks,
            self.answers(rows),
            judge=self.judge_of(prompt, **settings),
            ledger=self.ledger,
            budget=self.budget,
        )
        # A verdict from the ledger comes free; the ledger knows what it took.
        stored = self.ledger.get(v.key for v in verdicts if v.key)
        frame = table([stored.get(v.key or "", v) for v in verdicts])
        frame[IDS] = [v.ids for v in verdicts]
        frame["tokens"] = frame["tokens_in"] + frame["tokens_out"]
        # A level counts as met from .5 on.
        frame["met"] = met_of(frame["value"])
        frame["reason"] = frame["reason"].fillna("")
        return rows.merge(frame, how="left", on=IDS).set_index(rows.index)

    def doubt(self, row: int, who: str, why: str) -> None:
        """Leave a label of train or dev out of every number. who : whose doubt it is."""
        if self.part[row] == "test":
            raise DataError(
                "this row belongs to the sealed test", where=f"row {row}"
            )
        self.doubts[row] = f"{who}: {why}"

    def usable(self, rows: pd.DataFrame, part: str) -> pd.DataFrame:
        """The rows of a part whose labels nobody doubts."""
        return rows[(rows["part"] == part) & ~rows.index.isin(list(self.doubts))]

    search, examples = search, examples

    # -- what came of them
    def verdicts(self, name: str, part: str = "dev") -> pd.DataFrame:
        """The rows of a part with a trial's verdicts."""
        return self.usable(self.trial(name).verdicts, part)

    def agreement(self, name: str, part: str = "dev") -> Estimate:
        """Kappa of a trial with people, with its interval over prompts."""
        return kappa(self.verdicts(name, part), "met", "human", cluster="cluster")

    def table(self) -> pd.DataFrame:
        """One row a trial, the best on dev first.

        The difference to the baseline is paired by row, and its intervals hold for all trials at
        once. judged : share of dev with a known verdict. $ and tokens : what judging took, also
        where the verdicts came from the ledger.
        """
        base = self.verdicts(BASELINE)
        others = [name for name in self.trials if name != BASELINE]
        # Of many looks one succeeds by luck, so the intervals hold for all of them.
        gains = simultaneous_intervals(
            {n: _gain(self.verdicts(n), base) for n in others}
        )
        rows = []
        for name in self.ranked():
            verdicts = self.trials[name].verdicts
            row = {"trial": name}
            for part in ("dev",) if self.small else ("dev", "train"):
                row[f"kappa on {part}"] = str(self.agreement(name, part))
            row["more than the baseline"] = str(gains.get(name, ""))
            row["judged"] = f"{self.verdicts(name)['met'].notna().mean():.0%}"
            row["$ per 1000"] = f"{1000 * verdicts['cost'].mean():.3f}"
            row["tokens"] = round(verdicts["tokens"].mean())
            rows.append(row)
        return pd.DataFrame(rows)

    def ranked(self) -> list[str]:
        """The trials, the best on dev first; of equal ones the earlier."""
        values = {n: self.agreement(n).value for n in self.trials}
        return sorted(values, key=lambda n: -np.nan_to_num(values[n], nan=-9))

    def choose(self) -> str:
        """The best trial on dev among those that judge at least 80 % of it."""
        for name in self.ranked():
            if self.verdicts(name)["met"].notna().mean() >= ENOUGH:
                return name
        return BASELINE

    def flips(self, old: str, new: str) -> Flips:
        """Verdicts on train and dev that changed from one trial to another, with both reasons.

        effect : "broken" (right before, wrong now), "mended", "lost" (unknown now), "recovered".
        """
        trials = {"before": self.trial(old), "now": self.trial(new)}
        rows = trials["now"].verdicts
        frame = pd.DataFrame({"criterion": rows["text"], "answer": rows["answer"]})
        frame["people"] = rows["human"].map(WORDS)
        for column, trial in trials.items():
            frame[column] = trial.verdicts["met"].map(WORDS).fillna("unknown")
            frame[f"reason {column}"] = trial.verdicts["reason"]
        # Unknown is neither right nor wrong, so these are counted apart.
        cases = {
            "lost": frame["now"] == "unknown",
            "recovered": frame["before"] == "unknown",
            "mended": frame["now"] == frame["people"],
        }
        frame["effect"] = np.select(list(cases.values()), list(cases), "broken")
        frame = frame.assign(part=rows["part"], row=rows.index)
        changes = frame[frame["now"] != frame["before"]].to_dict("records")
        changes.sort(key=lambda row: EFFECTS.index(row["effect"]))
        flips = Flips(changes)
        flips.diff = trials["now"].diff(trials["before"])
        return flips

    # -- the sealed test
    def need_parts(self, what: str) -> None:
        """DataError where there are too few prompts for train, dev and test."""
        if self.small:
            n = self.rows["cluster"].nunique()
            raise DataError(
                f"{self.small}; there are {n} prompts with labels",
                where=what,
                fix=ADVICE,
            )

    def test(self, name: str | None = None, *, unseal: bool = False) -> Reading:
        """Judge the sealed test with a trial (default: the chosen one) and the baseline, once.

        The same question again returns the stored reading. Another question on a row that was read
        is refused; unseal=True reads it all the same, and the sentence says how often.
        """
        self.need_parts("test")
        trials = [self.trial(name or self.choose()), self.trial(BASELINE)]
        rows = self.usable(self.rows, "test")
        ids = sorted(rows["id"])
        who = "a function" if callable(self.judge) else str(self.judge)
        request = fingerprint([ids, who, *map(self._about, trials)])
        earlier = _readings(self.seals, ids)
        # Rerunning a notebook is the same question; it is no second look.
        if request in earlier:
            return msgspec.convert(earlier[request]["result"], Reading)
        if earlier and not unseal:
            when = ", ".join(reading["at"] for reading in earlier.values())
            raise DataError(
                f"this test was read before ({when}) for another question",
                where=str(self.seals),
                fix="report the first reading, label new rows, or pass unseal=True and say so",
            )
        new, old = (self.ask(rows, t.prompt, **t.settings) for t in trials)
        # Who is silent where it would be wrong gains nothing: unknown as disagreement, too.
        guesses = [
            f.assign(met=f["met"].fillna(1 - f["human"])) for f in (new, old)
        ]
        gains = (_gain(new, old), _gain(*guesses))
        gain = min(gains, key=lambda e: np.nan_to_num(e.low, nan=-9))
        dev = self.agreement(trials[0].name)
        test = kappa(new, "met", "human", cluster="cluster")
        sentence = claim(gain, new=trials[0].name, old="the baseline")
        optimism = format_number(dev.value - test.value)
        sentence += f" (Optimism, dev less test: {optimism}, from {format_number(dev.value)} on dev.)"
        if earlier:
            n = len(earlier) + 1
            sentence += f" The test was read {n} times: this is no sealed result."
        reading = Reading(dev, test, gain, sentence)
        row = {
            "request": request,
            "rows": ids,
            "result": msgspec.to_builtins(reading),
        }
        row["at"] = time.strftime("%FT%TZ", time.gmtime())
        # A file of its own, so that processes do not disturb each other.
        paths.write(self.seals / f"{request}.json", json.dumps(row))
        return reading

    def _about(self, t: Trial) -> list[Any]:
        """What makes a trial another one: its prompt, its settings, and the trials that it uses."""
        names = [*t.settings.get("panel", ()), *t.settings.get("escalate", ())]
        members = [self._about(self.trial(name)) for name in names]
        return [t.prompt, plain(t.settings), members]

    def attack(
        self, *names: str, answers: int = 20, changes: Sequence[str] | None = None
    ) -> dict[str, AuditReport]:
        """Audit trials on the same answers: is a better prompt easier to fool?

        answers : how many of train (of all, in a small set) that people failed, the first ones.
        changes : names of attacks (default: all attacks and steps).
        """
        part = "dev" if self.small else "train"
        rows = self.rows[(self.part == part) & (self.rows["human"] == 0)]
        kinds = [n for n, c in CHANGES.items() if c.kind in ("attack", "step")]
        out = Results()
        for t in map(self.trial, names):
            out[t.name] = audit(
                self.judge_of(t.prompt, **t.settings),
                self.data,
                self.answers(rows)[:answers],
                changes=changes or kinds,
                ledger=self.ledger,
                budget=self.budget,
                progress=False,
            )
        return out

    # -- to keep and to look at
    def export(self, path: str | Path, name: str | None = None) -> Path:
        """Write the prompt of a trial (default: the chosen one) as the one prompt file.

        `kit judge --prompt FILE`, `{"endpoint": MODEL, "prompt": FILE}` and training read it. Other
        settings of the trial are options of the judge and are not in it.
        """
        trial = self.trial(name or self.choose())
        if {"panel", "escalate"} & trial.settings.keys():
            message = "this trial has several prompts"
            raise DataError(message, where=trial.name, fix="export each")
        return paths.write(path, trial.prompt.strip() + "\n")

    def plot(self, **options: Any) -> Any:
        """The agreement of all trials on dev, with intervals."""
        rows = {n: self.agreement(n) for n in self.ranked()}
        return forest(rows, **{"title": "Trials on dev", "x": "kappa", **options})

    def views(self) -> dict[str, Callable[[], Any]]:
        """What `kit.plots.explore` offers: the trials, and what each of them changed."""
        views = {"trials": lambda: show(self.table())}
        # The first is the baseline.
        for name in list(self.trials)[1:]:
            views[f"{BASELINE} to {name}"] = partial(self.flips, BASELINE, name)
        return views

    def _repr_html_(self) -> str:
        return (
            show(self.table())._repr_html_() if self.trials else f"<p>{self!r}</p>"
        )

    def __repr__(self) -> str:
        count = ", ".join(f"{(self.part == part).sum()} {part}" for part in PARTS)
        rule = "all rows are compared, there is no search and no sealed test"
        notes = f"; {self.small}: {rule}" if self.small else ""
        if self.doubts:
            notes += f"; {len(self.doubts)} labels are in doubt"
        return f"Workbench: {len(self.rows)} labels ({count}), {len(self.trials)} trials{notes}"


def _gain(new: pd.DataFrame, old: pd.DataFrame) -> Estimate:
    return agreement_difference(
        new["met"], old["met"], new["human"], cluster=new["cluster"]
    )


def split(clusters: Iterable[str]) -> np.ndarray:
    """The part (n,) of each row, by a hash of its cluster: it stays when rows are added.

    >>> split(["a", "b", "a"])[0] == split(["b", "a"])[1]
    True
    """
    # A hash, not a draw: a prompt keeps its part when others are added, so a sealed test stays sealed.
    digests = [hashlib.sha256(f"0|{c}".encode()).hexdigest() for c in clusters]
    places = [int(d[:16], 16) / 2**64 for d in digests]
    return np.array(PARTS)[np.searchsorted(EDGES, places, "right")]


def _readings(folder: Path, rows: Iterable[str]) -> dict[str, Any]:
    """Earlier readings of a test that share a row with these, oldest first, by their request."""
    every = [json.loads(path.read_text("utf-8")) for path in folder.glob("*.json")]
    every.sort(key=lambda reading: reading["at"])
    # One row in common is enough: whoever saw a part of the test has seen it.
    return {r["request"]: r for r in every if set(rows) & set(r["rows"])}
