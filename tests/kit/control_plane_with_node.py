"""A whole Kubernetes for scenarios: the control plane with a scheduler and the controllers that pods, Services and
nodes need, and one node, `shoal node`, started as people start it.

As in `kit.control_plane`, one serves every process of a test run, and a keeper (this file run as a program) holds it.
The API server shows its nodes a client certificate, as any real one does. The node is asked to stop at the end, so
that no pod of it is left.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest

import shoal
from kit import control_plane
from kit.control_plane import ControlPlane
from kit.node_credentials import apply_roles, make_authority, make_client, node_kubeconfig
from kit.run_folder import folder_of_the_run, needs_a_control_plane
from kit.unprivileged_user import NOBODY, POWERLESS

NODE = "shore"
CONFIG = "shoal.yaml"
PROGRAMS = ("kube-controller-manager", "kube-scheduler")
CONTROLLERS = (
    *control_plane.CONTROLLERS,
    "certificatesigningrequest-signing-controller",
    "deployment-controller",
    "endpointslice-controller",
    "job-controller",
    "node-lifecycle-controller",
    "pod-garbage-collector-controller",
    "replicaset-controller",
    "root-ca-certificate-publisher-controller",
    "taint-eviction-controller",
)
ROOM = ("cpu=64", "memory=64Gi", "nvidia.com/gpu=4", "pods=500")


@pytest.fixture(scope="session")
def kubernetes_plane(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ControlPlane]:
    """For every test of this run that wants a whole Kubernetes; a conftest.py names it to have it."""
    needs_a_control_plane()
    with shared(folder_of_the_run(tmp_path_factory, "kubernetes")) as plane:
        yield plane


@contextmanager
def shared(folder: Path) -> Iterator[ControlPlane]:
    """The Kubernetes of `folder`, started if nobody did yet. A shoal.yaml there says what its node has for images."""
    with control_plane.shared(folder, programs=PROGRAMS, keeper=__file__) as plane:
        yield plane


class NodeProcess:
    """`shoal node` in a process of its own, which a test may kill; every start is a new process."""

    def __init__(self, kubeconfig: str | Path, data: Path, *options: str) -> None:
        self.data = data
        words = ["node", "--kubeconfig", str(kubeconfig), "--data", str(data), "--address", "127.0.0.1", "--port", "0"]
        self._words = [*words, *options]
        self._program = [sys.executable]
        self._env = {name: value for name, value in os.environ.items() if not name.startswith("SHOAL_")}
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def pid(self) -> int:
        assert self._process is not None
        return self._process.pid

    def add(self, *options: str) -> None:
        self._words += options

    def run_as_ordinary_user(self, python: str, home: Path) -> None:
        """Whose `python` it is; all that is in `home` is given to that user."""
        self._program = [*POWERLESS, python]
        site = next(path for path in sys.path if path.endswith("site-packages"))
        found_in = f"{Path(shoal.__file__).parents[1]}:{site}"
        self._env = {"PATH": "/usr/bin:/bin", "HOME": str(home), "PYTHONPATH": found_in, "PYTHONDONTWRITEBYTECODE": "1"}
        for path in (home, *home.rglob("*")):
            os.chown(path, NOBODY, NOBODY)

    def start(self) -> None:
        """Returns when the node says that it is ready."""
        reading, writing = os.pipe()
        self._process = subprocess.Popen(
            [*self._program, "-m", "shoal", *self._words, "--ready-fd", str(writing)],
            pass_fds=[writing],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            env=self._env,
            cwd="/",
        )
        os.close(writing)
        with os.fdopen(reading, "rb") as word:
            said = word.read()
        if said != b"ready\n":
            raise AssertionError(f"the node did not start: {self._process.communicate()[1].decode()}\n{self.log()}")

    def kill(self) -> None:
        """As the kernel would: at once, with nothing said."""
        assert self._process is not None
        self._process.kill()
        self._process.communicate()

    def stop(self) -> None:
        """As Ctrl-C does: its pods end first."""
        self._end(signal.SIGINT)

    def leave(self) -> None:
        """As a service manager does: its pods go on."""
        self._end(signal.SIGTERM)

    def _end(self, by: signal.Signals) -> None:
        assert self._process is not None
        self._process.send_signal(by)
        said = self._process.communicate()[1].decode()
        assert self._process.returncode == 0, f"{said}\n{self.log()}"

    def log(self) -> str:
        file = self.data / "shoal.log"
        return file.read_text() if file.exists() else ""


# What follows runs in the keeper.


class WorldKeeper(control_plane.Keeper):
    def start(self, programs: Sequence[str]) -> ControlPlane:
        clients = self.folder / "clients"
        clients.mkdir(exist_ok=True)
        make_authority(clients)
        make_client(clients, "kubelet", "kube-apiserver-kubelet-client", "system:masters")
        plane = super().start(programs)
        apply_roles(self.bin / "kubectl", plane.kubeconfig)
        options = [option for amount in ROOM for option in ("--capacity", amount)]
        if (self.folder / CONFIG).exists():
            # Those images may lie in the home of the user who runs the tests, where pods with users of their own fail.
            options += ["--config", str(self.folder / CONFIG), "--allow-root"]
        credentials = node_kubeconfig(plane, NODE, self.folder / "credentials")
        node = NodeProcess(credentials, self.folder / "node", *options)
        node.start()
        self.stack.callback(node.stop)
        return plane

    def more_flags(self, program: str) -> Sequence[str]:
        clients = self.folder / "clients"
        authority = self.folder / "certificates" / "apiserver.crt"
        return {
            "kube-apiserver": [
                f"--client-ca-file={clients / 'ca.crt'}", f"--kubelet-client-certificate={clients / 'kubelet.crt'}",
                f"--kubelet-client-key={clients / 'kubelet.key'}",
            ],
            "kube-controller-manager": [
                f"--controllers={','.join(CONTROLLERS)}", f"--root-ca-file={authority}",
                f"--cluster-signing-cert-file={clients / 'ca.crt'}", f"--cluster-signing-key-file={clients / 'ca.key'}",
            ],
        }.get(program, ())  # fmt: skip


if __name__ == "__main__":
    control_plane.keep(WorldKeeper, Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3:])
