"""The names of the front door: what each does, where it lives, and which notebook teaches it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

STEPS = {
    "look": "01_inspect_rubrics",
    "judge": "02_tune_judge",
    "train": "03_train_grpo",
    "calibrate": "04_plot_calibration",
    "compare": "05_compare_runs",
    "always": "all",
}


@dataclass(frozen=True)
class Door:
    """One name of `kit`: its step, the module and name behind it, and a line on what it does."""

    name: str
    step: str
    where: str
    does: str

    @property
    def target(self) -> tuple[str, str]:
        """Module (relative to kit) and name behind it; the whole module where no name is given."""
        module, _, name = self.where.partition(":")
        return f".{module}", name


DOORS = (
    Door("load", "look", "data.load:load_tasks", "read a rubric set of any known format"),
    Door("save", "look", "data.load:save_tasks", "write a rubric set in the kit's format"),
    Door("summarize", "look", "rubrics.summary:summarize", "what a rubric set contains"),
    Door("lint", "look", "rubrics.lint:lint", "what is wrong with it, and what to do"),
    Door("check", "look", "checks:check", "one criterion decided by code"),
    Door("checks", "look", "checks", "the checks by code; `checks.register` adds your own"),
    Door("split", "look", "verbs:split", "hold tasks out, with a manifest that proves it"),
    Door("only", "look", "verbs:only", "the tasks with only some of their criteria"),
    Door("judge", "judge", "judge", "verdicts of a judge on answers, through a ledger"),
    Door("ajudge", "judge", "judge.run:ajudge", "the same for asynchronous code"),
    Door("estimate", "judge", "judge.run:estimate", "what judging would cost; nothing is sent"),
    Door("judge_of", "judge", "judge.factory:judge_of", "a judge from its name or settings"),
    Door("Ledger", "judge", "judge.ledger:Ledger", "where verdicts are kept: none is paid twice"),
    Door("Budget", "judge", "judge.prices:Budget", "caps on calls, tokens, dollars"),
    Door("audit", "judge", "judge.audit:audit", "attacks and biases of a judge, as rates"),
    Door("agree", "judge", "stats.report:agree", "agreement of a judge with people, in full"),
    Door("agreement", "judge", "people.agreement:agreement", "grades beside people's labels"),
    Door("rate", "judge", "people.rate:rate", "pass rate and score, corrected by people's labels"),
    Door("view", "judge", "people.view:view", "grades as one page: answers, verdicts, reasons"),
    Door("draw", "judge", "people.draw:draw", "what people should label next, and its worth"),
    Door("kappa", "judge", "stats.agreement:kappa", "agreement beyond chance, with interval"),
    Door("Study", "judge", "tuning.study:Study", "choose on dev, read the sealed test once"),
    Door("workbench", "judge", "tuning.bench:Workbench", "change a judge's prompt, see what flips"),
    Door("grade", "train", "verbs:grade", "verdicts to rewards; unknown makes an interval"),
    Door("Composer", "train", "rewards.composer:Composer", "a reward: components, weights, gates"),
    Door("trivial", "train", "verbs:trivial", "what a reward pays to answers without skill"),
    Door("reward_function", "train", "train.functions:reward_function", "for TRL, verl and others"),
    Door("train", "train", "train", "GRPO on rubric rewards, measured on held-out prompts"),
    Door("reliability", "calibrate", "calibration.reliability:reliability", "reliability diagram"),
    Door("ece", "calibrate", "calibration.ece:ece", "calibration error, interval and null"),
    Door("sensitivity", "calibrate", "calibration.reliability:sensitivity", "ECE by binning"),
    Door("recalibrate", "calibrate", "calibration.recalibrate:recalibrate", "mend a confidence"),
    Door("risk_coverage", "calibrate", "calibration.selective:risk_coverage", "errors by coverage"),
    Door("stated", "calibrate", "confidence.reader:extract_all", "confidence stated in words"),
    Door("start", "compare", "runs:start", "begin a run: a folder, a profile, its record"),
    Door("runs", "compare", "runs", "find, load and compare runs"),
    Door("mean", "always", "stats.rates:mean", "a mean with a clustered interval"),
    Door("Estimate", "always", "stats.estimate:Estimate", "value, interval, n, how computed"),
    Door("table", "always", "tables:table", "verdicts or grades as a tidy DataFrame"),
    Door("each", "always", "tables:each", "a statistic for each judge, source, kind ..."),
    Door("show", "always", "tables:show", "anything as a table that shows itself, texts whole"),
    Door("plot", "always", "plots:plot", "a figure of any result"),
    Door("guide", "always", "front:guide", "this table"),
)


class Guide(tuple[Door, ...]):
    """The front door as a table, by step."""

    def _rows(self) -> Iterator[tuple[str, str, str]]:
        for door in self:
            yield STEPS[door.step], f"kit.{door.name}", door.does

    def _repr_html_(self) -> str:
        from .tables import rows_html

        return rows_html(("notebook", "name", "what it does"), list(self._rows()))

    def __repr__(self) -> str:
        lines = []
        for step, notebook in STEPS.items():
            lines.append(f"{step} (notebook {notebook})" if notebook != "all" else step)
            lines += [f"  kit.{d.name:<16}{d.does}" for d in self if d.step == step]
        return "\n".join(lines)


def guide(step: str | None = None) -> Guide:
    """The verbs and nouns of `kit` by step, with the notebook that teaches each.

    step : "look", "judge", "train", "calibrate", "compare" or "always"; None = all.

    >>> guide("look")[0].name
    'load'
    """
    return Guide(door for door in DOORS if step in (None, door.step))
