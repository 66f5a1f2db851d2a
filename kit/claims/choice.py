"""Choices: an answer that names several of the alternatives as its answer has chosen none.

Alternatives are the options that a question offers ("eye, liver or thymus?", "A) helium B) argon"),
the candidates of the truth that stand in the question, the answers of sister questions ("Which
tissue"), the other pole of a fact (`poles`), and the numbers that are given as bare as the right
one. What is denied, compared with, or explained in words of its own is not named as the answer.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from calendar import month_name
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import lru_cache
from itertools import dropwhile, pairwise
from typing import Any

from ..checks.quantities import NUMBER_WORDS, Quantity, quantities
from ..records import Task
from . import lexicon as lx
from .compare import comparative
from .text import find, norm, phrase, phrase_words, spans, whole

_LETTER = re.compile(r"^\s*(?:[-*•]|\(?[A-Ha-h\d][).:])\s+|(?<!\w)\(?[A-Ha-h\d]\)\s*", re.M)
_OR = re.compile(r"\s*(,\s*or\b|,|;|(?<=\w{3})/(?=\w{3})|\bor\b)\s*")
_VS = re.compile(r"\s+(vs|versus)\s+")
_SET = re.compile(  # options in brackets, behind a colon, with strokes
    r"\(([^()]+[,;/][^()]+)\)|:\s*([^:.?!]+[,;/][^:.?!]+)[.?!]?\s*$|(?<!\w)(\w+(?:/\w+)+)(?!\w)"
)
_AND = re.compile(r"\s*(,\s*and\b|,|;|\band\b)\s*")
_OF = re.compile(r"\b(?:of|between|among)\b.*\band\b.*", re.I | re.S)
_CUT = re.compile(r"[,;:!?()](?=\s|$)|\.(?=\s|$)|/(?!\w)|\b(?:and|or|nor)\b", re.I)
_SHOWN = re.compile(r"[=±^~]|^\W*1[.)]$")  # a calculation, the number of a line
_NOT = re.compile(
    r"\b(?:not|nor|neither|isn't|wasn't|than|instead of|(?:^|(?<=\d ))of"
    r"|out of)(?: \w+){0,2} $",
    re.I,
)
_DID_NOT = re.compile(r"(?: \w+){0,2} (?:did|do|does|was|were|is|are|had|has|have)(?: not|n't)\W*$")
_LABEL = re.compile(r"[A-Z]|[ivx]+|ab|\d{1,2}")  # what follows the word for its kind: "Type A"
_MARK = r"(?:[A-Z]|[IVX]+[AB]?)"
_LABELLED = re.compile(rf"\b([^\W\d_]{{3,}}) ({_MARK}(?:,?(?: or)?(?: (?i:\1))? {_MARK})+)\b")
_SIGN = re.compile(r"(?<![\w)\]%])[-+−](?=[.\d])|[<>≤≥]=?\s*(?=[$€£]?[.\d])")
_SIGNS = dict.fromkeys("-−", "minus ") | {"+": "plus "}  # which tokens do not keep
_SIGNS |= dict.fromkeys("<≤", "below ") | dict.fromkeys(">≥", "above ")
LONGEST = 3  # words of an option whose end the question does not show
_KIND = (
    r"arm|batch|chapter|chromosome|class|cluster|cohort|complex|cycle|day|exon|factor|figure"
    r"|generation|grade|group|intron|level|month|mission|phase|section|stage|step|table|type|visit"
    r"|week|year"
)
# a number that belongs to a name: "type 2 diabetes", "day 7", "Apollo 11", "C57BL/6J"
_PROPER = re.compile(r"(?:[^\W\d_][\w'-]* )*([^\W\d_]+) (\d+)|\S*[^\W\d]/\d+[A-Z]+")
_AMOUNT = re.compile(  # what stands before a number that is none
    r"\w*ly|\w+ed|about|above|after|ages?|almost|area|around|at|auc|be|below|by|counts?"
    r"|depth|distance|dose|duration|each|equal|fell|for|from|grew|in|index|is|just|length|level"
    r"|lost|mass|mean|median|n|number|of|only|over|p|percent|percentage|ph|power|pressure|rates?"
    r"|ratio|rose|score|size|some|speed|sum|temperature|than|to|total|under|until|up|value|volume"
    r"|voltage|was|weight|width|with",
    re.I,
)
_ROMAN = "I II III IV V VI VII VIII IX X".split()
_ORDINAL = "first second third fourth fifth sixth seventh eighth ninth tenth".split()
_SPELT = {w.lower(): n for n, w in enumerate(_ROMAN, 1)} | NUMBER_WORDS
_NUMBERED = re.compile(rf"({_KIND})[ -](\d+|{'|'.join(_SPELT)})( \D*)?", re.I)
Mark = tuple[int, bool | None]  # place, whether it is right; None where it is denied
Row = tuple[Sequence[str], Sequence[Mark]]  # the tokens of a sentence, what they name


def is_name(text: str) -> bool:
    """True where a number is a part of the name: "week 3" is no amount of 3."""
    proper = _PROPER.fullmatch(text)
    changes = proper and str(proper[1]).lower() in lx.UP | lx.DOWN
    amount = proper and proper[1] and (_AMOUNT.fullmatch(proper[1]) or changes)
    amount = amount and proper[1].capitalize() not in month_name  # July is no adverb
    return bool(_NUMBERED.fullmatch(text) or (proper and not amount))


@lru_cache(maxsize=4_096)
def spellings(name: str) -> tuple[str, ...]:
    """A name with a number ("grade II") in its other forms, the one in digits first; () for others.

    >>> spellings("grade II")[:6]
    ('grade 2', 'grade 2nd', 'grade two', 'grade II', 'grade second', '2nd grade')
    """
    m = is_name(name) and (_NUMBERED.fullmatch(name) or re.fullmatch(r"([^\d/]+) (\d+)()", name))
    if not m:
        return ()
    word, number, rest = m[1], m[2].lower(), m[3] or ""
    n = _SPELT[number] if number in _SPELT else int(number)
    end = "th" if n % 100 in (11, 12, 13) else {1: "st", 2: "nd", 3: "rd"}.get(n % 10, "th")
    names = [w for w, value in NUMBER_WORDS.items() if value == n]
    names += [x[n - 1] for x in (_ROMAN, _ORDINAL) if 0 < n <= len(x)]
    nth = f"{n}{end}"
    said = [f"{word} {x}" for x in (n, nth, *names)]
    said += [f"{x} {word}" for x in (nth, f"{nth} of", *_ORDINAL[n - 1 : n])]
    said += [f"{n} {word}"] if word.capitalize() in month_name else []
    return tuple(x + rest for x in said)


@lru_cache(maxsize=4_096)
def offered(prompt: str, name: str) -> tuple[str, ...]:
    """The options beside `name` of the question that offers it; none where it offers no choice.

    >>> offered("Which lost most: eye, liver or soleus?", "liver")
    ('eye', 'soleus')
    >>> offered("Is the potential set by sodium or by potassium?", "potassium")
    ('sodium',)
    >>> offered("What does the liver do?", "liver")
    ()
    """
    prompt, name = (_SIGN.sub(lambda m: _SIGNS[m[0][0]], whole(t, prompt)) for t in (prompt, name))
    own, out = [*dropwhile(lx.LEADS.__contains__, phrase(name))] or phrase(name), {}
    asks = bool({"which", "who", "what"} & set(phrase_words(prompt)))
    letters = [w for m in _LETTER.finditer(prompt) for w in phrase(m[0].strip(" -*•().:"))]
    if len(own) == 1 and own[0] in letters:  # "A) neuron B) astrocyte", where the truth is "B"
        return tuple(w for w in letters if w != own[0])
    for m in _SET.finditer(prompt):
        items = [phrase(p) for p in re.split(r"[,;/]|\b(?:and|or)\b", m[m.lastindex or 0])]
        if (*own,) in items and max(map(len, items)) <= LONGEST:
            return tuple(" ".join(w) for w in items if w and w != (*own,))
    for part in re.split(r"[.?!:](?:\s|$)", _LETTER.sub(" or ", prompt)):
        cuts = _cut(part, asks)
        items, seps = _whole([phrase(p) for p in cuts[::2]]), [s.strip() for s in cuts[1::2]]
        names = [n for n in (own, own[:-1]) if n and {*own[len(n) :]} <= {*items[-1]}]
        at = next((i for n in names for i, words in enumerate(items) if _holds(words, n)), -1)
        if at < 0 or len(items) < 2:
            continue
        stop = next((i for i in range(at + 1, len(items)) if lx.ASKS & set(items[i])), len(items))
        ors = [
            i for i, sep in enumerate(seps, 1) if sep[-2:] in ("or", "nd", "vs", "us") and i < stop
        ]
        last = max(ors, default=0)
        first = next((i for i in range(at, 0, -1) if lx.ASKS & set(items[i])), 0)
        lead = first < at and seps[first] == "," and lx.ASKS_FOR & {*items[first]}
        for i in range(first + bool(lead), last + 1):
            if i != at:
                item = _item(items[i], len(own), first=i == first)
                if lx.LEADS.union(lx.COMPARES_TWO).issuperset(own):  # "before or after it"
                    item = items[i][-1:] if i == first else items[i][:1]
                if all(_LABEL.fullmatch(" ".join(w)) for w in (own, item[-1:])):
                    item = item[-1:]  # "type A, B or C", where the truth is "A"
                out |= {" ".join(item): None}
                if i == last:
                    out |= {" ".join(item[:n]): None for n in _ends(item, own, asks)}
    return tuple(o for o in out if o)


def labelled(prompt: str, sentence: str) -> str:
    """The sentence, with its kind before the one of the question's labels that stands alone.

    >>> labelled("Is it Type A, B, or C?", "It is A."), labelled("Is it Type A or B?", "A cell is.")
    ('It is Type A.', 'A cell is.')
    """
    asked = _LABELLED.search(prompt)
    if not asked or asked[1].lower() in lx.FREE:
        return sentence
    kind, marks = asked[1], {*re.findall(rf"\b{_MARK}\b", asked[2])}
    sentence = re.sub(  # "type a" is one of them as well
        rf"\b(?i:{kind} ({'|'.join(marks)}))\b(?!\s\w)",
        lambda m: f"{kind} {m[1].upper()}",
        sentence,
    )
    words, places = zip(*spans(sentence), ("", 0), strict=True)
    ends = [i for i, w in enumerate(words) if w in marks and not words[i + 1][:1].isalnum()]
    free = lx.FREE.union("(", phrase_words(prompt)) - marks
    if len(ends) != 1 or not all({w.lower(), norm(w)} & free for w in words[: ends[0]]):
        return sentence
    return f"{sentence[: places[ends[0]]]}{kind} {sentence[places[ends[0]] :]}"


def _cut(part: str, asks: bool) -> Sequence[str]:
    """A choice's items and what parts them: around "or" or "vs", or after "of" in a question."""
    if re.search(r"\bor\b", part):
        return _OR.split(part)
    if _VS.search(part):
        return _VS.split(next((p for p in part.split(",") if _VS.search(p)), ""))
    among = _OF.search(part) if asks else None
    return _AND.split(among[0]) if among else [""]


def _whole(items: Sequence[Sequence[str]]) -> list[Sequence[str]]:
    """Items where a lone label has the kind that the one before it names: "Type A, B or C"."""
    out: list[Sequence[str]] = []
    before: Sequence[str] = ()
    for words in items:
        kind = before[-2:-1] if _LABEL.fullmatch(" ".join(before[-1:])) else ()
        if _LABEL.fullmatch(" ".join(words)):
            words = [*kind, *words]
        out.append(words)
        before = words
    return out


def _holds(words: Sequence[str], own: Sequence[str]) -> bool:
    return f" {' '.join(own)} " in f" {' '.join(words)} "


def _ends(item: Sequence[str], own: Sequence[str], asks: bool) -> Iterable[int]:
    """Where the last option may end: "did the drug or the placebo win" goes on behind it."""
    size = max((i for i, w in enumerate(item, 1) if w in own or _LABEL.fullmatch(w)), default=0)
    if _LABEL.fullmatch(item[-1] if item else ""):
        return [len(item)]
    least = len(own) if asks else 1
    return [size] if size else range(least, len(own) + 1)


def _item(words: Sequence[str], size: int, *, first: bool) -> Sequence[str]:
    """The option in a piece of the question, which has other words before it, or after it."""
    leads = [i for i, w in enumerate(words) if w in lx.LEADS]  # the A of "Type A" is none
    if first:
        kept = words[leads[-1] + 1 :] if leads else words
        if len(kept) < size:  # "a gain of function"
            kept = [*dropwhile(lx.LEADS.__contains__, words[-size:])]
        # "is the heart sensitive"
        return kept[-size:] if len(kept) > LONGEST or lx.BE.intersection(words[:1]) else kept
    start = next((i for i, w in enumerate(words) if w not in lx.LEADS), len(words))
    end = min((i for i in leads if i > start), default=len(words))
    return (
        words[start : start + size] if end < len(words) or end - start > LONGEST else words[start:]
    )


def decided(rows: Iterable[Row], prompt: str, names: Iterable[str]) -> bool:
    """True where the answer names right alternatives only.

    What it names is in its conclusion ("so", the superlative that was asked), else where one stands
    without words of its own, else where it says most of what was asked, else first.

    rows : sentences in order, with the places where they assert an alternative.

    >>> words = "the liver , because the eye is spared".split()
    >>> decided([(words, [(1, True), (5, False)])], "Is it eye or liver?", ["eye", "liver"])
    True
    >>> decided([("liver and eye".split(), [(0, True), (2, False)])], "", ["eye", "liver"])
    False
    """
    asked = set(phrase_words(prompt))
    named = {w for n in names for w in phrase(n)}
    signs = {comparative(w.lower()) for w in asked} - {0}
    free = lx.FREE | asked | named
    told = [[*_pieces(words, marks, named)] for words, marks in rows]
    ends = [pieces for pieces in told if any(_concludes(piece, signs) for piece, _ in pieces)]
    flat = [p for pieces in ends or told for p in pieces]
    chosen = [p for p in flat if _concludes(p[0], signs) or _bare(p[0], free)]
    if not chosen:  # "12 mice were seen, 7 of them had a lesion"
        own = asked - named - lx.FREE - lx.LEADS
        chosen = sorted(flat, key=lambda p: -len(own & {*p[0]}))[:1]
    free = free | {w for piece, _ in chosen for w in piece if not w[0].isdigit()}
    return set().union(*(r for p, r in flat if (p, r) in chosen or _bare(p, free))) == {True}


def _concludes(piece: Sequence[str], signs: Collection[int]) -> bool:
    return any(w in lx.CONCLUDES or comparative(w) in signs for w in map(str.lower, piece))


def _bare(piece: Sequence[str], free: Collection[str]) -> bool:
    own = (w for w in piece if len(w) > 1 or w.isdigit())  # "J. liver" says no more than "liver"
    return all(w in free or w.lower() in free or not w[0].isalnum() for w in own)


def _chains(
    words: Sequence[str],
    marks: Sequence[Mark],
    named: Collection[str],
) -> list[tuple[int, int]]:
    """For each mark the last mark of the list it opens ("X, Y and Z"), as indices of marks."""
    gaps = [words[a + 1 : b] for (a, _), (b, _) in pairwise(marks)]
    far = [*range(len(marks))]
    for k in reversed(range(len(gaps))):
        if all(w in lx.ITEM_LINKS or w in named for w in gaps[k]):
            far[k] = far[k + 1] if far[k + 1] > k + 1 or lx.JOINS & set(gaps[k]) else k
    return list(enumerate(far))


def _pieces(
    words: Sequence[str],
    marks: Sequence[Mark],
    named: Collection[str],
) -> Iterable[tuple[Sequence[str], set[bool]]]:
    """The pieces of a sentence that name something as an answer; "X, Y and Z" is not parted.

    What is denied, compared with or set aside ("unlike X and Y", "of X, Y and Z, ...") is left out.
    """
    cuts = {i for i, w in enumerate(words) if w.lower() in lx.CHOICE_CUTS}
    stops = [-1, *(i for i, w in enumerate(words) if w in (",", ";", ".", "but"))]
    named_as = {i for i, w in enumerate(words) if w == "as" and lx.NAMED_AS & {*words[:i][-2:]}}
    asides = [i for i, w in enumerate(words) if w.lower() in lx.ASIDES and i not in named_as]
    aside: set[int] = set()
    until, gone = -1, 0  # what earlier lists reached: the mark, the word
    places = [i for i, _ in marks]
    for k, last in _chains(words, marks, named):
        at, right = marks[k]
        since = stops[bisect_left(stops, at) - 1] + 1
        opens = since == 0 and words[0].lower() in ("of", "out")
        part = "of" in words[at - 1 : at] and at - 2 in places  # "7 of 12 mice"
        if right is None or opens or part or bisect_left(asides, since) < bisect_left(asides, at):
            until = max(until, last)
        aside |= {k} if k <= until else set()
        cuts.difference_update(range(max(at, gone), marks[last][0]))
        gone = max(gone, marks[last][0])
    for start, end in pairwise([0, *sorted(cuts), len(words)]):
        here = range(bisect_left(places, start), bisect_left(places, end))
        if said := {marks[k][1] for k in here if k not in aside}:
            yield words[start:end], said


def guesses(
    sentence: str,
    right: Collection[float],
    given: Collection[float],
    own: Collection[str],
    asked: Collection[str] = (),
    parts: Collection[str] = ("",),
) -> list[float]:
    """The other numbers that a sentence gives as barely as an answer: "26, 27", "343 m/s. 5 m/s."

    right, given : the numbers that agree with the truth, and those of question and truth; own,
    asked : the words of the truth and of the question; parts : what a number given may
    belong to (`Quantity`). What is counted must be the truth's.

    >>> guesses("26, 27, 28", [27.0], [], []), guesses("46 in 23 pairs", [46.0], [], [])
    ([26.0, 28.0], [])
    """
    out = []
    ends = [0, *(m.end() for m in _CUT.finditer(sentence)), len(sentence)]
    found, said = (
        quantities(sentence),
        Counter(w for w in phrase_words(sentence) if w in lx.SEEN or w[-2:] == "ed"),
    )
    for start, end in pairwise(ends) if not _SHOWN.search(sentence) else ():
        here = [q for q in found if start <= q.start < end]
        rest = "".join(
            c
            for i, c in enumerate(sentence[start:end], start)
            if not any(q.start <= i < q.end for q in here)
        )
        words = phrase_words(rest)
        told = {  # "5 were seen 6 were seen"; "5 were seen, 6 were seen"
            w
            for w in {*words} & {*said}
            if len(here) > 1 or (said[w] > 1 and lx.NEGATORS.isdisjoint(words))
        }
        free = {*own, *asked, *told, *(lx.FREE - lx.PREPOSITIONS)}
        words = [w for w in words if w not in free and w.lower() not in free]
        tails = [phrase_words(sentence[q.end : end])[:1] for q in here]
        here = [
            q
            for q, t in zip(here, tails, strict=True)
            if not t or t[0][0].isdigit() or t[0] in {*own, *lx.FREE}
        ]
        bare = [q for q in here if q.part in parts and not _not(sentence, q, end)]
        plain = [q for q in bare if sentence[q.start : q.end].lower() != "one"]
        if not words:
            out += [q.value for q in plain if q.value not in right and q.value not in given]
    return out


def _not(sentence: str, q: Quantity, end: int) -> bool:
    """True for "not 7", "of 12 mice", "5 did not" """
    return bool(_NOT.search(sentence[: q.start]) or _DID_NOT.match(sentence[q.end : end]))


def _short(name: str, right: Sequence[Sequence[str]]) -> list[str]:
    """A name, and what tells it from a right one: "Type C", "C" beside "Type A"."""
    own = {w for words in right for w in words}
    rest = [w for w in phrase(name) if w not in own]
    said = len(rest) == 1 < len(phrase(name)) and rest[0] not in "AI" and rest[0].isalnum()
    return [name, *(rest if said else [])]


def others(truth: Mapping[str, Any], prompt: str, fact: Mapping[str, Any]) -> list[str]:
    """The names of the alternatives to a fact: options, candidates in the question, its poles, and
    what other questions for the same kind of thing are answered with (`bags.known_names`).
    """
    asked = set(phrase_words(prompt))
    right = [phrase(t) for f in truth.get("facts", ()) for t in (f["text"], *f.get("aliases", ()))]
    out = [c for c in truth.get("candidates", ()) if asked.issuperset(phrase(c))]
    more = [o for name in (fact["text"], *fact.get("aliases", ())) for o in offered(prompt, name)]
    like = [n for name in (*more, *truth.get("sisters", ())) for n in (name, *spellings(name))]
    right += map(phrase, spellings(fact["text"]))
    out += [n for name in like for n in _short(name, right)]
    out = [
        o for o in dict.fromkeys(out) if phrase(o) and not any(_holds(r, phrase(o)) for r in right)
    ]
    return [*out, *fact.get("poles", ())]


def sides(task: Task) -> list[tuple[str, str]]:
    """The one right option and the others, each with every text that names it; none for a question
    that does not ask which.
    """
    fact, *more = task.truth.get("facts") or ({"poles": ()},)
    if (
        more
        or "comparison" in task.truth
        or "poles" in fact
        or fact["text"].lower() in ("yes", "no", *lx.DIRECTED)
    ):
        return []
    asked = phrase_words(task.prompt)
    own = [(fact["text"], n) for n in (fact["text"], *fact.get("aliases", ()))]
    wrong = [(n, n) for n in others(task.truth, task.prompt, fact)]
    asks = fact.get("number") is None and {"which", "who"} & {*asked}
    return own + wrong if asks or find(asked, wrong) else []
