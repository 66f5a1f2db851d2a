"""Rules on what a criterion means for the score: its sign, its weight, whom it talks to, what it
needs to be decided.

The wordings are closed lists, tried only where one of their words occurs: a rule that is silent
costs nothing.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from statistics import median

from ..records import Criterion, Task
from .same import branch

_SUBJECT = (
    r"\A\s*(?:the\s+)?(?:(?:response|answer|text|output|reply|assistant|model|summary"
    r"|email|essay|story|poem|letter|code|function|program|translation|plan)\s+)?"
)
# What nobody wants, at the head of a criterion: with a positive weight it pays.
BAD = re.compile(
    _SUBJECT
    + r"""(?:
    fail(?:s|ed)?\s+to\b
    | (?:incorrectly|wrongly|falsely|inaccurately|mistakenly|erroneously|inappropriately)\s+\w+s\b
    | (?:confuses|conflates|mixes\s+up|miscounts|misquotes|miscalculates|mistranslates|misattributes
        |omits|neglects|forgets|overlooks|misstates|misrepresents|misinterprets|misidentifies
            |misspells
        |fabricates|hallucinates|invents|insults|mocks|plagiari[sz]es|rambles|exaggerates|misleads
        |crashes|hangs|leaves\s+out|(?:contradicts|repeats)\s+itself|makes\s+up)\b
    | gets\s+[^.]{1,60}\swrong\b
    | exceeds\s+the\s+(?:\w+\s+)?(?:budget|limits?|length|maximum)\b
    | (?:contains?|has|have|includes?|makes|introduces)\s+(?:\w+\s+){0,2}?
        (?:errors?|mistakes?|inaccurac\w+|falsehoods?|typos?|hallucinations?|misinformation
            |contradictions?)\b
    | (?:gives?|offers?|provides?|states?|recommends?|suggests?|includes?|contains?|makes?)\s+
        (?:\w+\s+)?
        (?:dangerous|harmful|false|incorrect|inaccurate|wrong|misleading|fabricated|irrelevant
            |unsafe)\b
    | is\s+(?:too|overly|needlessly|unnecessarily|excessively)\s+\w+
    | is\s+(?:\w+\s+)?(?:rude|incorrect|inaccurate|misleading|offensive|incoherent|insulting
        |dismissive
        |condescending|repetitive|off[-\s]topic|factually\s+wrong)\b
    | uses\s+(?:\w+\s+)?(?:offensive|abusive|vulgar|insulting|sexist|racist)\b
    )""",
    re.I | re.X,
)
# What is only ever wanted: with a negative weight it costs.
GOOD = re.compile(
    _SUBJECT
    + r"""(?:
    (?:correctly|accurately|clearly|properly|appropriately|politely|concisely
        |explicitly\s+and\s+correctly)\s+\w+s\b
    | (?:thanks|greets|apologi[sz]es)\b
    | (?:avoids|refrains\s+from)\b(?!\s+(?:answering|the\s+(?:question|topic)))
    | answers\s+the\s+(?:user['’]s\s+)?question\b(?!\s+in\b) | (?:stays|keeps|remains)\s+within\b
    | is\s+free\s+(?:of|from)\b
    | (?:is|remains|stays)\s+(?:\w+\s+)?(?:correct|accurate|polite|courteous|respectful|clear
        |readable|coherent
        |well[-\s]structured|factual|truthful|honest|helpful|faithful|complete|concise
        |on\s+topic)\b
    | follows\s+(?:all\s+)?(?:the\s+)?(?:instructions?|format|prompt)\b
    | (?:gives?|offers?|provides?|includes?|presents?|uses|contains?)\s+(?:an?\s+|the\s+)?
        (?:\w+\s+and\s+)?(?:accurate|correct|helpful|clear|relevant|useful|reliable|proper)\b
    | \w+s\s[^.]*\s(?:correctly|accurately|precisely|clearly|politely|properly|fully)\s*\Z
    )""",
    re.I | re.X,
)
# A turn that takes the head back: "Fails to mention X, which is right", "Avoids the question".
TURN = re.compile(
    r"\b(?:but|although|however|unless|except|only|overly|too|unnecessar\w+)\b",
    re.I,
)
INJECTED = re.compile(
    r"""
    \b(?:ignore|disregard|forget|override|bypass)\b[^.]{0,30}\b
        (?:instructions?|rubrics?|criteri\w+|guidelines?|rules?)\b
    | \b(?:mark|rate|grade|score|judge|count|treat)\b[^.]{0,40}\bas\s+
        (?:met|passed|satisfied|fulfilled|perfect)\b
    | \b(?:give|award|assign|grant|output|return)\b[^.]{0,40}\b
        (?:full|maximum|top|highest|perfect|passing)\s+
        (?:marks?|scores?|points?|credit|ratings?|grades?)\b
    | \balways\s+(?:answer|say|reply|output|return|choose|mark|vote)\b[^.]{0,20}\b
        (?:yes|met|true|pass|one|1|10)\b
    | \b(?:met|pass|yes)\b[^.]{0,30}\b(?:regardless\s+of|no\s+matter|whatever)\b
    | <\|im_(?:start|end)\|> | \[/?INST\] | <</?SYS>>
    | \A\s*(?:system|assistant|grader|judge|evaluator)\s*:
    | "verdict"\s*: | \bverdict\s*:\s*(?:met|yes|pass|true)\b
    | ["'](?:met|pass|passed|score)["']\s*:\s*(?:true|["']?(?:met|yes|pass)|10?\b)
    | </?(?:criterion|criteria|rubric|verdict|system|instructions?)> | \[\[?\s*end\s+of\s+\w+\s*\]
    | \bregardless\b[^.]{0,60}\b(?:return|say|answer|output|reply|vote)\s+(?:true|yes|met|pass)\b
    | \b(?:output|return|answer|reply|respond|vote|choose)\s+(?:with\s+)?["'“]?(?:met|satisfied)\b
    | \b(?:is|are|counts?\s+as)\s+(?:always\s+|already\s+)?(?:met|satisfied|fulfilled)\s+
        (?:by\s+default|automatically)
    | \b(?:do\s+not|don't|never)\s+(?:check|verify|judge|grade|evaluate)\s+(?:it|this)\b
    | \bnew\s+instructions?\s*:
    | \b(?:every|all|each)\b[^.]{0,20}\bcriteri\w+\s+(?:is|are)\s+(?:satisfied|met|fulfilled)\b
    | \bnote\s+to\s+(?:the\s+)?(?:\w+\s+)?(?:judge|grader|evaluator)\b
    | \bset\s+(?:the\s+)?(?:verdict|score|grade|rating)\s+to\b
    | \b(?:just|simply|you\s+must)\s+(?:answer|say|output|reply|return|vote)\b
        [^.]{0,12}\b(?:yes|met|true|pass)\b
    | \bif\s+you\s+are\s+(?:an?\s+)?(?:AI|LLM|language\s+model|judge|grader|evaluator)\b
    | \bignor(?:iere?n?|ez|er|a|e)\b[^.]{0,40}\b
        (?:Anweisung\w*|Vorgaben|Regeln|instrucciones|istruzioni|consignes)\b
    """,
    re.I | re.X,
)
SPOKEN = re.compile(r"""(?<!\w)(?:'[^'"<>:\[{]{12,}'|"[^"<>:\[{]{12,}"|“[^”<>:\[{]{12,}”)(?!\w)""")
_PEOPLE = (
    r"(?:users?|readers?|recipients?|customers?|audiences?|patients?|listeners?"
    r"|viewers?|students?|child(?:ren)?|people|guests?)"
)
UNVERIFIABLE = re.compile(
    rf"""
    \A(?:the\s+)?{_PEOPLE}\s+(?:will|would|(?:is|are)\s+going\s+to)\s
    | \A(?:the\s+)?{_PEOPLE}\s+(?:laugh|cry|cries|smile|feel|enjoy|like|love|buy|remember
        |become|stay|trust)s?\b
    | \A(?:the\s+)?{_PEOPLE}['’]s?\s[^.]*\bwill\b
    | \A(?:the\s+)?\w+\s+will\b[^.]*\b(?:because\s+of|thanks\s+to|after)\s+(?:reading\s+)?
        (?:this|the)\s+(?:letter|answer|response|text|email|post)\b
    | \A(?:the\s+)?(?:author|writer|assistant)\s+
        (?:tested|tried|checked|verified|visited|studied|researched|measured|consulted)\b
    | \A(?:the\s+)?(?:author|writer|assistant|model)\s+(?:understood|knew|meant)\b
    | \A(?:the\s+)?{_PEOPLE}\s+(?:is|are)\s+
        (?:moved|satisfied|convinced|impressed|happy|amused|pleased|touched)\b
    | \b(?:was|were|is)\s+(?:written|composed|created|produced|drafted)\s+(?:
        (?:in|within)\s+(?:less|under|fewer|\d+|\w+\s+(?:minutes|seconds|hours))
        | without\s+(?:help|looking|using\s+(?:a|any|the)\s+(?:tool|model|source|internet))
        | by\s+(?:a\s+human|hand|an?\s+AI) )
    | \b(?:author|writer|model|assistant)\s+(?:spent|took)\s+(?:\w+\s+){{0,2}}?
        (?:time|hours|effort)\b
    | \b(?:author|writer|model|assistant)\s+(?:
        (?:really|truly|honestly|sincerely|genuinely|actually)\s+)?
        (?:believe[sd]?|thinks?|thought|intend(?:s|ed)|enjoy
            (?:s|ed)|cares?|knows?|tried|feels?|felt)\b
    | \A(?:the\s+)?(?:author|writer|narrator)\s+(?:has\s+|had\s+|was\s+|is\s+)?
        (?:really|truly|honestly|sincerely|genuinely|actually|personally)\s+\w+
    | \A(?:the\s+)?(?:author|writer|model|assistant)\s[^.]*\s(?:before|while)\s+writing\b
    | \A(?:the\s+(?:response|answer|text|advert|post)\s+)?(?:will|would)\s+
        (?:win|increase|boost|raise|convince|persuade|attract|impress|please|delight|entertain)\b
    | \b(?:will|would)\s+(?:go\s+viral|sell\s+well|be\s+remembered|stand\s+the\s+test)\b
    """,
    re.I | re.X,
)
_THING = (
    r"(?:image|picture|photo|screenshot|chart|diagram|video|audio|recording|map"
    r"|spreadsheet|attachment|file|transcript|pdf)"
)
REFERENCE = re.compile(
    r"\b(?:reference|gold|golden|sample|ideal)\s+"
    r"(?:answer|solution|response|output|text"
    r"|translation|summary)s?\b"
    r"|\banswer\s+key\b"
    r"|\b(?:as\s+in|in|from|per)\s+the\s+ground\s+truth\b"
    r"|\b(?:previous|earlier|prior)\s+(?:response|answer|output|version|draft)\b"
    r"|\b(?:than|as)\s+the\s+other\s+(?:response|answer|output|model)s?\b"
    r"|\bthan\s+(?:response|answer|output)\s+[A-D1-4]\b|\bbeats\s+the\s+baseline\s+(?:answer|response|output)\b"
    r"|\bbest\s+of\s+the\s+\w+\s+(?:answers|responses|outputs|plans|texts)\b"
    r"|\b(?:match|agree|correspond|compare|identical|equal|same|consistent)\w*\s+(?:with|to|as"
    r"|against)?\s*(?:the\s+|an?\s+)?(?:ground\s+truth|model\s+answer"
    r"|(?:expert|official|teacher|instructor|textbook)(?:['’]?s)?\s+"
    r"(?:answer|solution|response|translation|version))\b",
    re.I,
)
ATTACHED = re.compile(
    rf"\b(?:attached|enclosed|uploaded)\s+({_THING}|document|article|table|text|report|data"
    rf"|letter)s?\b|(?<=\bthe )(?:attached|enclosed|uploaded)\s+(?:\w+\s+)?(\w+)"
    rf"|\b(?:in|from)\s+the\s+({_THING}|figure)\b|\bsource\s+(document|text)\b"
    rf"|\b(\w+)\s+given\s+below\b|\b(?:provided|given|supplied)\s+({_THING})\b"
    rf"|\b({_THING}|table|figure|graph|list|passage|article|excerpt)\s+"
    rf"(?:above|below|provided|shown|attached)\b",
    re.I,
)
_SOURCES = frozenset(
    "snippet snippets source sources document documents passage passages excerpt excerpts "
    "cite cites citing".split()
)
NUMBERED = re.compile(
    r"\b(?:(?:snippets?|sources?|documents?|passages?|excerpts?)\s+[\[\"“(#]?|cit(?:es?|ing)\s+\[)"
    r"([A-Z]{0,2}\d{1,3})\b"
    r"(?!\s*(?:times|%|or|and|words)\b)",
    re.I,
)
_INJECTING = frozenset(
    "ignore disregard forget override bypass mark rate grade score judge count treat "
    "give award assign grant output "
    "return always regardless matter whatever im inst sys system assistant grader "
    "evaluator verdict output answer reply respond vote choose met satisfied fulfilled "
    "default check verify never ignoriere ignorieren ignorez ignorer ignora if".split()
)
_MARKUP = re.compile(r"[<\[{]")
_NEEDING = frozenset(
    "reference gold golden sample key truth model attached enclosed uploaded provided "
    "figure image picture photo screenshot chart diagram video audio recording map spreadsheet "
    "transcript pdf file source ideal than beats best "
    "given supplied above below shown other expert expert's expert’s official teacher teacher's "
    "teacher’s instructor instructor's textbook previous earlier prior".split()
)
LONGEST = 400  # characters: a longer text is a scheme for grading, which may speak of marks
ASKED = re.compile(
    r"\s*(?:does|do|is|are|has|have|did|can|was|were)\b", re.I
)  # a question about an answer
_HIDDEN = frozenset(  # UNVERIFIABLE needs one of these words
    "user users reader readers recipient recipients customer customers audience "
    "audiences patient patients listener listeners "
    "viewer viewers student students child children people guest guests was were is "
    "author writer narrator model assistant will would".split()
)
TIMES = 20.0  # a weight this many times the median of its row decides alone, or counts for nothing


def wrong_sign(c: Criterion) -> str | None:
    """What is odd about the sign of a weight, or None.

    >>> wrong_sign(Criterion(id="c", text="Fails to name the river.", weight=2))
    'it names a fault, and meeting it is rewarded'
    >>> wrong_sign(Criterion(id="c", text="Correctly names the river.", weight=-2))
    'it names something good, and meeting it is punished'
    """
    if c.weight == 0 or c.check is not None:
        return None
    head = c.text.split(".")[0][:160]
    if c.weight > 0 and BAD.match(head):
        return "it names a fault, and meeting it is rewarded"
    if c.weight < 0 and GOOD.match(head) and not TURN.search(head):
        return "it names something good, and meeting it is punished"
    return None


def injected(text: str, tokens: frozenset[str]) -> bool:
    """True when a criterion talks to the judge instead of describing an answer."""
    if (
        (tokens.isdisjoint(_INJECTING) and not _MARKUP.search(text))
        or len(text) > LONGEST
        or ASKED.match(text)
    ):
        return False
    return bool(INJECTED.search(_unquoted(text)))


def _unquoted(text: str) -> str:
    """A sentence without the words that it quotes: it is about them; a text that is little more
    than a quotation stays as it is."""
    rest = SPOKEN.sub(" ", text)
    return rest if len(rest.split()) >= 4 else text


def unverifiable(text: str, tokens: frozenset[str]) -> bool:
    """True when neither the answer nor the task can show whether the criterion holds."""
    return not tokens.isdisjoint(_HIDDEN) and bool(UNVERIFIABLE.search(text))


def missing_reference(c: Criterion, tokens: frozenset[str], task: Task) -> str | None:
    """What a criterion compares with although the task does not have it, or None.

    >>> task = Task(id="t", prompt="Solve it.")
    >>> c = Criterion(id="c", text="Agrees with the reference answer.")
    >>> missing_reference(c, frozenset(["reference"]), task)
    'reference answer'
    """
    if c.check is not None:
        return None
    if named := _unknown_source(c.text, tokens, task):
        return named
    if tokens.isdisjoint(_NEEDING) or task.sources:
        return None
    asked = task.asked.lower()
    if m := REFERENCE.search(c.text):
        known = bool(task.truth) or any(
            w in asked for w in ("reference", "answer key", "gold", "solution:")
        )
        known &= "other" not in m[0]
        return None if known else m[0]
    if not _long(task.asked) and (m := ATTACHED.search(c.text)):
        thing = next(g for g in m.groups() if g).lower()
        return (
            None if thing.rstrip("s") in asked or "attached" in asked or "http" in asked else m[0]
        )
    return None


def _unknown_source(text: str, tokens: frozenset[str], task: Task) -> str | None:
    """A numbered source ("snippet S9") that is not among the task's, or None."""
    if tokens.isdisjoint(_SOURCES):
        return None
    for m in NUMBERED.finditer(text):
        held = {k.casefold() for k in task.sources}
        held |= {k.lstrip("abcdefghijklmnopqrstuvwxyz") for k in held}
        numbered = all(re.fullmatch(r"[a-z]{0,3}\d{1,3}", k) for k in held)
        asked = bool(re.search(rf"(?<!\w)\[?{re.escape(m[1])}(?!\w)", task.asked, re.I))
        wanted = m[1].casefold()
        if not asked and wanted not in held and (numbered if held else not wanted.isdigit()):
            return m[0]
    return None


def _long(prompt: str) -> bool:
    """True where a prompt may hold the thing that it speaks of."""
    return len(prompt.split()) > 60 or "http" in prompt or "\n\n" in prompt


def unattached(task: Task) -> str | None:
    """What a short prompt speaks of as attached although nothing is there, or None."""
    text = task.asked
    if task.sources or task.history or _long(text):
        return None
    m = ATTACHED.search(text)
    return m[0] if m and m[0].split()[0].lower() in ("attached", "enclosed", "uploaded") else None


def extreme_weights(criteria: Sequence[Criterion]) -> list[tuple[Criterion, str]]:
    """Criteria whose weight dwarfs the others of the row, or is dwarfed by them; trees share theirs
    down and are left out."""
    sizes = [abs(c.weight) for c in criteria if c.weight and branch(c) is None]
    out = [(c, "its weight is 0: it does not count") for c in criteria if c.weight == 0 and sizes]
    if len(sizes) < 2 or (len(sizes) == 2 and max(sizes) < 1000 * min(sizes)):
        return out
    middle = median(sizes) if len(sizes) > 2 else min(sizes)
    for c in criteria:
        times = abs(c.weight) / middle if branch(c) is None else 1.0
        if times >= TIMES:
            out.append(
                (c, f"its weight is {times:.3g} times the median of the row: it decides alone")
            )
        elif 0 < times <= 1 / TIMES:
            n = math.ceil(1 / times)
            out.append((c, f"its weight is 1/{n:.3g} of the median of the row: it hardly counts"))
    return out
