"""The workbench: change a judge's prompt, see what that changed, and find out whether to believe it.

Every prompt is a trial. It is judged on train and dev, and never on the sealed test, which is read
once, for the trial that was chosen. All trials are compared at once, because the more prompts you
try, the likelier one looks better by luck.
"""

from __future__ import annotations

import difflib
import html
import re
import tempfile
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pandas as pd

from ..errors import DataError
from ..judging import Budget, Ledger, judge, judge_of
from ..plots import Html, forest
from ..records import Verdict, fingerprint
from ..records.tables import Results, plain, show
from ..stats import Estimate, agreement_difference, claim, kappa, number, together
from ..system import paths
from ..system.settings import check_names
from .audit import CHANGES, AuditReport, audit
from .labels import (
    LEAST,
    PARTS,
    Row,
    keep_reading,
    load_labels,
    readings,
    rows_of,
    split,
)
from .search import examples, first_prompt, search, with_prompt

BASELINE = "baseline"
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
    """A prompt with the judge's settings.

    verdicts : (n,) one for each labelled row, None where it was not judged.
    """

    name: str
    prompt: str
    settings: Mapping[str, Any]
    verdicts: tuple[Verdict | None, ...] = ()

    @property
    def values(self) -> np.ndarray:
        """(n,) 1 met, 0 unmet, NaN unknown or not judged. A level counts as met from .5 on."""
        # pandas reads None as NaN.
        numbers = pd.Series([v and v.value for v in self.verdicts], dtype=float)
        return (numbers >= 0.5).astype(float).where(numbers.notna()).to_numpy()

    @property
    def words(self) -> list[str]:
        """(n,) met, unmet or unknown."""
        return [WORDS.get(x, "unknown") for x in self.values]

    @property
    def reasons(self) -> list[str]:
        """(n,) what the judge wrote; empty where there is none."""
        return ["" if v is None else v.reason or "" for v in self.verdicts]

    def _lines(self) -> list[str]:
        settings = [f"{name} = {value}" for name, value in self.settings.items()]
        return re.split(r"(?<=[.!?:])\s+|\n+", self.prompt.strip()) + settings

    def diff(self, other: Trial) -> list[str]:
        """What this prompt has less ("- ") and more ("+ ") than another one, by sentence.

        >>> Trial("b", "Be strict. Read all.", {}).diff(Trial("a", "Be kind. Read all.", {}))
        ['- Be kind.', '+ Be strict.']
        """
        lines = difflib.ndiff(other._lines(), self._lines())
        return [line for line in lines if line[0] in "+-"]


class Flips(list[dict[str, Any]]):
    """Verdicts that two trials do not share, broken ones first. A notebook shows them as a table."""

    def __repr__(self) -> str:
        count = Counter(f["effect"] for f in self)
        words = ", ".join(f"{count[e]} {e}" for e in EFFECTS)
        return f"{len(self)} verdicts changed: {words}"

    def _repr_html_(self) -> str:
        return show(self, caption=repr(self))._repr_html_()


@dataclass(frozen=True)
class Reading:
    """What the sealed test says. optimism : dev less test of the winner; it was chosen for its dev.

    gain : of the winner over the baseline on test; `sentence` says what may be claimed.
    """

    winner: str
    dev: Estimate
    test: Estimate
    gain: Estimate
    optimism: float
    readings: int
    sentence: str

    def __repr__(self) -> str:
        return self.sentence


class Workbench:
    """Labelled answers, a judge whose prompt is changed, and the trials. See `workbench`.

    rows, part (n,) and human (n,) are the labels; trials is name -> Trial; doubts row -> reason.
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
        if ledger is None:
            # without one a search would pay for the same question again and again
            ledger = Path(tempfile.mkdtemp(prefix="kit-")) / "ledger.sqlite"
        self.judge, self.budget = judge, budget
        self.ledger = ledger if isinstance(ledger, Ledger) else Ledger(ledger)
        self.prompt = prompt if prompt is not None else first_prompt(judge)
        self.seals = Path(seals) if seals else paths.runs() / "seals"
        self.rows, self.notes = rows_of(load_labels(labels))
        self.cluster = np.array([r.cluster for r in self.rows], dtype=object)
        # Doubts are kept beside the labels, so that one can see and undo them.
        self.human = np.array([r.human for r in self.rows])
        self.part = split(self.cluster)
        few = [p for p in PARTS if len(set(self.cluster[self.part == p])) < LEAST]
        self.small = ""
        if few:
            # Too few to choose on one part and to test on another: a comparison is all they carry.
            self.small = f"fewer than {LEAST} prompts fall into {', '.join(few)}"
            self.part[:] = "dev"
            rule = "all rows are compared, there is no search and no sealed test"
            self.notes.append(f"{self.small}: {rule}")
        self.trials: dict[str, Trial] = {}
        self.doubts: dict[int, str] = {}

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
        trial = Trial(name, prompt, settings, (None,) * len(self.rows))
        old = self.trials.get(name)
        if old is None:
            self.trials[name] = self._judged(trial, self.part != "test")
        elif (old.prompt, old.settings) != (prompt, settings):
            message = "there is another trial of this name"
            raise DataError(message, where=name, fix="give it a name of its own")
        return self.trials[name]

    def trial(self, name: str) -> Trial:
        """A trial by its name; the baseline is judged at its first use."""
        if name == BASELINE and name not in self.trials:
            return self.try_(BASELINE)
        check_names([name], self.trials, where="trials of the workbench")
        return self.trials[name]

    def _judged(self, trial: Trial, pick: np.ndarray) -> Trial:
        places = np.flatnonzero(pick)
        rows, verdicts = [self.rows[i] for i in places], list(trial.verdicts)
        new = self.ask(self.judge_of(trial), rows, trial.settings)
        for i, verdict in zip(places, new, strict=True):
            verdicts[i] = verdict
        return replace(trial, verdicts=tuple(verdicts))

    def judge_of(self, trial: Trial) -> Any:
        """The judge of a trial."""
        s = {k: v for k, v in trial.settings.items() if k != "reword"}
        for kind in ("panel", "escalate"):
            if kind in s:
                members = [self.judge_of(self.trial(name)) for name in s.pop(kind)]
                return judge_of({kind: members, **s})
        votes, base = s.pop("votes", None), s.pop("judge", self.judge)
        mapping = with_prompt(base, trial.prompt, **s)
        return (
            mapping if votes is None else judge_of({"votes": mapping, "n": votes})
        )

    def ask(
        self, judge_: Any, rows: Sequence[Row], settings: Mapping[str, Any] = {}
    ) -> list[Verdict]:
        """The verdict on each row. All criteria of an answer go out together, whoever asks."""
        new = settings.get("reword", {})
        texts = {c.text for r in self.rows for c in r.task.criteria}
        check_names(new, texts, where="reword")
        tasks = {row.task.id: row.task for row in rows}
        for name, task in tasks.items():
            criteria = [
                msgspec.structs.replace(c, text=new.get(c.text, c.text))
                for c in task.criteria
            ]
            tasks[name] = msgspec.structs.replace(task, criteria=tuple(criteria))
        # Whole answers, not single rows: the criteria of a call shape each other's verdicts, so the
        # search must find in the ledger what a trial was told, and the other way round.
        answers = {row.response.ids: row.response for row in rows}
        options = {"judge": judge_, "ledger": self.ledger, "budget": self.budget}
        verdicts = judge(list(tasks.values()), list(answers.values()), **options)
        by_ids = {v.ids: v for v in verdicts}
        return [by_ids[(*row.response.ids, row.criterion.id)] for row in rows]

    def doubt(self, row: int, who: str, why: str) -> None:
        """Leave a label of train or dev out of every number. who : whose doubt it is."""
        if self.part[row] == "test":
            raise DataError(
                "this row belongs to the sealed test", where=f"row {row}"
            )
        self.doubts[row] = f"{who}: {why}"

    def labels(self) -> np.ndarray:
        """(n,) labels, NaN where somebody doubts one."""
        labels = self.human.copy()
        labels[list(self.doubts)] = np.nan
        return labels

    search, examples = search, examples

    # -- what came of them
    def agreement(self, trial: str | Trial, part: str = "dev") -> Estimate:
        """The measure of a trial on a part, with its interval over prompts."""
        trial = self.trial(trial) if isinstance(trial, str) else trial
        pick = self.part == part
        columns = (trial.values[pick], self.labels()[pick])
        return kappa(*columns, cluster=self.cluster[pick])

    def _gain(self, new: np.ndarray, old: np.ndarray, part: str) -> Estimate:
        pick = self.part == part
        columns = (x[pick] for x in (new, old, self.labels()))
        return agreement_difference(*columns, cluster=self.cluster[pick])

    def table(self) -> Any:
        """One row a trial, the best on dev first; a DataFrame.

        The difference to the baseline is paired by row, and its intervals hold for all trials at
        once. judged : share of dev with a known verdict. $ and tokens : what judging took, also
        where the verdicts came from the ledger.
        """
        base, rows = self.trial(BASELINE).values, []
        others = [t for name, t in self.trials.items() if name != BASELINE]
        gains = {t.name: self._gain(t.values, base, "dev") for t in others}
        # Of many looks one succeeds by luck, so the intervals hold for all of them.
        gains = together(gains)
        for name in self.ranked():
            cost, tokens = self._paid(self.trials[name])
            row = {"trial": name, "kappa on dev": str(self.agreement(name))}
            if not self.small:
                row["kappa on train"] = str(self.agreement(name, "train"))
            row["more than the baseline"] = str(gains.get(name, ""))
            row["judged"] = f"{self._share(name):.0%}"
            row["$ per 1000"], row["tokens"] = f"{1000 * cost:.3f}", round(tokens)
            rows.append(row)
        return pd.DataFrame(rows)

    def _share(self, name: str) -> float:
        """The share of dev on which a trial has a known verdict."""
        return float(
            np.mean(~np.isnan(self.trials[name].values[self.part == "dev"]))
        )

    def _paid(self, trial: Trial) -> tuple[float, float]:
        """Mean dollars and tokens of a verdict. Verdicts from the ledger come free; it knows."""
        verdicts = [v for v in trial.verdicts if v is not None]
        originals = self.ledger.get([v.key for v in verdicts if v.key])
        rows = [originals.get(v.key or "", v) for v in verdicts]
        tokens = np.mean([v.tokens_in + v.tokens_out for v in rows])
        return float(np.mean([v.cost for v in rows])), float(tokens)

    def ranked(self) -> list[str]:
        """The trials, the best on dev first; of equal ones the earlier."""
        values = {n: self.agreement(n).value for n in self.trials}
        return sorted(values, key=lambda n: -np.nan_to_num(values[n], nan=-9))

    def choose(self) -> str:
        """The best trial on dev among those that judge at least 80 % of it."""
        able = [n for n in self.ranked() if self._share(n) >= ENOUGH]
        return next(iter(able), BASELINE)

    def flips(self, old: str, new: str) -> Flips:
        """Verdicts on train and dev that changed from one trial to another, with both reasons.

        effect : "broken" (right before, wrong now), "mended", "lost" (unknown now), "recovered".
        """
        before, now = self.trial(old), self.trial(new)
        texts = [
            (r.criterion.text, r.response.text, WORDS[r.human]) for r in self.rows
        ]
        frame = pd.DataFrame(texts, columns=["criterion", "answer", "people"])
        for column, trial in {"before": before, "now": now}.items():
            frame[column] = trial.words
            frame[f"reason {column}"] = trial.reasons
        frame["effect"], frame["part"], frame["row"] = (
            "broken",
            self.part,
            frame.index,
        )
        frame.loc[frame["now"] == frame["people"], "effect"] = "mended"
        # Unknown is neither right nor wrong, so these are counted apart.
        frame.loc[frame["before"] == "unknown", "effect"] = "recovered"
        frame.loc[frame["now"] == "unknown", "effect"] = "lost"
        changed = frame["now"] != frame["before"]
        rows = frame[changed & (frame["part"] != "test")].to_dict("records")
        return Flips(sorted(rows, key=lambda row: EFFECTS.index(row["effect"])))

    # -- the sealed test
    def need_parts(self, what: str) -> None:
        """DataError where there are too few prompts for train, dev and test."""
        if self.small:
            n = len(set(self.cluster))
            message = f"{self.small}; there are {n} prompts with labels"
            raise DataError(message, where=what, fix=ADVICE)

    def test(self, name: str | None = None, *, unseal: bool = False) -> Reading:
        """Judge the sealed test with a trial (default: the chosen one) and the baseline, once.

        The same question again returns the stored reading. Another question on a row that was read
        is refused; unseal=True reads it all the same, and the sentence says how often.
        """
        self.need_parts("test")
        new, old = self.trial(name or self.choose()), self.trial(BASELINE)
        ids = sorted(self.rows[i].id for i in np.flatnonzero(self.part == "test"))
        who = "" if callable(self.judge) else str(self.judge)
        request = fingerprint([ids, who, self._about(new), self._about(old)])
        earlier = readings(self.seals, ids)
        for reading in earlier:
            # Rerunning a notebook is the same question; it is no second look.
            if reading["request"] == request:
                return msgspec.convert(reading["result"], Reading)
        if earlier and not unseal:
            when = earlier[-1]["at"]
            raise DataError(
                f"this test was read before, on {when}, for another question",
                where=str(self.seals),
                fix="report the first reading, label new rows, or pass unseal=True and say so",
            )
        new, old = (self._judged(t, self.part == "test") for t in (new, old))
        dev, test = self.agreement(new, "dev"), self.agreement(new, "test")
        # Who is silent where it would be wrong gains nothing: unknown as disagreement, too.
        answers = [t.values for t in (new, old)]
        guesses = [np.where(np.isnan(x), 1 - self.human, x) for x in answers]
        gains = [self._gain(*x, "test") for x in (answers, guesses)]
        gain = min(gains, key=lambda e: np.nan_to_num(e.low, nan=-9))
        sentence = claim(gain, new=new.name, old="the baseline")
        if new.name == BASELINE:
            sentence = (
                "The baseline was the best on dev: there is nothing to claim."
            )
        optimism, n = dev.value - test.value, len(earlier) + 1
        luck = f"{number(optimism)}, from {number(dev.value)} on dev"
        sentence += f" (Optimism, dev less test: {luck}.)"
        if n > 1:
            sentence += f" The test was read {n} times: this is no sealed result."
        reading = Reading(new.name, dev, test, gain, optimism, n, sentence)
        keep_reading(self.seals, request, ids, asdict(reading))
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
        places = np.flatnonzero((self.part == part) & (self.human == 0))
        rows = {self.rows[i].response.ids: self.rows[i] for i in places}
        rows = list(rows.values())[:answers]
        tasks = {r.task.id: r.task for r in rows}.values()
        texts = [r.response for r in rows]
        kinds = [n for n, c in CHANGES.items() if c.kind in ("attack", "step")]
        options = {"ledger": self.ledger, "budget": self.budget, "progress": False}
        options["changes"] = changes or kinds
        judges = {name: self.judge_of(self.trial(name)) for name in names}
        return Results(
            {n: audit(j, tasks, texts, **options) for n, j in judges.items()}
        )

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

    def views(self) -> dict[str, Callable[[], Html]]:
        """What `kit.plots.explore` offers: the trials, and what each of them changed."""
        names = [name for name in self.trials if name != BASELINE]
        views = {f"{BASELINE} to {n}": lambda n=n: self._change(n) for n in names}
        return {"trials": lambda: Html(self._repr_html_()), **views}

    def _change(self, name: str) -> Html:
        lines = html.escape(
            "\n".join(self.trials[name].diff(self.trials[BASELINE]))
        )
        flips = self.flips(BASELINE, name)._repr_html_()
        return Html(f"<pre style='white-space:pre-wrap'>{lines}</pre>{flips}")

    def _repr_html_(self) -> str:
        return (
            show(self.table())._repr_html_() if self.trials else f"<p>{self!r}</p>"
        )

    def __repr__(self) -> str:
        count = {p: int((self.part == p).sum()) for p in PARTS}
        notes = "".join(f"; {note}" for note in self.notes)
        return f"Workbench: {len(self.rows)} labels, {count}, {len(self.trials)} trials{notes}"
