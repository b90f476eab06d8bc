"""A start tells how it went, an end how it came, and both are told again to whoever asks again."""

from __future__ import annotations

import asyncio
import os
import signal
import time
from dataclasses import replace
from itertools import count
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from kit.sandboxes import Place, folder_mount
from shoal.node.sandbox import child_exec, proctree
from shoal.node.sandbox.interface import Exited, ProcessState, Started
from shoal.node.sandbox.process import Process
from shoal.node.sandbox.shim_journal import ShimJournal

pytestmark = pytest.mark.processes


@pytest.mark.parametrize(
    ("script", "code", "number"),
    [
        pytest.param("true", 0, None, id="success"),
        pytest.param("exit 7", 7, None, id="code"),
        pytest.param("kill -TERM $$", None, signal.SIGTERM, id="signal"),
        pytest.param("kill -KILL $$", None, signal.SIGKILL, id="killed by itself is not out of memory"),
        pytest.param("exit 255", 255, None, id="largest code"),
    ],
)
async def test_the_exit_is_reported_as_code_or_signal(
    place: Place, script: str, code: int | None, number: int | None
) -> None:
    pod = await place.pod()
    started = await pod.shell(script)
    ended = await pod.sandbox.wait("main.0")

    assert isinstance(started, Started)
    assert ended == Exited("main.0", ended.at, code, number)
    assert pod.sandbox.processes() == {"main.0": ProcessState(started, ended)}
    assert started.at <= ended.at


@pytest.mark.parametrize(
    ("argv", "code", "message"),
    [
        pytest.param(
            ["no-such-program"], 127, 'exec: "no-such-program": executable file not found in $PATH', id="PATH"
        ),
        pytest.param(["/no/such"], 127, 'exec: "/no/such": No such file or directory', id="absolute"),
        pytest.param(["/etc/hosts"], 126, 'exec: "/etc/hosts": Permission denied', id="not executable"),
        pytest.param(
            ["echo", "a\0b"],
            128,
            "exec: argument 1 of the command holds a NUL byte, which no program can be given",
            id="a NUL byte",
        ),
        pytest.param(
            ["echo", "\ud800"],
            128,
            "exec: argument 1 of the command holds half a character, which no program can be given",
            id="half a character",
        ),
    ],
)
async def test_exec_failures_have_the_exit_codes_of_a_shell(
    place: Place, argv: list[str], code: int, message: str
) -> None:
    pod = await place.pod()
    result = await pod.sandbox.start(pod.process(*argv))

    assert isinstance(result, Exited)
    assert result == Exited("main.0", result.at, code, None, message=message)
    assert await pod.sandbox.wait("main.0") == result


async def test_a_missing_interpreter_is_reported(place: Place) -> None:
    script = place.root / "script"
    script.write_text("#!/no/interpreter -x\n")
    script.chmod(0o755)
    pod = await place.pod()
    result = await pod.sandbox.start(pod.process(str(script)))

    assert isinstance(result, Exited)
    assert result.message == f'exec: "{script}": its interpreter /no/interpreter -x is missing'


async def test_a_place_that_cannot_be_prepared_is_code_128_with_the_path(place: Place) -> None:
    pod = await place.pod()
    no_folder = await pod.shell("true", name="a.0", cwd="/no/folder")
    no_source = await pod.shell("true", name="b.0", mounts=(folder_mount("/data", Path("/no/source")),))
    no_log = await pod.sandbox.start(replace(pod.process("true", name="c.0"), log_file=Path("/no/log")))

    told = [(end.code, end.message) for end in (no_folder, no_source, no_log) if isinstance(end, Exited)]
    assert told == [
        (128, "working folder /no/folder: No such file or directory"),
        (128, "mount /data: the source /no/source: No such file or directory"),
        (128, "/no/log: No such file or directory"),
    ]


async def test_a_variable_that_cannot_be_passed_on_is_named(place: Place) -> None:
    pod = await place.pod()
    ended = await pod.shell("true", env={"GREETING": "a\0b"})

    told = "exec: the value of variable 'GREETING' holds a NUL byte, which no program can be given"
    assert isinstance(ended, Exited)
    assert ended == Exited("main.0", ended.at, 128, None, message=told)


async def test_a_second_start_returns_the_result_of_the_first(place: Place) -> None:
    pod = await place.pod()
    news = place.news()
    process = pod.process("sh", "-c", f"echo run > {news.path}; exec sleep 999")
    first = await pod.sandbox.start(process)
    again = await pod.sandbox.start(process)
    assert await news.line() == "run"
    await pod.sandbox.signal("main.0", signal.SIGKILL)
    await pod.sandbox.wait("main.0")

    assert again == first
    assert await pod.sandbox.start(process) == first


async def test_programs_find_their_environment_folder_and_user(place: Place) -> None:
    pod = await place.pod()
    text = await pod.output(
        "pwd; echo $GREETING; id -u; ulimit -c > /dev/null; umask", cwd="/tmp", env={"GREETING": "hi"}
    )

    assert text == f"/tmp\nhi\n{os.getuid()}\n0022\n"


async def test_processes_of_a_pod_live_side_by_side(place: Place) -> None:
    pod, news = await place.pod(), place.news()
    # Kernels count the memory of a small process, or of one that has just replaced its program, as nothing.
    held = "import time; held = bytearray(64 << 20)"
    await pod.python(f"{held}; print('ready', file=open({str(news.path)!r}, 'w')); time.sleep(999)", name="long.0")
    await pod.shell("exit 3", name="short.0")
    ended = await pod.sandbox.wait("short.0")
    assert await news.line() == "ready"

    states = pod.sandbox.processes()
    assert (ended.code, states["long.0"].exited, states["short.0"].exited) == (3, None, ended)
    used_seconds, resident = pod.sandbox.usage()["long.0"]
    assert used_seconds >= 0
    assert resident > 0


class UnwatchedLoop:
    """A keeper that is busy: it hears of the end of a child before it reads anything the child has said."""

    def watch(self, fd: int, callback: object) -> None:
        """Nothing is read."""

    def unwatch(self, fd: int) -> None:
        """Nothing was watched."""


def waited_for_first(folder: Path, *argv: str) -> tuple[Process, list[Process]]:
    """A process whose end is heard of before its start, and what was told of it."""
    process: dict[str, Any] = {
        "id": "main.0", "argv": list(argv), "env": {}, "cwd": "/", "mounts": [], "uid": None, "gid": None,
        "log_file": str(folder / "log"), "log_max_bytes": 1 << 20, "log_max_files": 1,
        "memory_bytes": None, "cpu_milli": None,
        "hidden": [], "no_new_privs": False,
    }  # fmt: skip
    charge = Process(process, sandbox="pod", journal=ShimJournal(str(folder)), loop=UnwatchedLoop())  # type: ignore[arg-type]
    told: list[Process] = []
    charge.on_state = told.append
    child_exec.note_shim()
    charge.start(SimpleNamespace(base_mounts=lambda: None), scratch="", group=None)  # type: ignore[arg-type]
    _, status = os.waitpid(charge.pid, 0)
    charge.mark_ended(status)
    return charge, told


def test_a_failed_start_is_reported_after_the_child_was_reaped(tmp_path: Path) -> None:
    charge, told = waited_for_first(tmp_path, "/no/such")

    assert told == [charge]
    assert charge.started is None
    assert charge.exited is not None
    assert (charge.exited["code"], charge.exited["message"]) == (
        127,
        'exec: "/no/such": No such file or directory',
    )


def test_nothing_ends_before_it_starts_though_the_child_was_waited_for_first(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(time, "time", count(1.0).__next__)
    monkeypatch.setattr(proctree, "start_time", lambda _: 4711)  # of whoever has the pid by now
    charge, _ = waited_for_first(tmp_path, "/bin/true")
    charge.finish()

    assert (charge.started, charge.exited) == (
        {"pid": charge.pid, "start": 0, "at": 2.0},  # the intent was on record at 1
        {"at": 3.0, "code": 0, "signal": None, "oom_killed": False, "message": ""},
    )


async def test_short_processes_side_by_side_end_after_they_start(place: Place) -> None:
    pod = await place.pod()
    names = [f"main.{number}" for number in range(50)]
    await asyncio.gather(*(pod.sandbox.start(pod.process("/bin/true", name=name)) for name in names))
    ends = await asyncio.gather(*(pod.sandbox.wait(name) for name in names))

    starts = {name: state.started for name, state in pod.sandbox.processes().items()}
    assert [end for end in ends if (start := starts[end.process]) is None or start.at > end.at] == []
