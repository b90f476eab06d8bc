"""No descendant of a process outlives it, however hard it tried to get away."""

from __future__ import annotations

import asyncio
import os
import signal

import pytest

from kit.sandboxes import Place
from shoal.node.sandbox.shim_client import wait_gone

pytestmark = pytest.mark.processes

# Forks twice, leaves session and group, empties its environment, says its pid and sleeps; its parent goes on
# when the pid has been said.
ESCAPE = """
import os, sys, time
read, write = os.pipe()
os.set_inheritable(write, True)
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        os.setsid() if os.getsid(0) != os.getpid() else None
        os.execve("/bin/sh", ["sh", "-c", f"echo $$ > {sys.argv[1]}; echo >&{write}; exec sleep 999"], {})
    os._exit(0)
os.wait()
os.read(read, 1)
"""


def escape(news: object, *, then: str) -> str:
    return f"import sys; sys.argv = ['', {str(news)!r}]\n{ESCAPE}\n{then}"


async def test_sigkill_reaches_a_daemon_that_left_group_session_and_environment(place: Place) -> None:
    pod = await place.pod()
    news = place.news()
    await pod.python(escape(news.path, then="time.sleep(999)"))
    daemon = int(await news.line())
    await pod.sandbox.signal("main.0", signal.SIGKILL)
    ended = await pod.sandbox.wait("main.0")
    await wait_gone([daemon])

    assert (ended.signal, ended.oom_killed) == (signal.SIGKILL, False)


async def test_the_end_of_the_main_process_is_the_end_of_what_it_left_behind(place: Place) -> None:
    pod = await place.pod()
    news = place.news()
    await pod.python(escape(news.path, then="sys.exit(5)"))
    ended = await pod.sandbox.wait("main.0")
    await wait_gone([int(await news.line())])

    assert ended.code == 5


async def test_what_one_process_left_behind_is_not_taken_for_anothers(place: Place) -> None:
    pod = await place.pod()
    news = place.news()
    child = f"(trap '' TERM; echo $$ > {news.path}; exec sleep 999) & "
    await pod.shell(f"{child} exec sleep 999", name="one.0")
    await pod.shell("exit 0", name="two.0")
    await news.line()
    await pod.sandbox.wait("two.0")

    assert pod.sandbox.processes()["one.0"].exited is None


async def test_sigterm_goes_to_the_whole_group(place: Place) -> None:
    pod = await place.pod()
    news = place.news()
    told = f"trap 'echo child > {news.path}; exit 0' TERM; echo ready > {news.path}"
    child = f"({told}; while :; do sleep 999 & wait; done) &"
    await pod.shell(f"trap 'wait; exit 9' TERM; {child} wait; wait")
    assert await news.line() == "ready"
    await pod.sandbox.signal("main.0", signal.SIGTERM)

    assert await news.line() == "child"
    assert (await pod.sandbox.wait("main.0")).code == 9


async def test_closing_kills_every_process_and_removes_the_pod(place: Place) -> None:
    pod = await place.pod()
    news = place.news()
    await pod.python(escape(news.path, then="time.sleep(999)"))
    daemon = int(await news.line())
    await asyncio.gather(pod.sandbox.close(), pod.sandbox.close())
    await pod.sandbox.close()

    with pytest.raises(ProcessLookupError):
        os.kill(daemon, 0)
    assert await place.keepers.adopt() == ([], [])


async def test_signals_to_a_process_that_has_ended_do_nothing(place: Place) -> None:
    pod = await place.pod()
    await pod.output("true")
    await pod.sandbox.signal("main.0", signal.SIGTERM)
    await pod.sandbox.signal("never-started.0", signal.SIGKILL)
