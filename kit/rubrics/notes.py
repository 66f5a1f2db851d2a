"""Annotator notes posing as criteria: "Gemini missed this", "see criterion 4", "from the prompt".

In the RLVR family such notes lie in `criterion_origin` fields; readers that take every field named
"criterion..." grade them.
The rule scores evidence; its precision and recall are measured in tests/inspect on a labelled
sample of our own.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Set

MODEL = (
    r"(?:gemini|gpt[- ]?\d[\w.]*|gpt|chatgpt|claude|llama|qwen|mistral|mixtral|deepseek"
    r"|grok|bard|copilot|sonnet|opus|haiku|o[134](?:-mini)?|palm|phi-\d)"
)
VERDICT = (
    r"(?:miss(?:es|ed|ing)?|fail(?:s|ed|ing)?|got|gets|get|did(?:n'?t| not)?|does(?:n'?t| "
    r"not)|struggl\w+|hallucinat\w+|forg[eo]t\w*|ignor\w+|omit\w*|"
    r"nailed|wrong|skipp?\w*|mess\w* up|confus\w+|overlook\w*|answered|said|wrote|gave"
    r"|mentioned|handl\w+|does (?:it|this|that))"
)
WHO = r"(?:responses?|answers?|models?|completions?|outputs?)"
ROLE = r"(?:annotators?|raters?|reviewers?|labell?ers?|checkers?|qa|editor)"
# Whoever says "I" speaks of the work on the rubric. Quoted speech is taken out before; a "we"
# that is asked for is a demand.
FIRST_PERSON = (
    r"\bI(?:['’](?:m|ve|d|ll)|\s+(?:would|should|could|might|can|don'?t|didn'?t|think|thought"
    r"|believe|feel|felt|guess|assume|added?|"
    r"changed?|removed?|dropped?|drop|marked|rated|kept|keep|split|checked|chose|found|saw"
    r"|left|had|have|am|was|"
    r"agreed?|disagree|hesitate|moved|copied|took|wrote|meant|wanted|prefer|suggest|need"
    r"|asked|googled|verified|confirmed|reviewed|counted|noticed|considered))\b|\bin my "
    r"(?:view|opinion)\b"
    r"|\bwe\s+(?:think|thought|believe|feel|felt|added|changed|removed|dropped|marked|rated"
    r"|kept|decided|agreed|asked|"
    r"(?:should|could|need to)\s+(?:ask|add|drop|remove|split|check|discuss|rephrase|provide"
    r"|merge|decide))\b"
    r"|\bsee\s+my\s+\w+\b|\bmy\s+(?:comment|remark|edit|note)s?\s+(?:in|on|from|above|below)\b"
    r"|\b(?:ask|asked|check with) the (?:team|lead|client|author|vendor)\b"
)
PATTERNS: tuple[tuple[float, re.Pattern[str]], ...] = tuple(
    (w, re.compile(p, f))
    for w, p, f in (
        (0.9, rf"\b(?i:{WHO})\s+(?:#?[12]\b|[AB]\b(?!\s+\w+\s+(?:type|blood)))", 0),
        (
            0.8,
            r"\b[AB]\s*(?:[:=]\s*(?:yes|no|met|unmet|pass|fail|ok|green|yellow|red|partly)|:\s*\d)",
            re.I,
        ),
        (0.8, rf"\bno\s+(?:response|answer|model|completion|output)\s+(?:\w+\s+)?{VERDICT}", re.I),
        (
            0.8,
            r"^\s*(?:requested|asked(?: for)?|implied|stated"
            r"|mentioned)\s+(?:\w+\s+)?by\s+the\s+(?:user|prompt|question)",
            re.I,
        ),
        (
            0.8,
            r"^\s*(?:reworded|rephrased|moved|renamed|shortened|was\s+(?:in|moved|ambiguous"
            r"|part))\b",
            re.I,
        ),
        (0.6, rf"\b[AB]\s+(?:and|&|/)\s+[AB]\b.*\b{VERDICT}", 0),
        (
            0.8,
            rf"\b(?:both|neither|all|none of|either|most)\s+(?:of\s+)?(?:the\s+)?(?:two\s+"
            rf"|three\s+)?{WHO}\s+(?:\w+\s+)?(?:{VERDICT}|do|does|tend|includes?|mentions?)\b",
            re.I,
        ),
        (0.8, rf"\b{MODEL}(?:'s)?\s+(?:\w+\s+){{0,3}}{VERDICT}\b", re.I),
        (
            0.7,
            rf"\b(?:missed|failed|fails|wrong|omitted|ignored|hallucinated|included|caught"
            rf"|mentioned|satisfied|met)\s+(?:by|in|from)\s+(?:the\s+)?{MODEL}\b",
            re.I,
        ),
        (
            0.9,
            rf"^\s*(?:note|nb|n\.b\.|todo|fixme|comment|remark|tbd|{ROLE}(?:'s)?(?:\s+(?:note"
            rf"|comment|remark))?)\s*\d*\s*[:\-–—]",
            re.I,
        ),
        (
            0.7,
            rf"\b{ROLE}\s+(?:\w+\s+)?(?:think|thought|agree|disagree|said|added|note|noted"
            rf"|decision|was|were|should|to|flagged|unsure|marked|rated)",
            re.I,
        ),
        (
            0.8,
            r"\b(?:this|the above|previous|above|next)\s+(?:criterion|criteria|rubric|rubric "
            r"item|item|requirement)\b(?!\s+of\s+the\s+(?:law|contract))",
            re.I,
        ),
        (
            0.8,
            r"\b(?:see|same as|similar to|duplicate of|dup of|cf\.?|like|merged? (?:with"
            r"|into)|covered by|overlaps? with|split from|follows from)\s+(?:the\s+)?"
            r"(?:above|previous|criterion|criteria|rubric|item|no\.?|#)\s*#?\d*",
            re.I,
        ),
        (
            0.8,
            r"^\s*(?:duplicate|same as|see)\b.{0,20}#?\d*\s*\.?$"
            r"|^\s*same\s+as\s+(?:in\s+)?(?:above|before|v\d|the\s+(?:last|previous|other|old)|last)\b",
            re.I,
        ),
        (
            0.8,
            r"\b(?:please|pls)\s+(?:check|verify|rephrase|reword|split|remove|delete|confirm"
            r"|review|rewrite|double[- ]check|clarify)\b",
            re.I,
        ),
        (
            0.7,
            r"(?<!if )(?<!is )(?<!are )(?<!be )\b(?:not sure|unsure|unclear"
            r"|debatable)\s+(?:if|whether|how)\b|\A\s*(?:not sure|unsure|unclear|debatable)\b",
            re.I,
        ),
        (
            0.8,
            r"^\s*(?:explicit(?:ly)?|implicit(?:ly)?|implied|inferred|stated|directly"
            r"|requested|taken|derived|comes?|from|based on|asked(?: for)?|required|mentioned|"
            r"added|specified|quoted|common sense|general knowledge|good practice|best "
            r"practice|domain knowledge|expert knowledge|not in)\b"
            r"(?:,?\s+[\w'’]+){0,6}\s*(?:prompt|prompts|request|instruction|instructions"
            r"|system prompt|user|question|guidelines?|reference|query)?\s*[.!]?\s*$",
            re.I,
        ),
        (
            0.8,
            r"^\s*(?:I|we)\s+(?:think|added|add|believe|changed|removed|would|am|was|marked"
            r"|rated|kept|split|had|checked|chose|feel|assume|left|found)\b",
            re.I,
        ),
        (0.8, FIRST_PERSON, re.I),
        (
            0.8,
            r"^\s*the\s+(?:model|response|answer)\s+(?:forgot|missed|failed|hallucinated|got"
            r"|ignored|skipped|overlooked|omitted)\b",
            re.I,
        ),
        (0.9, rf"[(\[]\s*(?:{ROLE}|todo|fixme)\s*:\s", re.I),
        (
            0.7,
            r"^\s*as per\b|\b(?:stricter|looser|clearer)\s+wording\b"
            r"|^\s*(?:old|new|previous|earlier|original)\s+wording\s*(?:\Z|[,.;:(])",
            re.I,
        ),
        (
            0.95,
            r"(?:\A|[,;:?.(\[–—-])\s*(?:maybe|perhaps|possibly|probably)\s+(?:lower|raise|drop|remove"
            r"|delete|merge|split|reword|rephrase|change|move|shorten|cut|keep|skip)\b",
            re.I,
        ),
        (
            0.95,
            r"[\[(](?-i:[A-Z]{2,3})\s*:\s[^\])]*(?:[?]|\b(?:maybe|perhaps|too|please|pls)\b)",
            re.I,
        ),
        (
            0.9,
            r"\b(?:rated|marked|labell?ed|scored|set|changed|gave)\s+(?:as\s+|it\s+|this\s+"
            r"|to\s+|both\s+)*(?:green|yellow|red|🟢|🟡|🔴)",
            re.I,
        ),
        (
            0.8,
            r"^\s*(?:green|yellow|red|🟢|🟡|🔴)\b.{0,12}\b(?:for|because|since|in|on|as)\b",
            re.I,
        ),
        (
            0.95,
            r"^\s*(?:n/?a|none|tbd|todo|\?+|-+|ok|okay|fine|good|done|yes|no|same|duplicate"
            r"|ditto|idem|x|agreed|skip)\s*[.!]?\s*$",
            re.I,
        ),
        (
            0.6,
            r"\b(?:is|was)\s+(?:too\s+)?(?:harsh|lenient|strict|subjective|ambiguous"
            r"|redundant)\s*(?:,|\.|;|$|\?)",
            re.I,
        ),
        (
            0.7,
            r"\b(?:rubric|criterion|grader|labell?ing|annotation)\s+(?:is|was|seems?|should"
            r"|needs?|could|guidelines?|guide|doc|batch|round|explicitly|allows?|says|checks)\b",
            re.I,
        ),
        (
            0.6,
            r"^\s*(?:missed|missing|failed|wrong|hallucinated|incorrect|partially correct"
            r"|overlooked|forgotten)\s+(?:by|in|here|again|entirely|completely|from)\b",
            re.I,
        ),
        (
            0.95,
            rf"(?:[(\[]\s*|\A\s*|[.!?]\s+)(?:todo|fixme|tbd|{ROLE}(?:'s)?\s+(?:note|comment)"
            rf"|(?:note|question)\s+(?:to|for)\s+(?:the\s+)?{ROLE}|added\s+by\s+{ROLE})\b",
            re.I,
        ),
        (0.95, r"(?:\A|\s)@\w+,?\s+(?:please|pls)\b", re.I),
        (
            0.95,
            r"\b(?:first|second|third|other|AI|criterion|criteria|future)\s+(?:AI\s+|criterion\s+)?"
            r"(?:raters?|ratings?|checkers?|helpers?|graders?|annotators?|rebuttal)\b"
            r"|\bcheckers?\s+(?:\d\s+)?(?:\w+\s+)?(?:is|are|was|were|claims?|flags?|flagged"
            r"|marked|believes?|missed|says?)\b",
            re.I,
        ),
        (0.8, r"\bcriteri(?:on|a)\s+#?\d", re.I),
        (
            0.7,
            r"^\s*(?:this|that|these)\s+(?:is|was|are|were|isn'?t|wasn'?t|relates?|seems?"
            r"|does|did|has|would)\b",
            re.I,
        ),
        (
            0.8,
            r"^\s*the\s+(?:user'?s?\s+)?(?:prompt|user|instructions?|request"
            r"|constraint)\s+(?:\w+\s+)?(?:asked|asks|says|said|states?|"
            r"stated|requires?|required|did|didn'?t|does|doesn'?t|wants?|wanted|specif\w+"
            r"|never|clearly|explicitly)\b",
            re.I,
        ),
        (
            0.8,
            r"\b(?:is|was|are|were|did|does|do|would|isn'?t|wasn'?t|doesn'?t|didn'?t"
            r"|still)\s+(?:\w+\s+){0,3}?"
            r"(?:a|an|any|this|still)\s+(?:fail|criterion)\b"
            r"|\bnot\s+an?\s+(?:failure|violation|error)\b"
            r"|\b(?:fails?|failed|pass(?:es|ed)?)\s+(?:on\s+)?(?:this|the"
            r"|that)\s+(?:criterion|one)\b",
            re.I,
        ),
        (0.6, r"^\s*the\s+(?:responses|outputs|completions)\s+(?!should|must|are\b)", re.I),
        (
            0.7,
            r"^\s*(?:while|although|though)\s+the\s+(?:response|answer|model"
            r"|output)\s+(?!should|must)",
            re.I,
        ),
        (
            0.8,
            r"^\s*both\s+(?:models|responses|answers)\s+(?:answer|fail|pass|make|explicitly"
            r"|correctly|incorrectly|provide|list|give|follow)\b",
            re.I,
        ),
        (0.95, r"\A\s*\?{2,}|\?{3,}", 0),
        (
            0.93,
            r"\b(?:copied|pasted|taken|adapted|moved)\s+from\s+(?:row|item|line|task|sheet"
            r"|cell|rubric)\s+#?\d"
            r"|[\[(–—;:-]\s*(?:needs?|to\s+be)\s+(?:discuss|review|check|confirm|decid|clarif)\w*"
            r"|\[\s*(?:check|verify|confirm|discuss|review|clarify|reword|rephrase)\b[^\]]*\]",
            re.I,
        ),
        (0.6, r"\b(?:seems?|looks?)\s+(?:fine|ok|okay|good|wrong|off|redundant|right)\b", re.I),
        (
            0.6,
            r"\b(?:hard|easy|difficult|impossible|tricky)\s+(?:to\s+(?:check|verify|judge"
            r"|grade|score|evaluate)|for\s+(?:the\s+)?(?:models?|" + MODEL + r"))",
            re.I,
        ),
    )
)
# Words of which one must occur before a pattern is tried.
_MODELS = frozenset(
    "gemini chatgpt claude llama qwen mistral mixtral deepseek grok bard copilot "
    "sonnet opus haiku palm gpt o1 o3 o4 phi".split()
)
_ROLES = frozenset(
    "annotator annotators rater raters reviewer reviewers labeler labelers labeller "
    "labellers checker checkers qa editor".split()
)
_AB = frozenset("a b 1 2 a's b's a’s b’s".split())
_GATES: tuple[tuple[str, frozenset[str]], ...] = (
    (r"\b(?i:", _AB),
    (r"\b[AB]", frozenset("ab")),
    (r"\bno\s+(?:response", frozenset(["no"])),
    (r"\b(?:both|neither", frozenset("both neither all none either most".split())),
    (rf"\b{MODEL}", _MODELS),
    (r"\b(?:missed|failed|fails", _MODELS),
    (rf"\b{ROLE}", _ROLES),
    (r"\b(?:this|the above", frozenset("criterion criteria rubric item requirement".split())),
    (
        r"\b(?:see|same as",
        frozenset(
            "see same similar duplicate dup cf like merge merged covered overlap "
            "overlaps split follows".split()
        ),
    ),
    (r"\b(?:please|pls)", frozenset(["please", "pls"])),
    (r"(?:\A|\s)@", frozenset(["please", "pls"])),
    (
        r"\b(?:first|second",
        frozenset(
            "rater raters rating ratings checker checkers helper helpers grader graders "
            "annotator annotators rebuttal".split()
        ),
    ),
    (r"\bcriteri", frozenset(["criterion", "criteria"])),
    (r"^\s*(?:this|that", frozenset("this that these".split())),
    (
        r"\b(?:copied",
        frozenset(
            "copied pasted taken adapted moved need needs be check verify confirm discuss review "
            "clarify reword rephrase".split()
        ),
    ),
    (
        r"^\s*the\s+(?:user",
        frozenset("prompt user user's users instruction instructions request constraint".split()),
    ),
    (
        r"\b(?:is|was|are",
        frozenset(
            "fail fails failed failure pass passes passed violation error criterion test".split()
        ),
    ),
    (r"^\s*the\s+(?:responses", frozenset("responses outputs completions".split())),
    (r"^\s*(?:while|although", frozenset("while although though".split())),
    (r"^\s*both", frozenset(["both"])),
    (r"(?:[(\[]", frozenset(["todo", "fixme", "tbd"]) | _ROLES),
    (
        r"^\s*the\s+",
        frozenset(
            "forgot missed failed hallucinated got ignored skipped overlooked omitted".split()
        ),
    ),
    (r"^\s*as per", frozenset("per wording".split())),
    (r"(?:\A|[,;", frozenset("maybe perhaps possibly probably".split())),
    (r"(?<!if )", frozenset("sure unsure unclear debatable".split())),
    (r"\b(?:not sure", frozenset("sure unsure unclear debatable".split())),
    (
        r"\b(?:rated|marked",
        frozenset("rated marked labelled labeled scored set changed gave".split()),
    ),
    (
        r"\b(?:is|was)\s+(?:too",
        frozenset("harsh lenient strict subjective ambiguous redundant".split()),
    ),
    (
        r"\b(?:rubric|criteri",
        frozenset("rubric criterion criteria grader grading labeling labelling annotation".split()),
    ),
    (r"\b(?:seems?|looks?)", frozenset("seem seems look looks".split())),
    (r"\b(?:hard|easy", frozenset("hard easy difficult impossible tricky".split())),
    (r"^\s*(?:requested", frozenset("requested asked implied stated mentioned".split())),
    (r"^\s*(?:I|we)", frozenset(["i", "we"])),
    (
        r"\bI(?:",
        frozenset("i we i'm i've i'd i'll we'd we've we'll my ask asked check".split()),
    ),
    (r"^\s*(?:reworded", frozenset("reworded rephrased moved renamed shortened was".split())),
    (r"^\s*(?:duplicate", frozenset("duplicate same see".split())),
    (
        r"^\s*(?:explicit",
        frozenset(
            "explicit explicitly implicit implicitly implied inferred stated directly "
            "requested taken derived come comes from based "
            "asked required mentioned added specified quoted common general good best "
            "domain expert not".split()
        ),
    ),
    (
        r"^\s*(?:missed",
        frozenset(
            "missed missing failed wrong hallucinated incorrect partially overlooked "
            "forgotten".split()
        ),
    ),
)
TESTS = tuple((w, p.match if p.pattern.startswith("^") else p.search) for w, p in PATTERNS)
_GATE_OF = [
    next((g for start, g in _GATES if p.pattern.startswith(start)), None) for _, p in PATTERNS
]
FREE = frozenset(
    i for i, g in enumerate(_GATE_OF) if g is None
)  # patterns that need none of the words, but what `_free` looks for
OPENED = {
    w: frozenset(i for i, g in enumerate(_GATE_OF) if g and w in g)
    for w in frozenset().union(*(g for g in _GATE_OF if g))
}
OPENING = frozenset(OPENED)
# A criterion says what an answer must do; such wording speaks against a note.
DEMAND = re.compile(
    r"^\s*(?:the\s+)?(?:response|answer|text|output|reply|poem|story|code|essay|email|"
    r"letter|summary|list|post|article|title|generated text|function)"
    r"(?:'s\s+\w+)?\s+(?:must|should|shall|has|is|does|do|contains?|includes?|mentions?"
    r"|states?|names?|gives?|explains?|uses?|avoids?|cites?|lists?|"
    r"ends?|starts?|says?|provides?|describes?|identifies|recommends?|compares?|correctly"
    r"|clearly|explicitly|implicitly|never|only|keeps?|warns?|"
    r"offers?|shows?|notes?|asks?|refers?|makes?|tells?|points?|acknowledges|suggests?"
    r"|calculates?|writes?|presents?|defines?|contrasts?)\b",
    re.I,
)
IMPERATIVE = re.compile(
    r"^\s*(?:does|do|is|are|has|have|did|can|should|must|includes?|contains?|states?"
    r"|mentions?|avoids?|uses?|names?|explains?|"
    r"identifies|lists?|gives?|provides?|describes?|ends?|starts?|cites?|compares?|recommends?|"
    r"notes that|keeps?|warns?|writes?|defines?|"
    r"points out|acknowledges|calculates?|summari[sz]es|quotes?|"
    r"contrasts?|translates?|refers?|shows?|suggests?)\s+\w",
    re.I,
)
# With such a word even a text that reads like a criterion is looked at closely.
STRONG = frozenset(
    "gemini chatgpt claude llama qwen mistral mixtral deepseek grok bard copilot "
    "sonnet opus haiku palm gpt both neither either all b models "
    "responses completions todo fixme tbd annotator annotators rater raters reviewer "
    "reviewers labeler labeller checker checkers qa rubric "
    "criterion criteria grader grading labeling labelling annotation please pls unsure "
    "yellow red green rated marked duplicate dup "
    "harsh lenient redundant tricky o1 o3 o4 needs check verify confirm discuss review "
    "clarify reword rephrase maybe perhaps possibly probably".split()
)
WANTED = re.compile(  # "In each letter, the report should ..."
    r"\s*(?:the|each|all|every|any|an?|in|if|when|for)\b[^.!?]{1,120}\b(?:should|must)\b(?! "
    r"have\b)",
    re.I,
)
SURE = frozenset(i for i, (weight, _) in enumerate(TESTS) if weight >= 0.9)  # in long texts too
THRESHOLD = 0.5
LONGEST = 400  # characters; a longer text may be a scheme for grading
QUOTES = re.compile(
    r"[\"“][^\"”]{0,200}[\"”]|(?<![^\s(])['‘].{3,200}?['’](?![\w])|\(see (?:above|below)\)"
)


_COLOURS = frozenset(["green", "yellow", "red"])


def _free(text: str, tokens: Set[str]) -> bool:
    """False where none of the patterns in FREE can match: they need a colon or dash, a colour, or a
    text of one or two words."""
    return (
        ":" in text
        or "-" in text
        or "??" in text
        or len(tokens) <= 2
        or not text.isascii()
        or not tokens.isdisjoint(_COLOURS)
    )


def note_score(text: str, tokens: Set[str] | None = None) -> float:
    """How much a text looks like an annotator's note, in [0, 1]; from THRESHOLD on the lint reports
    it.

    tokens : the words of the text (`words`); with them most texts are done at a glance.

    >>> (note_score("Gemini missed this.") > 0.5,
    ...  note_score("The response names three causes.") < 0.5)
    (True, True)
    """
    tried: Iterable[int] = range(len(TESTS))
    if tokens is not None:
        opened = tokens & OPENING
        if "a" in opened and "A" not in text and ":" not in text and "=" not in text:
            opened -= {"a"}  # the article, not an answer called A
        gpt = (not text.isascii() or "gpt" in text.lower()) and any(t[:3] == "gpt" for t in tokens)
        if not gpt and not opened and not _free(text, tokens):
            return 0.0
        tried = sorted(FREE.union(OPENED["gpt"] if gpt else (), *(OPENED[w] for w in opened)))
    text = QUOTES.sub(" ", text)
    if len(text) > LONGEST:
        tried = SURE.intersection(tried)
    demand = any(p.match(text) for p in (DEMAND, IMPERATIVE, WANTED))
    if demand and tokens is not None and not gpt and tokens.isdisjoint(STRONG) and "[" not in text:
        return 0.0
    miss = 1.0
    for i in tried:
        weight, found = TESTS[i]
        if found(text):
            miss *= 1.0 - weight
    score = 1.0 - miss
    if score and demand:
        score *= 0.55 if score < 0.95 else 0.8
    return round(score, 3)
