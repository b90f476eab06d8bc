"""Root may run a program as anybody; anybody else may not, and is told so."""

from __future__ import annotations

import os

import pytest

from kit.sandboxes import Place
from shoal.node.sandbox.interface import Exited

pytestmark = pytest.mark.processes


@pytest.mark.skipif(os.getuid() != 0, reason="only root can run programs as others")
async def test_a_user_and_a_group_are_taken_on(place: Place) -> None:
    pod = await place.pod()
    text = await pod.output("id -u; id -g; id -G; echo again > /dev/stdout", uid=4321, gid=8765)

    assert text == "4321\n8765\n8765\nagain\n"


@pytest.mark.skipif(os.getuid() != 0, reason="only root can run programs as others")
async def test_a_command_beside_runs_as_the_same_user(place: Place) -> None:
    pod = await place.pod()
    await pod.shell("exec sleep 999", uid=4321, gid=8765)
    execution = await pod.sandbox.execute("main.0", ("id", "-u"))

    assert [item async for item in execution.output()] == [(1, b"4321\n")]
    assert await execution.wait() == 0


@pytest.mark.skipif(os.getuid() == 0, reason="root may")
async def test_the_error_for_an_ordinary_user_names_the_remedy(place: Place) -> None:
    pod = await place.pod()
    result = await pod.shell("true", uid=4321)

    assert isinstance(result, Exited)
    assert (result.code, result.message) == (
        128,
        "cannot run as user 4321 and group 0: only root can run programs as others. "
        "Leave runAsUser and runAsGroup out, or start shoal as root.",
    )


async def test_ones_own_user_can_always_be_asked_for(place: Place) -> None:
    pod = await place.pod()

    assert await pod.output("id -u", uid=os.getuid(), gid=os.getgid()) == f"{os.getuid()}\n"
