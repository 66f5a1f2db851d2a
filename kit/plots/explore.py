"""Explorers: controls (ipywidgets) over plain functions."""

from __future__ import annotations

from typing import Any

from ..errors import DataError


def explore(thing: Any, **options: Any) -> Any:
    """To be written."""
    raise DataError(f"there is no explorer of a {type(thing).__name__}", where="explore")
