"""Tokens of service accounts, as the embedded cluster issues and verifies them.

A token is a JSON Web Token signed with HMAC-SHA256. It names the service account and the one pod it is for, and how
long it is valid; nothing is stored. Whether that pod still exists is for the API server to check.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
from collections.abc import Mapping
from dataclasses import dataclass

_HEADER = {"alg": "HS256", "typ": "JWT"}
_PURPOSE = b"shoal service account tokens"


@dataclass(frozen=True, slots=True)
class TokenClaims:
    """What a token states about its holder; `audience` '' means the API server."""

    namespace: str
    account: str
    pod: str
    pod_uid: str
    expires_at: int  # seconds since the epoch
    audience: str = ""


class TokenSigner:
    """Signs and verifies with a key derived from a secret of the cluster. A token does not reveal the secret."""

    def __init__(self, secret: str) -> None:
        self._key = hmac.digest(secret.encode(), _PURPOSE, hashlib.sha256)

    def sign(self, claims: TokenClaims) -> str:
        payload = {
            "iss": "shoal",
            "sub": f"system:serviceaccount:{claims.namespace}:{claims.account}",
            "aud": [claims.audience] if claims.audience else [],
            "exp": claims.expires_at,
            "kubernetes.io": {
                "namespace": claims.namespace,
                "serviceaccount": {"name": claims.account},
                "pod": {"name": claims.pod, "uid": claims.pod_uid},
            },
        }
        signed = f"{_encode(_HEADER)}.{_encode(payload)}"
        return f"{signed}.{self._signature(signed)}"

    def read(self, token: str, now: float) -> TokenClaims | None:
        """The claims of a token that was signed with this key and is still valid, else None."""
        if not token.isascii():
            return None
        signed, _, signature = token.rpartition(".")
        if not hmac.compare_digest(signature, self._signature(signed)):
            return None
        encoded = signed.partition(".")[2]
        payload = json.loads(base64.urlsafe_b64decode(encoded + "=" * (-len(encoded) % 4)))  # well-formed: signed here
        if payload["exp"] <= now:
            return None
        bound = payload["kubernetes.io"]
        return TokenClaims(
            bound["namespace"],
            bound["serviceaccount"]["name"],
            bound["pod"]["name"],
            bound["pod"]["uid"],
            payload["exp"],
            "".join(payload["aud"]),
        )

    def _signature(self, signed: str) -> str:
        return _base64(hmac.digest(self._key, signed.encode(), hashlib.sha256))


def _encode(part: Mapping[str, object]) -> str:
    return _base64(json.dumps(part, separators=(",", ":")).encode())


def _base64(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()
