"""One request, for as long as it makes sense: credentials sent, its turn waited for, failures retried.

Requests with a whole response share one pool of kept connections; streams and websockets have their own. Every
request has a deadline over all its attempts; of a stream only the head has one. A 401 has the credentials fetched
again, once, and other requests that were rejected at the same time use the result. Clock and randomness are passed in.
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
from shoal.cluster.clock import Clock, SystemClock, sleep
from shoal.cluster.fencing import check_fence
from shoal.cluster.kubeconfig import ConnectionConfig, RequestCredentials
from shoal.cluster.kubernetes import failures
from shoal.cluster.kubernetes.api_request import ApiRequest, RequestFailure, RetryLimits, retry_delay
from shoal.cluster.kubernetes.connection_pool import IDLE_SECONDS, ConnectFailed, ConnectionPool
from shoal.cluster.kubernetes.flow_control import ConcurrencyBounds, ConcurrencyLimit, RequestQueue
from shoal.cluster.kubernetes.http1 import Response, keepalive_socket
from shoal.cluster.kubernetes.server_health import ServerHealth

T = TypeVar("T")
_NO_LIMIT = aiohttp.ClientTimeout(total=None)


@dataclass(frozen=True, slots=True)
class TransportSettings:
    deadline_seconds: float = 60.0
    idle_seconds: float = 300.0  # a watch without any event, even a bookmark, for so long is opened again
    retry_limits: RetryLimits = field(default_factory=RetryLimits)
    bounds: ConcurrencyBounds = field(default_factory=ConcurrencyBounds)


Send = Callable[[ApiRequest, RequestCredentials], Awaitable[T]]
OnRequest = Callable[[str, str], None]  # of each request that leaves, every try of it: its verb and its resource


@dataclass(slots=True)
class _Tries:
    """Of one request."""

    failures: list[RequestFailure] = field(default_factory=list)
    is_waiting: bool = False  # for the next try; else one is on its way


class Transport:
    """The way to one server. Close it at the end."""

    def __init__(
        self,
        connection: ConnectionConfig,
        settings: TransportSettings | None = None,
        *,
        clock: Clock | None = None,
        rng: random.Random | None = None,
        note: OnRequest = lambda _, __: None,
    ) -> None:
        self.connection = connection
        self.settings = settings or TransportSettings()
        self._clock = clock or SystemClock()
        self._rng = rng or random.Random()  # noqa: S311 - spreads retries, guards nothing
        self._on_request = note
        self.limiter = ConcurrencyLimit(self.settings.bounds)
        self._queue = RequestQueue(self.limiter)
        self.health = ServerHealth(connection.url, time.monotonic)
        self._fetch_lock = asyncio.Lock()
        self._merged: tuple[RequestCredentials, RequestCredentials] | None = None
        self._proxy = _proxy(connection.proxy)
        headers = {
            "User-Agent": f"shoal/{__version__}",
            "Accept-Encoding": "gzip" if connection.compression else "identity",
        }
        self._pool = ConnectionPool(connection.url, headers, connection.server_name)
        self._session = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(limit=0, keepalive_timeout=IDLE_SECONDS, socket_factory=keepalive_socket),
            headers=headers,
            cookie_jar=aiohttp.DummyCookieJar(),
            timeout=_NO_LIMIT,
        )

    async def close(self) -> None:
        self._pool.close()
        await self._session.close()

    async def send(self, request: ApiRequest) -> bytes:
        """The whole response. Raises ApiError, Unreachable or OutcomeUnknown."""
        return await self._retry_unauthorized(request, self._buffered)

    @asynccontextmanager
    async def stream(
        self, request: ApiRequest, *, idle_seconds: float | None = None
    ) -> AsyncGenerator[aiohttp.StreamReader, None]:
        """A response read in chunks; it ends by an aiohttp error where nothing arrives for `idle_seconds`."""

        async def head(request: ApiRequest, creds: RequestCredentials) -> aiohttp.ClientResponse:
            timeout = _NO_LIMIT if idle_seconds is None else aiohttp.ClientTimeout(total=None, sock_read=idle_seconds)
            response = await self._send_streamed(request, creds, timeout)
            if response.status < 300:
                return response
            raise failures.response_failure(await _read(response), self.connection, str(request))

        response = await self._retry_unauthorized(request, head)
        try:
            yield response.content
        finally:
            response.close()  # not returned to the pool: there may be no end to read up to

    @asynccontextmanager
    async def websocket(self, request: ApiRequest, protocols: tuple[str, ...]) -> AsyncGenerator[Any, None]:
        """A websocket. Rejections are raised as aiohttp.WSServerHandshakeError, which contains only the code."""

        async def handshake(request: ApiRequest, creds: RequestCredentials) -> Any:
            try:
                return await self._session.ws_connect(
                    self._url(request),
                    protocols=protocols,
                    headers=creds.headers,
                    max_msg_size=0,
                    **self._connection_options(creds),
                )
            except aiohttp.WSServerHandshakeError as refused:
                raise RequestFailure(refused, code=refused.status) from None

        response = await self._retry_unauthorized(request, handshake)
        try:
            yield response
        finally:
            await response.close()

    # Attempts

    async def _retry_unauthorized(self, request: ApiRequest, send: Send[T]) -> T:
        """Credentials are fetched outside of the deadline: a person may be logging in."""
        creds = await self._credentials()
        try:
            return await self._with_deadline(request, send)
        except RequestFailure as failure:
            if failure.code != 401 or not await self._refresh_credentials(creds):
                raise failure.error from None
        try:
            return await self._with_deadline(request, send)
        except RequestFailure as failure:
            raise failure.error from None

    async def _with_deadline(self, request: ApiRequest, send: Send[T]) -> T:
        """Raises RequestFailure where the attempts that make sense did not help."""
        tries = _Tries()
        loop = asyncio.get_running_loop()
        try:
            async with asyncio.timeout(None) as scope:
                timer = self._clock.call_later(self.settings.deadline_seconds, lambda: scope.reschedule(loop.time()))
                try:
                    return await self._with_retries(request, send, tries)
                finally:
                    timer.cancel()
        except TimeoutError:
            if (
                tries.is_waiting and tries.failures[-1].code
            ):  # waits for the next attempt: the result of the last one is known
                raise tries.failures[-1] from None
            raise failures.deadline_exceeded(self.connection, str(request), self.settings.deadline_seconds) from None

    async def _with_retries(self, request: ApiRequest, send: Send[T], tries: _Tries) -> T:
        failures = tries.failures
        while True:
            try:
                return await self._queued(request, send, await self._credentials())
            except RequestFailure as failure:
                failures.append(failure)
                # A deletion that was probably sent over a closed connection may be repeated: a 404 then also means
                # that it worked.
                repeatable = request.repeatable or (failure.was_stale and request.method == "DELETE")
                seconds = retry_delay(
                    failure, tries=len(failures), repeatable=repeatable,
                    retry_limits=self.settings.retry_limits, rng=self._rng,
                )  # fmt: skip
                if seconds is None:
                    # A write that may have been received must not be reported as unsent because of a later attempt
                    # that found no connection.
                    delivered = [each for each in failures if each.may_have_succeeded and each.wait_seconds is None]
                    if delivered and not failure.may_have_succeeded and request.method != "GET":
                        raise delivered[-1] from None
                    raise
            tries.is_waiting = True
            await sleep(self._clock, seconds)
            tries.is_waiting = False

    async def _queued(self, request: ApiRequest, send: Send[T], creds: RequestCredentials) -> T:
        if request.urgent:
            return await self._send_once(request, send, creds)
        await self._queue.acquire()
        was_full, started = self._queue.is_full, self._now()
        try:
            response = await self._send_once(request, send, creds)
        except RequestFailure as failure:
            if failure.is_overload:
                self.limiter.on_overload(sent_at=started, now=self._now())
            raise
        finally:
            self._queue.release()
        if request.latency_class:
            self.limiter.observe(request.latency_class, self._now() - started, was_full=was_full)
        return response

    async def _send_once(self, request: ApiRequest, send: Send[T], creds: RequestCredentials) -> T:
        check_fence()  # it may have waited in line, or for another try
        self._on_request(request.verb, request.resource)
        # The headers are put together once for as long as the credentials are the same.
        if self._merged is None or self._merged[0] is not creds:
            self._merged = (creds, self.connection.with_connection_defaults(creds))
        with self.health.track(request):
            try:
                return await send(request, self._merged[1])
            except (aiohttp.ClientError, OSError, UnicodeError, ConnectFailed) as problem:
                raise failures.transport_failure(problem, self.connection, str(request)) from None

    async def _buffered(self, request: ApiRequest, creds: RequestCredentials) -> bytes:
        if self._proxy:
            response = await _read(await self._send_streamed(request, creds, _NO_LIMIT))
        else:
            response = await self._pool.send(request, creds)
        if response.status < 300:
            return response.body
        raise failures.response_failure(response, self.connection, str(request))

    async def _send_streamed(
        self, request: ApiRequest, creds: RequestCredentials, timeout: aiohttp.ClientTimeout
    ) -> aiohttp.ClientResponse:
        headers = {**creds.headers, "Accept": request.accept}
        if request.body is not None:
            headers["Content-Type"] = request.content_type
        return await self._session.request(
            request.method, self._url(request), data=request.body, headers=headers, timeout=timeout,
            allow_redirects=False, **self._connection_options(creds),
        )  # fmt: skip

    def _url(self, request: ApiRequest) -> URL:
        return URL(f"{self.connection.url}{request.path}", encoded=True)

    def _connection_options(self, creds: RequestCredentials) -> dict[str, Any]:
        options: dict[str, Any] = {"ssl": creds.ssl_context or True}
        if self.connection.server_name:
            options["server_hostname"] = self.connection.server_name
        return options | self._proxy

    def _now(self) -> float:
        return self._clock.now().timestamp()

    # Credentials

    async def _credentials(self) -> RequestCredentials:
        credentials = self.connection.credentials
        creds = credentials.cached()
        if creds is None:
            async with self._fetch_lock:
                creds = credentials.cached()  # another task may have fetched it while this one waited
                if creds is None:
                    creds = await asyncio.to_thread(credentials.fetch)
        return creds

    async def _refresh_credentials(self, rejected: RequestCredentials) -> bool:
        """Whether there are other credentials than those the server just rejected."""
        credentials = self.connection.credentials
        async with self._fetch_lock:
            other = credentials.cached()  # another task may have done it
            if other is None or other == rejected:
                other = await asyncio.to_thread(credentials.fetch)
        return other != rejected


def _proxy(address: str) -> dict[str, Any]:
    """A user and password in the proxy's address are sent to the proxy alone."""
    if not address:
        return {}
    url = URL(address)
    if not url.user:
        return {"proxy": url}
    pair = base64.b64encode(f"{url.user}:{url.password or ''}".encode()).decode()
    return {"proxy": url.with_user(None), "proxy_headers": {"Proxy-Authorization": f"Basic {pair}"}}


async def _read(response: aiohttp.ClientResponse) -> Response:
    async with response:
        body = await response.read()
    return Response(response.status, {name.lower(): value for name, value in response.headers.items()}, body)
