"""What every pod of a cluster is given: the server's address, its authority, a token and a namespace."""

from __future__ import annotations

import ssl
from collections.abc import Mapping
from pathlib import Path

from shoal.cluster.kubeconfig.connection_config import ConnectionConfig, ConnectionConfigError
from shoal.cluster.kubeconfig.tls import TlsConfig
from shoal.cluster.kubeconfig.token_file import TokenFile

_ACCOUNT = Path("/var/run/secrets/kubernetes.io/serviceaccount")


def in_cluster(variables: Mapping[str, str], account: Path = _ACCOUNT) -> ConnectionConfig | None:
    """The way from inside a pod; None where this is no pod. The token is read again whenever it was renewed."""
    host, port = variables.get("KUBERNETES_SERVICE_HOST"), variables.get("KUBERNETES_SERVICE_PORT") or "443"
    token, authority, namespace = (account / name for name in ("token", "ca.crt", "namespace"))
    if not host or not token.is_file():
        return None
    try:
        ssl_context = TlsConfig(authority.read_text()).context()
    except (OSError, ssl.SSLError, UnicodeDecodeError) as problem:
        raise ConnectionConfigError(f"the service account's authority {authority} cannot be used: {problem}") from None
    credentials = TokenFile(token)
    credentials.fetch()  # an unreadable token is reported now, not at the first request
    return ConnectionConfig(
        f"https://{f'[{host}]' if ':' in host else host}:{port}",
        ssl_context=ssl_context,
        namespace=(namespace.read_text().strip() if namespace.is_file() else "") or "default",
        credentials=credentials,
        user_description=f"the service account of {account}",
    )
