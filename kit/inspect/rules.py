"""The lint's rules on one row: criteria alone, criteria among each other, the task, its labels."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import cached_property, lru_cache

from ..records import Criterion, Task
from ..sources.findings import Finding
from ..sources.taskset import Parsed
from .notes import THRESHOLD, note_score
from .wording import Stand, check_fault, contradict, encoding, leak, script, several, stand, subjective
from .words import GENERIC, STOP, content, fold, grams_of, jaccard, tokens_of, words

NEAR = 0.8  # overlap of character 4-grams from which two criteria of a row are near-duplicates
Found = Callable[..., Finding]


@dataclass(frozen=True)
class Read:
    """One criterion with what several rules need of it."""

    criterion: Criterion
    tokens: list[str] = field(repr=False)
    set: frozenset[str] = field(repr=False)

    @cached_property
    def core(self) -> frozenset[str]:
        """The words without the common ones; all words where nothing else is left."""
        return self.set - STOP or self.set


@lru_cache(maxsize=20_000)
def _tokens(text: str) -> tuple[list[str], frozenset[str]]:
    found = words(text)
    return found, frozenset(found)


def check_row(p: Parsed, *, prompt_tokens: int, near: bool = True) -> Iterator[Finding]:
    """All findings on one parsed row. near : look for near-duplicates by n-grams (off when an embedding does it)."""
    task = p.task
    if task is None:
        return

    def found(code: str, severity: str, message: str, **more: object) -> Finding:
        return Finding(code=code, severity=severity, message=message, row=p.row, where=p.where, task_id=task.id, **more)  # type: ignore[arg-type]

    yield from _prompt(task, found, prompt_tokens)
    read = [Read(c, *_tokens(c.text)) for c in task.criteria]
    prompt_content = content(words(" ".join([task.prompt[:20_000], *(s[:2_000] for s in task.sources.values())])))
    for r in read:
        yield from _one(r, task, prompt_content, found)
    yield from _pairs(read, found, near)
    yield from _weights(task, found)
    yield from _labels(p, task, found)


def _prompt(task: Task, found: Found, prompt_tokens: int) -> Iterator[Finding]:
    if not task.prompt.strip():
        yield found("empty-prompt", "error", "the prompt is empty", suggestion="write it or remove the row")
    elif (n := tokens_of(task.prompt)) > prompt_tokens:
        yield found("long-prompt", "warning", f"the prompt has about {n} tokens; the profile takes {prompt_tokens}",
                    suggestion="shorten it, or raise the profile's prompt length")
    if fault := encoding(task.prompt):
        yield found("encoding", "warning", f"the prompt holds {fault}", field="prompt", suggestion="repair the text at its source")


def _one(r: Read, task: Task, prompt_content: set[str], found: Found) -> Iterator[Finding]:
    c, text = r.criterion, r.criterion.text
    place = {"criterion_id": c.id, "text": text[:200]}
    if not r.tokens:
        yield found("empty-criterion", "error", "the criterion has no words", suggestion="write it or remove it", **place)
        return
    score = note_score(text, r.set)
    if score >= THRESHOLD:
        yield found("annotator-note", "error" if score >= 0.75 else "warning", "this looks like an annotator's note, not like a demand on the answer",
                    confidence=score, suggestion="remove it from the criteria, or say what the answer must do", **place)
        return
    if c.check is not None:
        if fault := check_fault(c.check):
            yield found("impossible-check", "error", f"the check can never be met: {fault}", suggestion="correct its limits", **place)
    else:
        if vague := subjective(r.set, text):
            yield found("subjective", "info", f"nothing to measure {', '.join(map(repr, vague[:3]))} by",
                        suggestion="say what an outsider would look for, with a number or an example", **place)
        if several(text, r.set):
            yield found("several-requirements", "info", "the criterion asks for several things: half of it can be met",
                        suggestion="split it into one criterion each", **place)
    if said := leak(text, task.prompt, r.set):
        yield found("answer-leak", "info", f"the criterion states {said!r}, which the prompt neither holds nor asks for",
                    suggestion="ask for it in the prompt, or drop the criterion", **place)
    if fault := encoding(text):
        yield found("encoding", "warning", f"the criterion holds {fault}", suggestion="repair the text at its source", **place)
    if not (task.prompt.isascii() and text.isascii()) and (a := script(text)) and (b := script(task.prompt)) and a != b:
        yield found("language", "info", f"the criterion is in {a} script, the prompt in {b}", suggestion="check that both are meant", **place)
    if c.check is None and len(prompt_content) >= 4 and _foreign(r.set, prompt_content):
        yield found("unrelated", "info", "the criterion shares no content word with the prompt", confidence=0.4,
                    suggestion="check that it belongs to this prompt", **place)


def _foreign(tokens: frozenset[str], prompt_content: set[str]) -> bool:
    """True for a specific criterion without a content word of the prompt."""
    if not tokens.isdisjoint(GENERIC):
        return False
    own = content(tokens)
    return len(own) >= 4 and own.isdisjoint(prompt_content)


def specific(tokens: list[str], token_set: frozenset[str]) -> bool:
    """True when a criterion has enough content of its own to be related to a prompt, or not ("Is polite." has not)."""
    return not token_set & GENERIC and len(content(tokens)) >= 4


def _pairs(read: list[Read], found: Found, near: bool) -> Iterator[Finding]:
    read = [r for r in read if r.tokens]
    folded: dict[str, str] = {}
    texts = [" ".join(r.tokens) for r in read]
    for r, text in zip(read, texts, strict=True):
        if text in folded:
            yield found("duplicate-criterion", "warning", f"the same criterion as {folded[text]!r}", criterion_id=r.criterion.id,
                        text=r.criterion.text[:200], suggestion="remove one: it counts twice")
        folded.setdefault(text, r.criterion.id)
    stands = [stand(r.criterion.text, r.set) for r in read]
    telling = [s for s in stands if s.limits or s.forbids]
    if telling:
        yield from _contradictions(read, stands, texts, found)
    if not near:
        return
    shapes: dict[int, frozenset[str]] = {}
    cores = [r.core for r in read]
    for i, a in enumerate(read):
        for j in range(i):
            b, mine, other = read[j], cores[i], cores[j]
            if 1.7 * len(mine & other) < max(len(mine), len(other)) or texts[i] == texts[j] or _numbers_differ(a, b):
                continue
            for k in (i, j):
                if k not in shapes:
                    shapes[k] = grams_of(texts[k])
            if (s := jaccard(shapes[i], shapes[j])) >= NEAR and not contradict(stands[i], stands[j]):
                yield found("near-duplicate", "warning", f"nearly the same as {b.criterion.id!r} (overlap {s:.2f})", criterion_id=a.criterion.id,
                            text=a.criterion.text[:200], confidence=round(s, 2), suggestion="merge them: they count twice")


def _contradictions(read: list[Read], stands: list[Stand], texts: list[str], found: Found) -> Iterator[Finding]:
    for i, a in enumerate(read):
        for j in range(i):
            b = read[j]
            same_sign = (a.criterion.weight < 0) == (b.criterion.weight < 0)
            if same_sign and texts[i] != texts[j] and (why := contradict(stands[i], stands[j])):
                yield found("contradiction", "error", f"contradicts {b.criterion.id!r}: {why}", criterion_id=a.criterion.id,
                            text=a.criterion.text[:200], suggestion="keep one of the two")


def _numbers_differ(a: Read, b: Read) -> bool:
    """"Names cause 1" and "names cause 2" are two criteria."""
    left, right = ([w for w in r.tokens if w.isdigit()] for r in (a, b))
    return left != right


def _weights(task: Task, found: Found) -> Iterator[Finding]:
    weights = [c.weight for c in task.criteria]
    if not weights:
        return
    if not any(weights):
        yield found("zero-weights", "error", "every weight is 0: nothing is scored", suggestion="give the criteria weights")
    elif max(weights) <= 0:
        yield found("one-signed", "warning", "every weight is negative: the best answer is the one that does nothing",
                    suggestion="add what the answer must do")


def _labels(p: Parsed, task: Task, found: Found) -> Iterator[Finding]:
    told: dict[tuple[str, str], list[float]] = {}
    known = {c.id for c in task.criteria}
    for v in p.verdicts:
        if v.judge.startswith("human") and v.value is not None:
            told.setdefault((v.response_id, v.criterion_id), []).append(v.value)
        if v.criterion_id not in known:
            yield found("unknown-criterion", "error", f"a label names the criterion {v.criterion_id!r}, which the task does not have",
                        criterion_id=v.criterion_id, suggestion="correct the id")
    for (response, criterion), values in told.items():
        if len(values) > 1 and max(values) - min(values) >= 0.75:
            yield found("raters-disagree", "info", f"the raters disagree on response {response!r} ({len(values)} labels)", criterion_id=criterion,
                        suggestion="make the criterion more exact, or leave it out of the agreement")


def prompt_key(prompt: str) -> str:
    """A prompt for finding its duplicates."""
    return fold(prompt) if prompt.strip() else ""
