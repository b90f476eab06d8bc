"""A virtual address leads to the pods behind it, in turn, past those that refuse, and follows the table."""

from __future__ import annotations

import asyncio
import hashlib
import os
from contextlib import suppress

import pytest

from kit.sandboxes import Place, Pod

pytestmark = pytest.mark.processes

# Greets every connection with its hostname, and adds a digest of what it got once the client has said everything.
SERVER = """
import hashlib, os, socket, threading
from contextlib import suppress
server = socket.create_server((os.environ["ADDRESS"], 9000), backlog=64)
open(os.environ["NEWS"], "w").write("listening\\n")
def answer(connection):
    with connection:
        connection.sendall(socket.gethostname().encode() + b" ")
        digest = hashlib.sha256()
        while data := connection.recv(1 << 16):
            digest.update(data)
        connection.sendall(digest.hexdigest().encode())
while True:
    threading.Thread(target=answer, args=server.accept()[:1], daemon=True).start()
"""


async def server(place: Place, name: str) -> Pod:
    pod = await place.pod(name)
    news = place.news()
    await pod.python(SERVER, env={"ADDRESS": pod.ip, "NEWS": str(news.path)})
    assert await news.line() == "listening"
    return pod


async def ask(pod: Pod, address: tuple[str, int], data: bytes = b"") -> str:
    """What a client inside the pod gets at an address: the answer's first word."""
    name, digest = (await converse(pod, address, data)).decode().split()
    assert digest == hashlib.sha256(data).hexdigest()
    return name


async def converse(pod: Pod, address: tuple[str, int], data: bytes) -> bytes:
    sock = await pod.sandbox.dial(*address, timeout=99)
    reader, writer = await asyncio.open_connection(sock=sock)
    writer.write(data)
    with suppress(OSError):  # reset before it could say that it is done: reading tells
        writer.write_eof()
    answer = await reader.read()
    writer.close()
    return answer


async def test_connections_go_to_the_backends_in_turn(place: Place) -> None:
    one, two, client = await server(place, "one"), await server(place, "two"), await place.pod("client")
    service = (place.service_address(1), 8080)
    await place.keepers.serve({service: ((one.ip, 9000), (two.ip, 9000))})

    assert [await ask(client, service) for _ in range(4)] == ["one", "two", "one", "two"]


async def test_a_backend_that_refuses_is_passed_over(place: Place) -> None:
    one, silent, client = await server(place, "one"), await place.pod("silent"), await place.pod("client")
    service = (place.service_address(1), 8080)
    await place.keepers.serve({service: ((silent.ip, 9000), (one.ip, 9000))})

    assert [await ask(client, service) for _ in range(3)] == ["one"] * 3


async def test_a_new_table_replaces_the_old_and_open_connections_go_on(place: Place) -> None:
    one, two, client = await server(place, "one"), await server(place, "two"), await place.pod("client")
    old, kept = (place.service_address(1), 8080), (place.service_address(2), 8080)
    await place.keepers.serve({old: ((one.ip, 9000),), kept: ((one.ip, 9000),)})
    loop = asyncio.get_running_loop()
    open_before = await client.sandbox.dial(*old, timeout=99)
    assert await loop.sock_recv(open_before, 100) == b"one "
    await place.keepers.serve({kept: ((two.ip, 9000),)})

    assert await ask(client, kept) == "two"
    with pytest.raises(OSError):
        await client.sandbox.dial(*old, timeout=99)
    open_before.shutdown(1)
    assert await loop.sock_recv(open_before, 100) == hashlib.sha256().hexdigest().encode()
    open_before.close()


async def test_much_data_arrives_whole_before_the_answer(place: Place) -> None:
    one, client = await server(place, "one"), await place.pod("client")
    service = (place.service_address(1), 80 if os.getuid() == 0 else 8081)
    await place.keepers.serve({service: ((one.ip, 9000),)})

    assert await ask(client, service, os.urandom(20 << 20)) == "one"


async def test_a_service_without_backends_resets_the_connection(place: Place) -> None:
    client = await place.pod("client")
    service = (place.service_address(1), 8080)
    await place.keepers.serve({service: ()})

    with pytest.raises(ConnectionResetError):
        await converse(client, service, b"")


async def test_a_service_may_lead_to_the_machines_own_network(isolated: Place) -> None:
    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"outside got " + await reader.read())
        writer.close()

    outside = await asyncio.start_server(answer, "127.0.0.1", 0)
    port = outside.sockets[0].getsockname()[1]
    client = await isolated.pod("client")
    service = (isolated.service_address(1), 443)
    await isolated.keepers.serve({service: (("127.0.0.1", 1), ("127.0.0.1", port))})

    assert await converse(client, service, b"this") == b"outside got this"
    outside.close()


async def test_an_address_that_cannot_be_served_is_reported_and_the_rest_served(
    loopback: Place, caplog: pytest.LogCaptureFixture
) -> None:
    one, client = await server(loopback, "one"), await loopback.pod("client")
    good, bad = (loopback.service_address(1), 8080), ("192.0.2.55", 8080)
    await loopback.keepers.serve({bad: ((one.ip, 9000),), good: ((one.ip, 9000),)})

    assert await ask(client, good) == "one"
    assert [record.getMessage() for record in caplog.records] == [
        "service address 192.0.2.55:8080 cannot be served: Cannot assign requested address"
    ]


async def test_a_killed_network_process_is_replaced_in_the_same_network(place: Place) -> None:
    one, client = await server(place, "one"), await place.pod("client")
    service = (place.service_address(1), 8080)
    await place.keepers.serve({service: ((one.ip, 9000),)})
    await place.keepers.network_client.kill()
    later = await server(place, "later")
    await place.keepers.serve({service: ((one.ip, 9000), (later.ip, 9000))})

    assert sorted([await ask(client, service), await ask(client, service)]) == ["later", "one"]
