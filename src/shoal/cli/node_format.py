"""What a node offers, as people read it: `2 cpu, 23.5 GiB memory, 4 nvidia.com/gpu`."""

from __future__ import annotations

from collections.abc import Mapping

from shoal.kube.quantity import Quantity

_HIDDEN = ("ephemeral-storage", "pods")  # every node has plenty
_UNITS = ("B", "KiB", "MiB", "GiB", "TiB", "PiB")


def format_allocatable(allocatable: Mapping[str, str]) -> str:
    amounts = {name: amount for name, amount in allocatable.items() if name not in _HIDDEN}
    return ", ".join(
        f"{format_bytes(amount) if name == 'memory' else amount} {name}" for name, amount in amounts.items()
    )


def format_bytes(amount: str) -> str:
    """With one decimal, in the largest unit of which there is a whole one."""
    size, units = float(Quantity.parse(amount).value()), list(_UNITS)
    while size >= 1024 and len(units) > 1:
        size /= 1024
        units.pop(0)
    return f"{size:.1f}".removesuffix(".0") + f" {units[0]}"
