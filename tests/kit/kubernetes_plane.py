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
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from kit import control_plane
from kit.control_plane import ControlPlane
from kit.whole_run import folder_of_the_run, needs_a_control_plane

NODE = "shore"
CONFIG = "shoal.yaml"
PROGRAMS = ("kube-controller-manager", "kube-scheduler")
CONTROLLERS = (
    *control_plane.CONTROLLERS,
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
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Returns when the node says that it is ready."""
        reading, writing = os.pipe()
        self._process = subprocess.Popen(
            [sys.executable, "-m", "shoal", *self._words, "--ready-fd", str(writing)],
            pass_fds=[writing],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            env={name: value for name, value in os.environ.items() if not name.startswith("SHOAL_")},
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
        (self.folder / "clients").mkdir(exist_ok=True)
        write_client_certificates(self.folder / "clients")
        plane = super().start(programs)
        options = [option for amount in ROOM for option in ("--capacity", amount)]
        if (self.folder / CONFIG).exists():
            options += ["--config", str(self.folder / CONFIG)]
        node = NodeProcess(plane.kubeconfig, self.folder / "node", "--name", NODE, *options)
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
            "kube-controller-manager": [f"--controllers={','.join(CONTROLLERS)}", f"--root-ca-file={authority}"],
        }.get(program, ())  # fmt: skip


def write_client_certificates(folder: Path) -> None:
    """An authority for clients, and the certificate the API server shows to nodes."""
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec
    from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

    def named(common: str, *groups: str) -> x509.Name:
        pairs = [(NameOID.ORGANIZATION_NAME, group) for group in groups] + [(NameOID.COMMON_NAME, common)]
        return x509.Name([x509.NameAttribute(kind, value) for kind, value in pairs])

    def signed(subject: x509.Name, key: ec.EllipticCurvePrivateKey, *, ca: bool) -> x509.Certificate:
        builder = x509.CertificateBuilder().subject_name(subject).issuer_name(issuer).public_key(key.public_key())
        builder = builder.serial_number(x509.random_serial_number())
        builder = builder.not_valid_before(now - timedelta(hours=1)).not_valid_after(now + timedelta(days=2))
        builder = builder.add_extension(x509.BasicConstraints(ca=ca, path_length=None), critical=True)
        if not ca:
            builder = builder.add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.CLIENT_AUTH]), critical=False)
        return builder.sign(authority, hashes.SHA256())

    now, issuer = datetime.now(UTC), named("clients of the test")
    authority, own = (ec.generate_private_key(ec.SECP256R1()) for _ in range(2))
    pem = serialization.Encoding.PEM
    (folder / "ca.crt").write_bytes(signed(issuer, authority, ca=True).public_bytes(pem))
    certificate = signed(named("kube-apiserver-kubelet-client", "system:masters"), own, ca=False)
    (folder / "kubelet.crt").write_bytes(certificate.public_bytes(pem))
    (folder / "kubelet.key").write_bytes(
        own.private_bytes(pem, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    )


if __name__ == "__main__":
    control_plane.keep(WorldKeeper, Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3:])
