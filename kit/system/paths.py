"""Where files are: the project's data and notebooks, runs, the download cache. Never the working directory.

KIT_HOME moves the cache, KIT_DATA the data folder, KIT_RUNS the runs, KIT_LEDGER the file of stored verdicts.
"""

import hashlib
import json
import os
from pathlib import Path
from typing import Any

from ..errors import MissingError

PACKAGE = Path(__file__).resolve().parents[1]
ROOT = PACKAGE.parent


def home() -> Path:
    """The kit's cache folder, made with mode 0700. Default: ~/.cache/rubric-kit."""
    cache = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    path = Path(
        os.environ.get("KIT_HOME") or Path(cache) / "rubric-kit"
    ).expanduser()
    # An installed kit writes its runs here: answers that other users may not read.
    path.mkdir(parents=True, exist_ok=True, mode=0o700)
    return path


def data(*parts: str) -> Path:
    """A path inside the project's data folder."""
    return _project_folder("data", "KIT_DATA").joinpath(*parts)


def notebooks(*parts: str) -> Path:
    """A path inside the project's notebooks folder."""
    return _project_folder("notebooks", "").joinpath(*parts)


def _project_folder(name: str, variable: str) -> Path:
    if variable and os.environ.get(variable):
        return Path(os.environ[variable]).expanduser()
    # A checkout, then an installed wheel.
    for path in (ROOT / name, PACKAGE / f"_{name}"):
        if path.is_dir():
            return path
    raise MissingError(
        f"the {name} folder is missing",
        where=str(ROOT / name),
        fix="install from a checkout",
    )


def runs() -> Path:
    """Where runs are written: KIT_RUNS, else runs/ of the checkout, else runs/ in the cache."""
    # An installed kit has no folder of its own that a user would look into.
    default = ROOT / "runs" if (ROOT / "notebooks").is_dir() else home() / "runs"
    path = Path(os.environ.get("KIT_RUNS") or default).expanduser()
    path.mkdir(parents=True, exist_ok=True)
    return path


def write(path: str | Path, text: str | bytes) -> Path:
    """Write a whole file or nothing: into a file beside it, which then takes its name."""
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    # The process id keeps two writers of one file apart.
    part = path.with_name(f".{path.name}.{os.getpid()}")
    # A model's text may hold half a surrogate pair, which is no UTF-8.
    if isinstance(text, str):
        text = text.encode("utf-8", "backslashreplace")
    try:
        part.write_bytes(text)
        os.replace(part, path)
    finally:
        part.unlink(missing_ok=True)
    return path


def read_log(path: Path) -> list[dict[str, Any]]:
    """The rows of a file to which a run adds lines of JSON. A last line that a kill cut short is left out."""
    # a whole line ends with a line feed, so what is behind the last one is empty or cut
    text = path.read_text("utf-8") if path.exists() else ""
    return list(map(json.loads, text.split("\n")[:-1]))


def describe_file(file: Path) -> str:
    """A file's name, size and a digest of its end; its name alone while it is absent."""
    if not file.is_file():
        return file.name
    # A digest of gigabytes takes seconds; the last weights tell models apart.
    size = file.stat().st_size
    with file.open("rb") as f:
        f.seek(max(0, size - (1 << 20)))
        return f"{file.name} {size} {hashlib.sha256(f.read()).hexdigest()[:16]}"
