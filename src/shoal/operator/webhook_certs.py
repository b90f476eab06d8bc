"""The webhook's certificate: issued, served, trusted and renewed without manual steps.

It is stored in one Secret. Every process watches that Secret and serves what it holds; the leader issues a new
certificate when two thirds of the old one's validity are over or it was issued for other names. The names are those
under which the webhook configurations call, so nothing is configured twice. The API server is set to trust a new
certificate before any process serves it, and to trust the last one a while longer.
"""

from __future__ import annotations

import asyncio
import base64
import binascii
import ssl
import tempfile
from collections.abc import AsyncIterator, Iterable, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from cryptography import x509

from shoal.apiserver.serving_certificate import generate
from shoal.cluster.client import Cluster, OutcomeUnknown, PatchType
from shoal.cluster.clock import Clock, SystemClock
from shoal.cluster.informer import Change, Informer
from shoal.controller_runtime.health import Address, ComponentReadiness, serve_http
from shoal.dialects.dialect import Dialect
from shoal.kube.errors import ApiError
from shoal.kube.kinds import SECRET
from shoal.kube.objects import Obj, name_of
from shoal.logs import Logger
from shoal.operator.rbac import MUTATING, VALIDATING
from shoal.operator.webhook import handlers

log = Logger(__name__)

LIFETIME = timedelta(days=365)
RETRY_SECONDS = 10.0  # after a failure
MANAGER = "shoal-operator"


@dataclass(frozen=True, slots=True)
class CertificatePair:
    """A key and its certificate, and everything a client should trust; all PEM."""

    key: bytes
    certificate: bytes
    trusted: bytes

    @classmethod
    def from_secret(cls, secret: Obj | None) -> CertificatePair | None:
        """None where the Secret holds none."""
        data = (secret or {}).get("data") or {}
        try:
            key, certificate, trusted = (base64.b64decode(data[name]) for name in ("tls.key", "tls.crt", "ca.crt"))
            return cls(key, certificate, trusted)
        except (KeyError, binascii.Error):
            return None

    def data(self) -> dict[str, str]:
        parts = {"tls.key": self.key, "tls.crt": self.certificate, "ca.crt": self.trusted}
        return {name: base64.b64encode(content).decode() for name, content in parts.items()}

    def renewal(self, names: Iterable[str]) -> datetime:
        """When it has to be replaced: long ago, where it is for other names or cannot be read."""
        found = _read(self.certificate)
        if found is None:
            return datetime.min.replace(tzinfo=UTC)
        try:
            valid_for = found.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
        except x509.ExtensionNotFound:
            return datetime.min.replace(tzinfo=UTC)
        if not set(names) <= {str(name.value) for name in valid_for}:
            return datetime.min.replace(tzinfo=UTC)
        return found.not_valid_before_utc + (found.not_valid_after_utc - found.not_valid_before_utc) * 2 / 3


def issue(names: tuple[str, ...], now: datetime, before: CertificatePair | None) -> CertificatePair:
    """A new pair; the certificate before it stays trusted, because some replica may still serve it."""
    key, certificate = generate(names, now, lifetime=LIFETIME)
    is_served = before is not None and _read(before.certificate) is not None
    return CertificatePair(
        key, certificate, certificate + (before.certificate if before is not None and is_served else b"")
    )


def _read(certificate: bytes) -> x509.Certificate | None:
    try:
        return x509.load_pem_x509_certificate(certificate)
    except ValueError:
        return None


class Certifier:
    """`follow` the Secret in every process; `run` in the one that leads, through its fence."""

    def __init__(self, name: str, namespace: str, *, clock: Clock | None = None) -> None:
        self.tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self.tls.minimum_version = ssl.TLSVersion.TLSv1_2
        self._name = name
        self._namespace = namespace
        self._clock = clock or SystemClock()
        self._secret: Obj | None = None
        self._served: CertificatePair | None = None
        self._changed = asyncio.Event()
        self._synced = asyncio.Event()

    @property
    def secret_name(self) -> str:
        return f"{self._name}-webhook"

    def readiness(self) -> ComponentReadiness:
        is_ready = self._served is not None
        words = "answers" if is_ready else f"waits for a certificate in Secret {self.secret_name}"
        return ComponentReadiness("webhook", is_ready, words)

    # Every process

    async def follow(self, cluster: Cluster) -> None:
        informer = self._informer(cluster, SECRET, self.secret_name, self._namespace, self._secret_changed)
        async with asyncio.TaskGroup() as group:
            group.create_task(informer.run())
            await informer.synced.wait()
            self._synced.set()

    def _informer(self, cluster: Cluster, kind: Any, name: str, namespace: str | None, changed: Any) -> Informer:
        return Informer(cluster, kind, namespace, fields=f"metadata.name={name}", on_change=changed, clock=self._clock)

    def _secret_changed(self, change: Change) -> None:
        self._secret = change.new
        pair = CertificatePair.from_secret(change.new)
        if pair is not None and pair != self._served:
            self._serve(pair)
        self._changed.set()

    def _serve(self, pair: CertificatePair) -> None:
        """From the next handshake on. OpenSSL reads files only, so there is one for a moment."""
        with tempfile.TemporaryDirectory(prefix="shoal-") as folder:
            file = Path(folder) / "pair.pem"
            file.touch(mode=0o600)
            file.write_bytes(pair.certificate + pair.key)
            try:
                self.tls.load_cert_chain(file)
            except (ssl.SSLError, OSError) as problem:
                log.warning("certificate cannot be used", secret=self.secret_name, problem=str(problem))
                return
        self._served = pair
        log.info("certificate served", secret=self.secret_name)

    # The leader

    async def run(self, cluster: Cluster) -> None:
        informers = [
            self._informer(cluster, kind, self._name, None, lambda _: self._changed.set())
            for kind in (VALIDATING, MUTATING)
        ]
        async with asyncio.TaskGroup() as group:
            for informer in informers:
                group.create_task(informer.run())
            for synced in (self._synced, *(informer.synced for informer in informers)):
                await synced.wait()
            while True:
                self._changed.clear()
                try:
                    due = await self._certify(
                        cluster, [obj for informer in informers for obj in informer.objects.values()]
                    )
                except (ApiError, OutcomeUnknown, OSError) as problem:
                    if (
                        not isinstance(problem, ApiError) or problem.code != 409
                    ):  # an informer is late, and will catch up
                        log.warning("webhook not certified", problem=str(problem))
                    due = self._clock.now() + timedelta(seconds=RETRY_SECONDS)
                timer = self._clock.call_later((due - self._clock.now()).total_seconds(), self._changed.set)
                try:
                    await self._changed.wait()
                finally:
                    timer.cancel()

    async def _certify(self, cluster: Cluster, configurations: list[Obj]) -> datetime:
        """A good certificate in the Secret, and trust in it; when it has to be renewed."""
        names = tuple(dict.fromkeys((f"{self._name}.{self._namespace}.svc", *_server_names(configurations))))
        pair, now = CertificatePair.from_secret(self._secret), self._clock.now()
        stored = pair
        if pair is None or pair.renewal(names) <= now:
            pair = issue(names, now, pair)
        for configuration in configurations:
            await self._trust(cluster, configuration, pair)
        if pair is not stored and self._secret is None:
            secret = {"metadata": {"name": self.secret_name}, "data": pair.data()}
            await cluster.create(SECRET, secret, self._namespace, field_manager=MANAGER)
        elif pair is not stored and self._secret is not None:
            patch = {"metadata": _same(self._secret), "data": pair.data()}
            await cluster.patch(SECRET, self.secret_name, self._namespace, patch=patch, field_manager=MANAGER)
        return pair.renewal(names)

    async def _trust(self, cluster: Cluster, configuration: Obj, pair: CertificatePair) -> None:
        bundle = base64.b64encode(pair.trusted).decode()
        entries = configuration.get("webhooks") or ()
        if all(entry["clientConfig"].get("caBundle") == bundle for entry in entries):
            return
        kind = next(kind for kind in (VALIDATING, MUTATING) if kind.kind == configuration["kind"])
        webhooks = [{"name": entry["name"], "clientConfig": {"caBundle": bundle}} for entry in entries]
        await cluster.patch(
            kind, name_of(configuration),
            patch={"metadata": _same(configuration), "webhooks": webhooks},
            patch_type=PatchType.STRATEGIC, field_manager=MANAGER,
        )  # fmt: skip


def _same(obj: Obj) -> Obj:
    return {"resourceVersion": obj["metadata"]["resourceVersion"]}


def _server_names(configurations: list[Obj]) -> Iterator[str]:
    """The names under which the API server calls."""
    for configuration in configurations:
        for entry in configuration.get("webhooks") or ():
            client = entry["clientConfig"]
            if service := client.get("service"):
                yield f"{service['name']}.{service['namespace']}.svc"
            elif host := urlsplit(client.get("url") or "").hostname:
                yield host


@asynccontextmanager
async def webhook_served(
    cluster: Cluster, certifier: Certifier, address: Address, dialects: Iterable[Dialect]
) -> AsyncIterator[None]:
    """Answer reviews, with whatever certificate the Secret holds."""
    following = asyncio.create_task(certifier.follow(cluster))
    try:
        async with serve_http("webhook", address, post=handlers(dialects, cluster), tls=certifier.tls):
            yield
    finally:
        following.cancel()
        await asyncio.gather(following, return_exceptions=True)
