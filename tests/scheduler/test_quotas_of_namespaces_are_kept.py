"""A group is let in only where its namespace's quotas have room for what it will ask for."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from kit.planner_board import GPU, NS, Board, cores, key, verdict
from shoal.kube.objects import Key
from shoal.kube.quantity_format import amounts
from shoal.scheduler.messages import text
from shoal.scheduler.planner.from_objects import quota_from
from shoal.scheduler.planner.gang_types import NamespaceQuota, PodGroupPhase
from shoal.scheduler.planner.node_and_pod_types import PodState
from shoal.scheduler.planner.plan_builder import pod_waits


def board(**quota: str) -> Board:
    """Room for ten cores, and one quota: `requests__cpu` stands for `requests.cpu`."""
    made = Board()
    made.node("n", cpu=10, gpu=8)
    hard = amounts({name.replace("__", "."): amount for name, amount in quota.items()})
    made.view.set_quota(Key(NS, "q"), quota_from(hard, {}))
    return made


def asks(it: Board, name: str, least: Mapping[str, int], **more: Any) -> None:
    """A group that waits to be let in, before its pods exist."""
    it.group(name, 0, phase=PodGroupPhase.PENDING, min_resources=least, **{"min_member": 1, **more})


NEVER = "in total, so request less or raise the quota"
CASES = {
    "cpu": ({"cpu": "3"}, cores(cpu=4), f"needs 4 cpu, and quota q of namespace team allows 3 {NEVER}"),
    "requests of cpu": (
        {"requests__cpu": "3"},
        cores(cpu=4),
        f"needs 4 cpu, and quota q of namespace team allows 3 {NEVER}",
    ),
    "the stricter of two aliases": (
        {"requests__cpu": "9", "cpu": "3"},
        cores(cpu=4),
        f"needs 4 cpu, and quota q of namespace team allows 3 {NEVER}",
    ),
    "devices": (
        {f"requests__{GPU}": "1"},
        cores(gpu=2),
        f"needs 2 {GPU}, and quota q of namespace team allows 1 {NEVER}",
    ),
    "pods": ({"pods": "0"}, cores(cpu=1), f"needs 1 pods, and quota q of namespace team allows 0 {NEVER}"),
    "counted pods": (
        {"count/pods": "0"},
        cores(cpu=1),
        f"needs 1 pods, and quota q of namespace team allows 0 {NEVER}",
    ),
    "limits say nothing": ({"limits__cpu": "1"}, cores(cpu=4), ""),
    "nor does what is no pod": ({"count/jobs.batch": "0", "services": "0", "requests__storage": "0"}, cores(cpu=4), ""),
    "just enough": ({"cpu": "4", "pods": "1"}, cores(cpu=4), ""),
}


@pytest.mark.parametrize(("quota", "least", "message"), CASES.values(), ids=CASES)
def test_a_group_waits_for_quota(quota: dict[str, str], least: Mapping[str, int], message: str) -> None:
    it = board(**quota)
    asks(it, "g", least)
    found = verdict(it.cycle(), "g")
    if message:
        waits = (PodGroupPhase.PENDING, "NamespaceQuota", f"waiting: {message}", "quota")
        assert (found.phase, found.reason, text(found.message), found.blocked) == waits
    else:
        assert found.phase is PodGroupPhase.INQUEUE


def test_who_can_never_have_so_much_is_told_so_whatever_else_is_short() -> None:
    it = board(pods="1", cpu="3")
    it.running("first", 1, ["n"], cpu=8)  # nothing is left of the quota, and too little of the cluster
    asks(it, "g", cores(cpu=4))
    told = f"waiting: needs 4 cpu, and quota q of namespace team allows 3 {NEVER}"
    assert text(verdict(it.cycle(), "g").message) == told


def test_words_of_quotas_in_what_a_group_asks_for_are_no_resources_of_nodes() -> None:
    it = board(cpu="9")
    least = amounts({"cpu": "2", "requests.cpu": "2", "limits.cpu": "4", "count/pods": "2", "pods": "2"})
    asks(it, "g", least, min_member=2)
    assert verdict(it.cycle(), "g").phase is PodGroupPhase.INQUEUE


def test_groups_let_in_count_until_their_pods_do() -> None:
    it = board(cpu="5")
    asks(it, "first", cores(cpu=3), uid="a")
    asks(it, "second", cores(cpu=3), uid="b")
    made = it.cycle()
    taken = "waiting: needs 3 cpu, and quota q of namespace team allows 5, of which 3 are used"
    assert (verdict(made, "first").phase, verdict(made, "second").phase) == (
        PodGroupPhase.INQUEUE,
        PodGroupPhase.PENDING,
    )
    assert text(verdict(made, "second").message) == taken
    it.pods("first", range(1), cpu=3)  # now the pod is what counts, once
    assert text(verdict(it.cycle(), "second").message) == taken
    it.view.set_pod(replace(it.view.pods[key("first-0")], state=PodState.SUCCEEDED))
    assert verdict(it.cycle(), "second").phase is PodGroupPhase.INQUEUE


def test_what_the_quota_itself_says_counts_where_it_is_more_than_what_is_seen() -> None:
    it = board(cpu="5")
    it.view.set_quota(Key(NS, "q"), NamespaceQuota(cores(cpu=5), cores(cpu=4)))
    asks(it, "g", cores(cpu=2))
    assert text(verdict(it.cycle(), "g").message).endswith("allows 5, of which 4 are used")
    it.view.set_quota(Key(NS, "q"), NamespaceQuota(cores(cpu=5), cores(cpu=3)))
    assert verdict(it.cycle(), "g").phase is PodGroupPhase.INQUEUE


def test_pods_that_came_before_a_quota_count_once_whichever_quotas_come() -> None:
    it = Board()
    it.node("n", cpu=10)
    it.running("early", 2, ["n"])
    for name, namespace in (("q", NS), ("q", "elsewhere"), ("wide", NS)):
        it.view.set_quota(Key(namespace, name), NamespaceQuota(cores(cpu=3 if name == "q" else 9)))
    asks(it, "g", cores(cpu=2))
    assert text(verdict(it.cycle(), "g").message).endswith("quota q of namespace team allows 3, of which 2 are used")


def test_pods_a_group_already_has_are_not_asked_for_twice() -> None:
    it = board(cpu="3", pods="3")
    it.group("g", 3, phase=PodGroupPhase.PENDING, min_resources=cores(cpu=3))
    assert [bind.pod.name for bind in it.cycle().binds] == ["g-0", "g-1", "g-2"]


def test_every_quota_of_the_namespace_counts_and_none_of_another() -> None:
    it = board(cpu="9")
    it.view.set_quota(Key("elsewhere", "tight"), NamespaceQuota(cores(cpu=0)))
    it.view.set_quota(Key(NS, "tight"), NamespaceQuota(cores(cpu=1)))
    asks(it, "g", cores(cpu=2))
    assert text(verdict(it.cycle(), "g").message).startswith("waiting: needs 2 cpu, and quota tight of namespace team")
    it.view.remove_quota(Key(NS, "tight"))
    assert verdict(it.cycle(), "g").phase is PodGroupPhase.INQUEUE


def test_pods_that_wait_for_quota_are_nothing_an_autoscaler_should_see() -> None:
    it = board(cpu="1")
    it.group("g", 2, phase=PodGroupPhase.PENDING, min_resources=cores(cpu=4))
    made = it.cycle()
    assert {wait.pod.name: wait.reason for wait in pod_waits(made, it.view)} == {"g-0": "Queued", "g-1": "Queued"}


def test_a_queue_in_strict_order_does_not_wait_for_the_quota_of_one_namespace() -> None:
    it = board(cpu="1")
    it.queue("line", fifo=True)
    asks(it, "head", cores(cpu=2), queue="line", uid="a")
    asks(it, "next", cores(cpu=1), queue="line", uid="b")
    made = it.cycle()
    assert [verdict(made, name).phase for name in ("head", "next")] == [PodGroupPhase.PENDING, PodGroupPhase.INQUEUE]


def test_a_promised_time_is_not_kept_against_the_quota() -> None:
    it = board(cpu="1")
    asks(it, "g", cores(cpu=2), sla_seconds=1.0)
    assert verdict(it.cycle(later=60), "g").phase is PodGroupPhase.PENDING
