"""`shoal up`, `status`, `kubeconfig` and `down` as a person uses them, each a process of its own."""

from __future__ import annotations

import json
import os
import stat
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from kit.local_cluster import LocalCluster
from kit.raw_api import Api, Obj
from shoal.apiserver import serving_certificate

pytestmark = pytest.mark.processes

PODS = "/api/v1/namespaces/default/pods"


class Person:
    """Types commands, about one folder."""

    def __init__(self, data: Path) -> None:
        self.data = data

    def types(self, *words: str, code: int = 0) -> str:
        env = {name: value for name, value in os.environ.items() if not name.startswith("SHOAL_")}
        done = subprocess.run(
            [sys.executable, "-m", "shoal", *words],
            env={**env, "SHOAL_DATA": str(self.data)},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        assert done.returncode == code, done.stdout
        return done.stdout

    def api(self) -> Api:
        return LocalCluster(self.data).api()

    def status(self) -> Obj:
        said: Obj = json.loads(self.types("status", "-o", "json"))
        return said


@pytest.fixture
def person(tmp_path: Path) -> Iterator[Callable[[str], Person]]:
    met: list[Person] = []

    def meet(name: str) -> Person:
        met.append(Person(tmp_path / name))
        return met[-1]

    yield meet
    for known in met:
        known.types("down")


def pod(name: str, command: list[str], **spec: Any) -> Obj:
    container = {"name": "main", "image": "x", "command": command}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": {"containers": [container], **spec}}


def until(api: Api, name: str, is_so: Callable[[Obj], bool]) -> Obj:
    with api.watch(PODS, fieldSelector=f"metadata.name={name}", resourceVersion="0") as watch:
        for event in watch:
            if is_so(event["object"].get("status") or {}):
                found: Obj = event["object"]
                return found
    raise AssertionError(f"{name} never became so")


def runs_for_the_second_time(status: Obj) -> bool:
    """Until the node has looked at its pods, what it told in its last life stands there: that they run."""
    (told,) = status["containerStatuses"]
    return told["restartCount"] > 0 and "running" in told["state"]


def test_a_cluster_is_started_looked_at_and_stopped(person: Callable[[str], Person]) -> None:
    anna = person("anna")
    assert "No cluster runs" in anna.types("status", code=3)
    said, started = anna.types("up", "--detach").splitlines()[:2]
    assert said == f"Starting a cluster in {anna.data} ..."
    assert started.startswith("Cluster is up at https://127.0.0.1:")
    assert f"The cluster in {anna.data} is already running at" in anna.types("up", "--detach")

    file = Path(anna.types("kubeconfig", "--path").strip())
    assert anna.types("kubeconfig") == file.read_text()
    assert {name: stat.S_IMODE(path.stat().st_mode) for name, path in
            (("folder", anna.data), ("kubeconfig", file), ("token", anna.data / "token"))} == {
                "folder": 0o700, "kubeconfig": 0o600, "token": 0o600}  # fmt: skip

    status = anna.status()
    assert (status["running"], len(status["nodes"]), status["pods"]) == (True, 1, {})
    assert anna.types("down").endswith("Stopped. `shoal up` starts it again.\n")
    assert "No cluster runs" in anna.types("status", code=3)


def test_a_cluster_with_a_certificate_of_ones_own_is_looked_at(person: Callable[[str], Person], tmp_path: Path) -> None:
    own = serving_certificate.ensure(tmp_path / "own", "127.0.0.1")
    anna = person("anna")
    anna.types("up", "--detach", "--tls-cert", str(own.certificate), "--tls-key", str(own.key))
    assert anna.status()["running"]


def test_what_was_stored_and_the_address_survive_a_stop(person: Callable[[str], Person]) -> None:
    anna = person("anna")
    anna.types("up", "--detach")
    url, config = anna.status()["url"], {"metadata": {"name": "kept"}, "data": {"answer": "42"}}
    kept = anna.api().post("/api/v1/namespaces/default/configmaps", config).ok()
    anna.types("down")
    anna.types("up", "--detach")
    assert anna.status()["url"] == url
    assert anna.api().get("/api/v1/namespaces/default/configmaps/kept").ok() == kept


def test_a_stop_is_to_pods_what_a_shutdown_is_to_a_machine(person: Callable[[str], Person]) -> None:
    anna = person("anna")
    anna.types("up", "--detach")
    api = anna.api()
    api.post(PODS, pod("again", ["sleep", "1000"])).ok()
    api.post(PODS, pod("once", ["sleep", "1000"], restartPolicy="Never")).ok()
    for name in ("again", "once"):
        until(api, name, lambda status: status.get("phase") == "Running")
    assert anna.types("down").splitlines()[-1] == (
        "Stopped. `shoal up` starts it again and restarts 1 pod. 1 pod with restartPolicy Never is not restarted."
    )
    anna.types("up", "--detach")
    api = anna.api()
    again = until(api, "again", runs_for_the_second_time)
    once = until(api, "once", lambda status: status["phase"] == "Failed")
    before = again["status"]["containerStatuses"][0]["lastState"]["terminated"]
    ended = once["status"]["containerStatuses"][0]["state"]["terminated"]
    assert (again["status"]["containerStatuses"][0]["restartCount"], before["exitCode"]) == (1, 143)
    assert (ended["exitCode"], ended["signal"], ended["reason"]) == (143, 15, "Error")


def test_clusters_live_side_by_side(person: Callable[[str], Person]) -> None:
    anna, ben = person("anna"), person("ben")
    anna.types("up", "--detach")
    ben.types("up", "--detach", "--nodes", "2", "--capacity", "nvidia.com/gpu=4")
    for known in (anna, ben):
        known.api().post(PODS, pod("twin", ["sleep", "1000"])).ok()
        until(known.api(), "twin", lambda status: status.get("phase") == "Running")
    assert [room.get("nvidia.com/gpu") for room in anna.status()["nodes"].values()] == [None]
    assert [room["nvidia.com/gpu"] for room in ben.status()["nodes"].values()] == ["4", "4"]
    anna.types("down")
    assert ben.status()["pods"] == {"Running": 1}


def test_nodes_are_as_they_were_unless_asked_and_empty(person: Callable[[str], Person]) -> None:
    anna = person("anna")
    anna.types("up", "--detach", "--nodes", "2")
    nodes = anna.status()["nodes"]
    anna.api().post(
        PODS, pod("there", ["sleep", "1000"], nodeSelector={"kubernetes.io/hostname": sorted(nodes)[1]})
    ).ok()
    until(anna.api(), "there", lambda status: status.get("phase") == "Running")
    anna.types("down")
    said = anna.types("up", "--detach", "--nodes", "1", code=1)
    assert "pods run on node" in said
    assert "Start without --nodes to keep the nodes as they are" in said

    anna.types("up", "--detach")
    assert anna.status()["nodes"] == nodes
    assert anna.api().delete(f"{PODS}/there", {"gracePeriodSeconds": 0}).status == 200
    anna.types("down")
    anna.types("up", "--detach", "--nodes", "1")
    assert len(anna.status()["nodes"]) == 1


def test_a_failed_start_is_reported(person: Callable[[str], Person], tmp_path: Path) -> None:
    anna = person("anna")
    config = tmp_path / "shoal.yaml"
    config.write_text("nodes: none\n")
    said = anna.types("up", "--detach", "--config", str(config), code=1)
    assert said.startswith(f"Error: {config} has 1 mistake:\n  nodes: ")
    anna.data.mkdir(exist_ok=True)
    (anna.data / "store.sqlite").write_text("not a database")
    assert "Traceback" not in anna.types("up", "--detach", code=1)
