"""Where things lie: the cache, the project's own data, notebooks and runs. Never the working
directory.

`KIT_HOME` moves the cache (downloads, models, ledgers), `KIT_DATA` the data folder, `KIT_RUNS` the
runs.
"""

from __future__ import annotations

import contextlib
import errno
import os
import shutil
import threading
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from ..errors import DataError, KitError, MissingError

PACKAGE = Path(__file__).resolve().parents[1]
ROOT = PACKAGE.parent
BESIDE = ("", "-wal", "-shm", "-journal", ".part")  # ends of names that belong to a file
NETWORK = ("nfs", "cifs", "smb", "lustre", "gpfs", "fuse.sshfs", "9p", "afs", "ceph", "beegfs")


def home() -> Path:
    """The user's cache folder of the kit, made with mode 0700 (default: ~/.cache/rubric-kit)."""
    base = (
        os.environ.get("KIT_HOME")
        or Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "rubric-kit"
    )
    path = Path(base).expanduser()
    path.mkdir(parents=True, exist_ok=True, mode=0o700)
    return path


def _shipped(name: str, env: str | None = None) -> Path:
    if env and os.environ.get(env):
        return Path(os.environ[env]).expanduser()
    for path in (ROOT / name, PACKAGE / f"_{name}"):  # a checkout, then an installed wheel
        if path.is_dir():
            return path
    raise MissingError(
        f"the kit's {name}/ folder is not here",
        where=str(ROOT / name),
        fix=f"install from a checkout, or set {env}" if env else "install from a checkout",
    )


def data(*parts: str) -> Path:
    """A path inside the project's data/ folder."""
    return _shipped("data", "KIT_DATA").joinpath(*parts)


def notebooks(*parts: str) -> Path:
    """A path inside the project's notebooks/ folder."""
    return _shipped("notebooks").joinpath(*parts)


def runs() -> Path:
    """Where runs are written: KIT_RUNS, else runs/ of a checkout, else runs/ in the cache."""
    if os.environ.get("KIT_RUNS"):
        path = Path(os.environ["KIT_RUNS"]).expanduser()
    else:
        path = ROOT / "runs" if (ROOT / "notebooks").is_dir() else home() / "runs"
    path.mkdir(parents=True, exist_ok=True)
    return path


def regular(path: Path) -> Path:
    """The file to write at a path, behind its links; DataError for a folder, a device or a pipe.

    A rename over it would put a file in their place.
    """
    if not path.name or (path.exists() and not path.is_file()):
        raise DataError(
            "this is no regular file, and stays as it is",
            where=str(path),
            fix="give the name of a file, which may be new",
        )
    return path.resolve() if path.is_symlink() else path


def apart(written: Mapping[str, Any], named: Mapping[str, Any]) -> None:
    """KitError where a command would write into another file that it names, which would be lost.

    written, named : path by option; None is none. What is written has files beside it, too: a
    database its journals, an output its part.
    """
    every = {k: Path(p).resolve() for k, p in {**named, **written}.items() if p}
    exists, same = os.path.exists, os.path.samefile
    for name in (k for k in written if k in every):
        own = {Path(f"{every[name]}{end}") for end in BESIDE}
        for other, path in every.items():
            linked = exists(path) and exists(every[name]) and same(path, every[name])
            if other != name and (path in own or linked):
                raise KitError(
                    f"{name} is the same file as {other}, or beside it, which would be lost",
                    where=str(path),
                    fix=f"give {name} another name",
                )


FULL = (" requested and ", "unexpected pos ")  # how numpy and torch say that a disk is full


@contextlib.contextmanager
def naming(path: Path | str) -> Iterator[None]:
    """Inside, an OSError that names no file (the disk is full) names this one; so does what
    libraries raise for a full disk (safetensors, tokenizers, numpy, torch), which is none, or
    unnumbered.
    """
    try:
        yield
    except Exception as e:
        full = os.strerror(errno.ENOSPC)
        if any(words in str(e) for words in (full, *FULL)):
            raise OSError(errno.ENOSPC, full, str(path)) from None
        if not isinstance(e, OSError):
            raise
        raise OSError(e.errno, e.strerror or str(e), e.filename or str(path)) from None


@contextlib.contextmanager
def whole(path: Path) -> Iterator[Path]:
    """A file beside this one to write into; it takes the place of this one at the end, and after
    an error nothing of it stays. The error of a full disk names this one.
    """
    path = regular(path)
    part = path.with_name(f".{path.name}.{os.getpid()}-{threading.get_ident()}")
    try:
        yield part
        os.replace(part, path)
    except OSError as e:
        named = str(path) if e.filename in (None, str(part)) else e.filename
        raise OSError(e.errno, e.strerror or str(e), named) from None
    finally:
        with contextlib.suppress(OSError):
            part.unlink(missing_ok=True)


@contextlib.contextmanager
def whole_folder(path: Path) -> Iterator[Path]:
    """As `whole`, a folder: what stands there is replaced by what was written."""
    part = path.with_name(f".{path.name}.partial")
    shutil.rmtree(part, ignore_errors=True)
    try:
        with naming(path):
            yield part
        shutil.rmtree(path, ignore_errors=True)
        part.rename(path)
    finally:
        shutil.rmtree(part, ignore_errors=True)


def write_text(path: Path, text: str) -> None:
    """Write a file whole or not at all; half a character is escaped as JSON does."""
    with whole(path) as part:
        part.write_text(text, encoding="utf-8", errors="backslashreplace")


def on_network(path: Path) -> bool:
    """True when the folder lies on a network file system (Linux; elsewhere: no)."""
    try:
        mounts = [line.split()[1:3] for line in Path("/proc/mounts").read_text().splitlines()]
    except OSError:
        return False
    full = str(path.resolve())
    best = max(
        (m for m in mounts if full == m[0] or full.startswith(m[0].rstrip("/") + "/")),
        key=lambda m: len(m[0]),
        default=["", ""],
    )
    return best[1].startswith(NETWORK)
