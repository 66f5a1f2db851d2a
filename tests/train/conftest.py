"""Training tests: the libraries' objects are left out of garbage collection, which the trainer runs after every training."""

from __future__ import annotations

import gc
from collections.abc import Iterator

import pytest


@pytest.fixture(scope="session", autouse=True)
def _frozen_libraries() -> Iterator[None]:
    """accelerate collects at the end of each training: 0.35 s with the libraries' million objects, nothing without them."""
    from kit.system.device import import_torch

    import_torch()
    import peft  # noqa: F401
    import trl

    assert (
        trl.GRPOTrainer and trl.SFTTrainer and trl.DPOTrainer
    )  # lazy: looked up, so that they are loaded
    gc.collect()
    gc.freeze()
    yield
    gc.unfreeze()
