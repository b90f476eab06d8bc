"""Which callers may use this node: the cluster authenticates and authorizes them, as at any other node.

A client certificate signed by the cluster's authority for clients names its holder; a bearer token is sent to the
cluster for review. The request is then authorized by a SubjectAccessReview about `nodes/proxy` of this node. A positive
result is cached for a few minutes and a negative one for some seconds, so that a watched log does not cause one review
per line.
"""

from __future__ import annotations

import asyncio
import ssl
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from shoal.cluster.client import Cluster
from shoal.cluster.informer import Change, Informer, strip_managed_fields
from shoal.kube.kinds import CONFIG_MAP, Kind
from shoal.kube.messages import Message
from shoal.kube.objects import Obj
from shoal.logs import Logger
from shoal.node.messages import MessageError

log = Logger(__name__)

TOKEN_REVIEW = Kind("authentication.k8s.io", "v1", "TokenReview", "tokenreviews", namespaced=False)
ACCESS_REVIEW = Kind("authorization.k8s.io", "v1", "SubjectAccessReview", "subjectaccessreviews", namespaced=False)
CLIENT_CA_CONFIG_MAP = ("kube-system", "extension-apiserver-authentication")
ALLOWED_TTL_SECONDS, DENIED_TTL_SECONDS = 300.0, 10.0
MAX_CACHED = 1000


class Unauthenticated(MessageError):
    """The caller presents nothing by which the cluster can identify it."""


class Forbidden(MessageError):
    """The cluster has identified the caller and denies the request."""


@dataclass(frozen=True, slots=True)
class Caller:
    name: str
    groups: tuple[str, ...] = ()
    uid: str = ""


class CallerAuthorizer:
    """`authorize` returns permitted callers; `trust` gets the cluster's authorities for client certificates."""

    def __init__(self, cluster: Cluster, node: str, *, now: Callable[[], float] = time.monotonic) -> None:
        self._cluster = cluster
        self._node = node
        self._now = now
        self._decisions: dict[tuple[Caller, str], tuple[bool, float]] = {}

    async def authorize(self, certificate: Mapping[str, Any] | None, token: str, *, verb: str) -> Caller:
        caller = caller_from_certificate(certificate) if certificate else await self._review_token(token)
        if caller is None:
            raise Unauthenticated(Message("Unauthenticated"))
        if not await self._is_allowed(caller, verb):
            raise Forbidden(Message("Forbidden", {"user": caller.name, "verb": verb, "node": self._node}))
        return caller

    async def _review_token(self, token: str) -> Caller | None:
        if not token:
            return None
        review = {"apiVersion": TOKEN_REVIEW.api_version, "kind": TOKEN_REVIEW.kind, "spec": {"token": token}}
        status = (await self._cluster.create(TOKEN_REVIEW, review)).get("status") or {}
        user = status.get("user") or {}
        if not status.get("authenticated") or not user.get("username"):
            return None
        return Caller(user["username"], tuple(user.get("groups") or ()), user.get("uid") or "")

    async def _is_allowed(self, caller: Caller, verb: str) -> bool:
        known = self._decisions.get((caller, verb))
        if known is not None and self._now() < known[1]:
            return known[0]
        review = await self._cluster.create(ACCESS_REVIEW, access_review(caller, verb, self._node))
        allowed = bool((review.get("status") or {}).get("allowed"))
        if len(self._decisions) >= MAX_CACHED:
            self._decisions.clear()
        self._decisions[(caller, verb)] = (
            allowed,
            self._now() + (ALLOWED_TTL_SECONDS if allowed else DENIED_TTL_SECONDS),
        )
        return allowed


def access_review(caller: Caller, verb: str, node: str) -> Obj:
    wanted = {"version": "v1", "resource": "nodes", "subresource": "proxy", "name": node, "verb": verb}
    spec: Obj = {"user": caller.name, "groups": list(caller.groups), "resourceAttributes": wanted}
    if caller.uid:
        spec["uid"] = caller.uid
    return {"apiVersion": ACCESS_REVIEW.api_version, "kind": ACCESS_REVIEW.kind, "spec": spec}


def caller_from_certificate(certificate: Mapping[str, Any]) -> Caller | None:
    """The subject of a certificate that TLS has verified: its common name is the user, organizations are groups."""
    parts = [pair for group in certificate.get("subject") or () for pair in group]
    name = next((value for kind, value in parts if kind == "commonName"), "")
    groups = [value for kind, value in parts if kind == "organizationName"]
    return Caller(name, (*groups, "system:authenticated")) if name else None


class ClientCaWatcher:
    """Keeps a TLS context trusting the cluster's authorities for client certificates.

    Run `run` beside the server. An authority that the cluster drops is trusted here until the next start.
    """

    def __init__(self, cluster: Cluster, context: ssl.SSLContext) -> None:
        namespace, name = CLIENT_CA_CONFIG_MAP
        self._context = context
        self._maps = Informer(
            cluster, CONFIG_MAP, namespace,
            fields=f"metadata.name={name}", on_change=self._on_change, trim=strip_managed_fields,
        )  # fmt: skip

    @property
    def synced(self) -> asyncio.Event:
        return self._maps.synced

    async def run(self) -> None:
        await self._maps.run()

    def _on_change(self, change: Change) -> None:
        bundle = ((change.new or {}).get("data") or {}).get("client-ca-file") or ""
        if not bundle:
            return
        try:
            self._context.load_verify_locations(cadata=bundle)
            # Only now: without any authority every certificate would be refused, also next to a good token.
            self._context.verify_mode = ssl.CERT_OPTIONAL
        except ssl.SSLError as error:
            log.warning("the cluster's authority for clients cannot be read", error=str(error))
