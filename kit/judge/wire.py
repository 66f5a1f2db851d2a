"""One HTTP POST to an OpenAI-compatible server: the `openai` client's headers on plain aiohttp.

Why not the client's own transport: at 256 calls in flight it adds 0.5-1 ms of CPU a call (half of
it copying parameters) and finishes 1.4-2.0 times later than the server would allow; aiohttp alone
stays near 1.05. A client made elsewhere (a proxy's own transport) is used as it is, through its
public `post`. No retries here: the judge counts them, once.

No redirect is followed: it would carry the prompt, the answer and the key to another host. A reply
is unpacked piece by piece and given up beyond `most` bytes, so that neither a small compressed one
nor an endless one fills the memory. Keys in use are cut out of whatever comes back.
"""

from __future__ import annotations

import asyncio
import contextlib
import email.utils
import functools
import json
import time
import weakref
import zlib
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from . import loop as loops
from .address import Address, is_local
from .keys import OPENAI, key_for, redact, remember, remember_all

ANSWERED = (200, 203)  # the second: a proxy has changed it
MOST = 4_000_000  # bytes of a reply, unpacked
ERROR = 65_536  # bytes of an error's text that are read
LARGE = 262_144  # bytes from which on only LARGE_AT_ONCE replies are gathered at a time
LARGE_AT_ONCE = 6
LONGEST = 1e9  # seconds; a longer Retry-After is as good as for ever
FRAMING = ("content-encoding", "content-length", "transfer-encoding")
LATE = (
    0.1  # seconds after which a deadline was kept by nobody: this process was stopped, or very busy
)
GRACE = 2.0  # seconds to read, then, what has arrived meanwhile
AZURE = (".openai.azure.com", ".cognitiveservices.azure.com")


@dataclass(frozen=True, kw_only=True)
class Reply:
    """An HTTP reply: its status, its text without keys, the seconds to wait that it names."""

    status: int
    text: str
    retry_after: float | None = None


class WireError(Exception):
    """No whole reply came. kind : "timeout", "connection", "size", "unreached" (nothing was sent)."""

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
        try:
            seconds = float(low[name]) / scale
        except (KeyError, ValueError):
            continue
        if seconds >= 0:
            return min(seconds, LONGEST)
    return _date(low.get("retry-after"))


def _date(text: str | None) -> float | None:
    try:
        when = email.utils.parsedate_to_datetime(text or "").timestamp()
    except (TypeError, ValueError, OverflowError, IndexError):
        return None
    return min(max(0.0, when - time.time()), LONGEST)


def decoded(body: bytes) -> str:
    """A body as text without keys; UTF-16 and a byte order mark are seen."""
    return redact(body.decode(json.detect_encoding(body), "replace"))


@dataclass(eq=False)
class Wire:
    """A connection pool to one endpoint on the kit's loop, made at the first call."""

    address: Address
    key_env: str | None = None
    client: Any = field(default=None, repr=False)
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    most: int = MOST
    _session: Any = field(default=None, repr=False)
    _loop: Any = field(default=None, repr=False)
    _copy: Any = field(default=None, repr=False)
    _proxy: str | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        remember_all(self.headers)
        remember(getattr(self.client, "api_key", None))

    async def post(self, path: str, body: bytes, timeout: float) -> Reply:
        """POST a JSON body; a Reply of any status, or WireError. The deadline counts from now."""
        if self.client is not None:
            return await self._by_client(path, body, timeout)
        session = self._open()
        more = {"proxy": self._proxy, "allow_redirects": False}
        try:
            async with (
                _within(timeout),
                session.post(_url(self.address.url(path)), data=body, **more) as r,
            ):
                wait = retry_after(r.headers) if r.status >= 400 else None
                text = decoded(await self._body(r))
                return Reply(status=r.status, text=text, retry_after=wait)
        except WireError:
            raise
        except TimeoutError:
            raise WireError("timeout", f"no whole reply within {timeout:g} s") from None
        except Exception as e:  # whatever a server makes the library stumble over
            kind = "unreached" if isinstance(e, _no_connection()) else "connection"
            raise WireError(kind, f"{type(e).__name__}: {e}"[:200]) from None

    async def _body(self, r: Any) -> bytes:
        """The body, unpacked; of an error its beginning."""
        coding = r.headers.get("Content-Encoding", "identity")
        if coding == "identity" and (r.content_length or LARGE) < LARGE:
            return await r.read()
        try:
            return await self.gather(r.content.iter_any(), coding, r.status)
        finally:
            if not r.content.at_eof():
                r.close()

    async def gather(self, chunks: AsyncIterator[bytes], coding: str, status: int) -> bytes:
        """A body from its pieces, unpacked, at most `most` bytes; of an error its beginning."""
        unpack = _unpacker(coding.strip().lower())
        out, large, most = bytearray(), None, self.most if status in ANSWERED else ERROR
        try:
            async for chunk in chunks:
                out += unpack(chunk, most + 1 - len(out))
                if len(out) > most and status in ANSWERED:
                    raise WireError("size", f"the reply is larger than {most:,} bytes")
                if len(out) > most:
                    break
                if len(out) > LARGE and large is None:
                    gate = _gate(asyncio.get_running_loop())
                    await gate.acquire()
                    large = gate
        finally:
            if large is not None:
                large.release()
        return bytes(out)

    def _open(self) -> Any:
        import aiohttp

        loop = asyncio.get_running_loop()
        if self._session is None or self._session.closed or self._loop is not loop:
            self._session = aiohttp.ClientSession(
                connector=aiohttp.TCPConnector(limit=0, ttl_dns_cache=300, keepalive_timeout=30),
                timeout=aiohttp.ClientTimeout(total=None, sock_connect=None),
                auto_decompress=False,
                cookie_jar=aiohttp.DummyCookieJar(),
                headers=self._heads(),
            )
            self._loop, self._proxy = loop, self.address.proxy
            loops.at_exit(self.close)
            weakref.finalize(self, _shut, self._session, loop).atexit = False
        return self._session

    def _heads(self) -> dict[str, str]:
        """The headers that the `openai` client would send."""
        base = self.address.base
        key, own = key_for(base, self.key_env), {}
        if base.startswith(
            "https://api.openai.com"
        ):  # elsewhere its import (a second) buys nothing
            import openai

            client = openai.AsyncOpenAI(base_url=base, api_key=key, max_retries=0)
            names = ("openai-organization", "openai-project", "user-agent")
            own = {
                k: str(v)
                for k, v in client.default_headers.items()
                if k.lower() in names and isinstance(v, str)
            }
        auth = self.address.auth if not self.key_env else None
        azure = {"api-key": key} if _host(base).endswith(AZURE) else {}
        return {
            **own,
            **azure,
            "Authorization": auth or f"Bearer {key}",
            "Content-Type": "application/json",
            "Accept": "application/json",
            "Accept-Encoding": "gzip, deflate",
            **self.headers,
        }

    async def _by_client(self, path: str, body: bytes, timeout: float) -> Reply:
        """The same through a given `openai` client, its retries and redirects off."""
        import openai

        more = {"headers": {"X-Stainless-Raw-Response": "true"}, "follow_redirects": False}
        if self._copy is None:
            self._copy = client = self.client.with_options(max_retries=0, timeout=None)
            client._client = _Bounded(client._client, self)  # of this copy, not of the user's own
        try:
            async with _within(timeout):
                raw = await self._copy.post(path, cast_to=dict, body=json.loads(body), options=more)
        except openai.APIStatusError as e:
            wait = retry_after(e.response.headers)
            return Reply(status=e.status_code, text=decoded(e.response.content), retry_after=wait)
        except (openai.APITimeoutError, TimeoutError):
            raise WireError("timeout", f"no whole reply within {timeout:g} s") from None
        except Exception as e:
            if isinstance(e.__cause__ or e, WireError):
                raise (e.__cause__ or e) from None
            raise WireError("connection", f"{type(e).__name__}: {e}"[:200]) from None
        return Reply(status=raw.status_code, text=decoded(raw.content))

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


class _Bounded:
    """An `openai` client's own HTTP client, whose replies are read as all others: at most so far."""

    def __init__(self, http: Any, wire: Wire):
        self._http, self._wire = http, wire

    __class__ = property(lambda self: type(self._http))  # type: ignore[assignment]

    def __getattr__(self, name: str) -> Any:
        return getattr(self._http, name)

    async def send(self, request: Any, **more: Any) -> Any:
        """A reply that is read whole, or WireError."""
        r = await self._http.send(request, **{**more, "stream": True})
        try:
            coding = r.headers.get("content-encoding", "identity")
            body = await self._wire.gather(r.aiter_raw(), coding, r.status_code)
        finally:
            await r.aclose()
        heads = [(k, v) for k, v in r.headers.multi_items() if k.lower() not in FRAMING]
        return type(r)(r.status_code, headers=heads, content=body, request=request)


@functools.lru_cache(maxsize=2)
def _gate(loop: asyncio.AbstractEventLoop) -> asyncio.Semaphore:
    """How many large replies are gathered at a time."""
    return asyncio.Semaphore(LARGE_AT_ONCE)


def _no_connection() -> type[Exception]:
    from aiohttp import ClientConnectorError

    return ClientConnectorError


def _unpacker(coding: str) -> Any:
    """(bytes, most) -> unpacked bytes, at most so many."""
    if coding in ("identity", ""):
        return lambda chunk, most: chunk[:most]
    if coding not in ("gzip", "x-gzip", "deflate"):
        raise WireError("connection", f"the reply is packed as {coding[:20]!r}, not asked for")
    unzip = zlib.decompressobj(wbits=47)  # gzip or zlib, whichever it is
    return lambda chunk, most: unzip.decompress(chunk, most)


@functools.lru_cache(maxsize=64)
def _url(text: str) -> Any:
    """The address as aiohttp takes it, with the query as it was written."""
    import yarl

    return yarl.URL(text, encoded=True)


def _host(base: str) -> str:
    return base.partition("://")[2].partition("/")[0].partition(":")[0]


def _shut(session: Any, loop: asyncio.AbstractEventLoop) -> None:
    """Close the connections of a judge that nobody holds any more."""
    if not session.closed and not loop.is_closed():
        loop.call_soon_threadsafe(lambda: loop.create_task(session.close()))


__all__ = ["OPENAI", "Reply", "Wire", "WireError", "is_local", "key_for", "retry_after"]
