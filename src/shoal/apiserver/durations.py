"""Lengths of time the way kubectl shows them: `45s`, `3m20s`, `5h2m`, `12d`, two or three figures and no more."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from shoal.kube import times

UNKNOWN = "<unknown>"


def age_since(moment: Any, now: datetime) -> str:
    """From a timestamp as objects carry it; `<unknown>` where there is none, `<invalid>` where it is no time."""
    if not moment:
        return UNKNOWN
    try:
        return human_duration((now - times.parse(str(moment))).total_seconds())
    except ValueError:
        return "<invalid>"


def human_duration(seconds: float) -> str:
    whole = int(seconds)
    if whole < -1:
        return "<invalid>"  # more than clocks that differ a little would explain
    if whole < 0:
        return "0s"
    if whole < 120:
        return f"{whole}s"
    minutes, hours = whole // 60, whole // 3600
    if minutes < 10:
        return _two(minutes, "m", whole % 60, "s")
    if minutes < 180:
        return f"{minutes}m"
    if hours < 8:
        return _two(hours, "h", minutes % 60, "m")
    if hours < 48:
        return f"{hours}h"
    days = hours // 24
    if days < 8:
        return _two(days, "d", hours % 24, "h")
    if hours < 24 * 365 * 2:
        return f"{days}d"
    if hours < 24 * 365 * 8:
        return _two(days // 365, "y", days % 365, "d")
    return f"{days // 365}y"


def _two(large: int, large_unit: str, small: int, small_unit: str) -> str:
    return f"{large}{large_unit}{small}{small_unit}" if small else f"{large}{large_unit}"
