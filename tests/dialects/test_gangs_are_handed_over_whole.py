"""A job language whose gangs go to another scheduler: its doors, its objects, its pods and its record follow; and where
each size of a gang is an object of its own, which of several counts."""

from __future__ import annotations

from typing import Any

import pytest

from kit.capabilities import capability
from kit.volcano_jobs import policy, task, vcjob
from shoal.dialects.capabilities import ClusterValidation, Gangs, OwnedObjects
from shoal.dialects.children import observe_children
from shoal.dialects.dialect import Dialect, ManifestInvalid
from shoal.dialects.framework import DIALECT as FRAMEWORK
from shoal.dialects.gang_backends import backend
from shoal.dialects.gang_backends.delegate import LEFT_OUT, RECORDED, with_backend, with_recorded_backend
from shoal.dialects.volcano import DIALECT, settings
from shoal.engine import (
    Action,
    Apply,
    BuildContext,
    Create,
    EventType,
    GroupRef,
    Job,
    JobState,
    ObservedGroup,
    ObservedObject,
    OwnedObjectRef,
    TaskRef,
)
from shoal.engine.policies import GroupGate, GroupPlan, Opens
from shoal.kube.objects import Obj, annotations_of

UID = "0b6cf1de-1111-4222-8333-444455556666"


def stored(manifest: Obj, generation: int = 1) -> Obj:
    made = DIALECT.default(manifest)
    made["metadata"] |= {"uid": UID, "namespace": "team", "generation": generation}
    return made


def ctr(trainers: int = 2, name: str = "ctr", **more: Any) -> Obj:
    return stored(vcjob(name, task("pserver", 2), task("trainer", trainers), **more), generation=trainers)


def read(dialect: Dialect, manifest: Obj) -> Job:
    job = dialect.to_job(manifest, settings())
    assert job is not None
    return job


def plan_of(dialect: Dialect, manifest: Obj) -> GroupPlan:
    (gate,) = [gate for gate in read(dialect, manifest).policies.gates if isinstance(gate, GroupGate)]
    return gate.groups[0]


def group_of(dialect: Dialect, manifest: Obj, key: str = "") -> Obj:
    plan = plan_of(dialect, manifest)
    return capability(dialect, OwnedObjects).build_object(
        manifest, Apply(GroupRef(key), BuildContext(), plan.digest), is_new=True
    )


# --- doors and records ---------------------------------------------------------------------------------------------

DOORS = {
    "shoal": (Opens.ADMITTED, True),
    "coscheduling": (Opens.EXISTS, True),
    "kueue": (Opens.ADMITTED, True),
    "native": (Opens.EXISTS, True),
}


@pytest.mark.parametrize(("name", "door"), DOORS.items(), ids=DOORS)
def test_the_door_is_that_of_the_scheduler(name: str, door: tuple[Opens, bool]):
    gates = read(with_backend(DIALECT, backend(name)), ctr()).policies.gates
    assert [(gate.opens_when, gate.follows) for gate in gates if isinstance(gate, GroupGate)] == [door]


def test_the_first_version_of_kubernetes_own_groups_is_not_followed():
    gates = read(with_backend(DIALECT, backend("native", version="v1alpha2")), ctr()).policies.gates
    assert [gate.follows for gate in gates if isinstance(gate, GroupGate)] == [False]


def test_without_a_gang_scheduler_there_is_no_door():
    alone = with_backend(DIALECT, backend("none"))
    assert read(alone, ctr()).policies.gates == ()
    assert [
        child.kind.plural for child in capability(alone, OwnedObjects).children if child.kind.plural == "podgroups"
    ] == []


def test_only_who_takes_back_is_answered():
    anew = {name: read(with_backend(DIALECT, backend(name)), ctr()).policies.reactions for name in ("shoal", "kueue")}
    assert anew["shoal"] == ()
    assert [(each.action, each.events, each.charged) for each in anew["kueue"]] == [
        (Action.RESTART_RUN, frozenset({EventType.GROUP_EVICTED}), False)
    ]


@pytest.mark.parametrize("action", ["AbortJob", "RestartJob", "CompleteJob"])
def test_no_policy_for_all_events_answers_it(action: str):
    """The engine takes the first that is meant: a job that was preempted is neither held, charged nor done."""
    job = read(with_backend(DIALECT, backend("kueue")), ctr(policies=[policy("*", action)]))
    first, second = job.policies.reactions
    assert (first.action, first.events, first.charged) == (
        Action.RESTART_RUN, frozenset({EventType.GROUP_EVICTED}), False,
    )  # fmt: skip
    assert second.events == frozenset({EventType.ANY})


def test_a_gang_that_cannot_be_handed_over_is_refused_with_the_way_out():
    many = stored(vcjob("many", *(task(f"t{number}") for number in range(9))))
    with pytest.raises(ManifestInvalid, match="Kueue takes at most 8 kinds of pods in one gang, and this one has 9"):
        read(with_backend(DIALECT, backend("kueue")), many)


def test_a_job_remembers_whom_its_gang_was_handed_to():
    dialect, manifest = with_backend(DIALECT, backend("kueue", version="v1beta1")), ctr()
    patch = dialect.save_state(read(dialect, manifest), JobState(), settings())
    assert patch.annotations[RECORDED] == "kueue/v1beta1"
    manifest["metadata"]["annotations"] = dict(patch.annotations)
    again = with_recorded_backend(DIALECT, manifest)
    assert capability(again, Gangs).group.api_version == "kueue.x-k8s.io/v1beta1"


def test_a_job_nobody_handed_over_is_told_in_its_own_words():
    assert with_recorded_backend(DIALECT, ctr()) is DIALECT


def test_queues_of_another_scheduler_are_not_looked_for_among_ours():
    own, foreign = (with_backend(DIALECT, backend(name)) for name in ("shoal", "kueue"))
    assert own.capability(ClusterValidation) is DIALECT.capability(ClusterValidation)
    assert foreign.capability(ClusterValidation) is None


def test_a_language_without_gangs_stays_as_it_is():
    assert with_backend(FRAMEWORK, backend("kueue")) is FRAMEWORK


# --- objects -------------------------------------------------------------------------------------------------------


def test_what_the_scheduler_cannot_be_told_stands_on_the_group():
    group = group_of(with_backend(DIALECT, backend("coscheduling")), ctr(queue="research"))
    assert annotations_of(group)[LEFT_OUT] == "its queue research"


def test_names_fit_into_the_label_that_carries_them():
    dialect, manifest = with_backend(DIALECT, backend("coscheduling")), ctr(name="a-name-of-thirty-four-letters-here")
    pod = dialect.build_pod(manifest, Create(TaskRef("trainer", 0), BuildContext()))
    name = pod["metadata"]["labels"]["scheduling.x-k8s.io/pod-group"]
    assert name == group_of(dialect, manifest)["metadata"]["name"]
    assert (len(name) <= 63, name.startswith("a-name-of-thirty-four-letters-here-0b6cf1de")) == (True, True)


def test_each_stage_of_a_job_is_a_gang_and_its_pods_know_which():
    dialect = with_backend(DIALECT, backend("native"))
    manifest = stored(vcjob("a", task("server"), task("worker", after=["server"])))
    pods = [dialect.build_pod(manifest, Create(TaskRef(role, 0), BuildContext())) for role in ("server", "worker")]
    assert [pod["spec"]["schedulingGroup"]["podGroupName"] for pod in pods] == [f"a-{UID}", f"a-{UID}-1"]


def test_a_group_of_somebody_elses_kind_is_theirs_to_define():
    owned = {name: capability(with_backend(DIALECT, backend(name)), OwnedObjects) for name in ("kueue", "shoal")}
    names = {name: [each["metadata"]["name"] for each in found.definitions()] for name, found in owned.items()}
    assert set(names["shoal"]) - set(names["kueue"]) == {"podgroups.scheduling.volcano.sh"}


# --- one object per size -------------------------------------------------------------------------------------------

KUEUE = with_backend(DIALECT, backend("kueue"))
OWNED = capability(KUEUE, OwnedObjects)


def workload(trainers: int, **said: bool) -> Obj:
    made = group_of(KUEUE, ctr(trainers))
    made["metadata"]["uid"] = f"of-{trainers}"
    listed = [{"type": name, "status": str(value)} for name, value in said.items()]
    return {**made, "status": {"conditions": listed}}


def digest(trainers: int) -> str:
    return plan_of(KUEUE, ctr(trainers)).digest


def old(trainers: int) -> dict[OwnedObjectRef, ObservedObject]:
    return {OwnedObjectRef(f"slice::{digest(trainers)}"): ObservedObject(f"of-{trainers}", digest(trainers))}


SEEN: dict[str, tuple[list[Obj], ObservedGroup, dict[OwnedObjectRef, ObservedObject]]] = {
    "the only one": ([workload(3, Admitted=True)], ObservedGroup("of-3", "", digest(3), admitted=True), {}),
    "one of the old size: a new one is asked for, and nobody new is made before it is granted": (
        [workload(2, Admitted=True)],
        ObservedGroup("of-2", "", digest(2), admitted=False),
        {},
    ),
    "a new one that waits: the old one stands, and nobody new is made": (
        [workload(2, Admitted=True), workload(3)],
        ObservedGroup("of-2", "", digest(3), admitted=False),
        {},
    ),
    "a new one that is granted: the old one goes": (
        [workload(2, Admitted=True), workload(3, Admitted=True)],
        ObservedGroup("of-3", "", digest(3), admitted=True),
        old(2),
    ),
    "two that wait: the older one goes": ([workload(2), workload(3)], ObservedGroup("of-3", "", digest(3)), old(2)),
    "an old one whose quota is taken back while a new one waits": (
        [workload(2, Evicted=True), workload(3)],
        ObservedGroup("of-2", "", digest(3), evicted=True),
        {},
    ),
    "three sizes": (
        [workload(2, Admitted=True), workload(4), workload(3)],
        ObservedGroup("of-2", "", digest(3), admitted=False),
        old(4),
    ),
}


@pytest.mark.parametrize(("objects", "group", "companions"), SEEN.values(), ids=SEEN)
def test_of_several_sizes_one_counts(
    objects: list[Obj], group: ObservedGroup, companions: dict[OwnedObjectRef, ObservedObject]
):
    for order in (objects, objects[::-1]):
        assert observe_children(OWNED, KUEUE.capability(Gangs), order, ctr(3)) == ({"": group}, companions)


def test_a_size_is_found_by_its_name():
    now, before = ctr(3), ctr(2)
    places = [
        OWNED.locate_object(now, GroupRef("")),
        OWNED.locate_object(now, next(iter(old(2)))),
    ]
    assert [name for _, name in places] == [f"ctr-{UID}-{digest(3)[:8]}", f"ctr-{UID}-{digest(2)[:8]}"]
    assert OWNED.locate_object(before, GroupRef(""))[1] == places[1][1]


def test_a_new_size_names_the_granted_one_it_takes_over_from():
    fresh = group_of(KUEUE, ctr(4))
    capability(KUEUE, Gangs).replace_group(fresh, [workload(3), workload(2, Admitted=True)])
    assert annotations_of(fresh)["kueue.x-k8s.io/workload-slice-replacement-for"] == f"team/ctr-{UID}-{digest(2)[:8]}"


def test_a_label_that_changes_is_seen_without_a_change_of_the_spec():
    asked = []
    for queue in ("mine", "yours"):
        manifest = ctr()
        manifest["metadata"]["labels"] = {"kueue.x-k8s.io/queue-name": queue}
        asked.append(group_of(KUEUE, manifest)["spec"]["queueName"])
    assert asked == ["mine", "yours"]
