"""What checks measure, by plain conventions.

word : letters and digits; an apostrophe, hyphen or dot inside does not split it.
sentence : ends with . ! or ? before a blank and a capital, digit or quote, or at the end of a line.
paragraph : a block between blank lines. item : a line that begins with -, *, + or "1.".
Markdown marks and code fences are left out.
"""

import re
import unicodedata

MARKDOWN_MARKS = re.compile(
    r"^\s*(?:[-*+]|\d{1,3}[.)]|#{1,6}|>)\s+|[*_`~]+(?=\S)|(?<=\S)[*_`~]+|^\s*(?:```|~~~).*$",
    re.M,
)
MARKDOWN_LINK = re.compile(r"!?\[([^\]\n]*)\]\([^)\s]*\)")
WORD_PATTERN = re.compile(r"[^\W_]+(?:(?:['’.-]|(?<=\d)[,:/](?=\d))[^\W_]+)*")
# "Dr. Lee" is not cut: a lookbehind for each length of an abbreviation.
SENTENCE_END = re.compile(
    r"(?<=[.!?])(?<!\b(?:Dr|Mr|Ms|St|vs|No)\.)(?<!\b(?:Mrs|e\.g|i\.e|etc|Fig)\.)(?<!\bProf\.)"
    r"[\"'”’)\]]*\s+(?=[\"'“‘(\[]*[A-Z\d])|\n+"
)
BULLET_ITEM = re.compile(r"^\s*[-*+•]\s+\S", re.M)
NUMBERED_ITEM = re.compile(r"^\s*\d{1,3}[.)]\s+\S", re.M)
PLAIN_PUNCTUATION = str.maketrans("’‘`“”„‐‑–—−", "'''\"\"\"-----")


def visible_text(text: str) -> str:
    """NFC, plain line ends, no invisible characters."""
    # Most answers are plain, and this is the slowest step of a check.
    if text.isascii() and text.replace("\n", "").isprintable():
        return text
    text = unicodedata.normalize("NFC", text).replace("\r\n", "\n")
    # Cf: invisible characters would split words, or hide a term from `contains`.
    return "".join(
        c
        for c in text.replace("\u2028", "\n")
        if c in "\n\t" or unicodedata.category(c) not in ("Cf", "Cc")
    )


def without_markdown(text: str) -> str:
    """The text without markdown."""
    return MARKDOWN_MARKS.sub("", MARKDOWN_LINK.sub(r"\1", visible_text(text)))


def has_word(text: str) -> bool:
    """True for a text with a letter or a digit."""
    return any(map(str.isalnum, text))


def words_of(text: str) -> list[str]:
    """The words of a text.

    >>> words_of("Don't panic: **state-of-the-art** - 1,000.5 km, cats,dogs.")
    ["Don't", 'panic', 'state-of-the-art', '1,000.5', 'km', 'cats', 'dogs']
    """
    return WORD_PATTERN.findall(without_markdown(text))


def sentences_of(text: str) -> list[str]:
    """The sentences of a text.

    >>> sentences_of("Dr. Lee paid $3.50. Was it tea? Yes!")
    ['Dr. Lee paid $3.50.', 'Was it tea?', 'Yes!']
    """
    parts = SENTENCE_END.split(without_markdown(text))
    return list(filter(has_word, map(str.strip, parts)))


def paragraphs_of(text: str) -> list[str]:
    """Blocks between blank lines that hold a word."""
    return list(filter(has_word, re.split(r"\n\s*\n", without_markdown(text))))


def lines_of(text: str) -> list[str]:
    """The lines that are not blank."""
    return list(filter(str.strip, visible_text(text).splitlines()))


def fold_case(text: str) -> str:
    """For comparing: compatibility form, small letters, plain quotes and dashes, single blanks."""
    text = unicodedata.normalize("NFKC", visible_text(text)).casefold()
    return " ".join(text.translate(PLAIN_PUNCTUATION).split())


def comparable_text(text: str, case: bool) -> str:
    """For comparing, with or without the difference of small and capital letters."""
    return visible_text(text).strip() if case else fold_case(text)


def lowercase_words(text: str) -> list[str]:
    """The words cut at hyphens, in small letters."""
    return " ".join(words_of(text)).casefold().replace("-", " ").split()


def word_runs(text: str, n: int) -> set[tuple[str, ...]]:
    """Each n neighbours among the words of a text."""
    words = lowercase_words(text)
    return {tuple(words[i : i + n]) for i in range(len(words) - n + 1)}
