"""Agent, zygote and keeper may be killed at any moment: nothing runs twice, is forgotten, or lives on unseen."""

from __future__ import annotations

import json
import os
import random
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from kit.sandboxes import News, Place, Pod, opened
from shoal.kube.messages import Message
from shoal.node.sandbox import shim_journal
from shoal.node.sandbox.interface import LostSandbox, Network, ProcessState, ShimLost
from shoal.node.sandbox.sandbox_manager import FolderInUse, NetworkUnavailable, SandboxManager
from shoal.node.sandbox.shim_client import wait_gone

pytestmark = pytest.mark.processes

# An agent in a process of its own: starts pods until it is killed, and says what it knows to have started.
AGENT = """
import asyncio, os, sys
from pathlib import Path
from shoal.node.sandbox.sandbox_manager import SandboxManager
from shoal.node.sandbox.interface import Network, ProcessSpec, SandboxSpec
root, network, runs = Path(sys.argv[1]), Network(sys.argv[2]), sys.argv[3]
async def main():
    keepers = await SandboxManager.open(root / "sandboxes", network=network)
    (root / "hosts").write_text("127.0.0.1 localhost")
    for number in range(1, 200):
        prefix = "10.77.4" if network is Network.ISOLATED else "127.77.4"
        pod = f"pod-{number}-{os.getpid()}"
        sandbox = await keepers.create(SandboxSpec(pod, "pod", f"{prefix}.{number + 1}", root / "hosts"))
        print("created", pod, flush=True)
        script = f"echo {number} >> {runs}; exec sleep 999"
        env, log = {"PATH": "/bin:/usr/bin"}, root / f"{number}.log"
        process = ProcessSpec("main.0", ("/bin/sh", "-c", script), env, "/", log)
        started = await sandbox.start(process)
        print("started", pod, started.pid, flush=True)
asyncio.run(main())
"""


async def kept_pod(place: Place, news: News) -> Pod:
    pod = await place.pod()
    script = (
        f"(trap '' TERM; echo child > {news.path}; exec sleep 999) & trap 'exit 6' TERM; echo up > {news.path}; wait"
    )
    await pod.shell(script)
    assert sorted([await news.line(), await news.line()]) == ["child", "up"]
    return pod


async def reopened(place: Place) -> SandboxManager:
    network = place.keepers.network
    await place.keepers.close()
    place.keepers = await SandboxManager.open(place.root / "sandboxes", network=network)
    return place.keepers


async def test_a_later_agent_finds_running_pods_and_what_ended_meanwhile(place: Place) -> None:
    pod = await kept_pod(place, place.news())
    await pod.shell("exit 3", name="init.0")
    await pod.sandbox.wait("init.0")
    before = pod.sandbox.processes()
    keepers = await reopened(place)
    (found,), lost = await keepers.adopt()

    assert (found.spec, found.processes(), lost) == (pod.sandbox.spec, before, [])
    await found.signal("main.0", signal.SIGTERM)
    assert (await found.wait("main.0")).code == 6


async def test_exits_without_an_agent_are_reported_to_the_next_agent(place: Place) -> None:
    pod = await place.pod()
    go = place.root / "go"
    os.mkfifo(go)
    news = place.news()
    await pod.shell(f"read x < {go}; echo going > {news.path}; exit 4")
    started = pod.sandbox.processes()["main.0"].started
    network = place.keepers.network
    await place.keepers.close()
    go.write_text("x\n")
    assert await news.line() == "going"
    place.keepers = await SandboxManager.open(place.root / "sandboxes", network=network)
    (found,), _ = await place.keepers.adopt()

    ended = await found.wait("main.0")
    assert (found.processes(), ended.code) == ({"main.0": ProcessState(started, ended)}, 4)


async def test_a_killed_zygote_is_replaced_and_takes_no_pod_along(place: Place) -> None:
    first = await place.pod("first")
    await first.shell("exec sleep 999")
    os.kill(place.keepers.zygote.pid, signal.SIGKILL)
    second = await place.pod("second")

    assert await second.output("echo works") == "works\n"
    assert first.sandbox.processes()["main.0"].exited is None


async def test_a_killed_shim_ends_its_pod_and_is_reported_as_lost(place: Place) -> None:
    pod = await kept_pod(place, place.news())
    record = shim_journal.read(str(place.root / "sandboxes" / pod.sandbox.spec.id))
    assert record is not None
    main = record.processes["main.0"]["started"]["pid"]
    os.kill(record.keeper, signal.SIGKILL)
    with pytest.raises(ShimLost):
        await pod.sandbox.wait("main.0")
    _, lost = await place.keepers.adopt()
    await wait_gone([main])

    told = lost[0].processes["main.0"].exited
    assert told is not None
    assert (told.code, told.signal) == (None, None)
    assert told.message == Message("Lost.Killed")
    assert lost == [
        LostSandbox(pod.sandbox.spec, {"main.0": ProcessState(pod.sandbox.processes()["main.0"].started, told)})
    ]
    with pytest.raises(ShimLost):
        await pod.sandbox.signal("main.0", signal.SIGTERM)


async def test_a_lost_sandbox_is_reported_until_it_is_removed(place: Place) -> None:
    pod = await kept_pod(place, place.news())
    record = shim_journal.read(str(place.root / "sandboxes" / pod.sandbox.spec.id))
    assert record is not None
    await place.keepers.close()
    os.kill(record.keeper, signal.SIGKILL)
    network = place.keepers.network
    place.keepers = await SandboxManager.open(place.root / "sandboxes", network=network)
    told = [[lost.spec.id for lost in (await place.keepers.adopt())[1]] for _ in range(2)]
    await place.keepers.remove(pod.sandbox.spec.id)

    assert told == [[pod.sandbox.spec.id]] * 2
    assert await place.keepers.adopt() == ([], [])


async def test_closing_a_lost_sandbox_cleans_up_after_it(place: Place) -> None:
    pod = await kept_pod(place, place.news())
    record = shim_journal.read(str(place.root / "sandboxes" / pod.sandbox.spec.id))
    assert record is not None
    os.kill(record.keeper, signal.SIGKILL)
    await pod.sandbox.close()

    assert await place.keepers.adopt() == ([], [])


async def test_the_network_outlives_the_agent_and_the_network_process(isolated: Place) -> None:
    await kept_pod(isolated, isolated.news())
    await isolated.keepers.network_client.kill(replace=False)
    (found,), _ = await (await reopened(isolated)).adopt()
    other = await isolated.pod("other")
    news = isolated.news()
    await other.python(
        f"import socket\ns = socket.create_server(('', 9000)); open({str(news.path)!r}, 'w').write('up\\n')\n"
        "c = s.accept()[0]; c.sendall(b'hi'); c.recv(1)"
    )
    assert await news.line() == "up"
    sock = await found.dial(other.ip, 9000, timeout=99)

    sock.setblocking(True)
    assert sock.recv(10) == b"hi"
    sock.close()


async def test_a_data_folder_that_is_deleted_takes_its_pods_along(place: Place) -> None:
    pod = await kept_pod(place, place.news())
    folder = place.root / "sandboxes"
    record = shim_journal.read(str(folder / pod.sandbox.spec.id))
    assert record is not None
    fabric = place.keepers.network_client.pid
    await place.keepers.close()
    shutil.rmtree(folder)
    await wait_gone([record.processes["main.0"]["started"]["pid"], record.keeper, fabric])
    place.keepers = await SandboxManager.open(folder, network=place.keepers.network)

    assert await place.keepers.adopt() == ([], [])


async def test_one_folder_has_one_agent(loopback: Place) -> None:
    with pytest.raises(FolderInUse, match="is in use by another agent"):
        await SandboxManager.open(loopback.root / "sandboxes")


async def test_the_kind_of_network_stays_while_pods_run(isolated: Place) -> None:
    await kept_pod(isolated, isolated.news())
    await isolated.keepers.close()
    with pytest.raises(NetworkUnavailable, match="still run on the isolated network"):
        await SandboxManager.open(isolated.root / "sandboxes", network=Network.LOOPBACK)
    isolated.keepers = await SandboxManager.open(isolated.root / "sandboxes")

    assert isolated.keepers.network is Network.ISOLATED


async def test_kill_9_of_the_agent_at_any_moment_neither_doubles_nor_loses_a_process(
    tmp_path: Path, network: Network
) -> None:
    seed = random.randrange(1 << 32)
    print(f"seed {seed}")
    choose = random.Random(seed)
    runs = tmp_path / "runs"
    runs.touch()
    for _ in range(4):
        said = _agent_killed_after(tmp_path, network, choose.randrange(1, 9), runs)
        async with opened(tmp_path, network) as place:
            kept, lost = await place.keepers.adopt()
            found = {sandbox.spec.id: set(sandbox.processes()) for sandbox in kept}

        created = {pod for what, pod, *_ in said if what == "created"}
        started = {pod for what, pod, *_ in said if what == "started"}
        assert lost == []
        assert created <= found.keys()
        assert started <= {name for name, processes in found.items() if processes == {"main.0"}}
        assert len(found) <= len(created) + 1
    numbers = runs.read_text().split()
    assert all(numbers.count(number) <= 4 for number in numbers)


def _agent_killed_after(root: Path, network: Network, lines: int, runs: Path) -> list[list[str]]:
    command = [sys.executable, "-c", AGENT, str(root), str(network), str(runs)]
    env = {**os.environ, "PYTHONPATH": ":".join(sys.path)}
    agent = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=env)
    assert agent.stdout is not None
    said = [agent.stdout.readline().split() for _ in range(lines)]
    agent.kill()
    said += [line.split() for line in agent.stdout.read().splitlines()]
    agent.wait()
    agent.stdout.close()
    return said


def test_a_torn_last_line_of_a_journal_is_passed_over(tmp_path: Path) -> None:
    head = {"fact": "sandbox", "spec": {"id": "a"}, "keeper": 1, "keeper_start": 2, "boot": "b"}
    started = {"fact": "started", "process": "main.0", "pid": 5, "start": 6, "at": 7.0}
    lines = [json.dumps(head), json.dumps({"fact": "intent", "process": "main.0", "at": 1.0}), json.dumps(started)]
    (tmp_path / shim_journal.NAME).write_text("\n".join(lines) + '\n{"fact":"exited","proc')
    record = shim_journal.read(str(tmp_path))

    assert record is not None
    assert record.processes == {"main.0": {"started": started, "exited": None}}
    assert not record.is_of_this_boot


def test_a_folder_without_a_journal_has_no_record(tmp_path: Path) -> None:
    assert shim_journal.read(str(tmp_path)) is None
