"""Better prompts for a judge: GEPA rewrites them from the judge's mistakes (Agrawal et al. 2025),
or labelled examples are added. Only train is used. What comes of it competes as trials on dev.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np

from ..errors import DataError, MissingError
from ..judging import Forecast, complete, estimate, judge_of
from ..judging.factory import parts
from ..records import Verdict
from .labels import Row

COMPONENT = "instructions"
TEMPLATE = Path(__file__).with_name("rewrite.txt")
WORDS = {1.0: "met", 0.0: "not met"}
BATCH = 6  # mistakes that one rewrite sees; the recorded search used as many
CUT = 3000  # characters of a task or an answer that the rewriter sees


class Adapter:
    """GEPA's view of the workbench. Rows weigh by label, so both labels count the same in a sum.

    Without weights, a judge that passes everything would win where most answers pass.
    """

    propose_new_texts = None

    def __init__(self, bench: Any, rows: list[Row]):
        n = {label: sum(r.human == label for r in rows) for label in WORDS}
        if not min(n.values()):
            message = "all labels of train are alike"
            raise DataError(message, where="search", fix="label more")
        self.bench, most = bench, max(n.values())
        self.weight = {label: most / k for label, k in n.items()}

    def evaluate(
        self,
        batch: list[Row],
        candidate: dict[str, str],
        capture_traces: bool = False,
    ) -> Any:
        """Each row's weight where judge and people agree, else 0; an unknown verdict is 0, too."""
        from gepa.core.adapter import EvaluationBatch

        judge = with_prompt(self.bench.judge, candidate[COMPONENT])
        verdicts = self.bench.ask(judge, batch)
        pairs = list(zip(batch, verdicts, strict=True))
        scores = [self.weight[r.human] * _agrees(r, v) for r, v in pairs]
        traces = pairs if capture_traces else None
        return EvaluationBatch(outputs=verdicts, scores=scores, trajectories=traces)

    def make_reflective_dataset(
        self, candidate: Any, batch: Any, components: list[str]
    ) -> dict[str, list[dict[str, Any]]]:
        """What the rewriter sees of each row."""
        lessons = [_lesson(r, v) for r, v in batch.trajectories or []]
        return dict.fromkeys(components, lessons)


def _agrees(row: Row, v: Verdict) -> bool:
    return v.value is not None and (v.value >= 0.5) == (row.human == 1.0)


def _lesson(row: Row, v: Verdict) -> dict[str, Any]:
    inputs = {"Task": row.task.prompt[:CUT], "Answer": row.response.text[:CUT]}
    inputs["Criterion"] = row.criterion.text
    verdict = "unknown" if v.value is None else WORDS[float(v.value >= 0.5)]
    output = {"Verdict": verdict, "Reason": (v.reason or "")[:CUT]}
    side = "Right" if _agrees(row, v) else "Wrong"
    feedback = f"{side}: people say {WORDS[row.human]}."
    return {"Inputs": inputs, "Generated Outputs": output, "Feedback": feedback}


def search(
    bench: Any,
    *,
    rows: int = 300,
    reflect: Any = None,
    dry: bool = False,
) -> Any:
    """Let GEPA rewrite the baseline's prompt. Returns the names of the trials that came of it.

    rows : at most so many rows of train are judged; then each new prompt is judged as a trial.
    reflect : who rewrites, a judge's name or mapping, or a function prompt -> text (default: the
    judge's own model). dry : True returns a Forecast, the most that it may take, and judges
    nothing. Replies are in the ledger, so a search that was stopped goes on where it was.
    """
    try:
        import gepa
    except ImportError:
        raise MissingError(
            "the search needs gepa", fix="pip install gepa"
        ) from None
    bench.need_parts("search")
    train = _train(bench)
    # GEPA follows its candidates on half of the prompts; the other half feeds the rewriter
    prompts = sorted({r.cluster for r in train})
    order = np.random.default_rng(0).permutation(len(prompts))
    front = {prompts[i] for i in order[: round(len(prompts) / 2)]}
    feed = [r for r in train if r.cluster not in front]
    track = [r for r in train if r.cluster in front]
    batch = min(BATCH, len(feed))
    once = 2 * batch + len(track)  # rows that one round may judge
    if rows < len(track) + once:
        least = len(track) + once
        raise DataError(
            f"{rows} rows are too few for a round",
            where="search",
            fix=f"rows={least}",
        )
    if dry:
        return _forecast(bench, train, rows, (rows - len(track)) // once)
    writer = reflect
    if not callable(reflect):
        # Without another one, the judge's own model rewrites its prompt.
        writer = judge_of(reflect or with_prompt(bench.judge, bench.prompt))
    adapter, failures = Adapter(bench, train), []

    def rewrite(prompt: Any) -> str:
        """GEPA swallows what a rewriter raises and goes on; here the first error ends the search."""
        try:
            if callable(writer):
                return writer(str(prompt))
            return complete(
                writer, str(prompt), ledger=bench.ledger, budget=bench.budget
            )
        except Exception as e:
            failures.append(e)
            raise

    result = gepa.optimize(
        seed_candidate={COMPONENT: bench.prompt},
        trainset=feed,
        valset=track,
        adapter=adapter,
        reflection_lm=rewrite,
        reflection_prompt_template=TEMPLATE.read_text("utf-8"),
        reflection_minibatch_size=batch,
        # A round that may pass the cap is not begun: its rows would be paid and not used.
        stop_callbacks=lambda state: (
            bool(failures) or state.total_num_evals > rows - once
        ),
        # Of a minibatch without a mistake there is nothing to learn.
        perfect_score=min(adapter.weight.values()),
        logger=SimpleNamespace(log=lambda message: None),
        seed=0,
        raise_on_exception=True,
    )
    if failures:
        raise failures[0]
    # The first candidate is the prompt itself. Which of the others is used is decided on dev.
    texts = dict.fromkeys(c[COMPONENT] for c in result.candidates[1:])
    names = {t.prompt: name for name, t in bench.trials.items()}
    for text in texts:
        if text not in names:
            n = sum(name.startswith("searched ") for name in bench.trials) + 1
            names[text] = bench.try_(f"searched {n}", text).name
    return [names[text] for text in texts]


def _train(bench: Any) -> list[Row]:
    """The rows of train whose labels nobody doubts."""
    usable = (bench.part == "train") & ~np.isnan(bench.labels())
    return [bench.rows[i] for i in np.flatnonzero(usable)]


def _forecast(bench: Any, train: list[Row], rows: int, trials: int) -> Forecast:
    """Judging train once, as often as the rows and the new trials amount to."""
    answers = {r.response.ids: r.response for r in train}.values()
    tasks = {r.task.id: r.task for r in train}.values()
    once = estimate(tasks, answers, judge=with_prompt(bench.judge, bench.prompt))
    n = rows + trials * int((bench.part != "test").sum())
    # Round up: a forecast may be too high, never too low.
    return sum([once] * -(-n // len(train)), Forecast())


def examples(bench: Any, k: int = 4) -> str:
    """The prompt with k labelled examples of train, met and unmet by turns: `try_("shown", ...)`."""
    bench.need_parts("examples")
    train = _train(bench)
    rows = [train[i] for i in np.random.default_rng(0).permutation(len(train))]
    sides = [[r for r in rows if r.human == label] for label in WORDS]
    # By turns, or the judge would learn that most verdicts are alike.
    picks = [r for pair in zip(*sides, strict=False) for r in pair][:k]
    lines = []
    for r in picks:
        verdict = "met" if r.human else "unmet"
        texts = f"Criterion: {r.criterion.text}\nAnswer: {r.response.text[:400]}"
        lines.append(f"{texts}\nVerdict: {verdict}")
    return "\n\n".join(
        [bench.prompt, "Examples of verdicts on other tasks:", *lines]
    )


def first_prompt(judge_: Any) -> str:
    """The prompt that a judge has now. The judge is a name or a mapping: each prompt makes another."""
    by_name = isinstance(judge_, str | Mapping)
    text = getattr(judge_of(judge_), "system", None) if by_name else None
    if text is None:
        raise DataError(
            "this judge has no prompt to begin with",
            where="workbench(judge=...)",
            fix="name an endpoint, small, server or local judge; or give a function and prompt=",
        )
    return text


def with_prompt(judge_: Any, prompt: str, **settings: Any) -> Any:
    """A judge, or its mapping, with this prompt and these settings."""
    if callable(judge_):
        return judge_(prompt, **settings)
    kind, subject, options = parts(judge_)
    # Whatever prompt the mapping brought is replaced: a trial has one prompt.
    options = {k: v for k, v in options.items() if k not in ("prompt", "system")}
    return {kind: subject, **options, **settings, "system": prompt}
