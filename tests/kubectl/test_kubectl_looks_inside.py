"""kubectl logs, exec, top and auth: what reaches through the API to a node, and who may."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from shoal.cluster.client import LogOptions, Usage


@pytest.fixture
def talker(kubectl: Any, pod: Any) -> Any:
    """A pod with two containers that have written three lines each."""
    pod("talker", "one", "two", labels={"app": "talk"})
    node = kubectl.server.node
    for container in ("one", "two"):
        node.lines["talker", container] = [f"{container} {number}" for number in range(3)]
    node.before["talker", "one"] = ["last words"]
    node.asked.clear()
    return kubectl


LOGS = {
    "container": (["talker", "-c", "one"], "one 0\none 1\none 2\n"),
    "tail": (["talker", "-c", "one", "--tail=1"], "one 2\n"),
    "previous": (["talker", "-c", "one", "--previous"], "last words\n"),
    "timestamps": (["talker", "-c", "two", "--tail=1", "--timestamps"], "2030-01-01T00:00:00.000000000Z two 2\n"),
    "prefix": (["talker", "-c", "one", "--tail=1", "--prefix"], "[pod/talker/one] one 2\n"),
    "label": (["-l", "app=talk", "-c", "one", "--tail=1"], "one 2\n"),
}


def test_logs_prints_all_containers(talker: Any) -> None:
    one, two = ("".join(f"{name} {line}\n" for line in range(3)) for name in ("one", "two"))
    assert talker("logs", "talker", "--all-containers").out in (one + two, two + one)  # kubectl keeps no order


@pytest.mark.parametrize(("arguments", "printed"), LOGS.values(), ids=LOGS)
def test_logs_prints_the_requested_lines(talker: Any, arguments: list[str], printed: str) -> None:
    assert talker("logs", *arguments).out == printed


def test_logs_passes_every_limit_on(talker: Any) -> None:
    talker("logs", "talker", "-c", "one", "--since=90s", "--limit-bytes=500")
    talker("logs", "talker", "-c", "one", "--since-time=2030-01-01T00:00:00Z")
    assert talker.server.node.asked == [
        LogOptions("one", since_seconds=90, limit_bytes=500),
        LogOptions("one", since_time="2030-01-01T00:00:00.000000Z"),
    ]


def test_logs_without_a_container_defaults_to_the_first(talker: Any) -> None:
    out = talker("logs", "talker", "--tail=1")
    assert (out.out, out.err) == ("one 2\n", 'Defaulted container "one" out of: one, two\n')


def test_logs_follow_prints_lines_as_they_come(talker: Any) -> None:
    node = talker.server.node

    async def begin(_: Any) -> asyncio.Queue[str | None]:
        return node.more.setdefault(("talker", "one"), asyncio.Queue())

    more = talker.server.call(begin)
    following = talker.start("logs", "-f", "talker", "-c", "one", "--tail=1")
    try:
        assert following.stdout is not None
        assert following.stdout.readline() == "one 2\n"
        for line in ("and then", None):
            talker.server.loop.call_soon_threadsafe(more.put_nowait, line)
        assert following.communicate(timeout=120) == ("and then\n", "")
        assert following.returncode == 0
    finally:
        following.kill()
        following.wait()
        node.more.clear()


REFUSED = {
    "unknown container": (["talker", "-c", "three"], "container three is not valid for pod talker"),
    "no previous run": (["talker", "-c", "two", "-p"], 'previous terminated container "two" in pod "talker" not found'),
    "unknown pod": (["ghost"], 'pods "ghost" not found'),
}


@pytest.mark.parametrize(("arguments", "output"), REFUSED.values(), ids=REFUSED)
def test_logs_of_a_missing_pod_is_an_error(talker: Any, arguments: list[str], output: str) -> None:
    assert output in talker("logs", *arguments, ok=False).err


def test_exec_prints_the_output_and_passes_the_exit_code(talker: Any) -> None:
    assert talker("exec", "talker", "-c", "two", "--", "where").out == "two"
    assert talker("exec", "talker", "-c", "one", "--", "echo", "hello", "there").out == "hello there\n"
    failed = talker("exec", "talker", "-c", "one", "--", "complain", "loudly", "3", ok=False)
    assert (failed.code, failed.out, failed.err) == (3, "", "loudly 3\ncommand terminated with exit code 3\n")


def test_exec_feeds_stdin_to_its_end(talker: Any) -> None:
    text = "all of it\n" * 20_000
    running = talker.start("exec", "-i", "talker", "-c", "one", "--", "cat", stdin=-1)
    out, err = running.communicate(text, timeout=120)
    assert (running.returncode, out == text, err) == (0, True, "")


def test_exec_in_a_missing_pod_is_an_error(talker: Any) -> None:
    assert "container three is not valid" in talker("exec", "talker", "-c", "three", "--", "echo", ok=False).err
    assert 'pods "ghost" not found' in talker("exec", "ghost", "--", "echo", ok=False).err


def test_exec_ends_the_command_when_the_client_leaves(talker: Any) -> None:
    node = talker.server.node
    node.stopped.clear()
    running = talker.start("exec", "talker", "-c", "one", "--", "wait")
    assert running.stdout is not None
    assert running.stdout.read(len("waiting")) == "waiting"
    running.kill()
    running.communicate()
    talker.server.call(lambda _: asyncio.wait_for(node.left.wait(), 120))
    assert node.stopped == ["wait"]


def test_top_shows_what_nodes_and_pods_use(kubectl: Any, pod: Any) -> None:
    uid = pod("busy", "one", "two")["metadata"]["uid"]
    kubectl.server.node.pods[uid] = {"one": Usage(0.25, 64 * 1024**2), "two": Usage(0.5, 32 * 1024**2)}
    assert kubectl("top", "pod", "busy").rows == [["NAME", "CPU(cores)", "MEMORY(bytes)"], ["busy", "750m", "96Mi"]]
    assert kubectl("top", "pods", "--containers", "--no-headers").rows == [
        ["busy", "one", "250m", "64Mi"],
        ["busy", "two", "500m", "32Mi"],
    ]
    node = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "node-1"}}
    kubectl("create", "-f", "-", given=node)
    capacity = '{"status":{"capacity":{"cpu":"3","memory":"4Gi"},"allocatable":{"cpu":"3","memory":"4Gi"}}}'
    kubectl("patch", "node", "node-1", "--subresource=status", "-p", capacity)
    assert kubectl("top", "nodes", "--no-headers").rows == [["node-1", "1500m", "50%", "2048Mi", "50%"]]
    kubectl("delete", "node", "node-1")


def test_auth_can_i_prints_yes_and_lists_everything(kubectl: Any) -> None:
    assert kubectl("auth", "can-i", "create", "pods").out == "yes\n"
    assert kubectl("auth", "can-i", "get", "/livez").out == "yes\n"
    assert kubectl("auth", "can-i", "--list", "--no-headers").rows[0] == ["*.*", "[]", "[]", "[*]"]


def test_auth_whoami_names_the_user(kubectl: Any) -> None:
    assert kubectl("auth", "whoami", "-o", "jsonpath={.status.userInfo.username}").out == "shoal-admin"


def test_a_wrong_token_is_refused(kubectl: Any) -> None:
    refused = kubectl("--token=wrong", "get", "pods", ok=False)
    assert "You must be logged in to the server" in refused.err
