"""Confidence stated in German, Spanish, Portuguese, French and Chinese: a label with a value, or
the writer's own words."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

NUM = r"(?<![\d.])\d{1,3}(?:[.,]\d+)?"
PERCENT = r"\s*(?:%|％|Prozent|por\s?ciento|por\s?cento|pour\s?cent)"
VALUE = (
    rf"(?P<range>{NUM}(?:{PERCENT})?\s*(?:-|–|—|~|bis|a|à|至|到)\s*{NUM}{PERCENT})"
    rf"|(?P<percent>{NUM}{PERCENT}|百分之\s*{NUM})"
    r"|(?P<tenths>[一二三四五六七八九1-9]\s*成)"
    rf"|(?P<ratio>{NUM}\s*(?:/|von|de|sur|sobre)\s*(?:10|100|5)\b)"
    rf"|(?P<number>{NUM}(?![\d%]))"
)
_NEAR = (
    r"(?:etwa|ca\.?|circa|ungefähr|rund|zu|bei|un|una|uma|al|a|à|en|em|de|del|d'environ|environ|"
    r"aproximadamente|cerca|casi|quase|unos|約|约|大约|大概)?\s*"
)
NEAR = _NEAR + _NEAR
DIGITS = {c: str(i) for i, c in enumerate("一二三四五六七八九", 1)}


@dataclass(frozen=True)
class Language:
    """labels : what names a confidence. joins : between label and value. own : the writer's
    sentence, {v} its value.

    levels : words of low, medium and high. not_own : what only looks like a statement, an interval.
    """

    labels: str
    joins: str
    own: tuple[str, ...]
    levels: tuple[str, str, str]
    not_own: str


GERMAN = Language(
    r"(?:Konfidenz|Zuversicht|Gewissheit|Sicherheit|Vertrauen)(?:sgrad|sniveau|swert)?(?!\w)",
    r"(?:liegt|ist|beträgt)?",
    (
        r"\bbin\s+(?:ich\s+)?(?:mir\s+)?(?:da(?:bei)?\s+)?{v}\s*(?:ig\s+)?sicher",
        r"\bmit\s+{v}(?:iger)?\s*(?:Sicherheit|Gewissheit|Wahrscheinlichkeit)\s+(?:richtig"
        r"|korrekt)",
    ),
    (r"niedrig|gering", r"mittel|mäßig", r"hoch"),
    r"Konfidenzintervall|Vertrauensintervall",
)
SPANISH = Language(
    r"(?:nivel\s+de\s+|grado\s+de\s+|mi\s+)?(?:confianza|certeza|seguridad)(?!\w)",
    r"(?:es|del?|está)?",
    (
        r"\b[Ee]stoy\s+{v}\s*(?:segur[oa]|convencid[oa])",
        r"\b[Ee]stoy\s+(?:segur[oa]|convencid[oa])\s+{v}",
        r"\b[Tt]engo\s+(?:una\s+)?(?:confianza|certeza)\s+{v}",
    ),
    (r"baj[oa]", r"medi[oa]|moderad[oa]", r"alt[oa]"),
    r"(?:intervalo|límites?|banda)s?\s+de\s+confianza",
)
PORTUGUESE = Language(
    r"(?:n[íi]vel\s+de\s+|grau\s+de\s+|minha\s+)?(?:confiança|certeza)(?!\w)",
    r"(?:é|de|está)?",
    (
        r"\b[Ee]stou\s+{v}\s*(?:cert[oa]|segur[oa]|confiante|convencid[oa])",
        r"\b[Tt]enho\s+{v}\s*(?:de\s+)?(?:certeza|confiança)",
        r"\b[Tt]enho\s+(?:uma\s+)?(?:certeza|confiança)\s+{v}",
    ),
    (r"baix[oa]", r"m[ée]di[oa]|moderad[oa]", r"alt[oa]"),
    r"(?:intervalo|limite)s?\s+de\s+confiança",
)
FRENCH = Language(
    r"(?:niveau\s+de\s+|degré\s+de\s+|indice\s+de\s+|ma\s+)?(?:confiance|certitude)(?!\w)",
    r"(?:est|de)?",
    (
        r"\b[Ss]uis\s+(?:sûre?|certaine?|confiante?|convaincue?)\s+{v}",
        r"\b[Ss]uis\s+{v}\s*(?:sûre?|certaine?|confiante?|convaincue?)",
        r"\b[Jj]'ai\s+(?:une\s+)?confiance\s+{v}",
    ),
    (r"faible|basse?", r"moyenne?|modérée?", r"élevée?|haute|forte"),
    r"(?:intervalle|niveau|bande)s?\s+de\s+confiance\s+(?:à|de)\s+9\d",
)
CHINESE = Language(
    r"(?:置信度|信心(?:水平|程度|指数)?|把握(?:程度)?|确定(?:性|度|程度)|确信度|可信度|自信(?:度|程度)?|置信水平)",
    r"(?:是|为|約|约|大约|大概|有)?",
    (
        r"(?:我)?(?:大约|大概|约)?有\s*{v}\s*的?(?:把握|信心|确定)",
        r"(?:我)?(?:对[^。，\n]{{0,12}})?(?:有)?\s*{v}\s*(?:的把握|的信心|确定|肯定|确信)",
    ),
    (r"低", r"中等?", r"高"),
    r"置信区间|置信区域",
)
LANGUAGES = (GERMAN, SPANISH, PORTUGUESE, FRENCH, CHINESE)
_LEVEL_NAMES = ("low", "medium", "high")


def _number_words(kind: str, words: str) -> tuple[str, str]:
    """Kind and words as the English reader measures them."""
    if kind == "tenths":
        digit = words[0]
        return "percent", f"{DIGITS.get(digit, digit)}0%"
    if words.startswith("百分之"):
        return "percent", words.removeprefix("百分之").strip() + "%"
    words = re.sub(PERCENT, "%", words)
    if kind == "ratio":
        return kind, re.sub(r"\s*(?:von|de|sur|sobre)\s*", "/", words)
    return kind, words


@dataclass(frozen=True)
class Found:
    """text[start:end] states a confidence; `at` is where its value stands."""

    start: int
    end: int
    at: int
    kind: str
    words: str


def _patterns() -> list[tuple[re.Pattern[str], re.Pattern[str]]]:
    out: list[tuple[re.Pattern[str], re.Pattern[str]]] = []
    for lang in LANGUAGES:
        ahead, behind = ("", "") if lang is CHINESE else (r"(?<!\w)", r"(?!\w)")
        levels = "|".join(
            f"(?P<{n}>{w}){behind}" for n, w in zip(_LEVEL_NAMES, lang.levels, strict=True)
        )
        label = re.compile(
            rf"{ahead}(?:{lang.labels})\s*(?:\([^)\n]{{0,20}}\))?\s*(?:[:：=]|{lang.joins}\s)\s*"
            rf"(?:(?:muy|sehr|très|muito|很|非常|较|比较)\s*)?{NEAR}(?:{VALUE}|{levels})",
            re.IGNORECASE,
        )
        own = [re.compile(p.format(v=f"{NEAR}(?:{VALUE})")) for p in lang.own]
        out += [(one, re.compile(lang.not_own, re.IGNORECASE)) for one in (label, *own)]
    return out


_ALL = _patterns()
_ANY = re.compile(
    r"konfidenz|zuversicht|gewissheit|sicher|vertrauen|confian|certeza|segur|certitude"
    r"|sûre?\b|certain"
    r"|estou|置信|信心|把握|确定|確|可信|肯定|自信|convain|convenc",
    re.IGNORECASE,
)


def found(text: str) -> Iterator[Found]:
    """Statements in the five languages, each place once.

    >>> [(f.kind, f.words) for f in found("Ich bin mir zu 80 Prozent sicher.")]
    [('percent', '80%')]
    >>> [f.words for f in found("置信度：高")], list(found("95%-Konfidenzintervall: 0.2"))
    (['高'], [])
    """
    if not _ANY.search(text):
        return
    seen: set[int] = set()
    for pattern, not_own in _ALL:
        for m in pattern.finditer(text):
            kind = next(k for k, v in m.groupdict().items() if v is not None)
            at = m.start(kind)
            around = text[max(0, m.start() - 20) : m.end() + 6]
            if at in seen or not_own.search(around):
                continue
            seen.add(at)
            name, words = (kind, m[kind]) if kind in _LEVEL_NAMES else _number_words(kind, m[kind])
            yield Found(m.start(), m.end(), at, name, words)
