"""Pinned packages from the package index: fetched once through pip, verified by sha256, cached,
unpacked with care.

Nothing of a package is imported or run by the kit. pip gets the checksum with the requirement, so
it refuses another file
before looking into it; the kit checks the file again each time that it unpacks it.
"""

from __future__ import annotations

import hashlib
import importlib.util
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from collections.abc import Sequence
from pathlib import Path, PurePosixPath

from ..errors import DataError, MissingError
from ..system import paths, processes, progress

FOLDER = "downloads"


def offline() -> bool:
    """True when KIT_OFFLINE is set (to anything but "" or 0): nothing may be fetched."""
    return os.environ.get("KIT_OFFLINE", "") not in ("", "0")


def sha256(path: Path) -> str:
    """Hex sha256 of a file, read in blocks."""
    with path.open("rb") as f:
        return hashlib.file_digest(f, "sha256").hexdigest()


def package(name: str, version: str, *, sha256: str, kind: str = "wheel") -> Path:
    """The file of a package in the cache; fetched through pip when it is not there.

    sha256 : hex digest that the file must have; another file is deleted and is a DataError.
    kind : "wheel" or "sdist".
    Raises MissingError when it is not cached and cannot be fetched (no network, KIT_OFFLINE=1).
    """
    folder = paths.home() / FOLDER / f"{name}-{version}-{kind}"
    with processes.alone(folder.parent, folder.name, progress.say):
        for path in sorted(folder.glob("*")):
            if path.is_file() and _sha(path) == sha256:
                return path
        if offline():
            raise MissingError(
                f"{name} {version} is not in the cache and KIT_OFFLINE is set",
                where=str(folder),
                fix="unset KIT_OFFLINE once and run `python -m kit fetch`",
            )
        folder.mkdir(parents=True, exist_ok=True)
        return _download(folder, f"{name}=={version}", sha256, kind)


_sha = sha256  # `package` has an argument of that name


def _download(folder: Path, pin: str, digest: str, kind: str) -> Path:
    staging = Path(tempfile.mkdtemp(prefix=".staging-", dir=folder))
    try:
        (staging / "requirement.txt").write_text(f"{pin} --hash=sha256:{digest}\n")
        (staging / "out").mkdir()
        only = ["--only-binary=:all:"] if kind == "wheel" else [f"--no-binary={pin.split('==')[0]}"]
        command = [
            sys.executable,
            "-m",
            "pip",
            "download",
            "--no-deps",
            "--require-hashes",
            "--no-cache-dir",
            *only,
            "--disable-pip-version-check",
            "--no-input",
            "--retries",
            "2",
            "--timeout",
            "20",
            "-r",
            str(staging / "requirement.txt"),
            "-d",
            str(staging / "out"),
        ]
        if importlib.util.find_spec("pip") is None:
            raise MissingError(
                "this environment has no pip, which fetches the pinned packages",
                where=sys.executable,
                fix="run `python -m ensurepip`, then `python -m kit fetch`",
            )
        code, said = _run(command, staging)
        found = [p for p in (staging / "out").iterdir() if p.is_file()]
        if code or len(found) != 1:
            why = (
                "the file of the index has another checksum"
                if "DO NOT MATCH" in said
                else "pip could not fetch it"
            )
            last = [line for line in said.splitlines() if line.strip() and "WARNING" not in line][
                -1:
            ]
            raise MissingError(
                f"{pin}: {why}" + (f" ({last[0].strip()[:200]})" if last else ""),
                where=str(folder),
                fix="check the network and pip's index settings, then run `python -m kit fetch`",
            )
        if _sha(found[0]) != digest:
            raise DataError(
                f"{pin}: the fetched file has another sha256 than the pinned one",
                where=found[0].name,
                fix="do not use it; the index may be serving another file",
            )
        target = folder / found[0].name
        os.replace(found[0], target)
        return target
    finally:
        shutil.rmtree(staging, ignore_errors=True)


def _run(command: Sequence[str], staging: Path) -> tuple[int, str]:
    """(exit code, stderr) of pip, with its temporary files in `staging`; in a terminal its own
    progress is seen."""
    (staging / "tmp").mkdir()
    env = {**os.environ, "TMPDIR": str(staging / "tmp"), "TEMP": str(staging / "tmp")}
    shown = None if sys.stdout is not None and sys.stdout.isatty() else subprocess.DEVNULL
    done = subprocess.run(command, env=env, stdout=shown, stderr=subprocess.PIPE, check=False)
    return done.returncode, done.stderr.decode("utf-8", "replace")


def unpack(archive: Path, folder: Path, *, members: Sequence[str]) -> dict[str, Path]:
    """Unpack the named members of a wheel or sdist into `folder`, flat by their base name;
    `{member: path}`.

    members : names inside the archive; a leading "*/" stands for the sdist's top folder. DataError
    where one is not there, or is no plain file. The archive is trusted: its checksum is pinned.
    """
    folder.mkdir(parents=True, exist_ok=True)
    done: dict[str, Path] = {}
    zipped = zipfile.is_zipfile(archive)
    with zipfile.ZipFile(archive) if zipped else tarfile.open(archive, "r:*") as held:
        names = held.namelist() if zipped else held.getnames()
        for wanted in members:
            name = _member(names, wanted, archive.name)
            target = folder / PurePosixPath(name).name
            if not zipped and not held.getmember(name).isfile():
                raise DataError(
                    f"{name!r} is not a plain file",
                    where=archive.name,
                )
            opened = held.open if zipped else held.extractfile
            with opened(name) as source, paths.whole(target) as part, part.open("wb") as out:
                shutil.copyfileobj(source, out, 1 << 20)
            done[wanted] = target
    return done


def _member(names: Sequence[str], wanted: str, where: str) -> str:
    """The one member with this name; "*/" matches one leading folder."""
    inner = wanted[2:] if wanted.startswith("*/") else None
    hits = [n for n in names if n == wanted or (inner and n.partition("/")[2] == inner)]
    if len(hits) != 1:
        raise DataError(
            f"the archive has {len(hits)} members {wanted!r}",
            where=where,
            fix="the pinned version should hold one",
        )
    return hits[0]
