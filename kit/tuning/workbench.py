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
import sys
import time
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np
import pandas as pd
from numpy.typing import NDArray

from ..errors import DataError
from ..judging import (
    Budget,
    Judge,
    JudgeSource,
    LedgerLike,
    complete,
    judge_of,
    open_ledger,
)
from ..judging import judge as run_judge
from ..judging.judge import split_spec
from ..people import LabelFile, label_rows
from ..plots import Figure, forest
from ..records import count_of, fingerprint
from ..records.tables import IDS, met_of, plain, show, table
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

if TYPE_CHECKING:
    from gepa.core.adapter import EvaluationBatch

# A name, a mapping with options, or a function prompt, **settings -> judge.
WorkbenchJudge = JudgeSource | Callable[..., Judge]

BASELINE_NAME = "baseline"
# 40, 30 and 30 % of the prompts.
PART_NAMES = ("train", "dev", "test")
PART_EDGES = (0.4, 0.7)
# Each part needs so many prompts.
MIN_PROMPTS = 3
# The share of rows that a trial must judge to be chosen.
MIN_JUDGED = 0.8
SENTENCE_END = re.compile(r"(?<=[.!?:])\s+|\n+")
FLIP_EFFECTS = ("broken", "mended", "lost", "recovered")
VERDICT_WORDS = {1.0: "met", 0.0: "unmet"}

# GEPA's name of the text that it rewrites.
PROMPT_COMPONENT = "instructions"
REWRITE_TEMPLATE = Path(__file__).with_name("rewrite.txt")
# To the rewriter; judges write "unmet".
REWRITER_WORDS = {1.0: "met", 0.0: "not met"}
# Mistakes that one rewrite sees; the recorded search used as many.
BATCH_SIZE = 6
# Characters of a task or an answer that the rewriter sees.
MAX_CHARACTERS = 3000


@dataclass(frozen=True)
class PromptTrial:
    """A prompt with the judge's settings, and the rows of train and dev with its verdicts."""

    name: str
    prompt: str
    settings: Mapping[str, Any]
    verdicts: pd.DataFrame

    def diff(self, other: PromptTrial) -> list[str]:
        """What this prompt has less ("- ") and more ("+ ") than another one, by sentence.

        >>> rows = pd.DataFrame()
        >>> kind = PromptTrial("a", "Be kind. Read all.", {}, rows)
        >>> PromptTrial("b", "Be strict. Read all.", {}, rows).diff(kind)
        ['- Be kind.', '+ Be strict.']
        """
        lines = difflib.ndiff(other.sentences(), self.sentences())
        return [line for line in lines if line[0] in "+-"]

    def sentences(self) -> list[str]:
        """The sentences of the prompt, and a line for each setting."""
        return [
            *SENTENCE_END.split(self.prompt.strip()),
            *(f"{name} = {x}" for name, x in self.settings.items()),
        ]


class VerdictFlips(list[dict[Hashable, Any]]):
    """Verdicts that two trials do not share, broken ones first. A notebook shows them as a table.

    diff : what the prompt of the new trial has less and more.
    """

    diff: Sequence[str] = ()

    def __repr__(self) -> str:
        effects = [flip["effect"] for flip in self]
        words = ", ".join(f"{effects.count(e)} {e}" for e in FLIP_EFFECTS)
        return f"{count_of(len(self), 'verdict')} changed: {words}"

    def _repr_html_(self) -> str:
        lines = html.escape("\n".join(self.diff))
        return (
            f"<pre style='white-space:pre-wrap'>{lines}</pre>"
            f"{show(list(self), caption=repr(self)).to_html()}"
        )


@dataclass(frozen=True)
class SealedReading:
    """What the sealed test says.

    dev, test : kappa of the winner. Dev less test is its optimism: it was chosen for its dev.
    gain : of the winner over the baseline on test. sentence : what may be claimed, of the baseline
        alone its kappa on test.
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
        joined by their ids: [tasks, answers, labels]. Rows with split "test" are the sealed
        test; where no row has it, a hash of the prompt seals 30 %.
    judge : "endpoint:MODEL", "small", "replay:small", a mapping with options, or a function
        prompt, **settings -> judge.
    ledger : a file or Ledger in which verdicts are stored. prompt : where to begin (the judge's
        own). seals : the folder of test readings (beside the runs).
    rows is a DataFrame with a label each, trials name -> PromptTrial.

    >>> bench = Workbench(paths.data("judge_labels.jsonl"), judge="replay:small")
    >>> _ = bench.try_("strict", paths.data("judge_prompts", "strict.txt").read_text("utf-8"))
    >>> bench.flips("baseline", "strict")
    31 verdicts changed: 10 broken, 17 mended, 0 lost, 4 recovered
    """

    def __init__(
        self,
        labels: LabelFile | Sequence[LabelFile],
        *,
        judge: WorkbenchJudge,
        ledger: LedgerLike = None,
        prompt: str | None = None,
        seals: str | Path | None = None,
        budget: Budget | None = None,
    ):
        # A search asks the same question again and again.
        self.ledger = open_ledger(ledger)
        self.judge, self.budget = judge, budget
        self.prompt = first_prompt(judge) if prompt is None else prompt
        self.seals = Path(seals or paths.runs() / "seals")
        self.trials: dict[str, PromptTrial] = {}
        self.data, rows = label_rows(labels)
        splits = rows["task"].map({t.id: t.split for t in self.data})
        texts = rows[["prompt", "answer", "text"]].to_numpy().tolist()
        rows = rows.assign(
            part=parts_of_rows(rows["cluster"], splits == "test"),
            # A sealed row is known by its texts, whatever its ids are.
            id=list(map(fingerprint, texts)),
        )
        # Raters that do not know, or split evenly, give no label.
        self.rows = rows.dropna(subset=["human"])
        self.doubts = len(rows) - len(self.rows)
        if small := small_parts(self.rows):
            # Too few to choose on one part and to test on another: a comparison is all they carry.
            self.rows = self.rows.assign(part="dev")
        self.small, self.part = small, self.rows["part"]

    # -- trials
    def try_(
        self, name: str, prompt: str | None = None, **settings: Any
    ) -> PromptTrial:
        """Judge train and dev with this prompt and keep the result as a trial.

        prompt : default the baseline's. settings : options of the judge (how="one", temperature=1),
        or judge= another judge; cutoff=P(met) from which a verdict is met. The same trial again costs nothing.
        """
        # The baseline is in every comparison, so it is judged before anything else.
        if name != BASELINE_NAME:
            self.trial(BASELINE_NAME)
        prompt = self.prompt if prompt is None else prompt
        old = self.trials.get(name)
        if old is None:
            self.trials[name] = PromptTrial(
                name,
                prompt,
                settings,
                verdicts=self.ask(
                    self.rows[self.part != "test"], prompt, **settings
                ),
            )
        elif (old.prompt, old.settings) != (prompt, settings):
            raise DataError(
                "there is another trial of this name",
                where=name,
                fix="give it a name of its own",
            )
        return self.trials[name]

    def trial(self, name: str) -> PromptTrial:
        """A trial by its name; the baseline is judged at its first use."""
        if name == BASELINE_NAME:
            return self.try_(BASELINE_NAME)
        check_names([name], self.trials, where="trials of the workbench")
        return self.trials[name]

    def judge_of(
        self,
        prompt: str,
        *,
        cutoff: float | None = None,
        judge: WorkbenchJudge | None = None,
        **options: Any,
    ) -> Judge:
        """The judge of a trial with this prompt and these settings."""
        base = judge_with_prompt(judge or self.judge, prompt, **options)
        if cutoff is not None:
            base = {"cutoff": base, "at": cutoff}
        return judge_of(base)

    def ask(self, rows: pd.DataFrame, prompt: str, **settings: Any) -> pd.DataFrame:
        """These rows with the columns of `Verdicts.table`, and `met`: 1, 0, or NaN where unknown.

        All criteria of an answer go out together, whoever asks. They shape each other's verdicts,
        so the search finds in the ledger what a trial asked, and the other way round.
        """
        ids = set(zip(rows["task"], rows["response"], strict=True))
        verdicts = run_judge(
            self.data,
            [r for r in self.data.responses if r.ids in ids],
            judge=self.judge_of(prompt, **settings),
            ledger=self.ledger,
            budget=self.budget,
        )
        # A verdict from the ledger comes free; the ledger knows what it took.
        stored = self.ledger.get(v.key for v in verdicts if v.key)
        frame = table([stored.get(v.key or "", v) for v in verdicts])
        frame[IDS] = [v.ids for v in verdicts]
        frame = frame.assign(
            tokens=frame["tokens_in"] + frame["tokens_out"],
            # A level counts as met from .5 on.
            met=met_of(frame["value"]),
            reason=frame["reason"].fillna(""),
        )
        return rows.merge(frame, how="left", on=IDS).set_index(rows.index)

    def search(
        self,
        *,
        rows: int = 300,
        reflect: JudgeSource | Callable[[str], str] | None = None,
    ) -> list[str]:
        """Let GEPA rewrite the baseline's prompt (Agrawal et al. 2025), from the judge's mistakes on train.

        Returns the names of the trials that came of it. They compete on dev.
        rows : at most so many rows of train are judged; then each new prompt is judged as a trial.
        reflect : who rewrites, a judge's name or mapping, or a function prompt -> text (default: the
        judge's own model). Replies are in the ledger, so a search that was stopped goes on where it was.
        """
        self.need_parts("search")
        from gepa.api import optimize

        train = self.rows[self.part == "train"]
        track, feed = _tracked_and_fed(train)
        # Rows that one round may judge.
        round_size = 2 * min(BATCH_SIZE, len(feed)) + len(track)
        if rows < len(track) + round_size:
            raise DataError(
                f"{rows} rows are too few for a round",
                where="search",
                fix=f"in Python: search(rows={len(track) + round_size})",
            )
        rewriter: Any = reflect
        if not callable(reflect):
            # Without another one, the judge's own model rewrites its prompt.
            judge = judge_of(reflect or self.judge_of(self.prompt))
            rewriter = partial(
                complete, judge, ledger=self.ledger, budget=self.budget
            )
        adapter = WorkbenchAdapter(self, train)
        result: Any = optimize(
            seed_candidate={PROMPT_COMPONENT: self.prompt},
            trainset=feed,
            valset=track,
            adapter=adapter,
            reflection_lm=rewriter,
            reflection_prompt_template=REWRITE_TEMPLATE.read_text("utf-8"),
            reflection_minibatch_size=min(BATCH_SIZE, len(feed)),
            # A round that may pass the cap is not begun: its rows would be paid and not used.
            stop_callbacks=lambda state: state.total_num_evals > rows - round_size,
            # Of a minibatch without a mistake there is nothing to learn.
            perfect_score=adapter.weight.min(),
            logger=SimpleNamespace(log=_raise_first_error),
            seed=0,
            raise_on_exception=True,
        )
        # The first candidate is the prompt itself. Which of the others is used is decided on dev.
        return self._try_texts(c[PROMPT_COMPONENT] for c in result.candidates[1:])

    def _try_texts(self, texts: Iterable[str]) -> list[str]:
        """Judge each prompt of a search as a trial; the names. What is a trial already is not judged again."""
        names = {t.prompt: name for name, t in self.trials.items()}
        texts = list(dict.fromkeys(texts))
        for text in texts:
            if text not in names:
                n = sum(name.startswith("searched ") for name in self.trials)
                names[text] = self.try_(f"searched {n + 1}", text).name
        return [names[text] for text in texts]

    # -- what came of them
    def verdicts(self, name: str, part: str = "dev") -> pd.DataFrame:
        """The rows of a part with a trial's verdicts."""
        return self.trial(name).verdicts.query("part == @part")

    def agreement(self, name: str, part: str = "dev") -> Estimate:
        """Kappa of a trial with people, with its interval over prompts."""
        return kappa(self.verdicts(name, part), "met", "human", cluster="cluster")

    def table(self) -> pd.DataFrame:
        """One row a trial, the best on dev first.

        The difference to the baseline is paired by row, and its intervals hold for all trials at
        once. judged : share of dev with a known verdict. $ and tokens : what judging took, also
        where the verdicts came from the ledger.
        """
        gains, rows = self.gains(), []
        for name in self.ranked():
            verdicts = self.trials[name].verdicts
            rows.append(
                {
                    "trial": name,
                    "kappa on dev": str(self.agreement(name)),
                    "kappa on train": str(self.agreement(name, "train")),
                    "more than the baseline": str(gains.get(name, "")),
                    "judged": f"{self.verdicts(name)['met'].notna().mean():.0%}",
                    "$ per 1000": f"{1000 * verdicts['cost'].mean():.3f}",
                    "tokens": round(verdicts["tokens"].mean()),
                }
            )
        # Where the parts are too small, all rows are dev.
        return pd.DataFrame(rows).drop(
            columns=["kappa on train"] if self.small else []
        )

    def gains(self) -> dict[str, Estimate]:
        """By trial its agreement on dev less the baseline's, paired by row; the intervals hold for all at once."""
        base = self.verdicts(BASELINE_NAME)
        # Of many looks one succeeds by luck; the first trial is the baseline.
        return simultaneous_intervals(
            {n: _kappa_gain(self.verdicts(n), base) for n in list(self.trials)[1:]}
        )

    def ranked(self) -> list[str]:
        """The trials, the best on dev first; of equal ones the earlier."""
        return sorted(
            self.trials,
            key=lambda n: -np.nan_to_num(self.agreement(n).value, nan=-9),
        )

    def choose(self) -> str:
        """The best trial on dev among those that judge at least 80 % of it."""
        for name in self.ranked():
            if self.verdicts(name)["met"].notna().mean() >= MIN_JUDGED:
                return name
        return BASELINE_NAME

    def flips(self, old: str, new: str) -> VerdictFlips:
        """Verdicts on train and dev that changed from one trial to another, with both reasons.

        effect : "broken" (right before, wrong now), "mended", "lost" (unknown now), "recovered".
        """
        trials = {"before": self.trial(old), "now": self.trial(new)}
        rows = trials["now"].verdicts
        frame = pd.DataFrame(
            {
                "criterion": rows["text"],
                "answer": rows["answer"],
                "people": rows["human"].map(VERDICT_WORDS),
            }
        )
        for column, trial in trials.items():
            words = trial.verdicts["met"].map(VERDICT_WORDS)
            frame[column] = words.fillna("unknown")
            frame[f"reason {column}"] = trial.verdicts["reason"]
        # Unknown is neither right nor wrong, so these are counted apart.
        cases = {
            "lost": frame["now"] == "unknown",
            "recovered": frame["before"] == "unknown",
            "mended": frame["now"] == frame["people"],
        }
        effects = np.select(list(cases.values()), list(cases), "broken")
        frame = frame.assign(
            effect=pd.Categorical(effects, FLIP_EFFECTS),
            part=rows["part"],
            row=rows.index,
        )
        flips = VerdictFlips(
            frame[frame["now"] != frame["before"]]
            .sort_values("effect", kind="stable")
            .to_dict("records")
        )
        flips.diff = trials["now"].diff(trials["before"])
        return flips

    # -- the sealed test
    def need_parts(self, what: str) -> None:
        """DataError where there are too few prompts for train, dev and test."""
        if self.small:
            raise DataError(
                f"{self.small}; prompts with labels: {self.rows['cluster'].nunique()}",
                where=what,
                # 30 prompts of dev and 30 of test show a gain of about .3 in agreement; fewer show next to nothing.
                fix="label answers to 100 prompts or more (30 show gains above .3 only); "
                "until then table() compares all rows, with its interval",
            )

    def test(
        self, name: str | None = None, *, unseal: bool = False
    ) -> SealedReading:
        """Judge the sealed test with a trial (default: the chosen one) and the baseline, once.

        The same question again returns the stored reading. Another question on a row that was read
        is refused; unseal=True reads it all the same, and the sentence says how often.
        """
        self.need_parts("test")
        new, old = self.trial(name or self.choose()), self.trial(BASELINE_NAME)
        rows = self.rows[self.part == "test"]
        ids = sorted(rows["id"])
        request = self._request_of(ids, new, old)
        earlier = self._earlier_readings(ids)
        # Rerunning a notebook is the same question; it is not a second look.
        if request in earlier:
            return msgspec.convert(earlier[request]["result"], SealedReading)
        if earlier and not unseal:
            when = ", ".join(reading["at"] for reading in earlier.values())
            raise DataError(
                f"this test was read before ({when}) for another question",
                where=str(self.seals),
                fix="report the first reading, label new rows, or in Python test(unseal=True), and say so",
            )
        reading = self._read_test(rows, new, old, looks=len(earlier) + 1)
        # A file of its own, so that processes do not disturb each other.
        paths.write(
            self.seals / f"{request}.json",
            json.dumps(
                {
                    "request": request,
                    "rows": ids,
                    "result": msgspec.to_builtins(reading),
                    "at": time.strftime("%FT%TZ", time.gmtime()),
                }
            ),
        )
        return reading

    def _request_of(self, ids: list[str], *trials: PromptTrial) -> str:
        """What identifies a question to the sealed test: its rows, the judge, and the prompts that are compared."""
        judge = "a function" if callable(self.judge) else str(self.judge)
        prompts = [[t.prompt, plain(t.settings), []] for t in trials]
        return fingerprint([ids, judge, *prompts])

    def _earlier_readings(self, ids: Iterable[str]) -> dict[str, dict[str, Any]]:
        """Stored readings that saw one of these rows, by request, the oldest first."""
        texts = (path.read_text("utf-8") for path in self.seals.glob("*.json"))
        readings = sorted(map(json.loads, texts), key=lambda reading: reading["at"])
        # One row in common is enough: whoever saw a part of the test has seen it.
        return {r["request"]: r for r in readings if set(ids) & set(r["rows"])}

    def _read_test(
        self, rows: pd.DataFrame, new: PromptTrial, old: PromptTrial, *, looks: int
    ) -> SealedReading:
        """Judge the sealed rows with two trials. looks : how often they were read, this time included."""
        judged = self.ask(rows, new.prompt, **new.settings)
        gain = _cautious_gain(judged, self.ask(rows, old.prompt, **old.settings))
        dev = self.agreement(new.name)
        kappa_on_test = kappa(judged, "met", "human", cluster="cluster")
        sentence = f"Kappa of the baseline on the sealed test: {kappa_on_test}."
        if kappa_on_test.note:
            sentence += f" Note: {kappa_on_test.note}."
        # The baseline has no gain over itself.
        if new is not old:
            sentence = claim(gain, new=new.name, old="the baseline")
        sentence += (
            f" (Optimism, dev less test: {format_number(dev.value - kappa_on_test.value)}, "
            f"from {format_number(dev.value)} on dev.)"
        )
        if looks > 1:
            sentence += (
                f" The test was read {looks} times: this is not a sealed result."
            )
        return SealedReading(dev, kappa_on_test, gain, sentence)

    # -- to keep and to look at
    def export(self, path: str | Path, name: str | None = None) -> Path:
        """Write the prompt of a trial (default: the chosen one) as the one prompt file.

        `kit judge --prompt FILE`, `{"endpoint": MODEL, "prompt": FILE}` and training read it. Other
        settings of the trial are options of the judge and are not in it.
        """
        text = self.trial(name or self.choose()).prompt.strip()
        paths.write(self.seals / f"{fingerprint(text)}.txt", text)
        return paths.write(path, f"{text}\n")

    def has_written(self, file: Path) -> bool:
        """True for a file with the first prompt, or with one that `export` wrote, now or in an earlier run."""
        text = file.read_text("utf-8-sig").strip()
        return (
            text == self.prompt.strip()
            or (self.seals / f"{fingerprint(text)}.txt").exists()
        )

    def plot(self, **options: Any) -> Figure:
        """The agreement of all trials on dev, with intervals; the title says what the best one gained."""
        best = self.choose()
        title = f"On dev no trial agrees more with people than the baseline: {self.agreement(best)}"
        if best != BASELINE_NAME:
            title = claim(self.gains()[best], new=best, old="the baseline")
        return forest(
            {n: self.agreement(n) for n in self.ranked()},
            **{"title": title, "x": "kappa on dev", **options},
        )

    def views(self) -> dict[str, Callable[[], object]]:
        """What `kit.plots.explore` offers: the trials, and what each of them changed."""
        return {"trials": lambda: show(self.table())} | {
            f"{BASELINE_NAME} to {name}": partial(self.flips, BASELINE_NAME, name)
            for name in list(self.trials)[1:]
        }

    def __repr__(self) -> str:
        count = ", ".join(
            f"{(self.part == part).sum()} {part}" for part in PART_NAMES
        )
        notes = (
            self.small
            and f"; {self.small}: all rows are compared, there is no search and no sealed test"
        )
        if self.doubts:
            notes += f"; {count_of(self.doubts, 'label')} in doubt"
        return f"Workbench: {count_of(len(self.rows), 'label')} ({count}), {count_of(len(self.trials), 'trial')}{notes}"


def judge_with_prompt(base: WorkbenchJudge, prompt: str, **options: Any) -> Any:
    """A judge's name, mapping or function with another prompt, as `kit.judge` takes it."""
    if callable(base):
        return base(prompt, **options)
    kind, subject, more = split_spec(base)
    # Whatever prompt the mapping brought is replaced: a trial has one prompt.
    more.pop("prompt", None)
    return {kind: subject, **more, **options, "system": prompt}


def first_prompt(judge: WorkbenchJudge) -> str:
    """The prompt that a judge's name or mapping brings."""
    # A name or a mapping: each prompt makes another judge of it.
    made = judge_of(judge) if isinstance(judge, str | Mapping) else None
    prompt = getattr(made, "system", None)
    if prompt is None:
        raise DataError(
            "this judge has no prompt to begin with",
            where="workbench(judge=...)",
            fix="name an endpoint, small, server or local judge (--judge); or in Python a function and prompt=",
        )
    return str(prompt)


def _kappa_gain(new: pd.DataFrame, old: pd.DataFrame) -> Estimate:
    return agreement_difference(
        new["met"], old["met"], new["human"], cluster=new["cluster"]
    )


def _cautious_gain(new: pd.DataFrame, old: pd.DataFrame) -> Estimate:
    """The gain, with unknown verdicts left out or taken as disagreement: the one that claims less."""
    gain = _kappa_gain(new, old)
    # Who is silent where it would be wrong gains nothing.
    guesses = [f.assign(met=f["met"].fillna(1 - f["human"])) for f in (new, old)]
    return min(
        gain, _kappa_gain(*guesses), key=lambda e: np.nan_to_num(e.low, nan=-9)
    )


def parts_of_rows(
    clusters: Iterable[str], is_sealed: pd.Series
) -> NDArray[np.str_]:
    """The part (n,) of each row, by a hash of its cluster: it stays when rows are added.

    Where labels name a test of their own (is_sealed), no other row is in the test.

    >>> rows = pd.Series(["a", "b"])
    >>> parts_of_rows(rows, rows == "b").tolist()
    ['train', 'test']
    """
    places = []
    for cluster in clusters:
        # A hash, not a draw: a prompt keeps its part when others are added, so a sealed test stays sealed.
        digest = hashlib.sha256(f"0|{cluster}".encode()).digest()
        places.append(int.from_bytes(digest[:8]) / 2**64)
    part = np.array(PART_NAMES)[np.searchsorted(PART_EDGES, places, "right")]
    if is_sealed.any():
        part = np.where(part == "test", "dev", part)
        part = np.where(is_sealed, "test", part)
    return part


def small_parts(rows: pd.DataFrame) -> str:
    """Which parts have too few prompts or groups, as a sentence; empty where all have enough."""
    prompts = (
        rows.groupby("part")["cluster"].nunique().reindex(PART_NAMES, fill_value=0)
    )
    few = ", ".join(prompts.index[prompts < MIN_PROMPTS])
    return (
        f"fewer than {MIN_PROMPTS} prompts or groups fall into {few}" if few else ""
    )


def _tracked_and_fed(train: pd.DataFrame) -> tuple[list[int], list[int]]:
    """Rows on which GEPA follows its candidates, and rows that feed the rewriter, by prompt."""
    prompts = np.random.default_rng(0).permutation(sorted(set(train["cluster"])))
    is_tracked = train["cluster"].isin(prompts[: round(len(prompts) / 2)])
    return train.index[is_tracked].tolist(), train.index[~is_tracked].tolist()


class WorkbenchAdapter:
    """GEPA's view of the workbench. Rows weigh by label, so both labels count the same in a sum.

    Without weights, a judge that passes everything would win where most answers pass.
    """

    propose_new_texts: Any = None

    def __init__(self, bench: Workbench, train: pd.DataFrame):
        counts = train["human"].value_counts()
        self.bench, self.weight = bench, counts.max() / counts

    def evaluate(
        self,
        batch: list[int],
        candidate: dict[str, str],
        capture_traces: bool = False,
    ) -> EvaluationBatch[Any, Any]:
        """Each row's weight where judge and people agree, else 0; an unknown verdict is 0, too."""
        from gepa.core.adapter import EvaluationBatch

        rows = self.bench.ask(
            self.bench.rows.loc[batch], candidate[PROMPT_COMPONENT]
        )
        rows["right"] = rows["met"] == rows["human"]
        return EvaluationBatch(
            outputs=batch,
            scores=(rows["right"] * rows["human"].map(self.weight)).tolist(),
            trajectories=list(map(_lesson_of_row, rows.itertuples()))
            if capture_traces
            else None,
        )

    def make_reflective_dataset(
        self,
        candidate: dict[str, str],
        batch: EvaluationBatch[Any, Any],
        components: list[str],
    ) -> dict[str, Sequence[dict[str, Any]]]:
        """What the rewriter sees of each row."""
        return dict.fromkeys(components, batch.trajectories or [])


def _lesson_of_row(row: Any) -> dict[str, Any]:
    return {
        "Inputs": {
            "Task": row.prompt[:MAX_CHARACTERS],
            "Answer": row.answer[:MAX_CHARACTERS],
            "Criterion": row.text,
        },
        "Generated Outputs": {
            "Verdict": REWRITER_WORDS.get(row.met, "unknown"),
            "Reason": row.reason[:MAX_CHARACTERS],
        },
        "Feedback": f"{'Right' if row.right else 'Wrong'}: people say {REWRITER_WORDS[row.human]}.",
    }


def _raise_first_error(message: str) -> None:
    """GEPA logs what a rewriter raises, and goes on; here the first error ends the search."""
    if error := sys.exception():
        raise error
