"""Which language a text is in, by script and by its commonest short words: enough for a check, no
model, no download.

Reads thirteen Latin-script languages by stop words and others by script. It abstains on short texts
and on ties; it cannot
tell close relatives without enough function words (Norwegian from Danish, Serbian from Russian).
"""

from __future__ import annotations

import unicodedata
from collections import Counter

from .text import words

STOP = {
    "en": "the of and to in is that it was for on are with as his they at be this have from "
    "or had by not but what all were we when your can "
    "said there an which their if will how about then them would these her him has you my "
    "than who its into",
    "de": "der die und das ist nicht ein eine zu den mit sich auf für von dem des im auch "
    "als an wie es aber wir ich sie er wird sind war bei "
    "oder nach kann wenn noch nur über einen einer durch werden zum zur haben hat so dass",
    "fr": "le la les des et est un une que dans pour qui sur pas au avec ce il sont par plus "
    "ne se du nous vous elle mais ou cette ses aux leur "
    "été être comme tout on je son sa ont fait sans aussi",
    "es": "el la los las de que y en un una es por con para no se del al lo como más pero "
    "sus le ya o este sí porque esta son entre cuando muy "
    "sin sobre también me hasta hay donde han quien están",
    "it": "il lo la gli le di che e in un una è per con non si del della sono come più ma "
    "anche al alla dei nel ha questo o se da ci mi essere "
    "delle dal nella suo quando molto dopo era",
    "pt": "o a os as de que e em um uma é para com não por mais do da dos das se na no ao "
    "como mas foi ele tem à seu sua ou quando muito nos já "
    "também são isso pelo ela entre era depois",
    "nl": "de het een en van ik te dat die in is niet zijn op aan met als voor had er maar "
    "om hem dan zou wat mijn men dit zo door over ze zich "
    "bij ook tot je uit der daar naar heb wordt deze worden geen",
    "sv": "och det att i en jag hon som han på den med var sig för så till är men ett om "
    "hade de av icke mig du henne då sin nu har inte hans "
    "vid man från eller kan också när detta ska",
    "da": "og i jeg det at en den til er som på de med han af for ikke der var mig sig men "
    "et har om vi min havde ham hun nu over da fra du ud "
    "eller også kan når blev efter",
    "no": "og i jeg det at en et den til er som på de med han av ikke der så var meg seg men "
    "har om vi min mitt ha hadde hun nå over da ved fra "
    "du ut sin dem oss opp man kan hans hvor eller hva skal etter også",
    "pl": "i w nie na się z do to że jest o jak po co tak za od jego ale czy przez są dla "
    "był przy które która ten tym być może już tylko jej ich "
    "także oraz lub ze",
    "tr": "ve bir bu da de için ile çok ne o mi gibi daha var ama en kadar ben olarak sonra "
    "değil her olan şey ya ki mı diye veya hem ise",
    "fi": "ja on ei se että en hän oli mutta kun niin ovat tai kuin joka myös sen ole jos ne "
    "sitä mitä vain minä nyt olla siitä",
}
_SCRIPTS = {
    "CYRILLIC": "ru",
    "GREEK": "el",
    "HEBREW": "he",
    "ARABIC": "ar",
    "DEVANAGARI": "hi",
    "THAI": "th",
    "HANGUL": "ko",
    "CJK": "zh",
    "HIRAGANA": "ja",
    "KATAKANA": "ja",
}
CODES = tuple(sorted({*STOP, *_SCRIPTS.values(), "uk"}))
_WORDS = {code: frozenset(text.split()) for code, text in STOP.items()}


def _script(text: str) -> str | None:
    """The language code of the script that most letters belong to; None for Latin or no letters."""
    count = Counter(
        "LATIN" if char.isascii() else unicodedata.name(char, "").split(" ", 1)[0]
        for char in text
        if char.isalpha()
    )
    if not count:
        return None
    if count["HIRAGANA"] + count["KATAKANA"] > 0.1 * count.total():
        return "ja"
    script = count.most_common(1)[0][0]
    if script == "CYRILLIC":
        return "uk" if any(c in "іїєґІЇЄҐ" for c in text) else "ru"
    return _SCRIPTS.get(script)


def language(text: str) -> tuple[str | None, str]:
    """(code, evidence); code is None where the text gives too little to go by.

    >>> (language("The cat sat on the mat and it was not moved.")[0],
    ...  language("Der Hund ist nicht auf dem Dach.")[0])
    ('en', 'de')
    >>> language("Paris")
    (None, '0 function words in 1 words: too few to tell')
    """
    if code := _script(text):
        return code, f"most letters are in the script of {code!r}"
    w = [x.casefold() for x in words(unicodedata.normalize("NFC", text))]
    folded = {code: frozenset(_plain(x) for x in stop) for code, stop in _WORDS.items()}
    hits = sorted(
        ((sum(x in stop for x in w), code) for code, stop in folded.items()), reverse=True
    )
    (best, code), (second, _) = hits[0], hits[1]
    if best < 2 or best < 0.08 * len(w) or best == second:
        return None, f"{best} function words in {len(w)} words: too few to tell"
    return (
        code,
        f"{best} function words of {code!r} in {len(w)} words, {second} of the next language",
    )


def _plain(word: str) -> str:
    """Accents dropped, as `words` drops them."""
    return "".join(
        c for c in unicodedata.normalize("NFD", word) if unicodedata.category(c)[0] != "M"
    )
