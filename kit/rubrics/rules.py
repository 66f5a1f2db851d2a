"""The lint's rules on one row: criteria alone, criteria among each other, the task, its labels."""

from __future__ import annotations

from functools import lru_cache

from ..checks import check
from ..data.findings import Finding
from ..data.taskset import Parsed
from ..errors import DataError
from ..records import Criterion, Response, Task
from .limits import mismatch
from .meaning import (
    extreme_weights,
    injected,
    missing_reference,
    placeholder,
    unattached,
    unfinished,
    unverifiable,
    wrong_sign,
)
from .notes import THRESHOLD, note_score
from .same import Found, compare
from .wording import (
    CERTAIN,
    INVENTED_WORDS,
    demanded,
    encoding,
    invents,
    leak,
    script,
    several,
    subjective,
)
from .words import GENERIC, STOP, content, tokens_of, words

WEAK = 0.4  # confidence of a finding by shared words alone


class Read:
    """The text of a criterion with what several rules need of it. core : its words without the
    common ones, or all where nothing else is left."""

    __slots__ = ("core", "folded", "set", "tokens")

    def __init__(self, text: str):
        self.tokens = words(text)
        self.folded = " ".join(self.tokens)
        self.set = frozenset(self.tokens)
        self.core = self.set - STOP or self.set


read = lru_cache(maxsize=4096)(Read)  # texts that many rows repeat


class Prompt:
    """A prompt with what the rules on its criteria need of it."""

    __slots__ = ("_content", "ascii", "invents", "plain")

    def __init__(self, task: Task):
        text = task.asked
        self.ascii = text.isascii()
        shown = (
            text[:20_000]
            if not task.sources
            else " ".join([text[:20_000], *(s[:2_000] for s in task.sources.values())])
        )
        self.plain = {w for w in set(words(shown)) - STOP if len(w) > 2}
        self.invents = not INVENTED_WORDS.isdisjoint(self.plain) and invents(text)
        self._content: set[str] | None = None

    @property
    def content(self) -> set[str]:
        """Stems of its words that carry content."""
        if self._content is None:
            self._content = content(self.plain)
        return self._content


def check_row(p: Parsed, *, prompt_tokens: int) -> list[Finding]:
    """All findings on one parsed row."""
    task, out = p.task, []
    if task is None:
        return out

    def found(
        code: str, severity: str, message: str, c: Criterion | None = None, **more: object
    ) -> None:
        if c is not None:
            more |= {"criterion_id": c.id, "text": c.text[:200]}
        out.append(
            Finding(
                code=code,
                severity=severity,
                message=message,
                row=p.row,
                where=p.where,
                task_id=task.id,
                **more,
            )
        )  # type: ignore[arg-type]

    _prompt(task, found, prompt_tokens)
    prompt = Prompt(task)
    pairs = [(c, read(c.text)) for c in task.criteria]
    for c, r in pairs:
        _one(c, r, task, prompt, found)
    _strangers(pairs, prompt, found)
    if len(pairs) > 1:
        compare([(c, r.folded) for c, r in pairs if r.tokens], found)
    _weights(task, found)
    if p.verdicts:
        _labels(p, task, found)
    return out


def _prompt(task: Task, found: Found, prompt_tokens: int) -> None:
    if not task.prompt.strip():
        found(
            "empty-prompt", "error", "the prompt is empty", suggestion="write it or remove the row"
        )
    elif (n := tokens_of(task.asked)) > prompt_tokens:
        found(
            "long-prompt",
            "warning",
            f"the prompt has about {n} tokens; the profile takes {prompt_tokens}",
            suggestion="shorten it, or raise the profile's prompt length",
        )
    if thing := unattached(task):
        found(
            "no-reference",
            "warning",
            f"the prompt speaks of {thing!r}, which the task does not hold",
            field="prompt",
            suggestion="put it into the sources, or into the prompt",
        )
    if fault := encoding(task.asked):
        found(
            "encoding",
            "warning",
            f"the prompt holds {fault}",
            field="prompt",
            suggestion="repair the text at its source",
        )


def _one(c: Criterion, r: Read, task: Task, prompt: Prompt, found: Found) -> None:
    text = c.text
    if not r.tokens or (len(r.tokens) == 1 and text.strip().isdecimal()):
        found(
            "empty-criterion",
            "error",
            "the criterion has no words",
            c,
            suggestion="write it or remove it",
        )
        return
    score = note_score(text, r.set)
    if score >= THRESHOLD and not injected(text, r.set):
        found(
            "annotator-note",
            "error" if score >= 0.75 else "warning",
            "this looks like an annotator's note, not like a demand on the answer",
            c,
            confidence=score,
            suggestion="remove it from the criteria, or say what the answer must do",
        )
        return
    if holder := placeholder(text, task):
        found(
            "placeholder",
            "warning",
            f"{holder!r} was never filled in",
            c,
            suggestion="write what the answer must say",
        )
    if c.check is not None:
        if why := mismatch(c):
            found("check-mismatch", "warning", why, c, suggestion="correct the text or its check")
        if fault := _check_fault(task, c):
            found(
                "impossible-check",
                "error",
                f"no answer can be checked: {fault.what}",
                c,
                suggestion=fault.fix or "correct its arguments",
            )
    else:
        if not c.levels and (vague := subjective(r.set, text)):
            found(
                "subjective",
                "info",
                f"nothing to measure {', '.join(map(repr, vague[:3]))} by",
                c,
                suggestion="say what an outsider would look for, with a number or an example",
            )
        if c.weight > 0 and c.scale == "binary" and several(text, r.tokens):
            found(
                "several-requirements",
                "info",
                "the criterion asks for several things: half of it can be met",
                c,
                suggestion="split it into one criterion each",
            )
    if prompt.invents and c.weight > 0 and (said := demanded(text, task.prompt)):
        found(
            "answer-leak",
            "info",
            f"the prompt leaves the name open, and the criterion wants {said!r}",
            c,
            suggestion="ask for it in the prompt, or drop the criterion",
        )
    elif said := leak(text, task.asked, r.set):
        found(
            "unasked-detail",
            "info",
            f"the criterion states {said!r}, which the prompt neither holds nor asks for",
            c,
            suggestion="ask for it in the prompt, or drop the criterion",
        )
    if form := unfinished(c, task):
        found("unfinished", "warning", form[0], c, suggestion=form[1])
    _meaning(c, r, task, found)
    if fault := encoding(text):
        found(
            "encoding",
            "warning",
            f"the criterion holds {fault}",
            c,
            suggestion="repair the text at its source",
        )
    if (
        not (prompt.ascii and text.isascii())
        and (a := script(text))
        and (b := script(task.prompt))
        and a != b
    ):
        found(
            "language",
            "info",
            f"the criterion is in {a} script, the prompt in {b}",
            c,
            suggestion="check that both are meant",
        )
    if (
        c.check is None
        and prompt.plain.isdisjoint(r.set)
        and len(prompt.content) >= 4
        and _foreign(r.set, prompt.content)
    ):
        found(
            "far-from-prompt",
            "info",
            "the criterion shares no content word with the prompt",
            c,
            confidence=WEAK,
            suggestion="check that it belongs to this prompt",
        )


def _check_fault(task: Task, c: Criterion) -> DataError | None:
    """What is wrong with the arguments of a check; it is tried on an answer, but for a function of
    the user's."""
    if c.check is None or c.check.get("name") == "python":
        return None
    try:
        check(task, Response(task_id=task.id, id="lint", text="x"), c)
    except DataError as e:
        return e
    return None


def _meaning(c: Criterion, r: Read, task: Task, found: Found) -> None:
    """Its sign, whom it talks to, and whether it can be decided at all."""
    if why := wrong_sign(c):
        found(
            "sign",
            "warning",
            f"the sign of its weight ({c.weight:g}) looks wrong: {why}",
            c,
            suggestion="turn the sign, or the wording",
        )
    if c.check is None and injected(c.text, r.set):
        found(
            "injected",
            "warning",
            "the criterion gives orders to the judge instead of describing an answer",
            c,
            suggestion="remove it, and look where it came from",
        )
    if c.check is None and unverifiable(c.text, r.set):
        found(
            "unverifiable",
            "warning",
            "neither the answer nor the task can show whether it holds",
            c,
            suggestion="say what in the answer would show it",
        )
    if thing := missing_reference(c, r.set, task):
        found(
            "no-reference",
            "warning",
            f"it needs {thing!r}, which the task does not hold",
            c,
            suggestion="put it into the sources or the truth, or into the criterion itself",
        )


def _strangers(pairs: list[tuple[Criterion, Read]], prompt: Prompt, found: Found) -> None:
    """Short criteria on a certain thing that nothing else in the row speaks of; those with more
    words are `_foreign`."""
    for c, r in pairs:
        if (
            c.check is None
            and c.weight > 0
            and prompt.plain.isdisjoint(r.set)
            and CERTAIN.match(c.text)
            and len(prompt.content) >= 4
            and r.set.isdisjoint(GENERIC)
        ):
            own = content(r.core)
            if (
                len(own) in (2, 3)
                and own.isdisjoint(prompt.content)
                and all(own.isdisjoint(content(o.core)) for _, o in pairs if o is not r)
            ):
                found(
                    "unrelated",
                    "info",
                    "it asks for a certain thing of which neither the prompt nor another "
                    "criterion speaks",
                    c,
                    confidence=0.6,
                    suggestion="check that it belongs to this prompt",
                )


def _foreign(tokens: frozenset[str], prompt_content: set[str]) -> bool:
    """True for a specific criterion without a content word of the prompt."""
    if not tokens.isdisjoint(GENERIC):
        return False
    own = content(tokens)
    return len(own) >= 4 and own.isdisjoint(prompt_content)


def specific(tokens: list[str], token_set: frozenset[str]) -> bool:
    """True when a criterion has enough content of its own to be related to a prompt, or not ("Is
    polite." has not)."""
    return not token_set & GENERIC and len(content(tokens)) >= 4


def _weights(task: Task, found: Found) -> None:
    weights = [c.weight for c in task.criteria]
    if not weights:
        return
    if not any(weights):
        found(
            "zero-weights",
            "error",
            "every weight is 0: nothing is scored",
            suggestion="give the criteria weights",
        )
    elif max(weights) <= 0:
        found(
            "one-signed",
            "warning",
            "every weight is negative: the best answer is the one that does nothing",
            suggestion="add what the answer must do",
        )
    for c, why in extreme_weights(task.criteria):
        found("extreme-weight", "warning", why, c, suggestion="check the decimal point")


def _labels(p: Parsed, task: Task, found: Found) -> None:
    told: dict[tuple[str, str], list[float]] = {}
    known = {c.id for c in task.criteria}
    for v in p.verdicts:
        if v.judge.startswith("human") and v.value is not None:
            told.setdefault((v.response_id, v.criterion_id), []).append(v.value)
        if v.criterion_id not in known:
            found(
                "unknown-criterion",
                "error",
                f"a label names the criterion {v.criterion_id!r}, which the task does not have",
                criterion_id=v.criterion_id,
                suggestion="correct the id",
            )
    for (response, criterion), values in told.items():
        if len(values) > 1 and max(values) - min(values) >= 0.75:
            found(
                "raters-disagree",
                "info",
                f"the raters disagree on response {response!r} ({len(values)} labels)",
                criterion_id=criterion,
                suggestion="make the criterion more exact, or leave it out of the agreement",
            )
