"""Errors that a user can act on: what is wrong, where, and what to do."""

from collections.abc import Mapping
from typing import Any, Self


class KitError(Exception):
    """Base of all errors of the kit. The command line prints it without a traceback.

    what : the fault, one sentence. where : file, row and field. fix : what the user can do.
    renames : fields of the input -> our names, where such a rename is likely.
    calls : each call of `load` in the fix -> the file and the options in it.

    >>> print(KitError("weight is not a number", where="tasks.jsonl, line 3, field weight", fix="write 1.0"))
    weight is not a number
      where: tasks.jsonl, line 3, field weight
      to do: write 1.0
    """

    # The command line's exit code; scripts tell causes apart by it. 1 is a fault of the kit.
    exit_code = 2

    def __init__(
        self,
        what: str,
        *,
        where: str = "",
        fix: str = "",
        renames: Mapping[str, str] | None = None,
        calls: Mapping[str, Mapping[str, Any]] | None = None,
    ):
        # The parts stay, so that a caller can add the place and raise the error anew.
        self.what, self.where, self.fix = what, where, fix
        self.renames, self.calls = dict(renames or {}), dict(calls or {})
        lines = [what, where and f"  where: {where}", fix and f"  to do: {fix}"]
        super().__init__("\n".join(filter(None, lines)))

    def at(self, place: str) -> Self:
        """The same error, with a place in front of its own."""
        return type(self)(
            self.what,
            where=", ".join(filter(None, (place, self.where))),
            fix=self.fix,
            renames=self.renames,
            calls=self.calls,
        )


class DataError(KitError):
    """Input (a file, a row, a setting, a parameter) that is not in its documented form."""


class MissingError(KitError):
    """Something that must be there is not: a file, a package, a download, a recorded reply, space on a disk."""

    exit_code = 3


class BudgetError(KitError):
    """The work ended early, at a cap on calls or money or by Ctrl-C. What was done is saved."""

    exit_code = 4


class JudgeDownError(KitError):
    """The judge does not answer. What was done is saved."""

    exit_code = 5
