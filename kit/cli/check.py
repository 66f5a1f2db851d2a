"""`kit check`: versions, device, and what will not work, each with its remedy."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator

from . import Output

Line = tuple[str, str, str]  # what, how it is, the remedy ("" where nothing is wrong)
OPTIONAL = {"unsloth": "make setup-gpu", "bitsandbytes": "make setup-gpu"}


def check() -> Output:
    """Versions, device, dtype and why; what will not work and the remedy."""
    lines = [*_packages(), *_machine(), *_judges()]
    width = max(len(name) for name, _, _ in lines)
    rows = []
    for name, state, remedy in lines:
        rows.append(
            f"{name:{width}}  {state}" + (f"\n{'':{width}}  to do: {remedy}" * bool(remedy))
        )
    wrong = sum(remedy != "" for _, _, remedy in lines)
    return Output(
        text="\n".join(rows),
        data=[{"name": n, "state": s, "remedy": r} for n, s, r in lines],
        next="do what is named above" if wrong else "kit demo",
    )


def _packages() -> Iterator[Line]:
    """Versions beside the pins of constraints.txt (in a checkout)."""
    from ..runs.folders import versions
    from ..system import device, paths

    file = paths.ROOT / "constraints.txt"
    lines = file.read_text("utf-8").splitlines() if file.is_file() else ()
    pins = dict(
        line.split(";")[0].strip().split("==")
        for line in lines
        if "==" in line[:60] and line[0] != "#"
    )
    for name, version in versions().items():
        pin = pins.get(name)
        if version == "not installed":
            needless = name in OPTIONAL and not device.has_nvidia()
            yield (
                name,
                version,
                "" if needless else OPTIONAL.get(name, f"pip install {name}=={pin}"),
            )
        elif pin and version.split("+")[0] != pin:
            yield name, f"{version} (the pin is {pin})", f"pip install {name}=={pin}"
        else:
            yield name, version, ""


def _machine() -> Iterator[Line]:
    from ..system import device, paths, profiles

    profile = profiles.resolve()
    yield "profile", f"{profile.name}: {profile.why}", ""
    yield "device", str(device.choose()), ""
    free = shutil.disk_usage(paths.home()).free / 2**30
    yield "disk", f"{free:.0f} GiB free", "" if free > 3 else "free 3 GiB, or set KIT_HOME"
    for name in ("recorded", "models"):
        cached = any((paths.home() / name).glob("*"))
        yield f"download {name}", "cached" if cached else "missing", "" if cached else "kit fetch"


def _judges() -> Iterator[Line]:
    """The default model of an endpoint, its end of life, and whether a key is set (never the key)."""
    from ..judging.prices import catalog, shutdown_warning

    model = catalog()["default"]
    warning = shutdown_warning(model)
    yield "judge model", warning or model, "name another one with --model" if warning else ""
    key = "set" if os.environ.get("OPENAI_API_KEY") else "not set; endpoint judges need it"
    yield "OPENAI_API_KEY", key, ""
