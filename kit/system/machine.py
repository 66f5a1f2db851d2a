"""What `kit check` says of this machine: its packages, profile, device, disk and downloads, each with what to do."""

import platform
import re
import shutil
from collections.abc import Iterator
from contextlib import suppress
from importlib import metadata

from .. import __version__
from . import device, paths, profiles

PACKAGES = (
    "torch", "transformers", "trl", "peft", "bitsandbytes", "unsloth", "openai", "plotly",
    "papermill", "numpy", "scipy", "pandas", "scikit-learn",
)  # fmt: skip


def versions() -> dict[str, str]:
    """Versions of the packages that shape a result. None of them is imported."""
    out = dict.fromkeys(PACKAGES, "not installed")
    for name in PACKAGES:
        with suppress(metadata.PackageNotFoundError):
            out[name] = metadata.version(name)
    return {"python": platform.python_version(), "kit": __version__, **out}


def check_rows() -> Iterator[tuple[str, str, str]]:
    """The rows of `kit check`: (name, state, what to do)."""
    yield from _package_rows()
    profile = profiles.resolve()
    yield "profile", f"{profile.name}: {profile.why}", ""
    yield "device", str(device.choose()), ""
    # A training writes checkpoints, and the downloads take 1.3 GB with the judge.
    free, remedy = shutil.disk_usage(paths.home()).free / 2**30, ""
    if free <= 3:
        remedy = "free 3 GiB, or set KIT_HOME"
    yield "disk", f"{free:.0f} GiB free", remedy
    for name in ("recorded", "models"):
        state, remedy = "missing", "kit fetch"
        if any((paths.home() / name).glob("[!.]*")):
            state, remedy = "cached", ""
        yield f"download {name}", state, remedy


def _package_rows() -> Iterator[tuple[str, str, str]]:
    """Versions beside the pins of constraints.txt (in a checkout)."""
    file = paths.ROOT / "constraints.txt"
    text = file.read_text("utf-8") if file.is_file() else ""
    pins = dict(re.findall(r"^([\w.-]+)==([^\s;]+)", text, re.M))
    for name, version in versions().items():
        pin, remedy = pins.get(name), ""
        is_needed = name not in ("unsloth", "bitsandbytes") or device.has_nvidia()
        if version == "not installed" and is_needed:
            remedy = f"make setup, or setup-gpu for {name}"
        # Builds of torch such as 2.4.0+cu121 meet the pin 2.4.0.
        elif pin and version.split("+")[0] not in (pin, "not installed"):
            remedy = f"pip install {name}=={pin}"
        yield name, version, remedy
