"""A worker may start before etcd does; what counts is that etcd answers, not that its address takes connections."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator

import pytest
from torchelastic.distributed.launch import answers


@pytest.fixture
def listener() -> Iterator[socket.socket]:
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield server


def endpoint(server: socket.socket) -> str:
    return f"127.0.0.1:{server.getsockname()[1]}"


def reply_once(server: socket.socket, reply: bytes) -> None:
    connection, _ = server.accept()
    with connection:
        connection.recv(100)
        connection.sendall(reply)


@pytest.mark.parametrize(
    ("reply", "is_there"), [(b"HTTP/1.0 200 OK\r\n\r\n{}", True), (b"", False)], ids=["a-server", "nobody-behind"]
)
def test_a_connection_alone_is_no_answer(listener: socket.socket, reply: bytes, is_there: bool) -> None:
    server = threading.Thread(target=reply_once, args=(listener, reply))
    server.start()
    assert answers(endpoint(listener)) is is_there
    server.join()


def test_a_closed_port_is_no_answer(listener: socket.socket) -> None:
    where = endpoint(listener)
    listener.close()
    assert answers(where) is False


def test_a_name_that_is_not_known_yet_is_no_answer() -> None:
    assert answers("pet-etcd.invalid:2379") is False
