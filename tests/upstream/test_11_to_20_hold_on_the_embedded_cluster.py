"""The same promises on a cluster as `shoal up` starts it, by requests as any client sends them."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from kit.local_cluster import LocalCluster
from kit.raw_api import JSON_PATCH, Api, Space
from shoal.dialects import framework, volcano
from shoal.kube.kinds import Kind
from shoal.kube.objects import Obj
from shoal.scheduler.api.hypernodes import HYPER_NODE
from shoal.scheduler.api.pod_groups import QUEUE

pytestmark = pytest.mark.processes

QUEUES = "/apis/scheduling.volcano.sh/v1beta1/queues"
HYPER_NODES = "/apis/topology.volcano.sh/v1alpha1/hypernodes"
SLEEP = ["sh", "-c", "exec sleep 100000"]


@pytest.fixture(scope="module")
def api(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Api]:
    cluster = LocalCluster(tmp_path_factory.mktemp("cluster"), "--capacity", "cpu=8", "--capacity", "memory=8Gi")
    yield cluster.start()
    cluster.stop()


@pytest.fixture
def space(api: Api, request: pytest.FixtureRequest) -> Iterator[Space]:
    name = request.node.name.replace("_", "-")[:40].rstrip("-")
    api.post("/api/v1/namespaces", {"metadata": {"name": name}}).ok()
    yield Space(api, name)
    api.delete(f"/api/v1/namespaces/{name}").ok()


def until(get: Callable[[], Any]) -> Any:
    """What it returns as soon as that is something."""
    deadline = time.monotonic() + 60
    while not (found := get()):
        assert time.monotonic() < deadline
        time.sleep(0.05)
    return found


def pod_spec(*command: str, **more: Any) -> dict[str, Any]:
    container = {"name": "main", "image": "x", "command": [*command] or SLEEP}
    return {"containers": [container], "terminationGracePeriodSeconds": 0, **more}


def typed(kind: Kind, obj: Obj) -> Obj:
    return {"apiVersion": kind.api_version, "kind": kind.kind, **obj}


def queue(api: Api, name: str, **annotations: str) -> Any:
    made = {"metadata": {"name": name, "annotations": annotations}, "spec": {}}
    return api.post(QUEUES, typed(QUEUE, made))


def phase(space: Space, pod: str) -> str:
    return str(space.get(f"pods/{pod}").ok()["status"].get("phase"))


def test_11_pods_of_a_deployment_share_a_group_in_the_queue_of_their_namespace(api: Api, space: Space) -> None:
    queue(api, "research").ok()
    note = {"metadata": {"annotations": {"scheduling.volcano.sh/queue-name": "research"}}}
    api.patch(f"/api/v1/namespaces/{space.name}", note).ok()
    template = {"metadata": {"labels": {"app": "board"}}, "spec": pod_spec(schedulerName="volcano")}
    board = {
        "metadata": {"name": "board", "annotations": {"scheduling.volcano.sh/group-min-member": "2"}},
        "spec": {"replicas": 2, "selector": {"matchLabels": {"app": "board"}}, "template": template},
    }
    space.post("deployments", board, group="apps/v1").ok()

    def running() -> Any:
        groups = space.get("podgroups", group="scheduling.volcano.sh/v1beta1").ok()["items"]
        return groups if [each.get("status", {}).get("phase") for each in groups] == ["Running"] else None

    (group,) = until(running)
    assert (group["spec"]["minMember"], group["spec"]["queue"]) == (2, "research")
    pods = space.get("pods").ok()["items"]
    assert [each["metadata"]["annotations"]["scheduling.k8s.io/group-name"] for each in pods] == [
        group["metadata"]["name"]
    ] * 2


def test_11_a_budget_that_is_no_count_is_rejected(space: Space) -> None:
    meta = {"name": "a", "annotations": {"volcano.sh/jdb-min-available": "0"}}
    refused = space.post("pods", {"metadata": meta, "spec": pod_spec(schedulerName="volcano")}).failure()
    assert (refused["code"], "volcano.sh/jdb-min-available" in refused["message"]) == (422, True)


def test_13_a_job_is_taken_as_volcano_takes_it(space: Space) -> None:
    policy = {"events": ["PodEvicted", "PodEvicted"], "action": "RestartJob"}
    spec = pod_spec(restartPolicy="Never")
    spec["containers"][0]["resources"] = {"requests": {"cpu": "1"}, "limits": {"cpu": "2"}}
    task = {"name": "worker", "replicas": 2, "template": {"spec": spec}}
    job_spec = {"tasks": [task], "policies": [policy], "plugins": {"ssh": ["--no-root"]}}
    job = {"metadata": {"name": "a"}, "spec": job_spec}
    made = space.post("jobs", typed(volcano.DIALECT.kind, job), group="batch.volcano.sh/v1alpha1")
    made.ok()
    assert ["unknown argument '--no-root' is ignored" in warning for warning in made.warnings] == [True]
    (group,) = until(lambda: space.get("podgroups", group="scheduling.volcano.sh/v1beta1").ok()["items"])
    assert group["spec"]["minResources"] == {
        "cpu": "2", "pods": "2", "requests.cpu": "2", "count/pods": "2", "limits.cpu": "4",
    }  # fmt: skip


def test_14_queues_and_hypernodes_are_validated(api: Api) -> None:
    assert queue(api, "plain").ok()["spec"]["reclaimable"] is True
    odd = {"volcano.sh/hierarchy": "root/sci", "volcano.sh/hierarchy-weights": "1"}
    assert queue(api, "odd", **odd).failure()["code"] == 422
    members = [{"type": "Node", "selector": {"regexMatch": {"pattern": "node-["}}}]
    for name, spec in (("pattern", {"tier": 1, "members": members}), ("empty", {"tier": 1, "members": []})):
        assert (
            api.post(HYPER_NODES, typed(HYPER_NODE, {"metadata": {"name": name}, "spec": spec})).failure()["code"]
            == 422
        )


def role(name: str, *command: str) -> dict[str, Any]:
    pod = {"spec": pod_spec(*command, restartPolicy="Never")}
    retries = {"fancyRetryPolicy": False, "maxRetryCount": 0}
    return {"name": name, "taskNumber": 1, "task": {"retryPolicy": retries, "pod": pod}}


def test_17_roles_in_the_status_stand_in_the_order_of_the_spec(space: Space) -> None:
    fw = {"metadata": {"name": "a"}, "spec": {"executionType": "Start", "taskRoles": [role("b"), role("c")]}}
    space.post("frameworks", typed(framework.DIALECT.kind, fw), group="frameworkcontroller.microsoft.com/v1").ok()

    def names() -> list[str]:
        found = space.get("frameworks/a", group="frameworkcontroller.microsoft.com/v1").ok()
        roles = ((found.get("status") or {}).get("attemptStatus") or {}).get("taskRoleStatuses") or []
        return [each["name"] for each in roles]

    until(lambda: names() == ["b", "c"])
    moved = [
        {"op": "remove", "path": "/spec/taskRoles/0"},
        {"op": "add", "path": "/spec/taskRoles/0", "value": role("a")},
        {"op": "add", "path": "/spec/taskRoles/-", "value": role("b")},
    ]
    space.patch("frameworks/a", moved, JSON_PATCH, group="frameworkcontroller.microsoft.com/v1").ok()
    until(lambda: names() == ["a", "c", "b"])


def test_18_the_termination_message_of_a_silent_process_is_empty(space: Space) -> None:
    fw = {"metadata": {"name": "a"}, "spec": {"executionType": "Start", "taskRoles": [role("w", "sh", "-c", "exit 3")]}}
    space.post("frameworks", typed(framework.DIALECT.kind, fw), group="frameworkcontroller.microsoft.com/v1").ok()

    def completion() -> Any:
        found = space.get("frameworks/a", group="frameworkcontroller.microsoft.com/v1").ok()
        roles = ((found.get("status") or {}).get("attemptStatus") or {}).get("taskRoleStatuses")
        return roles and roles[0]["taskStatuses"][0]["attemptStatus"]["completionStatus"]

    (container,) = until(completion)["pod"]["containers"]
    assert (container["code"], container.get("message", "")) == (3, "")


def test_20_a_queue_goes_right_after_its_last_pod(api: Api, space: Space) -> None:
    queue(api, "short").ok()
    meta = {"name": "a", "annotations": {"scheduling.volcano.sh/queue-name": "short"}}
    spec = pod_spec()
    spec["containers"][0]["resources"] = {"requests": {"cpu": "1"}}
    space.post("pods", {"metadata": meta, "spec": spec}).ok()
    until(lambda: phase(space, "a") == "Running")
    until(lambda: api.get(f"{QUEUES}/short").ok().get("status", {}).get("allocated"))
    assert "queue short runs pods" in api.delete(f"{QUEUES}/short").failure()["message"]
    space.delete("pods/a").ok()
    space.wait_gone("pods/a")
    api.delete(f"{QUEUES}/short").ok()


def test_20_a_new_object_with_a_resource_version_is_rejected(api: Api) -> None:
    made = {"metadata": {"name": "versioned", "resourceVersion": "7"}, "spec": {}}
    refused = api.post(QUEUES, typed(QUEUE, made)).failure()
    assert refused["message"] == "resourceVersion should not be set on objects to be created"
