"""One request, for as long as it makes sense: credentials shown, its turn waited for, failures tried again.

Questions with a whole answer share one pool of kept connections; streams and conversations have their own. Every
request has a deadline over all its attempts; of a stream only the head has one. A 401 has the credentials fetched anew,
once, and whoever else was turned away meanwhile uses what came of that. Time and chance are passed in.
"""

from __future__ import annotations

import asyncio
import base64
import random
import time
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any, TypeVar

import aiohttp
from yarl import URL

from shoal import __version__
from shoal.cluster.clock import Clock, SystemClock, pause
from shoal.cluster.fencing import check_fence
from shoal.cluster.kubeconfig import Connection, Shown
from shoal.cluster.kubernetes import errors
from shoal.cluster.kubernetes.connection_pool import KEPT_SECONDS, Exchange, NoWay
from shoal.cluster.kubernetes.flow_control import Bounds, Line, Pace
from shoal.cluster.kubernetes.http1 import Answer, probed_socket
from shoal.cluster.kubernetes.request import Request
from shoal.cluster.kubernetes.retry import Failure, Patience, pause_after
from shoal.cluster.kubernetes.server_health import Hearing

T = TypeVar("T")
_NO_LIMIT = aiohttp.ClientTimeout(total=None)


@dataclass(frozen=True, slots=True)
class Settings:
    deadline_seconds: float = 60.0
    quiet_seconds: float = 300.0  # a watch that says nothing, not even a bookmark, for so long is opened anew
    patience: Patience = field(default_factory=Patience)
    bounds: Bounds = field(default_factory=Bounds)


Send = Callable[[Request, Shown], Awaitable[T]]
Noted = Callable[[str, str], None]  # of each request that leaves, every try of it: its verb and its resource


@dataclass(slots=True)
class _Tries:
    """Of one request."""

    failures: list[Failure] = field(default_factory=list)
    waits: bool = False  # for the next try; else one is on its way


class Wire:
    """The way to one server. Close it at the end."""

    def __init__(
        self,
        connection: Connection,
        settings: Settings | None = None,
        *,
        clock: Clock | None = None,
        chance: random.Random | None = None,
        note: Noted = lambda _, __: None,
    ) -> None:
        self.connection = connection
        self.settings = settings or Settings()
        self._clock = clock or SystemClock()
        self._chance = chance or random.Random()  # noqa: S311 - spreads retries, guards nothing
        self._note = note
        self.pace = Pace(self.settings.bounds)
        self._line = Line(self.pace)
        self.hearing = Hearing(connection.url, time.monotonic)
        self._fetching = asyncio.Lock()
        self._last: tuple[Shown, Shown] | None = None
        self._proxy = _proxy(connection.proxy)
        headers = {
            "User-Agent": f"shoal/{__version__}",
            "Accept-Encoding": "gzip" if connection.compresses else "identity",
        }
        self._exchange = Exchange(connection.url, headers, connection.server_name)
        self._session = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(limit=0, keepalive_timeout=KEPT_SECONDS, socket_factory=probed_socket),
            headers=headers,
            cookie_jar=aiohttp.DummyCookieJar(),
            timeout=_NO_LIMIT,
        )

    async def close(self) -> None:
        self._exchange.close()
        await self._session.close()

    async def ask(self, request: Request) -> bytes:
        """The whole answer. Raises ApiError, Unreachable or OutcomeUnknown."""
        return await self._persist(request, self._whole)

    @asynccontextmanager
    async def stream(
        self, request: Request, *, quiet_seconds: float | None = None
    ) -> AsyncGenerator[aiohttp.StreamReader, None]:
        """An answer that comes bit by bit; it ends by an aiohttp error where nothing comes for `quiet_seconds`."""

        async def head(request: Request, shown: Shown) -> aiohttp.ClientResponse:
            return await self._head(request, shown, quiet_seconds)

        answer = await self._persist(request, head)
        try:
            yield answer.content
        finally:
            answer.close()  # not given back to the pool: there may be no end to read up to

    @asynccontextmanager
    async def websocket(self, request: Request, protocols: tuple[str, ...]) -> AsyncGenerator[Any, None]:
        """A conversation. Refusals are raised as aiohttp.WSServerHandshakeError, which knows only the code."""

        async def shake_hands(request: Request, shown: Shown) -> Any:
            try:
                return await self._session.ws_connect(
                    self._url(request), protocols=protocols, headers=shown.headers, max_msg_size=0, **self._way(shown)
                )
            except aiohttp.WSServerHandshakeError as refused:
                raise Failure(refused, code=refused.status) from None

        answer = await self._persist(request, shake_hands)
        try:
            yield answer
        finally:
            await answer.close()

    # Attempts

    async def _persist(self, request: Request, send: Send[T]) -> T:
        """Credentials are fetched outside of the deadline: a person may be logging in."""
        shown = await self._shown()
        try:
            return await self._in_time(request, send)
        except Failure as failed:
            if failed.code != 401 or not await self._renewed(shown):
                raise failed.error from None
        try:
            return await self._in_time(request, send)
        except Failure as failed:
            raise failed.error from None

    async def _in_time(self, request: Request, send: Send[T]) -> T:
        """Raises Failure where the attempts that make sense did not help."""
        tries = _Tries()
        loop = asyncio.get_running_loop()
        try:
            async with asyncio.timeout(None) as scope:
                timer = self._clock.call_later(self.settings.deadline_seconds, lambda: scope.reschedule(loop.time()))
                try:
                    return await self._tried(request, send, tries)
                finally:
                    timer.cancel()
        except TimeoutError:
            if tries.waits and tries.failures[-1].code:  # to be let in again: it is known what became of the last
                raise tries.failures[-1] from None
            raise errors.too_late(self.connection, str(request), self.settings.deadline_seconds) from None

    async def _tried(self, request: Request, send: Send[T], tries: _Tries) -> T:
        failures = tries.failures
        while True:
            try:
                return await self._once(request, send, await self._shown())
            except Failure as failed:
                failures.append(failed)
                seconds = pause_after(
                    failed, tries=len(failures), repeatable=_is_repeatable(request, failed),
                    patience=self.settings.patience, chance=self._chance,
                )  # fmt: skip
                if seconds is None:
                    raise _most_telling(request, failures) from None
            tries.waits = True
            await pause(self._clock, seconds)
            tries.waits = False

    async def _once(self, request: Request, send: Send[T], shown: Shown) -> T:
        if request.urgent:
            return await self._sent(request, send, shown)
        await self._line.enter()
        was_full, began = self._line.is_full, self._moment()
        try:
            answer = await self._sent(request, send, shown)
        except Failure as failure:
            if failure.is_overload:
                self.pace.was_too_much(sent_at=began, now=self._moment())
            raise
        finally:
            self._line.leave()
        if request.sort:
            self.pace.took(request.sort, self._moment() - began, was_full=was_full)
        return answer

    async def _sent(self, request: Request, send: Send[T], shown: Shown) -> T:
        check_fence()  # it may have waited in line, or for another try
        self._note(request.verb, request.resource)
        with self.hearing.of(request):
            try:
                return await send(request, self._completed(shown))
            except (aiohttp.ClientError, OSError, UnicodeError, NoWay) as problem:
                raise errors.broken(problem, self.connection, str(request)) from None

    async def _whole(self, request: Request, shown: Shown) -> bytes:
        answer = await self._answered(request, shown)
        if answer.status < 300:
            return answer.body
        raise errors.refused(answer, self.connection, str(request))

    async def _answered(self, request: Request, shown: Shown) -> Answer:
        if self._proxy:
            return await _read(await self._begun(request, shown, _NO_LIMIT))
        return await self._exchange.ask(request, shown)

    async def _head(self, request: Request, shown: Shown, quiet_seconds: float | None) -> aiohttp.ClientResponse:
        timeout = _NO_LIMIT if quiet_seconds is None else aiohttp.ClientTimeout(total=None, sock_read=quiet_seconds)
        answer = await self._begun(request, shown, timeout)
        if answer.status < 300:
            return answer
        raise errors.refused(await _read(answer), self.connection, str(request))

    async def _begun(self, request: Request, shown: Shown, timeout: aiohttp.ClientTimeout) -> aiohttp.ClientResponse:
        headers = {**shown.headers, "Accept": request.accept}
        if request.body is not None:
            headers["Content-Type"] = request.content_type
        return await self._session.request(
            request.method, self._url(request), data=request.body, headers=headers, timeout=timeout,
            allow_redirects=False, **self._way(shown),
        )  # fmt: skip

    def _url(self, request: Request) -> URL:
        return URL(f"{self.connection.url}{request.path}", encoded=True)

    def _way(self, shown: Shown) -> dict[str, Any]:
        way: dict[str, Any] = {"ssl": shown.trust or True}
        if self.connection.server_name:
            way["server_hostname"] = self.connection.server_name
        return way | self._proxy

    def _moment(self) -> float:
        return self._clock.now().timestamp()

    # Credentials

    async def _shown(self) -> Shown:
        credentials = self.connection.credentials
        shown = credentials.at_hand()
        if shown is None:
            async with self._fetching:
                shown = credentials.at_hand()  # somebody else may have fetched it while we waited
                if shown is None:
                    shown = await asyncio.to_thread(credentials.fetch)
        return shown

    def _completed(self, shown: Shown) -> Shown:
        """With what every request carries; put together once for as long as the credentials are the same."""
        if self._last is None or self._last[0] is not shown:
            self._last = (shown, self.connection.completed(shown))
        return self._last[1]

    async def _renewed(self, rejected: Shown) -> bool:
        """Whether there are other credentials than those the server just rejected."""
        credentials = self.connection.credentials
        async with self._fetching:
            other = credentials.at_hand()  # somebody may have been here before
            if other is None or other == rejected:
                other = await asyncio.to_thread(credentials.fetch)
        return other != rejected


def _is_repeatable(request: Request, failed: Failure) -> bool:
    """A deletion is, where it probably left over a connection that was over: a 404 then says as well that it worked."""
    return request.repeatable or (failed.was_unheard and request.method == "DELETE")


def _most_telling(request: Request, failures: list[Failure]) -> Failure:
    """The last; but a write that may have been heard is not denied by a later try for which there was no way."""
    last = failures[-1]
    heard = [failed for failed in failures if failed.may_have_worked and failed.wait_seconds is None]
    return last if last.may_have_worked or not heard or request.method == "GET" else heard[-1]


def _proxy(given: str) -> dict[str, Any]:
    """A user and password in the proxy's address are shown to the proxy and to nobody else."""
    if not given:
        return {}
    url = URL(given)
    if not url.user:
        return {"proxy": url}
    pair = base64.b64encode(f"{url.user}:{url.password or ''}".encode()).decode()
    return {"proxy": url.with_user(None), "proxy_headers": {"Proxy-Authorization": f"Basic {pair}"}}


async def _read(answer: aiohttp.ClientResponse) -> Answer:
    async with answer:
        body = await answer.read()
    return Answer(answer.status, {name.lower(): value for name, value in answer.headers.items()}, body)
