"""The install cell of the notebooks on Colab. It needs the standard library and pip only.

pip leaves a package that is good enough as it is, and changes what the kit cannot work with. torch stays the
runtime's build. A restart is asked for only when a package changed that the running kernel has loaded.
`python -m kit.system.colab` prints the cell.
"""

import importlib
import os
import subprocess
import sys
import tempfile
from importlib import metadata
from pathlib import Path

NAME = "rubric-rewards-kit"
# Another build of these would not fit the GPU's driver.
TORCH_BUILDS = ("torch", "torchvision", "torchaudio")


def installed_versions() -> dict[str, str]:
    """The version of every installed package, by name."""
    return {
        _normalized(d.metadata["Name"]): d.version for d in metadata.distributions()
    }


def loaded_packages() -> set[str]:
    """The packages of which the running kernel has loaded a module."""
    owners = metadata.packages_distributions()
    return {
        _normalized(name)
        for module in list(sys.modules)
        for name in owners.get(module, ())
    }


def setup(gpu: bool | None = None) -> None:
    """Install what is missing; RuntimeError where pip fails, or where the kernel must restart."""
    if gpu is None:
        gpu = os.path.exists("/dev/nvidiactl")
    before, loaded = installed_versions(), loaded_packages()
    extras = "train,tune,colab"
    if gpu:
        extras += ",gpu"
    # The kit itself is there, so pip adds what it and its extras need.
    _pip_install(f"{NAME}[{extras}]", fixed=before)
    if gpu:
        # unsloth's own pins cannot be met beside the runtime's packages.
        needs = metadata.requires(NAME) or []
        pins = [r.split(";")[0].strip() for r in needs if r.startswith("unsloth")]
        _pip_install("--no-deps", *pins, fixed=before)
    # Python remembers the folders that it looked into before pip ran.
    importlib.invalidate_caches()
    after = installed_versions()
    changed = [
        n for n in sorted(loaded & before.keys()) if after.get(n) != before[n]
    ]
    if changed:
        raise RuntimeError(
            f"Installed. {', '.join(changed)} changed under the running kernel. "
            "Restart it (Runtime > Restart session), then run from the top."
        )
    print("Ready. No restart is needed.")


def _pip_install(*needs: str, fixed: dict[str, str]) -> None:
    with tempfile.NamedTemporaryFile("w", suffix=".txt") as constraints:
        constraints.writelines(
            f"{name}=={fixed[name]}\n" for name in TORCH_BUILDS if name in fixed
        )
        constraints.flush()
        pip = subprocess.run(
            [
                *(sys.executable, "-m", "pip", "install", "-q"),
                *("-c", constraints.name, *needs),
            ],
            capture_output=True,
            text=True,
        )
    if pip.returncode:
        raise RuntimeError(
            f"pip could not install what the kit needs:\n{pip.stderr[-3000:]}"
        )


def _normalized(name: str) -> str:
    return name.lower().replace("_", "-").replace(".", "-")


if __name__ == "__main__":
    print(Path(__file__).with_name("colab_cell.txt").read_text("utf-8"), end="")
