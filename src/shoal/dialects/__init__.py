"""Job languages: one module per API. A new one is a new module here, and its name in `NAMES`.

A dialect turns manifests into the engine's terms and back (`dialect`); nothing in the engine or the operator refers to
any of them by name. Loaded on demand.
"""

from __future__ import annotations

from importlib import import_module

from shoal.dialects.dialect import Dialect

# kubedl before kubeflow: both have a PyTorchJob, and kubectl takes the kind of the first one installed.
NAMES = ("framework", "volcano", "kubedl", "kubeflow")

# What Kubernetes itself runs. Served in a cluster of our own only: elsewhere the cluster's own controllers do it.
NATIVE = ("native.replica_sets", "native.batch_job")

# What an operator on Kubernetes serves by default. Languages whose own controllers people may be
# running there are enabled by name: two controllers of the same jobs would conflict.
DEFAULT = ("framework",)


def load(name: str) -> Dialect:
    """The dialect in the module of that name."""
    dialect: Dialect = import_module(f"{__name__}.{name}").DIALECT
    return dialect


def dialects() -> tuple[Dialect, ...]:
    """Every job language Shoal supports."""
    return tuple(load(name) for name in (*NAMES, *NATIVE))


def dialect_of(api_version: str, kind: str) -> Dialect | None:
    """The dialect of such manifests, if it is one of ours."""
    wanted = (api_version, kind)
    return next(
        (d for d in dialects() if wanted in ((k.api_version, k.kind) for k in (d.kind, *d.other_versions))), None
    )
