"""A command that could not be started: the reason is ContainerCannotRun with Docker, StartError with containerd and on
Shoal's own nodes. Both get the codes that FrameworkController defines for it."""

from __future__ import annotations

import pytest

from kit.frameworks import ended, failed, framework, pod_of, role, stamped
from shoal.dialects.framework import DIALECT, settings
from shoal.engine.failure_classification import classify

MANIFEST = framework(role())


@pytest.mark.parametrize("reason", ["ContainerCannotRun", "StartError"])
@pytest.mark.parametrize(
    ("exit_code", "message", "code"),
    [
        pytest.param(125, "", -1201, id="not created"),
        pytest.param(126, "", -1202, id="not permitted"),
        pytest.param(127, "", -1203, id="not found"),
        pytest.param(128, 'exec: "trian": executable file not found in $PATH: unknown', -1203, id="not found by runc"),
        pytest.param(128, "working folder /x: Permission denied", -1204, id="not prepared"),
    ],
)
def test_18_a_start_error_has_its_code(reason: str, exit_code: int, message: str, code: int):
    job = DIALECT.to_job(MANIFEST, settings())
    statuses = [ended(code=exit_code, reason=reason, message=message)]
    pod = DIALECT.observe_pod(stamped(pod_of(MANIFEST, "worker", 0), **failed(containerStatuses=statuses)), MANIFEST)
    assert job is not None
    assert pod is not None
    assert classify(job.policies.classify, job.policies.pod_end, pod).code == code
