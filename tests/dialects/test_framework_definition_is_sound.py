"""The definition made from the models: sound in itself, and taken by both servers."""

from __future__ import annotations

import contextlib
import secrets
from collections.abc import Iterator
from typing import Any

import pytest

from kit import control_plane, embedded_api_server
from kit.api_objects import serve
from kit.frameworks import framework, pet, role, running
from kit.raw_api import JSON_PATCH, TABLE, Api
from kit.run_folder import folder_of_the_run
from shoal.dialects import dialect_of, dialects
from shoal.dialects.framework import DIALECT
from shoal.kube.kinds import Kind
from shoal.kube.structural_schema import crd_problems


def places(value: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    if isinstance(value, dict):
        for key, below in value.items():
            yield f"{path}.{key}", below
            yield from places(below, f"{path}.{key}")
    elif isinstance(value, list):
        for below in value:
            yield from places(below, path)


def test_the_definition_has_no_mistakes():
    assert crd_problems(DIALECT.crd()) == []


def test_nothing_refers_elsewhere():
    assert [path for path, _ in places(DIALECT.crd()) if path.endswith(("$ref", "$defs", "title", "anyOf"))] == []


def test_every_field_a_person_writes_is_described():
    spec = DIALECT.crd()["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]
    fields = [below for path, below in places(spec) if path.rpartition(".")[0].endswith("properties")]

    assert len(fields) == 38
    assert [field for field in fields if not field.get("description")] == []


def test_the_kind_people_ask_for():
    kind = DIALECT.kind

    assert kind == Kind(
        "frameworkcontroller.microsoft.com",
        "v1",
        "Framework",
        "frameworks",
        short_names=("fw",),
        singular="framework",
        subresources=frozenset({"status"}),
        custom=True,
        columns=kind.columns,
    )
    assert [(column.name, column.type, column.priority) for column in kind.columns] == [
        ("State", "string", 0),
        ("Attempt", "integer", 0),
        ("Type", "string", 0),
        ("Code", "integer", 0),
        ("Phrase", "string", 1),
        ("Age", "date", 0),
    ]


def test_the_dialect_is_found_by_its_kind():
    assert DIALECT in dialects()
    assert dialect_of("frameworkcontroller.microsoft.com/v1", "Framework") is DIALECT
    assert dialect_of("v1", "Pod") is None


# --- on a server ---------------------------------------------------------------------------------------------------

DEFINITION = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/frameworks.frameworkcontroller.microsoft.com"
FRAMEWORKS = "/apis/frameworkcontroller.microsoft.com/v1/namespaces/default/frameworks"


@pytest.fixture(scope="module", params=["embedded", pytest.param("kubernetes", marks=pytest.mark.kubernetes)])
def server(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Api]:
    """A server that knows Frameworks."""
    with contextlib.ExitStack() as stack:
        api = (embedded if request.param == "embedded" else real)(stack, tmp_path_factory)
        serve(api, DIALECT.crd())
        yield api


def embedded(stack: contextlib.ExitStack, tmp_path_factory: pytest.TempPathFactory) -> Api:
    started = stack.enter_context(embedded_api_server.serve(tmp_path_factory.mktemp("server")))
    return Api(started.url, started.token, str(started.ca_file))


def real(stack: contextlib.ExitStack, tmp_path_factory: pytest.TempPathFactory) -> Api:
    plane = stack.enter_context(control_plane.shared(folder_of_the_run(tmp_path_factory, "control-plane")))
    return Api(plane.url, plane.token, plane.ca_file)


@pytest.fixture
def name() -> str:
    return f"f{secrets.token_hex(5)}"


def test_a_server_takes_the_definition_and_fills_in_the_same_defaults(server: Api, name: str):
    odd = {"spec": {"ActiveDeadlineSeconds": 60}}
    written = {
        "apiVersion": DIALECT.kind.api_version,
        "kind": "Framework",
        "metadata": {"name": name},
        "spec": {"taskRoles": [{"name": "a", "task": {"pod": odd}}]},
    }
    stored = server.post(FRAMEWORKS, written).ok()
    ours = DIALECT.default(written)
    ours["spec"]["taskRoles"][0]["task"]["pod"] = odd  # the definition has no say in templates

    assert stored["spec"] == ours["spec"]


def test_a_server_without_our_admission_refuses_the_same_fields(server: Api):
    wrong = framework(
        role("a", -1, failed=-2), role("b", 10_001, retry=(True, -3)), role("a"), start="Pause", retry=(True, -9)
    )
    wrong["metadata"] = {"name": "my-job"}
    answer = server.post(FRAMEWORKS, wrong).failure()

    assert answer["code"] == 422
    # At no field: that rules in CEL are asked only of objects that fit their schema.
    found = {cause["field"] for cause in answer["details"]["causes"]} - {"<nil>"}
    assert found == {cause.field for cause in DIALECT.validate(wrong)}


def test_a_server_keeps_every_key_of_the_status(server: Api, name: str):
    manifest = {**pet(), "metadata": {"name": name}}
    made = server.post(FRAMEWORKS, manifest).ok()
    world = running(made)
    while True:
        patch = list(DIALECT.save_state(world.job, world.state, world.config).operations)
        stored = server.patch(f"{FRAMEWORKS}/{name}/status", patch, type=JSON_PATCH).ok()
        assert stored["status"] == world.status
        alive = [pod for pod in world.pods if pod.startswith("worker")]
        if not alive:
            break
        world.exits(alive[0], 0)
        world.settle()
    assert stored["status"]["state"] == "Completed"


def test_people_see_how_it_is_going(server: Api, name: str):
    made = server.post(FRAMEWORKS, {**framework(role(failed=1)), "metadata": {"name": name}}).ok()
    world = running(made)
    world.exits("worker-0", 210)
    world.settle()
    patch = list(DIALECT.save_state(world.job, world.state, world.config).operations)
    server.patch(f"{FRAMEWORKS}/{name}/status", patch, type=JSON_PATCH).ok()
    table = server.get(f"{FRAMEWORKS}/{name}", accept=TABLE).ok()

    assert [column["name"] for column in table["columnDefinitions"]] == [
        "Name",
        "State",
        "Attempt",
        "Type",
        "Code",
        "Phrase",
        "Age",
    ]
    assert table["rows"][0]["cells"][:6] == [name, "Completed", 0, "Failed", 210, "ContainerPermanentFailed"]
