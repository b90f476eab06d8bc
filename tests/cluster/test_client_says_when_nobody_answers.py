"""What a program is waiting for when its server is silent, in a sentence; nothing while it answers."""

from __future__ import annotations

import asyncio

import pytest

from shoal.cluster.client import OutcomeUnknown
from shoal.cluster.kubernetes import Unreachable
from shoal.cluster.kubernetes.retry import Failure
from shoal.cluster.kubernetes.server_health import Hearing
from shoal.kube.errors import ApiError

URL = "https://cluster:6443"
NO_WAY = Unreachable(f"{URL} cannot be reached: Connection refused. Is the cluster up, and is this its address?")
LOST = OutcomeUnknown(f"POST /api/v1/pods was not answered by {URL}: it hung up")


class Moments:
    now = 0.0

    def __call__(self) -> float:
        return self.now


def hearing() -> tuple[Hearing, Moments]:
    moments = Moments()
    return Hearing(URL, moments), moments


def ask(
    server: Hearing, failure: BaseException | type[BaseException] | None = None, what: str = "GET /api/v1/pods"
) -> None:
    try:
        with server.of(what):
            if failure is not None:
                raise failure
    except (Failure, asyncio.CancelledError):
        pass


CASES = {
    "no way there": (Failure(NO_WAY, may_have_worked=False), str(NO_WAY)),
    "a way that time does not heal": (Failure(NO_WAY, code=400), str(NO_WAY)),
    "an answer that got lost": (Failure(LOST), str(LOST)),
    "a server that is unwell": (Failure(ApiError(500, "", "etcdserver: request timed out"), code=500),
                                "etcdserver: request timed out"),
    "a refusal": (Failure(ApiError(403, "Forbidden", "no"), code=403), ""),
    "too much at once": (Failure(ApiError(429, "TooManyRequests", "later"), code=429), ""),
}  # fmt: skip


@pytest.mark.parametrize(("failure", "sentence"), CASES.values(), ids=CASES)
def test_silence_is_told_and_a_refusal_is_an_answer(failure: Failure, sentence: str) -> None:
    server, _ = hearing()
    ask(server, failure)
    assert server.silence() == sentence


def test_the_next_answer_ends_the_complaint() -> None:
    server, _ = hearing()
    ask(server, Failure(NO_WAY))
    ask(server)
    assert server.silence() == ""


@pytest.mark.parametrize(("other", "is_silent"), [("POST /api/v1/pods", False), ("GET /api/v1/pods", True)])
def test_one_slow_write_among_writes_that_are_answered_is_no_silence(other: str, is_silent: bool) -> None:
    server, moments = hearing()
    with server.of("PATCH /slow"):
        moments.now = 4.0
        ask(server, what=other)
        moments.now = 10.0
        assert bool(server.silence()) is is_silent


def test_what_is_long_in_coming_is_named_while_it_is_awaited() -> None:
    server, moments = hearing()
    with server.of("PATCH /leases/shoal-0"):
        moments.now = 4.9
        assert server.silence() == ""
        moments.now = 12.0
        ask(server)  # others are answered
        assert server.silence() == f"{URL} has not answered PATCH /leases/shoal-0 for 12 s"
    assert server.silence() == ""


def test_it_is_remembered_where_nobody_waits_for_it_any_longer() -> None:
    server, moments = hearing()

    class Cut(asyncio.CancelledError):
        """Comes when ten seconds have passed."""

        def __init__(self) -> None:
            moments.now = 10.0

    ask(server, Cut, "PATCH /leases/shoal-0")
    assert server.silence() == f"{URL} has not answered PATCH /leases/shoal-0 for 10 s"
    ask(server, asyncio.CancelledError)  # in its own time: that says nothing new
    assert server.silence() == f"{URL} has not answered PATCH /leases/shoal-0 for 10 s"
