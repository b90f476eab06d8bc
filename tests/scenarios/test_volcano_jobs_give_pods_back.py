"""Scenarios of Volcano Jobs that our scheduler places, with room for four pods: an elastic job makes room by giving
pods back, and nobody is evicted, restarted or charged for it."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from kit.fault_matrix import Case, Disturbed, scenario
from kit.pod_behavior import runs
from kit.scenario import SimulatedWorld
from kit.volcano_jobs import policy, task, vcjob
from kit.volcano_world import CROWDED, CrowdedSimulation, VolcanoWorld
from shoal.cluster.fault_injection import Faults, FaultTiming
from shoal.dialects.volcano import DIALECT
from shoal.kube.kinds import POD, PRIORITY_CLASS
from shoal.kube.objects import Obj, annotations_of
from shoal.scheduler.api.pod_groups import ELASTIC, QUEUE, RECLAIM, RECLAIM_REASON

CPU = {"cpu": "1"}

Plan = Callable[[SimulatedWorld, int], Faults]


def dying(number: int, when: FaultTiming) -> Plan:
    return lambda _, life: Faults().kill_at_write(number, when=when) if life == 0 else Faults()


def unheard(number: int, when: FaultTiming) -> Plan:
    return lambda _, life: (
        Faults().lose_response(lambda call: call.write == number, when=when) if life == 0 else Faults()
    )


def notes_of(world: VolcanoWorld, job: str) -> dict[str, str]:
    """What stands on its group about giving pods back."""
    notes = annotations_of(world.group(job))
    return {name: notes[name] for name in (ELASTIC, RECLAIM, RECLAIM_REASON) if name in notes}


@scenario(worlds=CROWDED, thorough=False)
async def test_an_elastic_job_gives_pods_back_and_gets_them_again(world: VolcanoWorld) -> None:
    before = await crowded(world)
    await world.submit(vcjob("urgent", task(replicas=2, fate=runs(), requests=CPU), priorityClassName="high"))
    await world.up("urgent", 2)
    await world.until(lambda: world.counts("train") == {"running": 2, "pending": 2})
    await world.rest(30)
    kept = {name: uid for name, uid in world.uids_of("train").items() if uid in before.values()}
    assert kept == {name: before[name] for name in ("train-worker-0", "train-worker-1")}
    await world.until(lambda: notes_of(world, "train") == {ELASTIC: "true"})
    # Words go out behind the deed, and get lost with an operator that dies; what is done is told once.
    if not world.is_disturbed:
        await world.until(lambda: bool(told(world)))
    assert told(world) == [GAVE_BACK] or (world.is_disturbed and told(world) == [])

    await world.command("urgent", "CompleteJob")
    await world.up("train", 4)
    assert {name: len(world.uids[name]) for name in sorted(before)} == dict(
        zip(sorted(before), (1, 1, 2, 2), strict=True)
    )
    status = world.status("train")
    assert (status.get("retryCount", 0), status.get("version", 0), set(world.phases("train"))) == (
        0,
        0,
        {"Pending", "Running"},
    )


@pytest.mark.disturbed
@pytest.mark.parametrize(("what", "fault"), [("killed at", dying), ("no answer to", unheard)])
async def test_an_operator_disturbed_at_any_write_of_the_giving_gives_once(
    what: str, fault: Callable[[int, FaultTiming], Plan]
) -> None:
    case: Case = test_an_elastic_job_gives_pods_back_and_gets_them_again.case
    picture, world = await case.play()
    for number in writes_of_the_giving(world):
        for when in FaultTiming:
            name = f"{what} write {number}, {when.value}"
            found, _ = await case.play(Disturbed(name, fault(number, when)))
            assert found == picture, name


def writes_of_the_giving(world: SimulatedWorld) -> range:
    """From the ledger that says who is given to the fresh bodies; the ledger goes out first."""
    writes = [call for call in world.lives[0].calls if call.is_write]
    marks = [call.write for call in writes if (call.verb, call.kind) == ("patch", POD)]
    births = [call.write for call in writes if (call.verb, call.name) == ("create", "train-worker-2")]
    before = writes[marks[0] - 2]
    assert (before.verb, before.kind, before.name) == ("patch", DIALECT.kind, "train")
    return range(before.write, births[-1] + 3)


@pytest.mark.disturbed
async def test_a_scheduler_killed_at_any_write_around_it_asks_for_no_more() -> None:
    case: Case = test_an_elastic_job_gives_pods_back_and_gets_them_again.case
    picture, world = await case.play()
    assert isinstance(world, CrowdedSimulation)
    numbers = [call.write for call in world.schedulers[0].calls if call.is_write and call.name.startswith("urgent-")]
    binds = [call.write for call in world.schedulers[0].calls if (call.verb, call.name) == ("bind", "urgent-worker-1")]
    for number in range(numbers[0], binds[0] + 3):  # from the moment it is let in until it has been placed
        for when in FaultTiming:
            found = await played(case, Faults().kill_at_write(number, when=when))
            assert found == picture, f"the scheduler killed at write {number}, {when.value}"


async def played(case: Case, faults: Faults) -> Obj:
    world = CrowdedSimulation()
    world.scheduler_faults, world.is_disturbed = faults, True
    async with world:
        await case.script(world)
        await world.at_rest()
        assert len(world.schedulers) == 2, "nobody died"
        return world.picture()


@scenario(worlds=CROWDED, thorough=False, real=False)
async def test_a_queue_gets_back_what_it_lent_to_an_elastic_job(world: VolcanoWorld) -> None:
    for name in ("lender", "borrower"):
        await world.user.create(QUEUE, {"metadata": {"name": name}, "spec": {"weight": 1}})
    before = await crowded(world, queue="borrower")
    await world.submit(vcjob("own", task(replicas=2, fate=runs(), requests=CPU), queue="lender"))
    await world.up("own", 2)
    await world.until(lambda: world.counts("train") == {"running": 2, "pending": 2})
    await world.rest(60)
    counts = {name: len(world.uids[name]) for name in sorted(before)}
    assert (counts, world.status("train").get("retryCount", 0)) == (
        dict(zip(sorted(before), (1, 1, 2, 2), strict=True)),
        0,
    )


async def crowded(world: VolcanoWorld, **spec: str) -> dict[str, str]:
    """An elastic job fills the cluster, and restarts or stops for whatever befalls a pod; the uids of its pods."""
    await world.user.create(PRIORITY_CLASS, {"metadata": {"name": "high"}, "value": 100})
    answers = [policy("PodEvicted,PodFailed,Unknown", "RestartJob")]
    if not world.is_real:  # how long a process takes to start is no matter of the scenario
        answers.append(policy("PodPending", "AbortJob", "10s"))
    await world.submit(vcjob("train", task(replicas=4, least=2, fate=runs(), requests=CPU), policies=answers, **spec))
    await world.up("train", 4)
    return world.uids_of("train")


def told(world: VolcanoWorld) -> list[tuple[str, str]]:
    return [(event["reason"], event["message"]) for event in world.events.values() if event["reason"] in REASONS]


WHY = "preempted by urgent of higher priority in queue default"  # a gang has the name of its job in messages
GAVE_BACK = ("GaveBack", f"train releases 2 pods, worker-2 and worker-3: {WHY}")
REASONS = ("GaveBack", "Evicted", "Restarting", "TaskLost", "TaskFailed")
