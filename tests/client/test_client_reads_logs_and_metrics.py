"""Logs, commands and measurements through the official Python client."""

from __future__ import annotations

import pytest
from kubernetes import client
from kubernetes.client.exceptions import ApiException
from kubernetes.stream import stream

from kit.embedded_api_server import Running
from shoal.cluster.client import Usage


@pytest.fixture
def talker(core: client.CoreV1Api, space: str, server: Running) -> str:
    container = client.V1Container(name="main", image="python", command=["sleep", "1d"])
    spec = client.V1PodSpec(containers=[container])
    core.create_namespaced_pod(space, client.V1Pod(metadata=client.V1ObjectMeta(name="talker"), spec=spec))
    server.place("talker", space)
    server.node.lines["talker", "main"] = ["one", "two"]
    return "talker"


def test_logs_are_read_whole_and_in_part(core: client.CoreV1Api, space: str, talker: str) -> None:
    assert core.read_namespaced_pod_log(talker, space) == "one\ntwo\n"
    assert core.read_namespaced_pod_log(talker, space, tail_lines=1) == "two\n"


def test_a_negative_number_of_lines_is_refused(core: client.CoreV1Api, space: str, talker: str) -> None:
    with pytest.raises(ApiException) as refused:
        core.read_namespaced_pod_log(talker, space, tail_lines=-1)
    assert refused.value.status == 422
    assert "tailLines: Invalid value: -1: must be greater than or equal to 0" in refused.value.body


def test_a_command_runs_and_its_output_comes_back(core: client.CoreV1Api, space: str, talker: str) -> None:
    out = stream(
        core.connect_get_namespaced_pod_exec, talker, space, command=["echo", "hello"],
        stdin=False, stdout=True, stderr=True, tty=False,
    )  # fmt: skip
    assert out == "hello\n"


def test_a_command_talks_both_ways_and_ends_with_its_code(core: client.CoreV1Api, space: str, talker: str) -> None:
    session = stream(
        core.connect_get_namespaced_pod_exec, talker, space, command=["complain", "sadly", "4"],
        stdin=True, stdout=True, stderr=True, tty=False, _preload_content=False,
    )  # fmt: skip
    session.run_forever(timeout=60)
    assert (session.read_stderr(), session.returncode) == ("sadly 4\n", 4)


def test_a_terminal_receives_its_size(core: client.CoreV1Api, space: str, talker: str) -> None:
    session = stream(
        core.connect_get_namespaced_pod_exec, talker, space, command=["size"],
        stdin=True, stdout=True, stderr=False, tty=True, _preload_content=False,
    )  # fmt: skip
    session.write_channel(4, '{"Width":80,"Height":24}')
    session.run_forever(timeout=60)
    assert session.read_stdout() == "80x24"


def test_measurements_are_read_as_objects(api: client.ApiClient, space: str, talker: str, server: Running) -> None:
    pod = client.CoreV1Api(api).read_namespaced_pod(talker, space)
    server.node.pods[pod.metadata.uid] = {"main": Usage(0.5, 1024 * 1024)}
    found = client.CustomObjectsApi(api).get_namespaced_custom_object(
        "metrics.k8s.io", "v1beta1", space, "pods", talker
    )
    assert found["containers"] == [{"name": "main", "usage": {"cpu": "500000000n", "memory": "1024Ki"}}]
    assert found["window"] == "15s"
