"""`shoal run` of a job that all its nodes together would not hold: it says so, stops the job, and ends with 1."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from kit.fates import runs
from kit.frameworks_of_scenarios import fw, role
from kit.shoal_command import shoal
from kit.volcano_jobs import task, vcjob
from shoal.kube.objects import Obj

pytestmark = pytest.mark.processes

THING = "example.com/thing"
CLUSTER = ("--plain", "--nodes", "2", "--capacity", f"{THING}=2")
WAY_OUT = (
    "Nobody can add nodes to the cluster of `shoal run`: let the job ask for less, or give the cluster more with "
    "--capacity or --nodes."
)


def asking(container: Obj, things: int) -> None:
    amounts = {THING: str(things)}
    container |= {"command": ["sh", "-c", "echo here"], "resources": {"requests": amounts, "limits": amounts}}


def gang(name: str, *, replicas: int, least: int, things: int) -> Obj:
    worker = task(replicas=replicas, fate=runs())
    asking(worker["template"]["spec"]["containers"][0], things)
    return vcjob(name, worker, minAvailable=least)


def framework(name: str, *, things: int) -> Obj:
    job = fw(name, role("worker", 1, 1, 1, fate=runs()))
    asking(job["spec"]["taskRoles"][0]["task"]["pod"]["spec"]["containers"][0], things)
    return job


def stored(folder: Path, *jobs: Obj) -> str:
    file = folder / "job.yaml"
    file.write_text(yaml.safe_dump_all(jobs))
    return str(file)


NEVER = {
    "a gang that is not let in": (
        gang("big", replicas=3, least=3, things=2),
        f"Job big can never start here, and is stopped: needs 6 {THING}, and the cluster lets in 4 at once, "
        "so make it smaller or add nodes.",
    ),
    "a task no node could hold": (
        framework("big", things=3),
        f"Framework big can never start here, and is stopped: needs 3 {THING}, the most free is 2 of 2 on node ",
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
