"""Progress bars: live in a terminal or notebook, a plain line now and then when headless."""

from __future__ import annotations

import os
import sys
from typing import Any


def headless() -> bool:
    """True under papermill or CI (KIT_HEADLESS=1), or when stderr is no terminal and no notebook
    runs.
    """
    if os.environ.get("KIT_HEADLESS"):
        return os.environ["KIT_HEADLESS"] != "0"
    return "ipykernel" not in sys.modules and not sys.stderr.isatty()


def quiet() -> None:
    """Silence what heavy libraries say at import on a machine without a GPU (missing GPU kernels,
    deprecations): nothing a user can mend.
    """
    import logging

    for name in ("torchao", "torch.utils._pytree"):
        logging.getLogger(name).setLevel(logging.ERROR)
    # jsonschema tries this import and does without; it builds a grammar for a second at every
    # start.
    sys.modules.setdefault("rfc3987_syntax", None)  # type: ignore[arg-type]


def bar(
    iterable: Any = None, *, total: int | None = None, desc: str = "", unit: str = "it", **more: Any
) -> Any:
    """A tqdm bar; plain and slow (one line every 10 s) when headless. Same methods as tqdm.

    >>> list(bar([1, 2], desc="x", disable=True))
    [1, 2]
    """
    from tqdm import tqdm

    if headless():
        more.setdefault("mininterval", 10.0)
        more.setdefault("ascii", True)
        more.setdefault("ncols", 90)
    return tqdm(iterable, total=total, desc=desc, unit=unit, **more)
