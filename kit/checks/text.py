"""What the checks by code measure: words, sentences, paragraphs, list items, numbers, citations,
repeats.

Conventions, stated once. A *word* is a run of letters and digits; apostrophes, hyphens, dots inside
abbreviations and separators inside numbers do not split it ("don't", "state-of-the-art", "e.g.",
"Ph.D.", "1,000.5" are one word each), dashes between words do; a chain of three parts or more,
small words apart, counts as its parts ("a-list-in-disguise" is four words); a URL is one; each
Han ideograph and each kana is one word (Thai, Lao and Khmer are counted by runs between spaces).
Markdown marks, list markers, tags and entities ("&nbsp;") are not words; invisible characters
count as nothing, and those that are seen as a gap as a blank.
"""

from __future__ import annotations

import html
import re
import unicodedata
from collections.abc import Collection, Iterator, Sequence
from functools import lru_cache

_FENCE = re.compile(r"^[ \t]*(```|~~~)")
_LINK = re.compile(r"!?\[([^\[\]\n]*)\]\([^()\s]*(?:\s\"[^\"\n]*\")?\)")
_TAG = re.compile(
    r"</?[A-Za-z][\w-]{0,40}(?:\s+[\w:-]{1,40}\s*=\s*(?:\"[^\"<>]*\"|'[^'<>]*'|[^\s\"'<>]+))*\s*/?>"
)
_COMMENT = re.compile(r"<!--.*?-->", re.S)
_ENTITY = re.compile(r"&(?:#\d{1,7}|#[xX][\da-fA-F]{1,6}|[A-Za-z]\w{1,30});")
_HEADING = re.compile(r"^[ ]{0,3}#{1,6}(?:[ \t]+|$)")
_SAYS = re.compile(r"[.!?]\s+\w|\w{3,}\.$")
_BULLET = re.compile(r"^[ \t]*(?:>[ \t]*)*(?:[-*+][ \t]+|[•‣◦▪●–・][ \t]*)(?=\S)")
_NUMBERED = re.compile(
    r"^[ \t]*(?:>[ \t]*)*(?:(?:\(?\d{1,3}[.)]|\(?[a-zA-Z]\))[ \t]+|\d{1,3}[、．][ \t]*)(?=[^\s\d])"
)
_RULE = re.compile(r"^[ \t]*(?:(?:-[ \t]*){3,}|(?:\*[ \t]*){3,}|(?:_[ \t]*){3,}|={3,})$")
_TABLE_RULE = re.compile(r"^[ \t]*\|?[ \t]*:?-{2,}:?[ \t]*(?:\|[ \t]*:?-{2,}:?[ \t]*)*\|?[ \t]*$")
# scripts without spaces between words, and Hangul, whose words carry their particles
UNSPACED = re.compile(
    "[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3005-\u3007\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af"
    "\uf900-\ufaff\uff66-\uff9f\U00020000-\U0003ffff]"
)
CJK = "\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff"
_URL = re.compile(r"(?:https?://|www\.)[^\s<>]+")
_ADDRESS = re.compile(  # begun once: else a long run without "@" is read from each letter on
    rf"{_URL.pattern}|(?<![\w.+-])[\w.+-]++@[\w-]+(?:\.[\w-]+)+"
)
_WORD = re.compile(
    rf"{_ADDRESS.pattern}"
    r"|\d+(?:[.,:/–-]\d+)*(?:[^\W\d_]+)?"  # a number, a date, a time, 4th
    rf"|[{CJK}]"
    r"|(?<![\w.])(?:[A-Z][A-Za-z]{1,4}\.[B-HJ-Z]\b\.?|[A-Z]\.[A-Z][a-z]{1,4}\.)(?!\w)"  # Ph.D.
    rf"|(?<![\w.])(?:(?:[^\W\d_]\.){{2,4}}(?!\w)|(?:[^\W\d_]\.){{1,3}}[^\W\d_](?![\w.]))"  # e.g.
    rf"|(?:(?![{CJK}])\w)+(?:['’ʼ\-‐‑](?:(?![{CJK}])\w)+)*"
)
_PART = re.compile(r"[^\W_]+")
# what joins the parts of one word: mother-in-law, up-to-date
_SMALL = frozenset(
    "a an and as at by down for free from in it n no non not of off on or out over per re s self t "
    "the to un up with".split()
)
_CUTS = re.compile(r"[-‐‑_ʼ]+")
_ZERO_WIDTH_KEEP = "\n\t\r"
# what Unicode tells programs not to show, beside category Cf: fillers, selectors of variants
_IGNORED = re.compile(
    "[\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u2065\ufe00-\ufe0f\ufff0-\ufff8"
    "\U000e0000-\U000e0fff]"
)
_GAPS = str.maketrans(dict.fromkeys("\u2800\u3164\uffa0", " "))  # blank Braille, Hangul fillers


def invisible(char: str) -> bool:
    """True for characters without width or meaning for a reader (category Cf, variation selectors,
    fillers, other controls)."""
    return bool(_IGNORED.match(char)) or (
        unicodedata.category(char) in ("Cf", "Cc") and char not in _ZERO_WIDTH_KEEP
    )


def visible(text: str) -> str:
    """The text in form NFC without invisible characters, with plain line ends.

    >>> visible("a\\u200bb\\r\\nc")
    'ab\\nc'
    """
    text = (
        unicodedata.normalize("NFC", text)
        .replace("\r\n", "\n")
        .replace("\r", "\n")
        .replace("\u2028", "\n")
        .replace("\u2029", "\n\n")
        .translate(_GAPS)
    )
    return (
        text
        if text.isascii() and text.isprintable()
        else "".join(c for c in text if not invisible(c))
    )


THOUGHT = re.compile(r"<\s*(/?)\s*(?:think(?:ing)?|reason(?:ing)?)\s*>", re.I)


def answered(text: str) -> str:
    """The text without its thoughts, <think> ... </think>, which a chat template may have opened;
    nothing where it is one thought. Linear in the length of the text, whatever its tags.

    >>> answered("<think>It is 17.</think>16"), answered("17?</think>16"), answered("<think>16")
    ('16', '16', '')
    """
    kept: list[str] = []
    at, opened = 0, -1  # what follows the last thought; where a thought began
    depth = 0  # of thoughts inside thoughts
    for tag in THOUGHT.finditer(text):
        depth += -1 if tag[1] else 1
        if not tag[1]:
            opened = tag.start() if opened < 0 else opened
            continue
        if opened >= 0 or not kept:
            kept.append(text[at:opened] if opened >= 0 else "")
            at, opened = tag.end(), -1
        elif depth >= 0:
            at = tag.end()
    if opened >= 0 and not text[:opened].strip():
        return ""
    return "\n".join([part for part in kept if part.strip()] + [text[at:]])


BLOCK = re.compile(r"<\s*answer\b[^<>]*>", re.I)
_BLOCK_END = re.compile(r"<\s*/\s*answer\s*>", re.I)


def given(text: str) -> str:
    """What the last <answer> block holds, or else the last \\boxed{}; a text without has itself.

    >>> given("Is it 17? <answer>16</answer>"), given("16")
    ('16', '16')
    """
    block = BLOCK.split(text)[1:]
    boxed = re.findall(r"\\boxed\{([^{}%]*)\}", "" if block else text)
    return _BLOCK_END.split([text, *boxed, *block][-1])[0]


def _bare(text: str) -> str:
    """Combining marks dropped, so that accents and vowel signs never split a word."""
    if text.isascii():
        return text
    text = unicodedata.normalize("NFD", text).replace("ʼ", "’")  # to Unicode a letter
    return "".join(c for c in text if unicodedata.category(c)[0] != "M")


def _unmark(line: str) -> str:
    """One line without emphasis, code and link marks; list and quote markers stay."""
    line = _TAG.sub("", _LINK.sub(r"\1", line))
    line = re.sub(
        r"\*{1,3}(?=\S)|(?<=\S)\*{1,3}|`+|~~|(?<!\w)_{1,3}(?=\w)|(?<=\w)_{1,3}(?!\w)", "", line
    )
    return _ENTITY.sub(lambda m: html.unescape(m[0]), line)


def blocks(text: str) -> list[tuple[str, str]]:
    """The text as (kind, text) pairs; kind is "text", "item", "heading", "table" or "code".

    Lines of one paragraph are joined by a space; a blank line, a list marker or a heading starts a
    new block.

    >>> blocks("# Title\\nOne\\ntwo.\\n\\n- a\\n- b")
    [('heading', 'Title'), ('text', 'One two.'), ('item', 'a'), ('item', 'b')]
    """
    out: list[tuple[str, str]] = []
    joins = False
    for kind, body in _lines(text):
        if kind == "code":
            out[-1] = ("code", f"{out[-1][1]}\n{body}".strip("\n"))
        elif kind == "fence":
            out += [("code", "")] if body else []
            joins = False
        elif kind == "text" and body and joins:
            out[-1] = (out[-1][0], f"{out[-1][1]} {body}")
        else:
            kind = "item" if kind in ITEMS else kind
            out += [(kind, body)] if body else []
            joins = bool(body) and kind in ("text", "item")
    return [b for b in out if b[1]]


ITEMS = ("bullet", "numbered")


def _lines(text: str) -> Iterator[tuple[str, str]]:
    """Each line as (kind, text without marks); a comment is what it says.

    kind : "fence" (its text "opens", or empty), "code", "blank", "rule", "heading", "bullet",
    "numbered", "table" or "text".
    """
    fenced = False
    for line in _COMMENT.sub(lambda m: f" {m[0][4:-3]} ", visible(text)).split("\n"):
        if _FENCE.match(line):
            fenced = not fenced
            yield "fence", "opens" if fenced else ""
        else:
            yield ("code", line) if fenced else _classify(line)


def _classify(line: str) -> tuple[str, str]:
    if not line.strip():
        return "blank", ""
    if _RULE.match(line) or (("|" in line or "--" in line) and _TABLE_RULE.match(line)):
        return "rule", ""
    if _HEADING.match(line):
        return "heading", _unmark(_HEADING.sub("", line)).strip(" #\t")
    for kind, marker in zip(ITEMS, (_BULLET, _NUMBERED), strict=True):
        if marker.match(line):
            return kind, _unmark(marker.sub("", line)).strip()
    if line.lstrip().startswith("|"):
        return "table", _unmark(line.replace("|", " ")).strip()
    return "text", _unmark(line.lstrip(" \t>")).strip()


def plain(text: str) -> str:
    """The text without markdown, one block a line."""
    return "\n".join(body for _, body in blocks(text))


@lru_cache(maxsize=64)  # each check of an answer asks
def wordless(text: str) -> bool:
    """True where a reader sees no letter, digit or symbol: dots, a rule, an empty fence, a comment.

    >>> wordless("..."), wordless("<!-- x -->&nbsp;"), wordless("1"), wordless("\U0001f44d")
    (True, True, False, False)
    """
    shown = visible(plain(_COMMENT.sub("", text)))
    kinds = ("L", "N", "So", "Sm", "Sc")  # not the marks of markdown
    return not any(unicodedata.category(c).startswith(kinds) for c in shown)


def words(text: str) -> list[str]:
    """The words, in order (conventions: see the module).

    >>> words("Don't panic: **state-of-the-art** — 1,000.5 km, e.g. [here](http://x.org).")
    ["Don't", 'panic', 'state-of-the-art', '1,000.5', 'km', 'e.g.', 'here']
    >>> words("apples-pears-plums-figs")
    ['apples', 'pears', 'plums', 'figs']
    """
    found = [w for w in _WORD.findall(_bare(plain(text))) if any(c.isalnum() for c in w)]
    return [part for w in found for part in _unchained(w)]


def _unchained(word: str) -> list[str]:
    """A word as it is, or its parts where it is a list in disguise: three parts or more that are
    not small words ("state-of-the-art" is one word).
    """
    parts = _PART.findall(word)
    heavy = [p for p in parts if p.lower() not in _SMALL and not p.isdigit()]
    whole = (all(len(p) == 1 for p in parts) and "." in word) or "@" in word or _URL.match(word)
    return [word] if len(heavy) < 3 or whole else parts


def parts(text: str) -> list[str]:
    """The words cut at every hyphen and underscore, in lower case.

    >>> parts("Ants-bright, don't _x_y")
    ['ants', 'bright', "don't", 'x', 'y']
    """
    return [p.casefold() for w in words(text) for p in _CUTS.split(w) if p]


def stands(needle: str, text: str, *, whole: bool = True) -> bool:
    """True where a text holds `needle`; whole : as a word, to which no letter, digit or mark (the
    accents that join no letter) is joined; scripts without spaces join none.

    >>> stands("cat", "a cat-fish"), stands("cat", "cats"), stands("cat", "cat\u0332s")
    (True, False, False)
    >>> stands("美容", "美容に良い"), stands("AI", "AIは"), stands("AI", "AIs")
    (True, True, False)
    """
    at = text.find(needle) if needle else -1
    while at >= 0:
        end = at + len(needle)
        sides = ((needle[0], text[at - 1 : at]), (needle[-1], text[end : end + 1]))
        if not (whole and any(_joins(*side) for side in sides)):
            return True
        at = text.find(needle, at + 1)
    return False


def _joins(edge: str, char: str) -> bool:
    """Whether a text's next character is of the same word as the edge of a term in it."""
    letter = char.isalnum() and not UNSPACED.search(edge + char)
    return edge.isalnum() and char > "" and (letter or unicodedata.category(char)[0] == "M")


def without_urls(text: str) -> str:
    """The text without its URLs and addresses; of a `plain` text, what it says.

    >>> without_urls(plain("The [river](a/b) at https://lake,sea **flows**."))
    'The river at  flows.'
    """
    return _ADDRESS.sub("", text)


_NEVER_END = frozenset(
    "dr mr mrs ms mx prof gen sen rev hon capt lt col sgt mt ft vs e.g i.e eg ie cf viz "
    "approx ca resp messrs mme mlle "
    "z.b d.h bzw".split()
)
_BEFORE_NUMBER = frozenset(
    "no nos nr fig figs eq eqs sec secs ch chap vol p pp art tab ref refs ver v jan feb mar "
    "apr jun jul aug sep sept oct "
    "nov dec".split()
)
_MAYBE_END = frozenset(
    "etc inc ltd co corp jr sr a.m p.m ph.d m.sc b.sc m.d b.a m.a al st ave blvd dept est u.s u.k "
    "e.u u.n d.c".split()
)
_STARTERS = frozenset(
    "the this that these those it its he she they we you i there here then thus however but "
    "and so in on at for as if when "
    "while after before because since although a an no yes my our their his her what why how "
    "who where not some many most "
    "both each one another such with from by to finally first second third next also "
    "moreover".split()
)
_END = re.compile(
    r"(?P<mark>[.!?…]+|[。！？]+)(?P<close>[\"'”’»)\]]*)(?=\s|$|(?<=[。！？])"
    r"|(?<=[a-z]{2}[.!?])(?=[A-Z][a-z]* ))"
)


def _ends(before: str, mark: str, after: str, cased: bool) -> bool:
    """Whether a sentence ends at `mark`, given the block's text on both sides."""
    if not after or mark[0] in "。！？":
        return True
    head = after.lstrip("\"'“‘«([*")[:1]
    if cased and head.islower():
        return False
    if mark != ".":
        return True
    last = before.rsplit(None, 1)[-1].lstrip("\"'“‘«([").lower() if before.strip() else ""
    following = re.match(r"[\w’']+", after.lstrip("\"'“‘«(["))
    starter = bool(following) and following.group().lower() in _STARTERS
    if last in _NEVER_END:
        return False
    if last in _BEFORE_NUMBER:
        return not head.isdigit()
    initial = re.fullmatch(r"(?:[^\W\d_]\.)*[^\W\d_]", last)
    return (starter and cased) or not (last in _MAYBE_END or initial)


def sentences(text: str) -> list[str]:
    """The sentences. Headings, table rows and code are none; a list item or paragraph with a word
    is at least one.

    A heading that holds the end of a sentence is text: every line could be one.

    Abbreviations, initials, decimals and an ellipsis in mid-sentence do not end one; a lower-case
    letter after the
    mark means that the sentence goes on, except in texts that have no capitals at all.

    >>> sentences("Dr. Lee paid $3.50... maybe. Was it e.g. tea? Yes!")
    ['Dr. Lee paid $3.50... maybe.', 'Was it e.g. tea?', 'Yes!']
    """
    out: list[str] = []
    said = [(kind, body) for kind, body in blocks(text) if kind in ("text", "item", "heading")]
    parts = [body for kind, body in said if kind != "heading" or _SAYS.search(body)]
    cased = any(c.isupper() for body in parts for c in body)
    for body in parts:
        start = 0
        for m in _END.finditer(body):
            if _ends(body[start : m.start()], m["mark"], body[m.end() :].lstrip(), cased):
                out.append(body[start : m.end()].strip())
                start = m.end()
        out.append(body[start:].strip())
    return [s for s in out if any(c.isalnum() for c in s)]


def paragraphs(text: str) -> int:
    """Blocks between blank lines that hold a word; headings alone and rules are none, a fenced
    block is one.

    >>> paragraphs("# T\\n\\nOne.\\nStill one.\\n\\nTwo.\\n\\n---\\n")
    2
    """
    count, open_ = 0, False
    for kind, body in _lines(text):
        says = kind not in ("heading", "code") and any(c.isalnum() for c in body)
        count += says and not open_
        open_ = kind != "blank" and (open_ or says)
    return count


def lines(text: str) -> int:
    """Lines that are not blank."""
    return sum(1 for line in visible(text).split("\n") if line.strip())


def items(text: str, *, numbered: bool = False) -> int:
    """List items, nested ones included, outside of code: bullets, or numbered ones.

    >>> items("- a\\n  * b\\n---\\n**bold**"), items("1. a\\n2) b\\n3.5 kg", numbered=True)
    (2, 2)
    """
    return sum(kind == ITEMS[numbered] for kind, _ in _lines(text))


def runs(items: Sequence[str], n: int) -> list[tuple[str, ...]]:
    """Each n neighbours, in order.

    >>> runs(["a", "b", "c"], 2)
    [('a', 'b'), ('b', 'c')]
    """
    return [tuple(items[i : i + n]) for i in range(len(items) - n + 1)]


def repeated_share(text: str, n: int = 3) -> float:
    """Share of word n-grams that occurred before, in [0, 1]; 0 for texts of fewer than n + 1 words.

    >>> repeated_share("a b c a b c a b c")
    0.5714285714285714
    """
    grams = runs([x.casefold() for x in words(text)], n)
    return 1.0 - len(set(grams)) / len(grams) if len(grams) > 1 else 0.0


_CITE_TAG = re.compile(r"<\s*(?:snippet|cite)\b([^<>]*)>", re.I)
_QUOTED = "\"'“”„‟‘’‚‛«»‹›"
_IDS = re.compile(r"\bids?\s*=\s*(.*?)(?=\s[\w-]+\s*=|$)", re.I | re.S)
_BRACKETS = re.compile(r"(?<!\w)\[([^\[\]]*)\]")
_BETWEEN = r",;，；、\s"
_ID_CUTS = re.compile(f"[{_BETWEEN}]")


def ids_of(attributes: str, known: Collection[str] = ()) -> tuple[str, ...]:
    """The distinct ids of a tag's attribute `id` or `ids`: quotes of any kind are no part of one,
    nor are brackets, and blanks and commas part them, but where a known id has them.

    >>> ids_of("id=“S1, S2”"), ids_of("id=[S1]"), ids_of("id=[1]", known=["[1]"])
    (('S1', 'S2'), ('S1',), ('[1]',))
    >>> ids_of("id='Lee, 2019, S2'", known=["Lee, 2019", "S2"])
    ('Lee, 2019', 'S2')
    """
    m = _IDS.search(attributes)
    raw = _BRACKETS.sub(r"\1", m[1]) if m else ""
    longest = sorted(filter(_ID_CUTS.search, known), key=len, reverse=True)
    one = "|".join(map(re.escape, longest)) or "(?!)"
    ids = re.compile(
        rf"[{_QUOTED}]*(?:({one})(?=[{_QUOTED}/]*(?:[{_BETWEEN}]|$))|([^{_BETWEEN}]+))"
    )
    bare = [m[1] or _unquoted(m[2], known) for m in ids.finditer(raw)]
    return tuple(dict.fromkeys(f"[{i}]" if f"[{i}]" in known else i for i in bare if i))


def _unquoted(said: str, known: Collection[str]) -> str:
    """An id without quotes and the slash of `<cite id=a/>`, but where a known id has them."""
    without = said.strip(_QUOTED)
    return next((i for i in (said, without) if i in known), without.strip(_QUOTED + "/"))


def cited(text: str, known: tuple[str, ...] = ()) -> list[str]:
    """Cited ids in order: `<snippet id=A,B>`, `<cite id="A">`, and `[A]` where A has the shape of a
    known id.

    >>> cited('<snippet id="S1, S2">x</snippet> and [S9], not [sic].', known=("S1", "S2"))
    ['S1', 'S2', 'S9']
    """
    shapes = [re.compile(re.sub(r"\d+", lambda _: r"\d+", re.escape(k))) for k in known]
    found = [(m.start(), i) for m in _CITE_TAG.finditer(text) for i in ids_of(m[1], known)]
    rest = _CITE_TAG.sub(lambda m: " " * len(m[0]), text)
    for m in re.finditer(r"\[([^\[\]\n]{1,200})\](?!\()", rest):
        parts = [m[1]] if m[1] in known else [p.strip() for p in re.split(r"[,;]", m[1])]
        found += [
            (m.start(), p) for p in parts if p in known or any(s.fullmatch(p) for s in shapes)
        ]
    return [i for _, i in sorted(found, key=lambda f: f[0])]


def fold(text: str) -> str:
    """For comparing: compatibility form, case folded, quotes and dashes unified, white space
    collapsed.

    >>> fold("It’s  “FINE” – ok")
    'it\\'s "fine" - ok'
    """
    text = unicodedata.normalize("NFKC", visible(text)).casefold()
    text = re.sub("[’‘ʼ`]", "'", re.sub("[“”„«»]", '"', re.sub("[‐‑‒–—−]", "-", text)))
    return re.sub(r"\s+", " ", text).strip()
