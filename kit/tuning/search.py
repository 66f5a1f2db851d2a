"""Better prompts for a judge: GEPA rewrites them from the judge's mistakes (Agrawal et al. 2025),
or labelled examples are added. Only train is used. What comes of it competes as trials on dev.
"""

from __future__ import annotations

import sys
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd

from ..errors import DataError
from ..judging import Usage, complete, estimate, judge_of

COMPONENT = "instructions"
TEMPLATE = Path(__file__).with_name("rewrite.txt")
WORDS = {1.0: "met", 0.0: "not met"}  # to the rewriter; judges write "unmet"
BATCH = 6  # mistakes that one rewrite sees; the recorded search used as many
CUT = 3000  # characters of a task or an answer that the rewriter sees


class Adapter:
    """GEPA's view of the workbench. Rows weigh by label, so both labels count the same in a sum.

    Without weights, a judge that passes everything would win where most answers pass.
    """

    propose_new_texts = None

    def __init__(self, bench: Any, train: pd.DataFrame):
        n = train["human"].value_counts()
        self.bench, self.weight = bench, n.max() / n

    def evaluate(
        self,
        batch: list[int],
        candidate: dict[str, str],
        capture_traces: bool = False,
    ) -> Any:
        """Each row's weight where judge and people agree, else 0; an unknown verdict is 0, too."""
        from gepa.core.adapter import EvaluationBatch

        rows = self.bench.ask(self.bench.rows.loc[batch], candidate[COMPONENT])
        rows["right"] = rows["met"] == rows["human"]
        scores = (rows["right"] * rows["human"].map(self.weight)).tolist()
        lessons = [_lesson(row) for row in rows.itertuples()]
        traces = lessons if capture_traces else None
        return EvaluationBatch(outputs=batch, scores=scores, trajectories=traces)

    def make_reflective_dataset(
        self, candidate: Any, batch: Any, components: list[str]
    ) -> dict[str, list[dict[str, Any]]]:
        """What the rewriter sees of each row."""
        return dict.fromkeys(components, batch.trajectories)


def _lesson(row: Any) -> dict[str, Any]:
    task, answer = row.prompt[:CUT], row.answer[:CUT]
    verdict = WORDS.get(row.met, "unknown")
    side = "Right" if row.right else "Wrong"
    return {
        "Inputs": {"Task": task, "Answer": answer, "Criterion": row.text},
        "Generated Outputs": {"Verdict": verdict, "Reason": row.reason[:CUT]},
        "Feedback": f"{side}: people say {WORDS[row.human]}.",
    }


def search(
    bench: Any, *, rows: int = 300, reflect: Any = None, dry: bool = False
) -> Any:
    """Let GEPA rewrite the baseline's prompt. Returns the names of the trials that came of it.

    rows : at most so many rows of train are judged; then each new prompt is judged as a trial.
    reflect : who rewrites, a judge's name or mapping, or a function prompt -> text (default: the
    judge's own model). dry : True returns a `Usage`, the most that it may take, and judges
    nothing. Replies are in the ledger, so a search that was stopped goes on where it was.
    """
    import gepa

    bench.need_parts("search")
    train = bench.usable(bench.rows, "train")
    # GEPA follows its candidates on half of the prompts; the other half feeds the rewriter
    prompts = np.random.default_rng(0).permutation(sorted(set(train["cluster"])))
    is_front = train["cluster"].isin(prompts[: round(len(prompts) / 2)])
    track, feed = train[is_front].index.tolist(), train[~is_front].index.tolist()
    batch = min(BATCH, len(feed))
    once = 2 * batch + len(track)  # rows that one round may judge
    if rows < len(track) + once:
        raise DataError(
            f"{rows} rows are too few for a round",
            where="search",
            fix=f"rows={len(track) + once}",
        )
    # Without another one, the judge's own model rewrites its prompt.
    judge = bench.judge_of(bench.prompt)
    if dry:
        whole = estimate(bench.data, bench.answers(train), judge=judge)
        trials = (rows - len(track)) // once
        n = rows + trials * int((bench.part != "test").sum())
        # Round up: a forecast may be too high, never too low.
        return sum([whole] * -(-n // len(train)), Usage())
    writer = reflect
    if not callable(reflect):
        options = {"ledger": bench.ledger, "budget": bench.budget}
        writer = partial(complete, judge_of(reflect or judge), **options)

    def log(message: str) -> None:
        """GEPA logs what a rewriter raises, and goes on; here the first error ends the search."""
        if error := sys.exception():
            raise error

    adapter = Adapter(bench, train)
    result = gepa.optimize(
        seed_candidate={COMPONENT: bench.prompt},
        trainset=feed,
        valset=track,
        adapter=adapter,
        reflection_lm=writer,
        reflection_prompt_template=TEMPLATE.read_text("utf-8"),
        reflection_minibatch_size=batch,
        # A round that may pass the cap is not begun: its rows would be paid and not used.
        stop_callbacks=lambda state: state.total_num_evals > rows - once,
        # Of a minibatch without a mistake there is nothing to learn.
        perfect_score=adapter.weight.min(),
        logger=SimpleNamespace(log=log),
        seed=0,
        raise_on_exception=True,
    )
    # The first candidate is the prompt itself. Which of the others is used is decided on dev.
    texts = dict.fromkeys(c[COMPONENT] for c in result.candidates[1:])
    names = {t.prompt: name for name, t in bench.trials.items()}
    for text in texts:
        if text not in names:
            n = sum(name.startswith("searched ") for name in bench.trials) + 1
            names[text] = bench.try_(f"searched {n}", text).name
    return [names[text] for text in texts]


def examples(bench: Any, k: int = 4) -> str:
    """The prompt with k labelled examples of train, met and unmet by turns: `try_("shown", ...)`."""
    bench.need_parts("examples")
    rows = bench.usable(bench.rows, "train").sample(frac=1, random_state=0)
    # By turns, or the judge would learn that most verdicts are alike.
    rows["turn"] = rows.groupby("human").cumcount()
    picks = rows.sort_values(["turn", "human"], ascending=[True, False]).head(k)
    lines = [bench.prompt, "Examples of verdicts on other tasks:"]
    for r in picks.itertuples():
        verdict = "met" if r.human else "unmet"
        texts = f"Criterion: {r.text}\nAnswer: {r.answer[:400]}"
        lines.append(f"{texts}\nVerdict: {verdict}")
    return "\n\n".join(lines)
