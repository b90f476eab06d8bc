"""The node adds to a pod what it needs to reach the API server of the embedded cluster."""

from __future__ import annotations

from typing import Any

import pytest

from kit.pods import container, pod, stored
from shoal.kube.kinds import CONFIG_MAP
from shoal.kube.objects import Key
from shoal.node.pod_api_credentials import FOLDER, VOLUME, ApiAccess
from shoal.node.pod_references import Lookup, Reference

MOUNT = {"name": VOLUME, "mountPath": FOLDER, "readOnly": True}


def access(*, automounts: bool = True) -> ApiAccess:
    return ApiAccess("the authority", ("10.0.0.5", 7443), lambda namespace, account: automounts)


@pytest.mark.parametrize(
    ("spec", "automounts", "expected"),
    [
        pytest.param({}, True, True, id="default"),
        pytest.param({}, False, False, id="the account opts out"),
        pytest.param({"automountServiceAccountToken": False}, True, False, id="the pod opts out"),
        pytest.param({"automountServiceAccountToken": True}, False, True, id="the pod decides first"),
    ],
)
def test_the_pod_decides_before_its_service_account(spec: dict[str, Any], automounts: bool, expected: bool) -> None:
    assert access(automounts=automounts).is_for(stored(pod(**spec))) is expected


def test_every_container_mounts_the_volume_but_for_one_that_mounts_something_else_there() -> None:
    own = {"name": "own", "mountPath": f"{FOLDER}/"}
    before = stored(pod("p", container("main"), container("special", volumeMounts=[own]), inits=(container("init"),)))
    after = access().add_to(before)["spec"]
    mounts = {each["name"]: each.get("volumeMounts") for each in (*after["initContainers"], *after["containers"])}
    assert mounts == {"init": [MOUNT], "main": [MOUNT], "special": [own]}
    assert [volume["name"] for volume in after["volumes"]] == [VOLUME]
    assert "volumes" not in before["spec"]


def test_the_authority_is_a_config_map_unless_there_is_one() -> None:
    key = Key("default", "kube-root-ca.crt")
    assert access().with_root_ca(Lookup(), "default").data(CONFIG_MAP, *key) == {"ca.crt": b"the authority"}
    written = Lookup({Reference(CONFIG_MAP, key): {"data": {"ca.crt": "another"}}})
    assert access().with_root_ca(written, "default").data(CONFIG_MAP, *key) == {"ca.crt": b"another"}


def test_a_pod_on_the_machines_network_is_given_the_servers_own_address() -> None:
    api = {
        "metadata": {"name": "kubernetes", "namespace": "default"},
        "spec": {"clusterIP": "10.96.0.1", "ports": [{"port": 443}]},
    }
    other = {
        "metadata": {"name": "web", "namespace": "default"},
        "spec": {"clusterIP": "10.96.0.9", "ports": [{"port": 80}]},
    }
    shown = access().reachable_services([api, other])
    assert shown == ({**api, "spec": {"clusterIP": "10.0.0.5", "ports": [{"port": 7443}]}}, other)
