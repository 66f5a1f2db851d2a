"""From a judge's raw reply to one reading per criterion: by id, never by position; no guessing.

The world is closed. A reply is believed only when all of it has the form that was asked for:

    [a closed <think> block] [one line such as "Here is my evaluation:"] [a code fence around]
    [behind all: a token such as <|im_end|>]
    lines  REASON <id>: text / VERDICT <id>: word / CONFIDENCE <id>: number, and blank lines
    or     one JSON value {id: {"reason": text, "verdict": word, "confidence": number}, ...}

- Anything else in it (a sentence, a quotation, a second value, an unknown key or id) makes all of
  it unknown: it may speak of any criterion. Its reason quotes the beginning of what was not
  expected. So does a draft: an unclosed <think>, an unclosed object, a reply that was cut.
- A slip is its criterion's own affair: a line that is missing, a word that is not allowed.
- A verdict is the whole of its place: "met", "**Met.**", "2", not "met, mostly" or "2.5" of 0-3.
- Two verdicts on one criterion that disagree are a contradiction, as is a reason that states
  another verdict on the criterion itself (`stated`): where a line of it begins or ends with a
  clause which, but for the words that announce a verdict (LABELS) and ids, is nothing else than one
  ("c1: unmet", "The answer does not meet the criterion"), or is a level (or the points), word by
  word. An end behind a comma or in brackets names the criterion, and no word before it (_LED) makes
  it a condition, another's word or an earlier thought. The verdict's place is what counts, and free
  words are English here: what speaks of anything else, asks, quotes, supposes or tells what the
  answer says is no verdict, and a doubt is none. Whether a reason argues for its verdict is not
  checked.
- A confidence that may be on another scale than 0 to 100, or is said twice, is None.
- A verdict that only repeats the judged answer is none.

Nothing is ever padded, clamped or defaulted. What is unknown is asked once more, by itself.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Mapping, Sequence

from ..records import Criterion
from .forms import Judged, lines, objects
from .templates import names
from .words import REASON, Foreign, Reading, Said, at_odds, percent, settled, slip, word

RUNAWAY = 8  # blanks at the end of a whole JSON reply that was cut: the model had finished
LONG = 1_000_000  # characters of a reply that does not begin as the asked JSON; longer is none
CUT = "the reply was cut at the token limit"
MADE = ("met", 1.0)
REPEATED = "its words stand in the answer"
_FINAL = re.compile(  # before it stands what a harmony model thinks
    r"(?:\A|<\|end\|>\s*<\|start\|>assistant)\s*<\|channel\|>final"
    r"(?: ?<\|constrain\|>\w+)?<\|message\|>"
)
_NAMES = r"(?:think|thinking|thoughts?|reasoning|analysis|reflection|draft|scratch_?pad|seed:think)"
_OPEN = rf"[<\[\u25c1]{_NAMES}(?:\s[^>\n]{{0,200}})?[>\]\u25b7]"
_CLOSE = rf"[<\[\u25c1]/{_NAMES}[>\]\u25b7]"
_BLOCK = re.compile(
    rf"\s*([<\[\u25c1])({_NAMES})(?:\s[^>\n]{{0,200}})?[>\]\u25b7].*?\1/\2[>\]\u25b7]",
    re.I | re.S,
)
_DRAFT = re.compile(rf"^[ \t]*(?:{_OPEN}|{_CLOSE})", re.I | re.M)
_FORM = re.compile(r"^[^\w\n]{0,12}verdict\b[^\n]{0,48}[:=\uff1a]", re.I | re.M)
_HALF = re.compile(rf"^[ \t]*{_CLOSE}|{_CLOSE}[ \t\r]*$", re.I | re.M)  # its prompt opened it
_CLOSED = re.compile(_CLOSE, re.I)
_END = re.compile(r"(?:<\|\w{1,20}\|>|</s>)\Z")  # a token that the server should have kept
_FENCE = re.compile(r"(`{3,}|~{3,})[ \t]*(?:json|text)?\s", re.I)
_HEADER = re.compile(r"[#*_ \t]*([a-z][a-z'\u2019, ]{0,60}):[*_ \t\r]*", re.I)
HEADER = frozenset(
    "here here's heres is are my the evaluation evaluations verdict verdicts assessment "
    "assessments judgment judgments judgement judgements result results json output reply final "
    "for of each all criterion criteria sure okay ok".split()
)


def read(
    text: str, criteria: Sequence[Criterion], *, cut: bool = False, answer: str = ""
) -> list[Reading]:
    """One reading per criterion, in order, from the raw text of a reply, in lines or in JSON.

    cut : the reply ended at the token limit. It is a draft, and is not believed: where it stops,
        the judge had perhaps not made up its mind. (Whole JSON that runs on in blanks is none.)
    answer : the judged answer, whose words are not the judge's.

    >>> a, b = Criterion(id="a", text=""), Criterion(id="b", text="")
    >>> [r.status for r in read('{"b": {"verdict": "unmet"}, "a": "met"}', [a, b])]
    ['met', 'unmet']
    >>> read("VERDICT a: met\\nOn second thought, no.", [a])[0].reason
    "not the form that was asked for: 'On second thought, no.'"
    """
    ids, how = names(criteria), "none"
    try:
        body = bare(text, answer)
        how = "json" if body[:1] in ("{", "[") else "text"
        if cut and (how == "text" or len(text) - len(text.rstrip()) < RUNAWAY):
            return [Reading(failure="parse", how="none", reason=CUT) for _ in criteria]
        said = objects(body, ids, criteria) if how == "json" else lines(body, ids)
        for c, n in zip(criteria, ids, strict=True):
            _slips(c, said[n], ids)
    except Foreign as e:
        how = how.replace("text", "none")
        why = CUT if cut else str(e)
        return [Reading(failure="parse", how=how, reason=why) for _ in criteria]
    judged = Judged(answer)
    told = Reading(failure="missing", how=how, reason=REPEATED)  # its lines are the answer's
    if how == "json" and judged.has(body):
        return [told] * len(criteria)
    by_id = dict(zip(ids, criteria, strict=True))
    rows = {n: told if judged.told(said[n]) else settled(c, said[n], how) for n, c in by_id.items()}
    return _agreeing(rows, said, by_id, judged)


def agreed(choices: Sequence[Sequence[Reading]]) -> list[Reading]:
    """Several choices of one reply as one; a contradiction where they disagree."""
    rows = list(zip(*choices, strict=True))
    states = [{(r.status, r.value) for r in row} for row in rows]
    return [
        row[0] if len(s) == 1 else at_odds(s, row[0].how)
        for row, s in zip(rows, states, strict=True)
    ]


def bare(text: str, answer: str = "") -> str:
    """A reply without the thoughts, the header and the code fence around what was asked for;
    Foreign for a draft.

    >>> bare("Here is the JSON:\\n{}"), bare("It holds {}.")
    ('{}', 'It holds {}.')
    """
    text = _END.sub("", text.rstrip())
    body = _framed(text)
    return body if body[:1] == "{" else _framed(spoken(text, answer))


def _framed(text: str) -> str:
    text = text.strip("\ufeff \t\r\n")
    first, _, rest = text.partition("\n")
    m = _HEADER.fullmatch(first)
    if m and set(m[1].casefold().replace("\u2019", "'").replace(",", " ").split()) <= HEADER:
        text = rest.strip()
    fence = _FENCE.match(text)
    if fence and text.endswith(fence[1], fence.end()):
        return text[fence.end() : -len(fence[1])].strip()
    return text


def spoken(text: str, answer: str = "") -> str:
    """A reply without the thoughts before it; Foreign for a draft that is not closed.

    Thought are the blocks at its beginning. The first may be opened by the prompt, and is then
    closed at an end of a line; not with a verdict line in it, nor where the judged answer closes
    one: who cites that has not thought. A tag that is named further on, in a reason, is text.

    >>> spoken("<think>a <think>?</think>unmet"), spoken("met\\n</think>unmet")
    ('unmet', 'unmet')
    >>> spoken("REASON: no </think> in it")
    'REASON: no </think> in it'
    """
    if len(text) > LONG:  # what follows holds the interpreter
        raise Foreign(text)
    final = _FINAL.search(text.lstrip()) if text.lstrip().startswith("<|channel|>") else None
    if final:
        text = text.lstrip()[final.end() :]
        if "<|channel|>" in text:  # a second one, or a quotation
            raise Foreign(text)
    at = 0
    while block := _BLOCK.match(text, at):
        at = block.end()
    half = None if at or _DRAFT.match(text.lstrip()) else _HALF.search(text)
    if half and (_FORM.search(text, 0, half.start()) or _CLOSED.search(answer)):
        raise Foreign(text)  # perhaps no thought, but a reply
    rest = text[half.end() if half else at :]
    if _DRAFT.search(rest):
        raise Foreign(rest)
    return rest


def _slips(c: Criterion, said: Said, ids: Sequence[str]) -> None:
    """Foreign where the place of a verdict or a confidence holds more than a slip."""
    wrong = [raw for raw in said.verdicts if word(c, raw) is None]
    for raw in (*wrong, *(raw for raw in said.confidences if percent(raw) is None)):
        if not slip(raw, ids):
            raise Foreign(raw)


def _agreeing(
    rows: dict[str, Reading],
    said: dict[str, Said],
    criteria: dict[str, Criterion],
    judged: Judged,
) -> list[Reading]:
    """The readings, those left out that some reason contradicts in so many words.

    Words for the criterion that stand in the answer are a quotation: what it would like to hear.
    """
    for name, place in said.items():
        for other, state, words in stated(place.reason, name, criteria):
            r = rows[other]
            quoted = state == MADE and judged.has(words)
            if r.complete and (r.status, r.value) != state and not quoted:
                rows[other] = at_odds({(r.status, r.value), state}, r.how)
    return list(rows.values())


State = tuple[str, float | None]
LONGEST = 160  # characters of a statement
_LONG = re.compile(r"\"(?:[^\"\s]+\s+){2}[^\"]*\"|\u201c(?:\S+\s+){2}[^\u201d]*\u201d")
_SENTENCES = re.compile(r"(?:[^.;!?]|\.(?=\d))+[.;!?]?")
_ENDS = re.compile(  # where a statement may end, and something else begin
    r"[,(]|(?:[:\u2013\u2014]|\s-)(?=(?:\s+\w+){2})|\b(?:because|since|as)\b|\Z", re.I
)
_SO = re.compile(r".*((?:\b(?:so|hence|thus|therefore|consequently)\b|=>|->|\u2192).*)", re.I)
_SAYS = (
    r"\b(?:sa(?:y|id)|claim|state|argue|assert|pretend|conclude|insist|suggest|think)(?:s|d|ed)?\b"
)
_TOLD = re.compile(rf"{_SAYS}[^,]*\Z", re.I)  # the answer's conclusion, not the judge's
_TAKEN = re.compile(  # what makes a claim or a condition of the words before it
    rf"[\s,]*(?:(?:it|the \w+) )?(?:{_SAYS}|\b(?:if|unless|had|with|without|provided)\b)", re.I
)
_TAIL = re.compile(  # where a sentence may come to its end: "... , the criterion is not met"
    r"[,(\[\u2013\u2014]|\s-\s|\b(?:and|but|yet)\b|"
    r"\b(?:which|this) (?:means|makes|leaves)(?: that)?\b|\b(?:meaning|making|leaving)\b",
    re.I,
)
_STRONG = re.compile(r"(?!\s*then\b|.*\bwould\b).*\b(?:criterion|verdict)\b", re.I)
_LED = re.compile(  # what tells, supposes or quotes: then its end is not the judge's word
    r"\b(?:if|unless|had|were|when\w*|where\w*|according|whether|would|could|might|may|"
    r"some|first|earlier|previous|(?<!my )(?:view|opinion|assessment|impression)|eyes|standard|"
    r"(?<!given )(?<!seeing )that|how|why|what|its own|itself|rates?|calls?|tells?|"
    r"messages?|remarks?|admits?|warns?|reads?|prints?|ends?|closes?|rules?|met|unmet|"
    r"please|with(?! no\b))\b|\A\s*for (?!th(?:is|ese) reasons?\b)|"
    rf"{_SAYS}|[\"\u201c\u201d\u201e\u00ab]|(?<!\w)['\u2018]|\bnot[^,]*\Z",
    re.I,
)
_TURN = re.compile(r"\b(?:but|however|yet|(?:al)?though|while|whereas|except|no,|wrong)\b", re.I)
_BEGINS = r"(?:(?:it|this)(?: is|'s) )?%s(?:\s*(?:of|/)\s*\d+)?\s*(?:[:.;]|\Z|because\b)"
_TOKENS = re.compile(r"[^\W_]+")
_NOT = re.compile(
    r"\bca(?:n't|n ?not)\b|n't\b|\b(?:never|nowhere|in no way|far from)\b|\bfail(?:s|ed|ing)? to\b"
)
_FOR = re.compile(
    r"\b(un)?(?:me(?:t|ets?|eting)|satisf(?:y|ies|ied|ying)|fulfill?(?:s|ed|ing)?|pass(?:es)?)\b"
)
_HINT = re.compile(  # the words of a verdict and TITLES
    r"met\b|meet|satisf|fulfil|fail|violat|verdict|rat(?:e|ing)|level|status|decision|judge?ment|"
    r"criterion|score|grade",
    re.I,
)
_OF = re.compile(r"(?<=\d)\s*(?:/|(?:out )?of)\s*(\d+(?:\.\d+)?)")
TITLES = frozenset(
    "verdict rating rate rated level status decision judgement judgment criterion score "
    "grade".split()
)
SUBJECTS = frozenset("requirement requirements condition demand standard bar".split())
MODAL = frozenset("would d must should to".split())  # a wish or a duty, but in an opinion
OPINIONS = frozenset(
    "say call mark marked rate verdict rating decision appears seems conclude consider considered "
    "judge judged deem deemed find regard regarded".split()
)
LABELS = (
    TITLES
    | SUBJECTS
    | MODAL
    | frozenset(
        "the this my it itself is was are been be being has have had do does did final for on of "
        "and so hence thus therefore then overall accordingly consequently also still indeed "
        "clearly fully completely answer response text submission result conclusion assessment "
        "evaluation outcome i conclude judge judged mark marked find appears seems remains "
        "definitely certainly applies s boxed m say call called considered counted right correct "
        "label in by any way here at all that as now sum summary consider deem deemed regard "
        "regarded believe think hold view opinion means makes leaves marking goes left clear "
        "follows really actually simply sadly unfortunately regrettably ultimately thereby ergo "
        "case vote choose assign appropriate successfully assistant model reason reasons these "
        "stated specified given going".split()
    )
)


def _level(c: Criterion, reason: str) -> State | None:
    """The level that a reason is, word by word, or whose name it begins with: "Score 1: ..."."""
    for i, level in enumerate(c.levels):
        name, colon, _ = level.partition(":")
        if not colon or name.isdecimal():
            continue
        if re.match(_BEGINS % re.escape(name), reason, re.I):
            return "level", i / (len(c.levels) - 1)
    return word(c, reason)


def stated(
    reason: str, name: str, criteria: Mapping[str, Criterion]
) -> Iterator[tuple[str, State, str]]:
    """(id, (status, value), its words) of each verdict that the reason of `name` states.

    >>> c = {"c1": Criterion(id="c1", text="names Paris")}
    >>> {s for _, (s, _), _ in stated("No capital, hence unmet. VERDICT c1: not met", "c1", c)}
    {'unmet'}
    >>> list(stated("It says that the deadline is not met. Although it is met in part.", "c1", c))
    []
    """
    if len(reason) > 2 * REASON:  # its begin and its end
        reason = f"{reason[:REASON]}\n{reason[-REASON:]}"
    c = criteria[name]
    whole = c.scale == "points" or (c.levels and " " in reason)
    level = _level(c, reason.strip()) if whole else None  # of any length
    if level and level[1] is not None:
        yield name, level, reason
    levels = [v for c in criteria.values() for v in c.levels]
    told = unicodedata.normalize("NFKC", reason).replace("\u2019", "'")
    if not levels and not _HINT.search(told) and name not in told:  # as most
        return
    text = _LONG.sub(" ", told)
    if c.scale == "points":  # "2 of 5" is 2
        text = _OF.sub(lambda m: m[0] * (float(m[1]) != (c.points or 1)), text)
    for line in text.split("\n"):
        for clause, rest in _statements(line):
            found = _clause(clause, rest, name, criteria)
            if found:
                yield *found, clause


def _statements(line: str) -> Iterator[tuple[str, str]]:
    """(words, what follows) where a judgement stands, if anywhere: at either edge of a line."""
    sentences = [m for m in _SENTENCES.finditer(line) if _TOKENS.search(m[0])]
    for m in sentences[:1] + sentences[1:][-1:]:
        if m[0].endswith("?"):
            continue
        for end in _ENDS.finditer(m[0][:LONGEST]):
            yield m[0][: end.start()], line[m.start() + end.start() :]
    so = _SO.fullmatch(sentences[-1][0].strip()) if sentences else None
    if so and not _TOLD.search(so[0][: so.start(1)]):
        yield so[1], ""
    for m in _TAIL.finditer(sentences[-1][0][-4 * LONGEST :] if sentences else ""):
        lead = m.string[: m.start()]
        tail = m.string[m.end() :]
        if len(tail) <= LONGEST and _STRONG.match(tail) and not _LED.search(lead):
            yield tail, ""


def _clause(
    clause: str, rest: str, name: str, criteria: Mapping[str, Criterion]
) -> tuple[str, State] | None:
    """The id and the verdict that a clause is, if it is nothing else.

    Without an id or a title only the very words that were asked for are one, where nothing takes
    them back: "No" may answer another thing, and a number may count the lines. What the criterion
    itself speaks of ("omits a requirement") is no title.
    """
    fold = {n.casefold(): n for n in criteria}
    words = _TOKENS.findall(_FOR.sub(r"\1met", _NOT.sub(" not ", clause.casefold())))
    ids = [  # "a", "it" and "date" are words, too
        w
        for before, w in zip(["", *words], words, strict=False)
        if w in fold and ((before in TITLES and w not in LABELS) or any(map(str.isdigit, w)))
    ]
    own = fold[ids[0]] if ids else None
    left = [  # without ids, also in other letters
        w for w in words if w not in ids and w not in LABELS and (w.isascii() or w.isalpha())
    ]
    said = " ".join(left).replace("not met", "unmet")
    c = criteria[own or name]
    names = TITLES - {"criterion"} | SUBJECTS
    asked = c.text.casefold()
    titled = own or not TITLES.isdisjoint(words)
    plain = said in ("met", "unmet", *(v.casefold() for v in c.levels)) and not said.isdigit()
    opinion = not OPINIONS.isdisjoint(words) and words[0] not in ("for", "to")
    wish = not MODAL.isdisjoint(words) and not opinion
    if not said or not (titled or plain) or wish or _TAKEN.match(rest):
        return None
    theme = not own and any(w.removesuffix("s") in asked for w in names.intersection(words))
    if theme or (not titled and (_TURN.search(rest) or _FOR.search(_NOT.sub(" met ", asked)))):
        return None
    state = word(c, "unmet" if said in ("fails", "violates", "violated") else said)
    return (own or name, state) if state is not None and state[1] is not None else None
