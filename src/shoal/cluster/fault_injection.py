"""What may go wrong between a program and its cluster, as a plan a test composes.

A request can fail before it took effect, or after it (the response got lost), or the program can die at it. A
watch can lose, repeat, swap and delay events, or end. Every rule names the calls or events it is about; chance is
drawn from a generator the test seeded, so a run can be repeated.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, field
from enum import Enum

from shoal.cluster.client import OutcomeUnknown, WatchEvent, WatchEventType
from shoal.kube.errors import ApiError, unavailable
from shoal.kube.kinds import Kind

WRITES = frozenset({"create", "patch", "delete", "bind", "evict"})


class ProgramKilled(BaseException):
    """The program died at this call. No `except Exception` catches it, as none would catch a kill -9."""


@dataclass(frozen=True, slots=True)
class Call:
    """One request of a program; `number` counts its calls and `write` its writes, both from 1."""

    verb: str
    kind: Kind
    namespace: str | None
    name: str
    subresource: str
    number: int
    write: int  # 0 for a read

    @property
    def is_write(self) -> bool:
        return self.write > 0


class FaultTiming(Enum):
    BEFORE = "before it took effect"
    AFTER = "after it took effect"


CallMatcher = Callable[[Call], bool]
Failure = Callable[[], BaseException]


@dataclass(slots=True)
class RequestFault:
    which: CallMatcher
    failure: Failure
    when: FaultTiming
    times: int | None = 1  # None: every time

    def applies_to(self, call: Call, when: FaultTiming) -> bool:
        if self.when is not when or self.times == 0 or not self.which(call):
            return False
        if self.times is not None:
            self.times -= 1
        return True


class WatchDisruption(Enum):
    DROP = "never arrives"
    DUPLICATE = "arrives twice"
    SWAP = "arrives after the next"
    CUT = "the stream ends before it"


@dataclass(frozen=True, slots=True)
class Delay:
    seconds: float


@dataclass(frozen=True, slots=True)
class WatchFault:
    """`where` is called with the number of the event in its stream (from 1) and the event."""

    what: WatchDisruption | Delay
    where: Callable[[int, WatchEvent], bool]
    kind: Kind | None = None


@dataclass(slots=True)
class Faults:
    """A plan. The methods add to it and return it, so that calls can be chained."""

    requests: list[RequestFault] = field(default_factory=list)
    watches: list[WatchFault] = field(default_factory=list)
    stale: dict[str, int] = field(default_factory=dict)  # resource -> the revision its next list shows

    def fail(
        self,
        which: CallMatcher,
        error: ApiError | None = None,
        *,
        when: FaultTiming = FaultTiming.BEFORE,
        times: int | None = 1,
    ) -> Faults:
        """Refuse the call, by default with 503."""
        failure = error or unavailable("the simulated cluster does not answer")
        self.requests.append(RequestFault(which, lambda: failure, when, times))
        return self

    def lose_response(
        self, which: CallMatcher, *, when: FaultTiming = FaultTiming.AFTER, times: int | None = 1
    ) -> Faults:
        """The caller cannot determine whether the request took effect."""
        self.requests.append(RequestFault(which, lambda: OutcomeUnknown("the simulated connection broke"), when, times))
        return self

    def kill(self, which: CallMatcher, *, when: FaultTiming = FaultTiming.BEFORE) -> Faults:
        """The program dies at the call; so does every later call of the same program."""
        self.requests.append(RequestFault(which, ProgramKilled, when, 1))
        return self

    def kill_at_write(self, number: int, *, when: FaultTiming = FaultTiming.BEFORE) -> Faults:
        return self.kill(lambda call: call.write == number, when=when)

    def disturb(
        self, what: WatchDisruption | Delay, where: Callable[[int, WatchEvent], bool], kind: Kind | None = None
    ) -> Faults:
        self.watches.append(WatchFault(what, where, kind))
        return self

    def serve_stale(self, kind: Kind, revision: int) -> Faults:
        """The next list of the kind shows the state as of `revision`."""
        self.stale[kind.resource] = revision
        return self


def calls(verb: str = "", kind: Kind | None = None, name: str = "", subresource: str | None = None) -> CallMatcher:
    """Calls that look like this; what is left out does not matter."""

    def which(call: Call) -> bool:
        return (
            (not verb or call.verb == verb)
            and (kind is None or call.kind == kind)
            and (not name or call.name == name)
            and (subresource is None or call.subresource == subresource)
        )

    return which


def with_probability(rate: float, rng: random.Random, which: CallMatcher = lambda _: True) -> CallMatcher:
    """A share of the calls."""
    return lambda call: which(call) and rng.random() < rate


def events_with_probability(rate: float, rng: random.Random) -> Callable[[int, WatchEvent], bool]:
    """A share of the changes of a watch, never its bookmarks."""
    return lambda _, event: event.type is not WatchEventType.BOOKMARK and rng.random() < rate


def nth_event(number: int) -> Callable[[int, WatchEvent], bool]:
    return lambda position, _: position == number
