"""The rewards of the three systems, and the kit's own default, as configs."""

from __future__ import annotations

from typing import Any

_VERIFIERS = [
    {"kind": "verifier", "verifier": "factual", "weight": 0.35},
    {"kind": "verifier", "verifier": "direction", "weight": 0.30},
    {"kind": "verifier", "verifier": "consistency", "weight": 0.15},
    {"kind": "verifier", "verifier": "uncertainty", "weight": 0.20},
]

_PUBLISHED_FLIP = {"kind": "rubric", "how": "flip", "static": "all"}
_CITATIONS = {"kind": "citations", "weight": 0.2}

PRESETS: dict[str, dict[str, Any]] = {
    # every component applies where the task gives it something to judge: a rubric, sources, truths;
    # "net" pays 1 for a perfect answer and 0 for silence, whatever the negative criteria weigh
    "default": {
        "name": "default",
        "components": [
            {"kind": "rubric", "how": "net", "weight": 0.8},
            _CITATIONS,
            *_VERIFIERS,
        ],
    },
    # system 1: met / n (its criteria all weigh 1); a negative one takes away and pays nothing to
    # silence
    "rubric": {"name": "rubric", "components": [{"kind": "rubric", "how": "net"}]},
    # system 2: S + .2 F1 and .8 S + .2 F1, format gate, times 10, static rubrics concatenated. S
    # is "net": the
    # published "flip" pays `<answer>.</answer>` for every fault that it has no room for
    # (refiner_published).
    "refiner_additive": {
        "name": "refiner_additive",
        "combine": "sum",
        "scale": 10.0,
        "format": {"mode": "gate", "answer_block": True},
        "components": [{**_PUBLISHED_FLIP, "how": "net"}, _CITATIONS],
    },
    "refiner": {
        "name": "refiner",
        "combine": "mean",
        "scale": 10.0,
        "format": {"mode": "gate", "answer_block": True},
        "components": [{**_PUBLISHED_FLIP, "how": "net", "weight": 0.8}, _CITATIONS],
    },
    "refiner_published": {
        "name": "refiner_published",
        "combine": "sum",
        "scale": 10.0,
        "format": {"mode": "gate", "answer_block": True},
        "components": [_PUBLISHED_FLIP, _CITATIONS],
    },
    # system 3: weighted mean over the verifiers that apply, with a proper score of the confidence
    "verifiers": {"name": "verifiers", "components": _VERIFIERS},
    # the same as it was published (max(0, 1 - 2|c - t|), V1 direction .35, V2 factual .30): not
    # proper
    "biorlhf_published": {
        "name": "biorlhf_published",
        "components": [
            {"kind": "verifier", "verifier": "direction", "weight": 0.35},
            {"kind": "verifier", "verifier": "factual", "weight": 0.30},
            {"kind": "verifier", "verifier": "consistency", "weight": 0.15},
            {"kind": "verifier", "verifier": "uncertainty", "weight": 0.20, "mode": "outcome"},
        ],
    },
}
