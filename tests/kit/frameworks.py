"""Frameworks for tests: manifests built or taken from the elastic PyTorch story, and a world that runs them.

`FrameworkWorld` is the engine's little world with the dialect in it: manifests are read, every pod is dressed as it is
created, and after every pass the ledger must survive its way through the status.
"""

from __future__ import annotations

from copy import deepcopy
from typing import Any

from kit.capabilities import capability
from kit.engine_world import World
from shoal.dialects.capabilities import HistorySnapshots, RunOwner
from shoal.dialects.framework import DIALECT, FrameworkSettings, settings
from shoal.dialects.framework.crd import schema
from shoal.engine import BuildContext, Create, JobState, ObservedPod, RunOwnerRef, Step, TaskRef
from shoal.kube.objects import Obj
from shoal.kube.structural_schema import validate

UID = "c3f9e3a1-314d-4b5f-94b9-9287d15ac5d6"
ANCHOR = "da3b7866-d1b2-45be-8222-ff85ac67ef23"
DEFAULTS = settings()


def role(
    name: str = "worker",
    number: int = 1,
    failed: int = 1,
    succeeded: int = -1,
    *,
    retry: tuple[bool, int] = (False, 0),
    grace: int | None = None,
    pod: Obj | None = None,
) -> Obj:
    """A role in the notation of the scenarios: n, minFailed/minSucceeded, task retry fancy/max."""
    return {
        "name": name,
        "taskNumber": number,
        "frameworkAttemptCompletionPolicy": {"minFailedTaskCount": failed, "minSucceededTaskCount": succeeded},
        "task": {
            "retryPolicy": {"fancyRetryPolicy": retry[0], "maxRetryCount": retry[1]},
            "podGracefulDeletionTimeoutSec": grace,
            "pod": pod if pod is not None else pod_template(),
        },
    }


def pod_template(**spec: Any) -> Obj:
    return {"spec": {"restartPolicy": "Never", "containers": [{"name": "main", "image": "busybox"}], **spec}}


def framework(*roles: Obj, retry: tuple[bool, int] = (False, 0), start: str = "Start", name: str = "fw") -> Obj:
    return {
        "apiVersion": "frameworkcontroller.microsoft.com/v1",
        "kind": "Framework",
        "metadata": {"name": name, "namespace": "default", "uid": UID, "resourceVersion": "7", "generation": 1},
        "spec": {
            "description": "",
            "executionType": start,
            "retryPolicy": {"fancyRetryPolicy": retry[0], "maxRetryCount": retry[1]},
            "taskRoles": list(roles),
        },
    }


def pod_of(
    manifest: Obj,
    role_name: str,
    index: int,
    *,
    run: int = 0,
    attempt: int = 0,
    instance: str = "task-uid",
    role_instance: str = "role-uid",
) -> Obj:
    """The pod the dialect makes for a task."""
    create = Create(
        TaskRef(role_name, index),
        BuildContext(run=run, run_owner=ANCHOR),
        attempt=attempt,
        instance=instance,
        role_instance=role_instance,
    )
    return DIALECT.build_pod(manifest, create)


def stamped(pod: Obj, uid: str = "pod-uid", **status: Any) -> Obj:
    """A pod as the API server gives it back."""
    made = deepcopy(pod)
    made["metadata"]["uid"] = uid
    made["status"] = {"phase": "Pending", **status}
    return made


def failed(**status: Any) -> dict[str, Any]:
    return {"phase": "Failed", **status}


def ended(name: str = "main", code: int = 0, **more: Any) -> Obj:
    """A container status."""
    return {"name": name, "state": {"terminated": {"exitCode": code, "finishedAt": "2026-11-16T04:00:00Z", **more}}}


class FrameworkWorld(World):
    """The engine's world around a manifest."""

    def __init__(self, manifest: Obj, config: FrameworkSettings = DEFAULTS) -> None:
        self.manifest = manifest
        self.config = config
        self.told: list[Any] = []  # snapshots, in the order they were told
        super().__init__(DIALECT.to_job(manifest, config))

    def submit(self, **spec: Any) -> None:
        """The manifest with these parts of its spec changed."""
        self.manifest = {**self.manifest, "spec": {**self.manifest["spec"], **spec}}
        self.job = DIALECT.to_job(self.manifest, self.config)

    def step(self, *, crash_after: int | None = None) -> Step:
        before = self.state
        step = super().step(crash_after=crash_after)
        for notice in step.notices:
            self.told.append(
                capability(DIALECT, HistorySnapshots).snapshot(self.manifest, before, notice, self.config, self.now)
            )
        assert self.remembered(step.state) == step.state
        return step

    def remembered(self, state: JobState) -> JobState:
        """The ledger after it was stored and read again; what is stored is what the definition allows."""
        self.manifest = {**self.manifest, "status": self.stored(state)}
        assert validate(schema(), self.manifest) == []
        return DIALECT.load_state(self.manifest)

    def stored(self, state: JobState) -> Obj:
        (operation,) = DIALECT.save_state(self.job, state, self.config).operations
        status: Obj = operation["value"]
        return status

    @property
    def status(self) -> Obj:
        return self.stored(self.state)

    def _pod(self, name: str, uid: str, target: TaskRef, write: Create) -> ObservedPod:
        body = DIALECT.observe_pod(stamped(DIALECT.build_pod(self.manifest, write), uid), self.manifest)
        assert body is not None
        made = super()._pod(name, uid, target, write)
        assert (body.role, body.index, body.run, body.attempt) == (made.role, made.index, made.run, made.attempt)
        return made

    def _create(self, write: Create) -> None:
        if isinstance(write.target, RunOwnerRef):
            capability(DIALECT, RunOwner).build(self.manifest, write)
        super()._create(write)


def running(manifest: Obj, config: FrameworkSettings = DEFAULTS) -> FrameworkWorld:
    """A world in which every task of the Framework runs."""
    world = FrameworkWorld(manifest, config)
    world.settle()
    world.run()
    world.settle()
    return world


def task_states(status: Obj) -> dict[str, str]:
    """Every task as `state id code`, with the name of its pod; a mark where it is scaled away."""
    told = {}
    for each in status["attemptStatus"]["taskRoleStatuses"]:
        for task in each["taskStatuses"]:
            attempt = task["attemptStatus"]
            code = "" if attempt["completionStatus"] is None else f" {attempt['completionStatus']['code']}"
            mark = " deletionPending" if task["deletionPending"] else ""
            told[attempt["podName"]] = f"{task['state']} {attempt['id']}{code}{mark}"
    return told


# --- the elastic PyTorch story ---------------------------------------------------------------------------------------

_ETCD = " ".join(
    [
        "/usr/local/bin/etcd",
        "--data-dir /var/lib/etcd --enable-v2",
        "--listen-client-urls http://0.0.0.0:2379",
        "--advertise-client-urls http://0.0.0.0:2379",
        "--initial-cluster-state new",
    ]
)
_LAUNCH = " ".join(
    [
        "python -m torchelastic.distributed.launch",
        "--rdzv_backend=etcd",
        "--rdzv_endpoint=${FC_FRAMEWORK_NAME}-etcd:2379",
        "--rdzv_id=${FC_FRAMEWORK_NAME}",
        "--nnodes=1:4",
        "--nproc_per_node=1",
        "/workspace/examples/imagenet/main.py",
        "--arch=resnet18 --batch-size=32 --epochs=2",
        "/workspace/data/tiny-imagenet-200",
    ]
)


def pet() -> Obj:
    """The Framework of the story: etcd and four elastic workers."""
    etcd = {
        "restartPolicy": "Always",
        "containers": [
            {
                "name": "etcd",
                "image": "quay.io/coreos/etcd:v3.4.9",
                "command": ["sh", "-c", _ETCD],
                "ports": [{"containerPort": 2379}],
            }
        ],
    }
    worker = {
        "hostname": "{{FC_TASKROLE_NAME}}-{{FC_TASK_INDEX}}",
        "subdomain": "{{FC_FRAMEWORK_NAME}}-{{FC_TASKROLE_NAME}}",
        "restartPolicy": "Never",
        "containers": [
            {
                "name": "pytorch",
                "image": "torchelastic/examples:0.2.0",
                "command": ["sh", "-c", _LAUNCH],
                "resources": {"limits": {"nvidia.com/gpu": 1}},
                "volumeMounts": [{"name": "shm-volume", "mountPath": "/dev/shm"}],
            }
        ],
        "volumes": [{"name": "shm-volume", "emptyDir": {"medium": "Memory"}}],
    }
    return framework(
        role("etcd", 1, 1, -1, retry=(False, -2), grace=1800, pod={"spec": etcd}),
        role("worker", 4, 1, 4, retry=(True, 2), grace=1800, pod={"spec": worker}),
        retry=(True, 2),
        name="pet",
    )
