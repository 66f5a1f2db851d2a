"""The t quantile of every interval: our own where importing scipy would take longer than the work."""

from __future__ import annotations

import subprocess
import sys

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import special

from kit.stats.tails import t_quantile


@settings(deadline=None)  # the first call imports scipy
@given(st.floats(0.5, 0.9999), st.floats(1.0, 600.0))
def test_the_quantile_is_scipys(level, df):
    assert t_quantile(level, df) == pytest.approx(special.stdtrit(df, (1 + level) / 2), rel=1e-9)


def test_a_mean_with_its_interval_needs_no_scipy():
    """`kit judge` of 200 stored answers spent half of its time on importing scipy.special."""
    code = (
        "import sys; from kit import stats; print(stats.mean([0., 1., 1.], cluster=[1, 2, 3]).n,"
        " 'scipy.special' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["3", "False"]
