"""A message of a reader that lost no row."""

from __future__ import annotations


class Note(str):
    """Something worth knowing about a file. code : of the finding that it becomes.

    >>> note = Note("encoding", "read as latin-1")
    >>> note, note.code
    ('read as latin-1', 'encoding')
    """

    __slots__ = ("code",)

    def __new__(cls, code: str, text: str) -> Note:
        note = super().__new__(cls, text)
        note.code = code
        return note
