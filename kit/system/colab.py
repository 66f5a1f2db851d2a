"""The install cell of the notebooks on Colab. It needs the standard library and pip only.

It installs what the runtime lacks, and everything that the runtime has becomes a constraint: torch stays the
runtime's build. A restart is asked for only when a package changed that the running kernel has loaded.
`python -m kit.system.colab` prints the cell.
"""

from __future__ import annotations

import importlib
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Mapping
from importlib import metadata
from pathlib import Path
from typing import Any

NAME = "rubric-rewards-kit"
CELL = Path(__file__).with_name("colab_cell.txt")
# Another build of these would not fit the GPU's driver.
BUILDS = ("torch", "torchvision", "torchaudio")


def requirements(*extras: str) -> list[Any]:
    """What the kit and its extras need, from its own metadata."""
    parse = _packaging("requirements").Requirement
    rows = [parse(text) for text in metadata.requires(NAME) or ()]

    def is_needed(requirement: Any) -> bool:
        marker = requirement.marker
        # "" is the kit itself, without an extra
        names = ("", *extras)
        return marker is None or any(marker.evaluate({"extra": e}) for e in names)

    return [r for r in rows if is_needed(r)]


def versions() -> dict[str, str]:
    """The version of every package that is installed, by name."""
    return {_plain(d.metadata["Name"]): d.version for d in metadata.distributions()}


def missing(needs: Iterable[Any], packages: Mapping[str, str]) -> list[Any]:
    """The requirements that are not met. packages : versions of what is installed, by name."""
    out = []
    for r in needs:
        version = packages.get(_plain(r.name))
        if version is None or not r.specifier.contains(version, prereleases=True):
            out.append(r)
    return out


def modules_in_use() -> set[str]:
    """The packages of which the running kernel has loaded a module."""
    owners = metadata.packages_distributions()
    return {
        _plain(name)
        for module in list(sys.modules)
        for name in owners.get(module, ())
    }


def setup(gpu: bool | None = None) -> None:
    """Install what is missing; RuntimeError where pip fails, or where the kernel must restart."""
    gpu = os.path.exists("/dev/nvidiactl") if gpu is None else gpu
    before, in_use = versions(), modules_in_use()
    # What is there stays, so that nothing that the kernel has loaded changes under it.
    needs = missing(requirements("train", *(["gpu"] if gpu else [])), before)
    # unsloth's own pins cannot be met beside the runtime's packages.
    alone = [r for r in needs if r.name.startswith("unsloth")]
    others = [r for r in needs if r not in alone]
    free = {_plain(r.name) for r in needs}
    try:
        _pip(others, {n: v for n, v in before.items() if n not in free})
    # Not everything can stay: then only what is loaded, and torch.
    except RuntimeError:
        fixed = in_use | {*BUILDS} - free
        _pip(others, {n: v for n, v in before.items() if n in fixed})
    _pip(alone, {}, "--no-deps")
    # The running kernel looks for modules anew, so no restart is needed for new packages.
    # Python remembers the folders that it looked into before pip ran.
    importlib.invalidate_caches()
    after = versions()
    old = {n: before[n] for n in sorted(in_use & before.keys())}
    conflicts = [n for n, version in old.items() if after.get(n) != version]
    if conflicts:
        raise RuntimeError(
            f"Installed. {', '.join(conflicts)} changed under the running kernel. "
            "Restart it (Runtime > Restart session), then run from the top."
        )
    print("Ready. No restart is needed.")


def _pip(needs: list[Any], constraints: Mapping[str, str], *options: str) -> None:
    if not needs:
        return
    with tempfile.NamedTemporaryFile("w", suffix=".txt") as file:
        file.writelines(
            f"{name}=={version}\n" for name, version in constraints.items()
        )
        file.flush()
        command = [sys.executable, "-m", "pip", "install", "-q", "-c", file.name]
        command += options
        command += [f"{r.name}[{','.join(r.extras)}]{r.specifier}" for r in needs]
        pip = subprocess.run(command, capture_output=True, text=True)
    if pip.returncode:
        raise RuntimeError(
            f"pip could not install what the kit needs:\n{pip.stderr[-3000:]}"
        )


def _plain(name: str) -> str:
    return name.lower().replace("_", "-").replace(".", "-")


def _packaging(part: str) -> Any:
    """A module of `packaging`, or of the copy in pip."""
    try:
        return importlib.import_module(f"packaging.{part}")
    except ImportError:
        return importlib.import_module(f"pip._vendor.packaging.{part}")


if __name__ == "__main__":
    print(CELL.read_text("utf-8"), end="")
