"""Amounts formatted for the terminal. What a pod requests is computed in `shoal.kube.pod_resources`."""

from __future__ import annotations

from functools import lru_cache

from shoal.kube.pod_resources import Amounts, add, amounts, requests_of

__all__ = ["Amounts", "add", "amounts", "requests_of", "shown"]

BINARY = (("Ti", 1 << 40), ("Gi", 1 << 30), ("Mi", 1 << 20), ("Ki", 1 << 10))


@lru_cache(maxsize=4096)
def shown(name: str, milli: int) -> str:
    """An amount with at most one decimal place: `500m`, `4`, `1.5Gi`."""
    if name in ("memory", "ephemeral-storage") or name.startswith("hugepages-"):
        size = milli / 1000
        for suffix, factor in BINARY:
            if abs(size) >= factor:
                return f"{round(size / factor, 1):g}{suffix}"
        return f"{size:g}"
    return f"{milli // 1000}" if milli % 1000 == 0 else f"{milli}m"
