"""What each queue holds, requests and may have, as gauges: computed when the metrics are read.

A plan computes such accounts for itself; computing them once more for a page that is read every few seconds costs less
than keeping gauges up to date would. Amounts are thousandths of a processor, bytes, and thousandths of anything else.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from prometheus_client.core import GaugeMetricFamily, Metric

from shoal.scheduler.planner.fair_share import FairShares, QueueShare
from shoal.scheduler.planner.gang_types import INQUEUE
from shoal.scheduler.planner.namespace_quota import asked_of_cluster

if TYPE_CHECKING:
    from shoal.scheduler.planner.cluster_view import ClusterView
    from shoal.scheduler.planner.gang import Gang

PHASES = ("pending", "inqueue", "running", "unknown", "completed")
AMOUNTS = {
    "allocated": "that a queue's pods hold",
    "request": "that a queue's pods hold or ask for",
    "deserved": "that a queue deserves",
    "inqueue": "that groups admitted to a queue will ask for",
    "capacity": "that a queue is allowed by its own capability",
    "real_capacity": "that a queue may hold in this cluster, its siblings' guarantees left to them",
}
_UNITS = {"milli_cpu": "Thousandths of processors", "memory_bytes": "Memory"}
_COMMON = ("cpu", "memory", "pods")


def queue_metrics(view: ClusterView) -> Iterator[Metric]:
    shares = FairShares(view)
    promised = admitted_demand(view, shares)
    scalars = sorted(name for name in shares.total if name not in _COMMON)
    for what, words in AMOUNTS.items():
        found = {name: amounts_of(standing, promised, what) for name, standing in sorted(shares.standings.items())}
        yield from amount_metrics(what, words, found, scalars)
    yield from share_metrics(view, shares)
    yield from phase_metrics(view)


def amounts_of(standing: QueueShare, promised: Mapping[str, Counter[str]], what: str) -> Mapping[str, float]:
    match what:
        case "allocated":
            return standing.allocated
        case "request":
            return Counter(standing.allocated) + Counter(standing.asked)
        case "deserved":
            return standing.deserved
        case "inqueue":
            return promised[standing.queue.name]
        case "capacity":
            return standing.queue.capability
    return standing.ceiling


def amount_metrics(
    what: str, words: str, found: Mapping[str, Mapping[str, float]], scalars: list[str]
) -> Iterator[GaugeMetricFamily]:
    """Of a limit only what is limited is shown; of everything else also that there is none of it."""
    is_limit = what.endswith("capacity")
    for unit, resource, divisor in (("milli_cpu", "cpu", 1), ("memory_bytes", "memory", 1000)):
        family = GaugeMetricFamily(
            f"volcano_queue_{what}_{unit}", f"{_UNITS[unit]} {words}.", labels=["queue_name"]
        )  # fmt: skip
        for queue, amounts in found.items():
            if resource in amounts or not is_limit:
                family.add_metric([queue], amounts.get(resource, 0) / divisor)
        yield family
    family = GaugeMetricFamily(
        f"volcano_queue_{what}_scalar_resources", f"Other resources {words}, in thousandths.",
        labels=["queue_name", "resource"],
    )  # fmt: skip
    for queue, amounts in found.items():
        named = [name for name in amounts if name not in _COMMON and name not in scalars]
        for resource in (*scalars, *sorted(named)):
            if resource in amounts or not is_limit:
                family.add_metric([queue, resource], amounts.get(resource, 0))
    yield family


def share_metrics(view: ClusterView, shares: FairShares) -> Iterator[GaugeMetricFamily]:
    weight = GaugeMetricFamily("volcano_queue_weight", "A queue's weight.", labels=["queue_name"])
    share = GaugeMetricFamily(
        "volcano_queue_share", "What a queue holds of what it deserves; 1: all of it.", labels=["queue_name"]
    )
    overused = GaugeMetricFamily(
        "volcano_queue_overused", "Whether a queue holds all it deserves, 1 or 0.", labels=["queue_name"]
    )
    largest = GaugeMetricFamily(
        "volcano_job_share", "The largest share of the cluster that one group of a queue holds.", labels=["queue_name"]
    )
    for name, standing in sorted(shares.standings.items()):
        weight.add_metric([name], standing.queue.weight)
        share.add_metric([name], shares.share(name))
        overused.add_metric([name], float(shares.is_overused(name)))
        largest.add_metric([name], max((shares.dominant(gang.allocated) for gang in _gangs(view, name)), default=0.0))
    yield from (weight, share, overused, largest)


def phase_metrics(view: ClusterView) -> Iterator[GaugeMetricFamily]:
    families = {
        phase: GaugeMetricFamily(
            f"volcano_queue_pod_group_{phase}_count", f"Groups of a queue that are {phase}.", labels=["queue_name"]
        )
        for phase in PHASES
    }
    for name in sorted(view.queues):
        counts = Counter(gang.group.phase.lower() for gang in _gangs(view, name) if gang.known)
        for phase, family in families.items():
            family.add_metric([name], counts[phase])
    yield from families.values()


def _gangs(view: ClusterView, queue: str) -> Iterator[Gang]:
    account = view.accounts.get(queue)
    return (gang for gang in (account.groups.values() if account else ()) if not gang.lone)


def admitted_demand(view: ClusterView, shares: FairShares) -> dict[str, Counter[str]]:
    """What admitted groups will request beyond what they hold, in their queue and those above it."""
    found: dict[str, Counter[str]] = {name: Counter() for name in shares.standings}
    for gang in view.unsettled.values():
        group = gang.group
        if gang.lone or group.phase is not INQUEUE or group.queue not in found:
            continue
        least = asked_of_cluster(group.min_resources)
        still = {name: max(amount - gang.allocated.get(name, 0), 0) for name, amount in least.items()}
        for above in shares.standings[group.queue].line:
            found[above.queue.name].update(still)
    return found
