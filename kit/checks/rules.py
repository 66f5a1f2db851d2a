"""The built-in checks: a table of name -> (arguments, rule). Run by `kit.checks`."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from typing import Any

from ..records import Response, Task, leaves
from . import text as text_of
from . import units
from .arguments import Arguments, Finding, Rule
from .language import CODES, language
from .quantities import NUMBER_WORDS, agrees, listed, quantities, readable

REGEX_SECONDS = 2.0
_STOPWORDS = frozenset(
    "a an the of and or to in on at is are was were be been it its this that these those for "
    "with as by from what which who "
    "how why when where do does did can could would should will please your you i me my we "
    "our give write name list "
    "explain describe about into than then there not no if but so one".split()
)


def _span(
    low: float | None, high: float | None, show: Callable[[float], str] = lambda v: f"{v:g}"
) -> str:
    if low is not None and high is not None:
        return f"exactly {show(low)}" if low == high else f"{show(low)} to {show(high)}"
    return f"at least {show(low)}" if low is not None else (f"at most {show(high)}")  # type: ignore[arg-type]


def _ranged(
    value: float,
    bounds: tuple[float | None, float | None],
    noun: str,
    *,
    share: bool = False,
) -> Finding:
    low, high = bounds
    met = (low is None or value >= low) and (high is None or value <= high)
    if share:
        return Finding(met, f"{value:.1%} {noun}; {_span(low, high, lambda v: f'{v:.1%}')}")
    plural = "es" if noun == "matches" else "s"
    named = noun if value != 1 else noun.removesuffix(plural)
    return Finding(met, f"{value:g} {named}; {_span(low, high)}")


def _counted(noun: str, measure: Callable[[str], int]) -> Rule:
    return lambda task, response, args: _ranged(
        measure(response.text), args.bounds(default_min=1 if "item" in noun else None), noun
    )


def _shared(noun: str, measure: Callable[[Task, str], float | None]) -> Rule:
    def run(task: Task, response: Response, args: Arguments) -> Finding:
        bounds = args.bounds(whole=False, top=1.0)
        value = measure(task, response.text)
        return (
            Finding(None, f"nothing to measure: {noun}")
            if value is None
            else _ranged(value, bounds, noun, share=True)
        )

    return run


def _terms(terms: Sequence[str]) -> str:
    return ", ".join(map(repr, terms)) or "none"


def _contains(task: Task, response: Response, args: Arguments) -> Finding:
    groups = {g: args.strings(g) for g in ("any", "all", "none")}
    if not any(groups.values()):
        raise args.wrong("any", "none of any, all, none is given", 'write e.g. "any": ["river"]')
    case, whole = args.flag("case", False), args.flag("whole", True)
    fold = text_of.fold if not case else lambda t: re.sub(r"\s+", " ", text_of.visible(t))
    bare = text_of.plain(response.text)
    raw, plain, spoken = map(fold, (response.text, bare, text_of.without_urls(bare)))

    def found(term: str, group: str) -> bool:
        # a word inside an address, a tag or a fence is not said, but it stands there: unwanted, it
        # counts; marks are looked for as written
        word = group != "none" and term.replace(" ", "").isalnum()
        said = [spoken] if word else [raw, plain]
        return any(text_of.stands(fold(term).strip(), h, whole=whole) for h in said)

    hit = {g: [t for t in terms if found(t, g)] for g, terms in groups.items()}
    gone = [t for t in groups["all"] if t not in hit["all"]]
    notes = {
        "any": f"has {_terms(hit['any'])} of {len(groups['any'])} terms; any one needed",
        "all": f"has {len(hit['all'])} of {len(groups['all'])} needed terms"
        + (f", not {_terms(gone[:5])}" if gone else ""),
        "none": f"has {_terms(hit['none'][:5])} of {len(groups['none'])} unwanted terms",
    }
    met = not gone and not hit["none"] and (not groups["any"] or bool(hit["any"]))
    return Finding(met, "; ".join(text for g, text in notes.items() if groups[g]))


def _regex(task: Task, response: Response, args: Arguments) -> Finding:
    """Matches of a pattern in the answer. ^ and $ are the ends of the whole answer (so is \\A...\\Z
    of any pattern).

    `"multiline": true` makes them the ends of each line: then one good line among bad ones is a
    match.
    """
    bounds = args.bounds(default_min=1)
    pattern = args.strings("pattern", needed=True)[0]
    flags = (
        (re.MULTILINE if args.flag("multiline", False) else 0)
        | (0 if args.flag("case", True) else re.IGNORECASE)
        | (re.DOTALL if args.flag("dotall", False) else 0)
    )
    try:
        re.compile(pattern, flags)
    except re.error as e:
        raise args.wrong("pattern", f"not a regular expression: {e}") from None
    whole = text_of.visible(response.text).strip()  # blanks around an answer are no part of it
    return _ranged(_matches(pattern, flags, whole), bounds, "matches")


def _matches(pattern: str, flags: int, text: str) -> int:
    """Matches of a pattern; TimeoutError after REGEX_SECONDS where the `regex` package is
    installed."""
    try:
        import regex
    except ImportError:
        return sum(1 for _ in re.finditer(pattern, text, flags))
    # the three flags have the same numbers in both
    return sum(1 for _ in regex.finditer(pattern, text, int(flags), timeout=REGEX_SECONDS))


def _edge(at_start: bool) -> Rule:
    def run(task: Task, response: Response, args: Arguments) -> Finding:
        terms = args.strings("text", needed=True)
        fold = (lambda t: text_of.visible(t).strip()) if args.flag("case", False) else text_of.fold
        sides = [fold(response.text), fold(text_of.plain(response.text))]
        met = any((s.startswith if at_start else s.endswith)(fold(t)) for s in sides for t in terms)
        shown = sides[0][:40] if at_start else sides[0][-40:]
        return Finding(
            met,
            f"{'starts' if at_start else 'ends'} with {shown!r}; wanted "
            f"{' or '.join(map(repr, terms[:3]))}",
        )

    return run


_FULL_WIDTH = {i + 0xFEE0: i for i in range(0x21, 0x7F)}


def _no_char(task: Task, response: Response, args: Arguments) -> Finding:
    raw = args.get("chars")
    if not (isinstance(raw, str) and raw) and not (
        isinstance(raw, (list, tuple)) and raw and all(isinstance(c, str) and c for c in raw)
    ):
        raise args.wrong("chars", f"chars is {raw!r}", "write the characters as one text or a list")
    case = args.flag("case", False)
    text = text_of.visible(response.text) if case else text_of.visible(response.text).casefold()
    wide = text.translate(_FULL_WIDTH)  # "，" is a comma, too
    folded = {c: c if case else c.casefold() for c in dict.fromkeys(raw)}
    count = {c: max(text.count(f), wide.count(f)) for c, f in folded.items()}
    hits = {c: n for c, n in count.items() if n}
    return Finding(
        not hits,
        "has "
        + (", ".join(f"{c!r} {n} times" for c, n in hits.items()) or "none of the characters")
        + f"; unwanted {''.join(raw)!r}",
    )


def _json(task: Task, response: Response, args: Arguments) -> Finding:
    schema = args.get("schema")
    if schema is not None and not isinstance(schema, (dict, bool)):
        raise args.wrong(
            "schema", f"schema is {type(schema).__name__}", "write a JSON schema object"
        )
    text = text_of.visible(response.text).strip()
    fence = re.fullmatch(r"(?:```|~~~)[\w-]*\n(.*?)\n?[ \t]*(?:```|~~~)", text, re.S)
    if schema is not None:
        import jsonschema

        try:
            jsonschema.validators.validator_for(schema).check_schema(schema)
        except jsonschema.SchemaError as e:
            raise args.wrong("schema", f"not a JSON schema: {e.message[:200]}") from None
    try:
        value = json.loads(fence[1] if fence else text, parse_constant=_refuse, parse_int=_whole)
    except RecursionError:
        return Finding(None, "nested too deeply to be read here")
    except ValueError as e:
        return Finding(False, f"not valid JSON: {str(e)[:120]}")
    if schema is None:
        return Finding(True, f"valid JSON ({type(value).__name__})")
    fault = jsonschema.exceptions.best_match(
        jsonschema.validators.validator_for(schema)(schema).iter_errors(value)
    )
    return Finding(
        fault is None,
        "valid JSON that fits the schema"
        if fault is None
        else f"valid JSON; at {fault.json_path}: {fault.message[:120]}",
    )


def _whole(digits: str) -> int | float:
    """An integer; Python refuses to read more than 4,300 digits."""
    return int(digits) if len(digits) < 4_000 else float(digits)


def _refuse(name: str) -> Any:
    raise ValueError(f"{name} is not JSON")


def _letters(kind: str) -> Rule:
    def run(task: Task, response: Response, args: Arguments) -> Finding:
        letters = [c for c in text_of.visible(response.text) if c.isupper() or c.islower()]
        wrong = sum(c.isupper() if kind == "lower" else c.islower() for c in letters)
        return Finding(
            bool(letters) and not wrong,
            f"{wrong} of {len(letters)} letters are not {kind} case; none may be",
        )

    return run


def _language(task: Task, response: Response, args: Arguments) -> Finding:
    code = args.strings("code", needed=True)[0].lower().split("-")[0]
    if code not in CODES:
        raise args.wrong(
            "code", f"language {code!r} is not known", f"use one of {', '.join(CODES)}"
        )
    found, why = language(response.text)
    return Finding(None if found is None else found == code, f"{why}; wanted {code!r}")


_DENIED = re.compile(r"\b(?:not|never|isn't|nor)\s+(?:exactly\s+|about\s+)?\Z", re.I)


def _number(task: Task, response: Response, args: Arguments) -> Finding:
    """A number of the answer, in any notation of `quantities`; "12%" is 12 and .12.

    "12 288" is 12288, or 12 and 288. What the answer denies ("not 42"), lists beside five others,
    or says as a part of something else ("less than 42", "42 million") it does not give. An answer
    of numbers alone ("41, 42") chooses none, unless other checks of the task ask for the others.
    unit : a number in another one is converted, one without any is taken as meant; where it may be
    several ("degrees"), it is the one that the prompt asks for. which : any,
    first or last. Of an answer with an <answer> block or a \\boxed{} only the last one is read.
    """
    value = args.number("value")
    tolerance = args.number("tolerance", 0.0, low=0)
    if value is None:
        raise args.wrong("value", "value is missing", "write the number that the answer must give")
    which = args.get("which", "any")
    if which not in ("any", "first", "last"):
        raise args.wrong("which", f"which is {which!r}", "write any, first or last")
    unit = units.meant(f"1 {next(iter(args.strings('unit')), '')}", task.prompt)[2:]
    text = readable(text_of.visible(text_of.given(response.text)))
    every = quantities(text)
    row = listed(text, every)
    found = [
        q
        for i, q in enumerate(every)
        if i not in row and not _DENIED.search(text, max(0, q.start - 30), q.start)
    ]
    apart = [q for q in found if re.fullmatch(r"\d+(?: \d+)+", text[q.start : q.end])]
    twice = [n for q in apart for n in quantities(text[q.start : q.end].replace(" ", "; "))]
    tried = {"any": found + twice, "first": found[:1], "last": found[-1:]}[which]
    nearest = min((q.value for q in tried), key=lambda x: abs(x - value), default=None)
    agree = [q for q in tried if agrees(q, value, tolerance, unit, percent=not unit)]
    if agree and all(units.several(q.value, q.tail, unit) for q in agree):
        return Finding(None, f"which of several units {unit!r} is, nothing says")
    right = {q.value for q in agree}
    checks = [c.check for c in task.criteria if c.check and c.check["name"] == "number"]
    known = right | {x.get("value") for x in checks}
    # other words and operators than numbers and what stands around a guess
    said = {*_WORDS.findall(text.lower())} - _FRAME - NUMBER_WORDS.keys()
    bare = which == "any" and not apart and not said
    rivals = [q for q in found if bare and q.value not in known]
    beside = [q.value for q in rivals if not _CITED.fullmatch(text, q.start - 1, q.end + 1)]
    place = "nearest" if which == "any" else which
    shown = "no number" if nearest is None else f"{place} number is {nearest:.10g}"
    return Finding(
        bool(right) and not beside,
        f"{shown} ({len(found)} in the answer); wanted {value:g}{f' {unit}' if unit else ''}"
        + (f" +- {tolerance:g}" if tolerance else "")
        + (f"; {beside[0]:g} is given as well" if beside else ""),
    )


_CITED = re.compile(r"\[\d{1,3}\]")
_WORDS = re.compile(r"[^\W\d_]+|[%=+*^]|\s-\s")
_FRAME = frozenset(
    "a an the is are was were be it its there they that this answer answers maybe perhaps possibly "
    "also either and or as well i think say one of no not".split()
)


def _cites(task: Task, response: Response, args: Arguments) -> Finding:
    least = args.number("min", 1, low=0, whole=True)
    only = args.flag("only_known", True)
    ids = list(dict.fromkeys(text_of.cited(response.text, tuple(task.sources))))
    known = [i for i in ids if i in task.sources]
    strange = [i for i in ids if i not in task.sources]
    met = len(known if only else ids) >= least and not (only and strange)
    return Finding(
        met,
        f"cites {len(known)} known ids; at least {least:g}"
        + (f"; unknown ids {_terms(strange[:5])}" if strange else ""),
    )


def _exact(task: Task, response: Response, args: Arguments) -> Finding:
    """The answer is one of `answers`. A confidence stated after it is not part of it, unless
    `"confidence": false`."""
    case = args.flag("case", False)

    def norm(text: str) -> str:
        flat = re.sub(r"\s+", " ", text_of.visible(text)).strip() if case else text_of.fold(text)
        return flat.strip(" .!?。！？\"'*`")

    answers = {norm(a) for a in args.strings("answers", needed=True)}
    text = text_of.given(response.text)
    given = norm(text_of.plain(text))
    if given not in answers and args.flag("confidence", True):
        given = norm(text_of.plain(without_confidence(text)))
    return Finding(given in answers, f"answer is {given[:60]!r}; {len(answers)} accepted")


def without_confidence(text: str) -> str:
    """The text without its last sentence, where that states a confidence ("85. Confidence:
    75%")."""
    from ..confidence.statements import statements

    last = next(iter(reversed(statements(text))), None)
    if last is None or re.search(r"[.!?]\s+\S|\n", text[last.end :]):
        return text
    ends = [m.end() for m in _SENTENCE_END.finditer(text[: last.start])]
    # "Paris (90% sure)", "16 (80% confidence level)"
    if not ends and re.fullmatch(r"(?:\s+level)?[\s.!)\]]*", text[last.end :]):
        head = text[: last.start]
        head = head[: head.rindex("(")] if head.count("(") > head.count(")") else head
        return _LEAD_IN.sub("", head).rstrip(" \t,;:([-–—")
    return text[: max(ends, default=0)]


_LEAD_IN = re.compile(  # "85, and I am 75% sure", "85 with 90% confidence", "85 with a"
    r"\s+(?:(?:with|at|and|but)\s+(?:an?\s+)?)?(?:(?:i am|i'm|i would say|i'd say"
    r"|my confidence is|about|around|roughly|only)\s+)*$",
    re.I,
)
_SENTENCE_END = re.compile(r"[.!?]\s+|\n")


def _no_copy(task: Task, response: Response, args: Arguments) -> Finding:
    """No run of `words` words of the prompt (default 5) stands in the answer."""
    size = args.number("words", 5, low=1, whole=True)
    asked = {*text_of.runs(text_of.parts(task.prompt), size)}
    hit = [run for run in text_of.runs(text_of.parts(response.text), size) if run in asked]
    shown = f", {' '.join(hit[0])!r}" if hit else ""
    return Finding(
        not hit, f"{len(hit)} runs of {size} words are copied from the prompt{shown}; none may be"
    )


def _own_words(task: Task, response: Response, args: Arguments) -> Finding:
    """How many different words of the answer the prompt does not have."""
    own = set(text_of.parts(response.text)) - set(text_of.parts(task.prompt))
    return _ranged(len(own), args.bounds(default_min=1), "words of its own")


def _all_met(task: Task, response: Response, args: Arguments) -> Finding:
    """The other criteria hold: the good ones met, the bad ones (negative weight) not.

    of : their ids (default: all others). Only code can be asked here: where every code check holds
        and a judged
    criterion is among them, the result is unknown.
    """
    from . import check

    others = [c for c in task.criteria if (c.check or {}).get("name") != args["name"]]
    if args.get("of") is not None:
        ids = args.strings("of", needed=True)
        if missing := [i for i in ids if i not in {c.id for c in others}]:
            raise args.wrong(
                "of", f"there is no other criterion {missing[0]!r}", "write ids of the task"
            )
        others = [c for c in others if c.id in ids]
    judged = [c for c in leaves(task.criteria) if c in others]
    found = {c.id: check(task, response, c) if c.by_code else None for c in judged}
    failed = [
        c.id
        for c in judged
        if (v := found[c.id]) is not None and v.known and (v.status == "met") != (c.weight >= 0)
    ]
    open_ = [i for i, v in found.items() if v is None or not v.known]
    if failed:
        return Finding(
            False, f"{len(failed)} of {len(judged)} other criteria fail: {', '.join(failed[:5])}"
        )
    if open_ or not judged:
        return Finding(None, f"cannot tell: {', '.join(open_[:5]) or 'no other criterion'}")
    return Finding(True, f"all {len(judged)} other criteria hold")


def _mentions(task: Task, text: str) -> float | None:
    """Share of the prompt's content words that occur in the answer; None where the prompt has
    none."""
    content = {w.casefold() for w in text_of.words(task.prompt)} - _STOPWORDS
    return (
        len(content & {w.casefold() for w in text_of.words(text)}) / len(content)
        if content
        else None
    )


def _unique(task: Task, text: str) -> float | None:
    w = text_of.parts(text)  # "cherry-cherry" repeats itself
    return len(set(w)) / len(w) if w else 0.0


_RANGE, _SHARE = ("min", "max"), ("min_share", "max_share")
CHECKS: dict[str, tuple[tuple[str, ...], Rule]] = {
    "words": (_RANGE, _counted("words", lambda t: len(text_of.words(t)))),
    "sentences": (_RANGE, _counted("sentences", lambda t: len(text_of.sentences(t)))),
    "paragraphs": (_RANGE, _counted("paragraphs", text_of.paragraphs)),
    "lines": (_RANGE, _counted("lines", text_of.lines)),
    "chars": (_RANGE, _counted("characters", lambda t: len(text_of.visible(t).strip()))),
    "bullets": (_RANGE, _counted("bullet items", text_of.items)),
    "numbered": (_RANGE, _counted("numbered items", lambda t: text_of.items(t, numbered=True))),
    "contains": (("any", "all", "none", "case", "whole"), _contains),
    "regex": (("pattern", "min", "max", "case", "dotall", "multiline"), _regex),
    "starts": (("text", "case"), _edge(True)),
    "ends": (("text", "case"), _edge(False)),
    "no_char": (("chars", "case"), _no_char),
    "json": (("schema",), _json),
    "lowercase": ((), _letters("lower")),
    "uppercase": ((), _letters("upper")),
    "language": (("code",), _language),
    "number": (("value", "tolerance", "unit", "which"), _number),
    "cites": (("only_known", "min"), _cites),
    "exact": (("answers", "case", "confidence"), _exact),
    "no_copy": (("words",), _no_copy),
    "own_words": (_RANGE, _own_words),
    "all_met": (("of",), _all_met),
    "repeats": (
        _SHARE,
        _shared("of word triples are repeats", lambda task, t: text_of.repeated_share(t)),
    ),
    "mentions_prompt": (_SHARE, _shared("of the prompt's content words occur", _mentions)),
    "unique_words": (_SHARE, _shared("of the words are distinct", _unique)),
}
