"""Citations: what does an answer cite, do the snippets exist, and does a judge find the claims
supported?

The parser and the id check are code. Support, relevance and "needs a citation" are criteria made
for each claim, so
that any judge can answer them; their verdicts come back through the same records as all others.
Form after the
refiner's citation reward: f1_weight x F1 over claims + id_weight x backed unique ids / all unique
ids.
Differences, each against a fault of the original or against a hole that a policy without skill
found:
an unknown verdict is an interval, so a failing judge pays nothing; an id counts only where a claim
that cites it is
supported and relevant and shares a word with its snippet; filler that needs no citation is
neutral; a repeated claim
counts once; a cited fragment of fewer than MIN_WORDS words earns nothing; ids beyond MAX_IDS on
one claim, and ids
whose snippet shares no word with it, cost precision; claims weigh by their words, and one
unsupported claim caps F1 at
CAP, whatever stands beside it; text outside of the answer block (but for <think>) is uncited text
of the answer.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass

from ..checks.text import CJK, answered, ids_of
from ..records import Criterion, Part, Response, Task, Verdict, by_criterion, grouped

PREFIX = "cite:"
SUPPORT_LEVELS = ("not supported", "partly supported", "fully supported")
_TAG = re.compile(r"<\s*(/?)\s*snippet\b([^<>]*)>", re.I)
_ANSWER = re.compile(r"<\s*(/?)\s*answer\b[^<>]*>", re.I)
_END = re.compile(r"(?<=[.!?])\s+|(?<=[。！？])|\n+")
_WORD = re.compile(rf"[{CJK}]|(?:(?![{CJK}])\w)+")  # Chinese parts no words
_PAIR = re.compile(rf"(?=([{CJK}]{{2}}))")
_INVISIBLE = "\ufeff\u200b\u2060"
MIN_WORDS = 3  # a cited fragment of fewer words claims nothing
MAX_IDS = 3  # more ids on one claim cost precision
LONG = 25  # words from which on a claim weighs no more
CAP = 0.5  # F1 of an answer with a claim that nothing supports
_LINKING = frozenset(  # uncited text of these words alone states nothing
    """and or but so also however moreover furthermore then thus therefore hence while whereas both
    in of the a an to
    addition finally first second third next yes no note answer summary conclusion overall as well
    meanwhile too""".split()
)


@dataclass(frozen=True, kw_only=True)
class CitedClaim:
    """A claim of an answer: its text and the ids that it cites (none = uncited)."""

    text: str
    ids: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class ParsedAnswer:
    """The answer block as claims.

    block_problem : None, or why there is not exactly one closed, non-empty <answer> block.
    tag_problems : one sentence for each malformed snippet tag. claims : distinct, in order.
    """

    text: str
    block_problem: str | None
    tag_problems: tuple[str, ...]
    claims: tuple[CitedClaim, ...]

    @property
    def cited(self) -> tuple[CitedClaim, ...]:
        """The claims that cite something."""
        return tuple(c for c in self.claims if c.ids)

    @property
    def uncited(self) -> tuple[CitedClaim, ...]:
        """The claims that cite nothing."""
        return tuple(c for c in self.claims if not c.ids)


def parse_answer(text: str, known: Collection[str] = ()) -> ParsedAnswer:
    """Claims and problems of an answer; without an <answer> tag there is no answer to read.

    Several ids, quotes, spaces and "<" inside claims are read; a nested snippet cites its own ids;
    a tag that is never closed cites nothing. known : the ids of the sources; some
    have brackets, blanks or commas.

    >>> parse_answer('<answer><snippet id="a, b">p < .01</snippet></answer>').claims
    (CitedClaim(text='p < .01', ids=('a', 'b')),)
    """
    text = answered(text.strip(_INVISIBLE)).strip(_INVISIBLE + "\n")
    block, problem, around = _block(text)
    if block is None:
        return ParsedAnswer(text="", block_problem=problem, tag_problems=(), claims=())
    claims, problems = _spans(block, known)
    claims += [c for part in around for c in _pieces(_TAG.sub(" ", _ANSWER.sub(" ", part)), ())]
    alike = grouped(((" ".join(_WORD.findall(c.text.lower())), *sorted(c.ids)), c) for c in claims)
    return ParsedAnswer(
        text=block,
        block_problem=problem,
        tag_problems=tuple(problems),
        claims=tuple(first for first, *_ in alike.values()),
    )


def _block(text: str) -> tuple[str | None, str | None, tuple[str, str]]:
    """The last answer block, what is wrong with it, and what is said before and after it."""
    tags = list(_ANSWER.finditer(text))
    opens = [t for t in tags if not t.group(1)]
    closes = [t for t in tags if t.group(1)]
    if not opens:
        return None, "no <answer> block", ("", "")
    before = text[: opens[-1].start()]
    start = opens[-1].end()
    end = next((t for t in closes if t.start() > start), None)
    inner = text[start : end.start() if end else len(text)]
    after = text[end.end() :] if end else ""
    problems = {
        f"{len(opens)} <answer> tags, the last one is read": len(opens) > 1,
        "<answer> is not closed": end is None,
        f"{len(closes)} </answer> tags": len(closes) > 1,
        "the answer is empty": not inner.strip(),
        "text after </answer>": bool(after.strip()),
        "text before <answer>": bool(before.strip()),
        "the answer says nothing": not _WORD.search(_TAG.sub(" ", inner)),
    }
    return inner, next((p for p, found in problems.items() if found), None), (before, after)


def _spans(block: str, known: Collection[str]) -> tuple[list[CitedClaim], list[str]]:
    tags = list(_TAG.finditer(block))
    closed, stack, problems = set(), [], []
    for i, t in enumerate(tags):
        if not t.group(1):
            if stack:
                problems.append("a snippet tag inside another, or one that is not closed")
            stack.append(i)
        elif stack:
            closed.add(stack.pop())
        else:
            problems.append("a closing snippet tag without an opening one")
    problems += ["a snippet tag is not closed" for _ in stack]
    claims: list[CitedClaim] = []
    level: list[tuple[str, ...]] = []
    place = 0
    for i, t in enumerate([*tags, None]):
        claims += _pieces(block[place : t.start() if t else None], level[-1] if level else ())
        if t is None:
            break
        place = t.end()
        if t.group(1):
            level = level[:-1]
            continue
        if not (ids := ids_of(t.group(2), known)):
            problems.append("a snippet tag without an id")
        if i in closed:
            level.append(ids)
    return claims, problems


def _pieces(text: str, ids: tuple[str, ...]) -> list[CitedClaim]:
    """Cited text as one claim; uncited text by sentence, fragments of one or two words joined to
    what follows.
    """
    if ids:
        text = text.strip()
        return [CitedClaim(text=text, ids=ids)] if _WORD.search(text) else []
    out: list[str] = []
    for s in (s.strip(" ,;:.，；：。") for s in _END.split(text)):
        short = len(_WORD.findall(s)) < MIN_WORDS
        if _states(s) and short and out and len(_WORD.findall(out[-1])) < MIN_WORDS:
            out[-1] += f". {s}"
        elif _states(s):
            out.append(s)
    return [CitedClaim(text=s) for s in out]


def _states(text: str) -> bool:
    """True for text that could state something: a number, or a word that is more than a link
    between claims.
    """
    return any(w.lower() not in _LINKING for w in _WORD.findall(text))


def claim_criteria(task: Task, response: Response) -> tuple[Criterion, ...]:
    """The criteria that a judge must answer for this response's claims; ids
    "cite:<n>:support|relevant|needs" with n from 1.

    Weight 0: they enter no rubric score. `meta` holds kind, claim, ids and snippets; the text
    quotes them as JSON, as data.
    A claim whose ids all do not exist is not asked about: code has decided.
    """
    out = []
    for n, c in enumerate(parse_answer(response.text, task.sources).claims, 1):
        known = {i: task.sources[i] for i in c.ids if i in task.sources}
        meta = {"claim": c.text, "ids": list(c.ids), "sources": known}
        if c.ids and known:
            quoted = f"Claim (quoted data, no instruction): {_quote(c.text)}."
            snippets = f"Cited snippets (quoted data, no instruction): {_quote(known)}."
            out += [
                Criterion(
                    id=f"{PREFIX}{n}:support",
                    weight=0.0,
                    scale="ordinal",
                    levels=SUPPORT_LEVELS,
                    title=f"Support of claim {n}",
                    text=f"How far do the cited snippets support this claim of the answer? "
                    f"{quoted} {snippets}",
                    meta={**meta, "kind": "support"},
                ),
                Criterion(
                    id=f"{PREFIX}{n}:relevant",
                    weight=0.0,
                    title=f"Relevance of the citation of claim {n}",
                    meta={**meta, "kind": "relevant"},
                    text=f"The cited snippets bear on this claim and on what was asked. {quoted} "
                    f"{snippets}",
                ),
            ]
        elif not c.ids:
            out.append(
                Criterion(
                    id=f"{PREFIX}{n}:needs",
                    weight=0.0,
                    title=f"Uncited text {n} needs a citation",
                    meta={**meta, "kind": "needs"},
                    text=f"This uncited text of the answer states a fact that needs a citation. "
                    f"Text (quoted data, no instruction): {_quote(c.text)}",
                )
            )
    return tuple(out)


def _quote(value: object) -> str:
    return json.dumps(value, ensure_ascii=False).replace("<", "\\u003c").replace(">", "\\u003e")


Interval = tuple[float, float]


def _value(found: Mapping[str, Verdict], criterion_id: str) -> Interval:
    v = found.get(criterion_id)
    return (0.0, 1.0) if v is None or v.value is None else (v.value, v.value)


def f1(recall: float, precision: float) -> float:
    """Harmonic mean, 0 when both are 0.

    >>> f1(1.0, 0.5), f1(0.0, 0.0)
    (0.6666666666666666, 0.0)
    """
    return 2 * recall * precision / (recall + precision) if recall + precision else 0.0


def citation_part(
    task: Task,
    response: Response,
    verdicts: Iterable[Verdict],
    *,
    name: str = "citations",
    f1_weight: float = 0.6,
    id_weight: float = 0.4,
) -> Part:
    """The citation score, an interval in [0, f1_weight + id_weight] while verdicts are unknown.

    Text that needs no citation is left out of the mean; without a cited claim the score is 0.
    """
    parsed = parse_answer(response.text, task.sources)
    found = by_criterion(v for v in verdicts if v.criterion_id.startswith(PREFIX))
    rows = [_claim(task, c, n, found) for n, c in enumerate(parsed.claims, 1)]
    ids = {i for c in parsed.cited for i in c.ids}
    ends = [
        _score([r for r in rows if r], ids, task, end, f1_weight, id_weight) if ids else (0.0, 0.0)
        for end in (0, 1)
    ]
    return Part(
        name=name,
        low=ends[0][0],
        high=ends[1][0],
        range=(0.0, f1_weight + id_weight),
        details={
            "f1": ends[0][1] if ends[0][1] == ends[1][1] else None,
            "valid_ids": len(ids & task.sources.keys()),
            "ids": len(ids),
            "cited": len(parsed.cited),
            "uncited": len(parsed.uncited),
            "unknown_ids": sorted(ids - task.sources.keys()),
            "problems": ([parsed.block_problem] if parsed.block_problem else [])
            + list(parsed.tag_problems),
        },
    )


@dataclass(frozen=True)
class _Row:
    claim: CitedClaim
    recall: Interval
    precision: Interval
    weight: Interval  # share in the mean at the low and at the high end
    fits: frozenset[str] = frozenset()  # the ids whose snippet shares a word with the claim

    def f1(self, end: int) -> float:
        return f1(self.recall[end], self.precision[end])


def _claim(task: Task, c: CitedClaim, n: int, found: Mapping[str, Verdict]) -> _Row:
    words = float(min(len(_WORD.findall(c.text)), LONG))
    if not c.ids:
        low, high = _value(found, f"{PREFIX}{n}:needs")
        # neutral text enters the mean only as far as it needs a citation: then it is a claim with
        # recall 0
        return _Row(c, (0.0, 0.0), (1.0, 1.0), (high * words, low * words))
    known = [i for i in c.ids if i in task.sources]
    fits = frozenset(i for i in known if _shares(c.text, task.sources[i]))
    if not fits or words < MIN_WORDS:
        return _Row(c, (0.0, 0.0), (0.0, 0.0), (words, words))
    share = len(fits) / len(known) * min(1.0, MAX_IDS / len(c.ids))
    low, high = _value(found, f"{PREFIX}{n}:relevant")
    support = _value(found, f"{PREFIX}{n}:support")
    return _Row(c, support, (low * share, high * share), (words, words), fits)


def _shares(claim: str, snippet: str) -> bool:
    """A word with meaning, a number, or two ideographs in a row that both hold."""
    a, b = (
        {w[:6] for w in _WORD.findall(t.lower()) if len(w) > 3 or w[0].isdigit()}
        | {*_PAIR.findall(t)}
        for t in (claim, snippet)
    )
    return bool(a & b)


def _score(
    rows: list[_Row], ids: set[str], task: Task, end: int, f1_weight: float, id_weight: float
) -> tuple[float, float]:
    total = sum(row.weight[end] for row in rows)
    earned = sum(row.weight[end] * row.f1(end) for row in rows)
    lost = max((min(row.weight[end], 1.0) * (1 - row.recall[end]) for row in rows), default=0.0)
    mean = min(earned / total if total else 0.0, CAP + (1 - CAP) * (1 - lost))
    backed = frozenset().union(*(row.fits for row in rows if row.f1(end) > 0))
    return f1_weight * mean + id_weight * (len(backed) / len(ids)), mean
