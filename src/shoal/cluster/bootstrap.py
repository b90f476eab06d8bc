"""What every cluster has from its first moment: four namespaces and two priority classes."""

from __future__ import annotations

from shoal.cluster.registry import Core
from shoal.cluster.types import WriteOptions
from shoal.cluster.write import Writer
from shoal.kube import kinds
from shoal.kube.objects import Key, Obj

NAMESPACES = ("default", "kube-system", "kube-public", "kube-node-lease")
_CRITICAL = {
    "system-node-critical": (
        2000001000,
        "Used for system critical pods that must not be moved from their current node.",
    ),
    "system-cluster-critical": (
        2000000000,
        "Used for system critical pods that must run in the cluster, but can be moved to another node if necessary.",
    ),
}
_BY_US = WriteOptions(field_manager="shoal")


def create_bootstrap_objects(core: Core, writer: Writer) -> None:
    """Make what is missing; what is there stays as it is."""
    for name in NAMESPACES:
        if Key("", name) not in core.namespaces.table.objects:
            writer.create(core.namespaces, "", {"metadata": {"name": name}}, _BY_US)
    classes = core.resource(kinds.PRIORITY_CLASS)
    for name, (value, description) in _CRITICAL.items():
        if Key("", name) not in classes.table.objects:
            obj: Obj = {"metadata": {"name": name}, "value": value, "description": description}
            writer.create(classes, "", obj, _BY_US)
