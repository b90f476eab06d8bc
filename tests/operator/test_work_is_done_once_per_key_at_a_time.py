"""The work queue: coalescing, order per key, retries after failures."""

from __future__ import annotations

import asyncio
import random

from shoal.cluster.clock import VirtualClock
from shoal.controller_runtime.workqueue import BACKLOG, PRIORITY_TURNS, WorkQueue
from shoal.kube.errors import unavailable
from shoal.kube.objects import Key

A, B = Key("ns", "a"), Key("ns", "b")


async def test_what_arrives_during_a_pass_becomes_one_more_pass() -> None:
    passes: list[Key] = []
    gate = asyncio.Event()

    async def work(key: Key) -> None:
        passes.append(key)
        await gate.wait()

    queue = WorkQueue("test", work)
    queue.add(A)
    await asyncio.sleep(0)
    for _ in range(5):
        queue.add(A)
    gate.set()
    await queue.idle()
    assert passes == [A, A]


async def test_keys_do_not_wait_for_each_other() -> None:
    finished: list[Key] = []
    blocked = asyncio.Event()

    async def work(key: Key) -> None:
        if key == A:
            await blocked.wait()
        finished.append(key)
        blocked.set()

    queue = WorkQueue("test", work)
    queue.add(A)
    queue.add(B)
    await queue.idle()
    assert finished == [B, A]


class Refusing:
    """Work that fails a number of times, on a clock that stands still until it is moved."""

    def __init__(self, failures: int) -> None:
        self.clock = VirtualClock()
        self.tries = 0
        self._failures = failures
        self.queue = WorkQueue("test", self._work, clock=self.clock, jitter=random.Random(1))

    async def _work(self, _: Key) -> None:
        self.tries += 1
        if self.tries <= self._failures:
            raise unavailable("try later")

    async def wait_for_retry(self) -> float:
        """Let time pass until the next try has been made; how long that was."""
        due = self.clock.next_due()
        assert due is not None
        seconds = (due - self.clock.now()).total_seconds()
        self.clock.advance(seconds)
        await self.queue.idle()
        return seconds


async def test_a_failed_pass_is_tried_again_after_growing_pauses() -> None:
    work = Refusing(3)
    work.queue.add(A)
    await work.queue.idle()
    pauses = [await work.wait_for_retry() for _ in range(3)]
    assert (work.tries, work.clock.next_due()) == (4, None)
    assert pauses == sorted(pauses)
    assert pauses[2] > 2 * pauses[0]


async def test_a_new_event_does_not_wait_for_the_end_of_a_pause() -> None:
    work = Refusing(1)
    work.queue.add(A)
    await work.queue.idle()
    work.queue.add(A)
    await work.queue.idle()
    assert (work.tries, work.clock.next_due()) == (2, None)


async def test_what_has_failed_for_days_is_still_tried_once_a_minute() -> None:
    work = Refusing(1100)
    work.queue.add(A)
    await work.queue.idle()
    pauses = [await work.wait_for_retry() for _ in range(1100)]
    assert work.tries == 1101
    assert max(pauses) <= 60
    assert min(pauses[20:]) >= 30


async def test_a_mistake_in_one_pass_leaves_the_other_keys_alone() -> None:
    finished = asyncio.Event()

    async def work(key: Key) -> None:
        if key == A:
            raise KeyError("a mistake of ours")
        finished.set()

    queue = WorkQueue("test", work)
    queue.add(A)
    queue.add(B)
    await asyncio.wait_for(finished.wait(), 30)
    await queue.close()


async def test_after_close_nothing_starts() -> None:
    work = Gathering()
    work.queue.add_after_delay(B)
    await work.queue.close()
    work.queue.add(A)
    work.queue.add_after_delay(A)
    assert (await work.after(999), work.clock.next_due()) == ([], None)


class Gathering:
    """Work that notes its keys, on a clock that stands still until it is moved."""

    def __init__(self) -> None:
        self.clock = VirtualClock()
        self.gate = asyncio.Event()
        self.gate.set()
        self.queue = WorkQueue("test", self._work, clock=self.clock, coalesce_seconds=10)
        self._passes: list[Key] = []

    async def _work(self, key: Key) -> None:
        self._passes.append(key)
        await self.gate.wait()

    async def after(self, seconds: float) -> list[Key]:
        """The passes until so many seconds later."""
        self.clock.advance(seconds)
        await self.queue.idle()
        passes, self._passes = self._passes, []
        return passes


async def test_what_may_wait_waits_for_company() -> None:
    work = Gathering()
    work.queue.add_after_delay(A)
    assert (await work.after(9), work.queue.depth) == ([], 1)
    work.queue.add_after_delay(A)
    work.queue.add_after_delay(B)
    assert await work.after(1) == [A]
    assert await work.after(9) == [B]
    assert work.queue.depth == 0


async def test_what_may_not_wait_takes_the_others_along() -> None:
    work = Gathering()
    work.queue.add_after_delay(A)
    work.queue.add(A)
    assert await work.after(0) == [A]
    assert await work.after(999) == []


async def test_what_may_wait_waits_also_after_a_pass_that_was_running() -> None:
    work = Gathering()
    work.gate.clear()
    work.queue.add(A)
    await asyncio.sleep(0)
    work.queue.add_after_delay(A)
    work.gate.set()
    assert await work.after(0) == [A]
    assert await work.after(10) == [A]


async def test_news_for_a_key_that_waits_for_its_turn_cost_nothing() -> None:
    passes: list[Key] = []
    gate = asyncio.Event()

    async def work(key: Key) -> None:
        passes.append(key)
        await gate.wait()

    queue = WorkQueue("test", work, workers=1)
    for key in (A, B, B, A, B):
        queue.add(key)
    assert queue.depth == 2
    await asyncio.sleep(0)
    queue.add(B)
    gate.set()
    await queue.idle()
    assert (passes, queue.depth) == ([A, B], 0)


async def test_no_more_keys_are_worked_on_than_there_are_hands() -> None:
    most = running = 0

    async def work(_: Key) -> None:
        nonlocal most, running
        running += 1
        most = max(most, running)
        await asyncio.sleep(0)
        running -= 1

    queue = WorkQueue("test", work, workers=3)
    for number in range(10):
        queue.add(Key("ns", str(number)))
    await queue.idle()
    assert most == 3


async def test_what_comes_as_the_last_hand_rests_is_worked_on() -> None:
    passes: list[Key] = []

    async def work(key: Key) -> None:
        passes.append(key)
        if key == A:  # the very last thing the only hand does
            asyncio.get_running_loop().call_soon(queue.add, B)

    queue = WorkQueue("test", work, workers=1)
    queue.add(A)
    await queue.idle()
    await queue.idle()
    assert passes == [A, B]


def numbered(line: str, count: int) -> list[Key]:
    return [Key("ns", f"{line}{number}") for number in range(count)]


async def order_of(queue_of: list[Key], *, begun: set[Key]) -> list[Key]:
    passes: list[Key] = []

    async def work(key: Key) -> None:
        passes.append(key)

    queue = WorkQueue("test", work, workers=1, in_progress=begun.__contains__)
    for key in queue_of:
        queue.add(key)
    await queue.idle()
    return passes


async def test_while_few_begun_keys_wait_everybody_comes_in_order() -> None:
    new, begun = numbered("new", 5), numbered("begun", BACKLOG)
    assert await order_of(new + begun, begun=set(begun)) == new + begun


async def test_a_long_line_of_begun_keys_goes_before_most_new_ones() -> None:
    new, begun, few = numbered("new", 3), numbered("begun", BACKLOG + PRIORITY_TURNS + 2), PRIORITY_TURNS
    expected = [*begun[:few], new[0], *begun[few : few + 2], *new[1:], *begun[few + 2 :]]
    assert await order_of(new + begun, begun=set(begun)) == expected
