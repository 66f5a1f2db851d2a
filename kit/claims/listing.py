"""Listings: an answer that names many things, so that the right one is among them, asserts them
all.

A list is three or more short items in a row: parted by commas, "and", "or", slashes, line breaks,
by sentences of one frame ("It is X. It is Y."), or by a word that recurs ("X with Y with Z").
Its items beside the facts are rivals. So are the other half of "X or Y", what varies in sentences
of one frame ("One
thing that matters is X. One thing that matters is Y."), or in a frame that comes again without full
stops, and the words of an answer that goes on and on.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import chain, groupby, pairwise, takewhile

from ..checks import units
from ..checks.quantities import quantities
from ..checks.text import runs
from ..records import Task
from . import lexicon as lx
from .bags import truths
from .compare import comparative
from .text import affirmed, find, norm, phrase_words, spans, tokens

LEAST = 3  # items that make a list
FREE = 1  # rivals of a list that cost nothing: "quartz 7, diamond 10, the top of the scale"
LONGEST = 3  # content words of an item
FRAME = 3  # words in which sentences of one frame begin, or end, alike
ROOM, ROOM_A_FACT = 100, 15  # new words that an explanation may hold
SPRAWL = 4
MANY = 6  # things in one frame within sentences that are guesses, no explanation
SALAD = 6  # so many words in a row without any function word are items, too
_WORD = re.compile(r"[^\W\d_]{4,}")
_LETTERS = re.compile(r"[^\W\d_]+")
_APART = re.compile(r"\s[/|]\s|[,;]?\s+(?=or\b)")
_IS = re.compile(r"\b(?:is|are|was|were)\b")
_HEADER = re.compile(r"\|[ \t:]*--|--[ \t:]*\|")  # the names of a table's columns
_NUMBERING = re.compile(r"\(?\w{1,2}[.)]")
_NEGATION = re.compile(rf"\b(?:{'|'.join(lx.NEGATORS)})\b", re.I)
_TURNS = re.compile(r"\s(?:but|-)\s")
_MORE = re.compile(r"more \w+ly|better|like")
_Piece = tuple[str, list[str], str]  # the separator before, the words, the text


def rivals(
    sentences: Sequence[str],
    *,
    is_fact: Callable[[str], bool],
    prompt: str = "",
    candidates: Iterable[str] = (),
    names: Sequence[str] = (),
) -> list[str]:
    """The distinct items listed beside the facts, and the `candidates` that are named in any form.

    candidates : the answers that the question leaves open, where the data say so; names : the
    right ones.

    >>> rivals(["Heart, liver, eye and thymus."], is_fact=lambda s: "liver" in s)
    ['heart', 'eye', 'thymus']
    >>> rivals(["It is the liver, which was irradiated."], is_fact=lambda s: "liver" in s)
    []
    """
    asked = frozenset(phrase_words(prompt))
    sentences = [_result(s) for s in sentences if is_fact(s) or not _HEADER.search(s)]
    keys = {n: parts for n in names if len(parts := re.split(_PARTED, n)) >= LEAST}
    members = [part for parts in keys.values() for part in parts]
    single = members + [n for n in names if n not in keys]

    def is_right(said: str) -> bool:
        return is_fact(said) or bool(find(phrase_words(said), [(x, x) for x in members]))

    right = {tuple(phrase_words(n)) for n in names}
    out: dict[str, None] = {}
    for run in _runs(sentences, asked, is_right, single):
        sizes = Counter(item.frame for item in run)
        right_ones = [is_right(item.text) for item in run]
        beside = {
            " ".join(item.content): None
            for item, fact in zip(run, right_ones, strict=True)
            if not fact and sizes[item.frame] >= LEAST
        }
        none = any(lx.FRAME_WORDS.issuperset(item.content) for item in run)
        if len(beside) > FREE * (not none):
            out.update(beside)
        out |= dict.fromkeys(_one_more(run, right_ones, single))
        near = pairwise(zip(run, right_ones, strict=True))
        ors = [
            (a if fact else b)
            for (a, before), (b, fact) in near
            if b.sep == "or" and before != fact
        ]
        other = (" ".join(item.content) for item in ors)  # but "or more exactly, X" names one
        out |= dict.fromkeys(o for o in other if not _MORE.fullmatch(o))
    out |= dict.fromkeys(_parallel(sentences, asked, is_fact))
    many = (f for f in _framed(_at_frames(sentences), asked, is_fact) if len(f) >= MANY)
    framed = chain.from_iterable((*_framed(sentences, asked, is_fact), *many))
    more = [*dict.fromkeys(framed)], _sprawl(sentences, asked, min(len(right), 4))
    out |= dict.fromkeys(x for beside in more if len(beside) > FREE for x in beside)
    out = {o: None for o in out if not any({*o.split()}.issubset(r) for r in right)}
    words = [norm(t) for s in sentences for t in tokens(s)]
    open_ = [(c, c) for c in candidates if set(phrase_words(c)) - asked]
    named = [tuple(phrase_words(m.of)) for m in find(words, open_)]
    return list(out | {" ".join(n): None for n in named if n not in right})


_LEAD = re.compile(r"(?P<bullet>[-–•])?\s*(?P<also>also )?(?P<the>(?:the|an?) )?", re.I)
_LINKS = (",", ";", "and")


def _one_more(run: list[_Item], right_ones: list[bool], names: Sequence[str]) -> list[str]:
    """The one item that stands in a list of right names, as bare as they: "lung, heart, liver and
    kidney"; nothing that is said beside the list: "heart, liver and kidney, three of them".
    """
    right = {_bare(n) for n in names}
    at = [i for i, fact in enumerate(right_ones) if not fact]
    named = sum(_bare(item.text) in right for item in run)
    counted = any(words and words[0].isdigit() for words in right)
    if named < 2 or len(at) != 1 or counted:
        return []
    item, behind = run[at[0]], run[at[0] + 1 :]
    if _bare(item.text) != item.content or item.content[-1][-2:] in ("ly", "ed"):
        return []
    lead, linked = _LEAD.match(item.text), item.sep in _LINKS or at == [0]
    if behind:  # "OK, the heart and liver" and "heart, the pump, and liver" list two
        one, two = lead["the"], _LEAD.match(behind[0].text)["the"]
        alike = (one or not two) if at == [0] else (two or not one)
        stands = alike and linked and behind[0].sep in _LINKS
    else:
        ended = any(x.sep == "and" for x in run)
        stands = lead["also"] or item.sep == "and" or (linked and not ended)
    return [" ".join(item.content)] if stands or lead["bullet"] else []


def _bare(text: str) -> tuple[str, ...]:
    """The words of a name without "the", "also" or a bullet."""
    return tuple(phrase_words(text[_LEAD.match(text).end() :]))


def _parallel(
    sentences: Sequence[str],
    asked: frozenset[str],
    is_fact: Callable[[str], bool],
) -> list[str]:
    """The short answers built as a right one is: "The nucleus, by glycolysis. The mitochondrion, by
    oxidative phosphorylation."
    """
    builds: dict[tuple[str, ...], list[str]] = {}
    for part, listed in _parts(sentences):
        *label, said = part.split(": ", 1)
        alone = ["•"] * bool(label or listed)  # a bare word there is an answer, too
        build = [w for w in map(str.lower, tokens(said)) if w in lx.BUILD] or alone
        if build and not _content(label, asked) and _answers(said, asked):
            builds.setdefault(tuple(build), []).append(said)
    mixed = [said for group in builds.values() if any(map(is_fact, group)) for said in group]
    wrong = [p for said in mixed if not is_fact(said) for p in said.split(",")]
    return [item for p in wrong if (item := " ".join(_content([p], asked)))]


def _parts(sentences: Sequence[str]) -> Iterable[tuple[str, bool]]:
    """The sentences cut at what parts whole answers, and whether each is an item of a list."""
    for sentence in sentences:
        for half in sentence.split("; "):
            parts = [p for p in _APART.split(half) if p.strip()]
            for part in parts:
                yield part, len(parts) > 1 or part.startswith(("-", "–", "•"))


def _answers(said: str, asked: frozenset[str]) -> bool:
    """True for a name or two, "by glycolysis", "it is the liver": what is no clause, no grade."""
    fresh = _content([said], asked)
    return (  # nothing stands before "is", and it is a name
        _content([_IS.split(said)[-1]], asked) == fresh
        and 0 < len(fresh) <= LONGEST
        and not any(comparative(w) or w[-2:] == "ed" for w in fresh)
        and not _clause(tokens(said))
    )


def _content(texts: Sequence[str], asked: frozenset[str]) -> list[str]:
    """The words of texts that could name something that was not asked."""
    words = [w for text in texts for w in phrase_words(text) if w[0].isalpha() and len(w) > 1]
    free = asked | lx.FRAME_WORDS | lx.LIST_WORDS
    return [w for w in words if w.lower() not in free and w[-2:] != "ly"]


def repeated(sentences: Sequence[str], prompt: str, is_fact: Callable[[str], bool]) -> list[str]:
    """What stands beside the facts in a frame that comes again and again within sentences.

    Such a row may list guesses or explain; from MANY on it lists (`rivals`).

    >>> said = ["What counts is X, what counts is Y, what counts is Z."]
    >>> repeated(said, "", lambda s: "X" in s)
    ['Y', 'Z']
    """
    groups = _framed(_at_frames(sentences), frozenset(phrase_words(prompt)), is_fact)
    return next((beside for beside in groups if len(beside) > FREE), [])


def _framed(
    sentences: Sequence[str],
    asked: frozenset[str],
    is_fact: Callable[[str], bool],
) -> list[list[str]]:
    """What varies in LEAST or more sentences that begin or end alike, beside the facts; a list for
    each such frame.
    """
    groups: dict[tuple[str, ...], list[tuple[str, list[str]]]] = {}
    for s in sentences:
        words = phrase_words(s)
        if len(words) > FRAME:
            groups.setdefault(("begins", *words[:FRAME]), []).append((s, words))
            groups.setdefault(("ends", *words[-FRAME:]), []).append((s, words))
    return [_varies(g, asked, is_fact) for g in groups.values() if len(g) >= LEAST]


def _varies(
    group: Sequence[tuple[str, list[str]]],
    asked: frozenset[str],
    is_fact: Callable[[str], bool],
) -> list[str]:
    """The distinct words of an item or fewer in which sentences without a fact differ."""
    counts = Counter(w for _, words in group for w in set(words))
    common = {w for w, n in counts.items() if n * 2 >= len(group)} | asked | lx.FRAME_WORDS
    items = {
        " ".join(w for w in words if w not in common and w.lower() not in common): None
        for s, words in group
        if not is_fact(s)
    }
    return [item for item in items if 0 < len(item.split()) <= LONGEST + 1]


def _at_frames(sentences: Sequence[str]) -> list[str]:
    """The sentences, cut before each run of FRAME words that all of them together have LEAST times:
    a frame makes a list with full stops or without.

    >>> _at_frames(["What matters is X what matters is Y what matters is Z."])
    ['', 'What matters is X ', 'what matters is Y ', 'what matters is Z.']
    """
    rows = [[(norm(w), at) for w, at in spans(s) if w[0].isalnum()] for s in sentences]
    said = [[*runs([w for w, _ in row], FRAME)] for row in rows]
    times = Counter(run for row in said for run in row)
    out: list[str] = []
    for sentence, row, grams in zip(sentences, rows, said, strict=True):
        frames = [times[run] >= LEAST for run in grams]
        begins = [i for i, again in enumerate(frames) if again and not (i and frames[i - 1])]
        cuts = [0, *(row[i][1] for i in begins), len(sentence)]
        out += [sentence[a:b] for a, b in pairwise(cuts)]
    return out


def _sprawl(sentences: Sequence[str], asked: frozenset[str], facts: int) -> list[str]:
    """One rival for every SPRAWL new words beyond what an explanation of so many facts needs."""
    new = {w for s in sentences for w in phrase_words(s)} - asked - lx.FRAME_WORDS - lx.SMALL
    excess = len(new) - (ROOM + ROOM_A_FACT * facts)
    return [f"new words {i + 1}" for i in range(max(0, excess // SPRAWL))]


@dataclass(frozen=True)
class _Item:
    """A short piece between two separators.

    frame : its words that the prompt has too; sep : what stands before it.
    """

    text: str
    content: tuple[str, ...]
    frame: tuple[str, ...]
    sep: str


def _result(sentence: str) -> str:
    """A sentence without the left sides of its equations: "v = 9.8 x 3 = 29.4 m/s" says 29.4
    m/s.
    """
    *left, last = sentence.split("=")
    return "=".join([*[part for part in left if _WORD.search(part)], last])


def _runs(
    sentences: Sequence[str],
    asked: frozenset[str],
    is_fact: Callable[[str], bool],
    names: Sequence[str],
) -> list[list[_Item]]:
    """Items in a row, cut at every piece that says more than an item does.

    The label of a fact ("Donor: O-") is no item; what "Source:" or "Reason:" labels stands in no
    row with the answer.
    """
    out: list[list[_Item]] = [[]]
    pieces = _pieces(sentences, names)
    label, denied = False, _denied(pieces, is_fact)
    for i, ((before, piece, text), (after, _, following)) in enumerate(
        pairwise([*pieces, ("", [], "")])
    ):
        labelled = label and before == ":" and after in (".", "")
        label = lx.LABELS.issuperset({*map(str.lower, piece)} - lx.DETERMINERS)
        if label or (after == ":" and is_fact(following) and not is_fact(text)):
            continue
        if i in denied and not is_fact(text):
            continue  # "not the liver or the eye"
        said = [w for w in piece if w[0].isalnum() and w.lower() not in lx.SPEECH]
        # "none" is an item where it is the answer
        content = tuple(map(norm, said or piece * is_fact(text)))
        fresh = tuple(w for w in content if w not in asked)
        if not fresh and is_fact(text):  # the right one of the question's options is an item, too
            fresh = content
        if not content or (
            piece[0].lower() in lx.PREPOSITIONS
            and lx.CLAUSE_VERBS.isdisjoint(map(str.lower, piece))
            and len(fresh) <= LONGEST
        ):
            continue  # "maybe" parts nothing; "by glycolysis" says more of the item before it
        if salad := _salad(piece):
            out += [[_Item(w, (w,), (), "") for w in salad if w not in asked], []]
        elif not fresh or len(fresh) > LONGEST or _clause(piece):
            out.append([])
        else:
            frame = (":",) if labelled else tuple(w for w in content if w in asked)
            out[-1].append(_Item(text, fresh, frame, before))
    return [run for run in out if run]


def _denied(pieces: Sequence[_Piece], is_fact: Callable[[str], bool]) -> set[int]:
    """Indices of the pieces that are denied, each with what "or" joins to it.

    "Nobody knows an X or Y or Z", where a right one is among them, denies none: whoever reads the
    right one as said lists the others beside it. In "no effect or trend" the denial is the fact's.
    """
    out: set[int] = set()
    for start, (_, piece, text) in enumerate(pieces):
        if start in out or not _denies(piece):
            continue
        joined = takewhile(lambda i: pieces[i][0] in ("or", "nor"), range(start + 1, len(pieces)))
        row = [start, *joined]
        *said, last = [_NEGATION.sub(" ", text), *(pieces[i][2] for i in row[1:])]
        said.append(_TURNS.split(last)[0])  # "not X or Y but Z"
        out |= set() if any(map(is_fact, said)) else {*row}
    return out


def _denies(piece: Sequence[str]) -> bool:
    """True for "not the liver"; not for "not only the liver", "no doubt the liver"."""
    words = affirmed([w.lower() for w in piece])
    only = any(p in " ".join(words) for p in lx.NOT_NEGATIONS)
    return not only and any(w in lx.NEGATORS for w in words)


def _salad(piece: Sequence[str]) -> list[str]:
    """The words of every stretch of SALAD or more words without one that prose would need."""
    stretches = [[*map(norm, words)] for plain, words in groupby(piece, key=_plain) if plain]
    return [w for words in stretches if len(words) >= SALAD for w in words]


def _plain(word: str) -> bool:
    low = word.lower()
    return word[0].isalpha() and not (low in lx.FRAME_WORDS or low in lx.SMALL or comparative(low))


def _clause(piece: Sequence[str]) -> bool:
    """True where a piece says something by itself ("I do not recall", "as sailors learned")."""
    words = [w.lower() for w in piece]
    return words[0] in lx.OPENERS or any(w in lx.CLAUSE_VERBS or comparative(w) < 0 for w in words)


def _pieces(sentences: Sequence[str], names: Sequence[str]) -> list[_Piece]:
    """The sentences cut at what parts the items of a list: (the separator before, words, text).

    names : what is not cut in two, as "O(log n)".
    """
    right = re.compile("|".join(map(re.escape, names)) or r"\Z")
    out: list[_Piece] = []
    for s in (s for s in sentences if not _NUMBERING.fullmatch(s)):
        words, wholes = tokens(s), [*_whole(s), *(m.span() for m in right.finditer(s))]
        whole = {at for start, end in wholes for at in range(start, end)}
        counts = Counter(w.lower() for w in words)
        often = (w for w in lx.PARTS_REPEATED if counts[w] >= LEAST and _recurs(words, w))
        parts = lx.PARTS.union(often)
        cuts = [
            (w.lower(), i, at)
            for i, (w, at) in enumerate(spans(s))
            if w.lower() in parts and at not in whole
        ]
        ends = (".", -1, -1), (".", len(words), len(s))
        for (sep, i, at), (_, j, end) in pairwise([ends[0], *cuts, ends[1]]):
            own = [w for w in words[i + 1 : j] if w not in "/()"]
            out.append((sep, own, s[at + len(sep) if i >= 0 else 0 : end].strip()))
    return [p for p in out if p[1]]


def _whole(sentence: str) -> list[tuple[int, int]]:
    """Where numbers stand with their units, and what they are of: the slash of "458 m/s" parts
    nothing, nor does the bracket of "46 (diploid)".
    """
    said = [(q, units.said(q.tail)) for q in quantities(sentence)]
    short = [(q, u if max(map(len, _LETTERS.findall(u)), default=0) <= 3 else "") for q, u in said]
    glosses = [m.span() for m in re.finditer(r"\d \((?=[^\W\d])", sentence)]
    return glosses + [(q.start, q.end + q.tail.find(u) + len(u)) for q, u in short]


def _recurs(words: Sequence[str], word: str) -> bool:
    """LEAST times in a row with an item's room between: "X with Y with Z with ..."."""
    at = [i for i, w in enumerate(words) if w.lower() == word]
    near = [b - a <= LONGEST + 1 for a, b in pairwise(at)]
    return any(all(near[i : i + LEAST - 1]) for i in range(len(near) - LEAST + 2))


_PARTED = r"\s*(?:,\s*and\b|,\s*&|[,;&\n]|\band\b)\s*"
_BULLET = r"(?:[-*•]\s+|\d+[.)]\s+)?(?:the\s+)?"


def in_order(task: Task, text: str) -> str:
    """The text with the key's list in place of the same things in another order or form: with a
    comma before "and", one a line.

    >>> t = Task(id="t", prompt="Which?", truth={"facts": [{"text": "heart, liver and kidney"}]})
    >>> in_order(t, "The liver, heart, and kidney."), in_order(t, "Liver, heart and eye.")
    ('heart, liver and kidney.', 'Liver, heart and eye.')
    """
    facts = truths(task)
    key = facts[0]["text"] if len(facts) == 1 else ""
    things = tuple(x.strip().lower() for x in re.split(_PARTED, key))
    if len(things) < LEAST or not all(things):
        return text

    def ordered(m: re.Match[str]) -> str:
        said = {x.lower() for x in m.groups()}
        return key if said == {*things} else m[0]

    return _row(things).sub(ordered, text)


@lru_cache(maxsize=2_048)
def _row(things: tuple[str, ...]) -> re.Pattern[str]:
    """As many of these things in a row as there are, in any order."""
    one = _BULLET + "(" + "|".join(map(re.escape, things)) + ")"
    run = _PARTED.join([one] * len(things))
    return re.compile(rf"(?<![,;&]\s)(?<!and )(?<!\w){run}(?!\w)(?!{_PARTED}\w)", re.I)
