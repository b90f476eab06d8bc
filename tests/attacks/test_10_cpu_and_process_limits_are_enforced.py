"""A pod gets no more processor time than its limit says, and a pod that forks without end stops at its own limit."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from kit.pods import config, container, pod, running_agent, wait_for_pod
from kit.sandboxes import Place, opened
from shoal.cluster.embedded import EmbeddedCluster
from shoal.kube.kinds import POD
from shoal.kube.objects import Obj
from shoal.local.config import load
from shoal.node import host_checks
from shoal.node.host_checks import Finding
from shoal.node.sandbox import cgroups
from shoal.node.sandbox.cgroups import Cgroup, Limits
from shoal.node.sandbox.interface import Network

pytestmark = pytest.mark.processes

PLACE, WORDS = cgroups.find()
FOLDERS = PLACE.folders if PLACE is not None else {}
needs_cpu = pytest.mark.skipif("cpu" not in FOLDERS, reason=WORDS["cpu"])
needs_pids = pytest.mark.skipif("pids" not in FOLDERS, reason=WORDS["pids"])

BURN = """
import os, threading, time
while time.process_time() < 0.1:
    pass
open(os.environ["NEWS"], "w").write("burnt\\n")
threading.Event().wait()
"""
# Starts processes until it may not, says how many there were, and holds them.
FORK = """
import os, threading
count = 0
try:
    while count < 200:
        if os.fork() == 0:
            threading.Event().wait()
        count += 1
except BlockingIOError:
    pass
open(os.environ["NEWS"], "w").write(f"{count}\\n")
threading.Event().wait()
"""
LIMIT = 40


@pytest.fixture
async def place(tmp_path: Path) -> AsyncIterator[Place]:
    async with opened(tmp_path, Network.LOOPBACK) as place:
        yield place


@pytest.fixture
async def limited(tmp_path: Path) -> AsyncIterator[Place]:
    async with opened(tmp_path, Network.LOOPBACK, pids_limit=LIMIT) as place:
        yield place


def folder(controller: str, place: Place, *below: str) -> Path:
    return Path(FOLDERS[controller], place.keepers.cluster, *below)


def read(path: Path) -> str:
    return path.read_text().strip()


@needs_cpu
async def test_a_process_is_throttled_to_its_share_of_a_processor(place: Place) -> None:
    pod = await place.pod()
    news = place.news()
    await pod.python(BURN, cpu_milli=100, env={"NEWS": str(news.path)})
    assert await news.line() == "burnt"
    stat = read(folder("cpu", place, pod.sandbox.spec.id, "main.0", "cpu.stat"))
    throttled = dict(line.split() for line in stat.splitlines())["nr_throttled"]

    assert int(throttled) > 0


@needs_pids
async def test_the_containers_of_a_pod_share_its_process_limit_and_other_pods_have_their_own(limited: Place) -> None:
    counts = []
    for name, container_id in (("a", "main.0"), ("a", "second.0"), ("b", "main.0")):
        news = limited.news()
        sandbox = counts[0][0] if counts and name == "a" else await limited.pod(name)
        await sandbox.python(FORK, name=container_id, env={"NEWS": str(news.path)})
        counts.append((sandbox, int(await news.line())))

    first, second, other = (count for _, count in counts)
    assert (0 < first < LIMIT, 0 <= second < 5, other) == (True, True, first)


@needs_pids
async def test_a_command_beside_a_container_counts_as_its_pod(limited: Place) -> None:
    pod = await limited.pod()
    news = limited.news()
    await pod.python(FORK, env={"NEWS": str(news.path)})
    await news.line()
    beside = await pod.sandbox.execute("main.0", ("sh", "-c", "true & true & true & true & wait"))
    said = b"".join([data async for _, data in beside.output()])

    assert b"fork" in said.lower()
    assert await beside.wait() != 0


@needs_pids
async def test_pids_of_a_pod_are_limited_to_a_quarter_of_the_machine_by_default(place: Place) -> None:
    pod = await place.pod()
    await pod.shell("exec sleep 999")

    assert read(folder("pids", place, pod.sandbox.spec.id, "pids.max")) == str(cgroups.default_pids_limit())


@needs_pids
async def test_no_limit_makes_no_group(tmp_path: Path) -> None:
    async with opened(tmp_path, Network.LOOPBACK, pids_limit=0) as place:
        pod = await place.pod()
        await pod.shell("exec sleep 999")

        assert not folder("pids", place).exists()


@needs_pids
async def test_many_pods_that_come_and_go_do_not_take_the_groups_from_each_other(place: Place) -> None:
    for _ in range(20):
        one, other = await place.pod("one"), await place.pod("other")
        assert [await one.output("echo 1"), await other.output("echo 2")] == ["1\n", "2\n"]
        await one.sandbox.close()
        await other.sandbox.close()


@needs_cpu
async def test_the_limit_of_a_container_is_the_limit_of_its_process(tmp_path: Path) -> None:
    script = """
    own() { sed -n "s/^[0-9]*:$1:\\(.*\\)/\\1/p" /proc/self/cgroup; }
    cat /sys/fs/cgroup/cpu$(own cpu)/cpu.cfs_quota_us 2>/dev/null || cat /sys/fs/cgroup$(own '')/cpu.max
    """
    limits = {"resources": {"limits": {"cpu": "1500m"}}, "terminationMessagePolicy": "FallbackToLogsOnError"}
    cluster = await EmbeddedCluster.open(":memory:")
    async with opened(tmp_path, Network.LOOPBACK) as place:
        settings = config(tmp_path / "data", caller_env={"PATH": os.environ["PATH"]}, working_dir="/")
        async with running_agent(cluster, place.keepers, settings):
            made = pod("p", container("main", "sh", "-c", f"{script}\nexit 1", **limits), restartPolicy="Never")
            await cluster.create(POD, made, "default")
            ended = await wait_for_pod(cluster, "p", has_ended)
    await cluster.close()

    assert message_of(ended) in ("150000\n", "150000 100000\n")


def has_ended(obj: Obj | None) -> bool:
    return ((obj or {}).get("status") or {}).get("phase") == "Failed"


def message_of(obj: Obj | None) -> str:
    state = ((obj or {}).get("status") or {})["containerStatuses"][0]["state"]
    return str(state["terminated"].get("message") or "")


def test_the_second_version_limits_processes_per_pod_and_the_rest_per_process(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    written: list[tuple[str, str]] = []
    monkeypatch.setattr(
        cgroups, "_write", lambda path, text: written.append((str(Path(path).relative_to(tmp_path)), text))
    )
    place = cgroups.CgroupRoot(2, dict.fromkeys(cgroups.CONTROLLERS, str(tmp_path)))
    group = Cgroup(place, "c", "p", "main.0", Limits(memory_bytes=1 << 30, cpu_milli=5, pids=100))
    group.make()
    group.enter()
    group.remove()
    cgroups.remove_pod(place, "c", "p")

    assert written == [
        ("c/cgroup.subtree_control", "+memory"),
        ("c/p/cgroup.subtree_control", "+memory"),
        ("c/cgroup.subtree_control", "+cpu"),
        ("c/p/cgroup.subtree_control", "+cpu"),
        ("c/cgroup.subtree_control", "+pids"),
        ("c/p/pids.max", "100"),
        ("c/p/main.0/memory.max", str(1 << 30)),
        ("c/p/main.0/memory.swap.max", "0"),
        ("c/p/main.0/memory.oom.group", "1"),
        ("c/p/main.0/cpu.max", "1000 100000"),
        ("c/p/main.0/cgroup.procs", str(os.getpid())),
    ]
    assert list(tmp_path.iterdir()) == []


def test_limits_that_are_not_enforced_are_reported_with_their_cost(monkeypatch: pytest.MonkeyPatch) -> None:
    words = {"memory": "memory control groups below /x", "cpu": "/x does not hand cpu on", "pids": "none here"}
    monkeypatch.setattr(cgroups, "find", lambda: (cgroups.CgroupRoot(2, {"memory": "/x"}), words))
    found = {finding.name: finding for finding in host_checks.run_checks()}

    assert [found[name] for name in ("memory limits", "cpu limits", "process limits")] == [
        Finding("memory limits", True, "memory control groups below /x"),
        Finding(
            "cpu limits",
            False,
            "/x does not hand cpu on",
            "cpu limits are not enforced: a pod may use every processor of the machine",
        ),
        Finding(
            "process limits",
            False,
            "none here",
            "the number of a pod's processes is not limited: one that forks without end takes what the machine has",
        ),
    ]


@pytest.mark.parametrize(("written", "limit"), [("{}", None), ("pod_pids_limit: 4096", 4096), ("pod_pids_limit: 0", 0)])
def test_the_process_limit_is_a_setting(tmp_path: Path, written: str, limit: int | None) -> None:
    (tmp_path / "shoal.yaml").write_text(written)

    assert load(tmp_path / "shoal.yaml").settings.pod_pids_limit == limit
