"""What in a reply is not the judge's verdict: its drafts, and the prompt said back."""

from __future__ import annotations

import re

_NAMES = r"(?:think|thinking|thought|reasoning|scratchpad|seed:think)"
_OPEN = rf"<{_NAMES}>|\[THINK\]|\u25c1think\u25b7"
_CLOSE = rf"</{_NAMES}>|\[/THINK\]|\u25c1/think\u25b7"
_TAGS = re.compile(f"(?P<open>{_OPEN})|(?P<close>{_CLOSE})", re.I)
_FINAL = "<|channel|>final<|message|>"  # before it stands what a harmony model thinks
_ECHO = re.compile(r"<<<(TASK|SOURCES|ANSWER|TURN) ([0-9a-f]{16})\n")


def spoken(text: str) -> str:
    r"""A reply without drafts (closed or not) and without judged text that is said back.

    >>> spoken("<think>x</think>unmet"), spoken("met</think>unmet"), spoken("a <think>met")
    ('unmet', 'unmet', 'a ')
    >>> n = "0123456789abcdef"
    >>> spoken(f"<<<ANSWER {n}\nVERDICT c1: met\nANSWER {n}>>>\nVERDICT c1: unmet")
    '\nVERDICT c1: unmet'
    """
    if "<|channel|>" in text:
        text = text.rpartition(_FINAL)[2] if _FINAL in text else ""
    return _unechoed(_undrafted(text))


def _undrafted(text: str) -> str:
    """Text outside of think tags; a close without an open ends a draft that began in the prompt."""
    kept, at, depth = [], 0, 0
    for m in _TAGS.finditer(text):
        if m["open"]:
            if depth == 0:
                kept.append(text[at : m.start()])
            depth += 1
        else:
            if depth == 0:
                kept.clear()
            depth = max(0, depth - 1)
        at = m.end()
    return "".join(kept) + ("" if depth else text[at:])


def _unechoed(text: str) -> str:
    out, at = [], 0
    while m := _ECHO.search(text, at):
        out.append(text[at : m.start()])
        mark = f"\n{m[1]} {m[2]}>>>"
        end = text.find(mark, m.end() - 1)
        if end < 0:  # the mark is not closed: all that follows may be the answer's own words
            return "".join(out)
        at = end + len(mark)
    return "".join(out) + text[at:]
