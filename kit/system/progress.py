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

from . import processes

LINE = b'{"time": '  # how each line of a log begins
KIND = "KIT_PROGRESS"  # bar, json or none; inherited by the processes that are started
ROW = '{"progress": '  # how each line of JSON begins


def headless() -> bool:
    """True under papermill or CI (KIT_HEADLESS=1), or when stderr is no terminal and no notebook
    runs.
    """
    if os.environ.get("KIT_HEADLESS"):
        return os.environ["KIT_HEADLESS"] != "0"
    return "ipykernel" not in sys.modules and not sys.stderr.isatty()


def quiet() -> None:
    """Silence what heavy libraries say on a machine without a GPU (missing kernels, deprecations,
    how checkpoints are ordered): nothing a user can mend.
    """
    ours = ("bitsandbytes.backends.cpu.ops", "transformers.trainer_utils")
    for name in ("torchao", "torch.utils._pytree", *ours):
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
    more.setdefault("disable", os.environ.get(KIND) == "none")  # whatever TQDM_DISABLE says
    if os.environ.get(KIND) == "json":
        more.setdefault("mininterval", 1.0)
        return _lines()(iterable, total=total, desc=desc, unit=unit, **more)
    from tqdm import tqdm

    if headless():
        more = {"mininterval": 10.0, "ascii": True, "ncols": 90, **more}
    return tqdm(iterable, total=total, desc=desc, unit=unit, **more)


def say(text: str, *, always: bool = False) -> None:
    """A line of progress on stderr: plain, with `--progress json` as {progress: "message",
    message}, with `none` only what is said `always`. Never fails when nobody listens.
    """
    kind = os.environ.get(KIND)
    if kind == "none" and not always:
        return
    if kind == "json" and not text.startswith(ROW):
        text = json.dumps({"progress": "message", "message": text.strip()})
    with contextlib.suppress(BrokenPipeError, ValueError):
        sys.stderr.write(text + "\n")
        sys.stderr.flush()


def line(name: str, unit: str, n: int, total: int | None, seconds: float, **more: Any) -> None:
    """With `--progress json`, where something stands: {progress, unit, n, total, seconds, left,
    done}; `left` in seconds, None where it is not known. more : further fields, `done` among them.
    """
    left = round((total - n) * seconds / n, 3) if total and n else None
    row = {"progress": name, "unit": unit, "n": n, "total": total, "seconds": round(seconds, 3)}
    if os.environ.get(KIND) == "json":
        say(json.dumps({**row, "left": left, "done": n == total, **more}))


def _lines() -> Any:
    """tqdm whose display is a `line` now and then; `done` is said once, of what came to its end."""
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
                self._line(self.n >= (self.total or 0) and sys.exc_info()[0] is None)

        def _line(self, done: bool) -> None:
            seen = self.format_dict
            name, unit = seen["prefix"], seen["unit"]
            line(name, unit, seen["n"], self.total, seen["elapsed"], done=done)

    return Lines


class _Said(logging.Handler):
    """What the kit logs, as lines of progress."""

    def emit(self, record: logging.LogRecord) -> None:
        """Say it, whatever `--progress` is."""
        say(self.format(record), always=True)


@contextlib.contextmanager
def watched(kind: str | None, log_file: str | None, verbose: bool) -> Iterator[None]:
    """What `--progress`, `--log-file` and `--verbose` ask for, here and in processes started here.

    The log is JSON lines {time, level, from, message}, added to what is there; it never holds the
    command line, which may name a key. OSError where the log cannot be written.
    """
    handlers: list[logging.Handler] = []
    if log_file is not None:
        handlers.append(_Log(log_file, encoding="utf-8", errors="backslashreplace"))
        handlers[0].setFormatter(_Json())
    said = _Said(logging.INFO if verbose else logging.WARNING)
    if not verbose:  # what ends the command is said at its end
        said.addFilter(lambda record: record.name != "kit.command")
    handlers.append(said)
    logger = logging.getLogger("kit")
    level = logger.level
    for handler in handlers:
        logger.addHandler(handler)
        logger.setLevel(logging.INFO)
    try:
        others = "1" if kind in ("json", "none") else ""  # bars of libraries are no JSON
        with processes.environment(**{KIND: kind or "", "TQDM_DISABLE": others}):
            yield
    finally:
        logger.setLevel(level)
        for handler in handlers:
            logger.removeHandler(handler)
            handler.close()


class _Log(logging.FileHandler):
    """Where the log cannot be written any more, it says so once, and the command goes on."""

    def handleError(self, record: logging.LogRecord) -> None:
        """A full disk, say."""
        self.setLevel(logging.CRITICAL + 1)
        say(f"warning: the log ends here: {sys.exc_info()[1]} ({self.baseFilename})", always=True)

    def close(self) -> None:
        """What is still held back may be lost."""
        with contextlib.suppress(OSError):
            super().close()


class _Json(logging.Formatter):
    """A record as one line of JSON."""

    def format(self, record: logging.LogRecord) -> str:
        """Time (UTC), level, where from, message."""
        at = datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds")
        row = {
            "time": at,
            "level": record.levelname.lower(),
            "from": record.name,
            "message": record.getMessage(),
        }
        return json.dumps(row, ensure_ascii=False)
