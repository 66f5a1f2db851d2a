"""Progress bars: live in a terminal or notebook, a plain line now and then when headless."""

from __future__ import annotations

import contextlib
import json
import logging
import os
import sys
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

LINE = b'{"time": '  # how each line of a log begins
KIND = "KIT_PROGRESS"  # bar, json or none; inherited by the processes that are started


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
    if os.environ.get(KIND) == "none":
        more["disable"] = True
    if os.environ.get(KIND) == "json":
        more.setdefault("mininterval", 1.0)
        return _lines()(iterable, total=total, desc=desc, unit=unit, **more)
    from tqdm import tqdm

    if headless():
        more.setdefault("mininterval", 10.0)
        more.setdefault("ascii", True)
        more.setdefault("ncols", 90)
    return tqdm(iterable, total=total, desc=desc, unit=unit, **more)


def _lines() -> Any:
    """tqdm whose display is a JSON object a line on stderr: {progress, unit, n, total, seconds,
    left, done}; `left` in seconds, None where it is not known.
    """
    from tqdm import tqdm

    class Lines(tqdm):  # type: ignore[type-arg]
        """One bar as lines."""

        def display(self, msg: str | None = None, pos: int | None = None) -> bool:
            """Write where it stands."""
            self._line(False)
            return True

        def close(self) -> None:
            """Write where it ended, once."""
            if not self.disable:
                self.disable = True
                self._decr_instances(self)
                self._line(True)

        def _line(self, done: bool) -> None:
            seen, total = self.format_dict, self.total
            rate = seen["n"] / seen["elapsed"] if seen["elapsed"] else 0.0
            left = round((total - seen["n"]) / rate, 3) if total and rate else None
            row = {"progress": seen["prefix"], "unit": seen["unit"], "n": seen["n"], "total": total}
            row |= {"seconds": round(seen["elapsed"], 3), "left": left, "done": done}
            sys.stderr.write(json.dumps(row) + "\n")
            sys.stderr.flush()

    return Lines


@contextlib.contextmanager
def watched(kind: str | None, log_file: str | None, verbose: bool) -> Iterator[None]:
    """What `--progress`, `--log-file` and `--verbose` ask for, here and in processes started here.

    The log is JSON lines {time, level, from, message}, added to what is there; it never holds the
    command line, which may name a key. OSError where the log cannot be written.
    """
    before, handlers = os.environ.get(KIND), []
    if log_file is not None:
        handlers.append(logging.FileHandler(log_file, encoding="utf-8", errors="backslashreplace"))
        handlers[0].setFormatter(_Json())
    if verbose:
        handlers.append(logging.StreamHandler())
    logger = logging.getLogger("kit")
    level = logger.level
    for handler in handlers:
        logger.addHandler(handler)
        logger.setLevel(logging.INFO)
    if kind is not None:
        os.environ[KIND] = kind
    try:
        yield
    finally:
        logger.setLevel(level)
        for handler in handlers:
            logger.removeHandler(handler)
            handler.close()
        if before is None:
            os.environ.pop(KIND, None)
        else:
            os.environ[KIND] = before


class _Json(logging.Formatter):
    """A record as one line of JSON."""

    def format(self, record: logging.LogRecord) -> str:
        """Time (UTC), level, where from, message."""
        at = datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds")
        row = {"time": at, "level": record.levelname.lower(), "from": record.name}
        return json.dumps({**row, "message": record.getMessage()}, ensure_ascii=False)
