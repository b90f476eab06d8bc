"""A channel on an asyncio loop: events as they arrive, requests and their responses.

Used by the agent (towards zygote, shims and network process) and by the network process and its egress process. The
shim has its own small loop and does not import this.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from contextlib import suppress

from shoal.node.sandbox import wire

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    Message = dict[str, Any]
    Answer = tuple[Message, list[int]]


class RpcConnection:
    """Answers (messages with an `n`) resolve their request; everything else is passed to `on_message`.

    Descriptors are never left over: those of an answer without a waiter are closed.
    """

    def __init__(
        self,
        channel: wire.Channel,
        *,
        on_message: Callable[[Message, list[int]], None],
        on_closed: Callable[[], None],
    ) -> None:
        self._channel = channel
        self._on_message = on_message
        self._on_closed = on_closed
        self._loop = asyncio.get_running_loop()
        self._pending: dict[int, asyncio.Future[Answer]] = {}
        self._last = 0
        self._number = channel.fileno()
        self.is_open = True
        self._loop.add_reader(self._number, self._on_readable)

    def send(self, message: Message, fds: Sequence[int] = ()) -> None:
        """The descriptors are the other side's from here on, also where it does not get them."""
        if not self.is_open:
            wire.close_all(fds)
            raise wire.Closed("the conversation is over")
        # A failure does not end the conversation: what the other side sent before it left is still to be read,
        # and the end follows it.
        self._channel.send(message, fds)
        if self._channel.waiting_to_send:
            self._loop.add_writer(self._number, self._flush)

    async def call(self, message: Message, fds: Sequence[int] = ()) -> Answer:
        """The answer and its descriptors; Closed where the other side closes before it answers."""
        self._last += 1
        answer: asyncio.Future[Answer] = self._loop.create_future()
        number = self._last
        self._pending[number] = answer
        try:
            self.send({**message, "n": number}, fds)
            return await answer
        except asyncio.CancelledError:
            if answer.done() and not answer.cancelled() and answer.exception() is None:
                wire.close_all(answer.result()[1])  # it arrived, but the caller was gone before reading it
            raise
        finally:
            self._pending.pop(number, None)

    def _flush(self) -> None:
        with suppress(wire.Closed):
            self._channel.flush()
        if not self._channel.waiting_to_send:
            self._loop.remove_writer(self._number)

    def _on_readable(self) -> None:
        try:
            for message, fds in self._channel.receive():
                if "n" not in message or "do" in message:
                    self._on_message(message, fds)
                    continue
                answer = self._pending.get(message["n"])
                if answer is not None and not answer.done():
                    answer.set_result((message, fds))
                else:
                    wire.close_all(fds)
        except wire.Closed:
            self._disconnect()
        except Exception:
            # The caller would wait for ever for what cannot be decoded: end the conversation, as if the other side
            # had disconnected. Its users handle that case.
            self._disconnect()
            raise

    def _disconnect(self) -> None:
        if not self.is_open:
            return
        on_closed = self._on_closed
        self.close()
        on_closed()

    def close(self) -> None:
        """Stop listening; no `on_closed` for one's own leaving. Questions still open end as Closed."""
        if not self.is_open:
            return
        self.is_open = False
        self._loop.remove_reader(self._number)
        self._loop.remove_writer(self._number)
        self._channel.close()
        # The listener references this conversation too: without a cycle both are freed as soon as they are unused.
        self._on_message, self._on_closed = (lambda _, fds: wire.close_all(fds)), lambda: None
        for answer in self._pending.values():
            if not answer.done():
                answer.set_exception(wire.Closed("the conversation is over"))
