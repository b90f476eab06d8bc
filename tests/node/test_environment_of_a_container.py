"""Variables and command lines: where they come from, in which order, and what `$(VAR)` becomes."""

from __future__ import annotations

import base64
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kit.pods import container, pod, stored
from shoal.kube.kinds import CONFIG_MAP, SECRET
from shoal.kube.objects import Key, Obj
from shoal.node.environment import EnvContext, command_line, declared_variables, environment, expand
from shoal.node.pod_references import Lookup, Reference, ReferenceMissing

MAP = {"data": {"A": "a", "not a name": "x"}, "binaryData": {"B": base64.b64encode(b"b").decode()}}
HIDDEN = {"data": {"K": base64.b64encode(b"k").decode()}}
LOOKUP = Lookup(
    {
        Reference(CONFIG_MAP, Key("default", "cm")): MAP,
        Reference(SECRET, Key("default", "s")): HIDDEN,
    }
)
AROUND = EnvContext("n1", "192.0.2.1", "10.77.1.4", "p", {"cpu": "64", "memory": "1Gi"}, lookup=LOOKUP)


def variables(
    *env: Obj, env_from: tuple[Obj, ...] = (), env_context: EnvContext = AROUND, **more: Any
) -> dict[str, str]:
    holder = container("main", env=list(env), envFrom=list(env_from), **more)
    made = pod("p", holder, container("other", resources={"requests": {"memory": "3Mi"}}))
    made["metadata"].update(labels={"app": "x"}, annotations={"note": "y"})
    return declared_variables(stored(made), holder, env_context)


def from_field(path: str) -> Obj:
    return {"name": "V", "valueFrom": {"fieldRef": {"fieldPath": path}}}


def from_resource(resource: str, **more: Any) -> Obj:
    return {"name": "V", "valueFrom": {"resourceFieldRef": {"resource": resource, **more}}}


EXPANSIONS = {
    "a name": ("$(A)", "1"),
    "inside text": ("x-$(A)-$(B)", "x-1-2"),
    "an unknown name stays": ("$(NO)", "$(NO)"),
    "an escaped one": ("$$(A)", "$(A)"),
    "twice escaped": ("$$$(A)", "$1"),
    "a lonely dollar": ("5$ and $A", "5$ and $A"),
    "an open bracket": ("$(A", "$(A"),
    "a bracket in a name": ("$(A(B))", "$(A(B))"),
    "no recursion": ("$($(A))", "$($(A))"),
}


@pytest.mark.parametrize("case", EXPANSIONS, ids=str)
def test_references_expand_as_kubernetes_does(case: str) -> None:
    text, expected = EXPANSIONS[case]
    assert expand(text, {"A": "1", "B": "2"}) == expected


@settings(deadline=None)
@given(st.text(alphabet="ab $()", max_size=20))
def test_text_without_a_reference_or_a_double_dollar_is_untouched(text: str) -> None:
    if "$(" not in text and "$$" not in text:
        assert expand(text, {"a": "x", "b": "y"}) == text


@settings(deadline=None)
@given(st.text(max_size=20))
def test_doubled_dollars_are_literal(text: str) -> None:
    assert expand(text.replace("$", "$$"), {"a": "x"}) == text


FIELDS = {
    "metadata.name": "p",
    "metadata.namespace": "default",
    "metadata.uid": "u1",
    "metadata.labels['app']": "x",
    "metadata.annotations['note']": "y",
    "metadata.annotations['none']": "",
    "spec.nodeName": "n1",
    "spec.serviceAccountName": "default",
    "status.hostIP": "192.0.2.1",
    "status.podIP": "10.77.1.4",
    "status.podIPs": "10.77.1.4",
}


@pytest.mark.parametrize("path", FIELDS, ids=str)
def test_a_field_of_the_pod(path: str) -> None:
    assert variables(from_field(path)) == {"V": FIELDS[path]}


RESOURCES: dict[str, tuple[Obj, str]] = {
    "a limit, rounded up": (from_resource("limits.cpu"), "2"),
    "in thousandths": (from_resource("limits.cpu", divisor="1m"), "1500"),
    "in Mi": (from_resource("requests.memory", divisor="1Mi"), "3"),
    "no limit: what the node has": (from_resource("limits.memory", divisor="1Mi"), "1024"),
    "no request: nothing": (from_resource("requests.cpu"), "0"),
    "of another container": (from_resource("requests.memory", containerName="other", divisor="1Mi"), "3"),
}


@pytest.mark.parametrize("case", RESOURCES, ids=str)
def test_a_resource_of_a_container(case: str) -> None:
    asked, expected = RESOURCES[case]
    resources = {"limits": {"cpu": "1500m"}, "requests": {"memory": "2049Ki"}}
    assert variables(asked, resources=resources) == {"V": expected}


def key_of_map(**ref: Any) -> Obj:
    return {"name": "V", "valueFrom": {"configMapKeyRef": ref}}


def test_keys_of_config_maps_and_secrets() -> None:
    secret = {"name": "W", "valueFrom": {"secretKeyRef": {"name": "s", "key": "K"}}}
    assert variables(key_of_map(name="cm", key="A"), secret) == {"V": "a", "W": "k"}


def test_everything_of_a_config_map_that_can_be_a_variable() -> None:
    whole = ({"configMapRef": {"name": "cm"}}, {"prefix": "S_", "secretRef": {"name": "s"}})
    assert variables(env_from=whole) == {"A": "a", "B": "b", "S_K": "k"}


MISSING = {
    "no map": (key_of_map(name="no", key="A"), 'configmap "no" not found'),
    "no key": (key_of_map(name="cm", key="no"), "couldn't find key no in ConfigMap default/cm"),
    "no field": (from_field("spec.nothing"), "unsupported fieldPath: spec.nothing"),
}


@pytest.mark.parametrize("case", MISSING, ids=str)
def test_what_is_missing_is_named(case: str) -> None:
    asked, sentence = MISSING[case]
    with pytest.raises(ReferenceMissing) as missing:
        variables(asked)
    assert str(missing.value) == sentence


def test_an_optional_reference_that_leads_nowhere_sets_nothing() -> None:
    whole = ({"configMapRef": {"name": "no", "optional": True}},)
    asked = [key_of_map(name="no", key="A", optional=True), key_of_map(name="cm", key="no", optional=True)]
    assert variables(*asked, env_from=whole) == {}


def test_later_variables_may_name_earlier_ones() -> None:
    env = [{"name": "X", "value": "$(Y)"}, {"name": "Y", "value": "1"}, {"name": "Z", "value": "$(Y)2"}]
    assert variables(*env) == {"X": "$(Y)", "Y": "1", "Z": "12"}


WEB = {
    "metadata": {"name": "my-web", "namespace": "default"},
    "spec": {
        "clusterIP": "10.96.0.7",
        "ports": [{"name": "http-x", "port": 80}, {"name": "dns", "port": 53, "protocol": "UDP"}],
    },
}
HEADLESS = {"metadata": {"name": "h", "namespace": "default"}, "spec": {"clusterIP": "None", "ports": [{"port": 1}]}}


def test_services_are_linked_as_docker_did() -> None:
    env_context = EnvContext("n1", "", "", "p", services=(WEB, HEADLESS))
    assert variables(env_context=env_context) == {
        "MY_WEB_SERVICE_HOST": "10.96.0.7",
        "MY_WEB_SERVICE_PORT": "80",
        "MY_WEB_SERVICE_PORT_HTTP_X": "80",
        "MY_WEB_SERVICE_PORT_DNS": "53",
        "MY_WEB_PORT": "tcp://10.96.0.7:80",
        "MY_WEB_PORT_80_TCP": "tcp://10.96.0.7:80",
        "MY_WEB_PORT_80_TCP_PROTO": "tcp",
        "MY_WEB_PORT_80_TCP_PORT": "80",
        "MY_WEB_PORT_80_TCP_ADDR": "10.96.0.7",
        "MY_WEB_PORT_53_UDP": "udp://10.96.0.7:53",
        "MY_WEB_PORT_53_UDP_PROTO": "udp",
        "MY_WEB_PORT_53_UDP_PORT": "53",
        "MY_WEB_PORT_53_UDP_ADDR": "10.96.0.7",
    }


def test_service_links_can_be_declined() -> None:
    env_context = EnvContext("n1", "", "", "p", services=(WEB,))
    holder = container("main")
    assert declared_variables(stored(pod("p", holder, enableServiceLinks=False)), holder, env_context) == {}


def test_the_address_of_the_api_is_set_with_and_without_service_links() -> None:
    api = {
        "metadata": {"name": "kubernetes", "namespace": "default"},
        "spec": {**WEB["spec"], "clusterIP": "10.96.0.1"},
    }
    env_context = EnvContext("n1", "", "", "p", services=(WEB, api))
    holder = container("main")
    told = declared_variables(stored(pod("p", holder, enableServiceLinks=False)), holder, env_context)
    assert (told["KUBERNETES_SERVICE_HOST"], told["KUBERNETES_SERVICE_PORT"]) == ("10.96.0.1", "80")
    assert not [name for name in told if not name.startswith("KUBERNETES_")]


LAYERS: dict[str, tuple[tuple[int, ...] | None, str | None]] = {
    "a node without GPUs leaves the variable to the container": (None, "mine"),
    "a container without GPUs sees none": ((), ""),
    "a container with GPUs sees its own": ((2, 5), "2,5"),
}


@pytest.mark.parametrize("case", LAYERS, ids=str)
def test_devices_are_what_the_node_gave(case: str) -> None:
    gpus, expected = LAYERS[case]
    env_context = EnvContext("n1", "", "", "host", gpus=gpus)
    caller, image = {"PATH": "/bin", "HOME": "/root", "X": "caller"}, {"X": "image", "Y": "image"}
    built = environment(
        {"Y": "pod", "CUDA_VISIBLE_DEVICES": "mine"}, caller=caller, image=image, env_context=env_context
    )
    order = {} if gpus is None else {"CUDA_DEVICE_ORDER": "PCI_BUS_ID"}
    assert built == order | {
        "PATH": "/bin",
        "HOME": "/root",
        "X": "image",
        "Y": "pod",
        "HOSTNAME": "host",
        "CUDA_VISIBLE_DEVICES": expected,
    }


COMMANDS: dict[str, tuple[Obj, tuple[str, ...]]] = {
    "its own command": ({"command": ["a", "$(V)"], "args": ["$(V)", "$$(V)"]}, ("a", "1", "1", "$(V)")),
    "the entry's command with its args": ({"args": ["x"]}, ("python", "x")),
    "the entry's command alone": ({}, ("python",)),
}


@pytest.mark.parametrize("case", COMMANDS, ids=str)
def test_the_command_line(case: str) -> None:
    holder, expected = COMMANDS[case]
    assert command_line(holder, ["python"], {"V": "1"}) == expected
