"""Fetch the pinned downloads (recorded judges, SmolLM2-135M-Instruct) once.

Verified by sha256, cached.
"""

from __future__ import annotations

from ..errors import KitError
from .common import Options, Output, arg, log

HELP = "fetch the pinned, checksummed downloads into the cache"
PARTS = ("recorded", "smollm2")
LARGE = ("judge",)  # 1.1 GB, on wish only


ARGS = (
    arg(
        "parts",
        nargs="*",
        default=[],
        help=f"any of {', '.join(PARTS)} (default: these), and judge: a 1.5B model that can "
        "judge on a laptop (1.1 GB, only when named)",
    ),
)


def run(args: Options) -> Output:
    """Fetch each part; exit code 3 when one could not be had."""
    from ..data import judge_model, models, recorded
    from ..system import progress

    wrong = [p for p in args.parts if p not in PARTS + LARGE]
    if wrong:
        raise KitError(
            f"nothing is called {wrong[0]!r}",
            where="command line",
            fix=f"one of {', '.join(PARTS + LARGE)}",
        )
    calls = {
        "recorded": recorded.load,
        "smollm2": models.smollm2,
        "judge": judge_model.judge_gguf,
    }
    got, code = {}, 0
    for name in args.parts or PARTS:
        progress.say(f"fetching {name} ...")
        try:
            got[name] = str(calls[name]()) if name != "recorded" else "ready"
        except KitError as e:
            progress.say(f"error: {e}", always=True)
            log.error("%s", e)
            got[name], code = f"missing: {e.what}", e.exit_code
    return Output(got, "\n".join(f"{k}: {v}" for k, v in got.items()), code)
