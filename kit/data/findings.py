"""A finding: something that a reader or the lint noticed, with its place and what to do."""

from __future__ import annotations

from dataclasses import dataclass

SEVERITIES = ("error", "warning", "info")


@dataclass(frozen=True, kw_only=True)
class Finding:
    """One thing that is wrong or worth knowing.

    code : the rule, e.g. "annotator-note"; severity : "error", "warning" or "info".
    message : what is wrong, in one sentence; suggestion : what to do.
    where : file, line or row, field; row : 1-based row number; None = the whole file.
    confidence : how sure the rule is, in [0, 1].

    >>> str(Finding(code="empty", severity="error", message="no text", row=3, criterion_id="c1"))
    'error empty: no text (row 3, c1)'
    """

    code: str
    severity: str
    message: str
    where: str | None = None
    row: int | None = None
    task_id: str | None = None
    criterion_id: str | None = None
    field: str | None = None
    text: str | None = None
    suggestion: str | None = None
    confidence: float = 1.0

    def __str__(self) -> str:
        place = ", ".join(
            x
            for x in (f"row {self.row}" if self.row else self.where, self.criterion_id, self.field)
            if x
        )
        return f"{self.severity} {self.code}: {self.message}" + (f" ({place})" if place else "")


class Note(str):
    """Something worth knowing about a file. code, severity : of the finding that it becomes.

    >>> note = Note("encoding", "read as latin-1")
    >>> note, note.code
    ('read as latin-1', 'encoding')
    """

    __slots__ = ("code", "severity")

    def __new__(cls, code: str, text: str, severity: str = "warning") -> Note:
        note = super().__new__(cls, text)
        note.code, note.severity = code, severity
        return note


def noted(n: int, code: str, message: str, fix: str, file: str) -> list[Finding]:
    """A warning with its count; none of nothing."""
    return [
        Finding(
            code=code,
            severity="warning",
            message=f"{n} {message}",
            where=file,
            suggestion=fix,
        )
    ] * bool(n)
