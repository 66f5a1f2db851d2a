"""KL estimators on sampled tokens, with d = log pi - log pi_ref clamped to +-40 (Schulman 2020,
"Approximating KL divergence").

k1 = d: unbiased, may be negative. k2 = d^2 / 2: biased, low variance; its gradient as a loss is
that of the true KL. k3 = exp(-d) - 1 + d: unbiased, never negative.
"""

from __future__ import annotations

from typing import Any

ESTIMATES = {
    "k1": lambda d: d,
    "k2": lambda d: d * d / 2,
    "k3": lambda d: (-d).exp() - 1 + d,
}
CLAMP = 40.0


def estimate(logp: Any, ref_logp: Any, name: str) -> Any:
    """Per-token estimate of KL(pi || pi_ref), same shape as the log-probabilities (natural
    logarithm).
    """
    return ESTIMATES[name]((logp - ref_logp).clamp(-CLAMP, CLAMP))
