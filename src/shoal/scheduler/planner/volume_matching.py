"""Which volume would do for a claim, and from where a volume can be reached.

Used by the controller that binds volumes to claims, and by the scheduler, where a claim waits for its first pod.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import product
from typing import Any

from shoal.kube.objects import Key, Obj, annotations_of, at_path, is_terminating, key_of, labels_of, name_of, uid_of
from shoal.kube.quantity import Quantity
from shoal.kube.selectors import from_label_selector
from shoal.scheduler.planner.node_and_pod_types import Node
from shoal.scheduler.planner.taints import holds

Terms = tuple[Mapping[str, Any], ...]  # of a node selector: any of these

SELECTED_NODE = "volume.kubernetes.io/selected-node"  # on a claim: where its first pod will run
BY_CONTROLLER = "pv.kubernetes.io/bound-by-controller"
CLASS_NOTE = "volume.beta.kubernetes.io/storage-class"  # which came before the field
NODE_NAME = "metadata.name"
NO_PROVISIONER = "kubernetes.io/no-provisioner"
ZONES = (
    "topology.kubernetes.io/zone", "topology.kubernetes.io/region",
    "failure-domain.beta.kubernetes.io/zone", "failure-domain.beta.kubernetes.io/region",
)  # fmt: skip


def class_of(obj: Obj) -> str:
    return str(annotations_of(obj).get(CLASS_NOTE) or at_path(obj, "spec", "storageClassName", default=""))


def size_of(volume: Obj) -> Quantity:
    return Quantity.parse(str(at_path(volume, "spec", "capacity", "storage", default="0")))


def requested_size(claim: Obj) -> Quantity:
    return Quantity.parse(str(at_path(claim, "spec", "resources", "requests", "storage", default="0")))


def waits_for_first_consumer(storage_class: Obj | None) -> bool:
    """Whether claims of this class get their volumes when their first pod has a node."""
    return storage_class is not None and storage_class.get("volumeBindingMode") == "WaitForFirstConsumer"


def is_for(volume: Obj, claim: Obj) -> bool:
    """Whether the volume names the claim, by uid or by name alone."""
    reference = at_path(volume, "spec", "claimRef") or {}
    if reference.get("uid"):
        return bool(reference["uid"] == uid_of(claim))
    return Key(reference.get("namespace", ""), reference.get("name", "")) == key_of(claim)


def is_free(volume: Obj) -> bool:
    return not at_path(volume, "spec", "claimRef") and not is_terminating(volume)


def satisfies(volume: Obj, claim: Obj) -> bool:
    """Large enough, of the same class and mode, with the requested access modes and labels."""
    modes = set(at_path(claim, "spec", "accessModes", default=()))
    selector = at_path(claim, "spec", "selector")
    return (
        class_of(volume) == class_of(claim)
        and _mode(volume) == _mode(claim)
        and modes <= set(at_path(volume, "spec", "accessModes", default=()))
        and size_of(volume) >= requested_size(claim)
        and (selector is None or from_label_selector(selector).matches(labels_of(volume)))
    )


def smallest(volumes: Iterable[Obj]) -> Obj | None:
    """The least is wasted so; names decide."""
    return min(volumes, key=lambda volume: (size_of(volume), name_of(volume)), default=None)


def _mode(obj: Obj) -> str:
    return str(at_path(obj, "spec", "volumeMode", default="Filesystem"))


def reference_to(claim: Obj) -> Obj:
    key = key_of(claim)
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "namespace": key.namespace,
        "name": key.name,
        "uid": uid_of(claim),
    }


def reach_of(volume: Obj) -> tuple[Terms, ...]:
    """Which nodes can mount it: one of the terms of each; nothing where all can. Zones may be labels of the volume."""
    found: list[Terms] = []
    if terms := at_path(volume, "spec", "nodeAffinity", "required", "nodeSelectorTerms"):
        found.append(tuple(terms))
    labels = labels_of(volume)
    for key in ZONES:
        if value := labels.get(key):
            within = {"key": key, "operator": "In", "values": value.split("__")}
            found.append(({"matchExpressions": [within]},))
    return tuple(found)


def merged(reach: Iterable[Terms]) -> Terms:
    """The same as one list of terms, any of which will do."""
    parts = ("matchExpressions", "matchFields")
    return tuple(
        {part: [each for term in terms for each in term.get(part) or ()] for part in parts} for terms in product(*reach)
    )


def made_at(storage_class: Obj) -> Terms:
    """Where volumes of the class may be made; nothing where everywhere."""
    terms = storage_class.get("allowedTopologies") or ()
    return tuple(
        {"matchExpressions": [{**label, "operator": "In"} for label in term.get("matchLabelExpressions") or ()]}
        for term in terms
    )


def is_within(node: Node, reach: Iterable[Terms]) -> bool:
    """Whether the node is one of those."""
    return all(any(_matches(node, term) for term in terms) for terms in reach)


def _matches(node: Node, term: Mapping[str, Any]) -> bool:
    labels, fields = term.get("matchExpressions") or (), term.get("matchFields") or ()
    if not labels and not fields:
        return False
    by_labels = all(holds(requirement, node.labels) for requirement in labels)
    return by_labels and all(holds(requirement, {NODE_NAME: node.name}) for requirement in fields)


def on_node(name: str) -> Mapping[str, Any]:
    """A term that only this node matches."""
    return {"matchFields": [{"key": NODE_NAME, "operator": "In", "values": [name]}]}
