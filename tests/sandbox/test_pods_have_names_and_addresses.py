"""A pod has its hostname, its hosts file and its address, and two pods may listen on the same port."""

from __future__ import annotations

import asyncio
import os
import socket

import pytest

from kit.sandboxes import Place, Pod

pytestmark = pytest.mark.processes

# Listens at its pod's address, says so, and answers every connection with its hostname.
SERVER = """
import os, socket, sys
server = socket.create_server((os.environ["ADDRESS"], int(os.environ["PORT"])))
open(os.environ["NEWS"], "w").write("listening\\n")
while True:
    connection, peer = server.accept()
    with connection:
        while connection.recv(65536):
            pass
        connection.sendall((socket.gethostname() + " to " + peer[0]).encode())
"""
CLIENT = """
import os, socket, sys
with socket.create_connection((os.environ["ADDRESS"], int(os.environ["PORT"])), timeout=99) as sock:
    sock.shutdown(socket.SHUT_WR)
    print(sock.makefile().read())
"""


async def serve(place: Place, pod: Pod, *, port: int, address: str | None = None) -> None:
    news = place.news()
    env = {"ADDRESS": pod.ip if address is None else address, "PORT": str(port), "NEWS": str(news.path)}
    await pod.python(SERVER, env=env)
    assert await news.line() == "listening"


async def ask(pod: Pod, address: str, port: int, *, name: str) -> str:
    await pod.python(CLIENT, name=name, env={"ADDRESS": address, "PORT": str(port)})
    await pod.sandbox.wait(name)
    return pod.logged(name).strip()


async def test_hostname_and_hosts_file_are_the_pods_own(place: Place) -> None:
    pod = await place.pod("worker", hosts="10.77.9.9 trainer\n")
    text = await pod.output("hostname; cat /etc/hostname; cat /etc/hosts; getent hosts trainer | tr -s ' '")

    assert text == "worker\nworker\n127.0.0.1 localhost\n10.77.9.9 trainer\n10.77.9.9 trainer\n"
    assert os.uname().nodename != "worker"


async def test_a_rewritten_hosts_file_is_seen_at_once(place: Place) -> None:
    pod = await place.pod()
    news = place.news()
    go = place.root / "go"
    os.mkfifo(go)
    await pod.shell(f"echo ready > {news.path}; read go < {go}; getent hosts late")
    assert await news.line() == "ready"
    pod.sandbox.spec.hosts_file.write_text("10.77.8.8 late\n")
    await asyncio.to_thread(go.write_text, "go\n")
    await pod.sandbox.wait("main.0")

    assert pod.logged().split() == ["10.77.8.8", "late"]


async def test_two_pods_listen_on_the_same_port_and_reach_each_other(place: Place) -> None:
    one, two = await place.pod("one"), await place.pod("two")
    await serve(place, one, port=8765)
    await serve(place, two, port=8765)
    answers = [await ask(one, two.ip, 8765, name="ask.0"), await ask(two, one.ip, 8765, name="ask.0")]

    assert [answer.split()[0] for answer in answers] == ["two", "one"]


async def test_isolated_pods_may_listen_everywhere_on_low_ports(isolated: Place) -> None:
    one, two = await isolated.pod("one"), await isolated.pod("two")
    await serve(isolated, one, port=80, address="0.0.0.0")
    await serve(isolated, two, port=80, address="0.0.0.0")

    assert await ask(one, two.ip, 80, name="ask.0") == f"two to {one.ip}"
    assert await ask(one, "127.0.0.1", 80, name="ask.1") == "one to 127.0.0.1"


async def test_the_agent_can_dial_into_a_pod(place: Place) -> None:
    pod = await place.pod("server", hosts="")
    await serve(place, pod, port=8766)
    hosts = pod.sandbox.spec.hosts_file
    hosts.write_text(f"{pod.ip} server.default\n")
    loop = asyncio.get_running_loop()
    answers = []
    for host in (pod.ip, "server.default"):
        sock = await pod.sandbox.dial(host, 8766, timeout=99)
        sock.shutdown(1)
        answers.append((await loop.sock_recv(sock, 100)).split()[0])
        sock.close()

    assert answers == [b"server", b"server"]
    with pytest.raises(ConnectionRefusedError):
        await pod.sandbox.dial(pod.ip, 8767, timeout=99)
    with pytest.raises(OSError, match="nowhere is not in the hosts file"):
        await pod.sandbox.dial("nowhere", 1, timeout=99)


async def test_datagrams_of_an_isolated_pod_are_rejected_at_once(isolated: Place) -> None:
    pod = await isolated.pod()
    script = """
import socket
try:
    sock = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    sock.settimeout(99)
    sock.connect(("192.0.2.77", 80))
    sock.send(b"hello")
    sock.recv(1)
except OSError as error:
    print(error.strerror)
"""
    await pod.python(script)
    await pod.sandbox.wait("main.0")

    assert pod.logged() == "No route to host\n"


async def test_a_pod_on_the_machines_network_has_no_address_of_its_own(place: Place) -> None:
    pod = await place.pod("bare", ip="")
    text = await pod.output("cat /proc/net/dev")

    assert {line.partition(":")[0].strip() for line in text.splitlines()[2:]} == {
        name for _, name in socket.if_nameindex()
    }


async def test_an_address_can_be_given_again_at_once(place: Place) -> None:
    asker = await place.pod("asker")
    for number in range(3):
        pod = await place.pod(f"pod{number}", ip=place.address(99))
        await serve(place, pod, port=8768)
        assert (await ask(asker, pod.ip, 8768, name=f"ask.{number}")).split()[0] == f"pod{number}"
        await pod.sandbox.close()
