"""Rubrics that are texts: their lines as criteria where each line has a known role, and points that
stand in a text."""

from __future__ import annotations

import re
from itertools import groupby
from typing import TYPE_CHECKING, Any

from .levels import STEP
from .names import pitfall

if TYPE_CHECKING:
    from .rows import Row

_UNIT = (
    r"(?:points?|pts?|marks?|credits?|punkte?|puntos?|pontos?|punti|балл\w*|[分点點점]|คะแนน)(?!\w)"
)
_N = rf"([+\-\u2212]\s?\d+(?:\.\d+)?|\d+(?:\.\d+)?(?=\s*{_UNIT}))"
_ANY = r"([+\-\u2212]?\d+(?:\.\d+)?)"
_GIVE = (
    r"award|give|adds?|deducts?|subtracts?|removes?|take off|minus|plus|los[et]s?|gains?|gets?"
    r"|earns?|receives?|costs?"
)
_IF = r"(?:if|for|when|where|unless|per|wenn|für|bei|si|pour|para|por|se|per)\b"
# points that are written into a criterion's text: "[-5] ...", "... (2 points)", "-5: ..."
POINTS = re.compile(
    rf"\A[\s*_(\[]*{_N}\s*(?:{_UNIT}\.?)?\s*(?:[)\]）】]|:|(?<=\w\.)\s)"
    rf"|\A[\s*_(\[]*(?:weight|points?|marks?|w)[\s*_]*[:=]\s*{_ANY}"
    rf"|[(\[（【](?:(?:weight|points):?\s*)?{_N}\s*(?:{_UNIT}\.?)?[)\]）】]\s*\.?\Z"
    rf"|[(\[（【](?:plus|minus|max\.?|penalty:?)\s*{_ANY}\s*(?:{_UNIT}\.?)?[)\]）】]\W*\Z"
    rf"|[(\[（【]{_ANY}\s*{_UNIT} \w+[)\]）】]\W*\Z|[.!?。]\s*{_ANY}\s*{_UNIT}\W*\Z"
    rf"|\A\W*{_ANY}\s*(?:punkte? abzug|点[加減]点|점 ?[가감]점)"
    rf"|{_ANY}(?:点[加減]点|점 ?[가감]점)\W*\Z"
    rf"|[(\[（【]?\b(?:weight|points|w)(?:\s*[:=]\s*|\s+){_ANY}[)\]）】]?\s*\Z"
    r"|:\s*([+\-\u2212]\d+(?:\.\d+)?)\s*\Z"
    rf"|(?:[-=]>|[→⇒])\s*{_ANY}\s*(?:{_UNIT})?\W*\Z"
    rf"|\A[\W_]*([+\-\u2212]\s?\d+(?:\.\d+)?)[\s*_]*(?:{_UNIT}\.?)?[\s*_]+(?:(?-i:[A-Z])|{_IF})"
    rf"|\A\W*(?:up to )?(\d+(?:\.\d+)?)\s*{_UNIT},?\s+{_IF}"
    rf"|\A\W*(?:{_GIVE})\s+(?:up to )?(\d+(?:\.\d+)?)\s*(?:{_UNIT}|{_IF})"
    r"|[得扣加减给]\s*(\d+(?:\.\d+)?)\s*分"
    rf"|(?:[:–—]|\s-|\bworth)\s*(\d+(?:\.\d+)?)\s*(?:{_UNIT}|p\b)\.?\s*\Z",
    re.IGNORECASE,
)
# what is a weight only where each text of a list says it, too: "(20%) ...", "... /2"
PAID = re.compile(
    rf"{POINTS.pattern}|\A[\W_]*\d+(?:\.\d+)?\s*%\W|[(\[（【]\s*\d+(?:\.\d+)?\s*%\s*[)\]）】](?:\W*\Z|:)"
    r"|\s/\s*\d+\W*\Z"
    rf"|[(\[（【]\s*\d+(?:\.\d+)?\s*(?:{_UNIT}|p)\s*[)\]）】]",
    re.IGNORECASE,
)
COUNTED = re.compile(  # numbers, or what each is worth
    r"\W*(?:[(\[](\d+)[)\]]|(\d*\.\d+)\s*:)\s"
)
_ITEM = rf"\s*points:\s*{_ANY},\s*item:\s*"
# the same before each text of a list: then it is their weight
PRICED = re.compile(
    r"[\s*_(\[]*([+\-\u2212]\s?\d+(?:\.\d+)?)\s*(?:[Pp]oints?|pts?)?[\s*_)\]:]+(?![a-z])(?=\w)"
    rf"|(?i:{_ITEM})"
)
MARK = re.compile(  # the mark of a line in a list; lines that say their points are one, too
    r"(\s*)(?:([-+*•‣◦▪●○–—✓✔✅✗✘❌☐☑→➢])\ufe0f?|\(?(?:\d{1,3}|([a-z]))[.)])\s+"
    rf"(?:\[[ x]?\]\s+)?(?=\S)|(?={_ITEM})",
    re.I,
)
SCORE = re.compile(
    rf"(?:[-*•]\s+)?[\s*]*(?:score|level|rating)\s+({STEP})[\s*]*(?:[:：=]|[–-](?!\s*\d))"
    r"[\s*]*(?P<said>\S.*)",
    re.I,
)
SCORED = re.compile(r"\W*(?:score|level|rating)\s+\W?\d", re.I)  # a step, however it goes on
LADDER = re.compile(  # a step of a scale that is called by its number, a grade or its worth
    rf"(?!{_ITEM})\W*(?:"
    r"(?:scores?|grades?|levels?|ratings?|stars?|points?|marks?|bands?|tiers?|stufe|niveau|nivel)"
    r"[\W_]*(?:\d|(?-i:[A-F][+-]?|[IVX]+)(?!\w))"
    r"(?=.{0,20}?(?:[:：=＝(\[（]|\s[-–—]\s|[.)]\s))"
    rf"|(?:(?!\d{{4}}|[1-9]\d*\.\d){STEP}(?:\s*{_UNIT}|\s*/\s*\d+(?=\s*[:：(]))?|[A-F][+-]?"
    r"|(?-i:[IVX]+)(?=\s*[:：])|(?<=[★☆⭐])\ufe0f?|excellent|outstanding|exceptional|superior"
    r"|strong|high|medium|moderate|(?:very )?(?:good|low|poor|bad|weak)|fair|ok|average|adequate"
    r"|acceptable|inadequate|(?:in)?sufficient|(?:un)?satisfactory|exemplary|proficient|limited"
    r"|minimal|advanced|developing|emerging|beginning|basic"
    r"|(?:full|half|partial|no) (?:credit|points|marks))"
    r"(?:\s*[(\[（][^)\]）]*[)\]）])?[\s*]*(?:[:：=＝]|\s[-–—])[\s*]*[^\W\d])",
    re.I,
)
DEGREE = re.compile(  # a step of a scale in words: how much, and of what
    r"\W*(not(?: at all)?|hardly|barely|slightly|somewhat|partly|partially|moderately|fairly|mostly"
    r"|quite|very|extremely|highly|completely|fully|totally)(?: (\w+))?\W*",
    re.I,
)
RANK = re.compile(  # what a text says before its colon of how much it counts
    r"\W*(essential|important|optional|critical|crucial|vital|mandatory|bonus|major|minor|pitfall"
    r"|(?:must|nice to)[ -]have)(?: criteri(?:a|on))?[\s*_]*[:)\]]",
    re.I,
)
HEADING = re.compile(r"\s*#|.*:[\s*_]*\Z|\s*(\*\*|__).+\1\s*\Z")
TITLE = re.compile(
    r"\W*(?:(?:the|a|grading|scoring|evaluation|marking) )*(?:rubrics?|criteria|checklist)\b"
    r"[^.!?]*\Z",
    re.I,
)
AGAINST = re.compile(  # of a heading, or of what stands before a line's colon: it must not be
    r"\b(?:(?:must|should|do|does|is|are)?(?: not|n['’]t)\b|not\b|never|avoid|negativ|pitfall|penal"
    r"|deduct|weak|red flag|mistake|error|forbid|prohibit|undesir|unaccept|unwanted|disqualif|fail"
    r"|minus|los[es]|cons\b|wrong|bad|poor|worst|violat|harm(?!less|on)|lack|missing|against|reject"
    r"|exclude|omit|without|un(?!der|i[tqv]|til)\w{4}|mis(?!sion)\w{4}|dis(?:allow|courag)"
    r"|irrelev|off.topic|in(?:accura|correct|complet|consist|appropriat|sufficien|valid)"
    r"|don['’]?ts?\b|no\b(?![.-]?\s*\d)|none\b|nothing|nobody|neither|nor\b|zero\b|absen"
    r"|refus|refrain|abstain|declin\w* to\b|prevents?\b|le(?:av\w+|ft) out|withh[eo]ld|conceal"
    r"|hides?\b|(?:free|clear) (?:of|from)|(?:keep|stay|steer)\w* (?:out|away|from|clear)"
    rf"|costs?\b.*(?:{_UNIT}|\d)|nicht|kein|ohne\b|vermeid|verbot)",
    re.I,
)
KNOWN = re.compile(  # of a heading: what stands there is asked for, all of it
    r"\A(?!.*\b(?:any|some|one|two|three|four|five|\d+|most|many|few|either) of\b|.*, if\b"
    r"|.*\b(?:may|can|could|might|nice|ideal(?:ly)?|option\w+|preferabl[ey]|need(?:n.t| not))\b)"
    r".*(?:rubric|criteri|require|checklist|should|must|includ|contain|mention|positiv|good|correct|pros\b"
    r"|strength|accura|complet|clar|styl|\btone|format|structur|content|relevan|fact|coheren|fluen"
    r"|depth|organi|gramm|languag|length|safe|helpful|quality|instruction|reason|evidence|citation"
    r"|source|creativ|understand|method|analys|presentation|conclusion|introduction"
    r"|summar|vocabular|spelling|punctuation|logic|flow\b|design|argument|research|knowledge|techn"
    r"|implement|function|result|explan|detail|specific|concis|audience|purpose|ethic)",
    re.I,
)
RANKS = re.compile(  # of a heading: what stands there counts more, or less, than the rest
    rf"essential|important|optional|bonus|to have|must.have|critical|minor|major|primary|secondary"
    rf"|partial|weight|extra|\d\s*(?:%|{_UNIT})",
    re.I,
)
LABEL = re.compile(  # before an item's colon
    r"\W*(?:pitfalls?|negatives?|penalt(?:y|ies)|avoid|(?:must|should|do) not|don['’]?ts?|bad"
    r"|red flags?|forbidden|prohibited|deductions?|minus)(?: criteri(?:a|on)| points?)?[\s*_]*:",
    re.I,
)
COST = re.compile(  # of an item: what it says costs
    r"\W*(?:[✗✘❌👎🚫⛔]|penali[sz]ed?\b"
    r"|(?:deduct|subtract|take off)(?:[\s*_]*:|\s+(?:if|for|when)\b)"
    r"|(?:deduct|subtract|take off|remove|minus|los[et]s?|costs?)s?\b[^.]*"
    rf"\b(?:\d+(?:\.\d+)?|an?|one|two|three|half|full|all)[\s-]*{_UNIT}"
    r"|(?:mistakes?|errors?|wrong|incorrect|fail(?:ure)?s?|faults?|flaws?|violations?)[\s*_]*:)"
    r"|[\s*_]*[-\u2212]\s?\d+(?:\.\d+)?\s+"
    r"(?!(?:is|are|was|as|to|or|and|for|in|degrees?)\b)(?-i:[a-z])",
    re.I,
)
ENDED = re.compile(r"[.!?。！？।…;；][\W_]*\Z")  # a line, as a sentence does
TORN = re.compile(  # a line within a sentence
    r"(?:[,，、]|\b(?:the|an|and|or|of|to|with|that|which|than|by|from|at|und|oder|der|die|das|den"
    r"|dem|des|ein\w{0,2}|von|vom|zu[mr]?|mit|für|et|ou|les?|la|du|une?|de|que|el|los|las|del))\s*\Z"
)
BARRED = re.compile(  # the name of a group that must not be: no topic
    r"(?:\S+ ){0,5}(?:(?:must|should|shall|may|can|do|to) ?(?:not|never|n['’]t)\b(?: \S+){0,3}"
    r"|not|never|avoid(?:ed)?|not allowed)\W*",
    re.I,
)
# a line that is no criterion: a table, a mark-up, a heading without a colon, a note
OTHER = re.compile(
    r"\s*(?:\||```|~~~|[\[{]\s*[\"'{]|<(\w+)[^>]*>.*</\1>|(?:total|notes?|nb|instructions?)\s*:"
    r"|[#*\s]*(?:must not|should not|do not|don't|avoid|negative|pitfall|penalt)[^.]*:?[*\s]*\Z)"
    r"|.*\|\s*:?-{3,}",
    re.I,
)


FENCE = re.compile(r"\s*(?:```|~~~)")
NUMBER = re.compile(  # digits of any script, and what a word or a CJK numeral counts
    rf"[\d\u00b2\u00b3\u00b9\u00bc-\u00be\u2070-\u2079\u2150-\u2182\u2460-\u249b]"
    rf"|\b(?:one|two|three|four|five|six|seven|eight|nine|ten|half|double|partial|full)\s+{_UNIT}"
    r"|[一二两三四五六七八九十]\s*[分点點점]",
    re.I,
)


def worth(said: str) -> float:
    """The number of points that a text says.

    >>> worth("\u2212 2"), worth("+1.5")
    (-2.0, 1.5)
    """
    return float(re.sub(r"\s", "", said).replace("\u2212", "-"))


def counts(text: str, place: int) -> bool:
    """True for a text that holds a number, which is neither its place in the list nor points that
    another rule reads or refuses.

    >>> counts("Two points for a name", 1), counts("1. Is polite", 1), counts("No. 7", 1)
    (True, False, True)
    """
    own = re.match(rf"\W*[A-Za-z]{{0,9}}\s*{place}\W", text)
    return bool(NUMBER.search(text, own.end() if own else 0)) and not POINTS.search(text)


def lines_of(row: Row, text: str, field_name: str) -> list[Any]:
    """The criteria of a text: the items of its list, or its lines; one with levels where lines are
    its scores. None where a line has no role that is known: that is an error."""
    lines = [x.rstrip() for x in text.expandtabs().split("\n") if re.search(r"[\w|]|```|~~~", x)]
    if len(lines) > 2 and FENCE.match(lines[0]) and FENCE.match(lines[-1]):
        lines = lines[1:-1]
    lines = lines or [text.strip()]
    steps = [m for line in lines if (m := SCORE.match(line))]
    if len(steps) > 1:
        asked = lines[: lines.index(steps[0].string)]
        last = {m[1]: m for m in steps}
        fine = {m.string for m in last.values()}.union(x for x in asked if not SCORED.match(x))
        wrong = [x for x in lines if x not in fine]
        made: list[Any] = [
            {"text": " ".join(asked), "levels": {n: m["said"] for n, m in last.items()}}
        ]
    else:
        made, heads, wrong = _items(lines)
        wrong += [x for x in heads if AGAINST.search(x)]
        for title in heads:
            row.keep(f"heading of {field_name}", title)
        if heads and not (wrong or KNOWN.search(heads[-1])):
            _asked(row, heads[-1], field_name)
    if not wrong:
        return made
    row.aside(
        "rubric-text",
        field_name,
        text,
        f"the line {wrong[0].strip()[:60]!r} cannot be read: it is no item of one list, nor a "
        "title of what is asked for; the text gives no criterion",
        severity="error",
        suggestion="write the criteria as a list of objects, each with its weight and levels",
    )
    return []


def doubt(row: Row, group: str, field_name: str, *, sure: bool) -> None:
    """Say that the name of a group of criteria is or may be against them, unless they say by their
    own weights what they count (sure)."""
    barred = LABEL.match(f"{group}:") or BARRED.fullmatch(group) or pitfall("criterion_type", group)
    if not sure and not pitfall("criterion_group", group) and AGAINST.search(group):
        _asked(row, group, field_name, "error" if barred else "warning")


def _asked(row: Row, head: str, field_name: str, severity: str = "warning") -> None:
    row.find(
        "rubric-text",
        f"what stands below {head.strip()[:60]!r} is read as asked for",
        severity=severity,
        field=field_name,
        suggestion="where it must not be, write objects, each with a weight below 0",
    )


def _items(lines: list[str]) -> tuple[list[str], list[str], list[str]]:
    """(items, headings, lines that are neither) of a text."""
    marks = {x: m for x in lines if (m := MARK.match(x))}
    first = next(iter(marks.values()), None)
    items: list[str] = []
    roles: list[tuple[str, str]] = []
    for line in lines:
        mark = marks.get(line)
        said = line[mark.end() :] if mark else line.strip()
        begun = bool(items) and (first is not None or not items[0][0].islower())
        roles.append((_role(line, mark, first, begun), line))
        if roles[-1][0] == "item":
            items.append(said)
        elif roles[-1][0] == "more":
            items[-1] += f" {said}"
    wrong = [x for role, x in roles if role == ""]
    steps = [x for role, x in roles if LADDER.match(x[marks[x].end() :] if x in marks else x)]
    degrees = [m for x in items if (m := DEGREE.fullmatch(x))]
    told, of = ({m[i] and m[i].casefold() for m in degrees} for i in (1, 2))
    if len(steps) > 1 or (len(told) > 1 and len(of - {None}) < 2):
        wrong += steps or items
    if first is None:  # it may be prose, torn where a line is full
        full = any(map(ENDED.search, items))
        wrong += [x for x in items[:-1] if TORN.search(x) or (full and not ENDED.search(x))]
    heads = [x for role, x in roles if role == "head"]
    runs = [(role, [x for _, x in run]) for role, run in groupby(roles, key=lambda r: r[0])]
    parts = [run[-1] for role, run in runs if role == "head"]
    if len(parts) + (runs[0][0] != "head") > 1:
        wrong += [x for x in parts if RANKS.search(x) or not KNOWN.search(x)]
    return items, heads, wrong


def _role(line: str, mark: Any, first: Any, begun: bool) -> str:
    """What a line is: "item", "head", "more" of the item before, or "". first : the mark of the
    text's first item, None where it has no list."""
    goes_on = begun and line.lstrip()[0].islower()  # with the sentence of the line before
    plain = first is None and not goes_on
    said = line[mark.end() :] if mark else line
    turned = LABEL.match(said) or (COST.match(said) and not PRICED.match(said))
    fits = {"item": plain and not (HEADING.match(line) or OTHER.match(line) or turned)}
    if mark:
        alike = mark.group(1, 2) == first.group(1, 2) and (not mark[3]) == (not first[3])
        fits = {"item": alike and not (turned or mark[2] in tuple("✗✘❌"))}
    elif first:
        deeper = len(line) - len(line.lstrip()) > len(first[1] or "")
        fits = {"head": not begun and TITLE.match(line), "more": begun and deeper}
    fits["head"] = not mark and (HEADING.match(line) or fits.get("head"))
    return next((role for role in ("head", "item", "more") if fits.get(role)), "")
