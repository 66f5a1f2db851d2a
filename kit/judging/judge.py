"""The contract of a judge: what to ask, and how to read it. No judge does I/O.

A judge yields requests and receives replies. The runner sends them: it has the ledger, the
budget, the connections and the repetitions. So a judge is tested without a server:

    plan = judge.plan(question)
    request = next(plan)
    try:
        plan.send(Reply(text="yes"))
    except StopIteration as end:
        readings = end.value

One vocabulary of names and mappings for notebooks, configs and commands:

"code"             checks only; criteria without a check stay unknown
"replay:NAME"      a ledger or JSONL file, "small" (the recorded local judge), "gpt-4o/bare"
"local", "small"   a 135M and a 1.5B model, served on this machine, with P(met)
"server:FILE"      any GGUF file, served on this machine
"endpoint:MODEL"   an OpenAI-compatible server
{"endpoint": MODEL, "base_url": URL, "prompt": "prompt.txt", "how": "one", ...}
{"panel": [JUDGE, JUDGE, JUDGE], "rule": "majority"}
{"votes": JUDGE, "n": 5}, {"escalate": [CHEAP, STRONG], "low": 0.2, "high": 0.8}
{"cutoff": JUDGE, "at": 0.4}: met where P(met) is at least 0.4
{"group": JUDGE}   all answers to a task in one call
"""

from __future__ import annotations

import inspect
import pkgutil
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

from ..errors import DataError
from ..records import Criterion, Response, Task
from ..system.settings import require_name
from .ledger import hash_answer, short_hash, subject_keys
from .prompt import criterion_texts
from .question import Place, Plan, Question, Reading, RowPlan, unknown


class Judge:
    """The judge "code", which decides nothing beside the checks, and the base of all judges.

    A judge of your own has `plan`, or `readings` where it needs no model.

    identity : all that shapes a verdict, as JSON: a part of each ledger key. None: the
        verdicts cost nothing and are not stored.
    concurrency : questions at once. limit : the most seconds that one question takes.
    groups : a question holds all answers to its task. members : the judges that it asks.
    gives_p : each verdict has a P(met).
    """

    name = "code"
    identity: Any = None
    system: str | None = None
    concurrency = 1
    limit = 600.0
    groups = False
    gives_p = False
    members: Sequence[Judge] = ()

    def plan(self, question: Question) -> Plan:
        """Yield what to ask; return a reading for each of `question.places`."""
        rows: list[Reading] = []
        for response in question.answers.values():
            rows += yield partial(
                self.readings,
                question.task,
                response,
                [*question.criteria.values()],
            )
        return rows

    def readings(
        self, task: Task, response: Response, criteria: Sequence[Criterion]
    ) -> Sequence[Reading]:
        """A reading of each criterion, for a judge without a model. It runs in a thread."""
        return [
            unknown(
                "no check decides this criterion, and there is no judge", "abstain"
            )
        ] * len(criteria)

    def split(self, question: Question) -> list[Question]:
        """The questions that are asked instead, each in a plan of its own."""
        return [question]

    def keys(self, question: Question) -> dict[Place, str]:
        """A ledger key by the ids of answer and criterion; none for a judge without identity."""
        keys: dict[Place, str] = {}
        if self.identity is None:
            return keys
        first = short_hash(self.identity)
        criteria = list(question.criteria.values())
        rubric = list(map(criterion_texts, criteria))
        answers = list(question.answers.values())
        for n, answer in enumerate(answers):
            # What else shapes the verdicts on an answer.
            together: Any = rubric if len(rubric) > 1 else None
            if self.groups:
                together = [list(map(hash_answer, answers)), n, rubric]
            last = short_hash(together)
            for c, middle in zip(
                criteria, subject_keys(question.task, answer, criteria), strict=True
            ):
                keys[answer.id, c.id] = f"{first}-{middle}-{last}"
        return keys

    def completion(
        self, messages: list[dict[str, str]], schema: Mapping[str, Any] | None
    ) -> RowPlan:
        """A plan that returns {"reply": what the judge's model writes to a chat}."""
        raise DataError(
            f"{self.name!r} cannot write text",
            where="complete",
            fix="use an endpoint or a server",
        )


# kind -> the module that makes it, and its name there; imported at its first use
KINDS = {
    "code": "judge:Judge", "replay": "replay:replay", "local": "llm:local",
    "small": "llm:small", "server": "llm:ServedJudge", "endpoint": "llm:LLMJudge",
    "panel": "ensembles:Panel", "votes": "ensembles:votes", "escalate": "ensembles:Escalate",
    "group": "ensembles:GroupJudge", "cutoff": "ensembles:Cutoff",
}  # fmt: skip
# A judge as users write it: itself, a name, or a mapping with options.
JudgeSource = Judge | str | Mapping[str, Any]


def judge_of(value: JudgeSource, *, where: str = "judge") -> Judge:
    """A judge from its name, its mapping, or itself. DataError lists what is valid.

    >>> judge_of("code").name
    'code'
    >>> url = "http://127.0.0.1:8000/v1"
    >>> judge_of({"endpoint": "my-model", "base_url": url}).concurrency
    2
    >>> judge_of("endpiont:gpt")
    Traceback (most recent call last):
    ...
    kit.errors.DataError: there is no judge 'endpiont'
      where: judge
      to do: did you mean 'endpoint'?
    """
    if isinstance(value, Judge):
        return value
    kind, subject, options = split_spec(value, where=where)
    return make_judge(
        pkgutil.resolve_name(f"{__package__}.{KINDS[kind]}"),
        subject,
        options,
        where=f"{where} {kind}",
    )


def make_judge(
    make: Callable[..., Judge],
    subject: Any,
    options: Mapping[str, Any],
    *,
    where: str,
) -> Judge:
    """What a maker of judges returns; DataError for an option that it does not have."""
    signature = inspect.signature(make)
    names = [] if subject is None else [subject]
    # A wrong option is the user's slip; a TypeError from inside a judge is not.
    try:
        signature.bind(*names, **options)
    except TypeError as e:
        raise DataError(
            f"{e}",
            where=where,
            fix=f"this kind takes: {', '.join(signature.parameters)}",
        ) from None
    return make(*names, **options)


def split_spec(
    value: Any, *, where: str = "judge"
) -> tuple[str, Any, dict[str, Any]]:
    """Kind, subject and options of a judge's name or mapping.

    >>> split_spec({"endpoint": "m", "how": "one"})
    ('endpoint', 'm', {'how': 'one'})
    """
    if isinstance(value, Mapping):
        kinds = [name for name in value if name in KINDS]
        # {"endpoint": M, "group": ...} is not a judge: one kind each.
        if len(kinds) != 1:
            raise DataError(
                f"a judge's mapping names one kind, not {kinds or list(value)}",
                where=where,
                fix=f"one of {', '.join(KINDS)}",
            )
        options = dict(value)
        return kinds[0], options.pop(kinds[0]), options
    kind, _, subject = str(value).partition(":")
    require_name("judge", kind, KINDS, where=where)
    return kind, subject or None, {}
