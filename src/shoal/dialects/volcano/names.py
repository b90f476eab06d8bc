"""The names a Volcano Job and its objects carry: keys of labels and annotations, and how children are called."""

from __future__ import annotations

from hashlib import blake2b

from shoal.scheduler.api import pod_groups

GROUP = "batch.volcano.sh"
VERSION = "v1alpha1"
API_VERSION = f"{GROUP}/{VERSION}"

TASK_INDEX = "volcano.sh/task-index"
TASK_SPEC = "volcano.sh/task-spec"
JOB_NAME = "volcano.sh/job-name"
JOB_NAMESPACE = "volcano.sh/job-namespace"
QUEUE_LABEL = "volcano.sh/queue-name"
JOB_VERSION = "volcano.sh/job-version"
JOB_RETRY_COUNT = "volcano.sh/job-retry-count"
TEMPLATE_UID = "volcano.sh/template-uid"
GROUP_NAME = pod_groups.GROUP_NAME
NUMA_POLICY = "volcano.sh/numa-topology-policy"
PARTITION = "volcano.sh/partition-id"
PREEMPTABLE = "volcano.sh/preemptable"
COOLDOWN = "volcano.sh/cooldown-time"
REVOCABLE_ZONE = "volcano.sh/revocable-zone"
SLA_WAITING = ("volcano.sh/sla-waiting-time", "sla-waiting-time")  # the original reads both
JDB_MIN = "volcano.sh/jdb-min-available"
JDB_MAX = "volcano.sh/jdb-max-unavailable"
OUT_OF_SYNC = "volcano.sh/controller-out-of-sync"  # on a pod the controller sends away: its end is nobody's eviction

# Settings of ours that the API has no field for, on the Job.
SHRINK = "shoal.dev/shrink"  # highest (as ever) or pending-first
VICTIMS = "shoal.dev/victims"  # worker=3,1 ps=0: removed first when the task shrinks
DIGEST = "shoal.dev/setting"  # on a child: which setting it shows
RESUME_COUNTS = "shoal.dev/resume-counts"  # "true": a resume costs a retry, as it used to
STAGE = "shoal.dev/stage"  # on a PodGroup: which stage of the job it represents


def pod_name(job: str, task: str, index: int) -> str:
    return f"{job}-{task}-{index}"


def group_name(job: str, uid: str, stage: str = "") -> str:
    """One PodGroup per job; jobs with dependsOn have one per stage, the first under the usual name."""
    return f"{job}-{uid}-{stage}" if stage else f"{job}-{uid}"


def claim_name(job: str, uid: str, volume: int) -> str:
    """Twelve hex digits, unique to the claim and the same on every call."""
    return f"{job}-pvc-{blake2b(f'{uid}/{volume}'.encode(), digest_size=6).hexdigest()}"


def variable(task: str) -> str:
    """A task's name within a variable's: upper case, dashes as underscores."""
    return task.replace("-", "_").upper()
