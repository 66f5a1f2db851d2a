"""One HTTP POST to an OpenAI-compatible server, on plain aiohttp.

Why not the `openai` client's transport: at 256 calls in flight it adds 0.5-1 ms of CPU a call (half
of it copying parameters) and finishes 1.4-2.0 times later than the server would allow; aiohttp
alone stays near 1.05. No retries here: the judge counts them, once.

No connection is used twice: whatever a gateway sends unasked (its back end's late reply behind a
504, a second one to a question that it had asked twice) would answer the next question, and no
reply tells which one it is for. A connection costs .15 ms of CPU (about 1 ms with TLS).

No redirect is followed: it would carry the prompt, the answer and the key to another host. A reply
is unpacked piece by piece and given up beyond `most` bytes, so that neither a small compressed one
nor an endless one fills the memory. Keys in use are cut out of whatever is shown or kept, once it
has been read.
"""

from __future__ import annotations

import asyncio
import contextlib
import contextvars
import email.utils
import functools
import json
import os
import re
import time
import warnings
import weakref
import zlib
from collections.abc import AsyncIterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any

from ..errors import KitError
from . import loop as loops
from .keys import Address, key_for, redact, remember_all

ANSWERED = (200, 203)  # the second: a proxy has changed it
MOST = 4_000_000  # bytes of a reply, unpacked
ERROR = 65_536  # bytes of an error's text that are read
LARGE = 262_144  # bytes from which on only LARGE_AT_ONCE replies are gathered at a time
LARGE_AT_ONCE = 6
PARTS = 400_000  # objects, lists and commas in one reply
SLOW = 65_536  # characters; longer replies are decoded and read off the loop
LONGEST = 1e9  # seconds; a longer Retry-After is as good as for ever
LATE = 0.1  # seconds after which a deadline was kept by nobody: this process was stopped, or busy
GRACE = 2.0  # seconds to read, then, what has arrived meanwhile
AZURE = (".openai.azure.com", ".cognitiveservices.azure.com")
_HEAD = re.compile(  # a name that may be given, but for those by which a message is framed and read
    r"(?!(?:content-(?:length|encoding|type)|transfer-encoding|accept-encoding|connection|host|te|"
    r"trailer|upgrade|expect)\Z)[!#$%&'*+.^_`|~0-9a-z-]+",
    re.I,
)
_TEXT = re.compile(r"[^\x00-\x08\x0a-\x1f\x7f]*")


@dataclass(frozen=True, kw_only=True)
class Reply:
    """An HTTP reply: its status, its text as it came, the seconds to wait that it names."""

    status: int
    text: str
    retry_after: float | None = None


class WireError(Exception):
    """No whole reply came.

    kind : "timeout", "connection", "size", "unreached" (nothing was sent).
    """

    def __init__(self, kind: str, what: str):
        super().__init__(redact(what))
        self.kind = kind


def retry_after(headers: Mapping[str, str]) -> float | None:
    """Seconds from `retry-after-ms` or `Retry-After` (seconds or a date); None when unreadable.

    >>> retry_after({"Retry-After": "1.5"}), retry_after({"retry-after-ms": "250"})
    (1.5, 0.25)
    >>> retry_after({"Retry-After": "soon"}), retry_after({"Retry-After": "inf"})
    (None, 1000000000.0)
    """
    low = {k.lower(): v for k, v in headers.items() if k.lower().startswith("retry-after")}
    for name, scale in (("retry-after-ms", 1000.0), ("retry-after", 1.0)):
        with contextlib.suppress(KeyError, ValueError):
            if (seconds := float(low[name]) / scale) >= 0:
                return min(seconds, LONGEST)
    return _date(low.get("retry-after"))


def _date(text: str | None) -> float | None:
    try:
        when = email.utils.parsedate_to_datetime(text or "").timestamp()
    except (TypeError, ValueError, OverflowError, IndexError):
        return None
    return min(max(0.0, when - time.time()), LONGEST)


def decoded(body: bytes) -> str:
    """A body as text; UTF-16 and a byte order mark are seen."""
    return body.decode(json.detect_encoding(body), "replace")


@dataclass(eq=False)
class Wire:
    """A connection pool to one endpoint on the kit's loop, made at the first call."""

    address: Address
    key_env: str | None = None
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    most: int = MOST
    _session: Any = field(default=None, repr=False)
    _loop: Any = field(default=None, repr=False)
    _proxy: str | None = field(default=None, repr=False)
    _sent: Mapping[str, str] = field(default_factory=dict, repr=False)

    def __post_init__(self) -> None:
        for name, value in self.headers.items():
            if not (isinstance(value, str) and _HEAD.fullmatch(name) and _TEXT.fullmatch(value)):
                raise KitError(
                    f"{name!r} is no header that can be sent",
                    where="headers",
                    fix="a name of letters, digits and dashes, a text of one line; no fields "
                    "of HTTP's own",
                )
        remember_all(self.headers)

    async def post(self, path: str, body: bytes, timeout: float) -> Reply:
        """POST a JSON body; a Reply of any status, or WireError. The deadline counts from now."""
        session, url = self._open(), self.address.url(path)
        # headers of the session would go to the proxy, too, in clear and before any TLS
        more = {"proxy": self._proxy, "allow_redirects": False, "headers": self._sent}
        try:
            async with (
                _within(timeout),
                session.post(_url(url), data=body, **more) as r,
            ):
                wait = retry_after(r.headers) if r.status >= 400 else None
                body = await self._body(r)
                return Reply(status=r.status, text=decoded(body), retry_after=wait)
        except WireError:
            raise
        except TimeoutError:
            raise WireError("timeout", f"no whole reply within {timeout:g} s") from None
        except Exception as e:  # whatever a server makes the library stumble over
            from aiohttp import ClientConnectorError

            kind = "unreached" if isinstance(e, ClientConnectorError) else "connection"
            # other libraries' errors quote the server's bytes, cut: a part of a key among them
            more = f": {redact(str(e))}" if isinstance(e, (OSError, zlib.error)) else ""
            raise WireError(kind, f"{type(e).__name__}{more}"[:200]) from None

    async def _body(self, r: Any) -> bytes:
        """The body, unpacked, at most `most` bytes; of an error its beginning."""
        coding = r.headers.get("Content-Encoding", "identity")
        if coding == "identity" and (r.content_length or LARGE) < LARGE:
            return await r.read()
        unpack = _unpacker(coding.strip().lower())
        whole = r.status in ANSWERED
        out, large, most = bytearray(), None, self.most if whole else ERROR
        try:
            async for chunk in r.content.iter_any():
                out += unpack(chunk, most + 1 - len(out))
                if len(out) > most and whole:
                    raise WireError("size", f"the reply is larger than {most:,} bytes")
                if len(out) > most:
                    break
                if len(out) > LARGE and large is None:
                    gate = _gate(asyncio.get_running_loop())
                    await gate.acquire()
                    large = gate
            if whole:
                unpack(b"", 1)
        finally:
            if large is not None:
                large.release()
            if not r.content.at_eof():
                r.close()
        return bytes(out)

    def _open(self) -> Any:
        import aiohttp

        loop = asyncio.get_running_loop()
        if self._session is None or self._session.closed or self._loop is not loop:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", DeprecationWarning)
                # a server slow to say goodbye under TLS would hold a file for 30 s a call
                connector = aiohttp.TCPConnector(
                    limit=0, ttl_dns_cache=300, force_close=True, ssl_shutdown_timeout=0.2
                )
            self._session = aiohttp.ClientSession(
                connector=connector,
                timeout=aiohttp.ClientTimeout(total=None, sock_connect=None),
                auto_decompress=False,
                cookie_jar=aiohttp.DummyCookieJar(),
            )
            self._loop, self._proxy, self._sent = loop, self.address.proxy, self._heads()
            loops.at_exit(self)
            weakref.finalize(self, _shut, self._session, loop).atexit = False
        return self._session

    def _heads(self) -> dict[str, str]:
        base = self.address.base
        key = key_for(base, self.key_env)
        auth = self.address.auth if not self.key_env else None
        azure = {"api-key": key} if re.split("[:/]", base)[3].endswith(AZURE) else {}
        return {
            **azure,
            **(_openai() if base.startswith("https://api.openai.com") else {}),
            "Authorization": auth or f"Bearer {key}",
            "Content-Type": "application/json",
            "Accept": "application/json",
            "Accept-Encoding": "gzip, deflate",
            **self.headers,
        }

    async def close(self) -> None:
        """Close the connections."""
        session, self._session = self._session, None
        if session is not None and not session.closed and self._loop is asyncio.get_running_loop():
            await session.close()


@contextlib.asynccontextmanager
async def _within(seconds: float) -> AsyncIterator[None]:
    """TimeoutError after so long, but not before what has arrived is read.

    A process that was stopped (SIGSTOP, a laptop's lid) finds its deadline passed and the reply,
    which is paid, in the socket.
    """
    loop = asyncio.get_running_loop()
    end = loop.time() + seconds
    async with asyncio.timeout(None) as limit:

        def over() -> None:
            now = loop.time()
            limit.reschedule(now + GRACE if now > end + LATE else now)

        timer = loop.call_at(end, over)
        try:
            yield
        finally:
            timer.cancel()


@functools.lru_cache(maxsize=2)
def _gate(loop: asyncio.AbstractEventLoop) -> asyncio.Semaphore:
    """How many large replies are gathered at a time."""
    return asyncio.Semaphore(LARGE_AT_ONCE)


def _unpacker(coding: str) -> Any:
    """(bytes, most) -> unpacked bytes, at most so many; no bytes: the body has ended."""
    if coding in ("identity", ""):
        return lambda chunk, most: chunk[:most]
    if coding not in ("gzip", "x-gzip", "deflate"):
        raise WireError("connection", "the reply is packed in a way that was not asked for")
    unzip: Any = None

    def unpack(chunk: bytes, most: int) -> bytes:
        nonlocal unzip
        # what was to follow might have been the verdict's other half
        if not chunk and (unzip is None or not unzip.eof):
            raise WireError("connection", "the packed reply was cut")
        if (
            unzip is None
        ):  # gzip begins with 1f, zlib with a low digit of 8, bare deflate with neither
            unzip = zlib.decompressobj(47 if chunk[0] == 0x1F or chunk[0] & 15 == 8 else -15)
        out = unzip.decompress(chunk, most)
        while unzip.eof and unzip.unused_data and len(out) < most:  # another member
            rest, unzip = unzip.unused_data, zlib.decompressobj(wbits=47)
            out += unzip.decompress(rest, most - len(out))
        return out

    return unpack


@functools.lru_cache(maxsize=64)
def _url(text: str) -> Any:
    """The address as aiohttp takes it, with the query as it was written."""
    import yarl

    return yarl.URL(text, encoded=True)


def _openai() -> dict[str, str]:
    """The account that is named in the environment, as OpenAI's own client sends it."""
    named = {"OpenAI-Organization": "OPENAI_ORG_ID", "OpenAI-Project": "OPENAI_PROJECT_ID"}
    return {head: os.environ[name] for head, name in named.items() if os.environ.get(name)}


def _shut(session: Any, loop: asyncio.AbstractEventLoop) -> None:
    """Close the connections of a judge that nobody holds any more."""
    if not session.closed and not loop.is_closed():
        loop.call_soon_threadsafe(lambda: loop.create_task(session.close()))


async def large(size: int, work: Any, *args: Any) -> Any:
    """`work(*args)`; off the loop, one after the other, when there is so much to do."""
    if size < SLOW:
        return work(*args)
    run = contextvars.copy_context().run
    return await asyncio.get_running_loop().run_in_executor(_reader(os.getpid()), run, work, *args)


@functools.lru_cache(maxsize=1)
def _reader(pid: int) -> ThreadPoolExecutor:
    """The thread that reads large replies (a forked child has its own)."""
    return ThreadPoolExecutor(1, "kit-judge-read")


def parsed(raw: str) -> Any:
    """A reply's JSON; ValueError for what is none, or has more parts than any answer has."""
    if len(raw) > SLOW and sum(map(raw.count, "{[,")) > PARTS:
        raise ValueError(f"it has more than {PARTS:,} parts")
    return json.loads(raw, object_pairs_hook=_once)


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """An object of a reply; ValueError where it says two things under one name."""
    out = dict(pairs)
    if len(out) < len(pairs):
        for k, v in pairs:
            if out[k] != v:
                raise ValueError(f"it names {k!r} twice")
    return out
