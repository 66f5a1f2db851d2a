"""Judges that repeat what was recorded: a ledger, its export, a JSONL file of verdicts,
recorded real judges, and the recorded 1.5B judge of `data/judge_recording.jsonl.gz`.

Nothing here calls a model. What was not recorded is a MissingError.
"""

import functools
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, cast

from msgspec.structs import asdict

from ..errors import DataError, MissingError
from ..records import Criterion, Response, Task, Verdict
from ..system import paths
from .judge import Judge, make_judge
from .ledger import SUBJECT, Ledger, read_recording, short_hash, subject_keys
from .prompt import met_share
from .question import Reading, RowPlan, unknown

Lookup = Callable[[Task, Response, Criterion], Reading | None]
LEDGER_ENDINGS = (".sqlite", ".db")
SCORES = "12345"
MISSING_FIX = (
    'ask a live judge: an endpoint, or "small" after `kit fetch judge` (1.1 GB)'
)


class ReplayJudge(Judge):
    """A judge that looks its verdicts up.

    look_up : function of task, answer and criterion -> the fields of the recorded verdict,
    None without one. texts : the recorded completions by the JSON of their chat; those
    that were recorded without their chat come one after the other.
    """

    def __init__(
        self,
        name: str,
        look_up: Lookup,
        texts: Iterable[tuple[str | None, str]] = (),
    ):
        self.name, self.look_up, self.texts = name, look_up, list(texts)

    def readings(
        self, task: Task, response: Response, criteria: Sequence[Criterion]
    ) -> list[Reading]:
        """The fields of the recorded verdicts; MissingError without one."""
        rows: list[Reading] = []
        for c in criteria:
            fields = self.look_up(task, response, c)
            if not fields:
                raise MissingError(
                    f"{self.name} recorded no verdict on this text",
                    where=f"task {task.id!r}, answer {response.id!r}, criterion {c.id!r}",
                    fix=MISSING_FIX,
                )
            rows.append({**fields, "cached": True, "cost": 0.0})
        return rows

    def completion(
        self, messages: list[dict[str, str]], schema: Mapping[str, Any] | None
    ) -> RowPlan:
        """The recorded completion of a chat; MissingError without one."""
        # A plan that has nothing to ask.
        yield from ()
        # As the endpoint writes a request, so that equal chats have equal texts.
        chat = json.dumps(messages, ensure_ascii=False)
        for pair in self.texts:
            if pair[0] is None:
                self.texts.remove(pair)
            if pair[0] in (chat, None):
                return {"reply": pair[1]}
        raise MissingError(
            f"{self.name} recorded no completion of this chat",
            where=f"chat {chat[-80:]}",
            fix=MISSING_FIX,
        )


def replay(subject: str | Path = "gpt-4o/bare", **options: Any) -> Judge:
    """A replay judge.

    subject : a ledger or a JSONL file of verdicts (see `recorded_file`), "small" (see
    `recorded_small`), or a recorded real judge as "gpt-4o/bare" (see `real_judge`).
    """
    make: Callable[..., Judge] = real_judge
    if str(subject) == "small":
        make, subject = recorded_small, ""
    elif Path(subject).suffix in (*LEDGER_ENDINGS, ".jsonl", ".gz"):
        make = recorded_file
    return make_judge(
        make,
        subject or None,
        options,
        where=f"judge replay:{subject or 'small'}",
    )


def recorded_small(
    *, system: str | None = None, prompt: str | None = None, how: str = "all"
) -> ReplayJudge:
    """What the 1.5B judge replied (`data/judge_recording.jsonl.gz`).

    system : a prompt that was recorded (default: the baseline's); prompt : a file with it.
    how : "all" criteria in one call, or "one".

    >>> recorded_small().name
    'replay:small'
    """
    file = Path(prompt or paths.data("judge_prompts", "baseline.txt"))
    text = (system or file.read_text("utf-8")).strip()
    # A prompt of the recording is a judge of its own.
    judge = recorded_file(
        paths.data("judge_recording.jsonl.gz"),
        judge=f"small {short_hash([text, how])}",
    )
    judge.name, judge.system = "replay:small", text
    return judge


def recorded_file(path: str | Path, *, judge: str | None = None) -> ReplayJudge:
    """A ledger or a JSONL file: by texts where verdicts have a ledger's key, else by ids.

    judge : whose verdicts, where the file holds those of several.
    """
    judges, texts = _recorded_rows(Path(path), Path(path).stat().st_mtime_ns)
    name = judge or ", ".join(judges)
    # Nobody knows which of two verdicts on one text is meant.
    if judge is None and len(judges) > 1:
        raise DataError(
            f"it holds the verdicts of several judges: {name}",
            where=str(path),
            fix="name one judge: {'replay': FILE, 'judge': NAME} (--judge replay:FILE --set judge=NAME)",
        )
    rows = judges.get(name, {})

    def look_up(task: Task, response: Response, c: Criterion) -> Reading | None:
        verdict = rows.get(subject_keys(task, response, [c])[0]) or rows.get(
            (*response.ids, c.id)
        )
        return cast(Reading, asdict(verdict)) if verdict else None

    return ReplayJudge(f"replay:{name}", look_up, texts)


@functools.lru_cache(maxsize=8)
def _recorded_rows(path: Path, age: int) -> tuple[dict[str, Any], list[Any]]:
    """The verdicts of each judge by text or ids, and the completions. age : of the file."""
    if path.suffix in LEDGER_ENDINGS:
        with Ledger(path) as book:
            verdicts, calls = list(book.verdicts()), book.calls()
    else:
        pairs, calls = read_recording(path)
        verdicts = [v for _, v in pairs]
    judges: dict[str, dict[Any, Verdict]] = {}
    for v in verdicts:
        # A key names the texts; ids alone would also match an answer that was edited.
        same = judges.setdefault(v.judge, {}).setdefault(
            (v.key or "")[SUBJECT] or v.ids, v
        )
        if (v.status, v.value, v.p) != (same.status, same.value, same.p):
            raise DataError(
                f"there are several verdicts on {' / '.join(v.ids)}",
                where=str(path),
            )
    # Only completions have a key of their own; chats of judge calls never come again.
    return judges, [
        (row.get("request"), row["reply"]) for row in calls if row.get("key")
    ]


def real_judge(name: str, *, threshold: float = 3.0) -> ReplayJudge:
    """A recorded real judge by its name and prompt, "gpt-4o/bare".

    Verdicts are found by their texts. threshold : the score of 1 to 5 from which a
    verdict is "met". P(met) is the probability of these scores.
    """
    from ..data import recorded_judges

    judges = recorded_judges()
    who = judges.judge(name.removesuffix("/bare"))

    def look_up(task: Task, response: Response, c: Criterion) -> Reading | None:
        # The user message that these judges read.
        reply = judges.reply(
            who,
            f"Query: {task.prompt}\n\nResponse: {response.text}\n\nUnit Test: {c.text}",
        )
        if not reply:
            return None
        return {**_read_score(reply, threshold), "judge": f"{who}/bare"}

    return ReplayJudge(f"replay:{who}/bare", look_up)


def _read_score(reply: Any, threshold: float) -> Reading:
    """A verdict from a score of 1 to 5: the first such digit, as published."""
    digit = next(filter(SCORES.__contains__, reply.text), None)
    if digit is None:
        return unknown(f"no score in {reply.text[:60]!r}")
    # The candidates at the token that wrote the score.
    top: dict[str, float] = next(
        (top for token, top in reply.steps if token.strip() == digit),
        {},
    )
    is_met = {score: int(score) >= threshold for score in SCORES}
    return {
        "status": "met" if is_met[digit] else "unmet",
        "p": met_share(top.items(), is_met),
        "reason": f"score {digit} of 5",
        "meta": {"score": int(digit)},
    }
