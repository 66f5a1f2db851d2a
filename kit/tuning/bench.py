"""The judge workbench: change a judge's prompt, see what that changed, and believe it.

Every prompt is a trial: asked on train first, on dev when it may be worth it, and never on the
sealed test, which is read once, for the winner. Everything goes through the ledger: what was asked
before costs nothing. Every trial ever made counts in the table's correction for many looks.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from ..errors import DataError, KitError
from ..judge.records import Unkept
from ..records import Verdict, fingerprint
from ..settings.read import known_names
from ..stats import Estimate, compare
from . import pages, variants
from . import trials as made
from .makers import Reflector, frame_of, maker, name_of
from .seal import Seals
from .search import (
    Labelled,
    Searched,
    Size,
    forecast,
    labelled_rows,
    left_out,
    loaded,
    search,
    size,
)
from .study import PARTS, Candidate, Selection, Study, TestRead, enough, plan, split
from .trials import BASELINE, Flips, Trial, row_id, texts_of

FIRST = 8  # prompts asked at a time, on train, before the rest is


class Workbench:
    """Labelled answers, a judge whose prompt is tried and changed, and what came of it.

    bench = kit.workbench("labels.jsonl", judge="endpoint:my-model", ledger="ledger.db")
    bench.try_("strict", bench.prompt.replace("met when", "met only when"))
    bench.table; bench.flips("baseline", "strict"); bench.test()

    labels : a file that kit.load reads, or a TaskSet with labels of people (met or unmet).
    judge : "endpoint:MODEL", "small", a mapping with options, or a function
        prompt -> judge. ledger : the file or Ledger in which verdicts are kept (default: one in
        `folder`, where that is given).
    prompt : where to begin (default: the system text of the judge's own template).
    measure : what "better" is, as in Study. folder : where trials and doubts are kept between
        sessions (default: only here). seals : the data's store of test reads (default: beside the
        runs). budget : a kit.Budget for all that is asked.
    whole : one row an answer, all of its criteria as one plain rubric: what is the rubric in parts
        worth? `try_("in parts", reword=bench.parts)`.

    Attributes: rows, human (n,), part (n,) "train" / "dev" / "test", trials by name, doubts; notes:
    which labels could not be used.
    """

    def __init__(
        self,
        labels: Any,
        *,
        judge: Any,
        ledger: Any = None,
        prompt: str | None = None,
        measure: str = "kappa",
        folder: str | Path | None = None,
        seals: Seals | str | Path | None = None,
        budget: Any = None,
        whole: bool = False,
    ):
        from ..judge.ledger import Ledger

        self.make = maker(judge)
        if ledger is None and folder is not None:  # else its trials are paid once a session
            ledger = Path(folder) / "ledger.sqlite"
        self.ledger = Ledger(ledger) if isinstance(ledger, (str, Path)) else ledger
        self.prompt = frame_of(judge) if prompt is None else prompt
        self.seals = Seals(seals) if isinstance(seals, (str, Path)) else seals
        self.measure, self.budget = measure, budget
        labels = loaded(labels)
        self.notes = left_out(labels)
        self.rows, self.parts = labelled_rows(labels), {}
        self._joined: list[list[str]] | None = None
        if whole:
            self.rows, self.parts, self._joined = variants.whole(self.rows)
        self.cluster = np.array([r.cluster for r in self.rows], dtype=object)
        self.part = split(self.cluster)
        train = np.flatnonzero(self.part == "train")  # asked in no order: files are sorted by kind
        self._queue = np.array(sorted(train, key=lambda i: fingerprint(self.cluster[i])))
        self.human = np.array([r.human for r in self.rows])
        self.trials: dict[str, Trial] = {}
        self.doubts: list[dict[str, Any]] = []
        self.read: TestRead | None = None
        self._ids = list(map(row_id, self.rows))
        self._about = {
            "judge": name_of(judge),
            "form": "whole rubrics" if whole else "criteria one by one",
            "rows": self._ids,
        }
        enough(self.cluster, self.part)
        self.study()  # it refuses a measure
        self.folder = None if folder is None else Path(folder)
        if self.folder is not None:
            self._recall(prompt)

    # -- trials --------------------------------------------------------------------------------
    def try_(
        self,
        name: str,
        prompt: str | None = None,
        *,
        parent: str | None = None,
        full: bool = False,
        **settings: Any,
    ) -> Trial:
        """Ask the judge with this prompt, and keep it as a trial.

        prompt : default the parent's. parent : what it was made from (default: the baseline, or
        the trial of this name that it replaces, which stays in the table). full : ask all of train
        and dev, however it begins. settings : options of the judge, how="one" for example, and what
        else a trial may change (`kit.tuning.variants`): reword, options, of.

        A trial is asked on some prompts of train first; where a betting interval, which may be read
        at any time, then shows that it agrees less than the baseline, the rest is not paid for.
        """
        settings = self.check(name, prompt, **settings)
        given = parent is not None
        first = None if name == BASELINE else self._trial(BASELINE).name
        parent = first if parent is None else self._trial(parent).name
        if prompt is None:
            prompt = self.trials[parent].prompt if parent else self.prompt
        full = full or "of" in settings
        old = self.trials.get(name)
        same = old is not None and (old.prompt, old.settings) == (prompt, settings)
        if same and not (full and old.stopped):
            return old
        if old is not None and not same and name == BASELINE:
            raise KitError(
                "the baseline has another prompt",
                where=f"trial {name!r}",
                fix="try it under another name (of `kit tune`: --try NAME=FILE), or a new folder",
            )
        trial = Trial(name, prompt, settings, parent, (None,) * len(self.rows))
        trial = self._asked(dataclasses.replace(trial, found=same and old.found), full)
        if old is not None and not same:
            away = made.put_away(self.trials, old)
            trial = trial if given else dataclasses.replace(trial, parent=away)
        self.trials[name] = trial
        self._remember()
        return trial

    def check(
        self,
        name: str,
        prompt: str | None = None,
        *,
        coming: Iterable[str] = (),
        parent: str | None = None,
        full: bool = False,
        **settings: Any,
    ) -> dict[str, Any]:
        """What `try_` would refuse is refused, and nothing is asked; gives the settings as they are
        kept. coming : names of trials that will be tried before.
        """
        return variants.checked(self, name, prompt, settings, coming)

    def _asked(self, trial: Trial, full: bool) -> Trial:
        """The trial with the verdicts on train, twice as many prompts each time, then on dev."""
        train = made.stages(self._queue, self.cluster, None if trial.name == BASELINE else FIRST)
        for stage in [*train, np.flatnonzero(self.part == "dev")]:
            trial = self._more(trial, stage)
            why = "" if full or trial.name == BASELINE else self._hopeless(trial)
            if why:
                return dataclasses.replace(trial, stopped=f"{why} on train: the rest was not asked")
        return trial

    def _more(self, trial: Trial, rows: Sequence[int]) -> Trial:
        got = dict(zip(rows, self._ask(trial, rows, self.make), strict=True))
        return dataclasses.replace(
            trial, verdicts=tuple(got.get(i, v) for i, v in enumerate(trial.verdicts))
        )

    def _ask(self, trial: Trial, rows: Sequence[int], make: Any) -> list[Verdict]:
        """The judge's verdicts on these rows, as the trial puts them."""
        if "of" in trial.settings:
            return variants.joined(self, trial.settings, rows)
        return variants.verdicts(
            make, trial, [self.rows[i] for i in rows], ledger=self.ledger, budget=self.budget
        )

    def _hopeless(self, trial: Trial) -> str:
        """Why a trial can surely not be chosen; "" where it may be."""
        pick = self._queue  # as they were asked: else it could not be read at any time
        gap = self.right(trial.name, trial)[pick] - self.right(BASELINE)[pick]
        if made.hopeless(gap, self.cluster[pick]):
            return "agrees less than the baseline"
        least = self.study().least_known
        got = [math.nan if v is None else v.known - least for v in trial.verdicts]
        few = made.hopeless(np.array(got)[pick], self.cluster[pick])
        return f"gives less than {least:.0%} of verdicts" if few else ""

    def _trial(self, name: str | Trial) -> Trial:
        name = name.name if isinstance(name, Trial) else name
        if name == BASELINE and name not in self.trials:
            return self.try_(BASELINE)
        known_names([name], [BASELINE, *self.trials], where="workbench", what="trial")
        return self.trials[name]

    # -- what came of them ---------------------------------------------------------------------
    def labels(self) -> np.ndarray:
        """(n,) labels, NaN where somebody doubts one."""
        out = self.human.copy()
        out[[d["row"] for d in self.doubts]] = np.nan
        return out

    def right(self, name: str, trial: Trial | None = None) -> np.ndarray:
        """(n,) 1 where the trial says what people say, 0 where not, NaN where either is unknown."""
        v = (trial or self._trial(name)).values
        h = self.labels()
        return np.where(np.isnan(v) | np.isnan(h), np.nan, (v == h).astype(float))

    def candidates(self) -> list[Candidate]:
        """The trials that were asked in full, as candidates of a Study."""
        return [t.candidate() for t in self.trials.values() if not t.stopped]

    def study(self) -> Study:
        """The labels in their three parts; `kit.Study`."""
        return Study(
            human=self.labels(),
            cluster=self.cluster,
            part=self.part,
            measure=self.measure,
            ids=self._ids,
            before=[fingerprint(texts_of(r)) for r in self.rows],
            parts=self._joined,
        )

    def data(self) -> list[dict[str, Any]]:
        """One row a trial, best on dev first, as plain values: agreement on train and dev, the
        difference to the baseline on dev (in raw agreement, adjusted for all trials: max-T), how
        much more often it says met there (not adjusted), the share judged at all, cost, tokens,
        rows asked, parent.
        """
        if not self.trials:
            return []
        study, dev = self.study(), self.part == "dev"
        on = {
            p: {s.name: s for s in study.scores(self.candidates(), p, baseline=BASELINE)}
            for p in ("train", "dev")
        }
        right = {t.name: self.right(t.name)[dev] for t in self.trials.values() if not t.stopped}
        gaps = {c.name: c for c in compare(right, BASELINE, cluster=self.cluster[dev])}
        return [
            made.row(
                t,
                on,
                gaps.get(t.name),
                self.against(t)["met"],
                measure=self.measure,
                cluster=self.cluster,
            )
            for t in [
                *map(self.trials.get, on["dev"]),
                *(t for t in self.trials.values() if t.stopped),
            ]
        ]

    @property
    def table(self) -> Any:
        """The trials, best on dev first; it shows itself."""
        from ..tables import show

        return show(
            self.data(),
            caption=f"{len(self.trials)} trials; what they agree more is adjusted for all of "
            "them (max-T)",
        )

    def answers(self, new: str | Trial, old: str | Trial | None = None) -> Flips:
        """Every answer of train and dev that `new` and `old` (default: its parent) judged."""
        b = self._trial(new)
        a = self._trial(old if old is not None else b.parent or b.name)
        rows = [
            made.flip(self.rows[i], str(self.part[i]), i, a.verdicts[i], b.verdicts[i])
            for i in np.flatnonzero(self.part != "test")
        ]
        order = ("broken", "mended", "lost", "found", "same")
        return Flips(sorted(filter(None, rows), key=lambda f: order.index(f["effect"])))

    def flips(self, old: str | Trial, new: str | Trial, *, part: str | None = None) -> Flips:
        """Answers whose verdict changed from `old` to `new`, on train and dev, with both reasons.

        Rows with what was judged, what people say, both verdicts, reasons and P(met), and the
        effect: "broken", "mended", "lost", "found". part : "train" or "dev" only. The test's
        answers are not shown before it is read.
        """
        known_names([part or "dev"], PARTS[:2], where="flips", what="part")
        rows = self.answers(new, old)
        return Flips(f for f in rows if f["effect"] != "same" and part in (None, f["part"]))

    def again(self, row: int, name: str | Trial) -> Verdict:
        """Ask one answer once more, past the ledger: does the judge stand by what it said?"""
        trial = self._trial(name)
        self._open(row)
        if "of" in trial.settings:
            raise KitError(
                "this trial is made of others",
                where=trial.name,
                fix=f"ask one of {trial.settings['of']}",
            )
        return self._ask(trial, [row], lambda *a, **k: Unkept(self.make(*a, **k)))[0]

    def doubt(self, row: int, who: str, why: str) -> None:
        """Mark a label as doubtful: it is kept apart and left out of train and dev. The sealed
        test's labels cannot be doubted: whoever doubts has seen what the judge says.
        """
        if not (variants.worded(who) and variants.worded(why)):
            raise DataError("a doubt needs who and why", where="doubt", fix="say both")
        self._open(row)
        entry = {"row": int(row), "who": who, "why": why, **made.named(self.rows[row])}
        self.doubts = [*(d for d in self.doubts if (d["row"], d["who"]) != (row, who)), entry]
        self._remember()

    def _open(self, row: int) -> None:
        """DataError where this row is none, or of the sealed test."""
        if isinstance(row, bool) or row not in range(len(self.rows)):
            raise DataError(
                "there is no such row",
                where=f"row {row}",
                fix=f"rows are 0 to {len(self.rows) - 1}",
            )
        if self.part[row] == "test":
            raise DataError("this row belongs to the sealed test", where=f"row {row}")

    def attack(self, *names: str, **options: Any) -> Any:
        """What cheats earn under the trials `names` (default: the baseline and the best prompt on
        dev).

        A tuned prompt that is easier to fool is no gain. options : answers, attacks, as
        kit.tuning.variants takes them. Gives {trial: audit}.
        """
        from .attacked import attacked

        dev = [s.name for s in self.choose().dev]
        plain = (n for n in dev if variants.OWN.isdisjoint(self.trials[n].settings))
        best = names or tuple(dict.fromkeys((BASELINE, next(plain))))
        return attacked(self, [self._trial(name).name for name in best], **options)

    def examples(self, k: int = 4, *, seed: int = 0) -> str:
        """The bench's prompt with `k` labelled examples of train, those it got wrong first:
        `try_("examples", bench.examples())`. Labels in doubt are left out; dev and test are unseen.
        """
        train = np.flatnonzero((self.part == "train") & ~np.isnan(self.labels()))
        train = sorted(train, key=self._ids.__getitem__)  # whatever the order of the file
        rows = [self.rows[i] for i in train]
        none = np.zeros(len(train))
        variants.examples(rows, none, k, seed)  # it refuses too many before the baseline is asked
        return f"{self.prompt}\n{variants.examples(rows, self.right(BASELINE)[train], k, seed)}"

    def cascade(self, cheap: str, strong: str, *, tolerance: float = 0.02) -> Trial:
        """A trial "cheap -> strong": the strong one decides where the cheap one's P is in doubt.

        The bands of doubt are fitted on train, for each criterion with enough labels: the narrowest
        that lose at most `tolerance` in agreement with people. Dev audits them: `against`.
        """
        a = self._whole(cheap)
        b = self._whole(strong)
        name = f"{a.name} -> {b.name}"
        settings = variants.cascade(self, a, b, tolerance)
        return self.try_(name, b.prompt, parent=b.name, **settings)

    def _whole(self, name: str) -> Trial:
        """The trial, asked on all of train and dev."""
        t = self._trial(name)
        return self.try_(t.name, t.prompt, parent=t.parent, full=True, **t.settings)

    def against(self, new: str | Trial, old: str | Trial = BASELINE) -> dict[str, Estimate]:
        """On the same answers of dev, in pairs: what `new` has more than `old` of agreement with
        people, of "met" (below 0: stricter), of dollars a thousand verdicts and of tokens.
        """
        a, b, dev = self._trial(new), self._trial(old), np.flatnonzero(self.part == "dev")
        right = self.right(a.name)[dev], self.right(b.name)[dev]
        return made.against(a, b, right, dev, self.cluster[dev])

    # -- search --------------------------------------------------------------------------------
    def estimate(self, rows: int | None = None, reflect: Any = None) -> Any:
        """What a search of so many judged rows would cost, a kit.judge Forecast: calls at most;
        tokens and dollars with prompts as long as this one.
        """
        seen = [self.rows[i] for i in np.flatnonzero(self.part != "test")]
        who = Reflector(reflect, self.make)
        return forecast(seen, self.make(self.prompt), self.search_size(rows), who)

    def search_size(self, rows: int | None = None, **more: Any) -> Size:
        """How many rows a search judges (`kit.tuning.search.size`), at most `rows`."""
        return size(self._train(), rows, **more)

    def _train(self) -> list[Labelled]:
        """The rows of train whose labels nobody doubts, in the order in which the folder first had
        them: a search draws by it, and the rows of a sorted file would be paid again.
        """
        sure = (self.part == "train") & ~np.isnan(self.labels())
        place = {name: k for k, name in enumerate(self._about["rows"])}
        order = sorted(np.flatnonzero(sure), key=lambda i: place[self._ids[i]])
        return [self.rows[i] for i in order]

    def search(
        self, reflect: Any = None, *, rows: int | None = None, seed: int = 0, minibatch: int = 6
    ) -> Searched:
        """Let GEPA rewrite the prompt on train; what it finds become trials "found 1", "found 2".

        reflect : who rewrites: a function prompt -> text, "endpoint:MODEL", or None for the judge's
        own model. rows : cap on judged rows (default: five rounds, 300 or more); `estimate(rows)`
        says what they may cost. Stopped in the middle, the same line goes on: judged rows and
        reflections are in the ledger.
        """
        self.search_size(rows, minibatch=minibatch, seed=seed)  # before anything is paid
        self._trial(BASELINE)
        found = search(
            self._train(),
            make_judge=self.make,
            reflect=Reflector(reflect, self.make, ledger=self.ledger, budget=self.budget),
            seed_text=self.prompt,
            max_rows=rows,
            minibatch=minibatch,
            ledger=self.ledger,
            budget=self.budget,
            seed=seed,
        )
        for number, text in enumerate(dict.fromkeys(found.instructions.values())):
            if text.strip() and text != self.prompt:
                trial = self.try_(f"found {number}", text)
                self.trials[trial.name] = dataclasses.replace(trial, found=True)
        self._remember()
        return found

    # -- the choice ----------------------------------------------------------------------------
    def choose(self, name: str | None = None) -> Selection:
        """The best trial on dev; the baseline competes too. name : this one, whatever dev says."""
        few = [self._whole(n).candidate() for n in dict.fromkeys((name or BASELINE, BASELINE))]
        choice = self.study().select(few if name else self.candidates(), baseline=BASELINE)
        return dataclasses.replace(choice, winner=few[0]) if name else choice

    def plan(self, gain: float = 0.05, *, power: float = 0.8) -> dict[str, Any]:
        """How many labelled prompts a gain of this size (in the bench's measure) needs, with as
        many trials as are here and the spread of the best one; `kit.tuning.study.plan`.
        """
        dev = self.choose().dev
        by = {c.name: c for c in self.candidates()}
        study, rows = self.study(), self.part != "test"
        gaps = (study.gap(by[s.name], by[BASELINE], rows) for s in dev)
        room = next(1 - s.result.value for s in dev if s.name == BASELINE)
        gap = next((g for g in gaps if g.se > 0), None)
        return plan(gap, len(by) - 1, study, gain, power, room)

    def test(
        self, name: str | None = None, *, replay: bool = False, unseal: bool = False
    ) -> TestRead:
        """Ask the winner and the baseline on the sealed test, and read it, once.

        name : a trial to read it for in the winner's place, "found 1" say. replay : give the
        recorded reading when exactly this was read before. A second reading of any of its rows is
        refused unless `unseal`, and then says so.
        """
        choice = self.choose(name)
        rows = np.flatnonzero(self.part == "test")
        self.study().sealed(choice, seals=self.seals, unseal=unseal, replay=replay)
        names = {choice.winner.name, BASELINE}
        whole = {n: self._more(self.trials[n], rows).candidate() for n in names}
        filled = dataclasses.replace(
            choice, winner=whole[choice.winner.name], baseline=whole[BASELINE]
        )
        self.read = self.study().test(filled, seals=self.seals, replay=replay, unseal=unseal)
        return self.read

    # -- what is kept --------------------------------------------------------------------------
    def export(self, path: str | Path) -> Path:
        """Trials, prompts, flips, doubts, the reading of the test: JSON, or a page (.html)."""
        return pages.write(self, Path(path))

    def _remember(self) -> None:
        if self.folder is not None:
            made.keep(self.folder, self._about, self.trials.values(), self.doubts)

    def _recall(self, prompt: str | None) -> None:
        """Trials of earlier sessions: their verdicts are in the ledger."""
        found, whole, doubts, first = made.kept(self.folder, self._about)
        self._about["rows"] = [*dict.fromkeys([*first, *self._ids])]
        self.doubts = made.again(doubts, self.rows)
        self.trials.update(found)
        if (first := found.get(BASELINE)) is not None:  # another prompt is refused
            self.prompt = first.prompt if prompt is None else prompt
            self.try_(BASELINE, self.prompt, **first.settings)
        for name, trial in found.items():
            self.trials[name] = self._asked(trial, full=name in whole)

    def _repr_html_(self) -> str:
        return pages.bench_html(self)

    def __repr__(self) -> str:
        n = {p: int((self.part == p).sum()) for p in ("train", "dev", "test")}
        rows = ", ".join(f"{k} {v}" for k, v in n.items())
        head = f"{len(self.rows)} labels ({rows}), trials: {', '.join(self.trials) or 'none yet'}"
        return "\n".join([head, *self.notes])
