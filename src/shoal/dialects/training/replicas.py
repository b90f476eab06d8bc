"""The roles of a training job: a number of equal pods each, with a template and a restart policy."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Annotated, Literal

from pydantic import Field

from shoal.dialects.indexed_dialect import PodTemplate
from shoal.dialects.job_limits import LARGEST_JOB
from shoal.dialects.training.container_edits import port_of
from shoal.dialects.training.run_policy import RunLimits
from shoal.dialects.validation_errors import Model
from shoal.kube.objects import Obj, name_of

MASTER, WORKER = "master", "worker"
PORT_NAME, PORT = "pytorchjob-port", 23456  # on which the replicas meet

RestartPolicy = Literal["Always", "OnFailure", "Never", "ExitCode"]
Count = Annotated[int, Field(ge=0, le=LARGEST_JOB)]


class ReplicaSpec(Model):
    """One role as manifests write it. Defaults are not part of the model: a stored object keeps its spelling."""

    replicas: Annotated[Count | None, Field(description="How many pods the role has; 1 by default")] = None
    restart_policy: Annotated[
        RestartPolicy | None,
        Field(description="When a pod that ended is started again; ExitCode decides by the code of its container"),
    ] = None
    template: Annotated[PodTemplate, Field(description="The pods of the role")]


@dataclass(frozen=True, slots=True)
class Replicas:
    """One role, with its defaults."""

    key: str  # as the status calls it: Master, Worker
    written_key: str  # as the manifest does
    size: int
    restart_policy: RestartPolicy
    template: Obj
    minimum: int | None = None  # of an elastic role
    maximum: int | None = None

    @property
    def role(self) -> str:
        """As the engine, pod names and labels call it."""
        return self.key.lower()


@dataclass(frozen=True, slots=True)
class Scheduling:
    """What a job asks of the gang scheduler."""

    min_available: int | None = None
    queue: str = ""
    priority_class: str = ""
    min_resources: Obj | None = None
    timeout_seconds: int | None = None


@dataclass(frozen=True, slots=True)
class TrainingSpec:
    """A training job, whichever language it was written in."""

    replicas: tuple[Replicas, ...]  # in the order in which they start
    is_elastic: bool = False
    limits: RunLimits = field(default_factory=RunLimits)
    scheduling: Scheduling = field(default_factory=Scheduling)
    is_suspended: bool = False

    def find(self, role: str) -> Replicas | None:
        return next((each for each in self.replicas if each.role == role), None)

    def port(self, role: str, container: str) -> int:
        """On which the replicas of a role meet: what its training container calls so, or the usual one."""
        found = self.find(role)
        return port_of((found.template.get("spec") or {}) if found else {}, container, PORT_NAME, PORT)

    @property
    def minimum(self) -> int:
        """Pods needed at once."""
        return sum(each.size if each.minimum is None else each.minimum for each in self.replicas)


def replica_name(manifest: Obj, role: str, index: int) -> str:
    """Of a pod, and of its Service."""
    return f"{name_of(manifest)}-{role}-{index}"
