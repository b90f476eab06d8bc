"""GPUs: which there are, and which container has which.

NVML reports what is installed; a machine without the library or the driver simply has none. Which indices a pod has is
stored in its record, so that an adopted pod keeps the devices its processes already use.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from shoal.kube.objects import Obj
from shoal.kube.quantity import Quantity
from shoal.node.pod_lifecycle import containers, init_containers, is_sidecar

RESOURCE = "nvidia.com/gpu"


@dataclass(frozen=True, slots=True)
class Gpu:
    index: int
    name: str
    memory_bytes: int
    uuid: str = ""


def installed() -> tuple[Gpu, ...]:
    """The GPUs NVML finds; none where there is no driver."""
    try:
        import pynvml
    except ImportError:
        return ()
    try:
        pynvml.nvmlInit()
    except pynvml.NVMLError:
        return ()
    try:
        handles = [pynvml.nvmlDeviceGetHandleByIndex(i) for i in range(pynvml.nvmlDeviceGetCount())]
        return tuple(
            Gpu(
                index,
                _text(pynvml.nvmlDeviceGetName(handle)),
                int(pynvml.nvmlDeviceGetMemoryInfo(handle).total),
                _text(pynvml.nvmlDeviceGetUUID(handle)),
            )
            for index, handle in enumerate(handles)
        )
    except pynvml.NVMLError:
        return ()
    finally:
        pynvml.nvmlShutdown()


def _text(name: str | bytes) -> str:
    return name.decode() if isinstance(name, bytes) else name


def visible(found: Iterable[Gpu], chosen: str | None) -> tuple[Gpu, ...]:
    """Those of the GPUs that a caller's own CUDA_VISIBLE_DEVICES leaves: a batch system may have given it a few."""
    if chosen is None:
        return tuple(found)
    names = [name.strip() for name in chosen.split(",") if name.strip()]
    return tuple(g for g in found if str(g.index) in names or any(n in g.uuid for n in names if not n.isdigit()))


def wanted(container: Obj) -> int:
    resources = container.get("resources") or {}
    amount = (resources.get("limits") or {}).get(RESOURCE) or (resources.get("requests") or {}).get(RESOURCE)
    return Quantity.parse(str(amount)).value() if amount is not None else 0


def assign(pod: Obj, free: Iterable[int]) -> dict[str, list[int]] | None:
    """Devices for each container that requests some, or None where there are too few.

    Containers that run side by side share nothing. A plain init container has ended before they start, so it
    borrows what they will have, and takes more only where it requests more.
    """
    pool = sorted(free)
    given: dict[str, list[int]] = {}
    taken = 0
    for container in [*(c for c in init_containers(pod) if is_sidecar(c)), *containers(pod)]:
        count = wanted(container)
        if count:
            given[container["name"]] = pool[taken : taken + count]
            taken += count
    sidecars = sum(wanted(c) for c in init_containers(pod) if is_sidecar(c))
    most = taken
    for container in init_containers(pod):
        count = 0 if is_sidecar(container) else wanted(container)
        if count:
            given[container["name"]] = pool[sidecars : sidecars + count]
            most = max(most, sidecars + count)
    return given if most <= len(pool) else None
