"""The provider's side of a batch: a file sent, a batch of it, looks, the replies fetched.

Where the answer to a batch is lost, nobody knows whether it was accepted: it is looked for among
the provider's batches before another is sent. A batch is forgotten when all its replies were read.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

from ..errors import JudgeDownError
from ..system import progress
from .caller import Caller
from .keys import key_for, redact, said
from .wire import parsed

log = logging.getLogger(__name__)
ENDED = ("completed", "failed", "expired", "cancelled")
PATH = "/v1/chat/completions"
# before the id of an input file: a batch of it may have been accepted under an id not known here
SENT = "file "
LOOKED = 1000  # of the provider's newest batches, among which one is looked for
PASSING = (408, 409, 425, 429)

Rows = dict[str, list[dict[str, Any]]]  # lines of a batch's files, by request


class Sent:
    """What is on its way: requests by batch, or by SENT + input file; kept in the ledger.

    Each change is made to what stands there now: another process may have sent its own.
    """

    def __init__(self, ledger: Any, note: str):
        self.ledger, self.note = ledger, note
        self.known: dict[str, list[str]] = (ledger.note(note) if ledger else None) or {}

    def change(self, add: Mapping[str, list[str]], gone: str = "") -> None:
        if not self.ledger:
            self.known = {k: v for k, v in {**self.known, **add}.items() if k != gone}
            return
        with self.ledger.transaction():
            now = {**(self.ledger.note(self.note) or {}), **add}
            self.known = {k: v for k, v in now.items() if k != gone}
            self.ledger.note(self.note, self.known)

    def of(self, ids: Collection[str]) -> dict[str, list[str]]:
        """Those that hold any of these requests."""
        return {b: held for b, held in self.known.items() if not set(ids).isdisjoint(held)}


class Provider:
    """Files and batches of the server that a Caller speaks to. poll : seconds between two looks."""

    def __init__(self, caller: Caller, poll: float):
        self.caller, self.poll, self._client = caller, poll, None

    def _api(self) -> Any:
        """The `openai` client; its own retries are off: it would send a batch twice."""
        import openai

        if self._client is None:
            wire = self.caller.wire
            base = wire.address.base
            http = {"follow_redirects": False, "trust_env": not wire.address.local}
            self._client = openai.AsyncOpenAI(
                base_url=base,
                api_key=key_for(base, wire.key_env),
                http_client=openai.DefaultAsyncHttpxClient(**http),
                max_retries=0,
            )
        return self._client

    async def _asked(
        self, what: str, ask: Callable[[], Any], fits: Callable[[Any], Any], *, seen: bool = False
    ) -> Any:
        """What the provider answers; asked again for `patience` seconds where it is away or answers
        nonsense. JudgeDownError then, or when it refuses. seen : it was there before (no 404).
        """
        started = time.monotonic()
        while True:
            try:
                got = await ask()
                if fits(got):
                    return got
                fault: Exception = ValueError("an answer that is none")
            except Exception as e:  # whatever an answer makes the client stumble over
                fault = e
            if _refused(fault, seen) or time.monotonic() - started > self.caller.patience:
                raise self._down(fault, what, seen)
            await asyncio.sleep(self.poll)

    async def submit(self, sent: Sent, lines: Mapping[str, str]) -> None:
        """Send a batch of these lines, by request. It is noted before, to be found again whatever
        happens here.
        """
        what, ids = "the batch could not be sent", list(lines)
        data = ("requests.jsonl", "\n".join(lines.values()).encode())
        files = self._api().files
        file = await self._asked(what, lambda: files.create(file=data, purpose="batch"), _id)
        name = SENT + file.id
        sent.change({name: ids})
        for _ in range(self.caller.tries):
            try:
                batch_id = await self._create(file.id)
            except JudgeDownError:
                sent.change({}, gone=name)
                raise
            if batch_id is None:
                await asyncio.sleep(self.poll)
                batch_id = await self.look(name)
            if batch_id is not None:
                sent.change({batch_id: ids}, gone=name)
                log.info("batch %s sent with %d requests", batch_id, len(ids))
                return
        raise self._down(ValueError("no answer to the batch, nor is it there"), what)

    async def _create(self, file_id: str) -> str | None:
        """The new batch's id; None where nobody knows whether it was accepted."""
        batches = self._api().batches
        try:
            fields = {"endpoint": PATH, "completion_window": "24h"}
            return _id(await batches.create(input_file_id=file_id, **fields))
        except Exception as e:
            if _refused(e, False):
                raise self._down(e, "the batch could not be sent") from None
        return None

    async def look(self, name: str) -> str | None:
        """The id of the batch that was made of this input file, if the provider has it."""
        batches = self._api().batches

        async def newest() -> list[Any]:
            rows: list[Any] = []
            async for row in batches.list(limit=100):
                rows.append(row)
                if len(rows) >= LOOKED:
                    break
            return rows

        what = f"nobody knows whether a batch of {name} was accepted: batches cannot be listed"
        rows = await self._asked(what, newest, lambda rows: all(map(_id, rows)), seen=True)
        made = [r.id for r in rows if getattr(r, "input_file_id", None) == name.removeprefix(SENT)]
        return made[0] if made else None

    async def ended(self, sent: Sent, batch_id: str) -> tuple[Rows, bool]:
        """The lines of a batch when it has ended, and whether they are all there.

        A bar shows what the provider has done.
        """
        ids = sent.known[batch_id]
        with progress.bar(
            total=len(ids), desc=f"batch {batch_id}", unit="request", delay=2.0
        ) as bar:
            while (batch := await self._seen(sent, batch_id)).status not in ENDED:
                bar.update(max(0, _count(batch, "completed") + _count(batch, "failed") - bar.n))
                await asyncio.sleep(self.poll)
        rows, whole = await self._fetched(batch_id, batch, ids)
        if batch.status == "failed" and not rows:
            sent.change({}, gone=batch_id)
            raise JudgeDownError(
                f"the provider refused the batch {batch_id}: "
                f"{said(str(getattr(batch, 'errors', '')))}",
                where=self.caller.base_url,
                fix="judge without --batch, or look at the provider's batch page",
            )
        return rows, whole

    async def _seen(self, sent: Sent, batch_id: str) -> Any:
        """The batch as it stands; forgotten when it was not there for all of `patience`."""
        retrieve, what = self._api().batches.retrieve, f"the batch {batch_id} cannot be asked for"
        try:
            return await self._asked(what, lambda: retrieve(batch_id), _state, seen=True)
        except JudgeDownError as e:
            if e.status == 404:  # type: ignore[attr-defined]
                sent.change({}, gone=batch_id)
            raise

    async def _fetched(self, batch_id: str, batch: Any, ids: Sequence[str]) -> tuple[Rows, bool]:
        """The lines of an ended batch's files.

        A file that came broken (a gateway's page, nothing, half of it) is fetched again.
        """
        content, started = self._api().files.content, time.monotonic()
        what = f"the replies of batch {batch_id} cannot be fetched"
        names = [getattr(batch, f"{kind}_file_id", None) for kind in ("output", "error")]
        while True:
            rows: Rows = {}
            sound = True
            for name in [n for n in names if n and isinstance(n, str)]:
                got = await self._asked(what, lambda n=name: content(n), _text, seen=True)
                sound &= _lines(redact(got.text), rows)
            whole = rows.keys() >= set(ids) or (sound and batch.status != "completed")
            if whole or time.monotonic() - started > self.caller.patience:
                return rows, whole
            await asyncio.sleep(self.poll)

    def _down(self, e: Any, what: str, seen: bool = False) -> JudgeDownError:
        """The kit's error for one of the client's; its text holds no key."""
        status = getattr(e, "status_code", None)
        why = f"HTTP {status}" if isinstance(status, int) else type(e).__name__
        fix = "look at the key, the address and the network; then run the same command: "
        fix += "batches that were sent are found again"
        if status in (404, 405, 501) and not seen:
            fix = "this server seems to have no batch API: judge without --batch"
        text = f"{what} ({why}: {said(str(getattr(e, 'message', e)))})"
        down = JudgeDownError(text, where=self.caller.base_url, fix=fix)
        down.status = status  # type: ignore[attr-defined]
        return down


def _refused(fault: Exception, seen: bool) -> bool:
    """True where asking again is of no use. seen : what is asked for was there: no 404 counts."""
    status = getattr(fault, "status_code", None)
    if not isinstance(status, int) or status in PASSING or (seen and status == 404):
        return False
    return 300 <= status < 500 or status == 501


def _id(got: Any) -> str | None:
    """The id that an answer names."""
    name = getattr(got, "id", None)
    return name if name and isinstance(name, str) else None


def _state(batch: Any) -> bool:
    return isinstance(getattr(batch, "status", None), str)


def _text(got: Any) -> bool:
    return isinstance(getattr(got, "text", None), str)


def _count(batch: Any, name: str) -> int:
    """How many of a batch's requests are so; 0 where it does not say."""
    n = getattr(getattr(batch, "request_counts", None), name, 0)
    return n if isinstance(n, int) else 0


def _lines(text: str, rows: Rows) -> bool:
    """Add a file's lines by custom_id; False when one is broken or there is none."""
    lines = [line for line in text.removeprefix("\ufeff").split("\n") if line.strip()]
    sound = bool(lines)
    for line in lines:
        try:
            row = parsed(line)
            rows.setdefault(row["custom_id"], []).append(row)
        except (ValueError, KeyError, TypeError, RecursionError):
            sound = False
    return sound
