"""Tokens of service accounts, which projected volumes show to the pods that run under them.

Each token is requested by one pod and is valid for that pod alone, for as long as the volume specifies. When four
fifths of its time are over another is requested, and the file in the volume is replaced. On the embedded cluster the
node signs tokens itself; elsewhere it requests them from the API server.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from shoal.cluster.client import Cluster, OutcomeUnknown
from shoal.cluster.token_signer import TokenClaims, TokenSigner
from shoal.kube.errors import ApiError
from shoal.kube.kinds import Kind
from shoal.kube.messages import Message
from shoal.kube.objects import Obj, name_of, namespace_of, uid_of
from shoal.kube.times import parse

DEFAULT_SECONDS = 3600
RETRY_SECONDS = 5.0
RENEW_FRACTION = 0.8  # of a token's time; the next is requested then


class TokenRequest(NamedTuple):
    """A token as a volume requests it; `audience` '' means the API server itself."""

    audience: str
    seconds: int


@dataclass(frozen=True, slots=True)
class IssuedTokens:
    """The tokens of a pod, and why others are missing; `refresh_at` is when to request next."""

    tokens: Mapping[TokenRequest, bytes] = field(default_factory=dict)
    refusals: Mapping[TokenRequest, Message] = field(default_factory=dict)
    refresh_at: float | None = None


@dataclass(frozen=True, slots=True)
class _Token:
    text: bytes
    renew_at: float


def token_request_of(source: Mapping[str, object]) -> TokenRequest:
    """What a `serviceAccountToken` of a projected volume requests."""
    seconds = source.get("expirationSeconds") or DEFAULT_SECONDS
    return TokenRequest(str(source.get("audience") or ""), int(str(seconds)))


def token_requests_of(pod: Obj) -> Iterator[TokenRequest]:
    for volume in pod["spec"].get("volumes") or ():
        for source in (volume.get("projected") or {}).get("sources") or ():
            if "serviceAccountToken" in source:
                yield token_request_of(source["serviceAccountToken"] or {})


class TokenManager:
    """Requests tokens from the cluster and caches them until they are due. `signer` None: the API server signs."""

    def __init__(self, cluster: Cluster, *, signer: TokenSigner | None = None) -> None:
        self._cluster = cluster
        self._signer = signer
        self._tokens: dict[str, dict[TokenRequest, _Token]] = {}  # by the pod's uid

    async def issue(self, pod: Obj, now: float) -> IssuedTokens:
        """Every token the pod requires, as far as the cluster issues them."""
        held = self._tokens.setdefault(uid_of(pod), {})
        refusals: dict[TokenRequest, Message] = {}
        for token_request in set(token_requests_of(pod)):
            if token_request in held and now < held[token_request].renew_at:
                continue
            try:
                held[token_request] = await self._request(pod, token_request, now)
            except (ApiError, OutcomeUnknown, OSError) as refused:
                account = pod["spec"].get("serviceAccountName") or "default"
                refusals[token_request] = Message("Token.Refused", {"account": account, "error": str(refused)})
        renewals = [token.renew_at for token in held.values()]
        next_refresh = now + RETRY_SECONDS if refusals else min(renewals, default=None)
        return IssuedTokens(
            {token_request: token.text for token_request, token in held.items()}, refusals, next_refresh
        )

    def remove(self, uid: str) -> None:
        self._tokens.pop(uid, None)

    async def _request(self, pod: Obj, token_request: TokenRequest, now: float) -> _Token:
        account = pod["spec"].get("serviceAccountName") or "default"
        if self._signer is not None:
            until = int(now) + token_request.seconds
            claims = TokenClaims(namespace_of(pod), account, name_of(pod), uid_of(pod), until, token_request.audience)
            return _Token(self._signer.sign(claims).encode(), now + token_request.seconds * RENEW_FRACTION)
        # A subresource is made as if it were a collection of its own.
        kind = Kind("", "v1", "TokenRequest", f"serviceaccounts/{account}/token")
        spec: Obj = {
            "expirationSeconds": token_request.seconds,
            "boundObjectRef": {"apiVersion": "v1", "kind": "Pod", "name": name_of(pod), "uid": uid_of(pod)},
        }
        if token_request.audience:
            spec["audiences"] = [token_request.audience]
        request = {"apiVersion": "authentication.k8s.io/v1", "kind": kind.kind, "spec": spec}
        status = (await self._cluster.create(kind, request, namespace_of(pod)))["status"]
        lasts = max(parse(status["expirationTimestamp"]).timestamp() - now, 0.0)
        return _Token(str(status["token"]).encode(), now + lasts * RENEW_FRACTION)
