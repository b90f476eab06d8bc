"""The metrics have every name of the gang specification, the manual tells of each, and they count."""

from __future__ import annotations

from pathlib import Path

from prometheus_client.parser import text_string_to_metric_families

from kit.planner_board import GPU, Board
from kit.scheduled_cluster import Scheduled, scheduled
from shoal.controller_runtime.metrics import Metrics
from shoal.kube.kinds import PRIORITY_CLASS
from shoal.scheduler.planner.gang_types import PodGroupPhase
from shoal.scheduler.queue_gauges import queue_metrics

MANUAL = Path(__file__).parents[2] / "docs" / "scheduling.md"
WHATS = ("allocated", "request", "deserved", "inqueue", "capacity", "real_capacity")
UNITS = ("milli_cpu", "memory_bytes", "scalar_resources")
PHASES = ("pending", "inqueue", "running", "unknown", "completed")
NAMES = {
    "e2e_scheduling_latency_milliseconds",
    "open_session_duration_milliseconds",
    "e2e_job_scheduling_latency_milliseconds",
    "plugin_scheduling_latency_milliseconds",
    "action_scheduling_latency_milliseconds",
    "task_scheduling_latency_milliseconds",
    "schedule_attempts_total",
    "pod_preemption_victims",
    "total_preemption_attempts",
    "eviction_transactions_total",
    "unschedule_task_count",
    "unschedule_job_count",
    "queue_share",
    "queue_weight",
    "queue_overused",
    "job_share",
    "job_retry_counts",
    "bound_pods_total",
    "waiting_seconds_total",
    "broken_gang_seconds_total",
}
OF_QUEUES = {f"queue_{what}_{unit}" for what in WHATS for unit in UNITS}
OF_PHASES = {f"queue_pod_group_{phase}_count" for phase in PHASES}


def page(it: Scheduled) -> str:
    return Metrics(it.registry).exposition()[0].decode()


async def test_every_name_is_on_the_page_and_no_other() -> None:
    async with scheduled() as it:
        told = [line.split()[2] for line in page(it).splitlines() if line.startswith("# TYPE volcano_")]
    expected = {f"volcano_{name}" for name in NAMES | OF_QUEUES | OF_PHASES}
    assert {name for name in told if not name.endswith("_created")} == expected


def test_the_manual_tells_of_every_name() -> None:
    written = MANUAL.read_text()
    shortened = {"queue_{" + ",".join(WHATS) + "}_{" + ",".join(UNITS) + "}", "queue_pod_group_{" + ",".join(PHASES)}
    assert {name for name in NAMES | shortened if f"volcano_{name}" not in written} == set()


def counted(it: Scheduled, *names: str) -> dict[str, float]:
    """Samples that are not zero, with the values of their labels."""
    families = text_string_to_metric_families(page(it))
    found = [sample for family in families for sample in family.samples if sample.name in names]
    return {" ".join((s.name.removeprefix("volcano_"), *s.labels.values())): s.value for s in found if s.value}


async def test_pods_and_gangs_are_counted_at_each_stage() -> None:
    async with scheduled() as it:
        await it.node("a", cpu=2)
        await it.gang("two", 2)
        await it.gang("late", 1, cpu=2)
        assert counted(
            it, "volcano_task_scheduling_latency_milliseconds_count", "volcano_schedule_attempts_total",
            "volcano_e2e_job_scheduling_latency_milliseconds_count", "volcano_bound_pods_total",
        ) == {
            "task_scheduling_latency_milliseconds_count Watched": 3.0,
            "task_scheduling_latency_milliseconds_count Assumed": 2.0,
            "task_scheduling_latency_milliseconds_count PreBound": 2.0,
            "task_scheduling_latency_milliseconds_count Bound": 2.0,
            "e2e_job_scheduling_latency_milliseconds_count": 1.0,
            "schedule_attempts_total scheduled": 2.0,
            "schedule_attempts_total unschedulable": 1.0,
            "bound_pods_total": 2.0,
        }  # fmt: skip


async def test_every_part_of_a_plan_is_timed_once() -> None:
    async with scheduled() as it:
        await it.node("a", cpu=1)
        await it.pods("", 1)
        found = counted(
            it,
            *(f"volcano_{name}_count" for name in NAMES if "scheduling_latency" in name or "session" in name),
        )
    plans = found["e2e_scheduling_latency_milliseconds_count"]
    others = {name: count for name, count in found.items() if not name.startswith("task_")}
    assert others == {
        "e2e_scheduling_latency_milliseconds_count": plans,
        "open_session_duration_milliseconds_count": plans,
        "plugin_scheduling_latency_milliseconds_count OnSessionOpen shares": plans,
        "plugin_scheduling_latency_milliseconds_count OnSessionClose gang": plans,
        **{
            f"action_scheduling_latency_milliseconds_count {name}": plans for name in ("enqueue", "allocate", "preempt")
        },
    }


async def test_who_gives_way_is_counted() -> None:
    async with scheduled() as it:
        await it.node("a", cpu=2)
        await it.gang("low", 2)
        await it.cluster.create(PRIORITY_CLASS, {"metadata": {"name": "high"}, "value": 10})
        await it.gang("high", 2, priorityClassName="high")
        await it.rest(1)
        assert await it.placed() == ["high-0", "high-1"]
        found = counted(
            it,
            "volcano_pod_preemption_victims",
            "volcano_total_preemption_attempts",
            "volcano_eviction_transactions_total",
        )
        assert found == {
            "pod_preemption_victims": 2.0,
            "total_preemption_attempts": 1.0,
            "eviction_transactions_total preempt": 1.0,
        }


def test_queues_show_what_they_hold_ask_for_and_may_have() -> None:
    board = Board()
    board.node("n", cpu=10, gpu=4)
    board.queue("a", weight=3, capability={"cpu": 8000})
    board.queue("b")
    board.running("old", 2, ["n"], cpu=2, gpu=1, queue="a")
    least = {"cpu": 6000, "requests.cpu": 6000, "limits.cpu": 6000, "pods": 1000, "count/pods": 1000}
    board.group("new", 1, cpu=6, queue="b", min_resources=least)
    board.group("later", 1, cpu=1, queue="b", phase=PodGroupPhase.PENDING)
    found = {
        f"{sample.name.removeprefix('volcano_queue_')} {' '.join(sample.labels.values())}": sample.value
        for family in queue_metrics(board.view)
        for sample in family.samples
        if sample.value and "default" not in sample.labels.values() and "root" not in sample.labels.values()
    }
    assert found == {
        "allocated_milli_cpu a": 4000.0,
        f"allocated_scalar_resources a {GPU}": 2000.0,
        "request_milli_cpu a": 4000.0,
        "request_milli_cpu b": 7000.0,
        f"request_scalar_resources a {GPU}": 2000.0,
        "deserved_milli_cpu a": 4000.0,
        "deserved_milli_cpu b": 6000.0,
        f"deserved_scalar_resources a {GPU}": 2000.0,
        "inqueue_milli_cpu b": 6000.0,
        "capacity_milli_cpu a": 8000.0,
        "real_capacity_milli_cpu a": 8000.0,
        "real_capacity_milli_cpu b": 10000.0,
        "real_capacity_memory_bytes a": 1000.0,
        "real_capacity_memory_bytes b": 1000.0,
        f"real_capacity_scalar_resources a {GPU}": 4000.0,
        f"real_capacity_scalar_resources b {GPU}": 4000.0,
        "weight a": 3.0,
        "weight b": 1.0,
        "share a": 1.0,
        "overused a": 1.0,
        "volcano_job_share a": 0.5,
        "pod_group_running_count a": 1.0,
        "pod_group_inqueue_count b": 1.0,
        "pod_group_pending_count b": 1.0,
    }
