"""A job's stored state may have been written by a user of the job: reading it costs bounded memory."""

from __future__ import annotations

import base64
import json
import resource
import subprocess
import sys
import zlib
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import pytest

from kit.capabilities import capability
from kit.frameworks import framework, role
from kit.native_world import replica_set
from kit.volcano_jobs import task, vcjob
from shoal.cli.job_lookup import FoundJob
from shoal.cli.job_table import job_row
from shoal.dialects.capabilities import StatusProgress
from shoal.dialects.dialect import Dialect
from shoal.dialects.framework import DIALECT as FRAMEWORK
from shoal.dialects.native import batch_job, replica_sets
from shoal.dialects.native.pod_builder import SLOT
from shoal.dialects.state_annotation import ANNOTATION
from shoal.dialects.volcano import DIALECT as VOLCANO
from shoal.engine import Stage
from shoal.kube.objects import Obj

MEMORY_BYTES = 512 * 1024 * 1024  # the chart's limit for the operator
NO_ZONE = "2030-01-01T00:00:00"


def volcano(**state: Any) -> Obj:
    made = VOLCANO.default(vcjob("a", task(replicas=2)))
    text = json.dumps({"uid": "u", **state})
    made["metadata"] |= {"uid": "u", "namespace": "default", "annotations": {ANNOTATION: text}}
    return made


def framework_with(role_status: Obj, **status: Any) -> Obj:
    made = FRAMEWORK.default(framework(role("worker", 2)))
    made["metadata"] |= {"uid": "u", "namespace": "default"}
    attempt = {"taskRoleStatuses": [{"name": "worker", **role_status}]}
    started = {"startTime": "2030-01-01T00:00:00Z", "state": "AttemptRunning", "attemptStatus": attempt}
    made["status"] = started | status
    return made


def packed(item: bytes, count: int = 1, *, cut: int = 0) -> Obj:
    """A Framework whose compressed status is a list of that."""
    made = framework(role("worker", 1))
    squeezer, block = zlib.compressobj(wbits=31), (item + b",") * min(count, 100_000)
    parts = [squeezer.compress(b"["), *(squeezer.compress(block) for _ in range(count // 100_000))]
    squeezed = base64.b64encode(b"".join([*parts, squeezer.compress(item + b"]"), squeezer.flush()])[: -cut or None])
    started = {"startTime": "2030-01-01T00:00:00Z", "state": "AttemptRunning"}
    made["status"] = started | {"attemptStatus": {"taskRoleStatusesCompressed": squeezed.decode()}}
    return made


STATES = {
    "a range of 9,000,000": lambda: volcano(roles=[{"name": "worker", "born": "0-9000000"}]),
    "a range of 10^100": lambda: volcano(roles=[{"name": "worker", "dropped": f"0-1{'0' * 100}"}]),
    "2,000 ranges of 10,000": lambda: volcano(roles=[{"name": f"r{i}", "born": "0-9999"} for i in range(2_000)]),
    "a negative range before a large one": lambda: volcano(roles=[{"name": "worker", "born": "9000000-0,0-9000000"}]),
    "many settled pods with few uids": lambda: volcano(
        leaving=[{"role": "worker", "reason": "retry", "where": "0-9000000", "uids": ""}]
    ),
    "a text of 2 MB": lambda: volcano(memo="x" * 2_000_000),
    "a time without a zone": lambda: volcano(stamps={"started": NO_ZONE}),
    "a later retry without a zone": lambda: volcano(roles=[{"name": "worker", "later": {NO_ZONE: "0"}}]),
    "a pause of 10^18 seconds": lambda: volcano(run={"delay_seconds": 10**18}),
    "a grace period of 10^18 seconds": lambda: volcano(roles=[{"name": "worker", "force": 10**18}]),
    "a pause of 10^18 seconds in a status": lambda: framework_with({}, retryPolicyStatus={"retryDelaySec": 10**18}),
    "a grace period of 10^18 seconds in a status": lambda: framework_with({"podGracefulDeletionTimeoutSec": 10**18}),
    "a status of 40,000 tasks": lambda: framework_with({"taskStatuses": [{"index": i} for i in range(40_000)]}),
    "gzip of 390,000 tasks": lambda: packed(b'{"name":"a","taskStatuses":[%s]}' % b",".join([b"{}"] * 390_000)),
    "gzip of 600 MB": lambda: packed(b"0", 300_000_000),
    "gzip of empty lists": lambda: packed(b"[]", 10_000_000),
    "gzip of empty objects": lambda: packed(b"{}", 10_000_000),
    "gzip of short texts": lambda: packed(b'"a"', 7_000_000),
    "gzip of numbers": lambda: packed(b"0.5", 7_000_000),
    "gzip of a deep list": lambda: packed(b"[" * 100_000 + b"]" * 100_000),
    "gzip cut short": lambda: packed(b"{}", 10, cut=12),
}


@pytest.mark.parametrize("name", STATES)
def test_02_a_forged_state_is_refused_before_it_is_unfolded(name: str):
    manifest = STATES[name]()
    dialect: Dialect = FRAMEWORK if "taskRoles" in manifest["spec"] else VOLCANO

    assert read_with_little_memory(manifest) == "LedgerUnreadable"
    assert "unreadable" in job_row(FoundJob(manifest, dialect), datetime.now(UTC))


def test_02_the_state_of_another_job_is_not_unfolded():
    manifest = volcano(roles=[{"name": "worker", "born": "0-9000000"}])
    manifest["metadata"]["uid"] = "another"

    assert VOLCANO.load_state(manifest).roles == ()


@pytest.mark.parametrize(("dialect", "counts"), [(replica_sets.DIALECT, "replicas"), (batch_job.DIALECT, "active")])
def test_02_forged_counts_of_a_status_are_shown_within_limits(dialect: Dialect, counts: str):
    made = {"metadata": {"name": "a", "namespace": "default", "uid": "u"}, "spec": {}, "status": {counts: 2**31 - 1}}

    assert len(capability(dialect, StatusProgress).status_state(made).roles[0].tasks) == 10_000


def test_02_a_forged_count_of_successes_is_shown_within_limits():
    text = json.dumps({"uid": "u", "roles": [{"name": "pod", "counts": [2**31 - 1, 0]}]})
    meta = {"name": "a", "namespace": "default", "uid": "u", "annotations": {ANNOTATION: text}}

    assert (
        len(capability(batch_job.DIALECT, StatusProgress).status_state({"metadata": meta, "spec": {}}).roles[0].tasks)
        == 10_000
    )


LARGE = 10**17
STARTED = {"stamps": {"started": "2030-01-01T00:00:00Z"}, "run": {"stage": Stage.RUNNING}}


def with_state(dialect: Dialect, made: Obj, **state: Any) -> Obj:
    filled = dialect.default(made)
    text = json.dumps({"uid": "u", **STARTED, **state})
    filled["metadata"] |= {"uid": "u", "namespace": "default", "annotations": {ANNOTATION: text}}
    return filled


def pod_with_index() -> Obj:
    owner = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "a", "uid": "u", "controller": True}
    meta = {"name": "a-1", "namespace": "default", "uid": "p", "annotations": {SLOT: str(LARGE)}}
    return {"metadata": {**meta, "ownerReferences": [owner]}, "spec": {}, "status": {"phase": "Running"}}


LARGE_INDEXES: dict[str, Callable[[], tuple[Obj, list[Obj]]]] = {
    "a Volcano task that had a pod": lambda: (
        with_state(VOLCANO, vcjob("a", task("worker", 2)), roles=[{"name": "worker", "born": str(LARGE)}]),
        [],
    ),
    "a Volcano task that was dropped": lambda: (
        with_state(VOLCANO, vcjob("a", task("worker", 2)), roles=[{"name": "worker", "dropped": str(LARGE)}]),
        [],
    ),
    "a pod of a ReplicaSet": lambda: (
        with_state(replica_sets.DIALECT, replica_set("a", 2)),
        [pod_with_index()],
    ),
    "a task of a Framework": lambda: (
        framework_with({"taskStatuses": [{"index": LARGE, "state": "AttemptRunning"}]}),
        [],
    ),
}


@pytest.mark.parametrize("name", LARGE_INDEXES)
def test_02_one_index_of_any_size_costs_little(name: str):
    manifest, pods = LARGE_INDEXES[name]()

    assert with_little_memory(_PASS, {"manifest": manifest, "pods": pods}) == "2 tasks"


def read_with_little_memory(manifest: Obj) -> str:
    """What reading that state comes to in a process whose memory is limited."""
    return with_little_memory(_READER, manifest)


def with_little_memory(program: str, given: Obj) -> str:
    def limit() -> None:
        resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES, MEMORY_BYTES))

    asked = subprocess.run(
        [sys.executable, "-c", program], input=json.dumps(given), capture_output=True, text=True, preexec_fn=limit
    )
    return asked.stdout.strip() or asked.stderr[-500:]


_READER = """
import json, sys
from shoal.dialects.dialect import StateUnreadable
from shoal.dialects.framework import DIALECT as FRAMEWORK
from shoal.dialects.volcano import DIALECT as VOLCANO
manifest = json.load(sys.stdin)
dialect = FRAMEWORK if "taskRoles" in manifest["spec"] else VOLCANO
try:
    dialect.load_state(manifest)
    print("read")
except StateUnreadable:
    print("LedgerUnreadable")
"""

_PASS = """
import json, sys
from datetime import UTC, datetime
from shoal.dialects.framework import DIALECT as FRAMEWORK
from shoal.dialects.native import replica_sets
from shoal.dialects.volcano import DIALECT as VOLCANO
from shoal.engine import Observed, advance
given = json.load(sys.stdin)
manifest, pods = given["manifest"], given["pods"]
dialects = {"taskRoles": FRAMEWORK, "tasks": VOLCANO, "selector": replica_sets.DIALECT}
(dialect,) = [each for key, each in dialects.items() if key in manifest["spec"]]
job = dialect.to_job(manifest, dialect.settings(None))
observed = Observed(tuple(dialect.observe_pod(pod, manifest) for pod in pods))
step = advance(job, dialect.load_state(manifest), observed, datetime(2030, 1, 1, 0, 1, tzinfo=UTC))
print(sum(not task.dropped for role in step.state.roles for task in role.tasks), "tasks")
"""
