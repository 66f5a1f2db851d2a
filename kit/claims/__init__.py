"""Rewards by rule over truths that a task carries: facts, directed claims, confidence."""

from .bags import known_names
from .base import NAMES, applicable, verify

__all__ = ["NAMES", "applicable", "known_names", "verify"]
