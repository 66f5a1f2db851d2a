"""One error type for users: what went wrong, where, and what to do about it."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from contextlib import contextmanager


class KitError(Exception):
    """An error that a user can act on; the command line prints it without a traceback.

    Parameters
    ----------
    what : what is wrong, one sentence.
    where : file, row and field, as exactly as known.
    fix : what the user can do.

    >>> place = "tasks.jsonl, line 3, field weight"
    >>> print(KitError("weight is not a number", where=place, fix="write 1.0"))
    weight is not a number
      where: tasks.jsonl, line 3, field weight
      to do: write 1.0
    """

    exit_code = 2

    def __init__(self, what: str, *, where: str | None = None, fix: str | None = None):
        self.what, self.where, self.fix = what, where, fix
        lines = [what]
        if where:
            lines.append(f"  where: {where}")
        if fix:
            lines.append(f"  to do: {fix}")
        super().__init__("\n".join(lines))

    @classmethod
    def first(cls, *faults: tuple[object, str, str | None, str | None]) -> None:
        """Raise for the first fault that is there; each is (is it there?, what, where, fix).

        >>> DataError.first((False, "no rows", "file", None), (1 > 2, "too few", "n", "give 2"))
        """
        for there, what, where, fix in faults:
            if there:
                raise cls(what, where=where, fix=fix)

    @classmethod
    def other(cls, name: str, value: object, known: Collection[object], where: str) -> None:
        """Raise unless the value is among those that are known.

        >>> KitError.other("mode", "log", ("log", "brier"), "argument mode")
        """
        if value not in known:
            fix = f"use one of {', '.join(map(str, known))}"
            raise cls(f"{name} is {value!r}", where=where, fix=fix)


@contextmanager
def at(where: str, what: str | None = None) -> Iterator[None]:
    """Inside, an error is placed: `where` stands before its own place, or before `what`."""
    try:
        yield
    except KitError as e:
        places = filter(None, (where, e.where or what))
        raise type(e)(e.what, where=", ".join(places), fix=e.fix) from None


class DataError(KitError):
    """Input data that cannot be read as what it should be."""


class MissingError(KitError):
    """Something that must be there (a file, a cached download, a recorded reply) is not."""

    exit_code = 3


class BudgetError(KitError):
    """A cap in calls, tokens, money or time was reached; what was done is saved."""

    exit_code = 4


class JudgeDownError(KitError):
    """The judge did not answer for longer than the caller was ready to wait."""

    exit_code = 5
