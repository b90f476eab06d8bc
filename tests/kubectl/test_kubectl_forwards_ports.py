"""kubectl port-forward: connections to ports of a pod, several at once, and what it says where nothing listens."""

from __future__ import annotations

import re
import socket
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

LARGE = 4 * 1024 * 1024


@contextmanager
def echo_server() -> Iterator[int]:
    """Each connection gets back what it sent, once it has sent everything."""
    listener = socket.create_server(("127.0.0.1", 0))

    def answer(connection: socket.socket) -> None:
        with connection:
            received = b""
            while data := connection.recv(1 << 16):
                received += data
            connection.sendall(received)

    def accept() -> None:
        while True:
            try:
                connection, _ = listener.accept()
            except OSError:
                return
            threading.Thread(target=answer, args=(connection,), daemon=True).start()

    threading.Thread(target=accept, daemon=True).start()
    yield listener.getsockname()[1]
    listener.close()


@contextmanager
def forwarded(kubectl: Any, name: str, port: int) -> Iterator[tuple[int, subprocess.Popen[str]]]:
    """The port on this side, while kubectl forwards it."""
    running = kubectl.start("port-forward", "--address=127.0.0.1", f"pod/{name}", f":{port}")
    try:
        found = re.match(r"Forwarding from 127.0.0.1:(\d+) -> ", running.stdout.readline())
        assert found, running.communicate(timeout=60)
        yield int(found[1]), running
    finally:
        running.kill()
        running.communicate(timeout=60)


def talk(port: int, text: bytes) -> bytes:
    with socket.create_connection(("127.0.0.1", port), timeout=60) as connection:
        connection.sendall(text)
        connection.shutdown(socket.SHUT_WR)
        received = b""
        while data := connection.recv(1 << 16):
            received += data
        return received


@pytest.fixture
def web(kubectl: Any, pod: Any) -> Any:
    pod("web", "one")
    kubectl("patch", "pod", "web", "--subresource=status", "--type=merge", "-p", '{"status": {"phase": "Running"}}')
    return kubectl


def test_connections_reach_the_pod_and_end(web: Any) -> None:
    with echo_server() as port, forwarded(web, "web", port) as (here, _):
        assert [talk(here, f"hello {number}".encode()) for number in range(5)] == [
            f"hello {number}".encode() for number in range(5)
        ]
        assert talk(here, b"x" * LARGE) == b"x" * LARGE


def test_connections_do_not_wait_for_each_other(web: Any) -> None:
    with (
        echo_server() as port,
        forwarded(web, "web", port) as (here, _),
        socket.create_connection(("127.0.0.1", here), timeout=60),  # says nothing
    ):
        assert talk(here, b"hello") == b"hello"


def test_a_port_without_a_listener_is_reported(web: Any) -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        port = unused.getsockname()[1]
        with forwarded(web, "web", port) as (here, running):
            assert talk(here, b"hello") == b""
            assert f"port {port} of the pod: Connection refused" in running.stderr.readline()


def test_ports_of_a_missing_pod_cannot_be_forwarded(kubectl: Any) -> None:
    assert 'pods "ghost" not found' in kubectl("port-forward", "pod/ghost", "8080", ok=False).err
