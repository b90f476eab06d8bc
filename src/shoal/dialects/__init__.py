"""Job languages: one module per API. A new one is a new module here, and its name in `NAMES`.

A dialect turns manifests into the engine's words and back (`dialect`); nothing in the engine or the operator knows
any of them by name. Loaded when asked for.
"""

from __future__ import annotations

from importlib import import_module

from shoal.dialects.dialect import Dialect

NAMES = ("framework", "volcano")


# What an operator on Kubernetes serves unless it is told otherwise. Languages whose own controllers people may be
# running there are asked for by name: two of them at the same jobs would not go well.
UNASKED = ("framework",)


def load(name: str) -> Dialect:
    """The dialect in the module of that name."""
    dialect: Dialect = import_module(f"{__name__}.{name}").DIALECT
    return dialect


def dialects() -> tuple[Dialect, ...]:
    """Every language Shoal speaks."""
    return tuple(load(name) for name in NAMES)


def dialect_of(api_version: str, kind: str) -> Dialect | None:
    """The dialect of such manifests, if it is one of ours."""
    return next((d for d in dialects() if (d.kind.api_version, d.kind.kind) == (api_version, kind)), None)
