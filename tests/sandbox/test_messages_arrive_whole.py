"""Messages and descriptors arrive whole and in order, however large and however slowly they are read."""

from __future__ import annotations

import asyncio
import os
import socket
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from shoal.node.sandbox import wire
from shoal.node.sandbox.rpc import RpcConnection

texts = st.text(max_size=50)
messages = st.dictionaries(texts, st.one_of(texts, st.integers(), st.lists(texts, max_size=3)), max_size=4)


def pair() -> tuple[wire.Channel, wire.Channel]:
    one, other = socket.socketpair()
    return wire.Channel(one), wire.Channel(other)


@pytest.fixture
def channels() -> Iterator[tuple[wire.Channel, wire.Channel]]:
    one, other = pair()
    yield one, other
    one.close()
    other.close()


@given(sent=st.lists(messages, max_size=20))
@settings(deadline=None)
def test_messages_arrive_as_sent(sent: list[dict[str, object]]) -> None:
    one, other = pair()
    for message in sent:
        one.send(message)
    received = [message for message, _ in other.receive()]
    one.close()
    other.close()

    assert received == sent


def test_a_message_larger_than_any_buffer_arrives_in_parts(channels: tuple[wire.Channel, wire.Channel]) -> None:
    one, other = channels
    large = {"env": "x" * (5 << 20)}
    one.send(large)
    assert one.waiting_to_send
    while not (received := other.receive()):
        one.flush()

    assert received == [(large, [])]


def test_descriptors_stay_with_their_messages(channels: tuple[wire.Channel, wire.Channel]) -> None:
    one, other = channels
    pipes = [os.pipe() for _ in range(3)]
    one.send({"n": 0}, [pipes[0][0]])
    one.send({"n": 1})
    one.send({"n": 2}, [pipes[1][0], pipes[2][0]])
    received = other.receive()
    for number, (_, write) in enumerate(pipes):
        os.write(write, b"%d" % number)
        os.close(write)

    read = [(message["n"], [os.read(fd, 10) for fd in fds]) for message, fds in received]
    for _, fds in received:
        for fd in fds:
            os.close(fd)
    assert read == [(0, [b"0"]), (1, []), (2, [b"1", b"2"])]


def test_the_end_of_the_peer_is_reported_after_its_last_messages() -> None:
    one, other = pair()
    one.send({"last": True})
    one.close()

    assert other.receive() == [({"last": True}, [])]
    with pytest.raises(wire.Closed):
        other.receive()
    with pytest.raises(wire.Closed):
        other.send({"too": "late"})
    other.close()


def test_sockets_work_in_folders_with_very_long_paths(tmp_path: Path) -> None:
    folder = tmp_path.joinpath(*["a-rather-long-name"] * 10)
    folder.mkdir(parents=True)
    server = wire.listen(str(folder), "socket")
    client = wire.connect(str(folder), "socket")
    accepted, _ = server.accept()
    client.sendall(b"hello")

    assert accepted.recv(10) == b"hello"
    for sock in (server, client, accepted):
        sock.close()


async def test_last_messages_are_received_from_a_peer_that_no_longer_reads() -> None:
    ours, theirs = socket.socketpair()
    heard: list[object] = []
    ended = asyncio.Event()

    def hear(message: dict[str, object], _: list[int]) -> None:
        heard.append(message["word"])
        with suppress(wire.Closed):
            listener.send({"answer": "nobody reads this"})

    listener = RpcConnection(wire.Channel(ours), on_message=hear, on_closed=ended.set)
    speaker = wire.Channel(theirs)
    for word in range(3):
        speaker.send({"word": word})
    speaker.close()
    await ended.wait()

    assert heard == [0, 1, 2]
    with pytest.raises(wire.Closed):
        await listener.call({"do": "anything"})


async def test_a_question_ends_with_the_one_who_should_answer() -> None:
    ours, theirs = socket.socketpair()
    asker = RpcConnection(wire.Channel(ours), on_message=lambda *_: None, on_closed=lambda: None)
    question = asyncio.create_task(asker.call({"do": "wait"}))
    await asyncio.get_running_loop().sock_recv(_unblocked(theirs), 100)
    theirs.close()

    with pytest.raises(wire.Closed):
        await question


def _unblocked(sock: socket.socket) -> socket.socket:
    sock.setblocking(False)
    return sock
