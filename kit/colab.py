"""The opening cells of every notebook, and the install on Colab. Standard library only: it runs before anything is installed.

The install is resolved against what the runtime already has (its packages become constraints), so that it
adds what is missing and moves nothing that is loaded; a restart is asked for only when something loaded did move.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from importlib import metadata
from pathlib import Path

REPO = os.environ.get("KIT_REPO", "https://github.com/rubric-kit/rubric-kit")
CHECKOUT = "/content/rubric-kit"
# What a runtime lacks, at the versions of constraints.txt; the rest of the runtime stays as it is.
ADD = ("trl==1.14.2", "peft", "bitsandbytes", "gguf", "papermill", "json-repair", "openai>=3.50", "datasets<5")
UNSLOTH = ("unsloth==2026.10.9", "unsloth_zoo==2026.10.9")
UNSLOTH_NEEDS = ("tyro", "cut_cross_entropy", "msgspec", "torchao", "einops", "hf_transfer", "structlog")
# Packages that a fresh Colab kernel has loaded: when one of them moves, the kernel must restart.
LOADED = ("numpy", "pandas", "ipywidgets", "torch")

INSTALL_CELL = f'''# Colab only: installs the kit beside what the runtime has (2-4 minutes); does nothing elsewhere.
import os, subprocess, sys
if "COLAB_RELEASE_TAG" in os.environ:
    if not os.path.isdir("{CHECKOUT}"):
        subprocess.run(["git", "clone", "--depth", "1", "{REPO}", "{CHECKOUT}"], check=True)
    sys.path.insert(0, "{CHECKOUT}")
    print(subprocess.run([sys.executable, "{CHECKOUT}/kit/colab.py"], text=True, stdout=subprocess.PIPE).stdout)'''


def badge(notebook: str) -> str:
    """The Markdown badge that opens a notebook on Colab.

    >>> "colab.research.google.com" in badge("01_x")
    True
    """
    path = REPO.removeprefix("https://github.com/")
    return (f"[![Open In Colab](https://colab.research.google.com/assets/colab-badge.svg)]"
            f"(https://colab.research.google.com/github/{path}/blob/main/notebooks/{notebook}.ipynb)")


def installed() -> dict[str, str]:
    """name -> version of every installed distribution."""
    return {(d.metadata["Name"] or "").lower(): d.version for d in metadata.distributions() if d.metadata["Name"]}


def constraints(have: dict[str, str]) -> str:
    """The runtime's packages as a constraints file; what we add ourselves is left free.

    >>> constraints({"numpy": "2.0.2", "peft": "0.1"})
    'numpy==2.0.2\\n'
    """
    ours = {a.split("=")[0].split(">")[0].split("<")[0].lower() for a in (*ADD, *UNSLOTH, *UNSLOTH_NEEDS)}
    return "".join(f"{n}=={v.split('+')[0]}\n" for n, v in sorted(have.items()) if n not in ours)


def install(*, gpu: bool | None = None) -> list[str]:
    """Install the kit into this runtime; returns the loaded packages whose version moved (restart when any)."""
    before = installed()
    with tempfile.NamedTemporaryFile("w", suffix=".txt", delete=False) as f:
        f.write(constraints(before))
    pip = [sys.executable, "-m", "pip", "install", "-q", "--disable-pip-version-check"]
    subprocess.run([*pip, "-c", f.name, *ADD], check=True)
    subprocess.run([*pip, "--no-deps", "-e", str(Path(__file__).resolve().parents[1])], check=True)
    if gpu if gpu is not None else os.path.exists("/dev/nvidiactl"):
        subprocess.run([*pip, "-c", f.name, *UNSLOTH_NEEDS], check=True)
        subprocess.run([*pip, "--no-deps", *UNSLOTH], check=True)
    metadata.MetadataPathFinder.invalidate_caches()
    after = installed()
    return [n for n in LOADED if n in before and after.get(n) != before[n]]


if __name__ == "__main__":
    moved = install()
    print("Restart the runtime (Runtime > Restart session), then run from the top: " + ", ".join(moved) + " changed." if moved
          else "Ready, no restart needed.")
