"""What a program is waiting for when its server is silent, in a sentence; nothing while it answers."""

from __future__ import annotations

import asyncio

import pytest

from shoal.cluster.client import OutcomeUnknown
from shoal.cluster.kubernetes import Unreachable
from shoal.cluster.kubernetes.api_request import RequestFailure
from shoal.cluster.kubernetes.server_health import ServerHealth
from shoal.kube.errors import ApiError

URL = "https://cluster:6443"
NO_WAY = Unreachable(f"{URL} cannot be reached: Connection refused. Is the cluster up, and is this its address?")
LOST = OutcomeUnknown(f"POST /api/v1/pods was not answered by {URL}: it hung up")


class Moments:
    now = 0.0

    def __call__(self) -> float:
        return self.now


def hearing() -> tuple[ServerHealth, Moments]:
    moments = Moments()
    return ServerHealth(URL, moments), moments


def ask(
    server: ServerHealth, failure: BaseException | type[BaseException] | None = None, what: str = "GET /api/v1/pods"
) -> None:
    try:
        with server.track(what):
            if failure is not None:
                raise failure
    except (RequestFailure, asyncio.CancelledError):
        pass


CASES = {
    "no way there": (RequestFailure(NO_WAY, may_have_succeeded=False), str(NO_WAY)),
    "a way that time does not heal": (RequestFailure(NO_WAY, code=400), str(NO_WAY)),
    "an answer that got lost": (RequestFailure(LOST), str(LOST)),
    "a server that is unwell": (RequestFailure(ApiError(500, "", "etcdserver: request timed out"), code=500),
                                "etcdserver: request timed out"),
    "a refusal": (RequestFailure(ApiError(403, "Forbidden", "no"), code=403), ""),
    "too much at once": (RequestFailure(ApiError(429, "TooManyRequests", "later"), code=429), ""),
}  # fmt: skip


@pytest.mark.parametrize(("failure", "sentence"), CASES.values(), ids=CASES)
def test_an_outage_is_reported_and_an_error_status_is_no_outage(failure: RequestFailure, sentence: str) -> None:
    server, _ = hearing()
    ask(server, failure)
    assert server.outage() == sentence


def test_the_next_response_ends_the_outage() -> None:
    server, _ = hearing()
    ask(server, RequestFailure(NO_WAY))
    ask(server)
    assert server.outage() == ""


@pytest.mark.parametrize(("other", "is_silent"), [("POST /api/v1/pods", False), ("GET /api/v1/pods", True)])
def test_one_slow_write_among_answered_writes_is_no_outage(other: str, is_silent: bool) -> None:
    server, moments = hearing()
    with server.track("PATCH /slow"):
        moments.now = 4.0
        ask(server, what=other)
        moments.now = 10.0
        assert bool(server.outage()) is is_silent


def test_an_overdue_request_is_named_while_it_is_pending() -> None:
    server, moments = hearing()
    with server.track("PATCH /leases/shoal-0"):
        moments.now = 4.9
        assert server.outage() == ""
        moments.now = 12.0
        ask(server)  # others are answered
        assert server.outage() == f"{URL} has not answered PATCH /leases/shoal-0 for 12 s"
    assert server.outage() == ""


def test_an_outage_is_kept_after_its_request_was_cancelled() -> None:
    server, moments = hearing()

    class Cut(asyncio.CancelledError):
        """Comes when ten seconds have passed."""

        def __init__(self) -> None:
            moments.now = 10.0

    ask(server, Cut, "PATCH /leases/shoal-0")
    assert server.outage() == f"{URL} has not answered PATCH /leases/shoal-0 for 10 s"
    ask(server, asyncio.CancelledError)  # in its own time: that says nothing new
    assert server.outage() == f"{URL} has not answered PATCH /leases/shoal-0 for 10 s"
