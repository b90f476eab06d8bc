"""A message nobody can make sense of ends the conversation: whoever waits for an answer learns it at once."""

from __future__ import annotations

import asyncio
import socket
from typing import Any

import pytest

from shoal.node.sandbox import wire
from shoal.node.sandbox.rpc import RpcConnection


async def test_a_handler_that_raises_ends_the_conversation() -> None:
    ours, theirs = socket.socketpair()
    closed = asyncio.Event()
    loud: list[dict[str, Any]] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, context: loud.append(context))

    def confused(message: dict[str, Any], _: list[int]) -> None:
        raise KeyError(message["event"])

    conversation = RpcConnection(wire.Channel(ours), on_message=confused, on_closed=closed.set)
    question = asyncio.create_task(conversation.call({"do": "anything"}))
    await asyncio.sleep(0)
    wire.Channel(theirs).send({"event": "from another version"})
    with pytest.raises(wire.Closed):
        await asyncio.wait_for(question, 30)
    await asyncio.wait_for(closed.wait(), 30)
    assert [str(context["exception"]) for context in loud] == ["'from another version'"]
    theirs.close()
