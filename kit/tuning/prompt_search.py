"""Better prompts for a judge: GEPA rewrites them from the judge's mistakes (Agrawal et al. 2025).

Only train is used. What comes of it competes as trials on dev.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from ..errors import DataError
from ..judging import JudgeSource, complete, judge_of

if TYPE_CHECKING:
    from gepa.core.adapter import EvaluationBatch

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
    side = "Right" if row.right else "Wrong"
    return {
        "Inputs": {
            "Task": row.prompt[:MAX_CHARACTERS],
            "Answer": row.answer[:MAX_CHARACTERS],
            "Criterion": row.text,
        },
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
) -> list[str]:
    """Let GEPA rewrite the baseline's prompt. Returns the names of the trials that came of it.

    rows : at most so many rows of train are judged; then each new prompt is judged as a trial.
    reflect : who rewrites, a judge's name or mapping, or a function prompt -> text (default: the
    judge's own model). Replies are in the ledger, so a search that was stopped goes on where it was.
    """
    bench.need_parts("search")
    train = bench.rows[bench.part == "train"]
    # Rows on which GEPA follows its candidates, and rows that feed the rewriter, by prompt.
    prompts = np.random.default_rng(0).permutation(sorted(set(train["cluster"])))
    is_tracked = train["cluster"].isin(prompts[: round(len(prompts) / 2)])
    track = train.index[is_tracked].tolist()
    feed = train.index[~is_tracked].tolist()
    # Rows that one round may judge.
    round_size = 2 * min(BATCH_SIZE, len(feed)) + len(track)
    if rows < len(track) + round_size:
        raise DataError(
            f"{rows} rows are too few for a round",
            where="search",
            fix=f"rows={len(track) + round_size}",
        )
    writer: Any = reflect
    if not callable(writer):
        # Without another one, the judge's own model rewrites its prompt.
        writer = partial(
            complete,
            judge_of(writer or bench.judge_of(bench.prompt)),
            ledger=bench.ledger,
            budget=bench.budget,
        )
    from gepa.api import optimize

    adapter = WorkbenchAdapter(bench, train)
    result: Any = optimize(
        seed_candidate={PROMPT_COMPONENT: bench.prompt},
        trainset=feed,
        valset=track,
        adapter=adapter,
        reflection_lm=writer,
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
    texts = dict.fromkeys(c[PROMPT_COMPONENT] for c in result.candidates[1:])
    # Prompts that are trials already are not judged again.
    names = {t.prompt: name for name, t in bench.trials.items()}
    for text in texts:
        if text not in names:
            n = sum(name.startswith("searched ") for name in bench.trials) + 1
            names[text] = bench.try_(f"searched {n}", text).name
    return [names[text] for text in texts]


def _raise_first_error(message: str) -> None:
    """GEPA logs what a rewriter raises, and goes on; here the first error ends the search."""
    if error := sys.exception():
        raise error
