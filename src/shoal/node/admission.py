"""Whether the node can take a pod that was bound to it.

Pure. A scheduler normally sees to it; a pod bound by hand, or by two schedulers at once, is refused here with
the phase Failed and the reason a kubelet gives (OutOfcpu, OutOfnvidia.com/gpu, ...), rather than squeezed in.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping

from shoal.kube.messages import Message
from shoal.kube.objects import Obj, namespace_of
from shoal.kube.quantity_format import Amounts, add, amounts, requests_of
from shoal.node.checkpoint import PodOutcome


def reject_by_namespace(pod: Obj, namespaces: Collection[str]) -> PodOutcome | None:
    """Of a pod that is not in one of `namespaces`, where any are given."""
    namespace = namespace_of(pod)
    if not namespaces or namespace in namespaces:
        return None
    message = Message("Rejected.Namespace", {"allowed": sorted(namespaces), "namespace": namespace})
    return PodOutcome("Failed", "NamespaceNotAllowed", message)


def reject_by_resources(pod: Obj, held: Iterable[Amounts], allocatable: Mapping[str, str]) -> PodOutcome | None:
    """Why the pod does not fit beside what others have `held` here, or None where it does."""
    requested = requests_of(pod)
    used = add(*held)
    capacity = amounts(allocatable)
    for name, amount in sorted(requested.items()):
        if amount and used.get(name, 0) + amount > capacity.get(name, 0):
            divisor = 1 if name == "cpu" else 1000  # amounts are in thousandths; a kubelet shows those of cores only
            numbers = {
                "requested": amount // divisor,
                "used": used.get(name, 0) // divisor,
                "capacity": capacity.get(name, 0) // divisor,
            }
            return PodOutcome("Failed", f"OutOf{name}", Message("Rejected.Resource", {"resource": name, **numbers}))
    return None
