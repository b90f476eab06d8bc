"""Who may ask: whoever holds the token of the kubeconfig, and for a few harmless paths everybody.

There is one user. The comparison takes the same time whatever was sent, so that the token cannot be
guessed letter by letter.
"""

from __future__ import annotations

import hmac
from collections.abc import Mapping

from shoal.kube.errors import unauthorized

USER = "shoal-admin"
GROUPS = ("system:masters", "system:authenticated")

# Kubernetes answers these without credentials: probes and version checks carry none.
OPEN_PATHS = frozenset({"/healthz", "/livez", "/readyz", "/version"})


class Gate:
    """Lets a request in or raises 401."""

    def __init__(self, token: str) -> None:
        if not token:
            raise ValueError("an empty token would let everybody in; pass a long random one")
        self._expected = token.encode()

    def check(self, path: str, headers: Mapping[bytes, bytes]) -> None:
        scheme, _, given = headers.get(b"authorization", b"").partition(b" ")
        if scheme.lower() == b"bearer" and hmac.compare_digest(given.strip(), self._expected):
            return
        # A wrong token is told so even on an open path, as Kubernetes does; none at all is an anonymous caller.
        if b"authorization" not in headers and (path in OPEN_PATHS or path.startswith(("/livez/", "/readyz/"))):
            return
        raise unauthorized()
