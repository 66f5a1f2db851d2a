"""A message of a reader that lost no row."""

from __future__ import annotations


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
