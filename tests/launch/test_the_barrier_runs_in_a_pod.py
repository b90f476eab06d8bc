"""The barrier as a command: its environment, the way to a server, and a whole run against one."""

from __future__ import annotations

import contextlib
import http.server
import json
import os
import re
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from kit import embedded_api_server
from kit.api_objects import serve
from kit.frameworks import framework, role
from kit.raw_api import JSON_PATCH, Api
from shoal.dialects.framework import DIALECT
from shoal.kube.objects import Obj
from shoal.launch.framework_barrier import connection
from shoal.launch.framework_barrier.connection import ConnectionConfig, ConnectionConfigError
from shoal.launch.framework_barrier.environment import BarrierEnvironmentInvalid, Environment, read
from shoal.launch.framework_barrier.framework_client import FrameworkReader, ReadFailed

IDENTITY = {"FC_FRAMEWORK_NAMESPACE": "default", "FC_FRAMEWORK_NAME": "gang"}
FRAMEWORKS = "/apis/frameworkcontroller.microsoft.com/v1/namespaces/default/frameworks"


# --- environment -----------------------------------------------------------------------------------------------------


def test_defaults_are_ten_seconds_and_ten_minutes():
    assert read(IDENTITY) == Environment("default", "gang", 10, 600)


def test_variables_override_the_defaults():
    said = {
        **IDENTITY,
        "BARRIER_CHECK_INTERVAL_SEC": "5",
        "BARRIER_CHECK_TIMEOUT_SEC": "1200",
        "KUBE_APISERVER_ADDRESS": "http://127.0.0.1:8080",
        "KUBECONFIG": "/tmp/config",
    }

    assert read(said) == Environment("default", "gang", 5, 1200, "http://127.0.0.1:8080", "/tmp/config")


def test_all_mistakes_of_the_environment_are_listed():
    given = "is not set; the controller gives it to every container of a Framework's pod"
    with pytest.raises(BarrierEnvironmentInvalid) as refused:
        read({"BARRIER_CHECK_INTERVAL_SEC": "4", "BARRIER_CHECK_TIMEOUT_SEC": "1h"})

    assert str(refused.value).splitlines() == [
        f"FC_FRAMEWORK_NAMESPACE {given}",
        f"FC_FRAMEWORK_NAME {given}",
        "BARRIER_CHECK_INTERVAL_SEC is '4'; it must be a whole number of seconds, 5 or more",
        "BARRIER_CHECK_TIMEOUT_SEC is '1h'; it must be a whole number of seconds, from 60 to 1200",
    ]


@pytest.mark.parametrize("seconds", ["59", "1201"])
def test_the_time_out_has_limits(seconds: str):
    with pytest.raises(BarrierEnvironmentInvalid):
        read({**IDENTITY, "BARRIER_CHECK_TIMEOUT_SEC": seconds})


# --- the way to the server -------------------------------------------------------------------------------------------


def kubeconfig(folder: Path, cluster: Obj, user: Obj) -> str:
    path = folder / "config"
    path.write_text(
        yaml.safe_dump(
            {
                "current-context": "here",
                "contexts": [{"name": "here", "context": {"cluster": "c", "user": "u"}}],
                "clusters": [{"name": "c", "cluster": cluster}],
                "users": [{"name": "u", "user": user}],
            }
        )
    )
    return str(path)


def found(folder: Path, user: Obj, *, server: str = "") -> ConnectionConfig:
    path = kubeconfig(folder, {"server": "http://10.0.0.1:8001/"}, user)
    return connection.find(Environment("default", "gang", server=server, kubeconfig=path), {})


def test_a_kubeconfig_shows_its_token(tmp_path: Path):
    (tmp_path / "token").write_text("from a file\n")

    assert found(tmp_path, {"token": "t"}) == ConnectionConfig("http://10.0.0.1:8001", {"Authorization": "Bearer t"})
    assert found(tmp_path, {"tokenFile": "token"}).request_credentials().headers == {
        "Authorization": "Bearer from a file"
    }
    assert found(tmp_path, {}).request_credentials().headers == {}


def test_an_address_wins_over_the_kubeconfigs(tmp_path: Path):
    assert found(tmp_path, {"token": "t"}, server="http://10.0.0.9") == ConnectionConfig(
        "http://10.0.0.9", {"Authorization": "Bearer t"}
    )


def test_an_address_alone_needs_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    assert connection.find(Environment("default", "gang", server="127.0.0.1:8080"), {}) == ConnectionConfig(
        "http://127.0.0.1:8080"
    )


def test_item_18_the_service_account_wins_over_the_kubeconfig_of_the_home_folder_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    (tmp_path / ".kube").mkdir()
    path = kubeconfig(tmp_path / ".kube", {"server": "http://10.0.0.1:8001/"}, {"token": "t"})
    monkeypatch.setenv("HOME", str(tmp_path))
    of_pod = ConnectionConfig("https://10.96.0.1:443")
    monkeypatch.setattr("shoal.launch.framework_barrier.connection.in_cluster", lambda _: of_pod)

    assert connection.find(Environment("default", "gang"), {}) == of_pod
    assert connection.find(Environment("default", "gang", kubeconfig=path), {}).url == "http://10.0.0.1:8001"


@pytest.mark.parametrize("text", ["current-context: nowhere", "[1]", ": :", "clusters: 3"])
def test_a_kubeconfig_that_cannot_be_used_is_named(tmp_path: Path, text: str):
    path = tmp_path / "config"
    path.write_text(text)
    with pytest.raises(ConnectionConfigError, match="kubeconfig"):
        connection.from_kubeconfig(path)


@pytest.mark.parametrize(
    ("server", "why"),
    [
        ("https://h:x", "should be an address such as https://10.0.0.1:6443, not 'https://h:x'"),
        ("h:99999", "should be an address such as https://10.0.0.1:6443, not 'h:99999'"),
        ("http://me:secret@h", "should be an address only: users and passwords have no place in it"),
    ],
)
def test_an_invalid_address_is_reported(server: str, why: str) -> None:
    with pytest.raises(ConnectionConfigError) as refused:
        connection.find(Environment("default", "gang", server=server), {})
    assert str(refused.value) == f"KUBE_APISERVER_ADDRESS {why}"


def test_a_missing_connection_is_reported_with_what_was_tried(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    with pytest.raises(ConnectionConfigError, match=re.escape("KUBECONFIG and ~/.kube/config name no file")):
        connection.find(Environment("default", "gang"), {})


# --- a whole run -----------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[embedded_api_server.Running]:
    with embedded_api_server.serve(tmp_path_factory.mktemp("server")) as started:
        serve(Api(started.url, started.token, str(started.ca_file)), DIALECT.crd())
        yield started


@pytest.fixture
def api(server: embedded_api_server.Running) -> Api:
    return Api(server.url, server.token, str(server.ca_file))


def set_addresses(api: Api, name: str, *ips: str | None) -> None:
    tasks = [{"index": index, "attemptStatus": {"podIP": ip}} for index, ip in enumerate(ips)]
    status = {"attemptStatus": {"taskRoleStatuses": [{"name": "worker", "taskStatuses": tasks}]}}
    patch = [{"op": "add", "path": "/status", "value": status}]
    api.patch(f"{FRAMEWORKS}/{name}/status", patch, type=JSON_PATCH).ok()


def make(api: Api, name: str, number: int = 2) -> None:
    api.post(FRAMEWORKS, {**framework(role("worker", number)), "metadata": {"name": name}}).ok()


class Barrier:
    """`shoal barrier` in a process of its own; its sentences one by one as they come."""

    def __init__(self, folder: Path, variables: dict[str, str]) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-m", "shoal", "barrier", "--in", str(folder), "--to", str(folder / "mount")],
            env={"PATH": os.environ["PATH"], "HOME": str(folder), **variables},
            stderr=subprocess.PIPE,
            text=True,
        )

    def says(self) -> str:
        assert self.process.stderr is not None
        return self.process.stderr.readline().strip()

    def ends(self) -> tuple[int, list[str]]:
        _, rest = self.process.communicate(timeout=120)
        return self.process.returncode, rest.splitlines()


def variables(server: embedded_api_server.Running, name: str, **more: str) -> dict[str, str]:
    return {
        "FC_FRAMEWORK_NAMESPACE": "default",
        "FC_FRAMEWORK_NAME": name,
        "KUBECONFIG": str(server.kubeconfig),
        "BARRIER_CHECK_INTERVAL_SEC": "999",  # a change must be heard of, not looked for
        **more,
    }


@pytest.mark.processes
def test_scenario_44_it_passes_the_moment_the_last_address_is_known(
    server: embedded_api_server.Running, api: Api, tmp_path: Path
):
    make(api, "gang")
    set_addresses(api, "gang", "10.0.0.1", None)
    barrier = Barrier(tmp_path, variables(server, "gang"))
    assert barrier.says() == "barrier: 1 of 2 tasks have an address"
    set_addresses(api, "gang", "10.0.0.1", "10.0.0.2")

    assert barrier.ends() == (0, ["barrier: passed: 2 of 2 tasks have an address"])
    for folder in (tmp_path, tmp_path / "mount"):
        assert "export FB_WORKER_IPS=10.0.0.1,10.0.0.2" in (folder / "injector.sh").read_text().splitlines()
        assert json.loads((folder / "framework.json").read_text())["metadata"]["name"] == "gang"


@pytest.mark.processes
def test_a_framework_deleted_meanwhile_is_hopeless(server: embedded_api_server.Running, api: Api, tmp_path: Path):
    make(api, "short")
    barrier = Barrier(tmp_path, variables(server, "short"))
    assert barrier.says() == "barrier: 0 of 2 tasks have an address"
    api.delete(f"{FRAMEWORKS}/short").ok()
    sentence = "there is no Framework default/short; a barrier runs in the pods of a Framework that exists"

    assert barrier.ends() == (210, [f"barrier: {sentence}"])
    assert list(tmp_path.iterdir()) == []


@pytest.mark.processes
def test_a_wrong_environment_is_hopeless_and_no_server_is_a_failure(tmp_path: Path):
    code, said = Barrier(tmp_path, {}).ends()
    assert (code, len(said)) == (210, 2)

    code, said = Barrier(tmp_path, IDENTITY).ends()
    assert code == 1
    assert said[0].startswith("barrier: there is no way to an API server: ")


@pytest.mark.processes
def test_an_unwritable_folder_is_a_failure(server: embedded_api_server.Running, api: Api, tmp_path: Path):
    make(api, "none", number=0)
    (tmp_path / "mount").write_text("in the way")
    code, said = Barrier(tmp_path, variables(server, "none")).ends()

    assert code == 1
    assert said[-1] == (f"barrier: cannot write to {tmp_path}/mount: File exists; mount a volume at {tmp_path}/mount")


class _Server(http.server.BaseHTTPRequestHandler):
    """A server that lets nobody watch: its answers are played one after the other."""

    reads: list[tuple[int, Obj]] = []  # noqa: RUF012 - replaced by each test
    paths: list[str] = []  # noqa: RUF012

    def do_GET(self) -> None:
        self.paths.append(self.path)
        code, answer = (403, {"message": "no watch for you"}) if "watch=" in self.path else self.reads.pop(0)
        body = json.dumps(answer).encode()
        self.send_response(code)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: Any) -> None:
        """Nothing."""


@contextlib.contextmanager
def playing(*reads: tuple[int, Obj]) -> Iterator[FrameworkReader]:
    handler = type("Playing", (_Server,), {"reads": list(reads), "paths": []})
    with http.server.HTTPServer(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        yield FrameworkReader(ConnectionConfig(f"http://127.0.0.1:{server.server_port}"), "default", "gang")
        server.shutdown()
        thread.join()


def test_without_a_watch_the_interval_decides():
    from shoal.launch.framework_barrier.barrier import wait

    empty = {**framework(role("worker", 1)), "metadata": {"name": "gang", "resourceVersion": "1"}}
    tasks = [{"attemptStatus": {"podIP": "10.0.0.1"}}]
    ready = {
        **empty,
        "status": {"attemptStatus": {"taskRoleStatuses": [{"name": "worker", "taskStatuses": tasks}]}},
    }
    with playing((200, empty), (500, {"message": "busy"}), (200, ready)) as reader:
        said: list[str] = []
        verdict = wait(reader, interval_seconds=0.01, timeout_seconds=60, report=said.append)

    assert verdict.code == 0
    assert said == [
        "0 of 1 tasks have an address",
        "the API server answered 500: busy",
        "1 of 1 tasks have an address",
    ]


def test_a_silent_server_is_not_waited_for_beyond_the_timeout():
    with socket.create_server(("127.0.0.1", 0)) as silent:
        reader = FrameworkReader(ConnectionConfig(f"http://127.0.0.1:{silent.getsockname()[1]}"), "default", "gang")
        with pytest.raises(ReadFailed, match="timed out"):
            reader.read(0.05)
