"""The work queue: coalescing, order per key, retries after failures."""

from __future__ import annotations

import asyncio

from shoal.kube.errors import unavailable
from shoal.kube.objects import Key
from shoal.operator.queueing import KeyedWork

A, B = Key("ns", "a"), Key("ns", "b")


async def test_what_arrives_during_a_pass_becomes_one_more_pass() -> None:
    passes: list[Key] = []
    gate = asyncio.Event()

    async def work(key: Key) -> None:
        passes.append(key)
        await gate.wait()

    queue = KeyedWork("test", work)
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

    queue = KeyedWork("test", work)
    queue.add(A)
    queue.add(B)
    await queue.idle()
    assert finished == [B, A]


async def test_a_failed_pass_is_tried_again_and_a_new_event_does_not_wait_for_it() -> None:
    tries = 0
    done = asyncio.Event()

    async def work(_: Key) -> None:
        nonlocal tries
        tries += 1
        if tries < 3:
            raise unavailable("try later")
        done.set()

    queue = KeyedWork("test", work)
    queue.add(A)
    await asyncio.wait_for(done.wait(), 30)
    await queue.idle()
    assert tries == 3


async def test_a_mistake_in_one_pass_leaves_the_other_keys_alone() -> None:
    finished = asyncio.Event()

    async def work(key: Key) -> None:
        if key == A:
            raise KeyError("a mistake of ours")
        finished.set()

    queue = KeyedWork("test", work)
    queue.add(A)
    queue.add(B)
    await asyncio.wait_for(finished.wait(), 30)
    await queue.close()


async def test_after_close_nothing_starts() -> None:
    passes: list[Key] = []

    async def work(key: Key) -> None:
        passes.append(key)

    queue = KeyedWork("test", work)
    await queue.close()
    queue.add(A)
    await queue.idle()
    assert passes == []
