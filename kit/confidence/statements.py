"""Where a text states a confidence: beside a word such as confidence, sure or doubt, or in a
closing estimate ("I would say 70%")."""

from __future__ import annotations

import re
from dataclasses import replace
from functools import lru_cache

from .grammar import NUM, PCT, REASONS, SAID_LEVELS, TOKENS, VALUES, Statement, amount, said_top
from .grammar import found as found_in

Token = re.Match[str]
PARTIAL = "unsure of a part of the answer"
TURNED = "it speaks of being wrong; say how sure you are that the answer is right"
SEVERAL = "two confidences in one statement; say one"


_CORRECT = re.compile(
    r"\b(?:correct|right|true|accurate|my|answer|response|wrong|mistaken|error)\b", re.IGNORECASE
)
_ANCHORS = re.compile(
    r"confiden|certain|credence|\bp\s*\(|sure|positive|doubt|probab|likel|chance|odds",
    re.IGNORECASE,
)
_PART_OF = re.compile(
    r"\s+(?:(?:how|what|why|which|when|where|who)\b|(?:about|of)\s+(?!(?:this|that|it|my|any"
    r"|all|anything)\b|the (?:answer|whole)))",
    re.IGNORECASE,
)
_OF = re.compile(r"\s+(?:of|that|about)\b")
_ENDS = re.compile(r"[.!?](?=\s)|\n")
_TAG = re.compile(r"</?\w+>|\\boxed(?=\{)|[*_`\"'’#{}]")
_SPEAKER = re.compile(
    r"\b(?:[Ii]|[Ww]e)\s+(?:$|(?:am|m|are|re|feel|felt|was|remain|have|ve|would|d|can|could"
    r"|do|don|cannot|must|think|believe)\b)"
)
# the end of a clause in which a person is so sure; certain may also be the answer itself
_THIRD = re.compile(
    r"(?:(?P<who>\b(?:he|she|they|you|who|nobody|everyone|people))|(?P<noun>\b\w+))\s+"
    r"(?:is|are|was|were|s|re|has been|have been|remain(?:s|ed)?|fe(?:els?|lt)|seem(?:s|ed)?)\s+"
    r"(?:(?:only|about|around|roughly|over|under|still|now|almost|nearly|at|least|most|some"
    r"|even|just|already|or|\w+ly)\s+){0,3}\Z",
    re.IGNORECASE,
)
_FIRST = re.compile(
    r"\b(?:I|[Ww]e)\b|(?i:\b(?:it|this|that|which|answer|response|claim|conclusion|result"
    r"|prediction|statement|finding|choice|assistant)\s+\S+\s)"
)
_COPULA = frozenset("is was remains stands be being".split())
_POINTS = frozenset(":=")
_OWN = frozenset("of degree level levels in my a an estimated overall self reported".split())
_UNIT = (
    rf"(?:{NUM}(?:{PCT})?\s*(?:-|–|to)\s*{NUM}{PCT}|{NUM}{PCT}|{NUM}\s*(?:/\s*|out of\s+"
    rf"|of\s+)(?:5|10|100|ten|five)\b)"
)
_ABOUT = r"(?:about|around|roughly|maybe|perhaps|some|at (?:most|best|least))?\s*"
_SAYS = (
    r"(?:say|guess|call it|put it at|give it|make it|go (?:above|over|beyond|with|for)|estimate)"
)
_TAIL = r"(?:\s*,?\s*(?:no|not) more|\s*,?\s*or so|\s*,?\s*at (?:most|best)|\s*,?\s*tops)?"
_WHOLE = re.compile(
    rf"(?:so|then|well|overall|all in all)?\s*,?\s*(?:(?:I|we)(?:\s*(?:would|d|will|ll|could"
    rf"|can|should))?\s+(?:not\s+|n t\s+)?{_SAYS}|call it|put it at|say|make it|my guess(?: "
    rf"is)?)\s*:?\s*"
    rf"{_ABOUT}(?P<v>{_UNIT}){_TAIL}",
    re.IGNORECASE,
)
_PART = re.compile(
    rf"[,;:–—-]\s*(?:so|say|call it|put it at|make it|(?:I|we)\s*(?:would|d|will|ll)\s+say"
    rf"|perhaps|maybe)\s*,?\s*{_ABOUT}(?P<v>{_UNIT}){_TAIL}",
    re.IGNORECASE,
)
_BARE = re.compile(rf"(?:so|say)?\s*,?\s*{_ABOUT}(?P<v>{_UNIT}){_TAIL}", re.IGNORECASE)
_REASON = "|".join(sorted(REASONS - {"for", "and"}))
_OTHER = re.compile(
    rf"(?:(?!\b(?:{_REASON})\b|[(%±]|\+/?-)[^.])*?({NUM}){PCT}(?!\s+of\b)", re.IGNORECASE
)
_UNSURE = re.compile(
    r"\b(?:I|we)\b[^.!?\n]{0,30}?(?:\b(?:un)?(?:sure|certain)\b|\bconfident\b"
    r"|\bguess(?:ing)?\b|\bdoubt\b"
    r"|(?:\bnot|\bcannot|n t|\bnever|\bhardly|\bbarely)\s+(?:\w+\s+){0,2}?(?:prove|explain"
    r"|recall|remember|know|check|verify|tell|say)\b)",
    re.IGNORECASE,
)
_REFUSED = re.compile(
    r"\b(?:far from|(?:less|fewer) than|under|below|not even)\s*$|\d\s?%\s+$|"
    r"\bdoubt(?:s|ed)?\s+(?:it|this|that|so)\s+$"
    r"|\b(?:lack|loss|absence) of (?:confidence|certainty)\W[^.!?\n]*$"
    r"|\b(?:error|wrong|mistaken)\b[^.!?\n]*$",
    re.IGNORECASE,
)
_WRONG = re.compile(
    r"\W*(?:that\s+)?(?:it|this|that|I|we|(?:my|the|this) (?:answer|response|claim))\s+"
    r"(?:is|am|are|was|m|s|may be)\s+(?:\w+ly\s+)?"
    r"(?:wrong|mistaken|incorrect|false|in error|not (?:right|correct|true))\b"
    r"|\s+(?:wrong|mistaken|incorrect|un(?:sure|certain))\b"
    r"|\s*(?:is|would be|seems|sounds) (?:far |much )?too (?:much|high|low|little|confident)\b",
    re.IGNORECASE,
)
# before a value: it is denied, wished for or asked for, or is how sure somebody else is
_UNSAID = re.compile(
    r"(?:\b(?:can(?: ?not| t)|(?:could|would|should|do|did|does|will|wo|might)(?:n t| not))\s+"
    r"(?:(?:\w+ly|even|quite)\s+)?(?:be|feel|say|claim|state|pretend|assert|promise)"
    r"(?:\s+(?:that|to|I|we|am|m|are|re|be|being|feel|it|is|an?|\w+ly))*"
    r"|\b(?:nothing|nobody|no one|none|no \w+)(?:\s+(?!and|but|that|so)\w+){0,3}?"
    r"\s+(?:is|are|was|be|feels?)(?:\s+(?:ever|\w+ly))?"
    r"|(?<!myself )(?<!confidence )(?<!certainty )\bto (?:be|feel)(?:\s+(?:\w+ly|at least))?"
    r"|\b(?:if|unless|until|wish|once)\s+(?:I|we|you|one)\s+(?:were|was|am|m|are|re|felt|feel)"
    r"|\b(?:hardly|scarcely)"
    r"|\((?:the|his|her|their) (?!answer|response|claim|result|conclusion|prediction)\w+\s*:"
    r"|\b(?:no|não|nao|nunca|nadie|ninguém)\s+(?:me\s+)?(?:estoy|estou|está|tengo|tenho|tem|tiene)"
    r"(?:\s+\w+){0,3}"
    r"|\b(?:auteur|autor|étude|estud[io]|chercheur|investigador|pesquisador|jur[yí]|jurad|juge|juez"
    r"|juiz|expert|collègue|colega)\w*\s+(?:\w+\s+){1,3}(?:confian\w+|certitude|certeza)"
    r"(?:\s+(?:del?|à))?"
    r"|(?:不(?![过過仅管论知])|没|沒|并非|並非|[无無]法|[难難]以)[^。，,；;：:\n]{0,6}"
    r"|(?:[他她它]们?|[者家官员團团师]|医生|同事|朋友|(?<![个本])人)[^。，,；;：:\n我]{0,8}"
    r")\s*\Z",
    re.IGNORECASE,
)
_WITH = re.compile(r"\b(?:avec|con|com)\s+(?:un[ae]?\s+|uma\s+)?\Z", re.IGNORECASE)
_LIES = re.compile(r"[^.!?\n]{0,60}\bentre\s+-?\d", re.IGNORECASE)
_CLAUSE = re.compile(r"[,;:(]|\b(?:but|though|although|while|whereas)\b")
_QUANTITY = re.compile(
    r"%|\b(?:percent\w*|per cent|proportion|fraction|concentration)\b", re.IGNORECASE
)


def _plain(text: str) -> str:
    """The text without markup, of the same length; a <confidence> tag becomes a label."""

    def swap(m: Token) -> str:
        tag = m[0].lower()
        if tag in ("<confidence>", "<certainty>"):
            return tag[1:-1] + ": "
        return (
            " : " if tag[0] == "<" and tag not in ("</confidence>", "</certainty>") else " "
        ).ljust(len(tag))

    return _TAG.sub(swap, text)


@lru_cache(maxsize=1_024)  # several verifiers read the same answer
def statements(text: str) -> tuple[Statement, ...]:
    """Every statement of confidence in a text, in its order.

    >>> [s.words.strip() for s in statements("I was 40% sure at first. My confidence is now high.")]
    ['40%', 'high']
    """
    plain = _plain(text)
    tokens = list(TOKENS.finditer(plain)) if _ANCHORS.search(plain) else []
    out: list[Statement] = []
    for i, token in enumerate(tokens):
        found = (
            _at(plain, tokens, i)
            if token.lastgroup in ("anchor", "adjective", "weak", "loose")
            else None
        )
        # no statement reaches across another anchor; two anchors around one number are one
        # statement
        if found:
            if out and out[-1].at == found.at:
                out.pop()
            out.append(found)
    out = [replace(s, note=_doubtful(plain, s) or s.note) for s in out]
    out = [s for s in _with_languages(plain, out) if not _unsaid(plain, s)]
    last = _closing(plain)
    if last and not any(s.end > last.at for s in out):
        out.append(last)
    if any(
        s.kind in VALUES for s in out
    ):  # "Confidence: 90%. I am not sure why it breaks": the number stands
        out = [s for s in out if s.note != PARTIAL]
    return tuple(out)


def _doubtful(plain: str, s: Statement) -> str:
    """Why a number is no confidence of being right: it says how sure the writer is to be wrong, is
    named to be refused, or another one follows in its label ("80% for A and 20% for B")."""
    if _REFUSED.search(plain[max(0, s.start - 20) : s.at]) or _WRONG.match(plain, s.end):
        return TURNED
    rest = _sentence(plain, s.at)[s.end - _begin(plain, s.at) :] if s.at > s.start else ""
    other = _OTHER.match(rest) if s.kind == "percent" else None
    return (
        SEVERAL
        if other and amount(other[1]) != amount(re.sub(f"{PCT}$", "", s.words.lower()))
        else ""
    )


def _unsaid(plain: str, s: Statement) -> bool:
    """Whether a number is none of the writer's: "I can't be 100% sure", "no estoy 90 % seguro"."""
    if s.kind not in VALUES:
        return False
    interval = _WITH.search(plain[max(0, s.start - 12) : s.start]) and _LIES.match(plain, s.end)
    return bool(interval or _UNSAID.search(plain[max(0, s.at - 80) : s.at]))


def _with_languages(plain: str, out: list[Statement]) -> list[Statement]:
    """Also what is said in German, Spanish, Portuguese, French or Chinese, in order, each number
    once."""
    more = [f for f in found_in(plain) if not any(s.start < f.end and f.start < s.end for s in out)]
    return sorted([*out, *more], key=lambda s: s.at) if more else out


def _at(plain: str, tokens: list[Token], i: int) -> Statement | None:
    """What the anchor at i states, before or after it; the later one where both do."""
    kind = tokens[i].lastgroup
    if kind == "weak" and not _CORRECT.search(_sentence(plain, tokens[i].start())):
        return None
    before = None if kind == "loose" else _before(tokens, i)
    if kind == "adjective" and _others(plain, tokens[i], before):
        return None
    if (
        before
        and kind == "adjective"
        and before.kind in SAID_LEVELS
        and not _spoken(plain, tokens, i)
    ):
        before = None
    elif (
        before
        and kind == "adjective"
        and before.kind == "low"
        and _PART_OF.match(plain, tokens[i].end())
    ):
        before = replace(before, note=PARTIAL)
    after = _after(plain, tokens, i)
    if kind == "weak":
        before, after = (s if s and s.kind not in SAID_LEVELS else None for s in (before, after))
    labels = i + 1 < len(tokens) and tokens[i + 1][0] in _POINTS
    apart = bool(before) and bool(set("-*_()\n") & set(plain[before.at : before.end]))
    if before and before.kind in VALUES and not labels and not apart:
        return before  # "I am 90% sure it is 71%": the second number is the answer
    return max((s for s in (before, after) if s), key=lambda s: s.at, default=None)


def _spoken(plain: str, tokens: list[Token], i: int) -> bool:
    """The adjective at i is said by the writer of themselves, or begins its sentence: "Researchers
    are fairly certain" states nothing."""
    start = tokens[i].start()
    head = plain[max(_begin(plain, start), start - 60) : start]
    j = i - 1
    while j >= 0 and tokens[j].lastgroup in (*SAID_LEVELS, "not"):
        j -= 1
    opens = (
        j < 0
        or tokens[j].lastgroup in ("stop", "punct")
        or "\n" in plain[tokens[j].end() : tokens[j + 1].start()]
    )
    return opens or bool(_SPEAKER.search(head))


def _others(plain: str, anchor: Token, before: Statement | None) -> bool:
    """Whether a number is how sure somebody else is: "She was 90% confident", "The jury was 100%
    certain of it"."""
    if before is not None and before.kind not in VALUES:
        return False
    at = before.start if before else anchor.start()
    head = _CLAUSE.split(plain[_begin(plain, at) : at])[-1]
    found = _THIRD.search(head)
    if found is None or found["who"]:
        return found is not None
    thing = anchor[0].lower() == "certain" and not _OF.match(plain, anchor.end())
    return not thing and not _FIRST.search(head)


def _before(tokens: list[Token], i: int) -> Statement | None:
    """From the anchor at i backwards: "80% confident", "a high degree of confidence"; negated
    numbers are no statement."""
    for j in range(i - 1, max(-1, i - 5), -1):
        kind = str(tokens[j].lastgroup)
        if kind in VALUES:
            denied = any(
                t.lastgroup == "not" or (t.lastgroup == "low" and t[0].lower().startswith("not"))
                for t in tokens[max(0, j - 3) : j]
                if tokens[j].string[t.end() : tokens[j].start()].count(".") == 0
            )
            return (
                None
                if denied or (kind in ("number", "span") and i - j > 1)
                else _statement(tokens, j, i, kind)
            )
        if kind in SAID_LEVELS:
            denied = j > 0 and tokens[j - 1].lastgroup == "not"
            return _statement(tokens, j, i, "low" if denied and kind == "high" else kind)
        if kind == "not":
            return _statement(tokens, j, i, "low") if i - j == 1 else None
        if not (kind == "filler" and tokens[j][0].lower() in _OWN) and tokens[j][0] not in "-*_()":
            return None
    return None


def _after(plain: str, tokens: list[Token], i: int) -> Statement | None:
    """From the anchor at i forward over filler to what it states. "My confidence in any single
    figure is low": the noun phrase is passed."""
    anchor = tokens[i].lastgroup
    ends = anchor in (
        "adjective",
        "loose",
    )  # then a number must end its clause: "I am sure 80% ethanol is enough" states nothing
    if (anchor == "loose" or tokens[i][0].lower() == "sure") and not _SPEAKER.search(
        plain[_begin(plain, tokens[i].start()) : tokens[i].start()]
    ):
        return None
    top, level, phrase = None, None, False
    inside = any(t[0].lower() in ("my", "our") for t in tokens[max(0, i - 3) : i])
    first = not plain[_begin(plain, tokens[i].start()) : tokens[i].start()].strip(" -*(|[{")
    follows = [t[0].lower() for t in tokens[i + 1 : i + 2]]
    label = (inside or first) and follows and follows[0] in ("in", "about", "of", "for")
    for j in range(i + 1, min(i + 22, len(tokens))):
        kind = str(tokens[j].lastgroup)
        word = tokens[j][0].lower()
        if phrase:  # inside "in any exact figure"; it ends at a copula or colon
            if word in _POINTS or (inside and word in _COPULA):
                phrase, ends = False, True
            elif (
                kind not in ("word", "filler", "number", "punct")
                or word == "which"
                or "\n" in plain[tokens[j - 1].end() : tokens[j].start()]
            ):
                break
        elif kind == "scale":
            top = said_top(tokens[j])
        elif kind in VALUES:
            bare = anchor == "loose" and kind in ("number", "span")
            stated = not bare and _counts(tokens, j, kind, ends)
            return _statement(tokens, i, j, kind, top) if stated else level
        elif (
            kind in SAID_LEVELS
            and level is None
            and anchor != "loose"
            and (not ends or anchor != "anchor" or _ends(tokens, j))
        ):
            level = _statement(tokens, i, j, kind, top)
        elif kind == "that" and anchor in ("anchor", "weak"):
            ends = True
        elif kind == "word" and anchor == "anchor" and level is None and label:
            phrase = True
        elif kind in (
            "stop",
            "word",
            "not",
            "anchor",
            "adjective",
            "loose",
            "weak",
            "that",
            "other",
            *SAID_LEVELS,
        ):
            break
    return level


def _counts(tokens: list[Token], j: int, kind: str, ends: bool) -> bool:
    """False for a number that counts something: "confidence that 3 genes", "80% of patients"."""
    if j + 1 >= len(tokens):
        return True
    if tokens[j + 1][0].lower() == "of" and j + 2 < len(tokens):
        return tokens[j + 2].lastgroup != "word" and tokens[j + 2][0].lower() != "the"
    counting = kind in ("number", "span") or (
        kind == "ratio" and re.search(r"\bof\b", tokens[j][0]) and "out" not in tokens[j][0]
    )
    return _ends(tokens, j) if counting or ends else True


def _ends(tokens: list[Token], j: int) -> bool:
    """The next token is no word that the one at j could belong to."""
    if (
        j + 1 >= len(tokens)
        or tokens[j + 1].lastgroup != "word"
        or tokens[j + 1][0].lower() in REASONS
    ):
        return True
    return "\n" in tokens[j].string[tokens[j].end() : tokens[j + 1].start()]


def _statement(
    tokens: list[Token], a: int, b: int, kind: str, top: float | None = None
) -> Statement:
    """From token a to token b; the one that is no anchor is the one that states."""
    said = tokens[a] if tokens[a].lastgroup in (*VALUES, *SAID_LEVELS, "not") else tokens[b]
    return Statement(tokens[a].start(), tokens[b].end(), said.start(), kind, said[0], top)


def _begin(text: str, at: int) -> int:
    """Where the sentence around `at` begins."""
    return max(
        (m.end() for m in _ENDS.finditer(text, max(0, at - 400), at)), default=max(0, at - 400)
    )


def _sentence(text: str, at: int) -> str:
    end = _ENDS.search(text, at)
    return text[_begin(text, at) : end.start() if end else len(text)]


def _closing(plain: str) -> Statement | None:
    """A closing estimate without a word of confidence: "I would say 35%.", "I could not prove it,
    so 70%.", "I am unsure about X. 65%."

    Only in the last sentence and only a rating or percentage; not where the text speaks of
    percentages as quantities.
    """
    body = plain.rstrip(" \t\n.!)]}")
    start = _begin(body, len(body))
    start += len(body[start:]) - len(body[start:].lstrip())
    last = body[start:]
    rest = body[:start].rstrip()
    before = rest[_begin(rest, max(0, len(rest) - 1)) :]
    bare = _UNSURE.search(before) and _BARE.fullmatch(last)
    found = (_WHOLE.fullmatch(last) or bare) if rest else None
    if (
        not found
        and (part := next((m for m in _PART.finditer(last) if m.end() == len(last)), None))
        and _UNSURE.search(last[: part.start()])
    ):
        found = part
    if not found:
        return None
    words = found["v"]
    token = TOKENS.fullmatch(words)
    kind = str(token.lastgroup) if token else ""
    if kind not in VALUES or kind == "number" or (kind == "percent" and _QUANTITY.search(rest)):
        return None
    at = start + found.start("v")
    return Statement(
        start + found.start(),
        start + found.end(),
        at,
        kind,
        words,
        note="a closing estimate, no word of confidence beside it",
    )
