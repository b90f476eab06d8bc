"""Acceptance scenarios of Volcano Jobs: another size for a running job (27 to 30)."""

from __future__ import annotations

import pytest

from kit.pod_behavior import runs
from kit.volcano_jobs import policy, task, vcjob
from kit.volcano_world import VolcanoWorld, scenario
from shoal.kube.errors import ApiError


@scenario(thorough=True, kubernetes=True)
async def test_27_workers_join_a_running_job_and_nobody_else_notices(world: VolcanoWorld) -> None:
    await world.submit(vcjob("a", task(replicas=2, fate=runs()), plugins={"svc": []}))
    await world.up("a", 2)
    before = world.uids_of("a")
    await world.resize("a", 4)
    await world.up("a", 4)
    after = world.uids_of("a")
    assert {name: after[name] for name in before} == before
    await world.until(lambda: world.group("a")["spec"]["minMember"] == 4)
    assert world.group("a")["spec"]["minTaskMember"] == {"worker": 4}
    await world.until(lambda: world.config_maps["a-svc"]["data"]["VC_WORKER_NUM"] == "4")
    hosts = world.config_maps["a-svc"]["data"]["worker.host"].splitlines()
    assert hosts == [f"a-worker-{index}.a" for index in range(4)]
    assert (world.status("a").get("retryCount", 0), world.status("a").get("version", 0)) == (0, 0)


@scenario(kubernetes=True)
async def test_28_workers_that_are_scaled_away_are_not_evicted(world: VolcanoWorld) -> None:
    job = vcjob("a", task(replicas=4, fate=runs()), policies=[policy("PodEvicted", "RestartJob")])
    await world.submit(job)
    await world.up("a", 4)
    before = world.uids_of("a")
    await world.resize("a", 2)
    await world.until(lambda: set(world.pods) == {"a-worker-0", "a-worker-1"})
    await world.up("a", 2)
    await world.rest(20)
    assert world.uids_of("a") == {name: before[name] for name in ("a-worker-0", "a-worker-1")}
    assert (world.status("a").get("retryCount", 0), world.status("a").get("version", 0)) == (0, 0)


@scenario(real=False)
async def test_29_another_image_is_refused_with_what_may_change(world: VolcanoWorld) -> None:
    await world.submit(vcjob("a", task(replicas=2, fate=runs())))
    await world.up("a", 2)
    path = "/spec/tasks/0/template/spec/containers/0/image"
    with pytest.raises(ApiError) as refused:
        await world.patch("a", {"op": "replace", "path": path, "value": "other"})
    assert refused.value.code == 422
    assert "may not change fields other than `minAvailable`, `tasks[*].replicas`" in refused.value.message
    with pytest.raises(ApiError, match="may not add or remove tasks"):
        await world.patch("a", {"op": "add", "path": "/spec/tasks/-", "value": task("more")})


@scenario()
async def test_30_a_job_without_pods_stays_running_and_grows_again(world: VolcanoWorld) -> None:
    await world.submit(vcjob("a", task(replicas=2, fate=runs())))
    await world.up("a", 2)
    await world.resize("a", 0)
    await world.until(lambda: not world.pods)
    await world.rest(10)
    assert world.phases("a") == ["Pending", "Running"]
    await world.resize("a", 2)
    await world.up("a", 2)
    assert {name: len(uids) for name, uids in world.uids.items()} == {"a-worker-0": 2, "a-worker-1": 2}
