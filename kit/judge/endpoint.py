"""The endpoint judge: any OpenAI-compatible chat server, all criteria in one call, some, or one
each.

judge(tasks, answers, judge=EndpointJudge("gpt-6-luna"), ledger="ledger.sqlite")
EndpointJudge("my-model", base_url="http://127.0.0.1:8000/v1", how="one", probability="logprobs")
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
import logging
import os
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from typing import Any, get_type_hints

from ..errors import KitError
from ..records import Criterion, Response, Task, Verdict, calls_of, fingerprint
from ..settings.read import fitting
from . import reading, templates
from .abilities import Doubt
from .asking import Asked
from .caller import Caller, Outcome
from .keys import OPENAI, Address, remember_all, secret_name
from .parse import CUT
from .prices import Price, Usage, default_model, is_reasoning, tokens, warning
from .records import READER, Call, Forecast, Question, rebuilt
from .session import session
from .templates import Layout, digest, encode
from .wire import Wire, large
from .words import Reading

log = logging.getLogger(__name__)
AGAIN = ("parse", "missing", "contradiction")  # asked once more, alone
ROOM = 6000  # tokens for a reasoning model to think in
MODES, SOURCES = ("schema", "text"), ("none", "logprobs", "stated")
HOW = '"all", "one", or a number of criteria per call'
OWN = {  # fields of a request, and what says the same
    "model": "the model's own name",
    "messages": "template=..., or the tasks' own prompts",
    "response_format": 'mode="schema" or "text"',
    "max_tokens": "max_tokens=... to the judge itself",
    "max_completion_tokens": "max_tokens=...",
    "max_output_tokens": "max_tokens=...",
    "stream": "nothing: a reply is read as a whole",
    "n": "{votes: JUDGE, n: ...}, or sample=...",
}
WIDER = 4  # times the room for a reply that was cut


class EndpointJudge(Asked):
    """A model behind an OpenAI-compatible server as a judge.

    model : default from models.json.
    base_url : default OPENAI_BASE_URL, else OpenAI; user:password@ and ?api-version= are
    understood.
    key_env : name of the environment variable with the key (default KIT_JUDGE_KEY, else
        OPENAI_API_KEY for its own server); keys are never logged or stored.
    how : "all" criteria of a response in one call, "one" each, or a number per call.
    template : a Template, the name of one, or a file; default "rubric" ("single" for one each).
    mode : "schema" (JSON schema, plain text where refused) or "text".
    temperature, seed, top_p, effort : sent as given; what the endpoint is proved to refuse is left
        out and noted, and asked again after a week.
    max_tokens : room for the reply, kept to; default by the number of criteria, and four times
        that for a reply that was cut.
    probability : "none", "logprobs" (of the verdict's first token) or "stated" (in percent).
    repair : how often criteria whose verdict could not be read are asked again, alone.
    sample : number of this sample, for panels.
    concurrency : most calls at once (default 256; 64 on this machine, found out from below).
    timeout : seconds of one attempt, from the moment it has its slot; no guess shortens it.
    tries : attempts per call (429 does not count).
    patience : seconds without any success after which the next fault is a JudgeDownError, and the
        longest Retry-After that a call waits for.
    price : (input, output) or a Price in dollars per million tokens.
    headers, extra : sent with every request, beside the kit's own headers, and in its body. Both
        are in the ledger's keys, hashed, for they may choose who answers; but for headers whose
        name tells of a secret (key, token, auth ...): two that differ in it share their verdicts.
    identity : what stands for the address in the ledger's keys, for a server whose address changes
        while its model does not.

    >>> EndpointJudge("m", base_url="http://127.0.0.1:1/v1").name
    'm'
    """

    def __init__(
        self,
        model: str | None = None,
        *,
        base_url: str | None = None,
        key_env: str | None = None,
        how: str | int = "all",
        template: templates.Template | str | None = None,
        mode: str = "schema",
        temperature: float | None = 0.0,
        seed: int | None = None,
        top_p: float | None = None,
        effort: str | None = None,
        max_tokens: int | None = None,
        probability: str = "none",
        repair: int = 1,
        sample: int = 0,
        concurrency: int | None = None,
        timeout: float = 120.0,
        tries: int = 5,
        patience: float = 180.0,
        price: Price | tuple[float, float] | None = None,
        headers: Mapping[str, str] | None = None,
        extra: Mapping[str, Any] | None = None,
        name: str | None = None,
        identity: str | None = None,
    ):
        _options(locals())
        self.model = model or default_model()
        address = Address.of(base_url or os.environ.get("OPENAI_BASE_URL") or OPENAI)
        self.base_url = address.shown
        self.how, self.mode, self.probability, self.repair, self.sample = (
            how,
            mode,
            probability,
            repair,
            sample,
        )
        if not isinstance(template, templates.Template):
            template = templates.load(template or ("single" if how in ("one", 1) else "rubric"))
        self.template, self.max_tokens = template, max_tokens
        self.name = name or self.model + (
            f"/{template.name}" if template.name not in ("rubric", "single") else ""
        )
        effort = effort or ("low" if is_reasoning(self.model) else None)
        self.params = {
            k: v
            for k, v in {
                "temperature": temperature,
                "seed": seed,
                "top_p": top_p,
                "reasoning_effort": effort,
                **(extra or {}),
            }.items()
            if v is not None
        }
        _fields(self.params)
        for field, text in _texts(extra or {}):
            remember_all({field: text})
        open_ = sorted([k.lower(), v] for k, v in (headers or {}).items() if not secret_name(k))
        self.caller = Caller(
            self.model,
            Wire(address, key_env, dict(headers or {})),
            name=self.name,
            concurrency=concurrency,
            timeout=timeout,
            tries=tries,
            patience=patience,
            prices=Price.of(price),
        )
        self._openai = self.base_url.startswith("https://api.openai.com")
        self.caller.place = identity or self.base_url
        self._own = fingerprint(
            [
                "endpoint",
                templates.SCHEMA_VERSION,
                self.caller.place,
                self.model,
                dict(self.params),
                mode,
                probability,
                repair,
                sample,
                max_tokens,
                template.id,
                *open_,
            ]
        )
        self._tasks: dict[int, tuple[Task, Layout]] = {}
        if said := warning(self.model):
            log.warning(said)

    @property
    def workers(self) -> int:
        """Responses that may be worked on at once: enough to fill every slot while some calls wait
        for their Retry-After.
        """
        return self.caller.limiter.ceiling * 3 // 2 + 16

    @property
    def abilities(self) -> dict[str, Any]:
        """What this endpoint was found to refuse, in its own words, and whether it enforces
        schemas.
        """
        return self.caller.abilities.note()

    # -- keys ----------------------------------------------------------------------------------
    def keys(self, task: Task, response: Response, criteria: Sequence[Criterion]) -> list[str]:
        """Fingerprints of everything that shapes the verdicts on one response.

        Endpoint, model, parameters, schema, template, task, response, criterion, and the criteria
        that are asked in the same call.
        """
        layout, text = self._layout(task), digest(response.text)
        # the keys of one answer are neighbours in the ledger
        head = hashlib.sha256(f"{layout.base}{text}".encode()).hexdigest()[:14]
        return [
            head + hashlib.sha256(f"{layout.of(c)}{text}".encode()).hexdigest()[:18]
            for c in criteria
        ]

    def _layout(self, task: Task) -> Layout:
        """How this task's criteria are spread over calls, kept for the tasks used last."""
        kept = self._tasks.get(id(task))
        if kept is not None and kept[0] is task:
            return kept[1]
        if len(self._tasks) >= 4096:
            self._tasks.pop(next(iter(self._tasks)))
        layout = Layout(task, self.how, self._own)
        self._tasks[id(task)] = (task, layout)
        return layout

    # -- verdicts ------------------------------------------------------------------------------
    def parts(self, q: Question) -> list[Question]:
        """The question as it is spread over calls."""
        groups = self._layout(q.task).split(q.criteria)
        return [q] if len(groups) == 1 else [q.of(group) for group in groups]

    async def replies(self, q: Question) -> AsyncIterator[tuple[list[Verdict], Call | None]]:
        """What each reply gave: (verdicts, call).

        Criteria whose verdict could not be read are asked again, alone, up to `repair` times.
        """
        before: list[Verdict] = []
        mode: str | None = None
        room = 1
        for repair in range(self.repair, -1, -1):
            got, call, mode = await self._once(q, mode, room)
            room = WIDER if any(v.meta.get("cut") for v in got) else 1
            if before:
                got = [_second(a, b) for a, b in zip(before, got, strict=True)]
            lost = [i for i, v in enumerate(got) if v.failure in AGAIN] if repair > 0 else []
            yield [v for i, v in enumerate(got) if i not in lost], call
            if not lost:
                return
            before = [got[i] for i in lost]
            q = q.only(lost)

    async def _once(
        self, q: Question, mode: str | None, room: int = 1
    ) -> tuple[list[Verdict], Call | None, str]:
        """One call: its verdicts, the call, and the mode in which to ask again."""
        self.caller.recall()
        plain = self.mode == "text" or "response_format" in self.caller.abilities.refused
        mode = mode or ("text" if plain else "schema")
        outcome = await self._ask(q, mode, room)
        if outcome.doubt is not None:  # the endpoint seems to refuse schemas: ask in plain text
            outcome = await self._ask(q, mode := "text", room, outcome.doubt)
        if outcome.call is None or outcome.data is None:
            return q.unknowns("transport", judge=self.name, reason=outcome.reason), None, mode
        readings, probs = await large(len(outcome.call.reply), self._read, outcome.data, q, mode)
        got = self._verdicts(q, readings, probs, outcome.call, mode)
        if any(r.reason == CUT for r in readings):
            return [_narrow(v, self.max_tokens) for v in got], outcome.call, mode
        again = "text" if mode == "schema" and all(r.how == "none" for r in readings) else mode
        return got, outcome.call, again

    async def _ask(
        self, q: Question, mode: str, room: int = 1, doubt: Doubt | None = None
    ) -> Outcome:
        body = self.body(q.task, q.response, q.criteria, mode)
        if not self.max_tokens:
            body["max_completion_tokens"] *= room
        room = body["max_completion_tokens"]
        return await self.caller.call("/chat/completions", body, room, doubt)

    async def chat(self, prompt: str, room: int) -> Outcome:
        """One reply of the model, of `room` tokens at most, to a plain question: no verdict."""
        body = {"model": self.model, **self.params, "max_completion_tokens": room}
        body["messages"] = [{"role": "user", "content": prompt}]
        return await self.caller.call("/chat/completions", body, room)

    def body(
        self, task: Task, response: Response, criteria: Sequence[Criterion], mode: str = "schema"
    ) -> dict[str, Any]:
        """The request body of one call."""
        stated = self.probability == "stated"
        lines, form = self._layout(task).texts(criteria, stated)
        thinks = is_reasoning(self.model) and self.params.get("reasoning_effort") != "none"
        most = 200 + 160 * len(criteria) + (ROOM if thinks else 0)
        body: dict[str, Any] = {
            "model": self.model,
            **self.params,
            "max_completion_tokens": self.max_tokens or most,
            "messages": templates.messages(
                self.template,
                task,
                response,
                criteria,
                mode=mode,
                stated=stated,
                lines=lines,
                secret=templates.secret_of(session().ledger),
            ),
        }
        if mode == "schema":
            body["response_format"] = form
        if self.probability == "logprobs":
            body.update(logprobs=True, top_logprobs=5)
        if self._openai:
            body["prompt_cache_key"] = fingerprint([self._own, task.asked])[:24]
        return body

    # -- reading -------------------------------------------------------------------------------
    def _read(
        self, data: Mapping[str, Any], q: Question, mode: str
    ) -> tuple[list[Reading], list[Any]]:
        """Readings and (P, mass) per criterion; no reply ends in an exception."""
        try:
            readings, probs = reading.heard(data, q.criteria, q.response.text)
        except Exception as e:  # the last line of defence: it is this reply's own affair
            log.debug("a reply could not be read", exc_info=True)
            lost = Reading(
                failure="parse",
                how="none",
                reason=f"the reply could not be read ({type(e).__name__})",
            )
            return [lost] * len(q.criteria), [None] * len(q.criteria)
        ok = all(r.how == "json" and r.complete for r in readings)
        silent = (CUT, reading.EMPTY, reading.REFUSED, reading.BESIDE)
        if mode == "schema" and (ok or not str(readings[0].reason).startswith(silent)):
            self.caller.obeyed(ok)
        return readings, probs

    def _verdicts(
        self,
        q: Question,
        readings: Sequence[Reading],
        probs: Sequence[Any],
        call: Call,
        mode: str,
    ) -> list[Verdict]:
        criteria = q.criteria
        tin = _share(call.tokens_in, len(criteria))
        tout = _share(call.tokens_out, len(criteria))
        out = []
        for i, (c, r) in enumerate(zip(criteria, readings, strict=True)):
            meta = {
                "call": call.id,
                "mode": mode,
                "reader": READER,
                "read": None if r.how in ("json", "text") else r.how,
                "stated": r.confidence,
                "mass": None if probs[i] is None else round(probs[i][1], 4),
                "without": call.meta.get("without") or None,
            }
            fields = {
                "task_id": q.task.id,
                "response_id": q.response.id,
                "criterion_id": c.id,
                "status": r.status,
                "value": r.value,
                "p": _p(c, r, probs[i]),
                "reason": r.reason,
                "failure": r.failure if r.status == "unknown" else None,
                "judge": self.name,
                "key": q.key(i),
                "tokens_in": tin[i],
                "tokens_out": tout[i],
                "cost": call.cost / len(criteria),
                "cached": False,
                "meta": {k: v for k, v in meta.items() if v is not None},
            }
            out.append(rebuilt(fields))  # a Reading has been checked
        return out

    # -- what it will cost ---------------------------------------------------------------------
    def forecast(self, task: Task, response: Response, criteria: Sequence[Criterion]) -> Forecast:
        """What these questions are expected to cost (about 4 characters a token, 60 tokens out per
        criterion).
        """
        total = Forecast()
        for group in self._layout(task).split(criteria):
            sent = len(encode(self.body(task, response, group)))
            out = 60 * len(group) + (300 if is_reasoning(self.model) else 0)
            total += Usage(tokens_in=tokens(sent), tokens_out=out).forecast(self.caller.price)
        return total


def _options(given: Mapping[str, Any]) -> None:
    """KitError for an argument of another type, or beyond its limits; none of them is shown that
    may be a secret."""
    for name in ("headers", "extra"):
        fields = given[name]
        if not isinstance(fields, Mapping | None) or not all(
            isinstance(k, str) for k in fields or ()
        ):
            raise KitError(
                f"{name} names no fields",
                where=f"EndpointJudge({name}=...)",
                fix="give {NAME: VALUE, ...}",
            )
    hints = get_type_hints(EndpointJudge.__init__)
    shown = {k: given[k] for k in hints if k not in ("headers", "extra")}
    fitting(hints, shown, where="EndpointJudge")
    how, heat, repair = given["how"], given["temperature"], given["repair"]
    above = ("concurrency", "timeout", "tries", "patience", "max_tokens")
    checks = (
        ("how", how in ("all", "one") if isinstance(how, str) else how > 0, HOW),
        ("mode", given["mode"] in MODES, '"schema" or "text"'),
        ("probability", given["probability"] in SOURCES, '"none", "logprobs" or "stated"'),
        ("temperature", heat is None or heat >= 0, "a number from 0 on, or none"),
        ("repair", repair >= 0 and isinstance(repair, int), "a whole number from 0 on"),
        *((n, given[n] is None or given[n] > 0, "a number above 0") for n in above),  # NaN is not
    )
    KitError.first(
        *(
            (not fits, f"{n} is {given[n]!r}", f"EndpointJudge({n}=...)", f"give {fix}")
            for n, fits, fix in checks
        )
    )


def _fields(extra: Mapping[str, Any]) -> None:
    """KitError for a field of the request that the kit fills in, or whose reply it cannot read."""
    for name in OWN.keys() & extra.keys():
        raise KitError(
            f"{name} is the kit's to fill in",
            where=f"EndpointJudge(extra={{{name!r}: ...}})",
            fix=f"give {OWN[name]}",
        )
    try:
        json.dumps(extra, allow_nan=False)
    except (ValueError, TypeError, RecursionError) as e:
        raise KitError(
            f"this cannot be sent ({e})",
            where="extra fields",
            fix="give finite numbers, texts, lists and objects",
        ) from None


def _texts(fields: Any, name: str = "") -> Iterator[tuple[str, str]]:
    """Names and texts of a request's own fields, however deep: some of them are secrets."""
    if isinstance(fields, str):
        yield name, fields
    elif isinstance(fields, (Mapping, list)):
        for k, v in fields.items() if isinstance(fields, Mapping) else [(name, v) for v in fields]:
            yield from _texts(v, str(k))


def _narrow(v: Verdict, limit: int | None) -> Verdict:
    """An unknown verdict of a reply that was cut, with what to do about it."""
    if v.known or v.failure not in AGAIN:
        return v
    fix = f"max_tokens={limit} was too little" if limit else "max_tokens=... gives it more room"
    return dataclasses.replace(v, reason=f"{CUT}; {fix}", meta={**v.meta, "cut": True})


def _p(c: Criterion, r: Reading, prob: tuple[float, float] | None) -> float | None:
    """P(met): from tokens where given, else from a stated confidence; None where neither is."""
    if c.scale != "binary" or r.status not in ("met", "unmet"):
        return None
    if prob is not None:
        return prob[0]
    if r.confidence is None or r.confidence < 0.5:  # "unmet, 0 % sure" speaks for neither side
        return None
    return r.confidence if r.status == "met" else 1 - r.confidence


def _share(total: int, n: int) -> list[int]:
    """`total` in n whole parts whose sum is exact."""
    return [total // n + (1 if i < total % n else 0) for i in range(n)]


def _second(first: Verdict, second: Verdict) -> Verdict:
    """The verdict of the second asking with both costs: one that did not come is asked again."""
    return dataclasses.replace(
        second,
        tokens_in=first.tokens_in + second.tokens_in,
        tokens_out=first.tokens_out + second.tokens_out,
        cost=first.cost + second.cost,
        meta={
            **second.meta,
            "asked_again": first.failure,
            "calls": [*calls_of(first), *calls_of(second)],
        },
    )
