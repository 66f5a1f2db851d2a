"""Profiles: one name sets every size. Explicit name > KIT_PROFILE > detected hardware > cpu."""

import os
from dataclasses import dataclass

from .device import has_nvidia, import_torch
from .settings import require_name

NAMES = ("test", "cpu", "t4", "gpu", "cluster")


@dataclass(frozen=True)
class Profile:
    """name : one of NAMES. why : one sentence for the notebook's first output."""

    name: str
    why: str


def resolve(name: str | None = None) -> Profile:
    """The profile to use. torch is imported only where an NVIDIA device may be present.

    >>> resolve("test").name
    'test'
    """
    variable = os.environ.get("KIT_PROFILE")
    if name:
        profile = Profile(name, "it was requested")
    elif variable:
        profile = Profile(variable, "KIT_PROFILE is set")
    else:
        profile = _detect()
    require_name(
        "profile", profile.name, NAMES, where="parameter profile, or KIT_PROFILE"
    )
    return profile


def _detect() -> Profile:
    if has_nvidia():
        torch = import_torch()
        if torch.cuda.is_available():
            memory = torch.cuda.get_device_properties(0).total_memory / 2**30
            # 22 GiB parts an L4 or A10 (24) from a T4 (16).
            return Profile(
                "gpu" if memory >= 22 else "t4",
                f"{torch.cuda.get_device_name(0)} with {memory:.0f} GiB was detected",
            )
    return Profile("cpu", "no CUDA device was detected")
