"""The real kubectl against the embedded API: one server for the session, one namespace per test."""

from __future__ import annotations

import json
import os
import secrets
import subprocess
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml

from kit.embedded_api_server import Running, serve

ROOT = Path(__file__).resolve().parents[2]
DEADLINE_SECONDS = 120


@dataclass(frozen=True)
class Outcome:
    code: int
    out: str
    err: str

    @property
    def rows(self) -> list[list[str]]:
        """A printed table as lists of cells, header first."""
        return [line.split() for line in self.out.splitlines()]


@dataclass(frozen=True)
class Kubectl:
    """Calls kubectl in a namespace of its own. Objects are given as data and travel over stdin."""

    program: Path
    server: Running
    namespace: str
    environment: dict[str, str]

    def command(self, *arguments: str) -> list[str]:
        return [str(self.program), f"--namespace={self.namespace}", *arguments]

    def __call__(self, *arguments: str, given: Any = None, ok: bool = True, **environment: str) -> Outcome:
        documents = given if isinstance(given, list) else [given]
        text = "\n---\n".join(map(json.dumps, documents)) if given is not None else None
        done = subprocess.run(
            self.command(*arguments), input=text, capture_output=True, text=True, timeout=DEADLINE_SECONDS,
            env={**self.environment, **environment}, stdin=subprocess.DEVNULL if text is None else None, check=False,
        )  # fmt: skip
        if ok:
            assert done.returncode == 0, f"kubectl {' '.join(arguments)}\n{done.stdout}\n{done.stderr}"
        return Outcome(done.returncode, done.stdout, done.stderr)

    def start(self, *arguments: str, **options: Any) -> subprocess.Popen[str]:
        pipe = subprocess.PIPE
        return subprocess.Popen(
            self.command(*arguments), stdout=pipe, stderr=pipe, text=True, env=self.environment, **options
        )

    def read(self, *arguments: str) -> Any:
        """An object or a list as data."""
        return yaml.safe_load(self(*arguments, "-o", "yaml").out)


@pytest.fixture(scope="session")
def program() -> Path:
    folder = subprocess.run(
        [ROOT / "tools" / "control-plane"], check=True, capture_output=True, text=True
    ).stdout.strip()
    return Path(folder) / "kubectl"


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    with serve(tmp_path_factory.mktemp("server")) as running:
        yield running


@pytest.fixture(scope="session")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("home")


@pytest.fixture
def kubectl(program: Path, server: Running, home: Path) -> Kubectl:
    namespace = f"t-{secrets.token_hex(4)}"
    environment = {"KUBECONFIG": str(server.kubeconfig), "HOME": str(home), "PATH": os.environ["PATH"]}
    made = Kubectl(program, server, namespace, environment)
    made("create", "namespace", namespace)
    return made


@pytest.fixture
def pod(kubectl: Kubectl) -> Callable[..., dict[str, Any]]:
    """Makes a pod, by default one that has a node and runs."""

    def make(name: str, *containers: str, placed: bool = True, labels: dict[str, str] | None = None) -> dict[str, Any]:
        listed = [{"name": c, "image": "python", "command": ["sleep", "1d"]} for c in containers or ("main",)]
        meta = {"name": name, "labels": labels or {}}
        kubectl(
            "create",
            "-f",
            "-",
            given={"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": {"containers": listed}},
        )
        if placed:
            kubectl.server.place(name, kubectl.namespace)
        obj: dict[str, Any] = kubectl.read("get", "pod", name)
        return obj

    return make


@pytest.fixture(scope="session")
def widgets(server: Running, program: Path, home: Path) -> str:
    """A custom resource with columns, status and scale; the name of its plural."""
    environment = {"KUBECONFIG": str(server.kubeconfig), "HOME": str(home), "PATH": os.environ["PATH"]}
    kubectl = Kubectl(program, server, "default", environment)
    kubectl("apply", "-f", str(Path(__file__).parent / "widgets.yaml"))
    kubectl("wait", "--for=condition=Established", "crd/widgets.example.com")
    return "widgets.example.com"
