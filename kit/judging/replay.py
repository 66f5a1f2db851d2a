"""Judges that repeat what was recorded: a ledger, its export, a JSONL file of verdicts,
recorded real judges, and the recorded 1.5B judge of `data/judge_recording.jsonl.gz`.

Nothing here calls a model. What was not recorded is a MissingError.
"""

import functools
import gzip
import json
import math
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from msgspec.structs import asdict

from ..errors import DataError, MissingError
from ..records import Criterion, Response, Task, Verdict, group
from ..system import paths
from .factory import call
from .ledger import Ledger, recording
from .prompt import ABOUT, about
from .reader import Criteria, Reading, refuse

LEDGERS = (".sqlite", ".db")
SCORES = ("1", "2", "3", "4", "5")
FREE = {"cached": True, "cost": 0.0}
FIELDS = ("status", "p", "reason", "failure", "tokens_in", "tokens_out")


class ReplayJudge:
    """A judge that looks its verdicts up.

    look : function of task, answer and criterion -> the fields of the recorded verdict,
    None without one. texts : the recorded completions by the JSON of their chat.
    """

    concurrency = 1
    fix = "replay what was judged, or ask a live judge (endpoint, server, small)"

    def __init__(
        self, name: str, look: Callable[..., Any], texts: Mapping[str, str] = {}
    ):
        self.name, self.look, self.texts = name, look, texts

    async def verdicts(
        self,
        task: Task,
        response: Response,
        criteria: Criteria,
        run: Any,
    ) -> list[Verdict]:
        """One recorded verdict per criterion, in order; MissingError without one."""
        rows = []
        for c in criteria:
            fields = self.look(task, response, c)
            if fields is None:
                place = (
                    f"task {task.id!r}, answer {response.id!r}, criterion {c.id!r}"
                )
                raise self._miss("verdict on this text", place)
            # The ids are those of whoever asks.
            ids = {"task_id": task.id, "response_id": response.id, **FREE}
            rows.append(Verdict(**{**fields, **ids, "criterion_id": c.id}))
        return rows

    async def complete(self, messages: Any, schema: Any, run: Any, key: str) -> str:
        """The recorded completion of a chat; MissingError without one."""
        # As the endpoint writes a request, so that equal chats have equal texts.
        chat = json.dumps(messages, ensure_ascii=False)
        if chat not in self.texts:
            raise self._miss("completion of this chat", f"chat {chat[-80:]}")
        return self.texts[chat]

    def _miss(self, what: str, where: str) -> MissingError:
        what = f"{self.name} recorded no {what}"
        return MissingError(what, where=where, fix=self.fix)


def replay(subject: str | Path = "gpt-4o/bare", **options: Any) -> ReplayJudge:
    """A replay judge.

    subject : a ledger or a JSONL file of verdicts (see `recorded_file`), "small" (see
    `RecordedJudge`), or a recorded real judge as "gpt-4o/bare" (see `real_judge`).
    """
    make: Any = real_judge
    if str(subject) == "small":
        make, subject = RecordedJudge, None  # type: ignore[assignment]
    elif Path(subject).suffix in (*LEDGERS, ".jsonl", ".gz"):
        make = recorded_file
    return call(make, subject, options, where=f"judge replay:{subject or 'small'}")


def recorded_file(path: str, *, judge: str | None = None) -> ReplayJudge:
    """A ledger or a JSONL file: by texts where verdicts have a ledger's key, else by ids.

    judge : whose verdicts, where the file holds those of several.
    """
    if not Path(path).is_file():
        raise MissingError(
            "there is no such recording", where=str(path), fix="give its path"
        )
    if Path(path).suffix in LEDGERS:
        with Ledger(path) as book:
            verdicts, calls = list(book.verdicts()), book.calls()
    else:
        pairs, calls = recording(path)
        verdicts = [v for _, v in pairs]
    verdicts = [v for v in verdicts if judge in (None, v.judge)]
    names = {v.judge for v in verdicts}
    # A key names the texts; ids alone would also match an answer that was edited.
    rows = group(((v.key or "")[ABOUT] or v.ids, v) for v in verdicts)
    for same in rows.values():
        if len(names) > 1 or len({(v.status, v.value, v.p) for v in same}) > 1:
            raise DataError(
                f"there are several verdicts on {' / '.join(same[0].ids)}, by {names}",
                where=str(path),
                fix="name one judge: {'replay': FILE, 'judge': NAME}",
            )
    if not rows:
        raise MissingError(
            "no verdict of that judge is recorded",
            where=str(path),
            fix="name another",
        )

    def look(task: Task, response: Response, c: Criterion) -> Reading | None:
        by_text = rows.get(about(task, response, [c])[0])
        same = by_text or rows.get((*response.ids, c.id))
        return asdict(same[0]) if same else None

    # Only completions have a key of their own; chats of judge calls never come again.
    texts = {row["request"]: row["reply"] for row in calls if row.get("key")}
    return ReplayJudge(f"replay:{names.pop()}", look, texts)


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


@functools.cache
def _recorded() -> tuple[dict[str, list[Any]], dict[Any, Any]]:
    """The rows of the recording by their field "record", and its verdicts by texts."""
    file = paths.data("judge_recording.jsonl.gz")
    with gzip.open(file, "rt", encoding="utf-8") as lines:
        rows = [json.loads(line) for line in lines]
    kinds = group((row.pop("record"), row) for row in rows)
    names = ("by", "prompt", "answer", "criterion")
    return kinds, {tuple(row[n] for n in names): row for row in kinds["verdict"]}


class RecordedJudge(ReplayJudge):
    """Repeat what the 1.5B judge replied.

    system : a prompt that was recorded (default: the baseline's). how : "all" criteria in
    one call, or "one". Verdicts are found by their texts.

    >>> judge = RecordedJudge()
    >>> judge.name, judge.system[:30]
    ('replay:small', 'You check an answer against cr')
    """

    fix = 'run `kit fetch judge` once (1.1 GB), then judge="small"; or an endpoint'

    def __init__(
        self,
        *,
        system: str | None = None,
        how: str = "all",
        name: str = "replay:small",
    ):
        super().__init__(name, self._row)
        kinds, self.rows = _recorded()
        self.system = (system or kinds["prompt"][0]["system"]).strip()
        rows = kinds["prompt"]
        names = {(row["system"].strip(), row["how"]): row["name"] for row in rows}
        self.prompt = names.get((self.system, how), "a prompt of your own")
        self.rewrites = [row["reply"] for row in kinds["rewrite"]]

    def _row(self, task: Task, response: Response, c: Criterion) -> Reading | None:
        row = self.rows.get((self.prompt, task.prompt, response.text, c.text))
        fields = {name: row[name] for name in FIELDS if name in row} if row else {}
        return {**fields, "judge": self.name} if row else None

    async def complete(self, messages: Any, schema: Any, run: Any, key: str) -> str:
        """The recorded rewrites of a search, one after the other."""
        if not self.rewrites:
            raise MissingError(
                "no further rewrite was recorded",
                where="judge replay:small",
                fix="search with the recorded rows and seed, or with a live judge",
            )
        return self.rewrites.pop(0)
