"""The stages for scenarios of PyTorchJobs, simulated and real: `kit.scenario` with the words of these languages."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from kit.fault_matrix import Worlds, scenario
from kit.training_jobs import CONTAINER
from kit.volcano_world import RealVolcano, SimulatedVolcano, VolcanoWorld
from shoal.dialects.kubedl import DIALECT as KUBEDL
from shoal.dialects.kubeflow import DIALECT as KUBEFLOW
from shoal.kube.kinds import POD, SERVICE
from shoal.kube.objects import Obj, labels_of
from shoal.scheduler.api.pod_groups import POD_GROUP

FINAL = ("Succeeded", "Failed")


class TrainingWorld(VolcanoWorld):
    """What a user of PyTorchJobs does and sees."""

    def conditions(self, name: str) -> list[tuple[str, str, str]]:
        found = self.status(name).get("conditions") or ()
        return [(each["type"], each["status"], each["reason"]) for each in found]

    def message(self, name: str, condition: str) -> str:
        found = self.status(name).get("conditions") or ()
        return str(next((each["message"] for each in found if each["type"] == condition), ""))

    def phase(self, name: str) -> str:
        """The last condition, as the State column shows it."""
        found = self.conditions(name)
        return found[-1][0] if found else ""

    def replica_counts(self, name: str) -> Obj:
        found = self.status(name).get("replicaStatuses") or {}
        words = ("active", "succeeded", "failed", "evicted")
        return {key: {word: each[word] for word in words if each.get(word)} for key, each in found.items()}

    def pods_of(self, name: str) -> dict[str, str]:
        return {
            pod: str((obj.get("status") or {}).get("phase") or "Pending")
            for pod, obj in sorted(self.pods.items())
            if labels_of(obj).get("shoal.dev/job-name") == name
        }

    def environment(self, pod: str, container: str = CONTAINER) -> dict[str, str]:
        found = next(each for each in self.births[pod][-1]["spec"]["containers"] if each["name"] == container)
        return {each["name"]: each.get("value", "") for each in found.get("env") or ()}

    async def resize_workers(self, name: str, size: int) -> None:
        path = "/spec/pytorchReplicaSpecs/Worker/replicas"
        await self.patch(name, {"op": "add", "path": path, "value": size})

    async def running(self, name: str, count: int) -> None:
        """So many pods run, and the job says that it does."""
        await self.until(
            lambda: self.phase(name) == "Running" and list(self.pods_of(name).values()) == ["Running"] * count
        )

    async def ended(self, name: str) -> str:
        await self.until(lambda: self.phase(name) in FINAL)
        return self.phase(name)

    def _of_job(self, name: str) -> Iterator[str]:
        """What must hold of every job after every write."""
        history = [status.get("conditions") or () for status in self.statuses[name][-2:]]
        if len(history) < 2:
            return
        before, after = ({each["type"]: each["status"] for each in found} for found in history)
        for final in FINAL:
            if before.get(final) == "True" and before != after:
                yield f"{name} was {final} and its conditions changed"

    def _of_world(self, varies: tuple[str, ...]) -> Obj:
        """Everything the operator made, without what differs from run to run."""
        return {
            # What a job went through may pass while its operator is away; how it ended may not.
            "jobs": {name: [each[0] for each in self.conditions(name) if each[0] in FINAL] for name in self.frameworks},
            "counts": {name: self.replica_counts(name) for name in sorted(self.frameworks)},
            "pods": {name: (obj.get("status") or {}).get("phase") for name, obj in sorted(self.pods.items())},
            "services": sorted(self.services),
            "groups": sorted(self.groups),
        }


class SimulatedKubedl(TrainingWorld, SimulatedVolcano):
    dialect = KUBEDL

    def settings(self, config: Obj | None) -> Any:
        return self.dialect.settings(config)


class SimulatedKubeflow(SimulatedKubedl):
    dialect = KUBEFLOW


class RealKubedl(TrainingWorld, RealVolcano):
    dialect = KUBEDL

    def settings(self, config: Obj | None) -> Mapping[str, Any]:
        return {"kubedl": self.dialect.settings(config)}


class RealKubeflow(RealKubedl):
    dialect = KUBEFLOW

    def settings(self, config: Obj | None) -> Mapping[str, Any]:
        return {"kubeflow": self.dialect.settings(config)}


KUBEDL_WORLDS = Worlds(SimulatedKubedl, RealKubedl, None, watched=(KUBEDL.kind, POD, SERVICE, POD_GROUP))
KUBEFLOW_WORLDS = Worlds(SimulatedKubeflow, RealKubeflow, None, watched=(KUBEFLOW.kind, POD, SERVICE, POD_GROUP))


def kubedl_scenario(*, real: bool = True, thorough: bool = False, outages: bool = True) -> Any:
    return scenario(real=real, worlds=KUBEDL_WORLDS, thorough=thorough, outages=outages)


def kubeflow_scenario(*, real: bool = True, thorough: bool = False, outages: bool = True) -> Any:
    return scenario(real=real, worlds=KUBEFLOW_WORLDS, thorough=thorough, outages=outages)
