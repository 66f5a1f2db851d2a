"""The rewards of the three systems, and the kit's own default, as configs."""

from __future__ import annotations

from typing import Any

_VERIFIERS = [
    {"kind": "verifier", "verifier": "factual", "weight": 0.35},
    {"kind": "verifier", "verifier": "direction", "weight": 0.30},
    {"kind": "verifier", "verifier": "consistency", "weight": 0.15},
    {"kind": "verifier", "verifier": "uncertainty", "weight": 0.20},
]

PRESETS: dict[str, dict[str, Any]] = {
    # every component applies where the task gives it something to judge: a rubric, sources to cite, truths
    "default": {
        "name": "default",
        "components": [
            {"kind": "rubric", "how": "signed_unclipped", "weight": 0.8},
            {"kind": "citations", "weight": 0.2},
            *_VERIFIERS,
        ],
    },
    # system 1: met / n
    "rubric": {"name": "rubric", "components": [{"kind": "rubric", "how": "mean"}]},
    # system 2: S + .2 F1 and .8 S + .2 F1, format gate, times 10, static rubrics concatenated
    "refiner_additive": {
        "name": "refiner_additive",
        "combine": "sum",
        "scale": 10.0,
        "format": {"mode": "gate", "answer_block": True},
        "components": [
            {"kind": "rubric", "how": "flip", "static": "all"},
            {"kind": "citations", "weight": 0.2},
        ],
    },
    "refiner": {
        "name": "refiner",
        "combine": "mean",
        "scale": 10.0,
        "format": {"mode": "gate", "answer_block": True},
        "components": [
            {"kind": "rubric", "how": "flip", "static": "all", "weight": 0.8},
            {"kind": "citations", "weight": 0.2},
        ],
    },
    # system 3: weighted mean over the verifiers that apply
    "verifiers": {"name": "verifiers", "components": _VERIFIERS},
}
