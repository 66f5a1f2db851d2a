"""A published calibration claim, recomputed from its own files (see kit.calibration.published)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import numpy as np

from .ece import ECE, ece

if TYPE_CHECKING:
    from .published import Evaluation

THEIRS = [i * 0.1 for i in range(11)]  # a little above .3, .6 and .7
NAMED = 40  # characters of a file's name that tell it from the others


def recompute(files: Iterable[Evaluation], *, seed: int = 0) -> list[dict[str, Any]]:
    """One row per file: ECE with exact edges, with the edges as published, interval, null value."""
    rows = []
    for e in files:
        exact = ece(e.conf, e.correct(), bins=10, closed="left", seed=seed)
        theirs = ece(e.conf, e.correct(), edges=THEIRS, closed="left", n_boot=0)
        note = f"plug-in {exact.value:.6f}; with edges i*0.1 as published {theirs.value:.6f}"
        numbers = {"exact edges": exact.value, "as published": theirs.value}
        limits = {"low": exact.low, "high": exact.high, "calibrated": exact.null}
        rows.append({"file": e.name[:NAMED], "n": exact.n, **numbers, **limits})
        rows[-1] |= {"ece": exact, "note": note}
    return rows


def without_confidence(e: Evaluation, *, seed: int = 0) -> ECE:
    """ECE against a correctness that does not itself contain the confidence."""
    correct = np.array(e.correct_without(), dtype=float)
    known = ~np.isnan(correct)
    return ece(np.array(e.conf)[known], correct[known], bins=10, closed="left", seed=seed)


def claim(e: Evaluation, honest: ECE) -> str:
    """What the recomputed interval says of the published comparison, in words."""
    before, after = e.baseline.get("sft_ece"), e.published["ece"]
    interval = f"[{honest.low:.2f}, {honest.high:.2f}]"
    holds = "it holds" if honest.low <= before <= honest.high else "it does not hold"
    return (
        f"published: SFT {before}, GRPO {after:.3f}. With n={honest.n} the interval for GRPO is "
        f"{interval}; {holds} the SFT value, and the SFT value has an interval of its own that was "
        "not published."
    )
