"""Rubrics that are texts: their lines as criteria where each line has a known role, and points that
stand in a text."""

from __future__ import annotations

import re
from collections.abc import Collection
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
_TAKE = (
    r"deducts?|subtracts?|removes?|takes? (?:off|away)|minus|los[et]s?|costs?|docks?|penali[sz]es?"
    r"|forfeits?"
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
    rf"|\A\W*(?:award|give|adds?|plus|gains?|gets?|earns?|receives?|{_TAKE})"
    rf"\s+(?:up to )?(\d+(?:\.\d+)?)\s*(?:{_UNIT}|{_IF})"
    r"|[得扣加减给]\s*(\d+(?:\.\d+)?)\s*分"
    rf"|(?:[:–—]|\s-|[,;(]\s*worth)\s*(\d+(?:\.\d+)?)\s*(?:{_UNIT}|p\b)\.?\s*\Z",
    re.IGNORECASE,
)
# what takes from an answer that does it: "Deduct 1 point ...", "No credit if ..."
TAKES = re.compile(
    rf"\W*(?:{_TAKE})\s+(?:up to )?(?:(?:\d+(?:\.\d+)?|an?|one|two|three|four|five|half(?: an?)?"
    rf"|full|all|some)\s*{_UNIT}(?! of\b)|(?:{_UNIT}|\d+(?:\.\d+)?)\s+{_IF})"
    r"|\W*(?:(?:automatic(?:ally)?|instant|immediate) )?(?:fail(?:s|ure)?|reject|zero|penalty"
    rf"|(?:no|zero) (?:{_UNIT})|mark(?:ed)? down|disqualif\w+) (?:if|when|unless)\b"
    r"|\W*(?:reduce|lower|decrease|drop|cut) (?:the|its) (?:\w+ )?(?:score|grade|mark|rating)s?\b",
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
    r"(\s*(?:[-+*•‣◦▪●○–—✓✔✅☐☑→➢]\ufe0f?|\(?(?:\d{1,3}|[a-z])[.)]))\s+"
    rf"(?:\[[ x]?\]\s+)?(?=\S)|(?={_ITEM})",
    re.I,
)
SCORE = re.compile(
    rf"(?:[-*•]\s+)?[\s*]*(?:score|level|rating)\s+({STEP})[\s*]*(?:[:：=]|[–-](?!\s*\d))"
    r"[\s*]*(?P<said>\S.*)",
    re.I,
)
SCORED = re.compile(r"\W*(?:score|level|rating)\s+\W?\d", re.I)  # a step, however it goes on
_RANKS = (
    r"(essential|important|optional|critical|crucial|vital|mandatory|required|bonus|major|minor"
    r"|pitfall|(?:must|should|could|nice to)[ -]have)(?: criteri(?:a|on))?"
)
RANK = re.compile(  # what a text says, before its colon or behind it, of how much it counts
    rf"\W*{_RANKS}[\s*_]*[:)\]]|\W*(must|should|could|may|P\d)[\s*_]*[:\]]"
    rf"|\W*\[(high|medium|low)\b[^\]]*\]|.*[(\[]{_RANKS}[)\]]\W*\Z",
    re.I | re.S,
)
# the one heading that a list may have
HEAD = re.compile(
    r"[\W_]*(?:(?:the|a|grading|scoring|evaluation|marking) )*"
    r"(?:rubrics?|criteria|checklist|requirements)(?: for (?:this|the) \w+)?[\W_]*"
    r"|[\W_]*(?:(?:the|a|an|your|good|ideal|correct) )*(?:(?:answer|response|reply|output|it) )?"
    r"(?:should|must)(?: (?:do|be|have|include|contain|mention|state))?"
    r"(?: (?:all of )?(?:the following|these)(?: (?:information|points|elements|items))?)?"
    r"[\s*_]*:[\s*_]*",
    re.I,
)
ENDED = re.compile(r"[.!?。！？।…;；][\W_]*(?:\[[^\]]*\])?\Z")  # a line, as a sentence does
_MADE = r"(?:it|answers?|responses?|repl(?:y|ies)|outputs?|essays?|submissions?|summar(?:y|ies))"
_TOLD = (  # what a grader is told
    rf"{TAKES.pattern}|(?:{_TAKE})\b.*\b(?:\d+|an?|one|two|half)\s{_UNIT}|(?:{_TAKE})\s\d+\s{_IF}"
    rf"|(?:score|rate|grade|mark|judge|evaluate|assess|rank)\s(?:\S+\s){{0,6}}{_MADE}\b"
    r"|you are an? |(?:the )?(?:\w+ )?(?:score|grade|mark|rating) (?:is|are|should|must|drops)\b"
    r".*\s(?:if|when|where|unless)\b"
    rf"|(?:\S+\s){{0,3}}{_MADE}\s(?:(?:los[et]s?|gets?|receives?|earns?|scores?)\s(?:\w+ )?"
    rf"(?:nothing|zero|{_UNIT})"
    r"|(?P<such>(?:that|which|with|without|lacking)\s.*\s)?(?:fails?|pass(?:es)?"
    r"|(?:is|are|counts? as) (?:wrong|right|(?:in)?correct|bad|good|poor|(?:in)?valid"
    r"|(?:un)?acceptable|an? (?:fail|pass)\w*))(?(such)\W*\Z| (?:if|when|unless)\b))"
)
_WORD = r"[\w'’/&+-]+"
# what an item may be: words, and before them no name with a colon (of a topic, a step, a rank), no
# number but of things, nothing that a grader is told; within them no second item
PLAIN = re.compile(
    rf"(?!{_WORD}(?:[:：]|[\s*_]+[-–—:：]\s))"
    rf"(?!(?!\w+s\s){_WORD}(?:\s{_WORD}){{1,2}}[\s*_]*(?:[:：](?!\S)|\s[-–—]\s))"
    rf"(?!{SCORED.pattern}|(?:or|and)\b|.*\s(?:or|and),?\Z)"
    # a step of a scale in words
    r"(?!(?:not(?: at all)?|hardly|barely|slightly|somewhat|partly|partially|moderately|fairly"
    r"|mostly|quite|very|extremely|highly|completely|fully|totally)(?: \w+)?\W*\Z)"
    r"(?!(?:excellent|good|fair|poor|bad|weak|strong|high|medium|low|ok|average|(?:in)?adequate"
    r"|(?:un)?(?:acceptable|clear|satisfactory))\W*\Z)"
    # what a grader is told
    r"(?!(?:pass|bonus|full|half|partial|no|yes|true|false|accept|grade|score|\d+)"
    r"\s(?:\S+\s)?(?:if|unless|when)\b"
    r"|(?:an? |the )?(?:poor|bad|weak|wrong|failing)"
    rf"\s(?:answer|response|repl)|(?:an?|one|two|three|half|full|no|extra|\d+)\s{_UNIT})"
    r"(?!(?:do not |never )?(?:award|reward|deduct|penali[sz]e)\b)"
    rf"(?!{_TOLD})"
    r"(?!.*;\s*\d{1,2}\W*\Z)"
    r"(?!.*\s[•‣◦▪●✓✔✅☐☑]\s)[\"'“”‘„«`$\\¿¡]*(?:[^\W\d_]|\d\S*\s+[^\W\d_])",
    re.I,
)
LABEL = re.compile(  # before an item's colon
    r"\W*(?:pitfalls?|negatives?|penalt(?:y|ies)|avoid|(?:must|should|do) not|don['’]?ts?|bad"
    r"|red flags?|forbidden|prohibited|deductions?|minus)(?: criteri(?:a|on)| points?)?[\s*_]*:",
    re.I,
)
BARRED = re.compile(  # the name of a group that must not be: no topic
    r"(?:\S+ ){0,5}(?:(?:must|should|shall|may|can|do|to) ?(?:not|never|n['’]t)\b(?: \S+){0,3}"
    r"|not|never|avoid(?:ed)?|not allowed)\W*",
    re.I,
)
AGAINST = re.compile(  # of a group's name: what it holds may be what must not be
    r"(?:\b|n['’])(?:not?\b(?![.-]?\s*\d)|t\b|never|none\b|nothing|neither|don['’]?ts?\b|avoid|negativ"
    r"|pitfall|penal|deduct|weak|red flag|mistake|error|forbid|prohibit|unaccept|unwanted|undesir"
    r"|disqualif|fail|minus|los[es]|cons\b|flaw|fault|drawback|downside|wrong"
    r"|bad|poor|worst|violat|harm(?!less)|lack|missing"
    r"|against|exclude|omit|without|absen|refrain|irrelev|off.topic|in(?:accura|correct|complet)"
    r"|nicht|kein|ohne\b|vermeid|verbot)\w*",
    re.I,
)
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
    """The criteria of a text, which has one of these forms: a list whose items have one mark, a
    sentence a line, one line, or a question with its scores (one criterion with levels). None where
    it has another: that is an error."""
    lines = [x.rstrip() for x in text.expandtabs().split("\n") if x.strip()] or [""]
    made, wrong = _scored(lines) or _items(lines)
    if wrong is None:
        return made
    row.aside(
        "rubric-text",
        field_name,
        text,
        f"the line {wrong.strip()[:60]!r} cannot be read: a rubric as text is a list with one "
        "mark, or a sentence a line, without headings, names before a colon, points, ranks or "
        "steps of a scale; the text gives no criterion",
        severity="error",
        suggestion='write a list of objects: [{"text": "Names Paris", "weight": 1}, ...]',
    )
    return []


def doubt(row: Row, group: str, field_name: str, weights: Collection[float]) -> None:
    """Say that the name of a group of criteria is or may be against them; where all have weights
    of their own, only if it is nothing but such a word, and none where one is not above 0."""
    barred = LABEL.match(f"{group}:") or BARRED.fullmatch(group) or pitfall("criterion_type", group)
    found = (AGAINST.fullmatch if weights else AGAINST.search)(group)
    if found and min(weights, default=1) > 0 and not pitfall("criterion_group", group):
        row.find(
            "rubric-text",
            f"what stands below {group.strip()[:60]!r} is read as asked for",
            severity="error" if barred and not weights else "warning",
            field=field_name,
            suggestion="where it must not be, write objects, each with a weight below 0",
        )


def _scored(lines: list[str]) -> tuple[list[Any], None] | None:
    """The one criterion of a question whose other lines are its scores; None for other lines."""
    steps = [SCORE.match(x) for x in lines]
    asked = steps.count(None)
    levels = {m[1]: m["said"] for m in steps[asked:] if m}
    fits = len(levels) == len(lines) - asked > 1 and not any(map(SCORED.match, lines[:asked]))
    return ([{"text": " ".join(lines[:asked]), "levels": levels}], None) if asked and fits else None


def _items(lines: list[str]) -> tuple[list[str], str | None]:
    """(the items of a text's list, or its sentences; the first line that is neither)."""
    lines = lines[1:] if len(lines) > 1 and HEAD.fullmatch(lines[0]) else lines
    items: list[str] = []
    due: str | None = None  # the next item's mark
    for line in lines:
        m = MARK.match(line)
        mark = m and (m[1] or "")
        said = line[m.end() :] if m else line.strip()
        apart = m or not items or ENDED.search(items[-1]) or PRICED.match(said)
        deeper = len(line) - len(said) > len(due or "") - len((due or "").lstrip())
        more = not due or (PLAIN.match(said) and re.search(r"\s|\W\Z", said))
        if apart and (mark == due or not items):
            items.append(said)
            due = mark and re.sub(r"\d+", lambda n: str(int(n[0]) + 1), mark)
            due = due and re.sub("[A-Za-z]", lambda a: chr(ord(a[0]) + 1), due)
        elif deeper and not m and due is not None and more:
            items[-1] += f" {said}"
        else:
            return [], line if due else lines[0]
    if len(items) > 1 and all(map(PRICED.match, items)):
        return items, None
    again = f" {(due or lines[0]).strip()} "  # a list in one line
    wrong = [x for x in items if not PLAIN.match(x) or RANK.match(x)]
    wrong += items if len(lines) < 2 and again in items[0] else []
    return items, next(iter(wrong), None)
