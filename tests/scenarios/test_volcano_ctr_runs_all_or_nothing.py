"""Acceptance scenarios of Volcano Jobs: parameter servers and trainers (31, 32, 34), and keys that stay (36)."""

from __future__ import annotations

from kit.pod_behavior import Fate, exits, runs
from kit.volcano_jobs import policy, task, vcjob
from kit.volcano_world import SimulatedVolcano, VolcanoWorld, scenario
from shoal.kube.objects import Obj, uid_of

RESTARTS = [policy("PodEvicted", "RestartJob"), policy("PodFailed", "RestartJob")]


def ctr(trainer: Fate) -> Obj:
    done = [policy("TaskCompleted", "CompleteJob")]
    return vcjob(
        "ctr",
        task("pserver", 2, fate=runs(), requests={"cpu": "1"}),
        task("trainer", 2, fate=trainer, policies=done, requests={"cpu": "1"}),
        minAvailable=4,
        policies=RESTARTS,
    )


@scenario(kubernetes=True)
async def test_31_the_trainers_end_completes_the_job_and_frees_the_servers(world: VolcanoWorld) -> None:
    await world.submit(ctr(exits(0, 3)))
    await world.in_phase("ctr", "Completed")
    await world.rest(10)
    assert world.pods_of("ctr") == {"ctr-trainer-0": "Succeeded", "ctr-trainer-1": "Succeeded"}
    assert (world.counts("ctr"), world.status("ctr").get("retryCount", 0)) == ({"succeeded": 2}, 0)


@scenario(real=False)
async def test_32_with_room_for_three_nothing_starts(world: SimulatedVolcano) -> None:
    await world.set_room({"cpu": "3", "memory": "8Gi", "pods": "10"})
    await world.submit(ctr(exits(0, 3)))
    await world.until(lambda: bool(world.group("ctr").get("status")))
    await world.rest(60)
    assert (world.phase("ctr"), dict(world.uids)) == ("Pending", {})


@scenario(thorough=True, kubernetes=True, outages=False)
async def test_34_an_evicted_trainer_restarts_all_four(world: VolcanoWorld) -> None:
    await world.submit(ctr(runs()))
    await world.up("ctr", 4)
    before = world.uids_of("ctr")
    await world.delete_pod("ctr-trainer-0")
    await world.until(lambda: world.status("ctr").get("retryCount") == 1)
    await world.up("ctr", 4)
    after = world.uids_of("ctr")
    assert not set(before.values()) & set(after.values())
    await world.rest(20)
    assert (world.status("ctr")["version"], world.status("ctr")["retryCount"]) == (1, 1)
    assert {name: len(uids) for name, uids in world.uids.items()} == dict.fromkeys(before, 2)


@scenario(kubernetes=True)
async def test_36_a_restarted_pod_finds_the_same_key_and_the_same_service(world: VolcanoWorld) -> None:
    job = vcjob(
        "a",
        task("master", fate=runs()),
        task(replicas=2, fate=runs()),
        plugins={"mpi": []},
        policies=[policy("PodEvicted", "RestartPod")],
    )
    await world.submit(job)
    await world.up("a", 3)
    key, service, kept = world.secrets["a-ssh"]["data"], uid_of(world.services["a"]), world.uids_of("a")
    assert sorted(key) == ["authorized_keys", "config", "id_rsa", "id_rsa.pub"]
    await world.delete_pod("a-worker-1")
    await world.until(lambda: world.status("a").get("retryCount") == 1)
    await world.up("a", 3)
    assert (world.secrets["a-ssh"]["data"], uid_of(world.services["a"]), world.went) == (key, service, [])
    after = world.uids_of("a")
    assert {name for name in kept if kept[name] != after[name]} == {"a-worker-1"}
