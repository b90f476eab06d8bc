"""A body of a megabyte takes time linear in its size, and many mistakes in it do not make an answer of gigabytes."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from kit import manifests
from kit.asgi_client import Asgi
from shoal.apiserver.app import build_application
from shoal.cluster.embedded import EmbeddedCluster
from shoal.cluster.write import _without_duplicate_owners
from shoal.kube.errors import MAX_CAUSES_CHARACTERS
from shoal.kube.kinds import CONFIG_MAP, POD
from shoal.kube.objects import Obj
from shoal.kube.patching.strategic import strategic_merge
from shoal.kube.schemas import schema_of

CONFIG_MAPS, PODS = "/api/v1/namespaces/default/configmaps", "/api/v1/namespaces/default/pods"
COUNT = 2_000
LENGTH = 1_000  # of what each of them shows: together 4 GB where each shows them all
OWNERS = [
    {"apiVersion": "v1", "kind": "Pod", "name": "a" * LENGTH, "uid": str(number), "controller": True}
    for number in range(COUNT)
]


def pod_with(env: list[Obj]) -> Obj:
    made = manifests.pod()
    made["spec"]["containers"][0]["env"] = env
    return made


WRONG: dict[str, tuple[str, Obj]] = {
    "owners": (CONFIG_MAPS, {"metadata": {"name": "a", "ownerReferences": OWNERS}}),
    "variables": (PODS, pod_with([{"name": "="} for _ in range(100_000)])),
    "finalizers": (CONFIG_MAPS, {"metadata": {"name": "a", "finalizers": ["!"] * 100_000}}),
}


@pytest.fixture
async def http() -> AsyncIterator[Asgi]:
    cluster = await EmbeddedCluster.open(":memory:")
    yield Asgi(build_application(cluster, token="let-me-in"), "let-me-in")
    await cluster.close()


@pytest.mark.parametrize(("collection", "obj"), WRONG.values(), ids=WRONG)
async def test_an_answer_lists_no_more_mistakes_than_can_be_read(http: Asgi, collection: str, obj: Obj) -> None:
    answer = await http("POST", collection, obj)

    assert answer.status == 422
    assert "there are more mistakes, which are not listed" in answer.json["message"]
    assert len(answer.json["message"]) < 2 * MAX_CAUSES_CHARACTERS + COUNT * (LENGTH + 100)
    assert answer.json["details"]["causes"][-1]["message"] == "there are more mistakes, which are not listed"


# Quadratic merging would need the better part of an hour for these: the tests end, or never do.
MANY = 100_000


def variables(prefix: str, **more: str) -> list[Obj]:
    return [{"name": f"{prefix}{number}", **more} for number in range(MANY)]


PATCHES: dict[str, tuple[list[Obj], int]] = {
    "changed": (variables("V", value="y"), MANY),
    "added": (variables("W", value="y"), 2 * MANY),
    "deleted": (variables("V", **{"$patch": "delete"}), 0),
}


@pytest.mark.parametrize(("patch", "left"), PATCHES.values(), ids=PATCHES)
def test_lists_are_merged_in_linear_time(patch: list[Obj], left: int) -> None:
    live = pod_with(variables("V", value="x"))
    name = live["spec"]["containers"][0]["name"]
    merged = strategic_merge(schema_of(POD), live, {"spec": {"containers": [{"name": name, "env": patch}]}})

    assert len(merged["spec"]["containers"][0]["env"]) == left


def test_values_are_deleted_in_linear_time() -> None:
    finalizers = [f"f{number}" for number in range(MANY)]
    patch = {"metadata": {"$deleteFromPrimitiveList/finalizers": finalizers[1:]}}

    assert strategic_merge(schema_of(CONFIG_MAP), {"metadata": {"finalizers": finalizers}}, patch) == {
        "metadata": {"finalizers": ["f0"]}
    }


def test_owners_that_stand_twice_are_found_in_linear_time() -> None:
    owners = [{"apiVersion": "v1", "kind": "Pod", "name": "a", "uid": str(number)} for number in range(MANY)]
    meta: Obj = {"ownerReferences": [*owners, owners[0]]}

    assert "duplicate UID(s) observed: 0" in _without_duplicate_owners(meta)[0]
    assert meta["ownerReferences"] == owners
