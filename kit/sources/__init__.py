"""Readers and writers per format, and pinned fetches of data and models with checksums."""

from __future__ import annotations

from .findings import Finding

__all__ = ["Finding"]
