"""Pinned packages from the package index: fetched once through pip, verified by sha256, cached,
unpacked with care.

Nothing of a package is imported or run by the kit. pip gets the checksum with the requirement, so
it refuses another file
before looking into it; the kit checks the file again each time that it unpacks it.
"""

from __future__ import annotations

import contextlib
import hashlib
import importlib.util
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
import time
import zipfile
from collections.abc import Iterator, Sequence
from pathlib import Path, PurePosixPath

from ..errors import DataError, MissingError
from ..system import paths
from ..system.progress import bar

FOLDER = "downloads"


def offline() -> bool:
    """True when KIT_OFFLINE is set (to anything but "" or 0): nothing may be fetched."""
    return os.environ.get("KIT_OFFLINE", "") not in ("", "0")


def sha256(path: Path) -> str:
    """Hex sha256 of a file, read in blocks."""
    digest = hashlib.sha256()
    with path.open("rb") as f:
        while block := f.read(1 << 20):
            digest.update(block)
    return digest.hexdigest()


@contextlib.contextmanager
def lock(path: Path) -> Iterator[None]:
    """Hold `path` as a lock between processes; the second one waits. The file stays, empty."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a+b") as f:
        try:
            import fcntl
        except ImportError:  # Windows
            import msvcrt

            while True:
                with contextlib.suppress(OSError):
                    msvcrt.locking(f.fileno(), msvcrt.LK_LOCK, 1)  # type: ignore[attr-defined]
                    break
            yield
            return
        fcntl.flock(f, fcntl.LOCK_EX)
        yield


def package(
    name: str, version: str, *, sha256: str, kind: str = "wheel", size: int | None = None
) -> Path:
    """The file of a package in the cache; fetched through pip when it is not there.

    sha256 : hex digest that the file must have; another file is deleted and is a DataError.
    kind : "wheel" or "sdist". size : bytes, for the progress bar.
    Raises MissingError when it is not cached and cannot be fetched (no network, KIT_OFFLINE=1).
    """
    if kind not in ("wheel", "sdist"):
        raise ValueError(f"kind is {kind!r}; use 'wheel' or 'sdist'")
    folder = paths.home() / FOLDER / f"{name}-{version}-{kind}"
    with lock(folder.with_name(folder.name + ".lock")):
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
        return _download(folder, f"{name}=={version}", sha256, kind, size)


_sha = sha256  # `package` has an argument of that name


def _download(folder: Path, pin: str, digest: str, kind: str, size: int | None) -> Path:
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
            "--quiet",
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
        code, said = _run(command, staging, pin, size)
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


def _run(command: Sequence[str], staging: Path, pin: str, size: int | None) -> tuple[int, str]:
    """Run pip with its temporary files in `staging`, so that progress can be seen; (exit code,
    stderr)."""
    (staging / "tmp").mkdir()
    env = {
        **os.environ,
        "TMPDIR": str(staging / "tmp"),
        "TEMP": str(staging / "tmp"),
        "PIP_PROGRESS_BAR": "off",
    }
    with (
        tempfile.TemporaryFile() as said,
        bar(total=size, desc=f"fetch {pin}", unit="B", unit_scale=True) as shown,
    ):
        child = subprocess.Popen(command, env=env, stdout=subprocess.DEVNULL, stderr=said)
        try:
            while child.poll() is None:
                time.sleep(0.2)
                seen = _largest(staging) if size else 0
                shown.update(max(0, min(seen, size or 0) - shown.n))
        finally:
            if child.poll() is None:
                child.terminate()
                child.wait()
        said.seek(0)
        return child.returncode, said.read().decode("utf-8", "replace")


def _largest(folder: Path) -> int:
    """Size of the largest file; files may vanish meanwhile."""
    sizes = [0]
    for base, _, names in os.walk(folder):  # os.walk passes over folders that vanish
        for name in names:
            with contextlib.suppress(OSError):
                sizes.append(os.path.getsize(os.path.join(base, name)))
    return max(sizes)


def unpack(
    archive: Path, folder: Path, *, members: Sequence[str], limit: int = 1 << 31
) -> dict[str, Path]:
    """Unpack the named members of a wheel or sdist into `folder`, flat by their base name;
    `{member: path}`.

    members : names inside the archive; a leading "*/" stands for the sdist's top folder.
    Only plain files are taken; links, devices and names that leave the folder are a DataError, as
    are more than `limit` bytes.
    """
    folder.mkdir(parents=True, exist_ok=True)
    done: dict[str, Path] = {}
    with _Archive(archive) as a:
        for wanted in members:
            name = a.find(wanted)
            base = PurePosixPath(name).name
            if (
                base in ("", ".", "..")
                or "\\" in base
                or ".." in PurePosixPath(name).parts
                or name.startswith("/")
            ):
                raise DataError(f"the archive has an unsafe name {name!r}", where=archive.name)
            target = folder / base
            part = target.with_name(base + ".part")
            with a.open(name) as source, part.open("wb") as out:
                left = limit
                while block := source.read(1 << 20):
                    left -= len(block)
                    if left < 0:
                        raise DataError(f"{name} is larger than {limit} bytes", where=archive.name)
                    out.write(block)
            os.replace(part, target)
            done[wanted] = target
    return done


class _Archive:
    """Names and plain files of a .whl / .zip or a .tar.gz."""

    def __init__(self, path: Path):
        self.path = path
        self.zip = zipfile.ZipFile(path) if zipfile.is_zipfile(path) else None
        self.tar = None if self.zip else tarfile.open(path, "r:*")

    def __enter__(self) -> _Archive:
        return self

    def __exit__(self, *_: object) -> None:
        (self.zip or self.tar).close()  # type: ignore[union-attr]

    def find(self, wanted: str) -> str:
        """The one member with this name; "*/" matches one leading folder."""
        names = self.zip.namelist() if self.zip else self.tar.getnames()  # type: ignore[union-attr]
        hits = [
            n
            for n in names
            if n == wanted or (wanted.startswith("*/") and n.partition("/")[2] == wanted[2:])
        ]
        if len(hits) != 1:
            raise DataError(
                f"the archive has {len(hits)} members {wanted!r}",
                where=self.path.name,
                fix="the pinned version should hold one",
            )
        return hits[0]

    def open(self, name: str):
        """The bytes of a plain file."""
        if self.zip:
            return self.zip.open(name)
        member = self.tar.getmember(name)  # type: ignore[union-attr]
        if not member.isfile():
            raise DataError(f"{name!r} is not a plain file", where=self.path.name)
        return self.tar.extractfile(member)  # type: ignore[union-attr]
