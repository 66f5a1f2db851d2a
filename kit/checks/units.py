"""Units of measurement, by pint: what a text names after a number, what that is in another unit."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Any

_CENTS = {"US": "dollar", "euro": "euro"}
_DEGREES = ("°", "° ", "degree ", "degrees ", "deg ")
_SCALES = {"degC": "C Celsius centigrade", "degF": "F Fahrenheit", "kelvin": "K Kelvin"}
_SPOKEN = {
    **dict.fromkeys(("%", "percent", "per cent", "pct", "percentage points"), "percent"),
    **{d + x: unit for unit, of in _SCALES.items() for x in of.split() for d in _DEGREES},
    **{"Celsius": "degC", "centigrade": "degC", "Fahrenheit": "degF", "Kelvin": "kelvin"},
    **{f"{p}base pair{s}": f"{p}base" for p in ("", "kilo", "mega", "giga") for s in ("", "s")},
    **{f"{of} cent{s}": f"{unit}_cent" for of, unit in _CENTS.items() for s in ("", "s")},
    **dict.fromkeys(("US dollar", "US dollars"), "dollar"),
    **{"€": "euro", "$": "dollar", "£": "pound_sterling", "¥": "yen", "₹": "rupee"},
    **{"x g": "standard_gravity"},  # of a centrifuge; "12,000 g" may say it, too
    **{"light years": "light_year", "light-years": "light_year", "Cal": "kcal", "Å": "angstrom"},
    **{"electron volts": "eV", "AU": "au", "yrs": "year"},
}
_LOWERED = {said.lower(): unit for said, unit in _SPOKEN.items()}  # for several words
_DEFINED = (  # what pint lacks; what is made of one of them ("kilobases", "0.20 dollars") converts
    "base = [base] = bp = base_pair = nt = nucleotide",
    "codon = 3 base",
    "dollar = [dollar] = USD = buck",
    "dollar_cent = 0.01 dollar",
    "dime = 0.1 dollar",
    "euro = [euro] = EUR",
    "euro_cent = 0.01 euro",
    "pound_sterling = [gbp] = GBP",
    "penny = 0.01 pound_sterling = pence",
    "shilling = 0.05 pound_sterling",
    *(
        "yen = [yen] = JPY",
        "yuan = [yuan] = CNY",
        "rupee = [rupee] = INR",
        "ruble = [ruble] = rouble",
    ),
    *("franc = [franc] = CHF", "peso = [peso]", "krone = [krone] = krona = kroner = kronor"),
    "international_unit = [activity] = IU",
    "ppb = 1e-9",
)
_SEVERAL = {  # one sign, several units: whichever fits the wanted one
    **{
        "g": ("gram", "standard_gravity"),
        "C": ("degC", "coulomb"),
        "F": ("degF", "farad"),
        **{f"{p[0]}b": (f"{p}base", f"{p}bit") for p in ("kilo", "Mega", "Giga")},
    },
    **dict.fromkeys(("°", "degree", "degrees"), ("degree", "degC", "degF", "kelvin")),
    **dict.fromkeys(("¢", "cent", "cents"), ("dollar_cent", "euro_cent")),
    **dict.fromkeys(("p", "penny", "pennies"), ("penny", "dollar_cent")),
    **dict.fromkeys(("pound", "pounds"), ("pound", "pound_sterling")),
}
_PROSE = r"in|a|at|as|am|pm|are|is|on|or|to|of|an|and|the|per|by|for|from|x|so|no|up|p(?=\s?[<>=])"
_SIGNS = "$€£¥₹"
MONEY = re.compile(rf"(?<!\d)(?<!\d )(?:[{_SIGNS}]|\b(?:USD|EUR|GBP|JPY|CNY|INR|CHF)) ?\Z")
_NAME = rf"[^\W\d_]+|°(?:\s?[CFKcfk]\b)?|[%¢{_SIGNS}]"
_POWER = r"(?:\^?-?\d(?!\d))?"
_EACH = r"\b(?:once )?(?:per|each|every|in (?:a|an|one))\b"
_TIMES = {  # unit of time: its names and adverbs; "every second day" is no second
    "second": (r"(?:(?<=per )|(?<=/))second|second(?! \w)|s|sec", "by the second"),
    "minute": ("minute|min", "minutely|by the minute"),
    "hour": ("hour|hr|h", "hourly"),
    "day": ("day|d", "daily"),
    "week": ("week|wk", "weekly"),
    "month": ("month|mo", "monthly"),
    "year": ("year|yr|y", "yearly|annual(?:ly)?"),
    "decade": ("decade", "by the decade"),
    "century": ("century", "by the century"),
}
_PER = rf"(?:{_EACH}|\b(?:once )?an?(?= (?:{'|'.join(_TIMES)})\b))"
_JOIN = rf"\s?(?:/|·|⋅|\*|{_PER})\s?"
SCHEDULES = ("day", "week", "month", "year")  # a speed is of the others
_RATE = re.compile(
    "|".join(
        rf"(?P<{t}>\s?(?:(?:/|{_EACH}|\b(?:once )?an?(?= {t}))\s?(?:{name})\b(?!-\w|\s?\^)"
        rf"|\b(?:once )?(?:{adverb})\b|[·⋅*]?\b(?:{name})\^-1(?!\d)))"
        for t, (name, adverb) in _TIMES.items()
    )
)
_TIMED = re.sub(r"\?P<\w+>", "?:", _RATE.pattern)
_ENDS = r"\b(?:for|over|during|within|after|until|and|but|twice|thrice|\w+ times)\b"
_CLAUSE = re.compile(rf"(?:(?!{_ENDS})[^.,;:()\d]|(?<=\^)\d|(?<=\^-)\d)*")
_WORDS = "|".join(
    sorted(map(re.escape, (k for k in _SPOKEN if " " in k or "-" in k)), key=len)[::-1]
)
_FIRST = rf"(?:(?i:{_WORDS})\b|(?:(?:square|cubic)\s)?(?:{_NAME}){_POWER})"
_SAID = re.compile(
    rf"[\s-]?((?:{_TIMED})|x g\b(?!\s?[/^·])|(?!(?i:{_PROSE})\b(?!\s?[/^·])){_FIRST}"
    rf"(?:{_JOIN}(?:\((?:{_NAME}){_POWER}(?:[ ·*](?:{_NAME}){_POWER})*\)|{_FIRST})"
    rf"|[ ·](?:{_NAME})\^?-\d|{_TIMED})*)"
)


@lru_cache(maxsize=1)
def _registry() -> Any:
    import pint

    registry = pint.UnitRegistry(on_redefinition="ignore")
    registry.load_definitions(_DEFINED)
    return registry


@lru_cache(maxsize=4_096)
def _unit(text: str) -> Any:
    """The unit that a word or an expression names, or None."""
    spoken = _SPOKEN.get(text) or (not text.isalpha() and _LOWERED.get(text.lower())) or text
    text = _RATE.sub(lambda m: f"/{m.lastgroup}", spoken)
    text = re.sub(r"\A/", "1/", text)
    text = re.sub(r"\b(square|cubic)\s+(\w+)", lambda m: f"{m[2]}^{2 + (m[1] == 'cubic')}", text)
    text = re.sub(r"(?<=[^\W\d_])(-?\d)", r"^\1", re.sub(_PER, "/", text))
    text = re.sub(
        r"[·⋅]|(?<=\w)\s+(?=[^\W\d_])", "*", text.replace("^", "**").replace("%", "percent")
    )
    for form in (text, text.lower()):
        try:
            return _registry().parse_units(form)
        except Exception:  # pint's parser raises of everything; then it is no unit
            continue
    return None


@lru_cache(maxsize=4_096)
def _parsed(text: str) -> tuple[str, tuple[Any, ...]]:
    """The longest expression that a text may begin with and that names a unit, and the units that
    it may name; nothing for none."""
    m = _SAID.match(text)
    ends = [j.start() for j in re.finditer(rf"{_JOIN}|\s|\Z", m[1])] if m else []
    for said in (m[1][:end] for end in reversed(ends)):
        found = tuple(filter(None, map(_unit, _SEVERAL.get(said, (said,)))))
        if found:
            return said, found
    return "", ()


def _read(text: str) -> tuple[Any, ...]:
    return _parsed(text)[1]


_ASKED = (  # where a question has the unit that it asks for: "in degrees Celsius", else anywhere
    re.compile(r"\b(?:in|to|into) (?=[^\W\d]|[°¢])(?![^.?!]*\bor\b)", re.I),
    re.compile(r"(?<!\w)(?<!\d )(?=[^\W\d]|[°¢])"),
)


@lru_cache(maxsize=4_096)
def meant(text: str, prompt: str) -> str:
    """The text with the unit that the question asks for in place of one that may be several.

    >>> meant("29.8 degrees", "What is it in degrees Celsius?"), meant("90°", "At 20 °C?")
    ('29.8 degrees Celsius', '90°')
    """
    for m in reversed([*re.finditer(r"(?<=\d)[\s-]?(?=[^\W\d]|[°¢])", text)]):
        said, found = _parsed(text[m.end() :])
        for place in _ASKED if len(found) > 1 else ():
            asked = [_parsed(prompt[at.end() :]) for at in place.finditer(prompt)]
            one = {units[0]: words for words, units in reversed(asked) if len(units) == 1}
            fits = [words for unit, words in one.items() if unit in found]
            if len(fits) == 1:
                text = f"{text[: m.end()].rstrip()} {fits[0]}{text[m.end() + len(said) :]}"
                break
    return text


def known(unit: str) -> bool:
    """True for a unit of measurement: "mg", no "mice".

    >>> known("mg"), known("mice"), known("")
    (True, False, False)
    """
    return bool(_read(unit))


def several(value: float, tail: str, unit: str) -> bool:
    """True where a number comes to several values, since `unit` may be several units.

    >>> several(30, " °F", "degrees"), several(30, " degrees", "degrees"), several(30, " °F", "°C")
    (True, False, False)
    """
    return bool(unit) and len({f"{v:.9g}" for v in values(value, tail, unit)}) > 1


def said(text: str) -> str:
    """The words of a text's beginning that could be a unit, "" for none; nothing is looked up.

    >>> said(" m/s in air"), said(" in air"), said(", or so")
    ('m/s', '', '')
    """
    m = _SAID.match(text)
    return m[1] if m else ""


@lru_cache(maxsize=20_000)  # of every number, for each fact and each verifier
def period(text: str) -> str:
    """The unit of time that what is counted comes by, as the clause that a text begins with says;
    "" for none.

    >>> period("/h"), period(" mg of zinc daily"), period(" mice for a week"), period("%")
    ('hour', 'day', '', '')
    """
    m = _RATE.search(_CLAUSE.match(text)[0])
    return str(m.lastgroup) if m else ""


def asked(prompt: str) -> str:
    """The unit of time that a question asks for, "" where it names none or several.

    >>> asked("What daily dose?"), asked("Given per day or per week?")
    ('day', '')
    """
    found = {str(m.lastgroup) for m in _RATE.finditer(prompt.lower())}
    return found.pop() if len(found) == 1 else ""


@lru_cache(maxsize=4_096)
def timeless(text: str, time: str = "") -> str:
    """The text without "per day", where `time` is "day"; for "" without those of a schedule.

    >>> timeless("5 mg/kg per day"), timeless("5/d", "hour"), timeless("5 km/h")
    ('5 mg/kg', '5/d', '5 km/h')
    """
    gone = (time,) if time else SCHEDULES
    return _RATE.sub(lambda m: "" if m.lastgroup in gone else m[0], text)


_A_KELVIN = re.compile(r"/\s?([a-z]{1,3})\s?[·⋅*]?\s?(?:°\s?C|K)\b")  # "J/gK": per gram and kelvin
_PERCENT = re.compile(r"\s?-?(?:%|percent\b|per\s?cent\b|pct\b)", re.I)


def values(
    value: float, tail: str, unit: str, *, percent: bool = False, by: str | None = None
) -> list[float]:
    """What a number is in `unit`, where `tail` follows it; [] when the tail names another unit.

    percent : where no unit is wanted, "12%" is 12 as well as .12. by : the unit of time that a unit
        without one leaves out (`asked`), which the tail may say; "" for those of a schedule.

    >>> values(3.6, " km/h uphill", "m/s"), values(3.6, " kg", "m/s"), values(3.6, ", say", "m/s")
    ([1.0], [], [3.6])
    """
    tail = _A_KELVIN.sub(r"/(\1 K)", tail)
    own, time = period(tail), period(unit)
    left_out = by is not None and not time
    time = time or by or ""
    if time and own not in ("", time) and ("%" in unit or not (_read(tail) and _read(unit))):
        return []
    if own == time or left_out or (not own and _RATE.fullmatch(unit)):
        tail, unit = timeless(tail, time), timeless(unit, time)
    share = _PERCENT.match(tail)
    if not unit:
        return [value / 100, value][: 1 + percent] if share else [value]
    if _PERCENT.match(unit):
        return [value] if share else [100 * value] * (not _read(tail))
    (said, found), wanted = _parsed(tail), _read(unit)
    more = said.lower() in _LOWERED and len(said) > len(unit)  # "degrees Celsius" for "degrees"
    if not more and re.match(rf"[\s-]?{re.escape(unit)}(?!\w|\s?[/^·*]|\s+{_EACH})", tail):
        return [value]
    if not found:
        return [value]
    if not wanted:
        return [value] * all(u.dimensionless and not share for u in found)
    bare = any(str(s) == "degree" for s in found)  # "37 degrees" are the wanted ones
    pairs = [
        (s, w)
        for s in found
        for w in wanted
        if s == w or (s.is_compatible_with(w) and not (bare and str(s) != "degree"))
    ]
    return [float(_registry().Quantity(value, s).to(w).magnitude) for s, w in pairs]
