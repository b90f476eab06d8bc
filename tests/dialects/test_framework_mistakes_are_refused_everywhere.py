"""The same mistakes are refused by an API server that knows only the definition and by a cluster of our own.

The definition has the rules, in its schema and in CEL. Where the language has words of its own, the fields are the
same.
"""

from __future__ import annotations

import contextlib
import secrets
from collections.abc import Iterator
from typing import Any

import pytest

from kit import control_plane, embedded_api_server
from kit.api_objects import serve
from kit.frameworks import framework, pod_template, role
from kit.raw_api import JSON_PATCH, Api
from kit.run_folder import folder_of_the_run
from shoal.dialects.framework import DIALECT
from shoal.kube.objects import Obj
from shoal.operator import dialect_registration

DEFINITION = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/frameworks.frameworkcontroller.microsoft.com"
FRAMEWORKS = "/apis/frameworkcontroller.microsoft.com/v1/namespaces/default/frameworks"


@pytest.fixture(scope="module", params=["embedded", pytest.param("kubernetes", marks=pytest.mark.kubernetes)])
def server(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Api]:
    """A cluster of our own, where the language has its say, or a real API server, where the definition is all."""
    with contextlib.ExitStack() as stack:
        yield (own if request.param == "embedded" else real)(stack, tmp_path_factory)


def own(stack: contextlib.ExitStack, tmp_path_factory: pytest.TempPathFactory) -> Api:
    started = stack.enter_context(embedded_api_server.serve(tmp_path_factory.mktemp("server")))
    api = Api(started.url, started.token, str(started.ca_file))
    serve(api, DIALECT.crd())
    dialect_registration.admit(started.cluster.machinery, [DIALECT])
    return api


def real(stack: contextlib.ExitStack, tmp_path_factory: pytest.TempPathFactory) -> Api:
    plane = stack.enter_context(control_plane.shared(folder_of_the_run(tmp_path_factory, "control-plane")))
    api = Api(plane.url, plane.token, plane.ca_file)
    serve(api, DIALECT.crd())
    return api


def named(manifest: Obj) -> Obj:
    """With a name of its own, where the name is not what it is about; without what only a stored object has."""
    name = manifest["metadata"].get("name")
    fresh = f"f{secrets.token_hex(5)}" if name == "fw" else name
    kept = {key: value for key, value in manifest["metadata"].items() if key == "generateName"}
    return {**manifest, "metadata": kept if "generateName" in kept else {"name": fresh}}


def fields_of(refused: Obj) -> set[str]:
    """A real server says at no field that it asks rules in CEL only of objects that fit their schema."""
    return {cause["field"] for cause in refused["details"]["causes"]} - {"<nil>"}


def with_pod(**template: Any) -> Obj:
    return framework(role(pod={**pod_template(), **template}))


def with_container(**fields: Any) -> Obj:
    return with_pod(spec={"containers": [{"name": "main", "image": "busybox", **fields}]})


POD = "spec.taskRoles[0].task.pod"
MAIN = f"{POD}.spec.containers[0]"
BAD = {
    "name": (framework(role(), name="my-job"), "metadata.name"),
    "name with a slash": (framework(role(), name="a/b"), "metadata.name"),
    "name of dots": (framework(role(), name=".."), "metadata.name"),
    "too long a name": (framework(role(), name="a" * 64), "metadata.name"),
    "execution type": (framework(role(), start="Pause"), "spec.executionType"),
    "retries": (framework(role(), retry=(True, -3)), "spec.retryPolicy.maxRetryCount"),
    "no role name": (framework({"taskNumber": 1}), "spec.taskRoles[0].name"),
    "role name": (framework(role("my-role")), "spec.taskRoles[0].name"),
    "role name with a slash": (framework(role("../a")), "spec.taskRoles[0].name"),
    "role twice": (framework(role("a"), role("b"), role("a")), "spec.taskRoles[2]"),
    "too few tasks": (framework(role(number=-1)), "spec.taskRoles[0].taskNumber"),
    "too many tasks": (framework(role(number=10_001)), "spec.taskRoles[0].taskNumber"),
    "too many tasks in all": (framework(role("a", 10_000), role("b", 1)), "spec.taskRoles"),
    "failed count": (
        framework(role(failed=-2)),
        "spec.taskRoles[0].frameworkAttemptCompletionPolicy.minFailedTaskCount",
    ),
    "succeeded count": (
        framework(role(succeeded=-2)),
        "spec.taskRoles[0].frameworkAttemptCompletionPolicy.minSucceededTaskCount",
    ),
    "task retries": (framework(role(retry=(True, -3))), "spec.taskRoles[0].task.retryPolicy.maxRetryCount"),
    "text for seconds": (framework(role(grace="60")), "spec.taskRoles[0].task.podGracefulDeletionTimeoutSec"),  # type: ignore[arg-type]
    "no template": (framework(role(pod=[])), POD),  # type: ignore[arg-type]
    "number for a label": (with_pod(metadata={"labels": {"version": 1.5}}), f"{POD}.metadata.labels.version"),
    "switch for an annotation": (with_pod(metadata={"annotations": {"a": True}}), f"{POD}.metadata.annotations.a"),
    "text for containers": (with_pod(spec={"containers": "none"}), f"{POD}.spec.containers"),
    "command in one word": (with_container(command="sleep 1"), f"{MAIN}.command"),
    "number for a variable": (with_container(env=[{"name": "A", "value": 1}]), f"{MAIN}.env[0].value"),
    "variables by name": (with_container(env={"A": "1"}), f"{MAIN}.env"),
}


@pytest.mark.parametrize(("manifest", "field"), BAD.values(), ids=list(BAD))
def test_a_mistake_is_refused_at_its_field(server: Api, manifest: Obj, field: str):
    answer = server.post(FRAMEWORKS, named(manifest)).failure()

    assert (answer["code"], answer["reason"]) == (422, "Invalid")
    assert fields_of(answer) == {field}


@pytest.mark.parametrize("prefix", ["run-", "Run", "a" * 59])
def test_a_prefix_no_name_can_begin_with_is_refused(server: Api, prefix: str):
    answer = server.post(FRAMEWORKS, {**framework(role()), "metadata": {"generateName": prefix}}).failure()

    assert answer["code"] == 422
    assert fields_of(answer) <= {"metadata.generateName", "metadata.name"}
    assert "metadata.generateName" in fields_of(answer)


GOOD = {
    "nulls": with_pod(metadata=None, spec=None),
    "nulls below": with_pod(
        metadata={"labels": None, "annotations": {"a": None}},
        spec={"containers": [{"name": "main", "env": [{"name": "A", "value": None}, None], "command": [None]}, None]},
    ),
    "unknown fields": with_pod(Anything=1, spec={"odd": {"a": [1]}, "volumes": [{"name": "v", "x": 1}]}),
    "fields in any case": framework(role(pod={"Spec": {"CONTAINERS": [{"Name": "a", "IMAGE": "b"}]}})),
}


@pytest.mark.parametrize("manifest", GOOD.values(), ids=list(GOOD))
def test_the_outline_of_a_template_refuses_and_drops_nothing_else(server: Api, manifest: Obj):
    written = named(manifest)
    stored = server.post(FRAMEWORKS, written).ok()

    assert DIALECT.default(stored)["spec"] == DIALECT.default(written)["spec"]


# --- changes ---------------------------------------------------------------------------------------------------------

STOPPED = "Forbidden: a Framework that was stopped stays stopped; delete it and create it again to run it again"
STEPS = {
    ("Create", "Start"): None,
    ("Create", "Stop"): None,
    ("Start", "Stop"): None,
    ("Stop", "Start"): STOPPED,
    ("Stop", "Create"): STOPPED,
    ("Start", "Create"): "Forbidden: a Framework that was started keeps running; Stop ends it",
}


@pytest.mark.parametrize(("step", "words"), STEPS.items(), ids=[" to ".join(step) for step in STEPS])
def test_an_execution_type_goes_forward_only(server: Api, step: tuple[str, str], words: str | None):
    before, after = step
    made = server.post(FRAMEWORKS, named(framework(role(), start=before))).ok()
    place = f"{FRAMEWORKS}/{made['metadata']['name']}"
    patch = [{"op": "replace", "path": "/spec/executionType", "value": after}]
    answer = server.patch(place, patch, type=JSON_PATCH)

    if words is None:
        assert answer.ok()["spec"]["executionType"] == after
    else:
        refused = answer.failure()
        assert refused["code"] == 422
        assert refused["details"]["causes"] == [
            {"reason": "FieldValueForbidden", "message": words, "field": "spec.executionType"}
        ]
        assert server.get(place).ok()["spec"]["executionType"] == before


def test_what_was_stopped_may_still_be_labelled_and_scaled(server: Api):
    made = server.post(FRAMEWORKS, named(framework(role(), start="Stop"))).ok()
    place = f"{FRAMEWORKS}/{made['metadata']['name']}"
    patch = [
        {"op": "add", "path": "/metadata/labels", "value": {"a": "b"}},
        {"op": "replace", "path": "/spec/taskRoles/0/taskNumber", "value": 2},
    ]
    changed = server.patch(place, patch, type=JSON_PATCH).ok()

    assert (changed["metadata"]["labels"], changed["spec"]["taskRoles"][0]["taskNumber"]) == ({"a": "b"}, 2)
    server.patch(f"{place}/status", [{"op": "add", "path": "/status", "value": {"state": "Completed"}}],
                 type=JSON_PATCH).ok()  # fmt: skip


def test_the_definition_is_taken_again_without_a_warning(server: Api):
    definition = {**DIALECT.crd(), "metadata": {**DIALECT.crd()["metadata"], "labels": {"again": "yes"}}}
    applied = server.apply(DEFINITION, definition, force="true", dryRun="All")

    applied.ok()
    assert applied.warnings == []
