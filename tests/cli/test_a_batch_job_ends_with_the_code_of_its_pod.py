"""Jobs of batch/v1 that fail: the exit code is that of the pod that failed last, where it is known, and else 1."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from kit.native_world import SimulatedJobs, job
from kit.pod_behavior import exits, runs
from kit.scenario import NAMESPACE
from shoal.cli.job_lookup import FoundJob
from shoal.cli.job_table import JOB_COLUMNS, exit_code_of, job_row
from shoal.cli.reasons import why_ended
from shoal.dialects.native.batch_job import DIALECT
from shoal.kube.kinds import JOB
from shoal.kube.objects import Obj, name_of

INDEXED = {"completionMode": "Indexed", "completions": 3, "parallelism": 1}
INDEXED_AT_ONCE = {**INDEXED, "parallelism": 3}
POLICY = {"rules": [{"action": "FailJob", "onExitCodes": {"operator": "In", "values": [9]}}]}
OUT_OF_PATIENCE = "Job has reached the specified backoff limit (BackoffLimitExceeded)"


async def ended(world: SimulatedJobs, name: str = "a") -> tuple[int, str]:
    """The exit code, which the table shows too, and the sentence beside it."""
    await world.ended(name)
    found = FoundJob(await world.user.get(JOB, name, NAMESPACE), DIALECT)
    code, outcome = exit_code_of(found.state), found.state.run.outcome
    assert outcome is not None
    assert job_row(found, world.cluster.clock.now())[JOB_COLUMNS.index("CODE")] == str(code)
    return code, why_ended(found.state, outcome)


@pytest.mark.parametrize(
    ("manifest", "code", "why"),
    [
        pytest.param(
            job("a", exits(9), backoffLimit=0), 9, f"pod-0 failed with code 9: {OUT_OF_PATIENCE}", id="no retry"
        ),
        pytest.param(
            job("a", exits(9), backoffLimit=2), 9, f"pod-0 failed with code 9: {OUT_OF_PATIENCE}", id="no retry left"
        ),
        pytest.param(
            job("a", of={0: exits(0), 1: exits(9, after=5)}, completions=2, parallelism=2, backoffLimit=0),
            9, f"pod-1 failed with code 9: {OUT_OF_PATIENCE}", id="after a success",
        ),
        pytest.param(
            job("a", of={1: exits(9)}, backoffLimit=0, **INDEXED), 9, "pod-1 ended with code 9", id="by index"
        ),
        pytest.param(
            job("a", of={0: exits(3), 1: exits(9)}, backoffLimitPerIndex=0, **INDEXED),
            9, "pod-1 ended with code 9", id="the last of several indexes",
        ),
        pytest.param(
            job("a", of={0: exits(3), 1: exits(9)}, backoffLimitPerIndex=0, maxFailedIndexes=1, **INDEXED),
            9, "pod-1 ended with code 9", id="too many indexes",
        ),
        pytest.param(
            job("a", exits(9), podFailurePolicy=POLICY), 9,
            "pod-0 failed with code 9: A pod failed in a way that fails the job (PodFailurePolicy)", id="by a rule",
        ),
        pytest.param(
            job("a", runs(), activeDeadlineSeconds=20), 1,
            "Job was active longer than specified deadline (DeadlineExceeded)", id="nobody failed",
        ),
    ],
)  # fmt: skip
async def test_the_code_is_that_of_the_pod_that_failed_last(manifest: Obj, code: int, why: str) -> None:
    async with SimulatedJobs(0) as world:
        await world.submit(manifest)
        assert await ended(world) == (code, why)


async def test_a_pod_without_an_exit_code_is_reported_without_one() -> None:
    async with SimulatedJobs(0) as world:
        await world.submit(job("a", runs(), backoffLimit=0))
        await world.ready("a", 1)
        (pod,) = world.living("a")
        await world.delete_pod(name_of(pod))
        assert await ended(world) == (1, f"pod-0 failed: {OUT_OF_PATIENCE}")


@pytest.mark.processes
@pytest.mark.parametrize("policy", ["Never", "OnFailure"])
def test_run_ends_with_it_too(tmp_path: Path, policy: str) -> None:
    """Also where the container is restarted in place and its pod never fails."""
    manifest = {"apiVersion": "batch/v1", "kind": "Job", **job("a", backoffLimit=0)}
    manifest["spec"]["template"]["spec"] |= {"restartPolicy": policy}
    manifest["spec"]["template"]["spec"]["containers"][0]["command"] = ["sh", "-c", "exit 4"]
    (tmp_path / "job.yaml").write_text(yaml.safe_dump(manifest))
    command = [sys.executable, "-m", "shoal", "run", str(tmp_path / "job.yaml"), "--plain"]
    ran = subprocess.run(command, capture_output=True, text=True, check=False)
    assert ran.returncode == 4, ran.stderr
    assert ran.stderr.endswith(f": pod-0 failed with code 4: {OUT_OF_PATIENCE}.\n")


async def test_an_operator_that_was_restarted_knows_who_failed_last() -> None:
    async with SimulatedJobs(0) as world:
        await world.submit(job("a", of={0: exits(9, after=60), 1: exits(3)}, backoffLimitPerIndex=0, **INDEXED_AT_ONCE))
        await world.until(lambda: world.counts("a").get("failedIndexes") == "1")
        await world.restart_operator()
        assert await ended(world) == (9, "pod-0 ended with code 9")
