"""What `kubectl get` shows of each kind: the columns, and how a row's cells come from an object.

One module per family of kinds. `layout_of` is the whole interface: built-in kinds have their own layout, custom
kinds show what their definition declares, anything else its name and age.
"""

from __future__ import annotations

from functools import lru_cache

from shoal.apiserver.printers import core, custom_resources, pods, policy, services, storage, workloads
from shoal.apiserver.printers.table import Layout
from shoal.kube.kinds import Kind

_LAYOUTS: dict[tuple[str, str], Layout] = {
    **pods.LAYOUTS,
    **services.LAYOUTS,
    **storage.LAYOUTS,
    **workloads.LAYOUTS,
    **policy.LAYOUTS,
    **core.LAYOUTS,
}


@lru_cache(maxsize=512)
def layout_of(kind: Kind) -> Layout:
    return _LAYOUTS.get((kind.group, kind.kind)) or custom_resources.layout(kind)
