"""Where no namespace can be had, pods still run; what they cannot have is said."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = [pytest.mark.processes, pytest.mark.usefixtures("needs_isolation")]

# A user namespace whose every limit is zero: nothing started in it can make another namespace.
MACHINE = """
import asyncio, os, sys
from pathlib import Path
from kit.sandboxes import folder_mount, opened
from shoal.node.sandbox import syscalls
from shoal.node.sandbox.sandbox_manager import SandboxManager, NetworkUnavailable
from shoal.node.sandbox.interface import Network

PR_CAPBSET_DROP, CAP_SYS_PTRACE = 24, 19
NOT_DUMPABLE = '''
import ctypes, sys, time
ctypes.CDLL(None).prctl(4, 0, 0, 0, 0)
print(file=open(sys.argv[1], "w"))
time.sleep(999)
'''

async def hides(root):
    async with opened(root, Network.LOOPBACK) as place:
        pod, news = await place.pod(), place.news()
        await pod.shell("exec sleep 999", name="open.0")
        await pod.sandbox.start(pod.process(sys.executable, "-I", "-c", NOT_DUMPABLE, str(news.path), name="hidden.0"))
        await news.line()
        try:
            await pod.sandbox.execute("hidden.0", ("true",))
        except OSError as refused:
            print(str(refused).partition(" (")[0])
        execution = await pod.sandbox.execute("open.0", ("sh", "-c", "echo beside"))
        print([data async for _, data in execution.output()], await execution.wait())
        print([name for name, state in pod.sandbox.processes().items() if state.exited is None])

async def runs(root):
    try:
        await SandboxManager.open(root / "sandboxes", network=Network.ISOLATED)
    except NetworkUnavailable as error:
        print(str(error).partition(":")[0])
    async with opened(root, Network.LOOPBACK) as place:
        pod = await place.pod("its-name")
        print(await pod.output("hostname; echo runs"), end="")
        print((await pod.shell("true", name="mounts.0", mounts=(folder_mount("/mnt", root),))).message)
        print((await pod.shell("true", name="same.0", mounts=(folder_mount(str(root), root),))).process)
        print(place.keepers.network, place.keepers.allowed["privilege"], place.keepers.allowed["mounts"])

syscalls.enter_own_user_namespace()
syscalls._check(syscalls._libc.prctl(PR_CAPBSET_DROP, CAP_SYS_PTRACE, 0, 0, 0), "prctl")  # as an ordinary user
for kind in ("user", "mnt", "uts", "net"):
    Path(f"/proc/sys/user/max_{kind}_namespaces").write_text("0")
asyncio.run({"runs": runs, "hides": hides}[sys.argv[1]](Path(sys.argv[2])))
"""


def told(what: str, root: Path) -> tuple[str, list[str]]:
    env = {**os.environ, "PYTHONPATH": ":".join(sys.path)}
    done = subprocess.run([sys.executable, "-c", MACHINE, what, str(root)], capture_output=True, text=True, env=env)
    return done.stderr, done.stdout.splitlines()


def test_pods_run_as_plain_processes(tmp_path: Path) -> None:
    assert told("runs", tmp_path) == (
        "",
        [
            "pods cannot have networks of their own here",
            os.uname().nodename,
            "runs",
            "mount /mnt: this machine allows no private mounts. `shoal doctor` shows why.",
            "same.0",
            "loopback none False",
        ],
    )


def test_a_process_that_may_not_be_looked_into_costs_a_command_and_no_pod(tmp_path: Path) -> None:
    assert told("hides", tmp_path) == (
        "",
        [
            "no command can run beside hidden.0: Permission denied",
            "[b'beside\\n'] 0",
            "['open.0', 'hidden.0']",
        ],
    )
