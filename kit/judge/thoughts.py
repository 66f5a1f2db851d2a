"""What a model thinks before its reply, and where that ends."""

from __future__ import annotations

import re

from .words import Foreign

_FINAL = re.compile(  # before it stands what a harmony model thinks
    r"(?:\A|<\|end\|>\s*<\|start\|>assistant)\s*<\|channel\|>final"
    r"(?: ?<\|constrain\|>\w+)?<\|message\|>"
)
_NAMES = r"(?:think|thinking|thoughts?|reasoning|analysis|reflection|draft|scratch_?pad|seed:think)"
_OPEN = rf"[<\[\u25c1]{_NAMES}(?:\s[^>\n]{{0,200}})?[>\]\u25b7]"
_CLOSE = rf"[<\[\u25c1]/{_NAMES}[>\]\u25b7]"
_BLOCK = re.compile(
    rf"\s*([<\[\u25c1])({_NAMES})(?:\s[^>\n]{{0,200}})?[>\]\u25b7].*?\1/\2[>\]\u25b7]",
    re.I | re.S,
)
_DRAFT = re.compile(rf"^[ \t]*(?:{_OPEN}|{_CLOSE})", re.I | re.M)
_FORM = re.compile(r"^[^\w\n]{0,12}verdict\b[^\n]{0,48}[:=\uff1a]", re.I | re.M)
_HALF = re.compile(rf"^[ \t]*{_CLOSE}|{_CLOSE}[ \t\r]*$", re.I | re.M)  # its prompt opened it


def spoken(text: str) -> str:
    """A reply without the thoughts before it; Foreign for a draft that is not closed.

    Thought are the blocks at its beginning (the first may be opened by the prompt, and is then
    closed at an end of a line; not with a verdict line in it). A tag that is named further on, in a reason, is text.

    >>> spoken("<think>a <think>?</think>unmet"), spoken("met\\n</think>unmet")
    ('unmet', 'unmet')
    >>> spoken("REASON: no </think> in it")
    'REASON: no </think> in it'
    """
    final = _FINAL.search(text.lstrip()) if text.lstrip().startswith("<|channel|>") else None
    if final:
        text = text.lstrip()[final.end() :]
        if "<|channel|>" in text:  # a second one, or a quotation
            raise Foreign(text)
    at = 0
    while block := _BLOCK.match(text, at):
        at = block.end()
    half = None if at or _DRAFT.match(text.lstrip()) else _HALF.search(text)
    if half and _FORM.search(text, 0, half.start()):  # perhaps no thought, but a reply
        raise Foreign(text)
    rest = text[half.end() if half else at :]
    if _DRAFT.search(rest):
        raise Foreign(rest)
    return rest
