"""A real control plane for tests: etcd, kube-apiserver and what else a test asks for, on loopback.

One control plane serves every process of a test run. The first that asks starts a *keeper* (this file run
as a program), which starts the others in a fresh folder and writes down how to reach them. Every user holds
a shared file lock while it needs the control plane; the keeper waits for the exclusive one, which the kernel
grants when the last user has let go or died, however it died. Then it kills what it started and leaves.
The programs also die with the keeper (parent-death signal), so nothing outlives a test run.
"""

from __future__ import annotations

import base64
import contextlib
import ctypes
import fcntl
import json
import os
import secrets
import shutil
import signal
import socket
import ssl
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TypeVar

ROOT = Path(__file__).resolve().parents[2]
START_SECONDS = 240  # on a busy machine; an idle one needs four

# Versions up to here are forgotten from the start, as most are in a server that has been running for a while.
FORGOTTEN = 20

# The controllers whose work is part of the API's promises: namespaces empty themselves, owners take their
# dependents along, finished claims are protected. Everything that makes pods is left out.
CONTROLLERS = (
    "garbage-collector-controller",
    "namespace-controller",
    "serviceaccount-controller",
    "persistentvolumeclaim-protection-controller",
)


@dataclass(frozen=True)
class ControlPlane:
    """How to reach it. The token is a member of system:masters."""

    url: str
    token: str
    ca_file: str
    kubeconfig: str
    folder: str


@contextlib.contextmanager
def shared(
    folder: Path, *, programs: Sequence[str] = ("kube-controller-manager",), keeper: str = __file__
) -> Iterator[ControlPlane]:
    """The control plane of `folder`, started if nobody did yet; other processes may use it at the same time.
    `keeper` is the program that starts it and stays: this one, or one that starts more."""
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / "users").open("a") as users, (folder / "starting").open("a") as starting:
        fcntl.flock(starting, fcntl.LOCK_EX)
        fcntl.flock(users, fcntl.LOCK_SH)  # waits for a keeper that is just leaving
        where = folder / "control-plane.json"
        if not where.exists():
            _start_keeper(folder, programs, keeper)
        plane = ControlPlane(**json.loads(where.read_text()))
        fcntl.flock(starting, fcntl.LOCK_UN)
        yield plane


def binaries(programs: Sequence[str] = ()) -> Path:
    """The folder of the programs; built from Go modules the first time, which takes minutes."""
    found = subprocess.run([ROOT / "tools" / "control-plane"], stdout=subprocess.PIPE, text=True, check=True)
    folder = Path(found.stdout.strip())
    missing = [program for program in ("etcd", "kube-apiserver", *programs) if not (folder / program).exists()]
    if missing:
        raise RuntimeError(
            f"{folder} has no {' and no '.join(missing)}. Unset KUBEBUILDER_ASSETS to have them built, "
            "or put them there."
        )
    return folder


def _start_keeper(folder: Path, programs: Sequence[str], file: str) -> None:
    log = (folder / "keeper.log").open("w")
    command = [sys.executable, file, str(folder), str(binaries(programs)), *programs]
    found_from = {**os.environ, "PYTHONPATH": f"{ROOT / 'src'}:{ROOT / 'tests'}"}
    keeper = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=log, start_new_session=True, text=True, env=found_from
    )
    assert keeper.stdout is not None
    if keeper.stdout.readline() != "ready\n":  # one line when all is up, or the end of the file
        keeper.wait()
        raise RuntimeError(f"the control plane did not start:\n{(folder / 'keeper.log').read_text()[-4000:]}")


# What follows runs in the keeper, or in the test that is one.

AnyKeeper = TypeVar("AnyKeeper", bound="Keeper")


def keep(make: type[Keeper], folder: Path, bin_folder: Path, programs: Sequence[str]) -> None:
    with (folder / "users").open("a") as users, contextlib.ExitStack() as stack:
        plane = make(folder, bin_folder, stack).start(programs)
        where = folder / "control-plane.json"
        (folder / "new.json").write_text(json.dumps(asdict(plane)))
        (folder / "new.json").rename(where)
        print("ready", flush=True)
        fcntl.flock(users, fcntl.LOCK_EX)
        where.unlink()


@contextlib.contextmanager
def kept(make: type[AnyKeeper], folder: Path, programs: Sequence[str] = ()) -> Iterator[AnyKeeper]:
    """A control plane that a test has for itself, and of which it may stop parts."""
    folder.mkdir(parents=True, exist_ok=True)
    with contextlib.ExitStack() as stack:
        keeper = make(folder, binaries(programs), stack)
        keeper.plane = keeper.start(programs)
        yield keeper


class NotReady(RuntimeError):
    """With the end of the program's log."""


class Keeper:
    """Starts the programs in order; the exit stack kills them in the opposite one."""

    plane: ControlPlane

    def __init__(self, folder: Path, bin_folder: Path, stack: contextlib.ExitStack) -> None:
        self.folder = folder
        self.bin = bin_folder
        self.stack = stack
        self.deadline = time.monotonic() + START_SECONDS
        self.token = secrets.token_hex(16)
        self.running: dict[str, tuple[subprocess.Popen[bytes], Sequence[str]]] = {}
        self.url = ""

    def start(self, programs: Sequence[str]) -> ControlPlane:
        etcd_port = self._serve(self._try_etcd)
        port = self._serve(lambda: self._try_apiserver(etcd_port))
        url = self.url = f"https://127.0.0.1:{port}"
        forget(f"http://127.0.0.1:{etcd_port}", FORGOTTEN)
        kubeconfig = write_kubeconfig(self.folder, url, self.token)
        for program in programs:
            self._run(program, [*PROGRAM_FLAGS[program](kubeconfig), *self.more_flags(program)])
        ca_file = self.folder / "certificates" / "apiserver.crt"
        return ControlPlane(url, self.token, str(ca_file), str(kubeconfig), str(self.folder))

    def _serve(self, attempt: Callable[[], int]) -> int:
        """The port of a program that is ready. Another process may take a free port before it does; then it is started
        again with others."""
        while True:
            try:
                return attempt()
            except NotReady as ended:
                if "address already in use" not in str(ended) or time.monotonic() > self.deadline:
                    raise

    def _try_etcd(self) -> int:
        shutil.rmtree(self.folder / "etcd", ignore_errors=True)  # of an earlier control plane here
        port, peer_port = free_ports(2)
        etcd = self._run("etcd", etcd_flags(self.folder, port, peer_port))
        self._wait(f"http://127.0.0.1:{port}/health", etcd)
        return port

    def _try_apiserver(self, etcd_port: int) -> int:
        (port,) = free_ports(1)
        flags = [*apiserver_flags(self.folder, etcd_port, port, self.token), *self.more_flags("kube-apiserver")]
        apiserver = self._run("kube-apiserver", flags)
        self._wait(f"https://127.0.0.1:{port}/readyz", apiserver)
        return port

    def more_flags(self, program: str) -> Sequence[str]:
        """What those that start more add to a program's flags."""
        return ()

    # For tests that keep a control plane of their own

    def kill_apiserver(self) -> None:
        """At once, with nothing said."""
        process, _ = self.running["kube-apiserver"]
        process.kill()
        process.wait()

    def begin_apiserver(self) -> None:
        """Another one in the place of one that was killed, on what etcd has; it is not ready yet."""
        self._run("kube-apiserver", self.running["kube-apiserver"][1])

    def await_apiserver(self) -> None:
        """Blocks until it is ready."""
        self.deadline = time.monotonic() + START_SECONDS
        self._wait(f"{self.url}/readyz", self.running["kube-apiserver"][0])

    def pause_etcd(self) -> None:
        self.running["etcd"][0].send_signal(signal.SIGSTOP)

    def resume_etcd(self) -> None:
        self.running["etcd"][0].send_signal(signal.SIGCONT)

    def _run(self, program: str, flags: Sequence[str]) -> subprocess.Popen[bytes]:
        log = self.stack.enter_context((self.folder / f"{program}.log").open("w"))
        process = subprocess.Popen(
            [self.bin / program, *flags], stdin=subprocess.DEVNULL, stdout=log, stderr=log, preexec_fn=die_with_parent
        )
        self.running[program] = (process, flags)
        self.stack.callback(process.wait)
        self.stack.callback(process.kill)
        return process

    def _wait(self, url: str, process: subprocess.Popen[bytes]) -> None:
        """Neither program says when it is ready, so it has to be asked."""
        ssl_context = ssl.create_default_context()
        ssl_context.check_hostname, ssl_context.verify_mode = False, ssl.CERT_NONE
        while process.poll() is None and time.monotonic() < self.deadline:
            with (
                contextlib.suppress(urllib.error.URLError, ConnectionError, TimeoutError),
                urllib.request.urlopen(url, timeout=5, context=ssl_context),
            ):
                return
            time.sleep(0.05)
        name = Path(str(process.args[0])).name  # type: ignore[index]
        raise NotReady(f"{name} is not ready:\n{(self.folder / f'{name}.log').read_text()[-3000:]}")


def forget(etcd_url: str, revision: int) -> None:
    body = json.dumps({"revision": str(revision), "physical": True}).encode()
    with urllib.request.urlopen(f"{etcd_url}/v3/kv/compaction", body, timeout=60):
        return


def etcd_flags(folder: Path, port: int, peer_port: int) -> list[str]:
    url, peer = f"http://127.0.0.1:{port}", f"http://127.0.0.1:{peer_port}"
    return [
        f"--data-dir={folder / 'etcd'}", "--unsafe-no-fsync", "--log-level=warn",
        f"--listen-client-urls={url}", f"--advertise-client-urls={url}",
        f"--listen-peer-urls={peer}", f"--initial-advertise-peer-urls={peer}", f"--initial-cluster=default={peer}",
    ]  # fmt: skip


def apiserver_flags(folder: Path, etcd_port: int, port: int, token: str) -> list[str]:
    key, tokens, authentication = folder / "accounts.key", folder / "tokens.csv", folder / "authentication.json"
    key.write_text(new_signing_key())
    tokens.write_text(f'{token},admin,admin,"system:masters"\n')
    authentication.write_text(json.dumps(ANONYMOUS_PATHS))
    return [
        f"--etcd-servers=http://127.0.0.1:{etcd_port}", "--bind-address=127.0.0.1", f"--secure-port={port}",
        f"--cert-dir={folder / 'certificates'}", f"--token-auth-file={tokens}", "--authorization-mode=Node,RBAC",
        "--enable-admission-plugins=NodeRestriction",
        f"--authentication-config={authentication}", "--service-account-issuer=https://kubernetes.default.svc",
        f"--service-account-key-file={key}", f"--service-account-signing-key-file={key}",
        "--service-cluster-ip-range=10.96.0.0/16", "--allow-privileged=true", "--endpoint-reconciler-type=none",
        "--profiling=false", "--enable-priority-and-fairness=false", "--v=0",
        # Pages come from etcd: a young server's cache still remembers what etcd has forgotten.
        "--feature-gates=ListFromCacheSnapshot=false",
    ]  # fmt: skip


# Everything needs a token except what a load balancer asks; as Shoal's own server has it.
ANONYMOUS_PATHS = {
    "apiVersion": "apiserver.config.k8s.io/v1",
    "kind": "AuthenticationConfiguration",
    "anonymous": {
        "enabled": True,
        "conditions": [{"path": path} for path in ("/healthz", "/livez", "/readyz", "/version")],
    },
}


# Nobody asks these two for anything, so they listen nowhere: a port that is taken cannot stop them.


def controller_manager_flags(kubeconfig: Path) -> list[str]:
    return [
        f"--kubeconfig={kubeconfig}", "--secure-port=0", "--leader-elect=false",
        f"--controllers={','.join(CONTROLLERS)}", "--concurrent-gc-syncs=4", "--concurrent-namespace-syncs=4",
        "--kube-api-qps=200", "--kube-api-burst=400", "--profiling=false",
    ]  # fmt: skip


def scheduler_flags(kubeconfig: Path) -> list[str]:
    return [f"--kubeconfig={kubeconfig}", "--secure-port=0", "--leader-elect=false"]


PROGRAM_FLAGS = {"kube-controller-manager": controller_manager_flags, "kube-scheduler": scheduler_flags}


def write_kubeconfig(folder: Path, url: str, token: str) -> Path:
    authority = folder / "certificates" / "apiserver.crt"
    config = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "test", "cluster": {"server": url, "certificate-authority": str(authority)}}],
        "users": [{"name": "admin", "user": {"token": token}}],
        "contexts": [{"name": "test", "context": {"cluster": "test", "user": "admin"}}],
        "current-context": "test",
    }
    path = folder / "kubeconfig"
    path.write_text(json.dumps(config))
    path.chmod(0o600)
    return path


def new_signing_key() -> str:
    """A P-256 private key as PEM: version 1, 32 secret bytes (below the order), the name of the curve."""
    secret = b"\0" + secrets.token_bytes(31)
    der = bytes.fromhex("30310201010420") + secret + bytes.fromhex("a00a06082a8648ce3d030107")
    return f"-----BEGIN EC PRIVATE KEY-----\n{base64.encodebytes(der).decode()}-----END EC PRIVATE KEY-----\n"


def free_ports(count: int) -> list[int]:
    """Ports nobody listens on now. All are held until the last is found, so that they differ."""
    with contextlib.ExitStack() as stack:
        sockets: list[socket.socket] = [stack.enter_context(socket.socket()) for _ in range(count)]
        for each in sockets:
            each.bind(("127.0.0.1", 0))
        return [each.getsockname()[1] for each in sockets]


def die_with_parent() -> None:
    pr_set_pdeathsig = 1
    ctypes.CDLL(None).prctl(pr_set_pdeathsig, signal.SIGKILL)
    if os.getppid() == 1:  # the parent died before the line above
        os._exit(1)


if __name__ == "__main__":
    keep(Keeper, Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3:])
