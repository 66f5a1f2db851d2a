"""What in a reply is not the judge's verdict: its drafts, and the prompt said back."""

from __future__ import annotations

import re
from collections.abc import Sequence

_NAMES = r"(?:think|thinking|thoughts?|reasoning|analysis|reflection|draft|scratch_?pad|seed:think)"
_OPEN = rf"<{_NAMES}(?:\s[^>\n]{{0,200}})?>|\[THINK\]|\u25c1think\u25b7"
_CLOSE = rf"</{_NAMES}>|\[/THINK\]|\u25c1/think\u25b7"
_TAGS = re.compile(f"(?P<open>{_OPEN})|(?P<close>{_CLOSE})", re.I)
_FINAL = "<|channel|>final<|message|>"  # before it stands what a harmony model thinks
_ECHO = re.compile(r"<<<(TASK|SOURCES|ANSWER|TURN) (\w{1,64})\n")
_FENCE = re.compile(r"^ {0,3}(```|~~~)[^\n]*\n(.*?)(?:^ {0,3}\1|\Z)", re.S | re.M)
_MARKS = re.compile(
    r"<(quote|q|blockquote|pre)\b.*?(?:</\1\s*>|\Z)"
    "|<!--.*?(?:-->|\\Z)"
    "|[\u00ab\u201c][^\u00bb\u201d]{0,4000}[\u00bb\u201d]",
    re.S | re.I,
)
_OWN = (  # tags around a judge's own words
    "(?:answer|final|output|results?|verdicts?|evaluation|assessment|judge?ment|json|b|strong|i|em|"
    "u|code|p|div|span|ul|ol|li|br|hr|h[1-6]|table|t[bdhr]|tbody)"
)
_TAGGED = re.compile(
    rf"^[ \t]*<(?!{_OWN}\b)([a-z_][\w:-]*)\b[^>\n]*>(?:.*?</\1\s*>|.*\Z)", re.S | re.M | re.I
)
_INDENTED = re.compile(r"^(?: {4}|\t)[^\n]*", re.M)
_WHOSE = r"\b(?:answer|response|submission|text|author|student|candidate|assistant|it)"
_REPORTS = re.compile(
    _WHOSE + r"\s+(?:\w+\s+){0,2}(?:sa(?:ys|id)|claim|contain|read|writ|wrote|stat|end|has\b|had\b"
    r"|includ|tr(?:y|ies|ied)|demand|ask|want|hold|begin|start|offer|giv|gave|propos|suggest)"
    r"|\b(?:quot|inject|verbatim|for example|e\.g\.|such as)|\b(?:answer|submission)\W*$",
    re.I,
)
_DENIES = re.compile(
    r"\b(?:can\s?not|could not|unable to|will not|refuse to|do not|(?:ca|wo|do)n['\u2019]t)"
    r"\s+(?:\w+\s+)?(?:judge|decide|tell|assess|follow|evaluate|check|grade|obey|say|accept)"
    r"|\b(?:follow|obey|believe) (?:none|neither)|\bignor(?:e|ed|ing)\b",
    re.I,
)


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


def quotations(text: str) -> list[tuple[int, int]]:
    """Places in a reply that are another's words: quoted, indented, or said to be the answer's.

    A code block is the judge's own, unless the line before it reports ("The answer says:") or the
    prose around it will not judge.

    >>> quotations("<quote>VERDICT c1: met</quote>"), quotations("VERDICT c1: met")
    ([(0, 30)], [])
    """
    blocks = [(m.start(), m.end()) for m in _FENCE.finditer(text)]
    denied = _DENIES.search(_outside(text, blocks)) if blocks else None
    out = [(a, b) for a, b in blocks if denied or reported(text, a)]
    out += [m.span() for m in _MARKS.finditer(text)]
    out += [m.span() for m in _TAGGED.finditer(text)]
    inside = [m.span() for m in _INDENTED.finditer(text)]
    out += [(a, b) for a, b in inside if not covered(a, blocks)]
    return list(dict.fromkeys(out))  # two patterns may know the same place


def reported(text: str, at: int) -> bool:
    """True when the last line before a place says that another's words follow."""
    return reports(text[max(0, at - 500) : at].rstrip(" \t\n*_`").rpartition("\n")[2])


def reports(line: str) -> bool:
    """True for a line that tells what the answer says."""
    return bool(_REPORTS.search(line))


def covered(at: int, spans: Sequence[tuple[int, int]]) -> bool:
    """True for a place inside one of these spans."""
    return any(a <= at < b for a, b in spans)


def _outside(text: str, blocks: list[tuple[int, int]]) -> str:
    ends = [0, *(b for _, b in blocks)]
    starts = [*(a for a, _ in blocks), len(text)]
    return "\n".join(text[a:b] for a, b in zip(ends, starts, strict=True))
