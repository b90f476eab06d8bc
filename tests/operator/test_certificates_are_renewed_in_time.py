"""The webhook's certificate: made for its names, renewed after two thirds of its life, trusted before it is shown."""

from __future__ import annotations

import asyncio
import base64
from collections.abc import AsyncIterator
from datetime import timedelta
from typing import Any

import pytest

from kit.recording_cluster import first
from shoal.cluster.client import WatchEvent, WatchEventType
from shoal.cluster.clock import VirtualClock
from shoal.cluster.embedded import EmbeddedCluster
from shoal.kube.kinds import SECRET, Kind
from shoal.kube.objects import Obj
from shoal.operator.rbac import MUTATING, VALIDATING
from shoal.operator.webhook_certs import LIFETIME, CertificatePair, Certifier, issue

NAMES = ("shoal.shoal-system.svc", "127.0.0.1")


def test_a_pair_is_good_for_two_thirds_of_its_life_and_for_its_names_alone() -> None:
    now = VirtualClock().now()
    pair = issue(NAMES, now, None)
    renewal = pair.renewal(NAMES)
    assert now + LIFETIME * 0.6 < renewal < now + LIFETIME * 0.7
    assert pair.renewal(NAMES[:1]) == renewal
    assert pair.renewal(("elsewhere.svc",)) < now


def test_the_last_certificate_stays_trusted() -> None:
    now = VirtualClock().now()
    old = issue(NAMES, now, None)
    new = issue(NAMES, now, old)
    assert new.trusted == new.certificate + old.certificate
    assert issue(NAMES, now, new).trusted.count(b"BEGIN CERTIFICATE") == 2  # and no longer than that


EMPTY: dict[str, Obj | None] = {
    "no Secret": None,
    "a bare one": {},
    "an empty one": {"data": {}},
    "half a pair": {"data": {"tls.crt": "AA==", "tls.key": "AA=="}},
}


@pytest.mark.parametrize("secret", EMPTY.values(), ids=EMPTY)
def test_a_secret_without_a_pair_holds_none(secret: Obj | None) -> None:
    assert CertificatePair.from_secret(secret) is None


def test_a_pair_survives_the_secret() -> None:
    pair = issue(NAMES, VirtualClock().now(), None)
    assert CertificatePair.from_secret({"data": pair.data()}) == pair


class NobodyCalls:
    """A cluster in which nobody has configured a webhook."""

    def __init__(self, cluster: EmbeddedCluster) -> None:
        self._cluster = cluster

    def __getattr__(self, name: str) -> Any:
        return getattr(self._cluster, name)

    async def watch(self, kind: Kind, namespace: str | None = None, **more: Any) -> AsyncIterator[WatchEvent]:
        if kind not in (VALIDATING, MUTATING):
            async for event in self._cluster.watch(kind, namespace, **more):
                yield event
        end = {"annotations": {"k8s.io/initial-events-end": "true"}, "resourceVersion": "1"}
        yield WatchEvent(WatchEventType.BOOKMARK, {"metadata": end})
        await asyncio.Event().wait()


async def test_rubbish_in_the_secret_is_replaced_and_time_brings_a_new_one() -> None:
    clock = VirtualClock()
    store = await EmbeddedCluster.open(":memory:")
    cluster = NobodyCalls(store)
    rubbish = {name: base64.b64encode(b"rubbish").decode() for name in ("tls.crt", "tls.key", "ca.crt")}
    await store.create(SECRET, {"metadata": {"name": "shoal-webhook"}, "data": rubbish}, "default")
    certifier = Certifier("shoal", "default", clock=clock)
    pairs: list[CertificatePair] = []

    async def renewals() -> None:
        async for event in store.watch(SECRET, "default", initial_events=True):
            pair = CertificatePair.from_secret(event.object)
            if pair is None or pair.certificate == b"rubbish" or pair in pairs:
                continue
            pairs.append(pair)
            if len(pairs) == 2:
                return
            while clock.next_due() is None:  # until the certifier waits for the day
                await turn_of_others()
            clock.advance(timedelta(days=300).total_seconds())

    try:
        await first(certifier.follow(cluster), certifier.run(cluster), renewals())
    finally:
        await store.close()
    assert pairs[1].trusted == pairs[1].certificate + pairs[0].certificate
    assert pairs[0].trusted == pairs[0].certificate


async def turn_of_others() -> None:
    await asyncio.sleep(0)
