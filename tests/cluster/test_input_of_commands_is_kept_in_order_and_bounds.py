"""What is piped into a command: nothing is lost or turned round, little is held in memory, and not without end."""

from __future__ import annotations

import asyncio
import random

import pytest

from shoal.cluster import spill_buffer
from shoal.cluster.spill_buffer import SpillBuffer


async def all_of(given: SpillBuffer) -> bytes:
    return b"".join([piece async for piece in given.read()])


@pytest.mark.parametrize("seed", range(20))
async def test_a_slow_reader_reads_what_was_written(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(spill_buffer, "MEMORY_BYTES", 50)
    monkeypatch.setattr(spill_buffer, "SPILLED_BYTES", 200)
    monkeypatch.setattr(spill_buffer, "CHUNK_BYTES", 13)
    rng, given, read = random.Random(seed), SpillBuffer(), b""
    pieces = [rng.randbytes(rng.randint(1, 40)) for _ in range(200)]

    async def write() -> None:
        for piece in pieces:
            await given.put(piece)
            if rng.random() < 0.5:
                await asyncio.sleep(0)
        given.end()

    writing = asyncio.create_task(write())
    async for piece in given.read():
        read += piece
        for _ in range(rng.randint(0, 5)):
            await asyncio.sleep(0)
    await writing
    given.close()
    assert read == b"".join(pieces)


async def test_a_full_disk_makes_the_client_wait_and_breaks_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(spill_buffer, "MEMORY_BYTES", 4)
    monkeypatch.setattr(spill_buffer, "TemporaryFile", lambda **how: open("/dev/full", "w+b", **how))  # noqa: PTH123, SIM115
    given = SpillBuffer()
    await given.put(b"held")
    waiting = asyncio.create_task(given.put(b"next"))
    reading = given.read()
    assert await anext(reading) == b"held"
    await waiting
    given.end()
    assert [piece async for piece in reading] == [b"next"]
    given.close()


async def test_from_a_bound_on_the_client_has_to_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(spill_buffer, "MEMORY_BYTES", 10)
    monkeypatch.setattr(spill_buffer, "SPILLED_BYTES", 20)
    given = SpillBuffer()
    for _ in range(3):
        await asyncio.wait_for(given.put(b"0123456789"), 999)
    waiting = asyncio.create_task(given.put(b"last"))
    await asyncio.sleep(0)
    assert not waiting.done()
    reading = asyncio.create_task(all_of(given))
    await waiting
    given.end()
    assert await reading == b"0123456789" * 3 + b"last"
    given.close()
