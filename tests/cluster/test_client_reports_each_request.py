"""Every attempt of a request is reported with its verb and resource, so that an operator can count them."""

from __future__ import annotations

from collections import Counter
from contextlib import aclosing

from prometheus_client import CollectorRegistry

from kit.cluster_objects import config_map
from kit.scripted_server import answer, bookmark, end, refusal, scripted, stream
from shoal.cluster.kubeconfig import ConnectionConfig
from shoal.cluster.kubernetes import open_client
from shoal.controller_runtime.metrics import Metrics
from shoal.kube.kinds import CONFIG_MAP, LEASE

FOUND = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}}
LIST = {"metadata": {"resourceVersion": "1"}, "items": []}


async def test_each_try_is_counted_and_watches_are_not_reads() -> None:
    steps = (
        answer(201, FOUND), refusal(503, "ServiceUnavailable"), answer(200, FOUND), answer(200, FOUND),
        answer(200, LIST), stream(bookmark(2), then=end), answer(200, FOUND),
    )  # fmt: skip
    metrics = Metrics(CollectorRegistry())
    async with (
        scripted(*steps) as server,
        open_client(ConnectionConfig(server.url), note=metrics.count_request) as cluster,
    ):
        await cluster.create(CONFIG_MAP, config_map("a"), "default")
        await cluster.get(CONFIG_MAP, "a", "default")
        await cluster.patch(LEASE, "a", "default", patch={})
        await cluster.list(CONFIG_MAP, "default")
        async with aclosing(cluster.watch(CONFIG_MAP, "default")) as events:  # type: ignore[type-var]
            await anext(events)
        await cluster.delete(CONFIG_MAP, "a", "default")
    assert counted(metrics) == {
        ("create", "configmaps"): 1,
        ("get", "configmaps"): 2,
        ("patch", "leases"): 1,
        ("list", "configmaps"): 1,
        ("watch", "configmaps"): 1,
        ("delete", "configmaps"): 1,
    }


def counted(metrics: Metrics) -> Counter[tuple[str, str]]:
    samples = [sample for metric in metrics.registry.collect() for sample in metric.samples]
    requests_samples = [sample for sample in samples if sample.name == "shoal_requests_total"]
    return Counter(
        {(sample.labels["verb"], sample.labels["resource"]): int(sample.value) for sample in requests_samples}
    )
