"""What `kubectl get` shows of each kind: the columns, and how a row's cells come from an object.

One module per family of kinds. `printer_of` is the whole interface: built-in kinds have their own layout, custom
kinds show what their definition declares, anything else its name and age.
"""

from __future__ import annotations

from functools import lru_cache

from shoal.apiserver.printers import (
    core_printers,
    custom_resources,
    pod_printers,
    policy_printers,
    service_printers,
    storage_printers,
    workload_printers,
)
from shoal.apiserver.printers.table import TablePrinter
from shoal.kube.kinds import Kind

_PRINTERS: dict[tuple[str, str], TablePrinter] = {
    **pod_printers.PRINTERS,
    **service_printers.PRINTERS,
    **storage_printers.PRINTERS,
    **workload_printers.PRINTERS,
    **policy_printers.PRINTERS,
    **core_printers.PRINTERS,
}


@lru_cache(maxsize=512)
def printer_of(kind: Kind) -> TablePrinter:
    return _PRINTERS.get((kind.group, kind.kind)) or custom_resources.printer(kind)
