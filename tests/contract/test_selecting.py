"""Label and field selectors, the good and the bad."""

from __future__ import annotations

import pytest

from kit.api_objects import config_map, container, failure, names, pod
from kit.raw_api import Space

LABELLED = {
    "a": {"tier": "front", "n": "1"},
    "b": {"tier": "back", "n": "5"},
    "c": {"tier": "back", "env": "prod", "n": "ten"},
    "d": {},
    "e": {"empty": ""},
}

LABEL_SELECTORS = {
    "tier=back": "bc",
    "tier==back": "bc",
    "tier!=back": "ade",
    "tier in (front,back)": "abc",
    "tier in (front)": "a",
    "tier notin (front)": "bcde",
    "tier": "abc",
    "!tier": "de",
    "tier=back,env": "c",
    "tier=back,!env": "b",
    "tier,env=prod": "c",
    "n>3": "b",
    "n<3": "a",
    "empty=": "e",
    "empty in ()": "e",
    "tier=none": "",
    " tier  in ( front , back ) , !env ": "ab",
    "": "abcde",
}


@pytest.mark.parametrize(("selector", "expected"), LABEL_SELECTORS.items(), ids=LABEL_SELECTORS.keys())
def test_a_label_selector_finds_what_it_matches(space: Space, selector: str, expected: str) -> None:
    for name, labels in LABELLED.items():
        space.post("configmaps", config_map(name, labels=labels)).ok()
    assert names(space.get("configmaps", labelSelector=selector).ok()) == list(expected)


BAD_KEY = (
    "name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric "
    "character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is "
    "'([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')"
)
BAD_VALUE = (
    "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and "
    "end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is "
    "'(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')"
)
BAD_LABEL_SELECTORS = {
    "a in b": "unable to parse requirement: found 'b' expected: '('",
    "a in (": "unable to parse requirement: found '', expected: ',', ')' or identifier",
    "=b": "found '=', expected: !, identifier, or 'end of string'",
    "!": "unable to parse requirement: found '', expected: identifier",
    "a,,b": "found ',', expected: identifier after ','",
    "x y": "unable to parse requirement: found 'y', expected: in, notin, =, ==, !=, gt, lt",
    "a=b=c": "found '=', expected: ',' or 'end of string'",
    "a>b": (
        'unable to parse requirement: values[0]: Invalid value: "b": '
        "for 'Gt', 'Lt' operators, the value must be an integer"
    ),
    "-a": f'unable to parse requirement: <nil>: Invalid value: "-a": {BAD_KEY}',
    "a=-": f'unable to parse requirement: values[0][a]: Invalid value: "-": {BAD_VALUE}',
}


@pytest.mark.parametrize(("selector", "message"), BAD_LABEL_SELECTORS.items(), ids=BAD_LABEL_SELECTORS.keys())
def test_a_bad_label_selector_is_refused(space: Space, selector: str, message: str) -> None:
    refused = space.get("configmaps", labelSelector=selector).failure()
    assert refused == failure(400, "BadRequest", message)


FIELD_SELECTORS = {
    "metadata.name=a": "a",
    "metadata.name==a": "a",
    "metadata.name!=a": "b",
    "metadata.name=a,metadata.name=b": "",
    "metadata.name!=a,metadata.name!=b": "",
    "metadata.name=": "",
    "": "ab",
}


@pytest.mark.parametrize(("selector", "expected"), FIELD_SELECTORS.items(), ids=FIELD_SELECTORS.keys())
def test_a_field_selector_finds_what_it_matches(space: Space, selector: str, expected: str) -> None:
    for name in "ab":
        space.post("configmaps", config_map(name)).ok()
    assert names(space.get("configmaps", fieldSelector=selector).ok()) == list(expected)


BAD_FIELD_SELECTORS = {
    "x": "invalid selector: 'x'; can't understand 'x'",
    "metadata.name in (a)": "invalid selector: 'metadata.name in (a)'; can't understand 'metadata.name in (a)'",
    "metadata.uid=1": '"metadata.uid" is not a known field selector: only "metadata.name", "metadata.namespace"',
    "data.x=1": '"data.x" is not a known field selector: only "metadata.name", "metadata.namespace"',
}


@pytest.mark.parametrize(("selector", "message"), BAD_FIELD_SELECTORS.items(), ids=BAD_FIELD_SELECTORS.keys())
def test_a_bad_field_selector_is_refused(space: Space, selector: str, message: str) -> None:
    refused = space.get("configmaps", fieldSelector=selector).failure()
    assert refused == failure(400, "BadRequest", message)


POD_SELECTORS = {
    "spec.nodeName=n1": ["placed"],
    "spec.nodeName=": ["never", "plain", "running"],
    "status.phase=Running": ["running"],
    "status.phase!=Running": ["never", "placed", "plain"],
    "spec.restartPolicy=Never": ["never"],
    "spec.schedulerName=default-scheduler,status.phase=Pending": ["never", "placed", "plain"],
    "spec.serviceAccountName=default,spec.nodeName=n1": ["placed"],
    "status.podIP=10.1.2.3": ["running"],
}


@pytest.mark.parametrize(("selector", "expected"), POD_SELECTORS.items(), ids=POD_SELECTORS.keys())
def test_pods_are_selected_by_the_fields_of_schedulers_and_nodes(
    space: Space, selector: str, expected: list[str]
) -> None:
    space.post("pods", pod("plain")).ok()
    space.post("pods", pod("placed", nodeName="n1")).ok()
    space.post("pods", pod("never", restartPolicy="Never")).ok()
    space.post("pods", pod("running")).ok()
    running = {"status": {"phase": "Running", "podIP": "10.1.2.3", "podIPs": [{"ip": "10.1.2.3"}]}}
    space.patch("pods/running/status", running).ok()
    assert names(space.get("pods", fieldSelector=selector).ok()) == expected


def test_a_field_no_pod_is_selected_by_is_named(space: Space) -> None:
    refused = space.get("pods", fieldSelector="spec.hostname=a").failure()
    assert refused == failure(400, "BadRequest", "field label not supported: spec.hostname")


def test_both_selectors_must_agree(space: Space) -> None:
    for name in "ab":
        space.post("configmaps", config_map(name, labels={"x": "1"})).ok()
    listed = space.get("configmaps", labelSelector="x=1", fieldSelector="metadata.name=b").ok()
    assert names(listed) == ["b"]


def test_secrets_are_selected_by_type(space: Space) -> None:
    for name, kind in {"a": "Opaque", "b": "example.com/own"}.items():
        space.post("secrets", {"metadata": {"name": name}, "type": kind}).ok()
    assert names(space.get("secrets", fieldSelector="type=example.com/own").ok()) == ["b"]


def test_events_are_selected_by_the_object_they_are_about(space: Space) -> None:
    for name, regarding in {"e1": "a", "e2": "b"}.items():
        about = {"kind": "Pod", "name": regarding, "namespace": space.name}
        event = {"metadata": {"name": name}, "involvedObject": about, "reason": "Why", "type": "Normal"}
        space.post("events", event).ok()
    assert names(space.get("events", fieldSelector="involvedObject.name=b").ok()) == ["e2"]
    assert names(space.get("events", fieldSelector="involvedObject.kind=Pod,reason=Why").ok()) == ["e1", "e2"]


def test_containers_do_not_matter_to_selection(space: Space) -> None:
    space.post("pods", pod("a", {"labels": {"x": "1"}}, containers=[container("x"), container("y")])).ok()
    assert names(space.get("pods", labelSelector="x").ok()) == ["a"]
