"""Acceptance scenarios of Volcano Jobs: volumes (24, 25)."""

from __future__ import annotations

from kit.pod_behavior import exits, runs
from kit.scenario import NAMESPACE
from kit.volcano_jobs import policy, task, vcjob
from kit.volcano_world import VolcanoWorld, scenario
from shoal.kube.kinds import PERSISTENT_VOLUME_CLAIM
from shoal.kube.objects import name_of, uid_of
from shoal.kube.owners import is_controlled_by

WANTED = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Mi"}}}


@scenario(varies=("controlledResources",))
async def test_24_a_claim_is_made_named_in_the_spec_and_outlives_restarts(world: VolcanoWorld) -> None:
    volume = {"mountPath": "/data", "volumeClaim": WANTED}
    worker = task(in_runs={0: exits(1)}, fate=runs())
    await world.submit(vcjob("a", worker, volumes=[volume], policies=[policy("PodFailed", "RestartJob")]))
    await world.until(lambda: world.status("a").get("retryCount") == 1)
    await world.up("a", 1)
    (claim,) = world.claims.values()
    assert name_of(claim).startswith("a-pvc-")
    assert len(name_of(claim)) == len("a-pvc-") + 12
    assert is_controlled_by(claim, world.job("a"))
    assert world.job("a")["spec"]["volumes"] == [{**volume, "volumeClaimName": name_of(claim)}]
    for pod in (world.births["a-worker-0"][0], world.pods["a-worker-0"]):
        (mount,) = [m for m in pod["spec"]["containers"][0]["volumeMounts"] if m["mountPath"] == "/data"]
        (named,) = [v for v in pod["spec"]["volumes"] if v["name"] == mount["name"]]
        assert named["persistentVolumeClaim"] == {"claimName": name_of(claim)}
    made = uid_of(claim)
    await world.command("a", "TerminateJob")
    await world.in_phase("a", "Terminated")
    await world.rest(10)
    assert [uid_of(each) for each in world.claims.values()] == [made]


@scenario(varies=("controlledResources",))
async def test_25_a_job_waits_for_a_claim_that_is_not_there(world: VolcanoWorld) -> None:
    volume = {"mountPath": "/data", "volumeClaimName": "data"}
    await world.submit(vcjob("a", task(fate=runs()), volumes=[volume]))
    await world.until(lambda: "PVCError" in world.reasons("a"))
    await world.rest(10)
    assert (world.phase("a"), world.pods, world.groups) == ("Pending", {}, {})
    claim = {"metadata": {"name": "data"}, "spec": WANTED}
    await world.user.create(PERSISTENT_VOLUME_CLAIM, claim, NAMESPACE)
    await world.up("a", 1)
