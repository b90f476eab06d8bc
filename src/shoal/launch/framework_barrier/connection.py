"""The way to the API server: an address, a kubeconfig, or what every pod of a cluster is given."""

from __future__ import annotations

import ssl
from collections.abc import Mapping
from pathlib import Path

from shoal.cluster.kubeconfig import (
    ConnectionConfig,
    ConnectionConfigError,
    from_kubeconfig,
    in_cluster,
    server_url_error,
)
from shoal.launch.framework_barrier.environment import Environment

__all__ = ["ConnectionConfig", "ConnectionConfigError", "find"]


def find(environment: Environment, variables: Mapping[str, str]) -> ConnectionConfig:
    """An address wins over the kubeconfig's; alone it needs no credentials. The pod's service account wins over
    ~/.kube/config only: where pods are processes, that file belongs to the person whose account they run as."""
    if environment.server and (why := server_url_error(environment.server)):
        raise ConnectionConfigError(f"KUBE_APISERVER_ADDRESS {why}")
    named = Path(environment.kubeconfig) if environment.kubeconfig else None
    if named is not None and named.is_file():
        return from_kubeconfig(named, server=environment.server)
    found = None if environment.server else in_cluster(variables)
    if found is not None:
        return found
    home = Path("~/.kube/config").expanduser()
    if home.is_file():
        return from_kubeconfig(home, server=environment.server)
    if environment.server:
        url = environment.server if "://" in environment.server else f"http://{environment.server}"
        return ConnectionConfig(
            url.rstrip("/"), ssl_context=ssl.create_default_context() if url.startswith("https") else None
        )
    raise ConnectionConfigError(
        "there is no way to an API server: KUBECONFIG and ~/.kube/config name no file, KUBE_APISERVER_ADDRESS is "
        "not set, and this pod was given no service account"
    )
