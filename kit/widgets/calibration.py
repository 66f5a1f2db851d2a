"""A reliability diagram with the number of bins as a slider; all diagrams are computed before."""

from __future__ import annotations

from typing import Any

from ..calibration import reliability
from ..plots import calibration as plots
from . import drawn, twinned

COUNTS = (5, 8, 10, 15, 20, 30)


def at_bins(conf: Any, correct: Any, *, bins: int = 10, cluster: Any = None) -> Any:
    """The binned diagram with this many bins; conf (n,) in [0, 1], correct (n,) 1 / 0."""
    found = reliability(conf, correct, bins=bins, cluster=cluster, n_boot=100)
    return plots.reliability(found, kind="binned", title=f"Reliability, {bins} bins")


@twinned(at_bins)
def bins_explorer(conf: Any, correct: Any, *, cluster: Any = None) -> Any:
    """A slider of the number of bins over `at_bins`; headless, ten bins."""
    import ipywidgets as w

    figures = {n: at_bins(conf, correct, bins=n, cluster=cluster) for n in COUNTS}
    slider = w.SelectionSlider(options=COUNTS, value=10, description="bins")
    return w.VBox([slider, drawn(lambda: figures[slider.value], slider)])
