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
from shoal.node.sandbox import linux
from shoal.node.sandbox.keepers import Keepers, NetworkNotToBeHad
from shoal.node.sandbox.port import Network

async def main(root):
    try:
        await Keepers.open(root / "sandboxes", network=Network.ISOLATED)
    except NetworkNotToBeHad as error:
        print(str(error).partition(":")[0])
    async with opened(root, Network.LOOPBACK) as place:
        pod = await place.pod("its-name")
        print(await pod.output("hostname; echo runs"), end="")
        print((await pod.shell("true", name="mounts.0", mounts=(folder_mount("/mnt", root),))).message)
        print((await pod.shell("true", name="same.0", mounts=(folder_mount(str(root), root),))).process)
        print(place.keepers.network, place.keepers.allowed["privilege"], place.keepers.allowed["mounts"])

linux.enter_own_user_namespace()
for kind in ("user", "mnt", "uts", "net"):
    Path(f"/proc/sys/user/max_{kind}_namespaces").write_text("0")
asyncio.run(main(Path(sys.argv[1])))
"""


def test_pods_run_as_plain_processes(tmp_path: Path) -> None:
    env = {**os.environ, "PYTHONPATH": ":".join(sys.path)}
    done = subprocess.run([sys.executable, "-c", MACHINE, str(tmp_path)], capture_output=True, text=True, env=env)

    assert (done.stderr, done.stdout.splitlines()) == (
        "",
        [
            "pods cannot have networks of their own here",
            os.uname().nodename,
            "runs",
            "mount /mnt: this machine allows no private mounts. `shoal doctor` says why.",
            "same.0",
            "loopback none False",
        ],
    )
