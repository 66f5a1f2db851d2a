"""Which engine trains: unsloth, or transformers with peft. unsloth must be imported first of all."""

import importlib
import importlib.util
import os
import sys
from types import ModuleType

from ..errors import DataError
from ..system import paths
from ..system.device import has_nvidia, import_torch
from . import ranks


def pick_engine(engine: str) -> tuple[str, str]:
    """The engine and the reason for it."""
    if engine != "auto":
        return engine, f"{engine} was requested"
    if ranks.world() > 1:
        return "transformers", "several processes train"
    # without a driver torch is not imported: this is asked whenever settings are read
    if not (has_nvidia() and import_torch().cuda.is_available()):
        return "transformers", "there is no CUDA device"
    if importlib.util.find_spec("unsloth") is None:
        return "transformers", "unsloth is not installed"
    return "unsloth", "a CUDA device and unsloth are present"


def import_unsloth() -> ModuleType:
    """unsloth, which must be imported before trl, transformers and peft, or its patches are lost."""
    # unsloth rewrites these modules while they load
    late = [m for m in ("trl", "transformers", "peft") if m in sys.modules]
    if "unsloth" not in sys.modules and late:
        raise DataError(
            f"{', '.join(late)} was imported before unsloth, whose patches would be lost",
            where="engine unsloth",
            fix="restart the kernel and write `import unsloth` first, or set engine: transformers",
        )
    import_torch()
    os.environ.setdefault("UNSLOTH_DISABLE_STATISTICS", "1")
    # else unsloth writes into the working directory
    os.environ.setdefault(
        "UNSLOTH_COMPILE_LOCATION", str(paths.home() / "unsloth_compiled_cache")
    )
    return importlib.import_module("unsloth")
