"""The one reader of quantities: what number a text gives, what follows it, and whether it stands
for itself.

A number inside of something else ("between 1 and 343", "343 x 20", "less than 343", "7:30") is not
that number: it has a `part`, or a `far` end that must fit as well.
"""

from __future__ import annotations

import math
import re
import unicodedata
from calendar import month_name
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import pairwise

from . import units
from .text import UNSPACED


@dataclass(frozen=True)
class Quantity:
    """text[start:end] gives `value`.

    far : the other end of a range, a choice or an interval, else the value. tail : the text that
        follows, in which the unit stands. part : what else the number belongs to, "" for itself.
    """

    value: float
    start: int
    end: int
    far: float
    tail: str = ""
    part: str = ""


# --- notation -----------------------------------------------------------------------------------

_NOTATION = [
    (re.compile(p), to)
    for p, to in (
        (r"</?[A-Za-z][A-Za-z-]*(?:\s+[\w-]+\s*=[^<>]*)?\s*/?>", " "),  # a tag is no "more than"
        (r"\\(?:math(?:rm|bf|it|sf)|text(?:bf|rm)?|operatorname|unit|boxed)\s*\{([^{}]*)\}", r"\1"),
        (r"\\[dt]?frac\s*\{([^{}]*)\}\s*\{([^{}]*)\}", r" \1/\2"),
        (r"(?<!\w)\$(?=\S)([^$\n]*[^$\s])\$(?!\d)", r"\1"),
        (r"\\[()\[\]]|\\(?:left|right)(?![a-z])", ""),
        (r"(?<=\d)\{,\}", ","),
        (r"\\[,;:! ]|\\q?quad\b|(?<=\d)~(?=\S)", " "),
        (r"\\(?:times|cdot)\b", "×"),
        (r"\\pm\b", "±"),
        (r"\\(?:approx|sim)\b", "~"),
        (r"\\mu\b\s*", "µ"),
        (r"\^?\{?\\circ\b\}?", "°"),
        (r"\\([%$&#_])", r"\1"),
        (r"\^\{([^{}]*)\}", r"^\1"),
        ("[¼-¾⅐-⅞↉]", lambda m: f" {unicodedata.normalize('NFKC', m[0])}"),
        (r"(?<=[\w)])[⁻⁺]?[⁰¹²³⁴-⁹]+", r"^\g<0>"),
    )
]
_SIGNS = str.maketrans({"−": "-", "‐": "-", "‑": "-", "﹣": "-", "’": "'", "⁄": "/", "μ": "µ"})
_GREEK = {  # not those that are also numbers, units or signs of change
    "α": "alpha",
    "β": "beta",
    "γ": "gamma",
    "δ": "delta",
    "ε": "epsilon",
    "κ": "kappa",
    "ω": "omega",
}
_LETTER = "|".join(_GREEK.values())
_PLAIN = [
    (re.compile(p, re.M), to)
    for p, to in (
        (f"-?([{''.join(_GREEK)}])-?", lambda m: f" {_GREEK[m[1]]} "),  # "TNF-α", "TNFα"
        (rf"(?<=[A-Z\d])-?({_LETTER})(?![a-z])-?", r" \1 "),  # "TNF-alpha", "PGC-1alpha"
        (rf"\b({_LETTER})-?(?=[A-Z])", r"\1 "),  # "kappaB"
        (r"\b([A-Z]{2,})-(?=\d{1,2}(?!\d|[.,]\d|\s?%))", r"\1"),  # "IL-6" is "IL6"
        (r"(?<=\d)\*\*(?=-?\d)", "^"),
        (r"(?<=\d)[ \t]*[x×✕][ \t]*(?=g\b(?![ \t]?[/^·]))", " x "),  # 300×g
        (r"(?<=\d)[ \t]*(?:[·⋅∙]|\*(?!\*))[ \t]*(?=\d)|[×✕]", " x "),
        (r"(?:\A|(?<=\S )|(?<=[(~:]))>=?\s*(?=[-$]?\.?\d)", "more than "),
        (r"(?<=\d)[ \t-]?([^\W\d_]+)[-–](?=\d[\d.,]*[ \t-]?\1\b)", "-"),  # 5 mg-10 mg
        (
            r"((?:^|(?<=[=;:(])|\b(?:is|are|was|were)\b)[ \t]*\d[\d.]*)"  # 4=5 gives two numbers
            r"([ \t]*[^\W\d_]*)[ \t]*=+"
            r"(?=[ \t]*\d[\d.]*\2[ \t]*(?:[=,;)]|\.?$))",
            r"\1\2; ",
        ),
        (r"(?<=\n)([ \t]*)[-–][ \t]+(?=[\d.])|\A([ \t]*)[-–][ \t]+(?=[\d.].*\n\s*\S)", r"\1"),
    )
]

_MONTHS = {
    said: m for m in month_name[1:] for form in (m, m[:3], m[:4]) for said in (form, form.upper())
}
_month = rf"(?P<month>{'|'.join(sorted(_MONTHS, key=len)[::-1])})\b"
_dot = r"(?:(?<=\b\w{3})(?<!May)\.|(?<=Sept)\.)?"
_day = r"(?P<day>0?[1-9]|[12]\d|3[01])"
_year = r"(?P<year>1\d{3}|20\d\d)(?!\d|[.,]\d)"
_of = r"(?:,?\s+(?:of\s+)?|,|-)"
_DATES = [
    re.compile(p)
    for p in (
        rf"\b(?:the\s+)?{_day}(?:st|nd|rd|th)?(?:\s+of\s+|[\s-]){_month}(?:{_dot}{_of}{_year})?",
        rf"(?<!\d )\b{_month}{_dot}\s+(?:the\s+)?{_day}(?:st|nd|rd|th)?\b(?![.:,]?\d|\s?[–-]\s?\d)"
        rf"(?:{_of}{_year})?",
        rf"\b{_month}{_dot}{_of}{_year}",
        rf"(?<![\w/.-]){_year}(?P<by>[-/.])(?P<month>0?[1-9]|1[0-2])(?P=by){_day}(?!\d|[-/.]\d)"
        r"(?:T\d[\d:.]*Z?)?",
    )
]
_SLASHED = re.compile(r"(?<![\w/.-])(\d\d?)([-/.])(\d\d?)\2([12]\d{3})(?!\d|[-/.]\d)")


def _dated(m: re.Match[str]) -> str:
    found = {"day": "", **m.groupdict(default="")}
    month = _MONTHS.get(found["month"]) or month_name[int(found["month"])]
    return " ".join(filter(None, (found["day"].lstrip("0"), month, found["year"])))


def _days(m: re.Match[str]) -> list[str]:
    one, two = int(m[1]), int(m[3])
    ways = sorted({(one, two), (two, one)})
    dates = [(day, month) for day, month in ways if 0 < month < 13 and 0 < day < 32]
    return [f"{day} {month_name[month]} {m[4]}" for day, month in dates]


def datings(text: str) -> list[str]:
    """The two days that a date may be where its day or its month may be first.

    >>> datings("03/04/2015"), datings("14/03/2019")
    (['3 April 2015', '4 March 2015'], [])
    """
    return [day for m in _SLASHED.finditer(text) if len(_days(m)) == 2 for day in _days(m)]


def readable(text: str) -> str:
    """The text in NFKC with plain signs: LaTeX unwrapped, powers as ^n, fractions as a/b, each date
    as "3 January 2015"; where day or month may be first ("03/04/2015") it stays.

    >>> readable("$343\\\\,\\\\mathrm{m/s}$, 1.6 × 10⁻¹⁹ C, 2½"), readable("−5")
    ('343 m/s, 1.6  x  10^-19 C, 2 1/2', '-5')
    >>> readable("on the 3rd of January, 2015"), readable("2015-01-03"), readable("Jan. 3, 2015")
    ('on 3 January 2015', '3 January 2015', '3 January 2015')
    """
    for pattern, to in _NOTATION:
        text = pattern.sub(to, text)
    text = unicodedata.normalize("NFKC", text).translate(_SIGNS)
    for date in _DATES:
        text = date.sub(_dated, text)
    text = _SLASHED.sub(lambda m: _days(m)[0] if len(_days(m)) == 1 else m[0], text)
    for pattern, to in _PLAIN:
        text = pattern.sub(to, text)
    return text


_ONES, _TEENS, _TENS, _NTHS = (
    words.split()
    for words in (
        "zero one two three four five six seven eight nine",
        "ten eleven twelve thirteen fourteen fifteen sixteen seventeen eighteen nineteen",
        "twenty thirty forty fifty sixty seventy eighty ninety",
        "half third quarter fifth sixth seventh eighth ninth tenth",
    )
)
_SCALES = {"thousand": 1e3, "million": 1e6, "billion": 1e9, "trillion": 1e12, "quadrillion": 1e15}
_TIMES = {"k": 1e3, "bn": 1e9, "hundred": 100.0, **_SCALES}
NUMBER_WORDS = {w: i for i, w in enumerate(_ONES + _TEENS)} | {
    w: 10 * i for i, w in enumerate(_TENS, 2)
}
_PARTS = {w: i for i, w in enumerate(_NTHS, 2)} | {"halve": 2, "fourth": 4, "hundredth": 100}
_one, _scale = "|".join(_ONES), "|".join(_SCALES)
_ty = rf"(?:{'|'.join(_TENS)})(?:[ -](?:{'|'.join(_ONES[1:])}))?|{'|'.join(_TEENS)}|{_one}"
_sub = rf"(?:(?:{_ty}|a)[ -]hundred(?:(?:\ and)?\ (?:{_ty}))?|{_ty})"
_word = rf"(?:{_sub}|a(?=\ (?:{_scale})))(?:[ -](?:{_scale})(?:,?\ (?:and\ )?{_sub})?)*"
_NUMERAL = re.compile(
    rf"""
    (?P<version> \d+ (?:\.\d+){{2,}} (?!,) )
    | (?P<digits>
        (?<![\d.,]\ ) [1-9]\d{{0,2}} (?:\ \d{{3}})+ (?![\d,']|\ \d) (?:\.\d+)?   # 1 500
        | [1-9]\d{{0,2}} (?:(?:,\d{{3}})+ | (?:'\d{{3}})+) (?!\d) (?:\.\d+)?      # 1,500.5  1'500
        | \d{{1,3}} (?:\.\d{{3}})+ ,\d+                                           # 1.500,25
        | (?<!\d,) \d+ ,\d+ (?![,\d])                                             # 0,5
        | \d+ (?:\.\d+)? | \.\d+
      )
      (?: e (?P<e>[-+]?\d{{1,4}}) (?!\w)
        | \s*[x*]\s*10 (?: \s?\^\s?\(? (?P<ten>[-+]?\d{{1,4}}) \)? | (?P<glued>[-+]\d{{1,4}}) )
        | \^\(? (?P<power>[-+]?\d{{1,4}}) \)? )?
    | \b (?P<share> {_word} | an? ) [ -] (?P<of>{"|".join(sorted(_PARTS, key=len)[::-1])})s? \b
    | \b (?P<words> {_word} (?:\ point(?:\ (?:{_one}))+)? ) \b
    """,
    re.X | re.I,
)
_SCALED = re.compile(rf"(?:(?<=\d)(?:k|bn)(?!\w)|[\s-](?:hundred|{_scale})s?\b)*")
_LONE = re.compile(r"\s*(?:\Z|[.;!)%]|(?:percent|per cent|years?|days?|hours?|minutes?)\b)")
_SIGNED = re.compile(
    r"""
    (?: (?:^|(?<![\w)\]%°.\-–])) (?P<minus>[-–+])
    | (?:^|[=:(,]|\b(?:is|be|was|of|to|by|equals))\s* (?P<apart>-)\s
    | \b(?P<word>minus|negative)\s+ ) \Z
    """,
    re.X | re.I,
)
_NAMED = re.compile(rf"(?:(?!{UNSPACED.pattern})[\w.^]|[^\W\d_]-|\^-)\Z")  # COVID-19, a4, x_5, g^-1


def _value(m: re.Match[str]) -> float:
    if m["digits"]:
        return _digits(m)
    if m["share"]:
        return (_spoken(m["share"].lower()) or 1.0) / _PARTS[m["of"].lower()]
    whole, _, decimals = m["words"].lower().partition(" point ")
    return _spoken(whole) + sum(NUMBER_WORDS[w] / 10**i for i, w in enumerate(decimals.split(), 1))


def _spoken(words: str) -> float:
    total = here = 0.0
    for w in re.split(r"[\s,-]+", words):
        if w in _SCALES:
            total = total + max(here, 1.0) * _SCALES[w]
            here = 0.0
        elif w == "hundred":
            here = max(here, 1.0) * 100
        else:
            here += NUMBER_WORDS.get(w, 0.0)
    return total + here


def _digits(m: re.Match[str]) -> float:
    text = re.sub(r"[ ']", "", m["digits"])
    if not re.fullmatch(r"[1-9]\d{0,2}(?:,\d{3})+(?:\.\d+)?", text) and "," in text:
        text = text.translate(str.maketrans(",.", ".,"))
    mantissa = "1" if m["power"] and text == "10" else text.replace(",", "")
    exponent = m["e"] or m["ten"] or m["glued"] or (m["power"] if text == "10" else 0)
    return float(f"{mantissa}e{exponent or 0}")


def _numerals(text: str) -> list[Quantity]:
    """Every number of readable text with its sign and scale, not yet beside its neighbours."""
    out: list[Quantity] = []
    at = 0
    while m := _NUMERAL.search(text, at):
        before = (max(0, m.start() - 24), m.start())
        at = m.end()
        if m["version"] or (m["digits"] and _NAMED.search(text, *before)):
            continue
        value, start = _value(m), m.start()
        scale = _SCALED.match(text, at)
        value *= math.prod(_TIMES[w] for w in re.findall("|".join(_TIMES), scale[0]))
        at = scale.end()
        if sign := _SIGNED.search(text, *before):
            value = value if sign["minus"] == "+" else -value
            start = sign.start(sign.lastgroup or 0)
        power = bool(m["power"]) and float(f"1e{m['power']}") != abs(value)
        money = units.MONEY.search(text, *before)
        tail = (f" {money[0].strip()}" if money else "") + text[at : at + 60]
        part = "power" if power else "ordinal" * bool(re.match(r"(?:st|nd|rd|th)\b", tail))
        if math.isfinite(value) and (m[0].lower() != "one" or _LONE.match(tail)):
            out.append(Quantity(value, start, at, value, tail, part))
    return out


# --- neighbours ---------------------------------------------------------------------------------

_UNIT = (
    r"(?:[^\S\n]?(?:%|°\s?[CF]?|[^\W\d_]{1,3}(?:/[^\W\d_]{1,3}(?:\^-?\d)?)?"
    r"|percent|years?|days?|hours?))?"
)
_LINKS = [
    (kind, re.compile(rf"{_UNIT}{p}", re.I))
    for kind, p in (
        ("interval", r"\s*(?:±|\+/?-|plus or minus|give or take)\s*"),
        ("range", r"\s*(?:-|–|to|through|\.\.+)\s*"),
        ("choice", r"\s*,?\s*\bor\s+(?:even |maybe |about )?"),
        ("ratio", r"\s?:\s?"),
        ("product", r"\s*(?:\bx\b|\btimes\b|multiplied by|divided by|÷|/(?! ))\s*"),
        ("sum", r"\s*(?:\+|\bplus\b|\bminus\b)\s*"),
    )
]
_LIMIT = re.compile(  # near, most, least: it may also be the number itself, "the maximum was 5"
    r"""
    (?:\b(?P<near>just|slightly|little)\ )?
    (?P<no>(?:\b(?:not|no|never|cannot)|\w+n't)[ ]
        (?:(?:to|go|went|get|rise|rose|fall|fell|drop|\w+ly)\ )?)?
    (?: (?P<under>
            \b(?:(?:less|fewer|lower|smaller|shorter|slower|younger)\ than | below | under | beneath
            | (?<!s\ )(?<!d\ )(?<!g\ )up\ to | at\ most | short\ of
            | (?:not|never|\w+n't|fail(?:s|ed)?\ to)\ reach(?:es|ed)?
            | (?P<most>up\ to | maximum(?:\ (?:of|is|was))? | as\ (?:much|many|high)\ as) )
            | [<≤]=? )
        | (?P<over>
            \b(?:(?:more|greater|higher|larger|bigger|longer|faster|older)\ than | above | over
            | beyond | exceed(?:s|ed|ing)? | surpass(?:es|ed|ing)? | at\ least | in\ excess\ of
            | upwards\ of | (?P<least>minimum(?:\ (?:of|is|was))?) )
            | [>≥]=? ) )
    (?:\ or\ equal\ to)?
    \s*(?:about\ |(?:the|an?)[ ]
        (?:(?:[a-z]+\ )?(?:threshold|cut-?off|limit|level|mark|value)\ of[ ])?
    )?
    [$€£¥₹]?\Z
    """,
    re.X | re.I,
)
_YEAR = re.compile(r"\b(?:before|after|until|till|pre|post)[\s-]*\Z", re.I)
_TIMES_OF = re.compile(
    r"\b(?:twice|thrice|double|triple|half|third|quarter|tenth|times)s?(?: of| about)?\s*\Z", re.I
)
_OR_MORE = re.compile(
    r"(?P<least>\+)(?!\s?\d)|\s*(?:\S+\s+)?(?:(?:or|and)\s+(?:(?P<over>more|greater|higher|larger|above"
    r"|over|older)|(?P<under>less|fewer|lower|smaller|below|under|younger))|(?P<short>(?:short|shy)\s+of)"
    r"|at\s+(?:(?P<most>most)|(?P<more>least)))\b",
    re.I,
)
_SHOWN = re.compile(r"[^.;=\n]{0,30}=")
_LIST = re.compile(r"\s*(?:,|,?\s*\band\b|,?\s*\bor\b|\bto\b|-|–)\s*", re.I)


def _fractions(text: str, found: list[Quantity]) -> list[Quantity]:
    """1/4, 7 out of 10 and 1 1/2 are one number each; 12/05/2020 is none."""
    out: list[Quantity] = []
    for q in found:
        gap = text[out[-1].end : q.start] if out else ""
        if gap and re.fullmatch(r"/|\s+out\s+of\s+", gap):
            a = out.pop()
            whole = out[-1] if out and text[out[-1].end : a.start] == " " else None
            value = a.value / q.value if q.value else math.inf
            start, part = (
                a.start,
                a.part or q.part or ("date" if "/" in text[a.start : a.end] else ""),
            )
            if whole and whole.value == int(whole.value) and 0 < value < 1 and not part:
                start = out.pop().start
                value = whole.value + math.copysign(value, whole.value)
            part = part or "date" * (not math.isfinite(value))
            out.append(Quantity(value, start, q.end, value, q.tail, part))
        else:
            out.append(q)
    return out


def _linked(text: str, a: Quantity, b: Quantity) -> tuple[Quantity, Quantity]:
    gap = text[a.end : b.start]
    kind = next((k for k, p in _LINKS if p.fullmatch(gap)), "")
    between = re.search(r"\bbetween\s*\Z", text[max(0, a.start - 12) : a.start], re.I)
    if between and re.fullmatch(r".{0,14}\s+and\s+", gap):
        kind = "range"
    if kind in ("product", "sum") and _SHOWN.match(text, b.end):
        kind = ""  # "140 / 15 = 9.33" shows its numbers
    if kind == "interval":
        small = abs(b.value) <= abs(a.value) / 4  # "21 ± 1.2 g" is a mean of 21 g
        tail = a.tail if units.said(a.tail) else b.tail
        return replace(a, far=a.value + b.value * (not small), tail=tail), replace(b, part=kind)
    if kind in ("range", "choice"):
        return replace(a, far=b.value), replace(b, far=a.value)
    return (replace(a, part=a.part or kind), replace(b, part=b.part or kind)) if kind else (a, b)


def limit(text: str, start: int, tail: str) -> tuple[str, int, bool]:
    """What starts there and has this tail: whether it is said to be "over", "under" or neither;
    where that is said; and whether it may be the number itself as well.

    >>> limit("It was not above 5.", 17, "."), limit("just under 5", 11, ""), limit("5+", 0, "+")
    (('under', 7, False), ('under', 0, True), ('over', 0, True))
    """
    before = _LIMIT.search(text, max(0, start - 60), start)
    m = before or _OR_MORE.match(tail)
    said = {k for k, v in (m.groupdict() if m else {}).items() if v}
    sides = [bool(said & {"over", "least", "more"}), bool(said & {"under", "most", "short"})]
    over, under = sides[::-1] if "no" in said else sides
    soft = bool(said & {"near", "most", "least", "more"})
    return "over" * over or "under" * under, before.start() if before else start, soft


def limited(text: str, q: Quantity) -> Quantity:
    """The quantity, as a part where a limit, a year or a multiple has it."""
    head = (max(0, q.start - 40), q.start)
    side, _, soft = limit(text, q.start, q.tail)
    year = 1000 <= q.value <= 2100 and _YEAR.search(text, *head)
    product = "product" if _TIMES_OF.search(text, *head) else ""
    return replace(
        q, part=q.part or (side if side and not soft else "year" * bool(year)) or product
    )


@lru_cache(maxsize=4_096)
def quantities(text: str) -> tuple[Quantity, ...]:
    """The quantities of readable text (`readable`), in order.

    Read are: thousands parted by comma, apostrophe or space, a decimal comma, 1e3 and 1 x 10^3,
    k, hundred ... quadrillion, percent, fractions, words ("forty-six", "one quarter"), minus and
    negative. "1,500" is 1500 and "1.500" is 1.5.

    >>> [q.value for q in quantities("about 1,250.5 kg, -3 °C, 2e3, 4 x 10^2, forty-six; not a1")]
    [1250.5, -3.0, 2000.0, 400.0, 46.0]
    >>> [(q.value, q.far, q.part) for q in quantities("between 1 and 343, less than 5")]
    [(1.0, 343.0, ''), (343.0, 1.0, ''), (5.0, 5.0, 'under')]
    """
    found = [limited(text, q) for q in _fractions(text, _numerals(text))]
    for i in range(len(found) - 1):
        found[i], found[i + 1] = _linked(text, found[i], found[i + 1])
    for i in range(len(found) - 2, -1, -1):  # in "78, 21 and 1 %" all are percentages
        if _LIST.fullmatch(text[found[i].end : found[i + 1].start]):
            found[i] = replace(found[i], tail=found[i + 1].tail)
    return tuple(found)


def agrees(
    q: Quantity,
    wanted: float,
    tolerance: float = 0.0,
    unit: str = "",
    *,
    percent: bool = False,
    by: str | None = None,
) -> bool:
    """True when a quantity gives `wanted` (in `unit`) within the tolerance, which is in `unit` too.

    A unit that says something else is wrong, one that converts is right; where the text names no
    unit it is taken as meant, except that a percentage needs its sign. percent, by : as of
    `units.values`.

    >>> [agrees(q, 1500, unit="mg") for q in quantities("1.5 g, 1500 mg; 1500 g; 1500")]
    [True, True, False, True]
    """
    slack = tolerance + 1e-9 * abs(wanted)
    ends = (units.values(v, q.tail, unit, percent=percent, by=by) for v in {q.value, q.far})
    return not q.part and all(any(abs(v - wanted) <= slack for v in vs) for vs in ends)


def listed(text: str, found: Sequence[Quantity], least: int = 6) -> set[int]:
    """Indices of the numbers that stand in a row of `least` or more, parted by commas or spaces.

    One less will do where spaces alone part them.
    """
    rows: list[list[int]] = [[0]] if found else []
    for i, (a, b) in enumerate(pairwise(found), 1):
        if re.fullmatch(r"[\s,;]*", text[a.end : b.start]):
            rows[-1].append(i)
        else:
            rows.append([i])
    out: set[int] = set()
    for row in rows:
        first = found[row[0]]
        spaced = not re.search("[,;]\\s", text[first.end : found[row[-1]].start])
        if len(row) + spaced >= least:
            out.update(row)
    return out
