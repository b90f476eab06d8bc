"""How to reach an API server: what a kubeconfig or a pod's service account specifies, ready for any HTTP client.

`contexts` reads the files people have, `in_cluster` what a cluster gives its pods, `exec_plugin` runs the programs that
fetch credentials, `tls` verifies the server and presents our certificate. The result is a `ConnectionConfig`. Nothing
here opens one, so a program that brings its own HTTP client can use it as well.
"""

from shoal.cluster.kubeconfig.connection_config import (
    STATIC_CREDENTIALS,
    ConnectionConfig,
    ConnectionConfigError,
    Credentials,
    RequestCredentials,
)
from shoal.cluster.kubeconfig.contexts import contexts, default_files, from_kubeconfig, server_url_error
from shoal.cluster.kubeconfig.in_cluster import in_cluster

__all__ = [
    "STATIC_CREDENTIALS",
    "ConnectionConfig",
    "ConnectionConfigError",
    "Credentials",
    "RequestCredentials",
    "contexts",
    "default_files",
    "from_kubeconfig",
    "in_cluster",
    "server_url_error",
]
