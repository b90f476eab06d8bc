"""What the commands tell of a Volcano Job: how it ended and with whose code, why it waits, what may become of it."""

from __future__ import annotations

import asyncio
import re
from io import StringIO

import pytest
from rich.console import Console

from kit.pod_behavior import exits, runs
from kit.scenario import NAMESPACE
from kit.volcano_jobs import policy, task, vcjob
from kit.volcano_world import SimulatedVolcano
from shoal.cli.commands.describe import load_context
from shoal.cli.commands.run import is_over
from shoal.cli.describe_page import describe_job, headline
from shoal.cli.follow import Follower, PodView
from shoal.cli.job_lookup import FoundJob
from shoal.cli.job_table import exit_code_of, job_row, job_status, tasks_of
from shoal.cli.progress import LineDisplay, TableDisplay
from shoal.dialects.volcano import DIALECT
from shoal.kube.kinds import POD
from shoal.kube.objects import Obj, uid_of


async def seen(world: SimulatedVolcano, name: str = "a") -> FoundJob:
    return FoundJob(await world.user.get(DIALECT.kind, name, NAMESPACE), DIALECT)


async def told(world: SimulatedVolcano, name: str = "a") -> str:
    found = await seen(world, name)
    return re.sub(r"\d\d:\d\d:\d\d \(\d+s ago\)", "WHEN", describe_job(found, await load_context(world.user, found)))


def bad(**spec: object) -> Obj:
    """A server that never ends, and workers of which one fails with code 7."""
    return vcjob("a", task("server", fate=runs()), task(replicas=2, fate=runs(), of={1: exits(7, 3)}), **spec)


ENDS: dict[str, tuple[Obj, str, str, str]] = {
    "no restart is left": (
        bad(maxRetry=1, policies=[policy("PodFailed", "RestartJob")]), "Failed", "failed",
        "maxRetry permits no further run: worker-1 failed with code 7",
    ),
    "no restart of a part is left": (
        bad(maxRetry=1, policies=[policy("PodFailed", "RestartPod")]), "Failed", "failed",
        "maxRetry permits no further run: worker-1 failed with code 7",
    ),
    "terminated by a policy": (
        bad(policies=[policy("PodFailed", "TerminateJob")]), "Terminated", "stopped",
        "the job was terminated: worker-1 failed with code 7",
    ),
    "terminated by a policy that waited": (
        bad(policies=[policy("PodFailed", "TerminateJob", "5s")]), "Terminated", "stopped",
        "the job was terminated: worker-1 failed",
    ),
    "aborted by a policy": (
        bad(policies=[policy(7, "AbortJob")]), "Aborted", "held",
        "the job was aborted: worker-1 failed with code 7",
    ),
    "too few succeeded": (
        vcjob("a", task(replicas=2, of={1: exits(7, 3)})), "Failed", "failed",
        "too few pods succeeded: worker-1 was the last to fail; failed pods: 1",
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", ENDS)
async def test_a_job_ends_with_the_code_of_the_task_that_made_it_fail(case: str) -> None:
    manifest, phase, word, message = ENDS[case]
    async with SimulatedVolcano() as world:
        await world.submit(manifest)
        status = await world.in_phase("a", phase)
        found = await seen(world)
    assert (job_status(found.state), exit_code_of(found.state), status["state"]["message"]) == (word, 7, message)
    assert ": worker-1 ended with code 7." in headline(found, found.state, world.cluster.clock.now())


async def test_an_aborted_job_is_not_waited_for_by_run() -> None:
    async with SimulatedVolcano() as world:
        await world.submit(bad(policies=[policy("PodFailed", "AbortJob")]))
        follower = Follower(world.user, [await seen(world)], clock=world.cluster.clock, is_over=is_over)
        following = asyncio.create_task(follower.run())
        await world.until(following.done)
        (over,) = following.result()
        assert (over.state.is_held, world.pods_of("a")) == (True, {"a-worker-1": "Failed"})
        page = await told(world)
    resume, end = "`shoal start a` resumes it without repeating tasks that have succeeded", "`shoal stop a` ends it"
    assert page.endswith(f"What is next:\n  It is held: {resume}; {end}.")


async def test_a_gang_without_room_is_shown_in_lines_and_in_the_table() -> None:
    async with SimulatedVolcano() as world:
        await world.submit(vcjob("a", task(replicas=2, requests={"cpu": "500"})))
        found, out = await seen(world), StringIO()
        lines = LineDisplay(Console(file=out, width=200), logs=True)
        screen = TableDisplay(Console(file=StringIO(), width=140, height=30), logs=True)

        def gang(job: FoundJob, why: str) -> None:
            lines.gang(job, why)
            screen.gang(job, why)

        follower = Follower(
            world.user, [found], clock=world.cluster.clock,
            on_change=lines.change, on_gang=gang, on_line=lambda *_: None,
        )  # fmt: skip
        following = asyncio.create_task(follower.run())
        await world.until(lambda: "needs" in out.getvalue())
        following.cancel()
        screen.change(await seen(world))
    why = re.search(r" a: pending: (needs 1000 .+)", out.getvalue())
    assert why is not None
    assert [(view.name, view.status, cause) for _, view, _, cause in screen.rows()] == [
        ("worker-0", "waiting", why[1]),
        ("worker-1", "waiting", ""),
    ]


async def test_the_table_shows_every_task_to_the_end_and_where_it_was() -> None:
    done = [policy("TaskCompleted", "CompleteJob")]
    async with SimulatedVolcano() as world:
        await world.submit(vcjob("a", task("server", fate=runs()), task(fate=exits(0, 3), policies=done)))
        before = await seen(world)
        await world.in_phase("a", "Completed")
        found = await seen(world)
    assert job_row(before, world.cluster.clock.now())[2:4] == ["new", "0/2 running"]
    assert job_row(found, world.cluster.clock.now())[2:4] == ["succeeded", "2/2 over"]
    assert [(view.name, view.status) for view in tasks_of(found.state)] == [
        ("server-0", "stopped"),
        ("worker-0", "succeeded"),
    ]
    screen = TableDisplay(Console(file=StringIO(), width=140, height=30), logs=True)
    screen.change(found)
    screen.pod(found, "server-0", PodView("1", "node-1"))
    screen.pod(found, "worker-0", PodView("2", "node-2"))
    assert [(view.name, view.node) for _, view, _, _ in screen.rows()] == [
        ("server-0", "node-1"),
        ("worker-0", "node-2"),
    ]


async def test_describe_shows_policies_and_completion_rules() -> None:
    policies = [
        policy("PodEvicted", "RestartTask", "10s"),
        policy("PodFailed,TaskFailed", "RestartJob"),
        policy(3, "AbortJob"),
    ]
    done = [policy("TaskCompleted", "CompleteJob")]
    job = vcjob("a", task("server", fate=runs()), task(replicas=2, fate=runs(), policies=done), policies=policies)
    async with SimulatedVolcano() as world:
        await world.submit(job)
        await world.up("a", 3)
        page = await told(world)
    assert page.split("What is next:\n")[1].splitlines() == [
        "  If all tasks of worker have succeeded, the job succeeds.",
        "  If a task is evicted or its pod is deleted, all tasks of its role are restarted 10 s later.",
        "  If a task fails or containers of a role are restarted too often, the whole job is restarted.",
        "  If a task fails with code 3, the job is held until it is resumed.",
        "  2 restarts left; the next failure after that fails the job.",
        "  Once all tasks have ended, it fails if fewer than 1 task of server has succeeded or fewer than 2 tasks of "
        "worker have succeeded; it succeeds if 3 tasks have succeeded; otherwise it fails.",
    ]


async def test_describe_shows_what_happened() -> None:
    async with SimulatedVolcano() as world:
        await world.submit(vcjob("a", task(replicas=2, fate=runs()), policies=[policy("PodEvicted", "RestartTask")]))
        await world.up("a", 2)
        await world.resize("a", 3)
        await world.up("a", 3)
        await world.delete_pod("a-worker-1")
        await world.until(lambda: world.status("a").get("retryCount") == 1)
        await world.up("a", 3)
        await world.command("a", "AbortJob")
        await world.in_phase("a", "Aborted")
        page = await told(world)
    happened = page.split("What happened:\n")[1].split("\n\n")[0].splitlines()
    assert {line.split("  ")[2] for line in happened} == {
        "It was submitted.",
        "Its first task started.",
        "Scaled up to 3: worker-2 added.",
        "a is not ready: 2 of 3 tasks run or have ended.",
        "worker-1 was lost in attempt 0: PodEvicted.",
        "worker-0 to worker-2 restart, because the pod of worker-1 was deleted or evicted.",
        "a is not ready: 0 of 3 tasks run or have ended.",
        "Received command AbortJob.",
        "a is held, because a Command requested it.",
    }


async def test_a_name_taken_by_another_job_is_waited_for_and_reported() -> None:
    """Both languages call their pods by job, role and index; neither touches what the other owns."""
    taken = {
        "metadata": {"name": "a-worker-0", "namespace": NAMESPACE},
        "spec": {"containers": [{"name": "x", "image": "y"}]},
    }
    async with SimulatedVolcano() as world:
        other = await world.user.create(POD, taken, NAMESPACE)
        await world.submit(vcjob("a", task(replicas=2, fate=runs())))
        await world.until(lambda: "a-worker-1" in world.pods)
        await world.rest(60)
        page, sights = await told(world), list[tuple[str, str]]()
        follower = Follower(
            world.user, [await seen(world)], clock=world.cluster.clock,
            on_pod=lambda _, name, pod: sights.append((name, pod.why)), on_line=lambda *_: None,
        )  # fmt: skip
        following = asyncio.create_task(follower.run())
        await world.until(lambda: len(sights) >= 2)
        kept = await world.user.get(POD, "a-worker-0", NAMESPACE)
        await world.user.delete(POD, "a-worker-0", NAMESPACE)
        await world.up("a", 2)
        following.cancel()
    why = (
        "there is a pod a-worker-0 of another owner; the task waits until that pod is deleted; or rename one of the two"
    )
    assert f"worker-0  waiting, {why}" in page
    assert (uid_of(kept), "deletionTimestamp" in kept["metadata"]) == (uid_of(other), False)
    assert list(dict.fromkeys(cause for name, cause in sights if name == "worker-0")) == [why, ""]
