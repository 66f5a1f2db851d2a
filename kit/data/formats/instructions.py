"""IFEval and its kin: rows of instruction ids with arguments, as criteria that code decides.

Each id with its arguments becomes a check of `kit.checks` that measures what the id's own verifier
measures
(Zhou et al. 2023, table 1): paragraphs between lines of three asterisks, sections by their mark,
and so on. An id
that is not known here, as IFBench has, and one that another language of M-IFEval measures in its
own way, is left to a judge and said.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

from ...records import Criterion
from ..chats import ask
from ..rows import Row
from ..taskset import Parsed
from ..values import absent, as_text, number, parsed_json

Made = tuple[str, dict[str, Any]] | None
Arguments = Mapping[str, Any]
CHOICES = ("My answer is yes.", "My answer is no.", "My answer is maybe.")
BARE = r"(?:\*\*[^\S\n]*\*\*|\*[^\S\n]+\*)[^\n*]*"  # stars around nothing are passed over
FULL = r"(?=[^\n*]*[^\s*])[^\n*]+"
HIGHLIGHT = rf"(?:{BARE})*(?:\*\*{FULL}\*\*|\*{FULL}\*)"
BLOCK = r"(?=(?:(?!\*{3}).)*?(?!\*{3})\S)(?:(?!\*{3}).)+"  # a paragraph between lines of stars
PART = r"\s*(?=\S){}((?:(?!\*{{6}}).)*?(?!\*{{6}})\S)\s*"  # between lines of six asterisks
END = r"(?:\*{6}\s*)?\Z"
TWO = (  # two parts that differ
    r"\A\s*(?:\*{6})?" + PART.format("") + r"\*{6}" + PART.format(rf"(?!\1\s*{END})") + END
)
# of M-IFEval's other languages: what their verifier measures as the English one does
ALIKE = frozenset(
    "combination:two_responses detectable_content:number_placeholders "
    "detectable_format:json_format length_constraints:number_paragraphs".split()
)
LATIN = ALIKE.union(
    "combination:repeat_prompt detectable_format:multiple_sections keywords:existence "
    "detectable_format:number_highlighted_sections keywords:forbidden_words "
    "punctuation:no_comma".split()
)
CAPITAL = r"(?<!\w)[A-Z](?:[A-Z0-9'’.-]*[A-Z0-9])?(?!\w)"


def _bounds(a: Arguments, relation: str, count: str) -> tuple[str, dict[str, int]] | None:
    """("at least 3", {"min": 3}); None for a relation or count that is none. relation : the name of
    its argument, or the relation itself."""
    n, stated = _whole(a.get(count)), a.get(relation, relation)
    if n is None:
        return None
    if stated == "at least":
        return f"at least {n}", {"min": n}
    if stated == "less than" and n > 0:
        return f"fewer than {n}", {"max": n - 1}
    return (f"exactly {n}", {"min": n, "max": n}) if stated == "exactly" else None


def _whole(count: Any) -> int | None:
    """A whole number, of a column with gaps, too (2.0); None for any other value."""
    n = None if isinstance(count, str) else number(count)
    return int(n) if n is not None and n == int(n) else None


def _counted(
    noun: str, check: dict[str, Any], count: str, relation: str = "at least"
) -> Callable[[Arguments], Made]:
    """A maker for "has {at least N} {noun}"."""

    def make(a: Arguments) -> Made:
        found = _bounds(a, relation, count)
        if found is None:
            return None
        return f"Has {found[0]} {noun}.", {**check, **found[1]}

    return make


def _fixed(text: str, **check: Any) -> Callable[[Arguments], Made]:
    return lambda a: (text, check)


def _times(
    text: str, what: str, relation: str, count: str, behind: str = "", **how: bool
) -> Callable[[Arguments], Made]:
    """A maker for "has X {at least N} times". text : the criterion, with the places {what} and
    {often}; behind : a pattern that follows X."""

    def make(a: Arguments) -> Made:
        found = _bounds(a, relation, count)
        said = a.get(what)
        if found is None or not isinstance(said, str) or not said:
            return None
        pattern = {"name": "regex", "pattern": re.escape(said) + behind, **how, **found[1]}
        return text.format(what=repr(said), often=found[0]), pattern

    return make


def _nth_paragraph(a: Arguments) -> Made:
    total = _whole(a.get("num_paragraphs"))
    nth = _whole(a.get("nth_paragraph"))
    word = a.get("first_word")
    if not (total and nth and 1 <= nth <= total and isinstance(word, str) and word):
        return None
    block = r"(?:(?!\n\n).)+"
    before = rf"(?:{block}\n\n+){{{nth - 1}}}"
    after = rf"(?:\n\n+{block}){{{total - nth}}}"
    pattern = rf"\A\s*{before}\W*{re.escape(word)}(?!\w)(?:(?!\n\n).)*{after}\s*\Z"
    text = f"Has {total} paragraphs between blank lines; paragraph {nth} begins with {word!r}."
    return text, {"name": "regex", "pattern": pattern, "case": False, "dotall": True}


def _paragraphs(a: Arguments) -> Made:
    n = _whole(a.get("num_paragraphs"))
    if n is None or n < 1:
        return None
    more = rf"(?:\*{{3}}{BLOCK}){{{n - 1}}}"
    pattern = rf"\A\s*(?:\*{{3}})?{BLOCK}{more}(?:\*{{3}}\s*)?\Z"
    text = f"Has exactly {n} paragraphs, divided by ***."
    return text, {"name": "regex", "pattern": pattern, "dotall": True}


def _postscript(a: Arguments) -> Made:
    mark = a.get("postscript_marker")
    if not isinstance(mark, str) or not mark:
        return None
    pattern = r"\.\s?".join(re.escape(part) for part in mark.split(".") if part.strip())
    pattern += r"\." if mark.endswith(".") else ""
    text = f"Has a postscript that starts with {mark!r}."
    return text, {"name": "regex", "pattern": pattern, "case": False}


def _words(text: str, group: str, argument: str, **how: bool) -> Callable[[Arguments], Made]:
    def make(a: Arguments) -> Made:
        words = a.get(argument)
        if (
            not isinstance(words, list)
            or not words
            or not all(isinstance(w, str) and w for w in words)
        ):
            return None
        return f"{text} {', '.join(map(repr, words))}.", {
            "name": "contains",
            group: list(words),
            **how,
        }

    return make


def _edge(text: str, name: str, argument: str) -> Callable[[Arguments], Made]:
    def make(a: Arguments) -> Made:
        said = a.get(argument)
        usable = isinstance(said, str) and said.strip()
        # a quotation mark may follow an end
        asked = [said, f'{said}"'] if name == "ends" else said
        return (f"{text} {said!r}.", {"name": name, "text": asked}) if usable else None

    return make


def _language(a: Arguments) -> Made:
    from ...checks.language import CODES

    code = a.get("language")
    if code not in CODES:
        return None
    return f"Is written in the language {code!r}, all of it.", {"name": "language", "code": code}


MAKERS: dict[str, Callable[[Arguments], Made]] = {
    "punctuation:no_comma": _fixed("Has no comma.", name="regex", pattern=",", max=0),
    "length_constraints:number_words": _counted(
        "words", {"name": "words"}, "num_words", "relation"
    ),
    "length_constraints:number_sentences": _counted(
        "sentences", {"name": "sentences"}, "num_sentences", "relation"
    ),
    "length_constraints:number_paragraphs": _paragraphs,
    "length_constraints:nth_paragraph_first_word": _nth_paragraph,
    "keywords:existence": _words("Has the words", "all", "keywords", whole=False),
    "keywords:forbidden_words": _words("Has none of the words", "none", "forbidden_words"),
    "keywords:frequency": _times(
        "Has the word {what} {often} times.", "keyword", "relation", "frequency", case=False
    ),
    "keywords:letter_frequency": _times(
        "Has the letter {what} {often} times.",
        "letter",
        "let_relation",
        "let_frequency",
        case=False,
    ),
    "detectable_format:number_highlighted_sections": _counted(
        "parts highlighted by asterisks",
        {"name": "regex", "pattern": HIGHLIGHT},
        "num_highlights",
    ),
    "detectable_format:number_bullet_lists": _counted(
        "bullet points", {"name": "bullets"}, "num_bullets", "exactly"
    ),
    "detectable_format:multiple_sections": _times(
        "Has {often} sections marked {what} with a number.",
        "section_spliter",
        "at least",
        "num_sections",
        behind=r"\s?\d+",
    ),
    "detectable_format:title": _fixed(
        "Has a title in double angle brackets, <<title>>.",
        name="regex",
        pattern=r"<<[^\n<>]*\S[^\n<>]*>>",
    ),
    "detectable_format:json_format": _fixed("Is JSON, all of it.", name="json"),
    "detectable_format:constrained_response": _fixed(
        f"Has one of {', '.join(map(repr, CHOICES))}", name="contains", any=list(CHOICES), case=True
    ),
    "detectable_content:number_placeholders": _counted(
        "placeholders in square brackets",
        {"name": "regex", "pattern": r"\[.*?\]"},
        "num_placeholders",
    ),
    "detectable_content:postscript": _postscript,
    "startend:end_checker": _edge("Ends with", "ends", "end_phrase"),
    "startend:quotation": _fixed(
        "Stands in double quotation marks, all of it.",
        name="regex",
        pattern=r'\A\s*".*"\s*\Z',
        dotall=True,
    ),
    "combination:repeat_prompt": _edge("First repeats the request", "starts", "prompt_to_repeat"),
    "combination:two_responses": _fixed(
        "Gives two different answers, divided by six asterisks.",
        name="regex",
        pattern=TWO,
        dotall=True,
    ),
    "change_case:english_capital": _fixed("Is in capital letters, all of it.", name="uppercase"),
    "change_case:english_lowercase": _fixed("Is in lower case, all of it.", name="lowercase"),
    "change_case:capital_word_frequency": _counted(
        "words in capitals",
        {"name": "regex", "pattern": CAPITAL},
        "capital_frequency",
        "capital_relation",
    ),
    "language:response_language": _language,
}


def instructions(row: Row) -> Parsed:
    """IFEval, M-IFEval, IFBench: `instruction_id_list` and `kwargs` beside a prompt."""
    task_id, chat = (
        row.task_id("key", "id", "task_id"),
        ask(row, "prompt", "question", "instruction"),
    )
    criteria = checked(row, row.take("instruction_id_list"), row.take("kwargs"))
    return row.task(
        task_id, chat.prompt, criteria, rubric="instruction", meta=chat.meta, **chat.fields
    )


def checked(row: Row, raw: Any, given: Any) -> list[Criterion]:
    """The criteria of a list of ids and a list of their arguments."""
    ids, arguments = parsed_json(raw), parsed_json(given)
    if not isinstance(ids, list):
        ids = [] if ids is None else [ids]
    aligned = isinstance(arguments, list) and len(arguments) == len(ids)
    if not aligned and arguments is not None:
        row.aside(
            "field-mismatch",
            "kwargs",
            given,
            f"kwargs is not a list of {len(ids)} objects; it is kept in meta",
            severity="error",
        )
    pairs = zip(ids, arguments if aligned else [{}] * len(ids), strict=True)
    return [_criterion(row, f"i{n}", i, parsed_json(a)) for n, (i, a) in enumerate(pairs, 1)]


def _criterion(row: Row, name: str, instruction: Any, arguments: Any) -> Criterion:
    known = as_text(instruction)
    prefix = re.match(r"(?:[a-z]{2}:(?=\w+:))?", known)[0]  # M-IFEval puts the language before
    bare = known.removeprefix(prefix)
    alike = {"": MAKERS, "en:": MAKERS, "es:": LATIN, "fr:": LATIN}.get(prefix, ALIKE)
    given = arguments if isinstance(arguments, Mapping) else {}
    given = {str(k): v for k, v in given.items() if not absent(v)}
    made = MAKERS[bare](given) if bare in MAKERS and bare in alike else None
    meta = {"instruction": known, "kwargs": given if isinstance(arguments, Mapping) else arguments}
    if made is not None:
        same = (k for k in given if MAKERS[bare]({**given, k: None}) == made)
        row.within("kwargs", {k: given[k] for k in same})
        return Criterion(
            id=name, text=made[0], check=made[1], tags=(bare.split(":")[0],), meta=meta
        )
    row.find(
        "no-check",
        f"no code decides the instruction {known!r} with these arguments; it is left to a judge",
        severity="info",
        criterion_id=name,
    )
    told = ", ".join(  # a text in quotation marks: it is not the criterion that speaks
        f"{k.replace('_', ' ')} {repr(v) if isinstance(v, str) else as_text(v)}"
        for k, v in given.items()
    )
    return Criterion(
        id=name,
        text=f"Follows the instruction {bare.replace('_', ' ')!r}"
        + (f" ({told})" if told else "")
        + ".",
        tags=(bare.split(":")[0],),
        meta=meta,
    )
