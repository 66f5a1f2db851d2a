"""KL estimators on sampled tokens, with d = log pi - log pi_ref clamped to +-40 (Schulman 2020,
"Approximating KL divergence").

k1 = d: unbiased, may be negative. k2 = d^2 / 2: biased, low variance; its gradient as a loss is
that of the true KL. k3 = exp(-d) - 1 + d: unbiased, never negative.
"""

from __future__ import annotations

from typing import Any

from ..errors import KitError
from ..settings.read import nearest

NAMES = ("k1", "k2", "k3")
CLAMP = 40.0


def estimate(logp: Any, ref_logp: Any, name: str) -> Any:
    """Per-token estimate of KL(pi || pi_ref), same shape as the log-probabilities (natural
    logarithm).
    """
    d = (logp - ref_logp).clamp(-CLAMP, CLAMP)
    if name == "k1":
        return d
    if name == "k2":
        return d * d / 2
    if name == "k3":
        return (-d).exp() - 1 + d
    raise KitError(
        f"there is no KL estimator {name!r}", where="setting kl", fix=nearest(name, list(NAMES))
    )
