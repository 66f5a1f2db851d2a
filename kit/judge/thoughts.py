"""What a model thinks before its reply, and where that ends."""

from __future__ import annotations

import re

from .words import Foreign

_FINAL = "<|channel|>final<|message|>"  # before it stands what a harmony model thinks
_NAMES = r"(?:think|thinking|thoughts?|reasoning|analysis|reflection|draft|scratch_?pad|seed:think)"
_OPEN = rf"[<\[\u25c1]{_NAMES}(?:\s[^>\n]{{0,200}})?[>\]\u25b7]"
_CLOSE = rf"[<\[\u25c1]/{_NAMES}[>\]\u25b7]"
_BLOCK = re.compile(
    rf"\s*([<\[\u25c1])({_NAMES})(?:\s[^>\n]{{0,200}})?[>\]\u25b7].*?\1/\2[>\]\u25b7]",
    re.I | re.S,
)
_DRAFT = re.compile(rf"^[ \t]*(?:{_OPEN}|{_CLOSE})", re.I | re.M)
_HALF = re.compile(rf"^[ \t]*{_CLOSE}|{_CLOSE}[ \t\r]*$", re.I | re.M)  # its prompt opened it


def spoken(text: str) -> str:
    """A reply without the thoughts before it; Foreign for a draft that is not closed.

    Thought are the blocks at its beginning (the first may be opened by the prompt, and is then
    closed at an end of a line). A tag that is named further on, in a reason, is text.

    >>> spoken("<think>a <think>?</think>unmet"), spoken("met\\n</think>unmet")
    ('unmet', 'unmet')
    >>> spoken("REASON: no </think> in it")
    'REASON: no </think> in it'
    """
    if text.lstrip().startswith("<|channel|>"):
        text = text.rpartition(_FINAL)[2] if _FINAL in text else text
    at = 0
    while block := _BLOCK.match(text, at):
        at = block.end()
    half = None if at or _DRAFT.match(text.lstrip()) else _HALF.search(text)
    rest = text[half.end() if half else at :]
    if _DRAFT.search(rest):
        raise Foreign(rest)
    return rest
