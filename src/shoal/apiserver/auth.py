"""Authentication: the token of the kubeconfig, tokens of service accounts, and a few open paths.

The token of the kubeconfig belongs to the administrator. A service account's token belongs to one pod and is valid
while that pod exists. Comparisons take the same time whatever was sent, so that no token can be guessed letter by
letter. What each user may do is in `authorization`.
"""

from __future__ import annotations

import hmac
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from shoal.cluster.apimachinery import Machinery
from shoal.cluster.token_signer import TokenSigner
from shoal.kube.errors import ApiError, unauthorized
from shoal.kube.kinds import POD
from shoal.kube.objects import Key, uid_of

USER = "shoal-admin"

# Kubernetes answers these without credentials: probes and version checks carry none.
OPEN_PATHS = frozenset({"/healthz", "/livez", "/readyz", "/version"})


@dataclass(frozen=True, slots=True)
class User:
    """Who sent a request. `namespace` is that of a pod; None: the administrator."""

    name: str
    groups: tuple[str, ...]
    namespace: str | None = None


ADMIN = User(USER, ("system:masters", "system:authenticated"))
ANONYMOUS = User("system:anonymous", ("system:unauthenticated",), namespace="")

ReadToken = Callable[[str], User | None]


class Authenticator:
    """Returns the user of a request or raises 401. `admin_token` None: the administrator is not admitted here."""

    def __init__(self, admin_token: str | None, read_token: ReadToken = lambda _: None) -> None:
        if admin_token == "":
            raise ValueError("an empty token would authenticate every client; pass a long random one")
        self._expected = None if admin_token is None else admin_token.encode()
        self._read_token = read_token

    def check(self, path: str, headers: Mapping[bytes, bytes]) -> User:
        scheme, _, credentials = headers.get(b"authorization", b"").partition(b" ")
        if scheme.lower() == b"bearer":
            token = credentials.strip()
            if self._expected is not None and hmac.compare_digest(token, self._expected):
                return ADMIN
            if (user := self._read_token(token.decode("latin-1"))) is not None:
                return user
        # A wrong token is a 401 on an open path as well, as with Kubernetes; no token at all is an anonymous user.
        if b"authorization" not in headers and (path in OPEN_PATHS or path.startswith(("/livez/", "/readyz/"))):
            return ANONYMOUS
        raise unauthorized()


def pod_token_reader(signer: TokenSigner, machinery: Machinery) -> ReadToken:
    """Reads tokens that `signer` signed for the API server, for pods that exist."""

    def read(token: str) -> User | None:
        claims = signer.read(token, machinery.clock.now().timestamp())
        if claims is None or claims.audience:
            return None
        try:
            pod = machinery.get(POD, Key(claims.namespace, claims.pod)).obj()
        except ApiError:
            return None
        if uid_of(pod) != claims.pod_uid:
            return None
        groups = ("system:serviceaccounts", f"system:serviceaccounts:{claims.namespace}", "system:authenticated")
        return User(f"system:serviceaccount:{claims.namespace}:{claims.account}", groups, claims.namespace)

    return read
