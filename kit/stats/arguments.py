"""One check each for what statistics are asked with: a level, a seed, a count."""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable
from functools import wraps
from numbers import Real
from typing import Any, TypeVar

import numpy as np

from ..errors import DataError
from .estimate import Estimate

F = TypeVar("F", bound=Callable[..., Any])


def sure_level(level: Any) -> float:
    """A confidence level in (0, 1); DataError otherwise.

    >>> sure_level(0.9)
    0.9
    """
    if isinstance(level, Real) and 0 < level < 1:
        return float(level)
    raise DataError(f"level is {level!r}, not in (0, 1)", where="level", fix="0.95 is usual")


def in_bounds(x: np.ndarray, bounds: tuple[float, float]) -> None:
    """DataError where a value (n,) lies outside the range that values can have; NaN is nowhere.

    >>> in_bounds(np.array([0.0, np.nan]), (0.0, 1.0))
    """
    fix = "give the range that a value can have as bounds=(low, high)"
    pair = isinstance(bounds, (tuple, list)) and len(bounds) == 2
    if not (pair and all(isinstance(b, Real) for b in bounds) and bounds[0] < bounds[1]):
        raise DataError(f"bounds are {bounds}", where="argument bounds", fix=fix)
    bad = np.flatnonzero((x < bounds[0] - 1e-12) | (x > bounds[1] + 1e-12))
    if len(bad):
        raise DataError(
            f"a value, {x[bad[0]]:g}, is outside [{bounds[0]:g}, {bounds[1]:g}]",
            where=f"values, row {int(bad[0])}",
            fix=fix,
        )


def whole(name: str, value: Any, least: int = 0) -> int:
    """A whole number, at least `least`; DataError otherwise.

    >>> whole("draws", 100.0, 1)
    100
    """
    number = isinstance(value, Real) and not isinstance(value, bool) and math.isfinite(value)
    if number and value == int(value) and value >= least:
        return int(value)
    raise DataError(
        f"{name} is {value!r}",
        where=f"argument {name}",
        fix=f"give a whole number, {least} or more",
    )


def of_numbers(function: F) -> F:
    """Let a function of numbers refuse, by name, what is no finite number.

    >>> of_numbers(lambda n: n + 1)(2)
    3
    """
    signature = inspect.signature(function)

    @wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        for name, value in signature.bind(*args, **kwargs).arguments.items():
            if isinstance(value, bool) or not isinstance(value, Real) or not math.isfinite(value):
                raise DataError(
                    f"{name} is {value!r}", where=f"argument {name}", fix="give a finite number"
                )
        return function(*args, **kwargs)

    return call  # type: ignore[return-value]


def is_estimate(name: str, value: Any) -> None:
    """DataError where a value is no estimate.

    >>> is_estimate("result", Estimate(0.3, 0.1, 0.5, 100))
    """
    if not isinstance(value, Estimate):
        raise DataError(
            f"{name} is {value!r:.60}",
            where=f"argument {name}",
            fix="give an Estimate, as kit.difference and kit.mean return",
        )


def share(name: str, value: Any) -> float:
    """A number in [0, 1]; DataError otherwise.

    >>> share("margin", 0)
    0.0
    """
    if isinstance(value, Real) and not isinstance(value, bool) and 0 <= value <= 1:
        return float(value)
    where, fix = f"argument {name}", "use a number in [0, 1]"
    raise DataError(f"{name} is {value!r}", where=where, fix=fix)


def generator(seed: Any) -> np.random.Generator:
    """Random numbers from a seed, a whole number of 0 or more, or from a generator."""
    made = isinstance(seed, np.random.Generator)
    return seed if made else np.random.default_rng(whole("seed", seed))
