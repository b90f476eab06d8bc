"""What a create gives back, and what it refuses."""

from __future__ import annotations

import json
import re

import pytest

from kit.api_objects import cause, config_map, failure, invalid, names, not_found, pod, required, settled
from kit.raw_api import Api, Obj, Space

SUBDOMAIN = (
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start "
    "and end with an alphanumeric character (e.g. 'example.com', regex used for validation is "
    r"'[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')"
)
MAX_NAME = 253


def test_a_created_object_comes_back_whole_with_status_201(space: Space) -> None:
    answer = space.post("configmaps", config_map("a", {"k": "v"}, labels={"x": "y"}))
    expected = config_map("a", {"k": "v"}, labels={"x": "y"}, namespace=space.name)
    assert (answer.status, settled(answer.json)) == (201, expected)


def test_a_created_object_has_an_identity_of_its_own(space: Space) -> None:
    made = space.post("configmaps", config_map("a")).ok()["metadata"]
    assert re.fullmatch(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", made["uid"])
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", made["creationTimestamp"])
    assert re.fullmatch(r"[1-9]\d*", made["resourceVersion"])


def test_what_was_created_is_what_is_read(space: Space) -> None:
    made = space.post("configmaps", config_map("a", {"k": "v"})).ok()
    assert space.get("configmaps/a").ok() == made


def test_names_taken_already_are_refused(space: Space) -> None:
    space.post("configmaps", config_map("a")).ok()
    refused = space.post("configmaps", config_map("a", {"other": "data"})).failure()
    assert refused == failure(
        409, "AlreadyExists", 'configmaps "a" already exists', about={"name": "a", "kind": "configmaps"}
    )


def test_a_name_may_be_used_again_after_deletion_by_another_object(space: Space) -> None:
    first = space.post("configmaps", config_map("a")).ok()
    space.delete("configmaps/a").ok()
    second = space.post("configmaps", config_map("a")).ok()
    assert first["metadata"]["uid"] != second["metadata"]["uid"]
    assert int(second["metadata"]["resourceVersion"]) > int(first["metadata"]["resourceVersion"])


def test_a_name_is_made_from_generate_name(space: Space) -> None:
    body = {"metadata": {"generateName": "job-"}}
    made = [space.post("configmaps", body).ok()["metadata"] for _ in range(3)]
    assert all(re.fullmatch(r"job-[bcdfghjklmnpqrstvwxz2456789]{5}", each["name"]) for each in made)
    assert len({each["name"] for each in made}) == 3
    assert [each["generateName"] for each in made] == ["job-"] * 3


def test_a_given_name_wins_over_generate_name(space: Space) -> None:
    made = space.post("configmaps", config_map("mine", generateName="job-")).ok()
    assert (made["metadata"]["name"], made["metadata"]["generateName"]) == ("mine", "job-")


def test_a_long_generate_name_is_cut_to_leave_room_for_the_suffix(space: Space) -> None:
    made = space.post("configmaps", {"metadata": {"generateName": "x" * 100}}).ok()
    assert re.fullmatch(r"x{58}[a-z0-9]{5}", made["metadata"]["name"])


def test_an_object_without_a_name_is_refused(space: Space) -> None:
    refused = space.post("configmaps", {"apiVersion": "v1", "kind": "ConfigMap"}).failure()
    assert refused == invalid("ConfigMap", "", required("metadata.name", "name or generateName is required"))


BAD_NAMES = {
    "upper case": ("A", SUBDOMAIN),
    "underscore": ("a_b", SUBDOMAIN),
    "ends in a dash": ("a-", SUBDOMAIN),
    "empty part": ("a..b", SUBDOMAIN),
    "not ascii": ("ä", SUBDOMAIN),
    "too long": ("a" * (MAX_NAME + 1), f"must be no more than {MAX_NAME} characters"),
}


@pytest.mark.parametrize(("name", "why"), BAD_NAMES.values(), ids=BAD_NAMES.keys())
def test_names_that_are_no_dns_subdomain_are_refused(space: Space, name: str, why: str) -> None:
    refused = space.post("configmaps", config_map(name)).failure()
    assert refused == invalid("ConfigMap", name, cause("metadata.name", f'Invalid value: "{name}": {why}'))


def test_kind_and_version_may_be_left_out_of_a_built_in_object(space: Space) -> None:
    assert settled(space.post("configmaps", {"metadata": {"name": "a"}}).ok()) == config_map("a", namespace=space.name)


def test_an_object_of_another_kind_is_refused(space: Space) -> None:
    refused = space.post("configmaps", {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "a"}}).failure()
    message = (
        'Secret in version "v1" cannot be handled as a ConfigMap: '
        "converting (v1.Secret) to (core.ConfigMap): unknown conversion"
    )
    assert refused == failure(400, "BadRequest", message)


def test_an_object_of_another_version_is_refused(space: Space) -> None:
    refused = space.post("configmaps", {"apiVersion": "v2", "kind": "ConfigMap", "metadata": {"name": "a"}}).failure()
    message = (
        'ConfigMap in version "v2" cannot be handled as a ConfigMap: no kind "ConfigMap" is registered for version "v2"'
    )
    assert (refused["code"], refused["reason"]) == (400, "BadRequest")
    assert refused["message"].startswith(message)  # then a place in a source file


def test_a_namespace_that_differs_from_the_path_is_refused(space: Space) -> None:
    refused = space.post("configmaps", config_map("a", namespace="elsewhere")).failure()
    message = "the namespace of the provided object does not match the namespace sent on the request"
    assert refused == failure(400, "BadRequest", message)


def test_a_missing_namespace_is_named(server: Api, unique_name: str) -> None:
    refused = server.post(f"/api/v1/namespaces/{unique_name}/configmaps", config_map("a")).failure()
    assert refused == not_found("namespaces", unique_name)


def test_a_new_object_may_not_bring_a_version(space: Space) -> None:
    refused = space.post("configmaps", config_map("a", resourceVersion="7")).failure()
    # A real server calls this its own mistake (500); the promise is that it is refused with this sentence.
    assert refused["message"] == "resourceVersion should not be set on objects to be created"


@pytest.mark.parametrize("version", ["", "0", "00", "-1", "latest", str(1 << 64)])
def test_what_is_no_stored_version_is_ignored(space: Space, version: str) -> None:
    made = space.post("configmaps", config_map("a", resourceVersion=version)).ok()["metadata"]["resourceVersion"]
    assert made != version


def test_a_dry_run_compares_no_version(space: Space) -> None:
    assert space.post("configmaps", config_map("a", resourceVersion="7"), dryRun="All").status == 201


def test_the_server_alone_decides_uid_and_times(space: Space) -> None:
    past = "2001-01-01T00:00:00Z"
    body = config_map("a", uid="mine", creationTimestamp=past, deletionTimestamp=past, selfLink="/x")
    made = space.post("configmaps", body).ok()
    assert made["metadata"]["uid"] != "mine"
    assert made["metadata"]["creationTimestamp"] != past
    assert settled(made) == config_map("a", namespace=space.name)


def test_a_new_pod_starts_at_generation_1_and_pending_whatever_its_status(space: Space) -> None:
    body = pod("a") | {"status": {"phase": "Running", "podIP": "10.0.0.9"}}
    made = space.post("pods", body).ok()
    assert (made["metadata"]["generation"], made["status"]) == (1, {"phase": "Pending", "qosClass": "BestEffort"})


def test_creating_at_the_path_of_an_object_is_not_allowed(space: Space) -> None:
    refused = space.post("configmaps/a", config_map("a")).failure()
    message = "the server does not allow this method on the requested resource"
    assert refused == failure(405, "MethodNotAllowed", message, about={})


BAD_METADATA: dict[str, tuple[Obj, str, str]] = {
    "label key": (
        {"labels": {"-x": "y"}},
        "metadata.labels",
        "Invalid value: \"-x\": name part must consist of alphanumeric characters, '-', '_' or '.', and must start and "
        "end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is "
        "'([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')",
    ),
    "label value": (
        {"labels": {"x": "y z"}},
        "metadata.labels",
        "Invalid value: \"y z\": a valid label must be an empty string or consist of alphanumeric characters, '-', '_' "
        "or '.', and must start and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', "
        "regex used for validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')",
    ),
    "label value too long": (
        {"labels": {"x": "y" * 64}},
        "metadata.labels",
        f'Invalid value: "{"y" * 64}": must be no more than 63 bytes',
    ),
    "annotation key": (
        {"annotations": {"a/b/c": "y"}},
        "metadata.annotations",
        "Invalid value: \"a/b/c\": a valid label key must consist of alphanumeric characters, '-', '_' or '.', and "
        "must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used "
        "for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]') with an optional DNS subdomain prefix and '/' "
        "(e.g. 'example.com/MyName')",
    ),
}


@pytest.mark.parametrize(("metadata", "field", "why"), BAD_METADATA.values(), ids=BAD_METADATA.keys())
def test_labels_and_annotations_are_checked(space: Space, metadata: Obj, field: str, why: str) -> None:
    refused = space.post("configmaps", config_map("a", **metadata)).failure()
    assert refused == invalid("ConfigMap", "a", cause(field, why))


def test_annotations_over_256_kib_are_refused(space: Space) -> None:
    refused = space.post("configmaps", config_map("a", annotations={"x": "y" * (256 * 1024)})).failure()
    message = "Too long: may not be more than 262144 bytes"
    assert refused == invalid("ConfigMap", "a", cause("metadata.annotations", message, "FieldValueTooLong"))


def test_every_cause_is_listed_at_once(space: Space) -> None:
    refused = space.post("configmaps", config_map("A", labels={"x": "y" * 64})).failure()
    assert [each["field"] for each in refused["details"]["causes"]] == ["metadata.name", "metadata.labels"]


CONTROLLERS = [
    {"apiVersion": "v1", "kind": "Pod", "name": "a", "uid": "1", "controller": True},
    {"apiVersion": "v1", "kind": "Pod", "name": "b", "uid": "2", "controller": True},
]
BAD_OWNERS: dict[str, tuple[list[Obj], list[Obj]]] = {
    "nothing said": (
        [{}],
        [
            cause("metadata.ownerReferences.apiVersion", 'Invalid value: "": version must not be empty'),
            cause("metadata.ownerReferences.kind", 'Invalid value: "": must not be empty'),
            cause("metadata.ownerReferences.name", 'Invalid value: "": must not be empty'),
            cause("metadata.ownerReferences.uid", 'Invalid value: "": must not be empty'),
        ],
    ),
    "two controllers": (
        CONTROLLERS,
        [
            cause(
                "metadata.ownerReferences",
                f"Invalid value: {json.dumps(CONTROLLERS, separators=(',', ':'))}: Only one reference can have "
                'Controller set to true. Found "true" in references for Pod/a and Pod/b',
            )
        ],
    ),
}


@pytest.mark.parametrize(("owners", "causes"), BAD_OWNERS.values(), ids=BAD_OWNERS.keys())
def test_owner_references_are_checked(space: Space, owners: list[Obj], causes: list[Obj]) -> None:
    refused = space.post("configmaps", config_map("a", ownerReferences=owners)).failure()
    assert refused == invalid("ConfigMap", "a", *causes)


def test_finalizers_must_be_qualified_names(space: Space) -> None:
    refused = space.post("configmaps", config_map("a", finalizers=["plain"])).failure()
    message = 'Invalid value: "plain": name is neither a standard finalizer name nor is it fully qualified'
    assert refused == invalid("ConfigMap", "a", cause("metadata.finalizers[0]", message))


def test_nothing_is_kept_of_a_refused_object(space: Space) -> None:
    space.post("configmaps", config_map("A")).failure()
    space.post("configmaps", config_map("a", labels={"x": "y z"})).failure()
    assert names(space.get("configmaps").ok()) == []
