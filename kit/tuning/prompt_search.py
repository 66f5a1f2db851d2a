"""Better prompts for a judge: GEPA rewrites them from the judge's mistakes (Agrawal et al. 2025),
or labelled examples are added. Only train is used. What comes of it competes as trials on dev.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, cast

import numpy as np
import pandas as pd

from ..errors import DataError
from ..judging import JudgeSource, Usage, complete, estimate, judge_of

if TYPE_CHECKING:
    from gepa.core.adapter import EvaluationBatch
    from gepa.core.result import GEPAResult
    from gepa.proposer.reflective_mutation.base import LanguageModel

    from .workbench import Workbench

# GEPA's name of the text that it rewrites.
PROMPT_COMPONENT = "instructions"
REWRITE_TEMPLATE = Path(__file__).with_name("rewrite.txt")
# To the rewriter; judges write "unmet".
VERDICT_WORDS = {1.0: "met", 0.0: "not met"}
# Mistakes that one rewrite sees; the recorded search used as many.
BATCH_SIZE = 6
# Characters of a task or an answer that the rewriter sees.
MAX_CHARACTERS = 3000


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
        scores = (rows["right"] * rows["human"].map(self.weight)).tolist()
        lessons = list(map(_lesson_of_row, rows.itertuples()))
        return EvaluationBatch(
            outputs=batch,
            scores=scores,
            trajectories=lessons if capture_traces else None,
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
    task, answer = row.prompt[:MAX_CHARACTERS], row.answer[:MAX_CHARACTERS]
    side = "Right" if row.right else "Wrong"
    return {
        "Inputs": {"Task": task, "Answer": answer, "Criterion": row.text},
        "Generated Outputs": {
            "Verdict": VERDICT_WORDS.get(row.met, "unknown"),
            "Reason": row.reason[:MAX_CHARACTERS],
        },
        "Feedback": f"{side}: people say {VERDICT_WORDS[row.human]}.",
    }


def search(
    bench: Workbench,
    *,
    rows: int = 300,
    reflect: JudgeSource | Callable[[str], str] | None = None,
    dry: bool = False,
) -> list[str] | Usage:
    """Let GEPA rewrite the baseline's prompt. Returns the names of the trials that came of it.

    rows : at most so many rows of train are judged; then each new prompt is judged as a trial.
    reflect : who rewrites, a judge's name or mapping, or a function prompt -> text (default: the
    judge's own model). dry : True returns a `Usage`, the most that it may take, and judges
    nothing. Replies are in the ledger, so a search that was stopped goes on where it was.
    """
    bench.need_parts("search")
    train = bench.usable(bench.rows, "train")
    track, feed = _halves_by_prompt(train)
    # Rows that one round may judge.
    round_size = 2 * min(BATCH_SIZE, len(feed)) + len(track)
    if rows < len(track) + round_size:
        raise DataError(
            f"{rows} rows are too few for a round",
            where="search",
            fix=f"rows={len(track) + round_size}",
        )
    # Without another one, the judge's own model rewrites its prompt.
    judge = bench.judge_of(bench.prompt)
    if dry:
        rounds = (rows - len(track)) // round_size
        n = rows + rounds * int((bench.part != "test").sum())
        whole = estimate(bench.data, bench.answers(train), judge=judge)
        # Round up: a forecast may be too high, never too low.
        return sum([whole] * math.ceil(n / len(train)), Usage())
    writer = reflect
    if not callable(writer):
        rewriter = judge_of(writer or judge)
        writer = partial(
            complete, rewriter, ledger=bench.ledger, budget=bench.budget
        )
    texts = _rewritten_prompts(
        WorkbenchAdapter(bench, train), track, feed, writer, rows - round_size
    )
    # Prompts that are trials already are not judged again.
    names = {t.prompt: name for name, t in bench.trials.items()}
    for text in texts:
        if text not in names:
            n = sum(name.startswith("searched ") for name in bench.trials) + 1
            names[text] = bench.try_(f"searched {n}", text).name
    return [names[text] for text in texts]


def _halves_by_prompt(train: pd.DataFrame) -> tuple[list[int], list[int]]:
    """Rows on which GEPA follows its candidates, and rows that feed the rewriter."""
    prompts = np.random.default_rng(0).permutation(sorted(set(train["cluster"])))
    is_tracked = train["cluster"].isin(prompts[: round(len(prompts) / 2)])
    return train[is_tracked].index.tolist(), train[~is_tracked].index.tolist()


def _rewritten_prompts(
    adapter: WorkbenchAdapter,
    track: list[int],
    feed: list[int],
    writer: Callable[[str], str],
    last_round_at: int,
) -> list[str]:
    """The prompts that GEPA accepts, in their order. last_round_at : rows after which no round begins."""
    from gepa.api import optimize

    result: GEPAResult[Any, Any] = optimize(
        seed_candidate={PROMPT_COMPONENT: adapter.bench.prompt},
        trainset=feed,
        valset=track,
        adapter=adapter,
        reflection_lm=cast("LanguageModel", writer),
        reflection_prompt_template=REWRITE_TEMPLATE.read_text("utf-8"),
        reflection_minibatch_size=min(BATCH_SIZE, len(feed)),
        # A round that may pass the cap is not begun: its rows would be paid and not used.
        stop_callbacks=lambda state: state.total_num_evals > last_round_at,
        # Of a minibatch without a mistake there is nothing to learn.
        perfect_score=adapter.weight.min(),
        logger=SimpleNamespace(log=_raise_first_error),
        seed=0,
        raise_on_exception=True,
    )
    # The first candidate is the prompt itself. Which of the others is used is decided on dev.
    texts = (candidate[PROMPT_COMPONENT] for candidate in result.candidates[1:])
    return list(dict.fromkeys(texts))


def _raise_first_error(message: str) -> None:
    """GEPA logs what a rewriter raises, and goes on; here the first error ends the search."""
    if error := sys.exception():
        raise error


def examples(bench: Workbench, k: int = 4) -> str:
    """The prompt with k labelled examples of train, met and unmet by turns: `try_("shown", ...)`."""
    bench.need_parts("examples")
    rows = bench.usable(bench.rows, "train").sample(frac=1, random_state=0)
    # By turns, or the judge would learn that most verdicts are alike.
    rows["turn"] = rows.groupby("human").cumcount()
    picks = rows.sort_values(["turn", "human"], ascending=[True, False]).head(k)
    lines = [bench.prompt, "Examples of verdicts on other tasks:"]
    for row in picks.itertuples():
        verdict = "met" if row.human else "unmet"
        lines.append(
            f"Criterion: {row.text}\nAnswer: {str(row.answer)[:400]}\nVerdict: {verdict}"
        )
    return "\n\n".join(lines)
