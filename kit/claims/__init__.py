"""Rewards by rule over truths that a task carries: facts, directed claims, confidence."""

from .base import NAMES, applicable, verify

__all__ = ["NAMES", "applicable", "verify"]
