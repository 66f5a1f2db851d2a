"""Fetch the pinned downloads (recorded judges, SmolLM2-135M-Instruct, MiniLM) once.

Verified by sha256, cached.
"""

from __future__ import annotations

import argparse

from ..errors import KitError
from .common import emit, json_flag

HELP = "fetch the pinned, checksummed downloads into the cache"
PARTS = ("recorded", "smollm2", "minilm")


def add(parser: argparse.ArgumentParser) -> None:
    """Arguments of `fetch`."""
    parser.add_argument(
        "parts", nargs="*", default=[], help=f"any of {', '.join(PARTS)} (default: all)"
    )
    json_flag(parser)


def run(args: argparse.Namespace) -> int:
    """Fetch each part; exit code 3 when one could not be had."""
    from ..data import models, recorded
    from ..runs.headless import to_stderr

    wrong = [p for p in args.parts if p not in PARTS]
    if wrong:
        raise KitError(
            f"nothing is called {wrong[0]!r}",
            where="command line",
            fix=f"one of {', '.join(PARTS)}",
        )
    calls = {"recorded": recorded.load, "smollm2": models.smollm2, "minilm": models.minilm}
    got, code = {}, 0
    for name in args.parts or PARTS:
        to_stderr(f"fetching {name} ...")
        try:
            value = calls[name]()
            got[name] = str(value) if name != "recorded" else "ready"
        except KitError as e:
            to_stderr(f"error: {e}")
            got[name], code = f"missing: {e.what}", e.exit_code
    emit(args, got, "\n".join(f"{k}: {v}" for k, v in got.items()))
    return code
