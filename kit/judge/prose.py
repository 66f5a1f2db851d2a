"""The words around the verdicts of a reply in free form: they decide nothing, but may take back.

A line that introduces a verdict as somebody else's ("Draft:", "The author claims:"), a line behind
it that takes it back ("Ignore the above."), a refusal, another verdict word in a sentence ("FINAL:
unmet"): a verdict among such words is no answer, and is asked for again.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from ..records import Criterion
from .drafts import reports
from .lines import lines
from .words import word

LONGEST = 300  # characters of a line of prose that is looked at for verdict words
SENTENCE = 12  # words; a longer line that names no criterion is no verdict
_MARKS = " \t*_`~#>-|"
_WORD = re.compile(
    r"(?P<not>\b(?:not|never|no longer|\w+n['\u2019]t)\s+(?:\w+\s+){0,2})?\b(?P<un>un)?met\b", re.I
)
_MEANS = re.compile(  # the same in other words, behind a verdict
    r"(?P<not>\b(?:not|never|no longer|\w+n['\u2019]t)\s+(?:\w+\s+){0,2})?\b"
    r"(?:(?P<un>fail(?:s|ed)?|unsatisfied|violat\w+)|satisf(?:y|ies|ied)|fulfil\w*|meets?|pass(?:es|ed)?)\b",
    re.I,
)
_ASKS = re.compile(r"\b(?:hope|please|whether|if|which|would|could|unless|when)\b|\?\s*$", re.I)
_SAID = re.compile(r"(?:.*(?:[:=\uff1a\u2192>]|\b(?:is|to)\b))?(?P<word>[^:=>]{1,40})$")
_DECIDING = re.compile(
    r"\b(?:final|verdict|answer|correct\w*|conclusion|decision|result|score|so|actual\w*|overall)\b"
    r"|^\W*\w+\W*$",
    re.I,
)
# a line with a colon before a verdict: the judge's own announcement, or somebody else's words
_ANNOUNCES = re.compile(
    r"\b(?:here|verdicts?|evaluations?|assessments?|judg\w+|results?|conclusions?|decisions?|grad\w+|"
    r"reviews?|json|output|criteri\w+|therefore|thus|hence|so|"
    r"reason\w*|analysis|final\w*|follow\w*|checks?)\b",
    re.I,
)
_OTHERS = re.compile(
    r"\b(?:draft|format|example|template|attempt|previous\w*|earlier|another|other|user|wants?|"
    r"would|could|should|if|had|wrong|not|never|hypothe\w+|options?|candidate|student|submi\w+|"
    r"author|text|passage|again|repeat\w*|instruct\w*|told)\b|n['\u2019]t\b",
    re.I,
)
_SUPPOSES = re.compile(
    r"\b(?:would|if|had|hypothe\w+|draft|format|attempt|example|template|wrong to)\b"
    r"|(?:\bnot|\bnever|n['\u2019]t)\s+(?:\w+\s+)?(?:output|write|say|give|print|reply|answer)\b",
    re.I,
)
_ENDS = re.compile(r"\b(?:is|are|reads?|says?|goes|like this|namely|as follows)$", re.I)
_TAKES_BACK = re.compile(
    r"\b(?:ignore|disregard|kidding|joking|actually|can\s?not|unable|correction|mistake|wrong|"
    r"not sure|unsure|withdraw|retract|revise|reconsider|scratch that|strike that|on second|"
    r"on reflection|wait|hmm+|nevertheless|opposite|invalid|void|was part of|not my|refuse|false|"
    r"only if|not (?:true|really|at all|quite|fully|entirely)|nein)\b|\b(?:ca|wo)n['\u2019]t\b"
    r"|^\W*(?:is|says?|said|which|but|or|unless|according|no|n/a)\b|^\s*[\u2014\u2013]",
    re.I,
)
_REFUSES = re.compile(
    r"\b(?:can\s?not|unable to|will not|refuse to|(?:ca|wo)n['\u2019]t)\s+(?:\w+\s+)?"
    r"(?:judge|decide|assess|evaluate|check|grade|help|assist|comply|provide|complete|determine)",
    re.I,
)


@dataclass
class Prose:
    """The lines of a reply that are neither verdicts nor their reasons.

    doubted : starts of the lines whose verdict is introduced as no verdict of the judge's.
    back : the line that takes all back, or refuses; None where none does.
    strays : (id, verdict words) outside of the asked form.
    """

    text: str
    criteria: Mapping[str, Criterion]
    spans: Sequence[tuple[int, int]]  # JSON in it
    doubted: set[int] = field(default_factory=set)
    back: str | None = None
    strays: list[tuple[str, str]] = field(default_factory=list)

    def __post_init__(self) -> None:
        ids = list(self.criteria)
        known = {at: (n, what) for n, what, _, sure, at in lines(self.text, ids) if sure}
        near, body, doubt = ids[0] if len(ids) == 1 else None, False, False
        decided: set[str] = set()
        after: list[str] = []  # prose behind the last verdict
        before: str | None = None  # the line of prose before this one, where one is
        for m in re.finditer(r"[^\n]+", self.text):
            line, at = m[0], m.start()
            if len(line) > 2 * LONGEST:  # its begin and its end
                line = f"{line[:LONGEST]} ... {line[-LONGEST:]}"
            line = line.strip(_MARKS)
            name, what = known.get(at, (None, "json" if self._json(m) else "prose"))
            if what == "prose":
                if not line or re.fullmatch(r"\s*(?:```|~~~)\w*\s*", m[0]):
                    continue
                before = line if not body or line.endswith(":") else None
                after += [] if body else [line]
                behind = not body and bool(decided)
                self.strays += strays(line, self.criteria, near, body, behind)
                continue
            doubt = _others(before) if before is not None else doubt
            self._refuses(after)
            before, after = None, []
            self.doubted |= {at} if doubt else set()
            decided |= {name or ""} if what in ("verdict", "json") else set()
            near, body = name or near, what == "reason" and name not in decided
        self._refuses(after)
        self.back = self.back or next(filter(_TAKES_BACK.search, after), None)

    def _refuses(self, prose: Sequence[str]) -> None:
        found = (line for line in prose if _REFUSES.search(line) and not reports(line))
        self.back = self.back or next(found, None)

    def _json(self, m: re.Match[str]) -> bool:
        """True for a line with JSON in it, and nothing but marks before that."""
        first = next((a for a, b in self.spans if b > m.start()), m.end())
        return not self.text[m.start() : max(first, m.start())].strip(_MARKS + "json")


def strays(
    line: str,
    criteria: Mapping[str, Criterion],
    near: str | None,
    body: bool = False,
    behind: bool = False,
) -> Iterator[tuple[str, str]]:
    """(id, verdict words) in a line of prose; one without a name is on the verdict near it.

    body : the line belongs to a reason; only one that decides counts then. behind : it stands
    behind a verdict; then also other words for it count ("fails").
    """
    if len(line) > LONGEST or _ASKS.search(line) or reports(line):
        return
    named = [n for n in criteria if names(line, n)]
    for n in named or ([near] if near else []):
        c, said = criteria[n], _SAID.match(line)
        if said and (named or _DECIDING.search(line)) and word(c, said["word"]) is not None:
            yield n, said["word"]
        if c.scale == "binary" and not body and (named or len(line.split()) <= SENTENCE):
            yield from ((n, _met(m)) for m in _WORD.finditer(line))
            if named or behind:
                yield from ((n, _met(m)) for m in _MEANS.finditer(line))


def names(line: str, name: str) -> bool:
    """True for a line in which this id stands by itself.

    >>> names("c1 is met", "c1"), names("c10 is met", "c1")
    (True, False)
    """
    return bool(re.search(rf"(?<![\w.-]){re.escape(name)}(?![\w-])", line, re.I))


def _met(m: re.Match[str]) -> str:
    return "unmet" if bool(m["not"]) != bool(m["un"]) else "met"


def taken_back(text: str) -> str | None:
    """The verdict word in a note that corrects a verdict.

    >>> taken_back("Correction: not met."), taken_back("It is met in the first line.")
    ('unmet', None)
    """
    found = _WORD.search(text[:LONGEST]) if _TAKES_BACK.search(text[:LONGEST]) else None
    return _met(found) if found else None


def _others(line: str) -> bool:
    """True for a line that introduces what follows as no verdict of the judge's own."""
    if line.endswith((":", "\uff1a")):
        return reports(line) or not _ANNOUNCES.search(line) or bool(_OTHERS.search(line))
    if line.endswith((".", "!", ")")):
        return False
    ends = _ENDS.search(line) and not _ANNOUNCES.search(line)
    return bool(_SUPPOSES.search(line) or ends or reports(line))
