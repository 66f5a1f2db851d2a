"""How a judge is asked in a run: through the ledger, once per question, with every fault a verdict.

`ask` is the one way to a judge's verdicts, and the only one who records. A question is made once
(records.Question), looked up once, its keys are claimed, and what nobody has answered or is asking
is asked here. Questions that are in flight in this process are shared; what another process is
asking is waited for.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from dataclasses import replace
from typing import Any

from ..records import Criterion, Response, Task, Verdict, fingerprint
from . import loop
from .keys import redact
from .records import Call, Question, checked, question
from .session import Session, session, using

POLL = 0.2  # seconds between two looks at what another process is asking

Answers = dict[str, Verdict]  # by key
Reply = tuple[str, Call | None, str]  # the text, its call, why there is none
_FLIGHT: dict[str, asyncio.Future[Answers]] = {}


class Asked:
    """What judges share that are asked through the ledger and pay for calls: `keys`, `caller`."""

    def key(self: Any, task: Task, response: Response, criterion: Criterion) -> str:
        """Fingerprint of everything that shapes the verdict on one criterion."""
        return self.keys(task, response, [criterion])[0]

    async def verdicts(
        self, task: Task, response: Response, criteria: Sequence[Criterion]
    ) -> list[Verdict]:
        """One verdict per criterion, in order; faults are unknown verdicts with their kind."""
        return await loop.hop(ask(self, task, response, criteria))

    async def close(self: Any) -> None:
        """Close the connections (they open again when used)."""
        await loop.hop(self.caller.wire.close())


async def ask(
    judge: Any, task: Task, response: Response, criteria: Sequence[Criterion]
) -> list[Verdict]:
    """Verdicts of `judge`, one per criterion in order.

    The ledger first; questions in flight are shared; the rest is asked and stored.
    """
    q = question(judge, task, response, criteria)
    run = session()
    out = run.known(q, run.lookup(q.keys))
    left = [i for i in range(len(criteria)) if i not in out]
    out.update(zip(left, await answer(judge, q.only(left)), strict=True))
    return [out[i] for i in range(len(criteria))]


async def answer(judge: Any, q: Question) -> list[Verdict]:
    """Verdicts on a question that has been looked up before: what the ledger did not have."""
    if not q.keys:
        return await _asked(judge, q) if q.criteria else []
    out: dict[int, Verdict] = {}
    while len(out) < len(q.keys):
        session().going()
        await _round(judge, q, out)
    return [out[i] for i in range(len(q.keys))]


async def _round(judge: Any, q: Question, out: dict[int, Verdict]) -> None:
    """Ask what nobody is asking, then wait for what others ask; who fails leaves it to the next."""
    here = asyncio.get_running_loop()
    flying = {i: _FLIGHT.get(k) for i, k in enumerate(q.keys) if i not in out}
    theirs = {i: f for i, f in flying.items() if f is not None and f.get_loop() is here}
    mine = [i for i in flying if i not in theirs]
    if mine:
        keys = [q.keys[i] for i in mine]
        future: asyncio.Future[Answers] = here.create_future()
        _FLIGHT.update(dict.fromkeys(keys, future))
        try:
            await _mine(judge, q, mine, out)
        finally:
            for k in keys:
                if _FLIGHT.get(k) is future:
                    del _FLIGHT[k]
            future.set_result({q.keys[i]: out[i] for i in mine if i in out})
    for i, f in theirs.items():
        v = (await asyncio.shield(f)).get(q.keys[i])
        if v is not None:
            out[i] = q.again(i, v)


async def _mine(judge: Any, q: Question, mine: list[int], out: dict[int, Verdict]) -> None:
    """Ask these, but what another process on the same ledger is asking: that is waited for."""
    run = session()
    keys = [q.keys[i] for i in mine]
    try:
        ours, there = await run.claim(keys)
    except BaseException:  # cancelled, and the claims may have been taken all the same
        run.unclaim(keys)
        raise
    try:
        out.update(run.known(q, there))
        left = [i for i in mine if q.keys[i] in ours]
        if left:
            out.update(zip(left, await _asked(judge, q.only(left)), strict=True))
    finally:
        if ours:
            run.unclaim(ours)
    if not ours and not there:  # all who wait look at the same moments: one look serves them all
        await asyncio.sleep(POLL - time.monotonic() % POLL)


async def _asked(judge: Any, q: Question) -> list[Verdict]:
    """The judge's verdicts, recorded and on disk, one per criterion in order."""
    texts = q.apart()
    if len(texts) == 1:
        got = await _answered(judge, texts[0])
    else:  # thoughts are shown for the criteria alone that name them
        rows = await together([_answered(judge, part) for part in texts])
        found = {v.criterion_id: v for row in rows for v in row}
        got = [found[c.id] for c in q.criteria]
    await session().settled()
    return got


async def _answered(judge: Any, q: Question) -> list[Verdict]:
    """The judge's verdicts on one text, recorded, one per criterion in order."""
    if not hasattr(judge, "replies"):
        got = checked(await judge.verdicts(q.task, q.response, q.criteria), judge, q)
        session().record(None, got)
        return got
    parts = judge.parts(q) if hasattr(judge, "parts") else [q]
    if len(parts) == 1:
        got = await _replies(judge, parts[0])
    else:
        rows = await together([_replies(judge, part) for part in parts])
        got = [v for row in rows for v in row]
    return checked(got, judge, q)


async def _replies(judge: Any, q: Question) -> list[Verdict]:
    """What the judge's replies to this gave; each is recorded when it comes."""
    run, out = session(), []
    async for got, call in judge.replies(q):
        run.record(call, got)
        out += got
    return out


async def together(work: Sequence[Coroutine[Any, Any, Any]]) -> list[Any]:
    """All at once; a fault of one is raised when the others, whose calls are paid, have ended."""
    rows = await asyncio.gather(*work, return_exceptions=True)
    for row in rows:
        if isinstance(row, BaseException):
            raise row
    return rows


async def chat(judge: Any, prompt: str, room: int, ledger: Any = None, budget: Any = None) -> Reply:
    """A reply of `room` tokens at most, its call (None: nothing was paid), and why the reply is
    empty where it is. Attempts that were paid and lost go into the ledger.
    """
    if hasattr(judge, "ready"):
        judge = await judge.ready()
    with using(Session(ledger=ledger, budget=budget)) as run:
        try:
            done = await judge.chat(prompt, room)
        finally:
            run.flush()
    choices = (done.data or {}).get("choices") or [{}]
    text = (choices[0].get("message") or {}).get("content")
    reply = redact(text) if isinstance(text, str) else ""
    return reply, done.call, done.reason or "an empty reply"


async def once(
    reply: Callable[[], Awaitable[Reply]], prompt: str, *, who: Any, name: str, ledger: Any = None
) -> Reply:
    """A reply through the ledger, so that the same question to the same model is paid once.

    reply : asks, as `chat` does; who : all that shapes a reply but the prompt; name : who asked, in
    the cost book. An empty reply is paid too: it stays under its own id, and is asked for again.
    """
    key = f"{name}-{fingerprint([who, prompt])}"
    known = None if ledger is None else ledger.call(key)
    if known is not None:
        return known.reply, known, ""
    said, call, why = await reply()
    if ledger is not None and call is not None:
        kept = {"id": key, "reply": said} if said.strip() else {"id": call.id}
        ledger.put(call=replace(call, judge=name, request=json.dumps({"prompt": prompt}), **kept))
    return said, call, why
