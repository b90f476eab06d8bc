"""Who needs only the metadata of a kind gets only that, from lists, watches and the answers to writes."""

from __future__ import annotations

from contextlib import aclosing

import pytest

from kit.cluster_backends import Reached
from kit.cluster_objects import config_map, pod
from shoal.cluster.client import WatchEventType
from shoal.cluster.kubeconfig import from_kubeconfig
from shoal.cluster.kubernetes import open_client
from shoal.cluster.kubernetes.field_decoders import MetadataOnly, WithoutManagedFields
from shoal.kube.errors import ApiError
from shoal.kube.kinds import CONFIG_MAP, POD
from shoal.kube.objects import Obj

FIELDS = {"apiVersion": "v1", "kind": "ConfigMap"}


def seen(obj: Obj) -> tuple[set[str], str]:
    """Its fields, and its name; an object that does not say of which kind it is is no such object."""
    assert {name: obj[name] for name in FIELDS} == FIELDS
    return set(obj) - set(FIELDS), obj["metadata"]["name"]


async def test_metadata_alone_has_its_kind(reached: Reached) -> None:
    expected, namespace = ({"metadata"}, "a"), reached.namespace
    how = {"shapes": {CONFIG_MAP: MetadataOnly}, "answers": {CONFIG_MAP: MetadataOnly}}
    async with open_client(from_kubeconfig(reached.kubeconfig), **how) as cluster:
        made = await cluster.create(CONFIG_MAP, config_map("a", {"x": "1"}), namespace)
        assert seen(made) == expected
        assert seen(await cluster.get(CONFIG_MAP, "a", namespace)) == expected
        assert seen(await cluster.patch(CONFIG_MAP, "a", namespace, patch={"data": {"x": "2"}})) == expected
        listed = await cluster.list(CONFIG_MAP, namespace, fields="metadata.name=a")
        assert [seen(item) for item in listed.items] == [expected]
        watching = cluster.watch(CONFIG_MAP, namespace, fields="metadata.name=a", initial_events=True)
        async with aclosing(watching) as events:  # type: ignore[type-var]
            first, second = await anext(events), await anext(events)
        assert (first.type, seen(first.object)) == (WatchEventType.ADDED, expected)
        assert second.ends_initial_list
        assert (await cluster.delete(CONFIG_MAP, "a", namespace))["status"] == "Success"
        await cluster.create(CONFIG_MAP, config_map("b", labels={"app": "x"}), namespace)
        await cluster.delete_collection(CONFIG_MAP, namespace, labels="app=x")
        assert (await cluster.list(CONFIG_MAP, namespace, labels="app=x")).items == []


async def test_responses_of_one_kind_leave_out_managed_fields(reached: Reached) -> None:
    async with open_client(from_kubeconfig(reached.kubeconfig), answers={POD: WithoutManagedFields}) as cluster:
        made = await cluster.create(POD, pod("p"), reached.namespace)
        assert (set(made), "managedFields" in made["metadata"]) == (
            {"apiVersion", "kind", "metadata", "spec", "status"}, False,
        )  # fmt: skip
        with pytest.raises(ApiError, match='pods "p" already exists'):
            await cluster.create(POD, pod("p"), reached.namespace)
        other = await cluster.create(CONFIG_MAP, config_map("a", {"x": "1"}), reached.namespace)
        assert (other["data"], "managedFields" in other["metadata"]) == ({"x": "1"}, True)
