"""A process over its memory limit is killed and told as such; one that was killed otherwise is not."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest

from kit.sandboxes import Place
from shoal.node.sandbox import cgroups

pytestmark = [
    pytest.mark.processes,
    pytest.mark.skipif("memory control groups" not in cgroups.find()[1]["memory"], reason=cgroups.find()[1]["memory"]),
]

EAT = "data = []\nwhile True:\n    data.append(bytearray(8 << 20))"


def there(path: Path) -> bool:
    return path.exists()


async def test_a_process_over_its_limit_is_killed_for_memory(loopback: Place) -> None:
    pod = await loopback.pod()
    await pod.python(EAT, memory_bytes=64 << 20)
    ended = await pod.sandbox.wait("main.0")

    assert (ended.signal, ended.oom_killed) == (signal.SIGKILL, True)


async def test_an_oom_killed_child_is_reported_when_the_process_fails(loopback: Place) -> None:
    pod = await loopback.pod()
    script = f"import subprocess, sys\nsys.exit(subprocess.call([sys.executable, '-c', {EAT!r}]) != 0)"
    await pod.python(script, memory_bytes=64 << 20)
    ended = await pod.sandbox.wait("main.0")

    assert ended.oom_killed


async def test_a_process_within_its_limit_ends_as_any_other(loopback: Place) -> None:
    pod = await loopback.pod()
    await pod.shell("exit 3", memory_bytes=64 << 20)
    ended = await pod.sandbox.wait("main.0")

    assert (ended.code, ended.oom_killed) == (3, False)


async def test_a_limited_process_killed_by_a_signal_is_not_oom_killed(loopback: Place) -> None:
    pod = await loopback.pod()
    await pod.shell("exec sleep 999", memory_bytes=64 << 20)
    started = pod.sandbox.processes()["main.0"].started
    assert started is not None
    os.kill(started.pid, signal.SIGKILL)
    ended = await pod.sandbox.wait("main.0")

    assert (ended.signal, ended.oom_killed) == (signal.SIGKILL, False)


async def test_groups_of_a_lost_sandbox_are_removed(loopback: Place) -> None:
    pod = await loopback.pod()
    await pod.shell("exec sleep 999", memory_bytes=64 << 20)
    place, _ = cgroups.find()
    assert place is not None
    group = Path(place.folders["memory"], loopback.keepers.cluster, pod.sandbox.spec.id, "main.0")
    before = there(group)
    os.kill(pod.sandbox.shim_pid, signal.SIGKILL)
    await loopback.keepers.remove(pod.sandbox.spec.id)

    assert (before, there(group)) == (True, False)
