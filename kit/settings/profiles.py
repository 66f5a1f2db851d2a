"""Profiles: one name sets every size. Explicit name > KIT_PROFILE > detected hardware > cpu."""

from __future__ import annotations

import contextlib
import os
import shutil
from dataclasses import dataclass

from ..errors import KitError
from .read import nearest

NAMES = ("test", "cpu", "t4", "gpu", "cluster")


@dataclass(frozen=True, kw_only=True)
class Profile:
    """A resolved profile: its name, and why it was chosen.

    name : one of NAMES; why : one sentence for the notebook's first output.
    """

    name: str
    why: str

    @property
    def small(self) -> bool:
        """True for the profile of the tests: everything tiny, seconds."""
        return self.name == "test"


def resolve(name: str | None = None) -> Profile:
    """The profile to use; importing no torch unless neither a name nor KIT_PROFILE is given.

    >>> resolve("test").small
    True
    """
    if name:
        why = f"profile {name!r} was asked for"
    else:
        set_ = os.environ.get("KIT_PROFILE")
        name, why = (set_, "KIT_PROFILE is set") if set_ else _detect()
    if name not in NAMES:
        raise KitError(
            f"there is no profile {name!r}",
            where="parameter `profile` or KIT_PROFILE",
            fix=nearest(name, NAMES),
        )
    return Profile(name=name, why=why)


def _detect() -> tuple[str, str]:
    if (
        not os.path.exists("/dev/nvidiactl") and shutil.which("nvidia-smi") is None
    ):  # saves importing torch (seconds)
        return "cpu", "no NVIDIA device was found"
    with contextlib.suppress(ImportError):
        import torch

        if torch.cuda.is_available():
            memory = torch.cuda.get_device_properties(0).total_memory / 2**30
            device = torch.cuda.get_device_name(0)
            return ("gpu" if memory >= 22 else "t4"), f"found {device} with {memory:.0f} GiB"
    return "cpu", "no CUDA device was found"
