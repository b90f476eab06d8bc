"""Tokens, passwords and keys are sent to the server they are meant for, and appear nowhere else.

Every way a request can fail is tried with everything logged that can be, and what is logged, raised and traced is
searched for them.
"""

from __future__ import annotations

import asyncio
import logging
import random
import traceback
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from kit.cluster_objects import config_map
from kit.scripted_server import ScriptedServer, answer, hang_up, refusal, reset, scripted, stream
from shoal.cluster.client import ExecRequest, LogOptions, Streams
from shoal.cluster.clock import SystemClock
from shoal.cluster.informer import Informer
from shoal.cluster.kubeconfig import ConnectionConfig, RequestCredentials
from shoal.cluster.kubeconfig.token_file import bearer_header
from shoal.cluster.kubernetes import KubernetesCluster, TransportSettings, open_client
from shoal.cluster.kubernetes.api_request import RetryLimits
from shoal.kube.errors import ApiError
from shoal.kube.kinds import CONFIG_MAP

TOKEN, RENEWED, PASSWORD = "hush-token", "hush-renewed", "hush-password"
ONCE = TransportSettings(retry_limits=RetryLimits(no_answer=1, server_error=1, retry_after=1))


@pytest.fixture
def log() -> Iterator[list[str]]:
    """Everything any library logs, at any level, with its traces."""
    lines: list[str] = []
    handler = logging.Handler(logging.DEBUG)
    form = logging.Formatter("%(name)s %(message)s %(fields)s", defaults={"fields": ""})
    handler.emit = lambda record: lines.append(form.format(record))  # type: ignore[method-assign]
    root = logging.getLogger()
    before = root.level
    root.addHandler(handler)
    root.setLevel(logging.DEBUG)
    yield lines
    root.setLevel(before)
    root.removeHandler(handler)


class Renewing:
    """Credentials that are another token when the first was not accepted."""

    def __init__(self) -> None:
        self._shown = RequestCredentials(bearer_header(TOKEN))

    def cached(self) -> RequestCredentials:
        return self._shown

    def fetch(self) -> RequestCredentials:
        self._shown = RequestCredentials(bearer_header(RENEWED))
        return self._shown


@asynccontextmanager
async def client(server: ScriptedServer, **more: Any) -> AsyncIterator[KubernetesCluster]:
    asyncio.get_running_loop().set_debug(True)
    connection = ConnectionConfig(server.url, credentials=Renewing(), user_description="user me of a file", **more)
    async with open_client(connection, settings=ONCE, rng=random.Random(1)) as cluster:
        yield cluster


class Hurried(SystemClock):
    """Every pause is over at once."""

    def call_later(self, seconds: float, call: Any) -> Any:
        return super().call_later(0, call)


async def nothing(_: bytes) -> None: ...


async def asked_everything(cluster: KubernetesCluster) -> list[str]:
    """What each sort of request raises: its words, its representation and its whole trace."""
    command = ExecRequest("main", ("true",))
    requests = (
        lambda: cluster.get(CONFIG_MAP, "a", "default"),
        lambda: cluster.create(CONFIG_MAP, config_map("a"), "default"),
        lambda: anext(cluster.watch(CONFIG_MAP, "default", initial_events=True)),
        lambda: anext(cluster.logs("p", "default", LogOptions())),
        lambda: cluster.execute("p", "default", command, Streams(stdout=nothing, stderr=nothing)),
        cluster.require_supported,
    )
    raised: list[str] = []
    for request in requests:
        try:
            await request()  # type: ignore[operator]
        except Exception as problem:
            raised += [str(problem), repr(problem), "".join(traceback.format_exception(problem))]
    return raised


FAILURES = {
    "cut": reset,
    "hung up": hang_up,
    "not let in": refusal(401, "Unauthorized"),
    "not allowed": refusal(403, "Forbidden"),
    "not found": refusal(404, "NotFound"),
    "refused": refusal(422, "Invalid", "it has mistakes"),
    "unwell": refusal(500, "InternalError"),
    "busy": refusal(429, "TooManyRequests", retry_after="0"),
    "a page": answer(200, b"<html>", content_type="text/html"),
    "no page": answer(404, b"<html>", content_type="text/html"),
    "elsewhere": answer(302, b"", location="http://127.0.0.1:1/"),
    "a stream that breaks": stream(b'{"type":', then=reset),
    "no HTTP": stream(b"", then=reset),
}


@pytest.mark.parametrize("step", FAILURES.values(), ids=list(FAILURES))
async def test_a_failed_request_shows_no_credentials(step: Any, log: list[str]) -> None:
    async with scripted(*[step] * 100) as server, client(server) as cluster:
        raised = await asked_everything(cluster)
        shown = repr(cluster.transport.connection) + repr(cluster.transport.connection.request_credentials())
    assert {request.headers["authorization"] for request in server.received} <= {f"Bearer {TOKEN}", f"Bearer {RENEWED}"}
    assert server.received != []
    assert raised != []
    assert [line for line in (*raised, *log, shown) if "hush" in line] == []


@pytest.mark.parametrize("step", [reset, answer(407, b"no"), answer(502, b"no")], ids=["cut", "refused", "lost"])
async def test_a_failed_proxy_shows_no_password(step: Any, log: list[str]) -> None:
    async with scripted(*[step] * 100) as proxy:
        address = proxy.url.replace("http://", f"http://me:{PASSWORD}@")
        through = ConnectionConfig("http://cluster.invalid", proxy=address, headers=bearer_header(TOKEN))
        async with open_client(through, settings=ONCE, rng=random.Random(1)) as cluster:
            raised = await asked_everything(cluster)
    assert raised != []
    assert [line for line in (*raised, *log) if "hush" in line] == []


async def test_a_copy_that_cannot_be_kept_logs_no_credentials(log: list[str]) -> None:
    steps = [refusal(403, "Forbidden"), refusal(500, "InternalError"), reset, refusal(401, "Unauthorized")]
    async with scripted(*steps, *[refusal(404, "NotFound")] * 9) as server, client(server) as cluster:
        copy = Informer(cluster, CONFIG_MAP, "default", fatal_codes=(404,), clock=Hurried())
        with pytest.raises(ApiError):
            await copy.run()
    assert any("watch refused" in line for line in log)
    assert [line for line in log if "hush" in line] == []
