"""The way to the API server: an address, a kubeconfig, or what every pod of a cluster is given."""

from __future__ import annotations

import ssl
from collections.abc import Mapping
from pathlib import Path

from shoal.barrier.environment import Environment
from shoal.cluster.connecting import Connection, NoConnection, from_kubeconfig, in_cluster, why_no_address

__all__ = ["Connection", "NoConnection", "find"]


def find(environment: Environment, variables: Mapping[str, str]) -> Connection:
    """An address wins over the kubeconfig's; alone it needs no credentials. Else what the pod was given."""
    if environment.server and (why := why_no_address(environment.server)):
        raise NoConnection(f"KUBE_APISERVER_ADDRESS {why}")
    path = _kubeconfig(environment)
    if path is not None:
        return from_kubeconfig(path, server=environment.server)
    if environment.server:
        url = environment.server if "://" in environment.server else f"http://{environment.server}"
        return Connection(url.rstrip("/"), trust=ssl.create_default_context() if url.startswith("https") else None)
    found = in_cluster(variables)
    if found is None:
        raise NoConnection(
            "there is no way to an API server: KUBECONFIG and ~/.kube/config name no file, KUBE_APISERVER_ADDRESS is "
            "not set, and this pod was given no service account"
        )
    return found


def _kubeconfig(environment: Environment) -> Path | None:
    if environment.kubeconfig and Path(environment.kubeconfig).is_file():
        return Path(environment.kubeconfig)
    home = Path("~/.kube/config").expanduser()
    return home if home.is_file() else None
