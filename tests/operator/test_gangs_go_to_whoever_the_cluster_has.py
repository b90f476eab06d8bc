"""Whom an operator hands gangs to: what was asked for, or what the cluster serves; and the sentence that says so."""

from __future__ import annotations

import pytest
from prometheus_client import CollectorRegistry

from kit.third_party_gang_crds import NUMA, define
from shoal.cli.commands.operator import GANG_SCHEDULERS
from shoal.cluster.embedded import EmbeddedCluster
from shoal.cluster.simulated import SimulatedCluster
from shoal.controller_runtime.crd_installer import CrdUnusable
from shoal.controller_runtime.identity import ProcessIdentity
from shoal.controller_runtime.metrics import Metrics
from shoal.controller_runtime.rights import Permission
from shoal.dialects import load
from shoal.dialects.gang_backends import coscheduling, kueue, native
from shoal.dialects.gang_backends.delegate import with_backend
from shoal.kube.kinds import Kind
from shoal.operator.gang_scheduler_detection import CHOICES, choose
from shoal.operator.manager import Operator, OperatorConfig
from shoal.operator.rbac import job_rights

NEWEST, OLDER = (kueue.workload(version) for version in kueue.VERSIONS)
NATIVE = native.pod_group("v1beta1")
FOUND: dict[str, tuple[tuple[Kind, ...], str, str]] = {
    "nobody": (
        (),
        "shoal",
        "gangs go to Shoal's own scheduler: this cluster serves the API of no other gang scheduler; "
        "`shoal scheduler` has to run",
    ),
    "Volcano": (
        (NUMA,),
        "volcano",
        "gangs go to Volcano's scheduler: this cluster serves nodeinfo.volcano.sh/v1alpha1",
    ),
    "an older Kueue": ((OLDER,), "kueue/v1beta1", "gangs go to Kueue: this cluster serves kueue.x-k8s.io/v1beta1"),
    "the plugin": (
        (coscheduling.POD_GROUP,),
        "coscheduling",
        "gangs go to the coscheduling plugin: this cluster serves scheduling.x-k8s.io/v1alpha1",
    ),
    "Kubernetes itself": (
        (NATIVE,),
        "native/v1beta1",
        "gangs go to the cluster's own scheduler, which knows PodGroups: this cluster serves scheduling.k8s.io/v1beta1",
    ),
    "several": (
        (NEWEST, coscheduling.POD_GROUP),
        "kueue/v1beta2",
        "gangs go to Kueue: this cluster serves kueue.x-k8s.io/v1beta2. It serves scheduling.x-k8s.io/v1alpha1 "
        "(coscheduling) too, and --gang-scheduler chooses",
    ),
}


@pytest.mark.parametrize(("kinds", "label", "why"), FOUND.values(), ids=FOUND)
async def test_what_is_there_is_used(kinds: tuple[Kind, ...], label: str, why: str) -> None:
    cluster = SimulatedCluster().embedded
    await define(cluster, *kinds)
    chosen = await choose(cluster)
    named = chosen.backend.label if "/" in label else chosen.backend.name
    assert (named, chosen.why) == (label, why)


async def test_what_was_asked_for_is_used() -> None:
    cluster = SimulatedCluster().embedded
    await define(cluster, OLDER, coscheduling.POD_GROUP)
    chosen = await choose(cluster, "kueue", scheduler="second")
    assert (chosen.backend.label, chosen.backend.scheduler) == ("kueue/v1beta1", "second")
    assert chosen.why == "gangs go to Kueue, because of --gang-scheduler"


@pytest.mark.parametrize("name", ["shoal", "volcano", "none"])
async def test_those_that_need_no_api_of_others_are_always_there(name: str) -> None:
    assert (await choose(SimulatedCluster().embedded, name)).backend.name == name


async def test_what_is_not_there_is_told_with_the_way_out() -> None:
    with pytest.raises(CrdUnusable) as refused:
        await choose(SimulatedCluster().embedded, "native")
    assert str(refused.value) == (
        "gangs cannot go to the cluster's own scheduler, which knows PodGroups: this cluster does not serve "
        "scheduling.k8s.io/v1beta1 or scheduling.k8s.io/v1alpha2. Install it, or choose another with --gang-scheduler"
    )


def test_the_command_line_knows_every_scheduler() -> None:
    assert set(GANG_SCHEDULERS) == set(CHOICES)


# --- rights --------------------------------------------------------------------------------------------------------

VERBS = ("create", "delete", "get", "patch", "list", "watch")
GROUPS = {
    "shoal": "podgroups.scheduling.volcano.sh",
    "volcano": "podgroups.scheduling.volcano.sh",
    "coscheduling": "podgroups.scheduling.x-k8s.io",
    "kueue": "workloads.kueue.x-k8s.io",
    "native": "podgroups.scheduling.k8s.io",
    "none": "",
}


@pytest.mark.parametrize(("name", "resource"), GROUPS.items(), ids=GROUPS)
async def test_rights_are_those_on_the_groups_of_the_chosen_one(name: str, resource: str) -> None:
    cluster = SimulatedCluster().embedded
    await define(cluster, NEWEST, NATIVE, coscheduling.POD_GROUP)
    chosen = (await choose(cluster, name)).backend
    all_of_them = {f"{verb} {group}" for verb in VERBS for group in GROUPS.values()}
    asked = {str(right) for right in job_rights([with_backend(load("volcano"), chosen)])}
    assert asked & all_of_them == ({f"{verb} {resource}" for verb in VERBS} if resource else set())


async def test_a_language_without_gangs_asks_for_nothing_of_it() -> None:
    framework = load("framework")
    chosen = (await choose(SimulatedCluster().embedded)).backend
    assert with_backend(framework, chosen) is framework


async def test_an_operator_hands_over_what_it_serves(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[Permission] = []

    async def allowed(_: object, wanted: list[tuple[str, Permission]]) -> None:
        asked.extend(right for _, right in wanted)

    async def young_enough(_: object) -> None: ...

    monkeypatch.setattr("shoal.operator.manager.check_permissions", allowed)
    monkeypatch.setattr(EmbeddedCluster, "require_unserved", young_enough, raising=False)
    cluster = SimulatedCluster().embedded
    await define(cluster, NEWEST)
    duties = OperatorConfig({"volcano": load("volcano")})
    operator = Operator(cluster, duties, ProcessIdentity("one", "own"), metrics=Metrics(CollectorRegistry()))  # type: ignore[arg-type]
    await operator.prepare()
    groups = {str(right) for right in asked if right.resource in ("podgroups", "workloads")}
    assert groups == {f"{verb} workloads.kueue.x-k8s.io" for verb in VERBS}
