"""Judges that repeat what was recorded: a ledger, its export, a JSONL file of verdicts,
recorded real judges, and the recorded 1.5B judge of `data/judge_recording.jsonl.gz`.

Nothing here calls a model. What was not recorded is a MissingError.
"""

import functools
import gzip
import json
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from ..errors import DataError, MissingError
from ..records import Criterion, Response, Task, Verdict, group, unknown
from ..system import paths
from ..system.settings import check_names
from .ledger import Ledger, recording
from .prompt import ABOUT, about

SCORES = ("1", "2", "3", "4", "5")
FIELDS = ("status", "p", "reason", "failure", "tokens_in", "tokens_out")


class ReplayJudge:
    """A judge that looks its verdicts up.

    look : function of task, answer and criterion -> the recorded verdict, None without
    one. texts : the recorded completions by the JSON of their chat.
    """

    concurrency = 1

    def __init__(
        self, name: str, look: Callable[..., Any], texts: Mapping[str, str] = {}
    ):
        self.name, self.look, self.texts = name, look, texts

    async def verdicts(
        self,
        task: Task,
        response: Response,
        criteria: Sequence[Criterion],
        run: Any,
    ) -> list[Verdict]:
        """One recorded verdict per criterion, in order; MissingError without one."""
        return [self._one(task, response, c) for c in criteria]

    def _one(self, task: Task, response: Response, c: Criterion) -> Verdict:
        v = self.look(task, response, c)
        if v is None:
            raise self._miss(
                "no verdict on this text",
                f"task {task.id!r}, answer {response.id!r}, criterion {c.id!r}",
            )
        ids = {"task_id": task.id, "response_id": response.id, "criterion_id": c.id}
        return msgspec.structs.replace(v, **ids, cached=True, cost=0.0)

    def _miss(self, what: str, where: str) -> MissingError:
        fix = (
            "replay what was judged, or ask a live judge (endpoint, server, small)"
        )
        return MissingError(f"{self.name} recorded {what}", where=where, fix=fix)

    async def complete(self, messages: Any, schema: Any, run: Any, key: str) -> str:
        """The recorded completion of a chat; MissingError without one."""
        # As the endpoint writes a request, so that equal chats have equal texts.
        chat = json.dumps(messages, ensure_ascii=False)
        if chat not in self.texts:
            raise self._miss("no completion of this chat", f"chat {chat[-80:]}")
        return self.texts[chat]


def replay(
    subject: str | Path = "gpt-4o/bare",
    *,
    judge: str | None = None,
    threshold: float | None = 3.0,
    **options: Any,
) -> ReplayJudge:
    """A replay judge.

    subject : a ledger, a JSONL file of verdicts, "small", or a recorded real judge as
    "gpt-4o/bare". judge : whose verdicts, where a file holds those of several.
    threshold : see `real_judge`. options : see `RecordedJudge`.
    """
    path = Path(subject)
    names = ["system", "how", "name"] if str(subject) == "small" else []
    check_names(
        options, [*names, "judge", "threshold"], where=f"judge replay:{subject}"
    )
    if names:
        return RecordedJudge(**options)
    if path.suffix not in (".sqlite", ".db", ".jsonl", ".gz"):
        return real_judge(str(subject), threshold=threshold)
    if not path.is_file():
        raise MissingError(
            "there is no such recording", where=str(path), fix="give its path"
        )
    if path.suffix in (".sqlite", ".db"):
        with Ledger(path) as book:
            verdicts, calls = list(book.verdicts(judge)), book.calls()
    else:
        pairs, calls = recording(path)
        verdicts = [v for _, v in pairs if judge in (None, v.judge)]
    # Only completions have a key of their own; chats of judge calls never come again.
    texts = {row["request"]: row["reply"] for row in calls if row.get("key")}
    return _from_verdicts(verdicts, texts, str(path))


def _from_verdicts(
    verdicts: Iterable[Verdict], texts: Mapping[str, str], where: str
) -> ReplayJudge:
    """Replay one judge: by texts where verdicts have a ledger's key, else by ids."""
    rows: dict[Any, Verdict] = {}
    names: set[str] = set()
    for v in verdicts:
        names.add(v.judge)
        # A key names the texts; ids alone would also match an answer that was edited.
        old = rows.setdefault((v.key or "")[ABOUT] or v.ids, v)
        if len(names) > 1 or (old.status, old.value, old.p) != (
            v.status,
            v.value,
            v.p,
        ):
            who = ", ".join(sorted(names))
            raise DataError(
                f"there are several verdicts on {' / '.join(v.ids)}, by {who}",
                where=where,
                fix="name one judge: {'replay': FILE, 'judge': NAME}",
            )
    if not rows:
        raise MissingError(
            "no verdict of that judge is recorded", where=where, fix="name another"
        )

    def look(task: Task, response: Response, c: Criterion) -> Verdict | None:
        return rows.get(about(task, response, c)) or rows.get((*response.ids, c.id))

    return ReplayJudge(f"replay:{names.pop()}", look, texts)


def real_judge(name: str, *, threshold: float | None = 3.0) -> ReplayJudge:
    """A recorded real judge by its name and prompt, "gpt-4o/bare" or "gpt-4o/parity".

    Verdicts are found by their texts. threshold : the score of 1 to 5 from which a
    verdict is "met"; None gives levels. P(met) is the probability of these scores.
    """
    from ..data import recorded_judges

    who, _, form = name.partition("/")
    form = form or "bare"
    if form not in ("bare", "parity"):
        raise DataError(
            f"there is no prompt {form!r}",
            where=f"replay:{name}",
            fix="bare or parity",
        )
    judges = recorded_judges()
    who = judges.judge(who)

    def look(task: Task, response: Response, c: Criterion) -> Verdict | None:
        reply = judges.reply(who, question(task, response, c, form))
        ids = {"task_id": task.id, "response_id": response.id, "criterion_id": c.id}
        return reply and _scored(
            reply, {**ids, "judge": f"{who}/{form}"}, threshold
        )

    return ReplayJudge(f"replay:{who}/{form}", look)


def question(task: Task, response: Response, c: Criterion, form: str) -> str:
    """The user message that the recorded judges read."""
    text = (
        f"Query: {task.prompt}\n\nResponse: {response.text}\n\nUnit Test: {c.text}"
    )
    rubric, reference = (
        c.meta.get("rubric", ""),
        task.truth.get("reference_answer", ""),
    )
    end = f"\n\nRubric: {rubric}\n\nReference Answer: {reference}"
    return text + end if form == "parity" else text


def _scored(reply: Any, fields: dict[str, Any], threshold: float | None) -> Verdict:
    """A verdict from a score of 1 to 5: the first such digit, as published."""
    digit = next((c for c in reply.text if c in SCORES), None)
    if digit is None:
        reason = f"no score in {reply.text[:60]!r}"
        return unknown(failure="parse", reason=reason, **fields)
    score, mass = int(digit), dict.fromkeys(range(1, 6), 0.0)
    # The candidates at the token that wrote the score.
    pairs = zip(reply.tokens, reply.top, strict=False)
    tops = [top for token, top in pairs if token.strip() == digit]
    for token, x in tops[0].items() if tops else ():
        if token.strip() in SCORES:
            mass[int(token)] += math.exp(x)
    total = sum(mass.values()) or math.nan
    fields |= {"reason": f"score {score} of 5", "meta": {"score": score}}
    if threshold is None:
        p = sum((k - 1) / 4 * m for k, m in mass.items()) / total
        fields |= {"status": "level", "value": (score - 1) / 4}
    else:
        p = sum(m for k, m in mass.items() if k >= threshold) / total
        fields["status"] = "met" if score >= threshold else "unmet"
    return Verdict(p=None if math.isnan(p) else p, **fields)


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

    def __init__(
        self,
        *,
        system: str | None = None,
        how: str = "all",
        name: str | None = None,
    ):
        if how not in ("all", "one"):
            raise DataError(
                f"how is {how!r}", where="judge replay:small", fix='"all" or "one"'
            )
        super().__init__(name or "replay:small", self._row)
        prompts = _recorded()[0]["prompt"]
        self.system = (prompts[0]["system"] if system is None else system).strip()
        self.how = how
        names = {(p["system"].strip(), p["how"]): p["name"] for p in prompts}
        self.prompt = names.get((self.system, how), "a prompt of your own")
        self.rewrites = [row["reply"] for row in _recorded()[0]["rewrite"]]

    def _row(self, task: Task, response: Response, c: Criterion) -> Verdict | None:
        texts = (self.prompt, task.prompt, response.text, c.text)
        row = _recorded()[1].get(texts)
        fields = {name: row[name] for name in FIELDS if name in row} if row else {}
        # The ids are those of whoever asks; the recording has none.
        ids = {"task_id": task.id, "response_id": response.id, "criterion_id": c.id}
        return Verdict(**ids, **fields, judge=self.name) if row else None

    def _miss(self, what: str, where: str) -> MissingError:
        what = f"the recorded judge was never asked this, under {self.prompt}"
        fix = 'run `kit fetch judge` once (1.1 GB), then judge="small"; or an endpoint'
        return MissingError(what, where=where, fix=fix)

    async def complete(self, messages: Any, schema: Any, run: Any, key: str) -> str:
        """The recorded rewrites of a search, one after the other."""
        if not self.rewrites:
            raise MissingError(
                "no further rewrite was recorded",
                where="judge replay:small",
                fix="search with the recorded rows and seed, or with a live judge",
            )
        return self.rewrites.pop(0)
