"""Whatever the cluster is: objects are created, found, changed and deleted under the same promises."""

from __future__ import annotations

from typing import Any

import pytest

from kit.cluster_backends import Place
from kit.cluster_objects import config_map
from shoal.cluster.client import DeleteOptions, DeletionPropagation, PatchType, Preconditions
from shoal.kube.errors import ApiError
from shoal.kube.kinds import CONFIG_MAP, NAMESPACE, POD, SERVICE
from shoal.kube.objects import name_of, uid_of

CM = CONFIG_MAP


async def refused(awaitable: Any) -> tuple[int, str]:
    with pytest.raises(ApiError) as caught:
        await awaitable
    return caught.value.code, caught.value.reason


async def names(place: Place, **chosen: Any) -> list[str]:
    listed = await place.cluster.list(CM, place.namespace, **chosen)
    return [name_of(item) for item in listed.items if name_of(item) != "kube-root-ca.crt"]


async def test_what_was_created_is_found(place: Place) -> None:
    sent = config_map("a", labels={"app": "x"})
    made = await place.cluster.create(CM, sent, place.namespace, field_manager="somebody")
    assert sent == config_map("a", labels={"app": "x"})
    assert await place.cluster.get(CM, "a", place.namespace) == made
    assert (made["apiVersion"], made["kind"], made["data"]) == ("v1", "ConfigMap", {"mode": "fast"})
    assert [entry["manager"] for entry in made["metadata"]["managedFields"]] == ["somebody"]
    listed = await place.cluster.list(CM, place.namespace, labels="app=x")
    assert listed.items == [made]


async def test_what_cannot_be_is_refused(place: Place) -> None:
    cluster, namespace = place.cluster, place.namespace
    await cluster.create(CM, config_map("a"), namespace)
    assert [
        await refused(cluster.create(CM, config_map("a"), namespace)),
        await refused(cluster.get(CM, "b", namespace)),
        await refused(cluster.patch(CM, "b", namespace, patch={"data": {}})),
        await refused(cluster.delete(CM, "b", namespace)),
        await refused(cluster.create(CM, config_map("NOT A NAME"), namespace)),
        await refused(cluster.create(CM, config_map("a"), "nowhere-to-be-found")),
        await refused(cluster.create(POD, {"metadata": {"name": "p"}, "spec": {"containers": []}}, namespace)),
        await refused(cluster.list(CM, namespace, labels="((")),
    ] == [
        (409, "AlreadyExists"),
        (404, "NotFound"),
        (404, "NotFound"),
        (404, "NotFound"),
        (422, "Invalid"),
        (404, "NotFound"),
        (422, "Invalid"),
        (400, "BadRequest"),
    ]


async def test_a_name_is_never_a_path(place: Place) -> None:
    for name in ("..", "../secrets", "a/status", "a?watch=true", "a%2Fb"):
        code, _ = await refused(place.cluster.get(CM, name, place.namespace))
        assert code in (400, 404)


async def test_lists_come_in_pages_and_selections(place: Place) -> None:
    for name, mode in (("a", "x"), ("b", "y"), ("c", "x")):
        await place.cluster.create(CM, config_map(name, labels={"mode": mode}), place.namespace)
    first = await place.cluster.list(CM, place.namespace, labels="mode", limit=2)
    rest = await place.cluster.list(CM, place.namespace, labels="mode", limit=2, continue_token=first.continue_token)
    assert [[name_of(item) for item in page.items] for page in (first, rest)] == [["a", "b"], ["c"]]
    assert (first.resource_version, rest.continue_token) == (rest.resource_version, "")
    assert await names(place, labels="mode in (x)") == ["a", "c"]
    assert await names(place, fields="metadata.name=b") == ["b"]


async def test_a_dry_run_leaves_nothing(place: Place) -> None:
    cluster, namespace = place.cluster, place.namespace
    await cluster.create(CM, config_map("a"), namespace, dry_run=True)
    kept = await cluster.create(CM, config_map("b"), namespace)
    await cluster.patch(CM, "b", namespace, patch={"data": {"mode": "slow"}}, dry_run=True)
    await cluster.delete(CM, "b", namespace, DeleteOptions(dry_run=True))
    assert await names(place) == ["b"]
    assert await cluster.get(CM, "b", namespace) == kept


async def test_every_sort_of_patch_is_understood(place: Place) -> None:
    cluster, namespace = place.cluster, place.namespace
    await cluster.create(CM, config_map("a"), namespace)
    merged = await cluster.patch(CM, "a", namespace, patch={"data": {"mode": None, "size": "1"}})
    steps = [{"op": "test", "path": "/data/size", "value": "1"}, {"op": "add", "path": "/data/x", "value": "2"}]
    stepped = await cluster.patch(CM, "a", namespace, patch=steps, patch_type=PatchType.JSON)
    assert (merged["data"], stepped["data"]) == ({"size": "1"}, {"size": "1", "x": "2"})
    ports = [{"name": "one", "port": 1}, {"name": "two", "port": 2}]
    await cluster.create(SERVICE, {"metadata": {"name": "s"}, "spec": {"ports": ports}}, namespace)
    joined = await cluster.patch(
        SERVICE, "s", namespace, patch={"spec": {"ports": [{"port": 3, "name": "three"}]}},
        patch_type=PatchType.STRATEGIC,
    )  # fmt: skip
    assert sorted(port["name"] for port in joined["spec"]["ports"]) == ["one", "three", "two"]


async def test_fields_that_are_applied_have_owners(place: Place) -> None:
    def mode(value: str) -> dict[str, Any]:
        return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}, "data": {"mode": value}}

    async def apply(value: str, manager: str, *, force: bool = False) -> dict[str, Any]:
        return await place.cluster.patch(
            CM, "a", place.namespace, patch=mode(value), patch_type=PatchType.APPLY, field_manager=manager, force=force
        )

    assert (await apply("fast", "one"))["data"] == {"mode": "fast"}
    assert await refused(apply("slow", "two")) == (409, "Conflict")
    assert (await apply("slow", "two", force=True))["data"] == {"mode": "slow"}


async def test_a_write_for_another_version_or_uid_is_a_conflict(place: Place) -> None:
    cluster, namespace = place.cluster, place.namespace
    made = await cluster.create(CM, config_map("a"), namespace)
    current = await cluster.patch(CM, "a", namespace, patch={"data": {"mode": "slow"}})
    stale = {"metadata": {"resourceVersion": made["metadata"]["resourceVersion"]}, "data": {"x": "1"}}
    other = {"metadata": {"uid": "4a2b2c0e-0000-4000-8000-000000000000"}, "data": {"x": "1"}}
    right = {"metadata": {"resourceVersion": current["metadata"]["resourceVersion"], "uid": uid_of(made)}}
    assert await refused(cluster.patch(CM, "a", namespace, patch=stale)) == (409, "Conflict")
    assert await refused(cluster.patch(CM, "a", namespace, patch=other)) == (409, "Conflict")
    changed = await cluster.patch(CM, "a", namespace, patch={**right, "data": {"x": "1"}})
    assert changed["data"] == {"mode": "slow", "x": "1"}


async def test_a_deletion_may_name_what_it_means(place: Place) -> None:
    cluster, namespace = place.cluster, place.namespace
    made = await cluster.create(CM, config_map("a"), namespace)
    version = made["metadata"]["resourceVersion"]
    other = DeleteOptions(preconditions=Preconditions(uid="4a2b2c0e-0000-4000-8000-000000000000"))
    stale = DeleteOptions(preconditions=Preconditions(resource_version=str(int(version) + 1)))
    right = DeleteOptions(
        propagation=DeletionPropagation.BACKGROUND, preconditions=Preconditions(uid_of(made), resource_version=version)
    )
    assert await refused(cluster.delete(CM, "a", namespace, other)) == (409, "Conflict")
    assert await refused(cluster.delete(CM, "a", namespace, stale)) == (409, "Conflict")
    await cluster.delete(CM, "a", namespace, right)
    assert await names(place) == []


async def test_a_finalizer_keeps_what_is_deleted(place: Place) -> None:
    cluster, namespace = place.cluster, place.namespace
    held = config_map("a", metadata={"finalizers": ["example.com/held"]})
    await cluster.create(CM, held, namespace)
    lingering = await cluster.delete(CM, "a", namespace)
    assert lingering["metadata"]["finalizers"] == ["example.com/held"]
    assert (await cluster.get(CM, "a", namespace))["metadata"]["deletionTimestamp"]
    await cluster.patch(CM, "a", namespace, patch={"metadata": {"finalizers": None}})
    assert await names(place) == []


async def test_kinds_without_a_namespace_need_none(place: Place) -> None:
    found = await place.cluster.get(NAMESPACE, place.namespace)
    assert found["status"]["phase"] == "Active"
