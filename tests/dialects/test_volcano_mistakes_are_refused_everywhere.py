"""The same mistakes in a Job are refused by an API server that knows only the definition and by a cluster of our own.

The definition has the rules, in its schema and in CEL. Where the language has words of its own, the fields are the
same.
"""

from __future__ import annotations

import contextlib
import secrets
from collections.abc import Iterator
from typing import Any, get_args

import pytest

from kit import control_plane, embedded_api_server
from kit.api_objects import serve
from kit.raw_api import JSON_PATCH, Api
from kit.run_folder import folder_of_the_run
from kit.volcano_jobs import policy, task, vcjob
from shoal.dialects.volcano import DIALECT, cel_rules, lifecycle_policies
from shoal.kube.objects import Obj
from shoal.kube.schema_errors import is_at_or_below
from shoal.operator import dialect_registration

JOBS = "/apis/batch.volcano.sh/v1alpha1/namespaces/default/jobs"


@pytest.fixture(scope="module", params=["embedded", pytest.param("kubernetes", marks=pytest.mark.kubernetes)])
def server(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Api]:
    """A cluster of our own, where the language has its say, or a real API server, where the definition is all."""
    with contextlib.ExitStack() as stack:
        if request.param == "embedded":
            started = stack.enter_context(embedded_api_server.serve(tmp_path_factory.mktemp("server")))
            api = Api(started.url, started.token, str(started.ca_file))
            dialect_registration.admit(started.cluster.machinery, [DIALECT])
        else:
            plane = stack.enter_context(control_plane.shared(folder_of_the_run(tmp_path_factory, "control-plane")))
            api = Api(plane.url, plane.token, plane.ca_file)
        serve(api, DIALECT.crd())
        yield api


def named(manifest: Obj) -> Obj:
    return {**manifest, "metadata": {"name": f"v{secrets.token_hex(5)}"}}


def ruled(*policies: Obj) -> Obj:
    return vcjob("a", task(policies=list(policies)))


def cut(total: int, size: int) -> Obj:
    return vcjob("a", task(replicas=4, partitionPolicy={"totalPartitions": total, "partitionSize": size}))


FAILED = policy("PodFailed", "RestartJob")
AT = "spec.tasks[0].policies"
BAD: dict[str, tuple[Obj, str]] = {
    "no tasks": (vcjob("a"), "spec.tasks"),
    "too many tasks": (vcjob("a", *(task(f"t{each}") for each in range(cel_rules.MOST_TASKS + 1))), "spec.tasks"),
    "too many pods in all": (vcjob("a", task("a", 10_000), task("b", 1)), "spec.tasks"),
    "a task twice": (vcjob("a", task(), task("ps"), task()), "spec.tasks"),
    "text for a number": (vcjob("a", task(replicas="2")), "spec.tasks[0].replicas"),  # type: ignore[arg-type]
    "too few pods": (vcjob("a", task(replicas=-1)), "spec.tasks[0].replicas"),
    "more than there are": (vcjob("a", task(replicas=2, least=3), minAvailable=2), "spec.tasks[0].minAvailable"),
    "more than all": (vcjob("a", task(replicas=2), minAvailable=3), "spec.minAvailable"),
    "retries": (vcjob("a", task(), maxRetry=-1), "spec.maxRetry"),
    "success": (vcjob("a", task(), minSuccess=0), "spec.minSuccess"),
    "partitions": (cut(2, 3), "spec.tasks[0].partitionPolicy"),
    "an unknown event": (ruled(policy("PodFaild", "RestartJob")), f"{AT}[0].event"),
    "one of the machinery's": (ruled(policy("PodFailed,OutOfSync", "RestartJob")), f"{AT}[0].events[1]"),
    "an unknown action": (ruled(policy("PodFailed", "Restart")), f"{AT}[0].action"),
    "no action": (ruled({"event": "PodFailed"}), f"{AT}[0].action"),
    "no event": (ruled({"action": "RestartJob"}), f"{AT}[0]"),
    "event and exit code": (ruled({**FAILED, "exitCode": 3}), f"{AT}[0]"),
    "exit code 0": (ruled(policy(0, "RestartJob")), f"{AT}[0].exitCode"),
    "an event twice": (ruled(FAILED, policy("PodFailed", "AbortJob")), AT),
    "a code twice": (ruled(policy(3, "AbortJob"), policy(3, "RestartJob")), AT),
    "* and others": (vcjob("a", task(), policies=[policy("*", "AbortJob"), FAILED]), "spec.policies"),
    "nowhere to mount": (vcjob("a", task(), volumes=[{"volumeClaimName": "c"}]), "spec.volumes[0].mountPath"),
    "nothing to mount": (vcjob("a", task(), volumes=[{"mountPath": "/a"}]), "spec.volumes[0]"),
    "two highest tiers": (
        vcjob("a", task(), networkTopology={"highestTierAllowed": 1, "highestTierName": "rack"}),
        "spec.networkTopology",
    ),
}


@pytest.mark.parametrize(("manifest", "field"), BAD.values(), ids=list(BAD))
def test_a_mistake_is_refused_at_its_field_or_below(server: Api, manifest: Obj, field: str) -> None:
    answer = server.post(JOBS, named(manifest)).failure()
    fields = {cause["field"] for cause in answer["details"]["causes"]} - {"<nil>"}
    assert (answer["code"], answer["reason"]) == (422, "Invalid")
    assert fields
    assert [each for each in fields if not is_at_or_below(each, [field])] == []


GOOD: dict[str, Obj] = {
    "the least": vcjob("a", {"template": task()["template"]}),
    "* and a code": vcjob("a", task(), policies=[policy("*", "AbortJob"), policy(3, "RestartJob")]),
    "partitions": cut(2, 2),
    "one event in two lists": vcjob("a", task(policies=[FAILED]), policies=[FAILED]),
    "a claim": vcjob("a", task(), volumes=[{"mountPath": "/a", "volumeClaim": {"accessModes": ["ReadWriteOnce"]}}]),
}


@pytest.mark.parametrize("manifest", GOOD.values(), ids=list(GOOD))
def test_what_is_in_order_is_taken(server: Api, manifest: Obj) -> None:
    stored = server.post(JOBS, named(manifest)).ok()
    assert DIALECT.default(stored)["spec"] == DIALECT.default(manifest)["spec"]


def replaced(path: str, value: Any) -> list[Obj]:
    return [{"op": "add", "path": f"/spec/{path}", "value": value}]


CHANGES: dict[str, tuple[list[Obj], str | None]] = {
    "sizes": ([*replaced("tasks/0/replicas", 3), *replaced("minAvailable", 3)], None),
    "the queue it was in anyhow": (replaced("queue", "default"), None),
    "another queue": (replaced("queue", "other"), f"Forbidden: {cel_rules.MUTABLE}"),
    "more retries": (replaced("maxRetry", 9), f"Forbidden: {cel_rules.MUTABLE}"),
    "another task": (replaced("tasks/1", task("more")), f"Forbidden: {cel_rules.SAME_TASKS}"),
    "another name": (replaced("tasks/0/name", "other"), f"Forbidden: {cel_rules.SAME_TASKS}"),
}


@pytest.mark.parametrize("case", CHANGES)
def test_what_may_not_change_stays(server: Api, case: str) -> None:
    patch, words = CHANGES[case]
    made = server.post(JOBS, named(vcjob("a", task()))).ok()
    answer = server.patch(f"{JOBS}/{made['metadata']['name']}", patch, type=JSON_PATCH)
    if words is None:
        answer.ok()
    else:
        assert [cause["message"] for cause in answer.failure()["details"]["causes"]] == [words]


def test_the_definition_knows_the_events_and_actions_of_the_language() -> None:
    assert (tuple(lifecycle_policies.EVENTS), tuple(lifecycle_policies.ACTIONS)) == (
        get_args(cel_rules.Event),
        get_args(cel_rules.Action),
    )
