"""A command run beside a process sees what the process sees, and its streams are the caller's."""

from __future__ import annotations

import asyncio
import errno
import os
import resource
import signal
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from kit.sandboxes import Place, Pod
from shoal.node.sandbox.exec_sessions import ExecSessions
from shoal.node.sandbox.interface import Execution, Mount

pytestmark = pytest.mark.processes


async def running(place: Place) -> Pod:
    volume = place.root / "volume"
    volume.mkdir()
    (volume / "file").write_text("seen\n")
    pod = await place.pod()
    await pod.shell("exec sleep 999", cwd="/tmp", env={"A": "1", "B": "2"}, mounts=(Mount("/shoal-w", volume),))
    return pod


async def gathered(execution: Execution) -> dict[int, bytes]:
    streams = {1: b"", 2: b""}
    async for name, data in execution.output():
        streams[name] += data
    return streams


async def test_it_has_the_same_view_environment_and_folder(place: Place) -> None:
    pod = await running(place)
    script = "hostname; cat /shoal-w/file; pwd; echo $A $B; id -u"
    execution = await pod.sandbox.execute("main.0", ("sh", "-c", script), env={"B": "3"})

    assert await gathered(execution) == {1: f"pod\nseen\n/tmp\n1 3\n{os.getuid()}\n".encode(), 2: b""}
    assert await execution.wait() == 0


async def test_streams_are_separate_and_the_exit_code_is_reported(place: Place) -> None:
    pod = await running(place)
    execution = await pod.sandbox.execute("main.0", ("sh", "-c", "cat; echo bad >&2; exit 7"))
    data = os.urandom(1 << 20)
    reading = asyncio.create_task(gathered(execution))
    await execution.write(data)
    await execution.close_stdin()

    assert await reading == {1: data, 2: b"bad\n"}
    assert await execution.wait() == 7


async def test_a_terminal_is_one(place: Place) -> None:
    pod = await running(place)
    script = "test -t 0 && test -t 1 && echo terminal; read size; stty size; read x; echo got $x"
    execution = await pod.sandbox.execute("main.0", ("sh", "-c", script), tty=True)
    await execution.resize(columns=100, rows=40)
    await execution.write(b"now\n")
    await execution.write(b"typed\n")
    text = (await gathered(execution))[1].replace(b"\r", b"")

    assert [line for line in text.split(b"\n") if line not in (b"now", b"typed", b"")] == [
        b"terminal",
        b"40 100",
        b"got typed",
    ]
    assert await execution.wait() == 0


async def test_a_missing_command_is_reported_on_stderr(place: Place) -> None:
    pod = await running(place)
    execution = await pod.sandbox.execute("main.0", ("no-such-program",))

    assert await gathered(execution) == {1: b"", 2: b'exec: "no-such-program": executable file not found in $PATH\n'}
    assert await execution.wait() == 127


async def test_invalid_arguments_are_reported_on_stderr(place: Place) -> None:
    pod = await running(place)
    execution = await pod.sandbox.execute("main.0", ("echo", "a\0b"))

    told = b"exec: argument 1 of the command holds a NUL byte, which no program can be given\n"
    assert await gathered(execution) == {1: b"", 2: told}
    assert await execution.wait() == 128


async def test_killing_it_leaves_the_process_alone(place: Place) -> None:
    pod = await running(place)
    execution = await pod.sandbox.execute("main.0", ("sh", "-c", "sleep 999 & wait"))
    await execution.kill()

    assert await execution.wait() == 128 + signal.SIGKILL
    assert pod.sandbox.processes()["main.0"].exited is None


async def test_it_ends_with_the_process(place: Place) -> None:
    pod = await running(place)
    execution = await pod.sandbox.execute("main.0", ("sleep", "999"))
    await pod.sandbox.signal("main.0", signal.SIGKILL)
    await pod.sandbox.wait("main.0")

    assert await execution.wait() == 128 + signal.SIGKILL
    assert await gathered(execution) == {1: b"", 2: b""}


async def test_output_ends_with_the_command_though_a_child_of_it_holds_the_stream(place: Place) -> None:
    pod = await running(place)
    execution = await pod.sandbox.execute("main.0", ("sh", "-c", "sleep 999 & echo done"))

    assert await gathered(execution) == {1: b"done\n", 2: b""}


async def test_nothing_runs_beside_a_process_that_has_ended(place: Place) -> None:
    pod = await place.pod()
    await pod.output("true")

    with pytest.raises(ProcessLookupError, match=r"main\.0 is not running"):
        await pod.sandbox.execute("main.0", ("true",))


def descriptors(pid: int) -> set[int]:
    """Those it has open now."""
    found = list(Path(f"/proc/{pid}/fd").iterdir())
    return {int(entry.name) for entry in found if os.path.lexists(entry)}  # the list itself had one, too


async def test_errors_of_the_kernel_are_reported_and_leak_nothing(place: Place) -> None:
    pod = await running(place)
    keeper = pod.sandbox.shim_pid
    before = descriptors(keeper)
    free = [number for number in range(max(before) + 8) if number not in before]
    usual = resource.prlimit(keeper, resource.RLIMIT_NOFILE)
    refusals = []
    for limit in free[:7]:  # its view and three pipes take seven: each time one more can be had
        resource.prlimit(keeper, resource.RLIMIT_NOFILE, (limit, usual[1]))
        with pytest.raises(OSError, match="no command can run") as refused:
            await pod.sandbox.execute("main.0", ("true",))
        refusals.append((type(refused.value), str(refused.value).partition(" (")[0], descriptors(keeper)))
    resource.prlimit(keeper, resource.RLIMIT_NOFILE, usual)
    execution = await pod.sandbox.execute("main.0", ("true",))

    assert refusals == [(OSError, "no command can run beside main.0: Too many open files", before)] * 7
    assert await execution.wait() == 0
    assert descriptors(keeper) == before


@pytest.mark.parametrize(
    ("call", "refusal", "tty"),
    [
        pytest.param("fork", BlockingIOError(errno.EAGAIN, "no more processes"), False, id="no process"),
        pytest.param("fork", BlockingIOError(errno.EAGAIN, "no more processes"), True, id="no process on a terminal"),
        pytest.param("openpty", FileNotFoundError(errno.ENOENT, "no terminals here"), True, id="no terminal"),
    ],
)
def test_a_command_that_cannot_begin_leaves_nothing_open(
    monkeypatch: pytest.MonkeyPatch, call: str, refusal: OSError, tty: bool
) -> None:
    def refuse() -> None:
        raise refusal

    monkeypatch.setattr(os, call, refuse)
    before = descriptors(os.getpid())
    charge: Any = SimpleNamespace(pid=os.getpid(), process={"env": {}})
    with pytest.raises(OSError, match=refusal.strerror) as refused:
        ExecSessions().begin(charge, {"argv": ["true"], "env": {}, "tty": tty})

    assert refused.value is refusal
    assert descriptors(os.getpid()) == before
