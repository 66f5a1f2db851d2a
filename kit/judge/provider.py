"""The provider's side of a batch: a file sent, a batch of it, looks, the replies fetched.

Where the answer to a batch is lost, nobody knows whether it was accepted: it is looked for among
the provider's batches before another is sent. A batch is forgotten when all its replies were read.
"""

from __future__ import annotations

import asyncio
import functools
import json
import logging
import secrets
import time
from collections.abc import Callable, Collection, Mapping
from typing import Any

from ..errors import JudgeDownError
from .caller import Caller
from .keys import said
from .wire import ANSWERED, Reply, WireError, parsed

log = logging.getLogger(__name__)
ENDED = ("completed", "failed", "expired", "cancelled")
PATH = "/v1/chat/completions"
# before the id of an input file: a batch of it may have been accepted under an id not known here
SENT = "file "
PASSING = (0, 408, 409, 425, 429)
SLOW = 600.0  # seconds for a file to go up or down
FILE = 1 << 30  # bytes of one

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
        self.caller, self.poll = caller, poll

    async def _send(self, method: str, path: str, **more: Any) -> Reply:
        """One request; where no whole reply came, status 0."""
        try:
            timeout = max(SLOW, self.caller.timeout)
            return await self.caller.wire.send(method, path, timeout, **more)
        except WireError as e:
            return Reply(status=0, text=str(e))

    async def _asked(
        self, what: str, read: Callable[[str], Any], method: str, path: str, **more: Any
    ) -> Any:
        """What `read` makes of the provider's answer; asked again for `patience` seconds where the
        provider is away or answers nonsense (None). JudgeDownError then, or when it refuses.
        """
        started, seen = time.monotonic(), method == "GET"
        while True:
            reply = await self._send(method, path, **more)
            got = read(reply.text) if reply.status in ANSWERED else None
            if got is not None:
                return got
            late = time.monotonic() - started > self.caller.patience
            if late or _refused(reply.status, seen):
                raise self._down(reply, what, seen)
            await asyncio.sleep(self.poll)

    async def submit(self, sent: Sent, lines: Mapping[str, str]) -> None:
        """Send a batch of these lines, by request. It is noted before, to be found again whatever
        happens here.
        """
        what, ids = "the batch could not be sent", list(lines)
        file = await self._asked(what, _row, "POST", "/files", **_form("\n".join(lines.values())))
        name = SENT + file["id"]
        sent.change({name: ids})
        for _ in range(self.caller.tries):
            try:
                batch_id = await self._create(file["id"])
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
        raise self._down(Reply(status=0, text="no answer to the batch, nor is it there"), what)

    async def _create(self, file_id: str) -> str | None:
        """The new batch's id; None where nobody knows whether it was accepted."""
        body = {"input_file_id": file_id, "endpoint": PATH, "completion_window": "24h"}
        reply = await self._send("POST", "/batches", data=json.dumps(body).encode())
        if _refused(reply.status, False):
            raise self._down(reply, "the batch could not be sent")
        row = _row(reply.text) if reply.status in ANSWERED else None
        return row["id"] if row else None

    async def look(self, name: str) -> str | None:
        """The id of the batch that was made of this input file, if it is among the newest 100."""
        what = f"nobody knows whether a batch of {name} was accepted: batches cannot be listed"
        page = await self._asked(what, _page, "GET", "/batches", query="limit=100")
        made = [r["id"] for r in page["data"] if SENT + str(r.get("input_file_id")) == name]
        return str(made[0]) if made else None

    async def ended(self, sent: Sent, batch_id: str) -> tuple[Rows, bool]:
        """The lines of a batch when it has ended, and whether they are all there."""
        while (batch := await self._seen(sent, batch_id))["status"] not in ENDED:
            await asyncio.sleep(self.poll)
        rows, whole = await self._fetched(batch_id, batch, sent.known[batch_id])
        if batch["status"] == "failed" and not rows:
            sent.change({}, gone=batch_id)
            why = said(json.dumps(batch.get("errors")))
            raise JudgeDownError(
                f"the provider refused the batch {batch_id}: {why}",
                where=self.caller.base_url,
                fix="judge without --batch, or look at the provider's batch page",
            )
        return rows, whole

    async def _seen(self, sent: Sent, batch_id: str) -> Any:
        """The batch as it stands; forgotten when it was not there for all of `patience`."""
        what = f"the batch {batch_id} cannot be asked for"
        read = functools.partial(_row, field="status")
        try:
            return await self._asked(what, read, "GET", f"/batches/{batch_id}")
        except JudgeDownError as e:
            if e.status == 404:  # type: ignore[attr-defined]
                sent.change({}, gone=batch_id)
            raise

    async def _fetched(
        self, batch_id: str, batch: Mapping[str, Any], ids: Collection[str]
    ) -> tuple[Rows, bool]:
        """The lines of an ended batch's files.

        A file that came broken (a gateway's page, nothing, half of it) is fetched again.
        """
        started, what = time.monotonic(), f"the replies of batch {batch_id} cannot be fetched"
        names = [batch.get(f"{kind}_file_id") for kind in ("output", "error")]
        while True:
            rows: Rows = {}
            sound = True
            for name in [n for n in names if n and isinstance(n, str)]:
                text = await self._asked(what, str, "GET", f"/files/{name}/content", most=FILE)
                sound &= _lines(text, rows)
            whole = rows.keys() >= set(ids) or (sound and batch["status"] != "completed")
            if whole or time.monotonic() - started > self.caller.patience:
                return rows, whole
            await asyncio.sleep(self.poll)

    def _down(self, reply: Reply, what: str, seen: bool = False) -> JudgeDownError:
        """The kit's error for an answer that is none."""
        fix = "look at the key, the address and the network; then run the same command: "
        fix += "batches that were sent are found again"
        if reply.status in (404, 405, 501) and not seen:
            fix = "this server seems to have no batch API: judge without --batch"
        why = f"HTTP {reply.status}: " if reply.status else ""
        text = f"{what} ({why}{said(reply.text)})"
        down = JudgeDownError(text, where=self.caller.base_url, fix=fix)
        down.status = reply.status  # type: ignore[attr-defined]
        return down


def _refused(status: int, seen: bool) -> bool:
    """True where asking again is of no use. seen : what is asked for was there: no 404 counts."""
    if status in PASSING or (seen and status == 404):
        return False
    return 300 <= status < 500 or status == 501


def _row(text: str, field: str = "id") -> dict[str, Any] | None:
    """An answer that is an object with this text in it; None for any other."""
    try:
        row = parsed(text)
    except (ValueError, RecursionError):
        return None
    return row if isinstance(row, dict) and row.get(field) and isinstance(row[field], str) else None


def _page(text: str) -> dict[str, Any] | None:
    """A page of batches, each with its id."""
    page = _row(text, "object") or {}
    rows = page.get("data")
    sound = isinstance(rows, list) and all(isinstance(r, dict) and r.get("id") for r in rows)
    return page if sound else None


def _form(lines: str) -> dict[str, Any]:
    """The body and the headers that send a batch's lines as a file."""
    mark = secrets.token_hex(16)
    part = f'--{mark}\r\nContent-Disposition: form-data; name="'
    body = f'{part}purpose"\r\n\r\nbatch\r\n{part}file"; filename="requests.jsonl"\r\n'
    body += f"Content-Type: application/jsonl\r\n\r\n{lines}\r\n--{mark}--\r\n"
    heads = {"Content-Type": f"multipart/form-data; boundary={mark}"}
    return {"data": body.encode(), "heads": heads}


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
