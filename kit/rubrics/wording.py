"""Rules on the wording of one criterion: several requirements, subjective words, leaked answers,
encoding, what was left to be filled in or cut off."""

from __future__ import annotations

import re
from collections.abc import Sequence, Set

from ..data.words import STOP, words
from .notes import QUOTES

VAGUE = frozenset(
    "good nice great appealing engaging interesting compelling beautiful elegant "
    "adequate appropriate appropriately suitable reasonable "
    "reasonably effective effectively high-quality satisfying impressive creative "
    "insightful thoughtful helpful useful "
    "well-written meaningful sufficient sufficiently proper properly decent nicely "
    "excellent pleasant awesome amazing wonderful fantastic superb brilliant outstanding "
    "delightful captivating lovely".split()
)
MEASURE = re.compile(
    r"\d|\b(?:at least|at most|exactly|no more than|fewer than|more than|such as|for example"
    r"|e\.g\.|i\.e\.|namely|defined as|that is)\b|[\"“'‘(:]",
    re.I,
)
# From here on a criterion is about what the answer says, not about how it is.
SAYING = re.compile(
    r"\b(?:that|which|who|whether|if|why|as|because|(?:states?|explains?|mentions?"
    r"|recommend(?:s|ing)?|advis(?:es?|ing)|"
    r"suggest(?:s|ing)?|informs?|includ(?:es?|ing)|claims?|describes?|lists?|guidance))\b",
    re.I,
)
VERBS = (
    r"(?:includes?|contains?|mentions?|states?|names?|gives?|explains?|uses?|avoids?|cites?"
    r"|lists?|ends?|starts?|begins?|has|have|is|are|provides?|"
    r"describes?|identifies|recommends?|does|keeps?|says?|shows?|offers?|must|should|asks?"
    r"|refers?|makes?|tells?|warns?)"
)
JOINED = re.compile(
    r"\A(?:the\s+\w+\s+)?[a-z]{2,}[^s\W]s\s[^.]*?(,\s+(?:and\s+)?|\band\s+)(?:also\s+|then\s+)?"
    r"[a-z]{2,}[^s\W]s\s+(?:for\s+|to\s+)?(?:the|an?|its|their|his|her|why|how|whether)\b"
    rf"|(?:\b(?:and|but|as well as|while also)|(?<=\w);)\s+(?:also\s+|then\s+|it\s+|the "
    rf"(?:response|answer)\s+)*(?:not\s+)?{VERBS}\b"
    r"|\band\s+(?:the|its)\s+\w+\s+(?:is|are|has|have|should|must)\b",
    re.I,
)
SEVERAL = re.compile(
    r"\b(?:both)\b.+\band\b|\(\s*(?:1|a|i)\s*\).+\(\s*(?:2|b|ii)\s*\)", re.I | re.S
)
# "Has three bullets, each rule is correct and every bullet is short": a clause of its own after
# the first one.
CLAUSE = re.compile(
    r"(?:,|;|\band|\bbut)\s+(?:and\s+|but\s+)?(?:each|every|no|all(?!\s+of\s+(?:which|whom))"
    r"|none\s+of\s+the)\s+(?:[\w'’-]+\s+){1,3}?(?:is|are|has|have|must|should|does|do|may|"
    r"contains?|starts?|begins?|ends?|uses?|includes?)\b",
    re.I,
)
ASIDE = re.compile(
    r"\(\s*(?:justification|reason|note|e\.g\.|i\.e\.)[^()]*(?:\([^()]*\)[^()]*)*\)?", re.I
)  # not a demand
# A clause has begun before the "and": what follows may still belong to it.
INSIDE = re.compile(
    r"\b(?:that|which|who|whose|whether|if|how|when|where|while|because|as|such|until|once)\b", re.I
)
# One act after another: "names the date, says where it is and does not promise a seat".
ACTS = re.compile(
    r"(?:[,;]|\band)\s+(?:and\s+)?(?:also\s+)?(?:it\s+)?"
    + VERBS.replace("has|have|is|are|", "").replace("|must|should", "")
    + r"\b",
    re.I,
)
QUANTIFIED = frozenset("each every no all none".split())  # CLAUSE needs one of these words
CONDITION = re.compile(
    r"\s*(?:if|when|where|whenever|unless|for|in|after|before|once|says?|states?)\b", re.I
)  # then one clause may belong to it
MOJIBAKE = re.compile(r"Ã[\x80-\xbf©¨¼¶¤ŸÂ±³¡­]|â€[™œ\x9d˜¦“”\"]|Â[ \xa0°·»«£]|ï»¿|ï¿½|ðŸ")
CONTROL = re.compile(
    "[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u00ad\u200b\u202e\u2060\ufeff\ud800-\udfff]"
)


def subjective(tokens: Set[str], text: str) -> list[str]:
    """Vague words that the answer is measured by; empty when there are none, or something to
    measure them by.

    What an answer is to say may be vague: "States that a good rest helps" is no matter of taste.

    >>> (subjective({"good"}, "The style is good."),
    ...  subjective({"good"}, "States that rest is good."))
    (['good'], [])
    """
    found = tokens & VAGUE
    if not found or MEASURE.search(text):
        return []
    said = SAYING.search(text)
    own = set(words(text[: said.start()] if said else text))
    return sorted(w for w in found if w in own)


def several(text: str, tokens: Sequence[str]) -> bool:
    """True when the criterion asks for several things at once. tokens : its words, in order.

    What stands in a clause of its own ("says that ... and is ...") is one thing said.

    >>> text = "Names the river and explains why it floods."
    >>> several(text, words(text))
    True
    >>> several("Names the salt and pepper.", words("Names the salt and pepper."))
    False
    >>> text = "Says that bears sleep in winter and are awake in summer."
    >>> several(text, words(text))
    False
    """
    if "(" in text:
        text = ASIDE.sub("", text)
    found = SEVERAL.search(text) or JOINED.search(text)
    apart = found and not INSIDE.search(text, 0, found.start(found.lastindex or 0))
    if len(ACTS.findall(text)) > 1 and not INSIDE.search(text, 0, 40):
        return True
    return bool(apart) or (not QUANTIFIED.isdisjoint(tokens) and _clauses(text))


def _clauses(text: str) -> bool:
    """True when a clause of its own follows: "..., and each bullet is short"."""
    found = [m for m in CLAUSE.finditer(text) if not INSIDE.search(text, 0, m.start())]
    return len(found) > 1 or (len(found) == 1 and not CONDITION.match(text))


# A prompt that gives its own answer: "Who wrote Hamlet? (Answer: Shakespeare)".
GIVEN = re.compile(
    r"(?:[(\[]\s*it(?:['’]s|\s+is|\s+was)|\b(?:hint|answer|solution)\s*:(?:\s*it\s+is)?"
    r"|\bthe\s+(?:right\s+|correct\s+)?answer\s+is"
    r"|\b(?:answer|result|solution|total|value|sum)\s+(?:should|must|will|has\s+to)\s+"
    r"(?:arrive\s+at|come\s+(?:out\s+(?:at|as)|to)|work\s+out\s+(?:at|as|to)|equal))\s+([^.?!)\]\n]{1,60})",
    re.I,
)


def given(prompt: str) -> frozenset[str]:
    """The words of the answer that a prompt gives away; none where it keeps it.

    >>> sorted(given("Who wrote Hamlet? (Answer: Shakespeare)"))
    ['shakespeare']
    """
    m = GIVEN.search(prompt) if len(prompt) < 1000 else None
    return frozenset(words(m[1])) - STOP if m else frozenset()


# What a template or an annotator left to be filled in.
BLANK = re.compile(
    r"\{\{\s*[a-z]\w*\s*\}\}|(?<![\w\\^$}])\{\s*(?:\d|[A-Za-z][A-Za-z_ ]{2,30})\}(?![\w^{])"
    r"|\$\{[a-z]\w{2,}\}|%s|<(?:[A-Z]{3,}(?:[ _][A-Z]+)*|[a-z]+(?:[ _][a-z]+)+"
    r"|(?i:insert|your|name|enter|add)\b[^<>]{0,40})>"
    r"|\[(?:(?i:insert|add|your|enter|fill\s+in)\b[^\]]{0,40}|[A-Z]{3,}(?:[ _][A-Z]+)*"
    r"|(?!sic\b)[A-Za-z]{3,}(?:\s[a-z]+){0,4})\](?!\()"
    r"|(?<![\w.-])(?:TODO|FIXME|TBD|TBA|XXX+)\b(?![-.]\w)|(?<!\w)_{3,}(?!\w)"
    r"|\b(?i:lorem\s+ipsum)\b|(?<!\S)[?]{2,}(?!\S)"
)
# A criterion may speak of such blanks, and code or a formula is full of them.
ON_BLANKS = re.compile(
    r"\b(?:placeholders?|templates?|brackets?|bracketed|braces|variables?|tags?|tokens?|blanks?"
    r"|comments?|markers?|markup|html|xml|json|latex|f-strings?|syntax|fields?|headings?|sections?"
    r"|labels?|format\w*|replac(?:es?|ed|ing)|marks|marked)\b|\\",
    re.I,
)
# A sentence that cannot end so; a word that is spoken of may ("the word the").
CUT = re.compile(
    r"(?<!\bword)(?<!\bwords)(?<!\barticle)(?<!\bwith)(?<!\bletter)\s(?:the|an|and|or|but|because"
    r"|its|their|your|my|whose|than|between|nor|including|such\s+as|as\s+well\s+as|due\s+to|which"
    r"|if|while|although|whether|for\s+example|e\.g\.|i\.e\."
    r"|(?<!\bis\s)(?<!\boption\s)(?<!\bvitamin\s)(?<!\btype\s)a"
    r")\s*[,(]?\s*\Z|(?<=\w):\s*\Z|(?<=\w\s)\([^()\[\]\\]{0,60}\Z"
    r"|\s(?:within|during|until|via|upon|despite|throughout|(?<!is\s)per)\s*\Z"
    r"|\b(?:sa[iy]|stat|explain|mention|not|claim)[a-z]*s\s+that\s(?!.*\b(?:wh\w+|how|that)\b)(?s:.*)"
    r"\s(?:into|by|against|among|towards?)\s*\Z"
    r"|\A(?!.*\b(?:what|which|who|whom|whose|where|how|that|to\s+\w+)\b)(?s:.*)\s"
    r"(?:of|from|into|with|for|by|during|towards?|against|among|within)\s*\Z"
)


def unfinished(text: str, asked: str) -> str | None:
    """What of a criterion was left to be filled in, or where it breaks off; None for a whole one.

    >>> unfinished("Names {topic} first.", "Write."), unfinished("Says that it is in the", "Write.")
    ("holds '{topic}', which was left to be filled in", "breaks off after 'the'")
    """
    own = QUOTES.sub(" ", text)
    m = BLANK.search(own)
    if m and m[0] not in asked and not ON_BLANKS.search(own):
        return f"holds {m[0]!r}, which was left to be filled in"
    m = CUT.search(text) if text.count(" ") > 2 else None
    return f"breaks off after {m[0].split()[-1]!r}" if m else None


NEGATION_WORDS = frozenset(
    "not no never without avoid avoids avoiding refrain refrains doesn't don't isn't "
    "lacks omits free excludes doesn’t don’t isn’t".split()
)


def encoding(text: str) -> str | None:
    """What is wrong with the characters of a text, or None.

    >>> encoding("cafÃ©"), encoding("café"), encoding("a\\x07b")
    ("text that was decoded wrongly ('Ã©')", None, 'control character U+0007')
    """
    if text.isprintable() and text.isascii():
        return None
    if not text.isascii():
        if "\ufffd" in text:
            return "the replacement character U+FFFD: a character was lost"
        if m := MOJIBAKE.search(text):
            return f"text that was decoded wrongly ({m[0]!r})"
    if m := CONTROL.search(text):
        return f"control {'' if text.isascii() else 'or invisible '}character U+{ord(m[0]):04X}"
    return None
