"""What claims, volumes and classes say about where a pod may go, and which volume it gets there."""

from __future__ import annotations

from typing import Any

import pytest

from kit.planner_board import cores
from shoal.cluster.informer import Change
from shoal.kube.kinds import PERSISTENT_VOLUME, PERSISTENT_VOLUME_CLAIM, STORAGE_CLASS, Kind
from shoal.kube.objects import Key, Obj, key_of, name_of
from shoal.scheduler.cache.volume_claims import VolumeClaims
from shoal.scheduler.messages import text
from shoal.scheduler.planner.node_and_pod_types import Node
from shoal.scheduler.planner.volume_matching import NO_PROVISIONER, SELECTED_NODE, is_within

ZONE = "topology.kubernetes.io/zone"
POD: Obj = {
    "metadata": {"namespace": "ns", "name": "p"},
    "spec": {"volumes": [{"name": "data", "persistentVolumeClaim": {"claimName": "data"}}]},
}
NODES = [Node(name, cores(cpu=1), {ZONE: f"z-{name}", "rack": "r"}) for name in ("a", "b")]


def within(key: str, *values: str) -> Obj:
    return {"matchExpressions": [{"key": key, "operator": "In", "values": list(values)}]}


def claim(volume: str = "", *, notes: Any = None, **spec: Any) -> Obj:
    wanted = {
        "storageClassName": "late",
        "accessModes": ["ReadWriteOnce"],
        "resources": {"requests": {"storage": "2Gi"}},
    }
    named = {"volumeName": volume} if volume else {}
    metadata = {"namespace": "ns", "name": "data", "uid": "u", "annotations": notes or {}}
    return {"metadata": metadata, "spec": {**wanted, **named, **spec}, "status": {}}


def volume(name: str, *terms: Obj, size: str = "2Gi", labels: Any = None, **spec: Any) -> Obj:
    reach = {"nodeAffinity": {"required": {"nodeSelectorTerms": list(terms)}}} if terms else {}
    base = {"storageClassName": "late", "accessModes": ["ReadWriteOnce"], "capacity": {"storage": size}}
    return {"metadata": {"name": name, "uid": name, "labels": labels or {}}, "spec": {**base, **reach, **spec}}


def storage(provisioner: str = "acme.io/disks", mode: str = "WaitForFirstConsumer", **more: Any) -> Obj:
    return {"metadata": {"name": "late"}, "provisioner": provisioner, "volumeBindingMode": mode, **more}


def entry(*objects: Obj) -> VolumeClaims:
    found = VolumeClaims(lambda _: True)
    for obj in objects:
        tell(found, obj)
    return found


def tell(claims: VolumeClaims, obj: Obj) -> None:
    kind: Kind = STORAGE_CLASS if "provisioner" in obj else PERSISTENT_VOLUME
    kind = PERSISTENT_VOLUME_CLAIM if "namespace" in obj["metadata"] else kind
    claims.changed(Change(kind, key_of(obj), None, obj))


LOCAL = storage(NO_PROVISIONER)
ON_A, ON_B = volume("va", within(ZONE, "z-a")), volume("vb", within(ZONE, "z-b"))
OTHERS = {"claimRef": {"namespace": "ns", "name": "other", "uid": "o"}}
MINE = {"claimRef": {"namespace": "ns", "name": "data"}}
TOPOLOGY = [{"matchLabelExpressions": [{"key": ZONE, "values": ["z-b"]}]}]

# What is known, the nodes where the pod may go, and what the claim gets there: a volume, or "made".
PLACES: dict[str, tuple[list[Obj], dict[str, str]]] = {
    "bound, reached from one node": ([claim("va"), ON_A], {"a": "bound"}),
    "bound, in a zone by its label": ([claim("v"), volume("v", labels={ZONE: "z-b__z-c"})], {"b": "bound"}),
    "bound, by label and affinity": (
        [claim("v"), volume("v", within("rack", "r"), labels={ZONE: "z-b"})],
        {"b": "bound"},
    ),
    "made anywhere": ([claim(), storage()], {"a": "made", "b": "made"}),
    "made in one zone": ([claim(), storage(allowedTopologies=TOPOLOGY)], {"b": "made"}),
    "a volume where there is one, else made": ([claim(), storage(), ON_B], {"a": "made", "b": "vb"}),
    "only volumes": ([claim(), LOCAL, ON_A, ON_B], {"a": "va", "b": "vb"}),
    "the smallest that will do": (
        [claim(), LOCAL, volume("large", size="9Gi"), volume("fits", size="3Gi"), volume("small", size="1Gi")],
        {"a": "fits", "b": "fits"},
    ),
    "not those of others": ([claim(), LOCAL, ON_A, volume("taken", **OTHERS)], {"a": "va"}),
    "the one that names it": ([claim(), storage(), ON_A, volume("mine", within(ZONE, "z-b"), **MINE)], {"b": "mine"}),
    "of its class": ([claim(), LOCAL, ON_A, volume("fast", storageClassName="fast")], {"a": "va"}),
    "of its mode": (
        [claim(volumeMode="Block"), LOCAL, ON_A, volume("raw", volumeMode="Block")],
        {"a": "raw", "b": "raw"},
    ),
    "a node was chosen before": ([claim(notes={SELECTED_NODE: "b"}), storage()], {"b": "made"}),
}


@pytest.mark.parametrize(("objects", "places"), PLACES.values(), ids=PLACES)
def test_a_pod_may_go_where_its_claim_has_or_gets_a_volume(objects: list[Obj], places: dict[str, str]) -> None:
    why, terms = entry(*objects).of(POD)
    assert why is None
    assert {node.name for node in NODES if is_within(node, terms)} == places.keys()
    for node in NODES:
        claims = entry(*objects)
        claims.of(POD)
        if node.name in places:
            choices = claims.choose(Key("ns", "p"), node)
            assert choices is not None
            got = [name_of(choice.volume) if choice.volume is not None else "made" for choice in choices]
            assert (got or ["bound"]) == [places[node.name]]


WAITS: dict[str, tuple[list[Obj], str]] = {
    "no claim": ([], "the claim data does not exist; create it or remove it from the pod"),
    "no volume": ([claim("v")], "the volume v of the claim data does not exist"),
    "bound at once by somebody": ([claim(), storage(mode="Immediate")], "the claim data has no volume yet"),
    "no class": ([claim()], "the claim data has no volume yet"),
    "none is large enough": (
        [claim(), LOCAL, volume("small", size="1Gi")],
        "no free volume satisfies the claim data (2Gi of class late), and no provisioner creates one",
    ),
}


@pytest.mark.parametrize(("objects", "why"), WAITS.values(), ids=WAITS)
def test_a_pod_waits_and_says_for_which_claim(objects: list[Obj], why: str) -> None:
    message, terms = entry(*objects).of(POD)
    assert message is not None
    assert (text(message), terms) == (why, ())


def test_what_was_chosen_for_one_claim_is_nothing_for_another_until_it_is_given_up() -> None:
    other = {**claim(), "metadata": {"namespace": "ns", "name": "other", "uid": "o"}}
    claims = entry(claim(), other, LOCAL, ON_A)
    mate: Obj = {"metadata": {"namespace": "ns", "name": "q"}, "spec": {"volumes": [_named("other")]}}
    for pod in (POD, mate):
        claims.of(pod)
    first = claims.choose(Key("ns", "p"), NODES[0])
    assert first is not None
    assert [choice.claim.name for choice in first] == ["data"]
    assert claims.choose(Key("ns", "q"), NODES[0]) is None
    assert text(claims.of(mate)[0]).startswith("no free volume satisfies the claim other")
    claims.take_stale()
    claims.end([Key("ns", "data")])
    assert claims.take_stale() == [Key("ns", "p"), Key("ns", "q")]
    assert claims.of(mate) == (None, ((_merged(ON_A),),))


READER = Key("ns", "p")
CHANGES: dict[str, tuple[list[Obj], Obj, list[Key]]] = {
    "a volume that is somebody else's": ([claim(), LOCAL, ON_A], volume("taken", **OTHERS), []),
    "a volume of another class": ([claim(), LOCAL, ON_A], volume("fast", storageClassName="fast"), []),
    "a free volume": ([claim(), LOCAL], ON_A, [READER]),
    "a volume that names its claim": ([claim(), LOCAL, ON_A], volume("mine", **MINE), [READER]),
    "its volume": ([claim("va")], ON_A, [READER]),
    "a free volume when it has its own": ([claim("va"), LOCAL, ON_A], ON_B, []),
    "its class": ([claim()], LOCAL, [READER]),
    "its claim": ([LOCAL, ON_A], claim(), [READER]),
}


@pytest.mark.parametrize(("objects", "change", "pods"), CHANGES.values(), ids=CHANGES)
def test_pods_are_read_again_only_for_what_may_matter_to_them(objects: list[Obj], change: Obj, pods: list[Key]) -> None:
    claims = entry(*objects)
    claims.of(POD)
    claims.take_stale()
    tell(claims, change)
    assert (claims.take_stale(), claims.take_stale()) == (pods, [])


def test_a_free_volume_that_somebody_took_is_news_to_whoever_could_have_had_it() -> None:
    claims = entry(claim(), LOCAL, ON_A)
    assert claims.of(POD) == (None, ((_merged(ON_A),),))
    claims.take_stale()
    tell(claims, {**ON_A, "spec": {**ON_A["spec"], **OTHERS}})
    assert claims.take_stale() == [READER]
    assert text(claims.of(POD)[0]).startswith("no free volume satisfies the claim data")


def _named(claim: str) -> Obj:
    return {"name": "data", "persistentVolumeClaim": {"claimName": claim}}


def _merged(volume: Obj) -> Obj:
    term = volume["spec"]["nodeAffinity"]["required"]["nodeSelectorTerms"][0]
    return {"matchExpressions": term["matchExpressions"], "matchFields": []}
