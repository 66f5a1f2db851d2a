"""Judges that repeat what was recorded: a ledger, its export, a JSONL file of verdicts,
recorded real judges, and the recorded 1.5B judge of `data/judge_recording.jsonl.gz`.

Nothing here calls a model. What was not recorded is a MissingError.
"""

import functools
import json
import math
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from msgspec.structs import asdict

from ..errors import DataError, MissingError
from ..records import Criterion, Response, Task, Verdict
from ..system import paths
from .factory import Judge, call
from .form import ABOUT, Criteria, Reading, about, refuse, short
from .form import system as system_of
from .ledger import Ledger, recording

LEDGERS = (".sqlite", ".db")
SCORES = ("1", "2", "3", "4", "5")
FREE = {"cached": True, "cost": 0.0}
MISS = 'ask a live judge: an endpoint, or "small" after `kit fetch judge` (1.1 GB)'


class ReplayJudge(Judge):
    """A judge that looks its verdicts up.

    look : function of task, answer and criterion -> the fields of the recorded verdict,
    None without one. texts : the recorded completions by the JSON of their chat; those
    that were recorded without their chat come one after the other.
    """

    def __init__(
        self,
        name: str,
        look: Callable[..., Any],
        texts: Iterable[tuple[Any, str]] = (),
    ):
        self.name, self.look, self.texts = name, look, list(texts)

    def readings(
        self, task: Task, response: Response, criteria: Criteria
    ) -> list[Reading]:
        """The fields of the recorded verdicts; MissingError without one."""
        rows = []
        for c in criteria:
            fields = self.look(task, response, c)
            if not fields:
                place = (
                    f"task {task.id!r}, answer {response.id!r}, criterion {c.id!r}"
                )
                what = f"{self.name} recorded no verdict on this text"
                raise MissingError(what, where=place, fix=MISS)
            rows.append({**fields, **FREE})
        return rows

    async def complete(self, messages: Any, schema: Any, run: Any, key: str) -> str:
        """The recorded completion of a chat; MissingError without one."""
        # As the endpoint writes a request, so that equal chats have equal texts.
        chat = json.dumps(messages, ensure_ascii=False)
        for pair in self.texts:
            if pair[0] == chat:
                return pair[1]
            if pair[0] is None:
                self.texts.remove(pair)
                return pair[1]
        what = f"{self.name} recorded no completion of this chat"
        raise MissingError(what, where=f"chat {chat[-80:]}", fix=MISS)


def replay(subject: str | Path = "gpt-4o/bare", **options: Any) -> ReplayJudge:
    """A replay judge.

    subject : a ledger or a JSONL file of verdicts (see `recorded_file`), "small" (see
    `recorded_small`), or a recorded real judge as "gpt-4o/bare" (see `real_judge`).
    """
    if str(subject) == "small":
        return call(recorded_small, None, options, where="judge replay:small")
    endings = (*LEDGERS, ".jsonl", ".gz")
    make = recorded_file if Path(subject).suffix in endings else real_judge
    return call(make, subject, options, where=f"judge replay:{subject}")


def recorded_small(*, system: str | None = None, how: str = "all") -> ReplayJudge:
    """What the 1.5B judge replied (`data/judge_recording.jsonl.gz`).

    system : a prompt that was recorded (default: the baseline's). how : "all" criteria in
    one call, or "one".

    >>> recorded_small().name
    'replay:small'
    """
    baseline = paths.data("judge_prompts", "baseline.txt")
    text = system_of(None if system else str(baseline), system, "system")
    # A prompt of the recording is a judge of its own.
    who = f"small {short([text, how])}"
    judge = recorded_file(paths.data("judge_recording.jsonl.gz"), judge=who)
    judge.name, judge.system = "replay:small", text
    return judge


def recorded_file(path: str | Path, *, judge: str | None = None) -> ReplayJudge:
    """A ledger or a JSONL file: by texts where verdicts have a ledger's key, else by ids.

    judge : whose verdicts, where the file holds those of several.
    """
    judges, texts = _recorded(Path(path), Path(path).stat().st_mtime_ns)
    name = judge or ", ".join(judges)
    # Nobody knows which of two verdicts on one text is meant.
    if judge is None and len(judges) > 1:
        raise DataError(
            f"it holds the verdicts of several judges: {name}",
            where=str(path),
            fix="name one judge: {'replay': FILE, 'judge': NAME}",
        )
    rows = judges.get(name, {})

    def look(task: Task, response: Response, c: Criterion) -> Reading | None:
        by_text = rows.get(about(task, response, [c])[0])
        verdict = by_text or rows.get((*response.ids, c.id))
        return verdict and asdict(verdict)

    return ReplayJudge(f"replay:{name}", look, texts)


@functools.lru_cache(maxsize=8)
def _recorded(path: Path, age: int) -> tuple[dict[str, Any], list[Any]]:
    """The verdicts of each judge by text or ids, and the completions. age : of the file."""
    if path.suffix in LEDGERS:
        with Ledger(path) as book:
            verdicts, calls = list(book.verdicts()), book.calls()
    else:
        pairs, calls = recording(path)
        verdicts = [v for _, v in pairs]
    judges: dict[str, dict[Any, Verdict]] = {}
    for v in verdicts:
        # A key names the texts; ids alone would also match an answer that was edited.
        place = (v.key or "")[ABOUT] or v.ids
        same = judges.setdefault(v.judge, {}).setdefault(place, v)
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

    def look(task: Task, response: Response, c: Criterion) -> Reading | None:
        # The user message that these judges read.
        answer = f"Response: {response.text}\n\nUnit Test: {c.text}"
        reply = judges.reply(who, f"Query: {task.prompt}\n\n{answer}")
        return reply and {**_scored(reply, threshold), "judge": f"{who}/bare"}

    return ReplayJudge(f"replay:{who}/bare", look)


def _scored(reply: Any, threshold: float) -> Reading:
    """A verdict from a score of 1 to 5: the first such digit, as published."""
    digit = next((c for c in reply.text if c in SCORES), None)
    if digit is None:
        return refuse(f"no score in {reply.text[:60]!r}")
    # The candidates at the token that wrote the score.
    pairs = zip(reply.tokens, reply.top, strict=False)
    tops = [top for token, top in pairs if token.strip() == digit]
    met = total = 0.0
    for token, x in tops[0].items() if tops else ():
        if token.strip() in SCORES:
            total += math.exp(x)
            met += math.exp(x) * (int(token) >= threshold)
    return {
        "status": "met" if int(digit) >= threshold else "unmet",
        "p": met / total if total else None,
        "reason": f"score {digit} of 5",
        "meta": {"score": int(digit)},
    }
