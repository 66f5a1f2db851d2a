"""The opening cells of every notebook, and the install on Colab.

Standard library and pip only: it runs before anything else is installed.

The install asks only for what the runtime lacks, and everything that the runtime has becomes a
constraint: torch stays the runtime's build, and nothing that is loaded moves. Where that cannot be
resolved, only the loaded packages stay fixed, and the message says what moved. A restart is asked
for only when something that a fresh kernel has loaded did move.
"""

from __future__ import annotations

import importlib
import json
import os
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Mapping
from importlib import metadata
from pathlib import Path
from typing import Any

from .system import paths
from .system.packages import ADDRESS, NAME

# What the notebooks need and a runtime may lack; the bounds are those of unsloth's own metadata (a
# test compares them).
ADD = (
    "trl==1.14.2",
    "peft>=0.18,!=0.11.0",
    "datasets>=3.4.1,!=4.0.*,!=4.1.0,!=4.4.*,!=4.5.0,<5",
    "transformers>=4.56.2,!=4.57.0,!=4.57.4,!=4.57.5,!=5.0.0,!=5.1.0,<=5.17.0",
    "accelerate>=1.4",
    "gguf",
    "papermill>=2.6",
    "msgspec>=0.19",
    "jinja2>=3.1",
    "pint>=0.24",
    "nbconvert>=7.16",
    "openai>=3.50",
    "aiohttp>=3.12.6",
    "jsonschema>=4.20",
    "pyyaml>=6",
    "scipy>=1.11",
    "pyarrow>=15",
)
UNSLOTH = ("unsloth==2026.10.9", "unsloth_zoo==2026.10.9")
UNSLOTH_NEEDS = (
    "bitsandbytes>=0.45.5,!=0.46.0,!=0.48.0",
    "tyro",
    "cut_cross_entropy",
    "torchao>=0.13.0",
    "einops",
    "hf_transfer",
    "structlog>=24.1.0",
    "sentencepiece>=0.2.0",
    "protobuf",
    "json5>=0.9.25",
    "nest-asyncio",
    "typer>=0.19.0",
    "huggingface_hub>=0.34.0",
)
# Packages that a fresh Colab kernel has loaded: when one of them moves, the kernel must restart.
LOADED = (
    "numpy",
    "pandas",
    "ipywidgets",
    "torch",
    "matplotlib",
    "pillow",
    "protobuf",
    "requests",
    "ipython",
    "ipykernel",
    "traitlets",
    "tornado",
    "pyzmq",
    "psutil",
)


def install_cell(address: str = ADDRESS) -> str:
    """The first code cell of every notebook; KIT_REPO overrides the address that it installs from.

    >>> "COLAB_RELEASE_TAG" in install_cell()
    True
    """
    return f'''\
# Colab only: installs the kit beside what the runtime has (2-4 minutes); does nothing elsewhere.
import os, subprocess, sys
if "COLAB_RELEASE_TAG" in os.environ:
    source = "{NAME} @ git+" + os.environ.get("KIT_REPO", "{address}")
    pip = [sys.executable, "-m", "pip", "install", "-q", "--no-deps", source]
    done = subprocess.run(pip, text=True, capture_output=True)
    if done.returncode:
        raise RuntimeError("The kit could not be installed; nothing below will run.\\n" + done.stderr)
    from kit import colab
    colab.setup()'''  # noqa: E501


class InstallError(RuntimeError):
    """pip could not install; the message is the end of what it said."""


def badge(notebook: str) -> str:
    """The Markdown badge that opens a notebook on Colab.

    >>> "colab.research.google.com" in badge("01_x")
    True
    """
    path = ADDRESS.removeprefix("https://github.com/")
    return (
        f"[![Open In Colab](https://colab.research.google.com/assets/colab-badge.svg)]"
        f"(https://colab.research.google.com/github/{path}/blob/main/notebooks/{notebook}.ipynb)"
    )


def plain(name: str) -> str:
    """A distribution's name in the one spelling that compares.

    >>> plain("Unsloth_Zoo")
    'unsloth-zoo'
    """
    return re.sub(r"[-_.]+", "-", name).lower()


def installed() -> dict[str, str]:
    """name -> version of every installed distribution; of two with one name, the first on the
    path.
    """
    out: dict[str, str] = {}
    for d in metadata.distributions():
        name = d.metadata["Name"]
        if name and d.version:
            out.setdefault(plain(name), d.version)
    return out


def missing(wanted: Iterable[str], have: Mapping[str, str]) -> list[str]:
    """The requirements that the installed versions do not meet.

    >>> there = {"numpy": "2.0.2", "datasets": "4.0.0"}
    >>> missing(["numpy>=2", "trl==1.14.2", "datasets<5,!=4.0.*"], there)
    ['trl==1.14.2', 'datasets<5,!=4.0.*']
    """
    out = []
    for text in wanted:
        need = _requirement(text)
        version = have.get(plain(need.name))
        if version is None or not need.specifier.contains(version, prereleases=True):
            out.append(text)
    return out


def constraints(
    have: Mapping[str, str],
    *,
    free: Iterable[str] = (),
    only: Iterable[str] | None = None,
    local: bool = True,
) -> str:
    """The runtime's packages as a constraints file.

    free : requirements whose packages may move; only : names to fix and no others (None = all).
    Versions that pip would refuse to read (of the operating system's packages) are left out.
    local : keep build tags such as +cu128, so that no other build of torch can take its place.

    >>> constraints({"numpy": "2.0.2", "peft": "0.1", "odd": "1-ubuntu.x"}, free=["peft>=0.18"])
    'numpy==2.0.2\\n'
    >>> constraints({"torch": "2.11.0+cu128"}), constraints({"torch": "2.11.0+cu128"}, local=False)
    ('torch==2.11.0+cu128\\n', 'torch==2.11.0\\n')
    """
    moving = {plain(_requirement(r).name) for r in free}
    kept = None if only is None else {plain(n) for n in only}
    return "".join(
        f"{n}=={v if local else v.split('+')[0]}\n"
        for n, v in sorted(have.items())
        if plain(n) not in moving and (kept is None or plain(n) in kept) and _readable(v)
    )


def has_gpu() -> bool:
    """True where the driver of an NVIDIA device is there; imports no torch."""
    return os.path.exists("/dev/nvidiactl") or os.path.exists("/dev/nvidia0")


def install(*, gpu: bool | None = None) -> list[str]:
    """Install what this runtime lacks; returns the loaded packages whose version moved (restart
    when any).

    InstallError says why pip failed. A second call finds nothing missing and takes a second.
    """
    before = installed()
    gpu = has_gpu() if gpu is None else gpu
    _add(missing([*ADD, *(UNSLOTH_NEEDS if gpu else ())], before), before)
    late = missing(UNSLOTH, before) if gpu else []
    if late:
        _pip("--no-deps", *late)
    return moved(before, installed())


def moved(before: Mapping[str, str], after: Mapping[str, str]) -> list[str]:
    """The loaded packages whose version is another one now; new packages need no restart.

    >>> moved({"numpy": "1"}, {"numpy": "2", "torch": "2.11"})
    ['numpy']
    """
    return [n for n in LOADED if n in before and after.get(n) != before[n]]


def _add(wanted: list[str], have: Mapping[str, str]) -> None:
    if not wanted:
        return
    try:
        _pip(*wanted, under=constraints(have, free=wanted))
    except InstallError as first:
        print(f"The runtime's versions cannot all stay: {_reason(first)}", flush=True)
        _pip(
            *wanted,
            under=constraints(
                have, free=wanted, only=(*LOADED, "torchvision", "torchaudio", "plotly")
            ),
        )


def _pip(*what: str, under: str = "") -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "constraints.txt"
        path.write_text(under, encoding="utf-8")
        command = [
            sys.executable,
            "-m",
            "pip",
            "install",
            "-q",
            "--disable-pip-version-check",
            "--no-input",
            "-c",
            str(path),
            *what,
        ]
        done = subprocess.run(
            command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False
        )
    if done.returncode:
        raise InstallError(done.stdout[-3000:])


def _reason(error: InstallError) -> str:
    lines = [
        line
        for line in str(error).splitlines()
        if "ERROR" in line or "conflict" in line or "requested" in line
    ]
    return " ".join(lines[-3:]) or str(error)[-300:]


def _requirement(text: str) -> Any:
    return _packaging("requirements").Requirement(text)


def _readable(version: str) -> bool:
    try:
        _packaging("version").Version(version)
    except ValueError:
        return False
    return True


def _packaging(part: str) -> Any:
    """packaging.<part>, or the copy that pip carries."""
    try:
        return importlib.import_module(f"packaging.{part}")
    except ImportError:
        return importlib.import_module(f"pip._vendor.packaging.{part}")


def setup() -> None:
    """Install what the runtime lacks and say what to do next; InstallError stops "Run all"
    where pip failed.
    """
    begin = time.monotonic()
    try:
        changed = install()
    except InstallError as e:
        raise InstallError(
            f"pip could not install what the kit needs; nothing below will run.\n{e}\n"
            "Run this cell again; if it fails again, take a fresh runtime "
            "(Runtime > Disconnect and delete runtime)."
        ) from None
    importlib.invalidate_caches()
    if changed:
        raise InstallError(
            f"Installed. {', '.join(changed)} changed under the running kernel: restart it "
            "(Runtime > Restart session), then run from the top."
        )
    print(f"Ready after {time.monotonic() - begin:.0f} s, no restart needed.", flush=True)


def readdress(address: str, folder: Path | None = None) -> list[Path]:
    """Write another address into the badge and the install cell of every notebook, and into the
    kit.

    Returns the files that changed. folder : a checkout (default: the one that this file lies in).
    """
    root = folder or paths.ROOT
    place = root / "kit" / "system" / "packages.py"
    code = place.read_text(encoding="utf-8")
    found = re.search(r'^ADDRESS = "(.*)"$', code, re.M)
    if not found or not re.fullmatch(r"[a-z+]+://[\w.@:/~-]+", address):
        raise ValueError(f"{address!r} is no address such as https://github.com/you/your-copy")
    old = found[1]
    new = address.rstrip("/").removesuffix(".git")
    texts = {place: code.replace(f'"{old}"', f'"{new}"')}
    for book in sorted((root / "notebooks").glob("[0-9]*.ipynb")):
        texts[book] = _readdressed(book.read_text(encoding="utf-8"), old, new)
    changed = [p for p, text in texts.items() if text != p.read_text(encoding="utf-8")]
    for p in changed:
        p.write_text(texts[p], encoding="utf-8")
    return changed


def _readdressed(text: str, old: str, new: str) -> str:
    """A notebook's JSON text with the address replaced in its first two cells only."""
    book = json.loads(text)
    hub = "https://github.com/"
    pairs = [(old, new)]
    if new.startswith(hub):  # the badge names owner and repository without the host
        pairs += [(f"/github/{old.removeprefix(hub)}/", f"/github/{new.removeprefix(hub)}/")]
    for cell in book["cells"][:2]:
        for before, after in pairs:
            cell["source"] = [line.replace(before, after) for line in cell["source"]]
    return json.dumps(book, indent=1, ensure_ascii=False) + "\n"


def main(argv: list[str] | None = None) -> int:
    """`python -m kit.colab` installs what is missing; `python -m kit.colab ADDRESS` rewrites
    the address.
    """
    argv = sys.argv[1:] if argv is None else argv
    try:
        if argv:
            print("\n".join(map(str, readdress(argv[0]))) or "nothing to change")
        else:
            setup()
    except (InstallError, ValueError) as e:
        print(e)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
