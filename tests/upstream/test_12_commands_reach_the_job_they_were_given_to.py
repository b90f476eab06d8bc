"""A Command acts on a Job that exists when the Command is created, and CompleteJob does not act on an aborted one."""

from __future__ import annotations

from kit.pod_behavior import runs
from kit.scenario import NAMESPACE
from kit.volcano_jobs import task, vcjob
from kit.volcano_world import VolcanoWorld, scenario
from shoal.dialects.volcano.commands import read
from shoal.kube.objects import Obj
from shoal.scheduler.api.pod_groups import COMMAND


def abort(name: str) -> Obj:
    """As a client writes it that knows no uid."""
    target = {"apiVersion": "batch.volcano.sh/v1alpha1", "kind": "Job", "name": name}
    return {
        "apiVersion": COMMAND.api_version, "kind": COMMAND.kind,
        "metadata": {"name": f"abort-{name}"}, "action": "AbortJob", "target": target,
    }  # fmt: skip


@scenario()
async def test_12_a_command_for_a_job_that_does_not_exist_is_deleted_without_effect(world: VolcanoWorld) -> None:
    await world.user.create(COMMAND, abort("a"), NAMESPACE)
    await world.until(lambda: not world.commands)
    await world.submit(vcjob("a", task(fate=runs())))
    await world.up("a", 1)
    assert "Aborting" not in world.phases("a")


@scenario()
async def test_12_a_command_for_a_deleted_job_does_not_act_on_the_next_one(world: VolcanoWorld) -> None:
    await world.submit(vcjob("a", task(fate=runs())))
    await world.up("a", 1)
    await world.delete("a")
    await world.until(lambda: not world.job("a"))
    await world.user.create(COMMAND, abort("a"), NAMESPACE)
    await world.until(lambda: not world.commands)
    await world.submit(vcjob("a", task(fate=runs())))
    await world.up("a", 1)


def test_12_a_command_from_before_the_job_is_rejected():
    """One that no operator has consumed, because none ran."""
    job = {**vcjob("a", task()), "metadata": {"name": "a", "uid": "u", "creationTimestamp": "2026-01-01T00:00:10Z"}}
    command = abort("a")
    command["metadata"] |= {"uid": "c", "creationTimestamp": "2026-01-01T00:00:09Z"}
    assert read(command, job).action == "AbortJob from 2026-01-01T00:00:09Z, before this Job was created"
    command["metadata"]["creationTimestamp"] = "2026-01-01T00:00:10Z"
    assert read(command, job).action == "AbortJob"


@scenario()
async def test_12_complete_job_has_no_effect_on_an_aborted_job(world: VolcanoWorld) -> None:
    await world.submit(vcjob("a", task(fate=runs())))
    await world.up("a", 1)
    await world.command("a", "AbortJob")
    await world.in_phase("a", "Aborted")
    await world.command("a", "CompleteJob")
    await world.until(lambda: not world.commands)
    assert world.phase("a") == "Aborted"
    await world.command("a", "ResumeJob")
    await world.up("a", 1)
    assert "Completed" not in world.phases("a")
