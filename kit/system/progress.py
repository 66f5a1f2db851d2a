"""Progress bars: live in a terminal or notebook, a plain line every ten seconds when headless."""

import os
import sys
from typing import Any


def headless() -> bool:
    """True under papermill or CI (KIT_HEADLESS=1), or where stderr is neither a terminal nor a notebook."""
    if os.environ.get("KIT_HEADLESS"):
        return os.environ["KIT_HEADLESS"] != "0"
    return "ipykernel" not in sys.modules and not sys.stderr.isatty()


def bar(
    iterable: Any = None,
    *,
    total: int | None = None,
    desc: str = "",
    **options: Any,
) -> Any:
    """A tqdm bar that appears after two seconds.

    >>> list(bar([1, 2], disable=True))
    [1, 2]
    """
    from tqdm import tqdm

    if headless():
        options = {"mininterval": 10.0, "ascii": True, "ncols": 90, **options}
    return tqdm(iterable, total=total, desc=desc, **{"delay": 2.0, **options})
