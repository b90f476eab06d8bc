"""What a server or the way to it may do wrong, played by a scripted server, and what the client makes of it."""

from __future__ import annotations

import asyncio
import json
import random
from collections.abc import AsyncIterator
from contextlib import aclosing, asynccontextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kit.cluster_objects import config_map
from kit.scripted_server import (
    ScriptedServer,
    answer,
    bookmark,
    end,
    event,
    half_close,
    hang_up,
    refusal,
    reset,
    scripted,
    silence,
    stream,
)
from shoal.cluster.client import LogOptions, OutcomeUnknown
from shoal.cluster.clock import Timer
from shoal.cluster.fencing import FencedCluster, LeadershipLost
from shoal.cluster.informer import Change, Informer
from shoal.cluster.kubeconfig import ConnectionConfig, RequestCredentials
from shoal.cluster.kubeconfig.token_file import TokenFile
from shoal.cluster.kubernetes import KubernetesCluster, TransportSettings, Unreachable, open_client
from shoal.cluster.kubernetes.field_decoders import WithoutManagedFields
from shoal.cluster.kubernetes.flow_control import ConcurrencyBounds
from shoal.cluster.kubernetes.list_watch import split_lines
from shoal.kube.errors import ApiError
from shoal.kube.kinds import CONFIG_MAP, LEASE

CM = CONFIG_MAP
FOUND = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}}
BUSY = refusal(429, "TooManyRequests", retry_after="7")


class Hurried:
    """A clock on which every pause is over at once and is noted; deadlines are left out, or are all there is."""

    def __init__(self, *, deadline: float = 60.0) -> None:
        self.deadline = deadline
        self.pauses: list[float] = []

    def now(self) -> datetime:
        return datetime.now(UTC)

    def call_later(self, seconds: float, call: Any) -> Timer:
        loop = asyncio.get_running_loop()
        if seconds == self.deadline:
            return loop.call_later(999, call)
        self.pauses.append(seconds)
        return loop.call_soon(call)


@asynccontextmanager
async def client(server: ScriptedServer, clock: Any = None, **more: Any) -> AsyncIterator[KubernetesCluster]:
    connection = ConnectionConfig(server.url, **more)
    async with open_client(connection, clock=clock or Hurried(), rng=random.Random(1)) as cluster:
        yield cluster


def asked(server: ScriptedServer) -> list[str]:
    return [str(request) for request in server.received]


GET = "GET /api/v1/namespaces/default/configmaps/a"
DELETE = "DELETE /api/v1/namespaces/default/configmaps/a"
POST = "POST /api/v1/namespaces/default/configmaps"


async def test_a_storm_of_429_is_waited_out() -> None:
    clock = Hurried()
    async with scripted(BUSY, BUSY, BUSY, answer(201, FOUND)) as server, client(server, clock) as cluster:
        before = cluster.transport.limiter.limit
        assert await cluster.create(CM, config_map("a"), "default") == FOUND
        assert cluster.transport.limiter.limit == before / 8
    assert [7 < pause < 8 for pause in clock.pauses] == [True] * 3  # as long as asked, and a little more
    assert len({request.body for request in server.received}) == 1


async def test_a_storm_that_does_not_end_is_an_answer() -> None:
    async with scripted(*[BUSY] * 20) as server, client(server) as cluster:
        with pytest.raises(ApiError) as caught:
            await cluster.create(CM, config_map("a"), "default")
        assert (caught.value.code, len(server.received)) == (429, 8)


@pytest.mark.parametrize("step", [reset, hang_up, refusal(503, "ServiceUnavailable"), answer(502, b"bad gateway")])
async def test_a_read_is_retried(step: Any) -> None:
    async with scripted(step, step, answer(200, FOUND)) as server, client(server) as cluster:
        assert await cluster.get(CM, "a", "default") == FOUND
        assert set(asked(server)) == {GET}


async def test_a_write_whose_answer_got_lost_is_not_sent_again() -> None:
    async with scripted(reset, answer(201, FOUND)) as server, client(server) as cluster:
        with pytest.raises(OutcomeUnknown, match="POST /api/v1/namespaces/default/configmaps was not answered"):
            await cluster.create(CM, config_map("a"), "default")
        assert asked(server) == [POST]


async def test_a_deletion_over_a_connection_that_was_over_is_sent_again() -> None:
    """Which may be too late by then: it asks for leave once more, and is noted once more."""
    noted: list[str] = []
    leads = iter([True] * 5 + [False])
    steps = (answer(200, FOUND), hang_up, answer(200, FOUND))
    async with scripted(*steps, *steps) as server:
        connection = ConnectionConfig(server.url)
        async with open_client(connection, clock=Hurried(), note=lambda verb, _: noted.append(verb)) as cluster:
            await cluster.get(CM, "a", "default")
            assert await FencedCluster(cluster, lambda: next(leads)).delete(CM, "a", "default") == FOUND
            assert (asked(server)[1:], noted) == (2 * [DELETE], ["get", "delete", "delete"])
        async with open_client(connection, clock=Hurried()) as cluster:
            await cluster.get(CM, "a", "default")
            with pytest.raises(LeadershipLost):
                await FencedCluster(cluster, lambda: next(leads)).delete(CM, "a", "default")
            assert asked(server)[4:] == [DELETE]


async def test_a_deletion_that_may_have_arrived_has_an_unknown_outcome() -> None:
    server = await asyncio.start_server(_once_and_never_again, "127.0.0.1", 0)
    url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    async with open_client(ConnectionConfig(url), clock=Hurried(), rng=random.Random(1)) as cluster:
        await cluster.get(CM, "a", "default")
        server.close()
        with pytest.raises(OutcomeUnknown, match=r"DELETE .* was not answered by .*: the server closed the connection"):
            await cluster.delete(CM, "a", "default")


async def _once_and_never_again(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    await reader.readuntil(b"\r\n\r\n")
    writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}")
    await reader.readuntil(b"\r\n\r\n")
    writer.close()


@pytest.mark.parametrize("group", ["gr\u00f6\u00dfe", "x HTTP/1.1\r\nHost: h\r\n\r\nDELETE /api/v1/namespaces/prod"])
async def test_a_manifest_cannot_ask_for_more_than_its_kind(group: str) -> None:
    async with scripted(answer(404, b"404 page not found")) as server, client(server) as cluster:
        assert await cluster.find_kind(f"{group}/v1", "Job") is None
        (request,) = server.received
        assert request.path.isascii()


async def test_a_write_in_flight_at_the_deadline_has_an_unknown_outcome() -> None:
    """Though an earlier try of it was turned away for certain."""
    clock = Struck()
    async with scripted(BUSY, silence) as server, client(server, clock) as cluster:
        creating = asyncio.create_task(cluster.create(CM, config_map("a"), "default"))
        for _ in range(2):
            await server.arrived.get()
        clock.strike()
        with pytest.raises(OutcomeUnknown, match=r"POST .* was not answered by .* within 60 s"):
            await creating


class Struck(Hurried):
    """One whose deadline comes when the test says so."""

    def call_later(self, seconds: float, call: Any) -> Timer:
        if seconds == self.deadline:
            self.strike = call
        return super().call_later(seconds, call)


async def test_an_apply_that_may_have_arrived_has_an_unknown_outcome() -> None:
    async def hear_and_go(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        server.close()
        writer.close()

    server = await asyncio.start_server(hear_and_go, "127.0.0.1", 0)
    url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    async with open_client(ConnectionConfig(url), clock=Hurried(), rng=random.Random(1)) as cluster:
        with pytest.raises(OutcomeUnknown, match=r"PATCH .* was not answered by .*: the server closed the connection"):
            await cluster.apply(CM, config_map("a"), "default")


async def test_a_token_of_two_lines_is_an_error() -> None:
    async with scripted() as server, client(server, headers={"Authorization": "Bearer a\nb"}) as cluster:
        with pytest.raises(
            Unreachable, match="cannot be asked: the header 'Authorization' would be more than one line"
        ):
            await cluster.get(CM, "a", "default")
        assert server.received == []


async def test_a_write_to_an_ailing_server_is_not_sent_again() -> None:
    async with scripted(refusal(503, "ServiceUnavailable"), answer(201)) as server, client(server) as cluster:
        with pytest.raises(ApiError) as caught:
            await cluster.create(CM, config_map("a"), "default")
        assert (caught.value.code, asked(server)) == (503, [POST])


async def test_an_eviction_that_a_budget_forbids_is_an_answer() -> None:
    why = {"causes": [{"reason": "DisruptionBudget", "message": "needs 2"}]}
    steps = (refusal(429, "TooManyRequests", "not now", details=why, retry_after="10"), answer(201))
    async with scripted(*steps) as server, client(server) as cluster:
        before = cluster.transport.limiter.limit
        with pytest.raises(ApiError, match="not now"):
            await cluster.evict("p", "default")
        assert (len(server.received), cluster.transport.limiter.limit) == (1, before)


async def test_a_head_that_does_not_come_is_not_waited_for() -> None:
    settings = TransportSettings(deadline_seconds=0.05)
    async with (
        scripted(silence, silence) as server,
        open_client(ConnectionConfig(server.url), settings=settings) as cluster,
    ):
        with pytest.raises(OutcomeUnknown, match=r"GET .* was not answered by http://.* within 0\.05 s"):
            await cluster.get(CM, "a", "default")
        with pytest.raises(OutcomeUnknown, match=r"GET .* was not answered by http://.* within 0\.05 s"):
            await anext(cluster.watch(CM, "default"))


async def test_a_token_that_ran_out_is_read_again(tmp_path: Path) -> None:
    token = tmp_path / "token"
    token.write_text("old")

    async def renew(request: Any, writer: Any) -> None:
        token.write_text("renewed")
        await refusal(401, "Unauthorized")(request, writer)

    steps = (renew, answer(201, FOUND))
    async with scripted(*steps) as server, client(server, credentials=TokenFile(token)) as cluster:
        assert await cluster.create(CM, config_map("a"), "default") == FOUND
    assert [request.headers["authorization"] for request in server.received] == ["Bearer old", "Bearer renewed"]


async def test_a_wrong_token_is_reported_once(tmp_path: Path) -> None:
    (tmp_path / "token").write_text("wrong")
    steps = (refusal(401, "Unauthorized"), answer(200, FOUND))
    credentials = TokenFile(tmp_path / "token")
    async with (
        scripted(*steps) as server,
        client(server, credentials=credentials, user_description="user me") as cluster,
    ):
        with pytest.raises(ApiError, match="does not let in user me: its credentials are wrong") as caught:
            await cluster.get(CM, "a", "default")
        assert (caught.value.code, caught.value.reason, len(server.received)) == (401, "Unauthorized", 1)
    assert "wrong" not in server.url


class Counted:
    """Credentials that are fetched in a thread, and are another token each time."""

    def __init__(self) -> None:
        self.fetched = 0
        self._shown: RequestCredentials | None = None

    def cached(self) -> RequestCredentials | None:
        return self._shown

    def fetch(self) -> RequestCredentials:
        self.fetched += 1
        self._shown = RequestCredentials({"Authorization": f"Bearer {self.fetched}"})
        return self._shown


async def test_many_that_are_turned_away_fetch_credentials_once() -> None:
    async def let_in_the_second(request: Any, writer: Any) -> None:
        is_second = request.headers["authorization"] == "Bearer 2"
        await (answer(200, FOUND) if is_second else refusal(401, "Unauthorized"))(request, writer)

    credentials = Counted()
    async with scripted(*[let_in_the_second] * 20) as server, client(server, credentials=credentials) as cluster:
        found = await asyncio.gather(*(cluster.get(CM, "a", "default") for _ in range(10)))
    assert (found, credentials.fetched) == ([FOUND] * 10, 2)


async def test_a_lease_does_not_wait_in_line() -> None:
    lease = {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": {"name": "me"}}
    settings = TransportSettings(bounds=ConcurrencyBounds(initial=1, most=1))
    async with (
        scripted(silence, answer(200, lease)) as server,
        open_client(ConnectionConfig(server.url), settings=settings, clock=Hurried()) as cluster,
    ):
        stuck = [asyncio.create_task(cluster.get(CM, "a", "default")) for _ in range(3)]
        assert str(await server.arrived.get()) == GET
        assert await cluster.patch(LEASE, "me", "default", patch={"spec": {}}) == lease
        assert len(server.received) == 2  # one that is stuck, two that wait behind it, and the lease
        for task in stuck:
            task.cancel()
        await asyncio.gather(*stuck, return_exceptions=True)


# Watches


async def first_events(cluster: KubernetesCluster, **more: Any) -> list[tuple[str, str]]:
    """Everything until the stream ends."""
    async with aclosing(cluster.watch(CM, "default", **more)) as events:
        return [(each.type.value, each.resource_version) async for each in events]


ONE, TWO = event("ADDED", "a", 11), event("MODIFIED", "a", 12)


@pytest.mark.parametrize(
    ("pieces", "then"),
    [
        ((ONE, TWO), end),
        ((ONE, TWO), hang_up),
        ((ONE, TWO), reset),
        ((ONE, TWO), half_close),
        ((ONE + TWO + b'{"type":"DEL',), hang_up),
        ((ONE[:7], ONE[7:20], ONE[20:] + TWO[:-1], TWO[-1:]), end),
        ((b"\n", ONE + b"\n" + TWO), end),
    ],
    ids=["ended", "hung up", "reset", "half closed", "cut within a line", "in crumbs", "with empty lines"],
)
async def test_a_stream_ends_quietly_however_it_ends(pieces: tuple[bytes, ...], then: Any) -> None:
    async with scripted(stream(*pieces, then=then)) as server, client(server) as cluster:
        assert await first_events(cluster, resource_version="10") == [("ADDED", "11"), ("MODIFIED", "12")]


WORDS = st.lists(st.binary(max_size=9).map(lambda word: word.replace(b"\n", b"")))


@given(words=WORDS, cuts=st.lists(st.integers(1, 7)))
def test_lines_are_the_same_however_they_are_cut(words: list[bytes], cuts: list[int]) -> None:
    async def chunks() -> AsyncIterator[bytes]:
        rest = b"".join(word + b"\n" for word in words)
        for cut in (*cuts, len(rest)):
            yield rest[:cut]
            rest = rest[cut:]

    async def read() -> list[bytes]:
        return [line async for several in split_lines(chunks()) for line in several]

    assert asyncio.run(read()) == [word for word in words if word]


async def test_a_line_may_be_longer_than_any_buffer() -> None:
    long = event("ADDED", "a", 11, annotations={"x": "y" * 3_000_000})
    pieces = [long[at : at + 70_000] for at in range(0, len(long), 70_000)]
    async with scripted(stream(*pieces, then=end)) as server, client(server) as cluster:
        assert await first_events(cluster) == [("ADDED", "11")]


async def test_a_watch_that_falls_silent_ends() -> None:
    settings = TransportSettings(idle_seconds=0.05)
    steps = stream(ONE, then=silence)
    async with scripted(steps) as server, open_client(ConnectionConfig(server.url), settings=settings) as cluster:
        assert await first_events(cluster) == [("ADDED", "11")]


async def test_an_error_in_a_stream_is_raised() -> None:
    gone = b'{"type":"ERROR","object":{"kind":"Status","code":410,"reason":"Expired","message":"too old"}}\n'
    async with scripted(stream(ONE, gone, then=end)) as server, client(server) as cluster:
        with pytest.raises(ApiError, match="too old") as caught:
            await first_events(cluster)
    assert caught.value.code == 410


def page(*names: str, version: int, token: str = "") -> Any:
    items = [{"metadata": {"name": name, "resourceVersion": "5"}} for name in names]
    meta = {"resourceVersion": str(version), **({"continue": token} if token else {})}
    return answer(200, {"kind": "ConfigMapList", "metadata": meta, "items": items})


NO_STREAMING = refusal(422, "Invalid", "sendInitialEvents: Forbidden: sendInitialEvents is forbidden")


async def test_where_lists_do_not_stream_they_come_in_pages() -> None:
    steps = (
        NO_STREAMING,
        page("a", version=9, token="t"),
        page("b", version=9),
        stream(TWO, then=end),
        page(version=9),
    )
    async with scripted(*steps, stream(then=end)) as server, client(server) as cluster:
        received = await first_events(cluster, initial_events=True)
        assert received == [("ADDED", "5"), ("ADDED", "5"), ("BOOKMARK", "9"), ("MODIFIED", "12")]
        assert "resourceVersion=9" in server.received[3].path
        await first_events(cluster, initial_events=True)  # the server is not asked for the impossible again
        assert "sendInitialEvents" not in server.received[4].path


async def test_pages_of_an_expired_revision_are_discarded() -> None:
    steps = (
        NO_STREAMING, page("gone", version=9, token="t"), refusal(410, "Expired"), page("a", "b", version=20),
        stream(then=end),
    )  # fmt: skip
    async with scripted(*steps) as server, client(server) as cluster:
        assert await first_events(cluster, initial_events=True) == [("ADDED", "5"), ("ADDED", "5"), ("BOOKMARK", "20")]
        assert "limit" not in server.received[3].path


async def test_a_copy_goes_on_where_it_was_and_misses_no_deletion() -> None:
    """Cut, resumed at the last bookmark, rejected with 410, listed again: what is gone is reported as deleted."""
    gone = b'{"type":"ERROR","object":{"kind":"Status","code":410,"reason":"Expired","message":"too old"}}\n'
    received: asyncio.Queue[Change] = asyncio.Queue()
    steps = (
        stream(event("ADDED", "a", 5), event("ADDED", "b", 6), bookmark(9, ends_list=True), bookmark(15), then=reset),
        stream(event("MODIFIED", "a", 16), then=hang_up),
        stream(gone, then=end),
        stream(event("ADDED", "a", 30), bookmark(31, ends_list=True), then=silence),
    )
    async with scripted(*steps) as server, client(server) as cluster:
        reflector = Informer(cluster, CM, "default", on_change=received.put_nowait, clock=Hurried())
        running = asyncio.create_task(reflector.run())
        changes = [await received.get() for _ in range(5)]
        running.cancel()
    assert [(change.key.name, bool(change.old), bool(change.new)) for change in changes] == [
        ("a", False, True), ("b", False, True), ("a", True, True), ("b", True, False), ("a", True, True),
    ]  # fmt: skip
    versions = [request.path.partition("resourceVersion=")[2].partition("&")[0] for request in server.received[1:3]]
    assert versions == ["15", "16"]


@pytest.mark.parametrize("ask", ["list", "watch"])
async def test_an_html_page_is_no_list_and_no_watch(ask: str) -> None:
    page = answer(200, b"<html>\nLog in first\n</html>\n", content_type="text/html")
    async with scripted(page) as server, client(server) as cluster:
        with pytest.raises(Unreachable, match="configmaps is no JSON object"):
            await (cluster.list(CM, "default") if ask == "list" else first_events(cluster))


async def test_an_odd_object_is_read_whole_instead_of_not_at_all() -> None:
    odd = {"metadata": {"name": "a", "resourceVersion": "5", "labels": None}}
    listed = answer(200, {"metadata": {"resourceVersion": "9"}, "items": [odd]})
    line = json.dumps({"type": "ADDED", "object": odd}).encode() + b"\n"
    async with (
        scripted(listed, stream(line, then=end)) as server,
        open_client(ConnectionConfig(server.url), shapes={CM: WithoutManagedFields}) as cluster,
    ):
        page = await cluster.list(CM, "default")
        assert page.items == [{"apiVersion": "v1", "kind": "ConfigMap", **odd}]
        assert [event.object async for event in cluster.watch(CM, "default")] == [odd]


async def test_a_log_that_breaks_off_is_an_error() -> None:
    async with scripted(stream(b"one\n", then=reset)) as server, client(server) as cluster:
        log_stream = cluster.logs("p", "default", LogOptions(follow=True))
        assert await anext(log_stream) == b"one\n"
        with pytest.raises(OutcomeUnknown, match="the log of pod default/p broke off"):
            await anext(log_stream)
