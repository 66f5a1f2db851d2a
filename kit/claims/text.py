"""Text as tokens: matching is by whole words, never by substrings, and an echo of the question
asserts nothing.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache, wraps
from typing import Any, TypeVar

from ..checks.quantities import readable
from ..checks.text import runs
from ..records import Task
from . import lexicon as lx

Read = TypeVar("Read")


def once(read: Callable[[Task, str], Read]) -> Callable[[Task, str], Read]:
    """The reader, which keeps what it read last: every verifier asks it of the same answer."""
    last: tuple[Task | None, str, Any] = None, "", None

    @wraps(read)
    def kept(task: Task, text: str = "") -> Read:
        nonlocal last
        mine = last  # of this thread
        if mine[0] is not task or mine[1] != text:
            last = mine = task, text, read(task, text)
        return mine[2]

    return kept


_TOKEN = re.compile(
    r"\d+(?:[.,]\d+)*|[^\W\d_]+(?:['’][^\W\d_]+)*\d*[+\-−](?!\w)|[^\W_]+(?:['’][^\W\d_]+)*|[%°]"
    r"|[,;:?!.()\[\]–—/]"
)
_TAGS = re.compile(r"</?(?:answer|snippet|cite|think(?:ing)?|reason(?:ing)?)\b[^<>]*>", re.I)
_STRUCK = re.compile(r"~~[^~\n]+~~|<(del|s)>.*?</\1>", re.S)
_MARKUP = re.compile(r"[*`#]+|^[ \t]*>+|(?<!\w)_+|_+(?!\w)", re.M)
_ABBREVIATIONS = re.compile(
    r"\b(e\.g|i\.e|etc|cf|vs|approx|ca|Fig|fig|Dr|Mr|Mrs|St|al|No(?=\. ?\d))\."
)
_NUMBERED = re.compile(  # the number of a list's item; it is what stands behind it that is said
    r"(?:^[ \t|]*(?:[A-Za-z]+ |#)?\(?|(?<=[.;!?,]\s)\(?)(\d{1,2})\s?[.):|/–—-]\s+(?=\S)"
    r"|(?<=\s)\(?(\d{1,2})\)\s+(?=\S)",
    re.M,
)
_SHORTENED = re.compile(r"\b((?:i|tha)t|this|there|they|he|she)['’](s|ll|d|re|ve)\b", re.I)
_LONG = {"s": "is", "ll": "will", "d": "would", "re": "are", "ve": "have"}
_DASHED = re.compile(r"^[ \t]*[-–—][ \t]+(?=[*_~(]*\d)", re.M)  # the bullet of a number is no minus
_MARK = re.compile(  # of a citation: "476 [1]", "(J. Doe, 2019)", "according to Smith (2004)"
    r"(?<=[\w%.)])(?<!\b(?:is|be))(?<!\b(?:are|was))(?: ?\[\d{1,3}\](?!\())+"
    r"| ?\((?=[^()]*(?:\bet al\b|\b[A-Z]\.))[^()]{0,120}\b(?:19|20)\d\d[a-z]?\)"
    r"|(?:(?<=[Aa]ccording to)|(?<=\bet al)\.?)(?P<who>(?: [A-Z]\w+| and| &)*),?"
    r" \((?:19|20)\d\d\)"
)
_HEADER = re.compile(r"\n(?=[ \t|:-]*-[ \t|:-]*$)(?=.*\|)", re.M)  # of a table, to join its rule
_ITEMS = re.compile(r":[ \t]*((?:\n+[-•– \t]*\w+(?: \w+){0,2}[ \t,;.]*(?=\n|\Z))+)")
_JOINED = re.compile(r"(?<![\w.,])\d[\d.]*(?:,[-+]?[\d.]+){2,}(?!,?\d|-[^\W\d])")
_ONE = re.compile(r"[-+]?(?:[1-9]\d{0,2}(?:,\d{3})+(?!\d)(?:\.\d+)?|[\d.]+)")
_INITIAL = re.compile(  # a sentence begins with no lower-case word, and "by J." ends none
    r"(?<![^\W_])[A-Z]\. (?=[a-z])|(?<=\b(?:by|of|to) )(?:[A-Z]\. )+(?=[A-Z][a-z])"
)
_OPTIONS = re.compile(r"(?:^|[?:.;\n]\s*)\(?A([.)]).*\b([B-H])\1", re.S)
_SENTENCE = re.compile(r"(?<=[.!?])[\"')\]]*\s+|\n+")


@lru_cache(maxsize=4_096)  # several verifiers read the same sentences
def clean(text: str) -> str:
    """NFKC text without Markdown marks and citation tags (their ids are no numbers of the answer);
    "it's" is written out.

    >>> clean("It's **high**.")
    'It is high.'
    """
    text = _DASHED.sub("• ", _MARK.sub(r"\g<who>", _STRUCK.sub(" ", text)))
    text = readable(_TAGS.sub(" ", text))
    text = _SHORTENED.sub(lambda m: f"{m[1]} {_LONG[m[2].lower()]}", text)
    text = re.sub("[↑⬆⇧⇑🔼🔺📈]\ufe0f?", " increases ", text)
    text = re.sub("[↓⬇⇩⇓🔽🔻📉]\ufe0f?", " decreases ", text)
    # "3,4,5" lists three numbers, "1,234,567" is one
    text = _JOINED.sub(lambda m: ", ".join(_ONE.findall(m[0])), text)
    return _unnumbered(_MARKUP.sub("", re.sub("[✗✘❌✖]", " false ", text)))


def _unnumbered(text: str) -> str:
    """A list of two items or more, one a line, with bullets for the numbers, which count from 1."""
    marks: list[tuple[int, int]] = []
    for m in _NUMBERED.finditer(text):
        if int(m[1] or m[2]) == len(marks) + 1:
            marks.append(m.span())
    for start, end in reversed(marks if len(marks) > 1 else ()):
        text = f"{text[:start]}\n• {text[end:]}"
    return text


def whole(text: str, prompt: str = "") -> str:
    """The text with hyphens in names that an initial begins: its point ends no sentence.

    What may be the label of an option of the prompt stays.

    >>> whole("Was it E. coli? It was B. subtilis."), whole("B. liver", "A. eye B. liver")
    ('Was it E-coli? It was B-subtilis.', 'B. liver')
    """
    kept = labels(prompt)
    return _INITIAL.sub(lambda m: m[0] if m[0][0] in kept else m[0].replace(". ", "-"), text)


@lru_cache(maxsize=2_048)
def labels(prompt: str) -> frozenset[str]:
    """The letters that label the options of a prompt.

    >>> sorted(labels("Which? A) E. coli B) S. aureus")), labels("Was it A. niger or B. rapa?")
    (['A', 'B'], frozenset())
    """
    found = _OPTIONS.search(prompt)
    return frozenset(c for c in "ABCDEFGH" if found and c <= found[2])


def sentences(text: str) -> list[str]:
    """Sentences of cleaned text; a decimal point or an abbreviation ends none.

    >>> sentences("It rose by 1.5 units, e.g. in mice. Did it fall?")
    ['It rose by 1.5 units, eg in mice.', 'Did it fall?']
    """
    text = _ABBREVIATIONS.sub(lambda m: m.group(1).replace(".", ""), clean(text))
    text = _HEADER.sub(" ", text)
    text = _ITEMS.sub(lambda m: ": " + ", ".join(re.findall(r"\w[\w ]*", m[1])), text)
    return [s.strip() for s in _SENTENCE.split(text) if s and s.strip()]


def tokens(text: str) -> list[str]:
    """Tokens of cleaned text in their own case; hyphens separate, a trailing + or - of a symbol
    ("AB+") stays.

    >>> tokens("ROS-levels (O-) fell 1.5%.")
    ['ROS', 'levels', '(', 'O-', ')', 'fell', '1.5', '%', '.']
    """
    return [w for w, _ in spans(text)]


@lru_cache(maxsize=4_096)  # each verifier reads a sentence once for every name
def spans(text: str) -> tuple[tuple[str, int], ...]:
    """The tokens, each with where it starts.

    >>> spans("ROS fell")
    (('ROS', 0), ('fell', 4))
    """
    return tuple((m[0], m.start()) for m in _TOKEN.finditer(text))


@lru_cache(maxsize=20_000)
def norm(token: str) -> str:
    """A token for comparison: lower case, plain plural removed; a single letter keeps its case.

    >>> norm("Receptors"), norm("W"), norm("osmosis")
    ('receptor', 'W', 'osmosis')
    """
    if len(token) == 1:
        return token
    t = token.lower().removesuffix("'s")
    if len(t) > 3 and t.endswith("s") and not t.endswith(("ss", "us", "is")):
        t = t[:-1]
    return t


def affirmed(words: Sequence[str]) -> list[str]:
    """The words, "_" in place of a negation and of the doubt that it takes away.

    >>> " ".join(affirmed("there is no doubt that this isn't at all false".split()))
    'there is _ _ that this _ at all _'
    """
    out = list(words)
    for i in (i for i, w in enumerate(words) if w in lx.NEGATORS or w.endswith("n't")):
        between = lx.DETERMINERS | lx.BE | {"at", "ever"}
        j = next((j for j in range(i + 1, len(words)) if words[j] not in between), i)
        if words[j] in lx.DENIABLE:
            out[i] = out[j] = "_"
    return out


@lru_cache(maxsize=20_000)
def phrase(text: str) -> tuple[str, ...]:
    """A phrase as normalised tokens without punctuation."""
    return tuple(norm(t) for t in tokens(clean(text)) if t not in ",;:?!.()[]–—/")


@lru_cache(maxsize=20_000)
def _spellings(text: str) -> set[tuple[str, ...]]:
    """A phrase with and without its punctuation: "3:1" has it, "Ca2+ (calcium)" may do without."""
    every = phrase(text), [norm(t) for t in tokens(clean(text)) if t != "/"]
    return {tuple(map(american, words)) for words in every}


@dataclass(frozen=True)
class Match:
    """Tokens start..end (end excluded) of a sentence match the phrase `of`."""

    start: int
    end: int
    of: str


_BRITISH = [
    (re.compile(p), to)
    for p, to in (
        ("our$", "or"),
        ("([tb])re$", r"\1er"),
        ("ll(?=ed$|ing$)", "l"),
        ("[ao]e", "e"),
        ("ph(?=[aiu])", "f"),
        ("([iy])s(?=e$|ed$|ing$|ation$)", r"\1z"),
        ("fence$", "fense"),
        ("inium$", "inum"),
        ("ogue$", "og"),
    )
]


@lru_cache(maxsize=20_000)
def american(word: str) -> str:
    """A normalised word in one spelling, for comparison alone.

    >>> american("signalling"), american("haemoglobin"), american("hour")
    ('signaling', 'hemoglobin', 'hour')
    """
    if len(word) > 4:
        for pattern, to in _BRITISH:
            word = pattern.sub(to, word)
    return word


def find(normed: Sequence[str], phrases: Iterable[tuple[str, str]]) -> list[Match]:
    """Longest non-overlapping matches of (name, phrase text) pairs in normalised tokens, left to
    right.

    >>> words = [norm(t) for t in tokens("upregulated across ROS")]
    >>> [m.of for m in find(words, [("upr", "UPR"), ("ros", "ROS")])]
    ['ros']
    """
    places = [i for i, w in enumerate(normed) if w != "/"]  # "PI3K/AKT" is "PI3K AKT"
    words = [american(normed[i]) for i in places]
    found = [
        Match(places[i], places[i + len(p) - 1] + 1, name)
        for name, text in phrases
        for p in _spellings(text)
        if p and p[0] in words
        for i, run in enumerate(runs(words, len(p)))
        if run == p
    ]
    out: list[Match] = []
    taken: set[int] = set()
    for m in sorted(found, key=lambda m: (m.start - m.end, m.start)):
        if taken.isdisjoint(range(m.start, m.end)):
            out.append(m)
            taken.update(range(m.start, m.end))
    return sorted(out, key=lambda m: m.start)


def echoes(sentence: Sequence[str], prompt: Sequence[str], *, run: int = 3) -> bool:
    """True when a sentence repeats the prompt and adds no content word of its own.

    Both as normalised word tokens. Nine tenths of the sentence lie in runs of `run` or more words
    that the prompt has too (seven tenths when one such run has eight words), and every other word
    is in the prompt somewhere, or light (a short or function word, no number). Such a sentence
    asserts nothing. Naming one of two things that the prompt offers is an assertion.

    >>> asked = phrase_words("Which is larger, the human genome or the plant's?")
    >>> said = "It does this: Which is larger, the human genome or the plant's"
    >>> echoes(phrase_words(said), asked)
    True
    >>> echoes(phrase_words("The human genome shrinks"), asked)
    False
    """
    if len(sentence) < run or len(prompt) < run or _chooses(sentence, prompt):
        return False
    known = set(prompt)
    if any(
        w not in known
        and (
            (len(w) > 3 and w not in lx.LIGHT)
            or w[0].isdigit()
            or (len(w) == 1 and w.isupper() and w not in "IA")
        )
        for w in sentence
    ):
        return False
    grams = {*runs(prompt, run)}
    starts = [i for i, words in enumerate(runs(sentence, run)) if words in grams]
    covered = {i + k for i in starts for k in range(run)}
    long = any(covered.issuperset(range(i, i + 8)) for i in starts)
    return len(covered) >= (0.7 if long else 0.9) * len(sentence)


def _threes(words: Sequence[str]) -> Iterable[tuple[str, ...]]:
    return zip(words, words[1:], words[2:], strict=False)


def _chooses(said: Sequence[str], asked: Sequence[str]) -> bool:
    """True for what neither asks (its verb where the question has it) nor has the "or" of the
    question, and has a word standing beside it there: "at 4 °C" of "at 4 °C or at 37 °C".
    """
    again = {t for t in _threes(asked) if t[0] in lx.ASKS}
    if said[0] != "it" and again.intersection(_threes(said)):
        return False
    ors = (i for i, w in enumerate(asked) if w == "or")
    near = {w for i in ors for w in (*asked[max(0, i - 3) : i], *asked[i + 1 : i + 4])}
    return not (near - lx.LEADS).isdisjoint(said) and "or" not in said and said[0] not in lx.ASKS


_RETRACTS = re.compile(
    r"(?:but |however |sorry |no )*(?:(?P<all>(?:none|nothing) of (?:this|that|it|these|the above) "
    r"(?:is|are|wa) (?:true|right|correct)|all (?:of )?(?:this|that|the above) (?:is|wa) "
    r"(?:false|wrong|untrue|incorrect))|(?:this|that|it) (?:is|wa) (?:false|wrong|untrue|incorrect"
    r"|not (?:true|right|correct|so))|the (?:opposite|reverse|contrary) is "
    r"(?:true|right|correct|the case)|(?:i wa )?(?:just |only )?(?:kidding|joking)|i lied"
    r"|scratch that|i take (?:that|it) back|(?P<bare>no|not|never|false|wrong|untrue|incorrect"
    r"|not (?:true|so)))"
)  # over normalised words
_JUDGES = re.compile(  # a prompt whose answer may begin with "No." or "False."
    r"\b(?:true|false|correct|right|wrong|yes)\b|(?:^|[.!?:]\s+)(?:is|are|wa|was|were|do|doe|does|did"
    r"|can|could|will|would|ha|has|have|should|may|must)\b[^.!?]*\?",
    re.I,
)


@lru_cache(maxsize=2048)
def asserted(text: str, prompt: str = "") -> tuple[str, ...]:
    """The distinct sentences that assert something: no questions, no echoes of the prompt, nothing
    twice, and nothing that the answer takes back ("This is false." the sentence before, "None of
    this is true." all before, "False." the next where it begins, and nothing was asked so).

    >>> asserted("Is it W? It is W. It is W.", "Is it W?")
    ('It is W.',)
    """
    asked = phrase_words(prompt)
    letters = labels(prompt)
    out: dict[tuple[str, ...], str] = {}
    last: tuple[str, ...] | None = ()  # the sentence before; None where it takes this one back
    for s in sentences(whole(text, prompt)):
        words = tuple(phrase_words(s))
        echo = len(letters.intersection(words)) != 1 and echoes(words, asked)
        m = _RETRACTS.fullmatch(" ".join(words).lower())
        if m and (out or not m["bare"] or not _JUDGES.search(prompt)):
            gone = list(out) if m["all"] else [last]
            last = None if m["bare"] and not out else ()
            out = {k: v for k, v in out.items() if k not in gone}
        elif words and last is not None and not s.endswith("?") and not echo:
            out.setdefault(words, s)
            last = words
        else:
            last = ()
    return tuple(out.values())


def phrase_words(text: str) -> list[str]:
    """Normalised word tokens of any text."""
    return list(phrase(text))
