"""Why a job ended, as `run`, `wait` and `describe` tell it; the raw diagnostics stay in the status."""

from __future__ import annotations

import pytest

from kit.framework_notation import fw, role
from kit.pod_behavior import runs
from kit.scenario import FRAMEWORK, NAMESPACE, SimulatedWorld
from shoal.cli.describe_page import headline
from shoal.cli.job_actions import stop
from shoal.cli.job_lookup import FoundJob
from shoal.cli.job_table import exit_code_of, job_status
from shoal.cli.reasons import last_message_lines, why_ended
from shoal.dialects.framework import DIALECT
from shoal.engine import (
    AttemptState,
    ContainerEnd,
    Detail,
    FailureClass,
    JobState,
    Outcome,
    RoleState,
    Run,
    Stage,
    TaskState,
    Trigger,
)

JARGON = 'Pod failed: PodPattern unmatched: {"containers":[...]}'


def failed(detail: Detail | None, *, code: int = 7, text: str = JARGON, phrase: str = "Unrecognized") -> JobState:
    """A job that ended because worker-1 did."""
    end = Outcome(FailureClass.UNKNOWN, code, phrase, text, detail=detail)
    task = TaskState(1, stage=Stage.DONE, attempt=AttemptState(outcome=end))
    run = Run(stage=Stage.DONE, outcome=end.because_of(Trigger("worker", 1, "FailedTaskCount 1 has reached 1")))
    return JobState(run=run, roles=(RoleState("worker", tasks=(TaskState(0), task)),))


@pytest.mark.parametrize(
    ("state", "sentence"),
    [
        pytest.param(
            failed(Detail(containers=(ContainerEnd("main", 7, "Error"),))), "worker-1 ended with code 7", id="a code"
        ),
        pytest.param(
            failed(Detail(containers=(ContainerEnd("main", 137, "OOMKilled", signal=9),))),
            "worker-1 was ended by signal 9 (OOMKilled)",
            id="a signal with a reason",
        ),
        pytest.param(
            failed(Detail(containers=(ContainerEnd("side", 0), ContainerEnd("main", 7, "Error")))),
            "main of worker-1 ended with code 7",
            id="one of several containers",
        ),
        pytest.param(
            failed(Detail("Evicted", "The node was low on memory.")),
            "worker-1 failed: Evicted, The node was low on memory",
            id="the pod's own reason",
        ),
        pytest.param(
            failed(None, code=-200, phrase="PodCreationPermanentError", text="Failed to create Pod: no image"),
            "worker-1 failed with code -200: Failed to create Pod: no image (PodCreationPermanentError)",
            id="no pod at all",
        ),
    ],
)
def test_a_failure_names_the_task_and_its_end(state: JobState, sentence: str) -> None:
    assert state.run.outcome is not None
    assert why_ended(state, state.run.outcome) == sentence


def test_the_last_lines_of_the_message_are_kept() -> None:
    said = "\n".join(f"line {number}" for number in range(9)) + "\n\n"
    state = failed(Detail(containers=(ContainerEnd("main", 7, "Error", said),)))
    assert state.run.outcome is not None
    assert last_message_lines(state, state.run.outcome) == [f"line {number}" for number in range(4, 9)]


async def test_a_stopped_job_has_the_status_stopped() -> None:
    async with SimulatedWorld(0) as world:
        await world.submit(fw("job", role("worker", fate=runs())))
        await world.running("job", 1)
        await stop(world.user, FoundJob(await world.user.get(FRAMEWORK, "job", NAMESPACE), DIALECT))
        await world.completed("job")
        job = FoundJob(await world.user.get(FRAMEWORK, "job", NAMESPACE), DIALECT)
        told = headline(job, job.state, world.cluster.clock.now())
    assert (job_status(job.state), exit_code_of(job.state)) == ("stopped", 1)
    assert told.startswith("Framework job in namespace default (worker x 1) was stopped after ")
