"""The words of a stated confidence: tokens, numbers and their scales; and in German, Spanish,
Portuguese, French and Chinese a label with a value, or the writer's own words."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

LEVELS = (
    "low",
    "medium",
    "high",
)  # ordered; their probabilities are fitted from data (`fit_levels`), not constants
STATUSES = ("value", "level", "ambiguous", "invalid", "missing")
ASK = "the scale is not said: pass scale=1, 10 or 100, or ask for a percentage in the prompt"


@dataclass(frozen=True)
class Stated:
    """A confidence as an answer states it.

    status : "value" (then `value` in [0, 1]), "level" (then `level`), "ambiguous" (a number whose
        scale is not said),
    "invalid" (250%, 12/10) or "missing". text : the words it was read from. note : what to do.
    """

    status: str
    value: float | None = None
    level: str | None = None
    text: str = ""
    note: str = ""

    @property
    def known(self) -> bool:
        """True for a value or a level."""
        return self.status in ("value", "level")


_ONES = {
    w: i
    for i, w in enumerate(
        "zero one two three four five six seven eight nine ten eleven twelve thirteen "
        "fourteen fifteen sixteen "
        "seventeen eighteen nineteen".split()
    )
}
_TENS = {
    w: 10 * (i + 2)
    for i, w in enumerate("twenty thirty forty fifty sixty seventy eighty ninety".split())
}
NUM = r"(?:\d+(?:[.,]\d+)?|[.,]\d+)"
PCT = r"\s*(?:\\?%|percent\b|per cent\b|pct\b)"
WORDNUM = (
    rf"(?:(?:{'|'.join(_TENS)})(?:[ -](?:{'|'.join(list(_ONES)[1:10])}))?|(?:a |one "
    rf")?hundred|{'|'.join(sorted(_ONES, key=len, reverse=True))})"
)
SPAN = r"(?:\d{1,2}\s*(?:-|–|—)\s*(?:\d{2}|100)|0?[.,]\d+\s*(?:-|–|—)\s*(?:0?[.,]\d+|1(?:[.,]0+)?))"
OF = r"(?:/|out of|in|of(?=\s*(?:5|10|100)\b))"  # "7 of 10" is a rating, "3 of 8" a count
_STAT = (
    r"(?:confidence|credible)\s+(?:interval|limit|bound|region|band)s?\b|confidence\s+sets?\b"
    rf"|\bat (?:the |an? )?{NUM}{PCT}\s+(?:confidence level|level of confidence)\b"
    r"|\b(?:consumer|business|investor|public|market|customer|voter|economic)s?\s+confidence\b"
    r"|\b(?:low|moderate|high)[- ](?:certainty|confidence)[- ](?:evidence|data|stud(?:y|ies)"
    r"|predictions?|calls?|peaks?|interactions?|hits?|variants?|regions?)\b"
    rf"|\b(?:conducted|performed|carried out|run|tested|computed|calculated|constructed"
    rf"|sampled|surveyed|significant)\b"
    rf"[^.!?\n]{{0,40}}?\b(?:with|at)\s+(?:an? |the )?{NUM}{PCT}\s+(?:confidence|certainty)\b"
    r"|\bevidence\b[^.!?\n]{0,60}\b(?:certainty|confidence)\b"
    # a level that was chosen, an interval in words, and what others said or we report
    rf"|{NUM}{PCT}\s+(?:confidence|certainty)\s+levels?\s+(?:is|are|was|were)\s+"
    r"(?:used|chosen|set|assumed|applied|adopted)\b"
    rf"|\b(?:us(?:es?|ed|ing)|chose|assum(?:ed?|ing))\s+(?:an?\s+|the\s+)?{NUM}{PCT}\s+"
    r"(?:confidence|certainty)\b"
    rf"|{NUM}{PCT}\s+(?:confidence|certainty),?\s+(?:that\s+)?(?:the\s+)?"
    r"(?:true|real|population|mean|average|difference|effect|parameter|proportion)\b[^.!?\n]{0,40}?"
    r"\b(?:lies?|falls?|between|within)\b"
    r"|(?:(?<!\bI\s)\breport(?:s|ed)?\b"
    r"|\b(?!(?:I|we|is|are|was|were|be|been|ha(?:ve|s|d)|also)\b)\w+\s+(?:sa(?:ys|id)"
    r"|(?:conclud|stat|claim|argu|predict|estimat|assert)(?:es|s|ed))\b"
    r"|\b(?:they|authors|researchers|scientists|experts|doctors)\s+(?:conclude|state|claim|say"
    r"|argue|predict|estimate|assert)\b)"
    rf"(?:[^.!?\n]{{0,20}}?\bwith)?\s+(?:an? )?{NUM}{PCT}\s+(?:confidence|certainty)\b"
)
# The first alternative that fits names the token.
TOKENS = re.compile(
    "|".join(
        (
            rf"(?P<other>{_STAT})",
            r"(?P<scale>\(?(?:on )?(?:an? |the )?(?:scale )?(?:of |from |between "
            r")?\b[01](?:\.0)?\s*%?\s*(?:-|–|to|and)\s*(?P<top>100|10|5"
            r"|1(?:\.0)?)\b\s*%?(?:\s*scale\b)?\)?"
            r"|\(\s*(?:out of|/|max\.?)\s*(?P<top2>100|10|5|1)\s*\)|\(\s*(?:in |as )?(?:a "
            r")?(?P<top3>%|percent(?:age)?)\s*\)|\(\s*(?:as )?(?:a )?(?P<top4>fraction"
            r"|decimal|probability)\s*\))",
            r"(?P<half>\b50\s*/\s*50\b|\bfifty[- ]fifty\b)",
            rf"(?P<range>{NUM}(?:{PCT})?\s*(?:-|–|—|to|and)\s*{NUM}{PCT})",
            rf"(?P<span>(?<![\w.)]){SPAN}(?![\w%/-]))",
            rf"(?P<ratio>(?<![\w.)])-?{NUM}\s*{OF}\s*{NUM}(?![\w/]))",
            rf"(?P<ratio_words>\b(?:{WORDNUM})\s+(?:out of|in)\s+(?:{WORDNUM})\b)",
            rf"(?P<percent>(?<![\w.)])-?{NUM}{PCT}|\b{WORDNUM}{PCT})",
            rf"(?P<number>(?<![\w.)])-?{NUM}(?![\w])|(?<!to )(?<!near )(?<!nearly )\bzero\b)",
            r"(?P<anchor>\b(?:confidence|certainty|credence)\b(?=s?\b)|p\s*\(\s*(?:correct"
            r"|true)\s*\))",
            r"(?P<adjective>\b(?:confident|certain|sure)\b|(?<=\bun)(?:certain|sure)\b)",
            r"(?P<loose>\b(?:positive|doubts?)\b)",
            r"(?P<weak>\b(?:probability|likelihood|chances?|likely|odds)\b)",
            r"(?P<mixed>\b(?:low|medium|moderate)\s*(?:-|–|/|to|or)\s*(?:medium|moderate|high)\b)",
            r"(?P<low>\b(?:(?:close|next) to|near|nearly|almost|practically|virtually) "
            r"(?:zero|none|nothing|nil)\b|\bnil\b"
            r"|\b(?:not (?:at all|very|so|too|particularly|fully|entirely|completely"
            r"|terribly)|(?:very|extremely|quite|fairly|relatively|rather|pretty) (?:low"
            r"|little)|low|minimal|little|barely|hardly|slightly|un(?=certain|sure))\b"
            r"|\bun(?=certain\b|sure\b))",
            r"(?P<medium>\b(?:(?:fairly|quite|relatively) )?(?:medium|moderate"
            r"|intermediate)\b|\b(?:moderately|somewhat|fairly|reasonably"
            r"|partially)\b(?!\s+(?:low|high)))",
            r"(?P<high>\b(?:(?:very|extremely|quite|fairly|relatively|rather|pretty) )?high\b"
            r"|\b(?:very|highly|extremely|absolutely|completely|totally|entirely|strongly"
            r"|quite)\b)",
            r"(?P<not>\b(?:not|never|isn.t|don.t|cannot|without|lack|no)\b|n.t\b)",
            r"(?P<that>\bthat\b)",
            r"(?P<filler>\b(?:at all|levels?|scores?|rating|value|estimated?|is|was|are|am|be"
            r"|would|will|of|at|about|around|approximately|roughly|nearly|almost|over|under|above|below|"
            r"least|most|in|my|this|the|answer|response|conclusion|prediction|claim|result|finding|overall|say|as|set|to|i.d|i|give|it|an?|final|currently|stands?|percentage|rated?|which|being|"
            r"correct|right|only|still|just|now|here|put|assign|statement|assessment|judge?ment|equals|degree|self|reported|for|remains|between|with|by|comes?|out|expressed|so|or|than|more|less|up)\b|\bapprox\b\.?)",
            r"(?P<stop>[.!?;](?=\s|$)|\n\s*\n)",
            r"(?P<word>[^\W\d_]+)",
            r"(?P<punct>\S)",
        )
    ),
    re.IGNORECASE,
)
VALUES = ("half", "range", "span", "ratio", "ratio_words", "percent", "number")
SAID_LEVELS = ("low", "medium", "high", "mixed")
REASONS = frozenset(
    "because given since due but although though as while when if unless based and "
    "considering on hence therefore".split()
)


def amount(text: str) -> float:
    """A number in digits or English words.

    >>> amount("80,5"), amount("ninety-five")
    (80.5, 95.0)
    """
    text = text.strip().lower()
    if re.fullmatch(rf"-?{NUM}", text):
        return float(text.replace(",", "."))
    parts = text.replace("-", " ").split()
    return 100.0 if "hundred" in parts else float(sum(_TENS.get(p, _ONES.get(p, 0)) for p in parts))


def said_top(token: re.Match[str]) -> float:
    """The largest value of a scale token, "(1-10)"."""
    found = next((v for v in (token["top"], token["top2"]) if v), None)
    if found:
        return float(found)
    return 100.0 if token["top3"] else 1.0


def measure(kind: str, text: str, top: float | None = None, scale: float | None = None) -> Stated:
    """A number token as a confidence; `top` is a scale said beside it, `scale` one given by the
    caller.

    >>> measure("ratio", "7 of 10").value, measure("number", "7").status
    (0.7, 'ambiguous')
    """
    text = text.strip()
    if kind == "half":
        return Stated("value", 0.5, text=text)
    if kind in ("range", "span"):
        return _middle(kind, text, scale)
    if kind.startswith("ratio"):
        a, b = (
            amount(v)
            for v in re.split(r"/|out of|\bin\b|\bof\b", text, maxsplit=1, flags=re.IGNORECASE)
        )
        return _checked(a, b, text)
    if kind == "percent":
        v = amount(re.sub(PCT + "$", "", text, flags=re.IGNORECASE))
        if 0 < v < 1 and scale is None:
            return Stated(
                "ambiguous",
                text=text,
                note="a fraction or less than one percent? pass scale=1 or scale=100",
            )
        return _checked(v, 1.0 if 0 < v < 1 and scale == 1 else 100.0, text)
    v = amount(text)
    if scale is not None or top is not None:
        return _checked(v, float(scale if scale is not None else top), text)  # type: ignore[arg-type]
    if v == 0 or (0 < v < 1) or (v == 1 and re.search(r"[.,]\d", text)):
        return Stated("value", v, text=text)
    unsaid = Stated("ambiguous", text=text, note=ASK)
    return unsaid if 1 <= v <= 10 else _checked(v, 100.0, text)


def _middle(kind: str, text: str, scale: float | None) -> Stated:
    """The middle of a range: of percentages, or without a sign of fractions or of numbers above
    10."""
    low, high = (float(v.replace(",", ".")) for v in re.findall(NUM, text)[:2])
    top = 100.0 if kind == "range" or scale is None else float(scale)
    if kind == "span" and scale is None and high <= 1:
        top = 1.0
    if not 0 <= low <= high <= top:
        return Stated("invalid", text=text, note=f"not a range within 0 and {top:g}")
    if kind == "span" and scale is None and 1 < high <= 10:
        return Stated("ambiguous", text=text, note=ASK)
    return Stated("value", (low + high) / (2 * top), text=text, note="middle of a range")


def _checked(value: float, top: float, text: str) -> Stated:
    if top <= 0 or not 0 <= value <= top:
        return Stated("invalid", text=text, note=f"{value:g} of {top:g} is no probability")
    return Stated("value", value / top, text=text)


NUMBER = r"(?<![\d.])\d{1,3}(?:[.,]\d+)?"
PERCENT = r"\s*(?:%|％|Prozent|por\s?ciento|por\s?cento|pour\s?cent)"
VALUE = (
    rf"(?P<range>{NUMBER}(?:{PERCENT})?\s*(?:-|–|—|~|bis|a|à|至|到)\s*{NUMBER}{PERCENT}"
    rf"|(?:zwischen|entre)\s+{NUMBER}(?:{PERCENT})?\s+(?:und|et|y|e)\s+{NUMBER}{PERCENT})"
    rf"|(?P<percent>{NUMBER}{PERCENT}|百分之\s*(?:{NUMBER}|[一二三四五六七八九十百]+))"
    r"|(?P<tenths>[一二三四五六七八九1-9]\s*成)"
    rf"|(?P<ratio>{NUMBER}\s*(?:/|von|de|sur|sobre)\s*(?:10|100|5)\b)"
    rf"|(?P<number>{NUMBER}(?![\d%]))"
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
    r"(?:Konfidenz|Zuversicht|Gewissheit|Sicherheit|Vertrauen)(?:sgrad|sniveau|swert)?"
    r"(?:\s+in\s+(?:die|diese|meine)\s+(?:Antwort|Aussage))?(?!\w)",
    r"(?:liegt|ist|beträgt)?",
    (
        r"\bbin\s+(?:ich\s+)?(?:mir\s+)?(?:da(?:bei)?\s+)?(?:nur\s+|fast\s+|knapp\s+)?{v}\s*(?:ig\s+)?"
        r"(?:sicher|überzeugt)",
        r"(?:\A|(?<=[.!?]\s)|(?<=\n))(?:(?:[Ii]ch\s+würde|[Ww]ürde)\s+sagen,?\s+|[Zz]u\s+){v}\s*sicher"
        r"(?=[.,!]|\s*\Z|\s+dass)",
        r"\b[Ii]ch\s+(?:glaube|denke|meine|vermute|sage)\s+mit\s+{v}(?:iger)?\s*"
        r"(?:Sicherheit|Gewissheit|Konfidenz|Zuversicht)",
        r"\b[Ii]ch\s+schätze\s+meine\s+(?:Sicherheit|Gewissheit|Konfidenz|Zuversicht)\s+auf\s+{v}",
        r"\b[Mm]eine\s+(?:Sicherheit|Gewissheit|Konfidenz|Zuversicht)\s+schätze\s+ich\s+auf\s+{v}",
        r"\b(?:[Ii]ch\s+habe|habe\s+ich)\s+{v}\s*(?:Vertrauen|Zuversicht)\s+in\s+"
        r"(?:die|diese|meine)\s+(?:Antwort|Aussage)",
        r"\bmit\s+{v}(?:iger)?\s*(?:Sicherheit|Gewissheit|Wahrscheinlichkeit)\s+(?:richtig"
        r"|korrekt)",
    ),
    (r"niedrig|gering", r"mittel|mäßig", r"hoch"),
    r"Konfidenzintervall|Vertrauensintervall",
)
SPANISH = Language(
    r"(?:nivel\s+de\s+|grado\s+de\s+|mi\s+)?(?:confianza|certeza|seguridad)"
    r"(?:\s+en\s+(?:la|esta|mi)\s+respuesta)?(?!\w)",
    r"(?:es|del?|está)?",
    (
        r"\b[Ee]stoy\s+{v}\s*(?:segur[oa]|convencid[oa])",
        r"\b[Ee]stoy\s+(?:segur[oa]|convencid[oa])\s+{v}",
        r"\b[Tt]engo\s+(?:una\s+)?(?:confianza|certeza)\s+{v}",
        r"\b[Tt]engo\s+{v}\s*de\s+(?:confianza|certeza)",
        r"(?<![Nn]o )\b(?:[Cc]reo|[Pp]ienso|[Dd]igo)\s+con\s+{v}\s*de\s+"
        r"(?:confianza|certeza|seguridad)",
        r"(?:\A|(?<=[.!?]\s)|(?<=\n))(?:Yo\s+)?[Dd]iría\s+[^.;\n]{{0,40}}?con\s+{v}\s*de\s+"
        r"(?:confianza|certeza|seguridad)",
        r"\b[Cc]on\s+{v}\s*de\s+(?:confianza|certeza|seguridad),?\s+(?:diría|creo|pienso|digo)\b",
    ),
    (r"baj[oa]", r"medi[oa]|moderad[oa]", r"alt[oa]"),
    r"(?:intervalo|límites?|banda)s?\s+de\s+confianza",
)
PORTUGUESE = Language(
    r"(?:n[íi]vel\s+de\s+|grau\s+de\s+|minha\s+)?(?:confiança|certeza)"
    r"(?:\s+n(?:a|esta|essa)\s+(?:minha\s+)?resposta)?(?!\w)",
    r"(?:é|de|está)?",
    (
        r"\b[Ee]stou\s+{v}\s*(?:cert[oa]|segur[oa]|confiante|convencid[oa])",
        r"\b(?:[Tt]enho|[Ee]stou\s+com)\s+{v}\s*(?:de\s+)?(?:certeza|confiança)",
        r"\b[Tt]enho\s+(?:uma\s+)?(?:certeza|confiança)\s+{v}",
        r"(?<![Nn][ãa]o )\b(?:[Aa]credito|[Pp]enso|[Aa]cho|[Dd]igo)\s+com\s+{v}\s*de\s+"
        r"(?:confiança|certeza)",
        r"(?:\A|(?<=[.!?]\s)|(?<=\n))(?:Eu\s+)?[Dd]iria\s+[^.;\n]{{0,40}}?com\s+{v}\s*de\s+"
        r"(?:confiança|certeza)",
        r"\b[Cc]om\s+{v}\s*de\s+(?:confiança|certeza),?\s+(?:diria|acredito|penso|acho|digo)\b",
    ),
    (r"baix[oa]", r"m[ée]di[oa]|moderad[oa]", r"alt[oa]"),
    r"(?:intervalo|limite)s?\s+de\s+confiança",
)
FRENCH = Language(
    r"(?:niveau\s+de\s+|degré\s+de\s+|indice\s+de\s+|ma\s+)?(?:confiance|certitude)"
    r"(?:\s+dans\s+(?:la|cette|ma)\s+réponse)?(?!\w)",
    r"(?:est|de)?",
    (
        r"\b[Ss]uis\s+(?:presque\s+)?(?:sûre?|certaine?|confiante?|convaincue?)\s+{v}",
        r"\b[Ss]uis\s+{v}\s*(?:sûre?|certaine?|confiante?|convaincue?)",
        r"\b[Jj][' ]ai\s+(?:une\s+)?confiance\s+{v}",
        r"\b(?:[Jj]e\s+(?:dirais|pense|crois)|[Jj][' ]ai)\s+(?:avec\s+)?{v}\s*de\s+"
        r"(?:certitude|confiance)",
    ),
    (r"faible|basse?", r"moyenne?|modérée?", r"élevée?|haute|forte"),
    r"(?:intervalle|niveau|bande)s?\s+de\s+confiance\s+(?:à|de)\s+9\d",
)
_SURE = (
    r"(?:置信度|信心(?:水平|程度|指数)?|把握(?:程度)?|确定(?:性|度|程度)"
    r"|确信度|可信度|自信(?:度|程度)?|置信水平)"
)
_IS = r"(?:大约|大概|约|約)?(?:是|为|為|有|在|约|約)"
CHINESE = Language(
    _SURE,
    r"(?:是|为|約|约|大约|大概|有)?",
    (
        r"(?:我)?(?:大约|大概|约)?有\s*{v}\s*的?(?:把握|信心|确定)",
        r"(?:我)?(?:对[^。，\n]{{0,12}})?(?:有)?\s*{v}\s*(?:的把握|的信心|确定|肯定|确信)",
        rf"我(?:的|对[^。，,；;\n]{{{{0,12}}}}?的){_SURE}{_IS}\s*{{v}}",
        rf"(?:\A|(?<=[。！？；\n])){_SURE}{_IS}\s*{{v}}",
    ),
    (r"低", r"中等?", r"高"),
    r"置信区间|置信区域|[%％成]\s*(?:时|時|的?(?:条件|情况|前提|水平)?下|的区间)",
)
LANGUAGES = (GERMAN, SPANISH, PORTUGUESE, FRENCH, CHINESE)


def _number_words(kind: str, words: str) -> tuple[str, str]:
    """Kind and words as the English reader measures them."""
    if kind == "tenths":
        digit = words[0]
        return "percent", f"{DIGITS.get(digit, digit)}0%"
    if words.startswith("百分之"):
        tens, ten, ones = words.removeprefix("百分之").strip().partition("十")
        whole = {**DIGITS, "百": "100"}.get(tens, tens)
        both = DIGITS.get(tens, "1") + DIGITS.get(ones, "0")
        return "percent", f"{both if ten else whole}%"
    words = re.sub(PERCENT, "%", words)
    return kind, re.sub(r"\s*(?:von|de|sur|sobre)\s*", "/", words) if kind == "ratio" else words


@dataclass(frozen=True)
class Statement:
    """text[start:end] states a confidence by `words` at `at`: a number of that kind (top: a scale
    said beside it) or a level."""

    start: int
    end: int
    at: int
    kind: str
    words: str
    top: float | None = None
    note: str = ""


def _patterns() -> list[tuple[re.Pattern[str], re.Pattern[str]]]:
    out: list[tuple[re.Pattern[str], re.Pattern[str]]] = []
    for lang in LANGUAGES:
        ahead, behind = ("", "") if lang is CHINESE else (r"(?<!\w)(?<!% )(?<!% de )", r"(?!\w)")
        levels = "|".join(f"(?P<{n}>{w}){behind}" for n, w in zip(LEVELS, lang.levels, strict=True))
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
    r"|estou|置信|信心|把握|确|確|可信|肯定|自信|convain|convenc|überzeugt",
    re.IGNORECASE,
)


def found(text: str) -> Iterator[Statement]:
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
            name, words = (kind, m[kind]) if kind in LEVELS else _number_words(kind, m[kind])
            yield Statement(m.start(), m.end(), at, name, words)
