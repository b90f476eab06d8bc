"""An answer may bring descriptors. Where nobody waits for it any more, they are closed and not kept for ever."""

from __future__ import annotations

import asyncio
import os
import socket
from collections.abc import AsyncIterator
from typing import Any

import pytest

from shoal.node.sandbox import wire
from shoal.node.sandbox.rpc import RpcConnection


class Talk:
    """A conversation, its other side, and a pipe whose reading end sees whether the writing end was closed."""

    def __init__(self) -> None:
        ours, theirs = socket.socketpair()
        self.heard: asyncio.Queue[dict[str, Any]] = asyncio.Queue()
        self.ours = RpcConnection(
            wire.Channel(ours), on_message=lambda message, _: self.heard.put_nowait(message), on_closed=lambda: None
        )
        self.theirs = wire.Channel(theirs)
        self.reading, self.sent = os.pipe()
        os.set_blocking(self.reading, False)

    async def until_all_is_heard(self) -> None:
        self.theirs.send({"event": "last"})
        while await asyncio.wait_for(self.heard.get(), 30) != {"event": "last"}:
            continue

    def is_closed(self) -> bool:
        try:
            return os.read(self.reading, 1) == b""
        except BlockingIOError:
            return False


@pytest.fixture
async def talk() -> AsyncIterator[Talk]:
    made = Talk()
    yield made
    made.ours.close()
    made.theirs.close()
    os.close(made.reading)


async def test_the_answer_to_a_question_given_up_is_thrown_away_with_its_descriptors(talk: Talk) -> None:
    question = asyncio.create_task(talk.ours.call({"do": "socket"}))
    await asyncio.sleep(0)
    question.cancel()
    await asyncio.gather(question, return_exceptions=True)
    talk.theirs.send({"n": 1}, (talk.sent,))
    await talk.until_all_is_heard()
    assert (talk.is_closed(), question.cancelled()) == (True, True)


async def test_an_answer_that_came_just_before_the_asker_gave_up_is_closed_too(talk: Talk) -> None:
    question = asyncio.create_task(talk.ours.call({"do": "socket"}))
    await asyncio.sleep(0)
    talk.theirs.send({"n": 1}, (talk.sent,))
    talk.ours._on_readable()  # as the loop would, just before it comes to the cancelling
    question.cancel()
    await asyncio.gather(question, return_exceptions=True)
    assert (talk.is_closed(), question.cancelled()) == (True, True)


async def test_what_is_sent_after_the_end_is_closed(talk: Talk) -> None:
    talk.ours.close()
    with pytest.raises(wire.Closed):
        talk.ours.send({"do": "anything"}, (talk.sent,))
    assert talk.is_closed()
