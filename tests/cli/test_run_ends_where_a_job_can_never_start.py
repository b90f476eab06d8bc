"""`shoal run` of a job that all its nodes together would not hold: it says so, stops the job, and ends with 1.

A job of which only a part can never start goes on as long as another part has a place.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest
import yaml

from kit.framework_notation import fw, role
from kit.pod_behavior import runs
from kit.shoal_command import begun, shoal
from kit.volcano_jobs import policy, task, vcjob
from shoal.kube.objects import Obj

pytestmark = pytest.mark.processes

THING = "example.com/thing"
CLUSTER = ("--plain", "--nodes", "2", "--capacity", f"{THING}=2")
WAY_OUT = (
    "A cluster of `shoal run` gets its nodes and resources at its start: repeat the command with --nodes or "
    "--capacity, or let the job request less."
)


def asking(container: Obj, things: int, script: str = "echo here") -> None:
    amounts = {THING: str(things)}
    container |= {"command": ["sh", "-c", script], "resources": {"requests": amounts, "limits": amounts}}


def gang(name: str, *, replicas: int, least: int, things: int) -> Obj:
    worker = task(replicas=replicas, fate=runs())
    asking(worker["template"]["spec"]["containers"][0], things)
    return vcjob(name, worker, minAvailable=least)


def framework(name: str, *, things: int) -> Obj:
    job = fw(name, role("worker", 1, 1, 1, fate=runs()))
    asking(job["spec"]["taskRoles"][0]["task"]["pod"]["spec"]["containers"][0], things)
    return job


def pair(pipe: Path, *, needs_both: bool) -> Obj:
    """A task that fits and runs until the pipe is written to, and one that no node could hold."""
    small = role("small", 1, 1, -1 if needs_both else 1, fate=runs())
    job = fw("pair", small, role("extra", 1, 1, -1, fate=runs()))
    for each, things in zip(job["spec"]["taskRoles"], (1, 3), strict=True):
        asking(each["task"]["pod"]["spec"]["containers"][0], things, f"read word < {pipe}; echo $word")
    return job


def stored(folder: Path, *jobs: Obj) -> str:
    file = folder / "job.yaml"
    file.write_text(yaml.safe_dump_all(jobs))
    return str(file)


NEVER = {
    "a gang that is not let in": (
        gang("big", replicas=3, least=3, things=2),
        f"Job big can never start here and is stopped: needs 6 {THING}, "
        "and admitted groups may request 4 in this cluster, so request less or add nodes.",
    ),
    "a task no node could hold": (
        framework("big", things=3),
        f"Framework big can never start here and is stopped: needs 3 {THING}, the most free is 2 of 2 on node ",
    ),
}


@pytest.mark.parametrize("case", NEVER)
async def test_a_job_no_node_could_hold_is_stopped_with_the_way_out(tmp_path: Path, case: str) -> None:
    job, sentence = NEVER[case]
    ended = await shoal("run", stored(tmp_path, job), *CLUSTER)
    notes = [line for line in ended.err.splitlines() if line.startswith(sentence) and line.endswith(WAY_OUT)]
    assert (ended.code, len(notes), " big: stopped" in ended.err) == (1, 1, True), ended.err


async def test_jobs_beside_it_go_on_and_a_minimum_that_fits_is_enough(tmp_path: Path) -> None:
    elastic = gang("elastic", replicas=3, least=1, things=2)
    ended = await shoal("run", stored(tmp_path, gang("big", replicas=3, least=3, things=2), elastic), *CLUSTER)
    ends = sorted(
        line.split(" ", 1)[1] for line in ended.err.splitlines() if line.endswith((": stopped", ": succeeded"))
    )
    assert (ended.code, [end for end in ends if "worker" not in end]) == (1, ["big: stopped", "elastic: succeeded"]), (
        ended.err
    )


ONE_PART = f"Framework pair continues, but extra-0 can never start here: needs 3 {THING}, the most free is "
NOTHING_LEFT = "What is left of Framework pair is stopped: no other task of it can start any more."


@pytest.mark.parametrize(
    ("needs_both", "code", "end", "notes"),
    [
        pytest.param(False, 0, "succeeded", [ONE_PART], id="the part that runs is enough"),
        pytest.param(True, 1, "stopped", [ONE_PART, NOTHING_LEFT], id="the rest can never start"),
    ],
)
async def test_a_job_goes_on_as_long_as_a_part_of_it_has_a_place(
    tmp_path: Path, needs_both: bool, code: int, end: str, notes: list[str]
) -> None:
    pipe = tmp_path / "go"
    os.mkfifo(pipe)
    writing = os.open(pipe, os.O_RDWR)  # which waits for no reader
    process = await begun("run", stored(tmp_path, pair(pipe, needs_both=needs_both)), *CLUSTER)
    assert process.stderr is not None
    assert process.stdout is not None
    lines: list[str] = []
    async for line in process.stderr:
        lines.append(line.decode().rstrip())
        if lines[-1].startswith(ONE_PART):
            os.write(writing, b"done\n")
    os.close(writing)
    lines += (await process.stdout.read()).decode().splitlines()
    said = [line for line in lines if line.endswith(WAY_OUT) or line == NOTHING_LEFT]
    wanted = [line for line, note in zip(said, notes, strict=False) if line.startswith(note)]
    found = await process.wait(), said, f" pair: {end}" in "\n".join(lines), "small-0 | done" in lines
    assert (found, len(said)) == ((code, wanted, True, True), len(notes)), lines


async def test_a_stage_that_can_never_start_does_not_spoil_the_end_of_the_one_before(tmp_path: Path) -> None:
    """What has ended may have ended the job: that is seen in the job a moment later than in its pods."""
    master = task("master", fate=runs(), policies=[policy("TaskCompleted", "CompleteJob")])
    worker = task("worker", fate=runs(), dependsOn={"name": ["master"]})
    for each, things in ((master, 1), (worker, 3)):
        asking(each["template"]["spec"]["containers"][0], things)
    ended = await shoal("run", stored(tmp_path, vcjob("staged", master, worker)), *CLUSTER)
    assert (ended.code, " staged: succeeded" in ended.err, " is stopped: " in ended.err) == (0, True, False), ended.err
