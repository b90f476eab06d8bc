"""The stages for scenarios of ReplicaSets and batch Jobs: `kit.scenario` with the words of these languages.

Their pods have names that chance draws, so a picture counts pods instead of naming them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any

from kit.embedded_world import RealWorld
from kit.fault_matrix import Worlds
from kit.fault_matrix import scenario as any_scenario
from kit.kubernetes_world import KubernetesWorld, Retold
from kit.pod_behavior import Fate, Rule, exits, pod_with, runs
from kit.scenario import NAMESPACE, SimulatedWorld, World, plain
from shoal.cluster.client import PatchType
from shoal.dialects.native import batch_job, replica_sets
from shoal.dialects.native.pod_builder import SLOT
from shoal.dialects.native.settings import settings
from shoal.kube.conditions import is_true
from shoal.kube.kinds import POD
from shoal.kube.objects import Obj, is_terminating, name_of, uid_of
from shoal.kube.owners import controller_of


def _field(path: str) -> Obj:
    return {"valueFrom": {"fieldRef": {"fieldPath": path}}}


def template(
    *rules: Rule, labels: Mapping[str, str] | None = None, place: str = SLOT, counts: bool = False, **spec: Any
) -> Obj:
    """A pod template whose fates may depend on the place of the pod and, with `counts`, on its failures before."""
    made = pod_with(*rules, **spec)
    made["metadata"]["labels"] = dict(labels or {})
    attempt = _field(f"metadata.annotations['{batch_job.FAILURES}']") if counts else {"value": "0"}
    made["spec"]["containers"][0]["env"] = [
        {"name": "FC_TASK_INDEX", **_field(f"metadata.annotations['{place}']")},
        {"name": "FC_TASK_ATTEMPT_ID", **attempt},
    ]
    return made


def job(
    name: str, fate: Fate | None = None, *, of: Mapping[int, Fate] | None = None, first: Obj | None = None, **spec: Any
) -> Obj:
    """`of` are fates of single places, `first` those of places until they have failed once."""
    rules = [Rule(each, index=index, attempt=0) for index, each in (first or {}).items()]
    rules += [Rule(each, index=index) for index, each in (of or {}).items()]
    place = batch_job.INDEX if spec.get("completionMode") == "Indexed" else SLOT
    pod = template(*rules, Rule(fate or exits(0)), place=place, counts=bool(first))
    return {"metadata": {"name": name}, "spec": {"template": pod, **spec}}


def replica_set(name: str, replicas: int, fate: Fate | None = None) -> Obj:
    labels = {"app": name}
    pod = template(Rule(fate or runs()), labels=labels, restartPolicy="Always")
    return {
        "metadata": {"name": name},
        "spec": {"replicas": replicas, "selector": {"matchLabels": labels}, "template": pod},
    }


class NativeWorld(World):
    """What a user of these kinds does and sees."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self._ended: dict[str, Obj] = {}  # the conditions of jobs that have ended, by uid

    async def change(self, name: str, **spec: Any) -> Obj:
        """A merge patch of the spec."""
        return await self.user.patch(
            self.dialect.kind, name, NAMESPACE, patch={"spec": spec}, patch_type=PatchType.MERGE
        )

    def counts(self, name: str) -> Obj:
        """The numbers of the status that are not nought, and what is counted by index."""
        numbers = {word: value for word, value in self.status(name).items() if isinstance(value, int) and value}
        numbers.pop("observedGeneration", None)
        return numbers | {
            w: self.status(name)[w] for w in ("completedIndexes", "failedIndexes") if w in self.status(name)
        }

    def claims(self, name: str) -> list[str]:
        """Types and reasons of the conditions that are true."""
        conditions = self.status(name).get("conditions") or []
        return [f"{each['type']}: {each['reason']}" for each in conditions if each["status"] == "True"]

    def pods_of(self, name: str) -> list[Obj]:
        return [pod for _, pod in sorted(self.pods.items()) if (controller_of(pod) or {}).get("name") == name]

    def living(self, name: str) -> list[Obj]:
        return [
            pod for pod in self.pods_of(name) if not is_terminating(pod) and _phase(pod) not in ("Succeeded", "Failed")
        ]

    async def ended(self, name: str) -> list[str]:
        job = self.frameworks
        await self.until(lambda: any(is_true(job.get(name) or {}, claim) for claim in ("Complete", "Failed")))
        return self.claims(name)

    async def ready(self, name: str, count: int) -> None:
        await self.until(
            lambda: (self.status(name).get("ready") or self.status(name).get("readyReplicas") or 0) == count
        )

    def wrote(self, resource: str, name: str, obj: Obj | None) -> None:
        is_born = resource == POD.resource and obj is not None and name not in self.uids
        super().wrote(resource, name, obj)
        if is_born and obj is not None:
            self.promises.broken += self._of_birth(str((controller_of(obj) or {}).get("name")))
        elif resource == self.dialect.kind.resource and obj is not None:
            self.promises.broken += self._of_end(obj)

    def _of_birth(self, owner: str) -> Iterator[str]:
        """Nobody is made beyond what is wished for."""
        spec = (self.frameworks.get(owner) or {}).get("spec") or {}
        most, there = spec.get("parallelism", spec.get("replicas", 0)), len(self.living(owner))
        if there > most and owner in self.frameworks:
            yield f"{owner} has {there} living pods, {most} are wished for"

    def _of_end(self, obj: Obj) -> Iterator[str]:
        """What has ended does not end otherwise."""
        claims = [
            each["type"] for each in (obj.get("status") or {}).get("conditions") or () if each["status"] == "True"
        ]
        end = {claim: claim in claims for claim in ("Complete", "Failed")}
        before = self._ended.get(uid_of(obj))
        if before is not None and end != before:
            yield f"{name_of(obj)} had ended as {before} and is {end}"
        if any(end.values()):
            self._ended[uid_of(obj)] = end

    def picture(self, varies: tuple[str, ...] = ()) -> Obj:
        statuses = {name: obj.get("status") for name, obj in sorted(self.frameworks.items())}
        owners = Counter(f"{(controller_of(pod) or {}).get('name')}: {_phase(pod)}" for pod in self.pods.values())
        return {
            "objects": {name: plain(status, varies) for name, status in statuses.items()},
            "pods": dict(sorted(owners.items())),
        }


def _phase(pod: Obj) -> str:
    return str((pod.get("status") or {}).get("phase") or "Pending")


class JobWorld(NativeWorld):
    dialect = batch_job.DIALECT


class ReplicaSetWorld(NativeWorld):
    dialect = replica_sets.DIALECT


class _Simulated(SimulatedWorld):
    def settings(self, config: Obj | None) -> Any:
        return settings(config)


class _Real(RealWorld):
    def settings(self, config: Obj | None) -> Mapping[str, Any]:
        del config
        return {}


class SimulatedJobs(JobWorld, _Simulated):
    """Virtual time."""


class RealJobs(JobWorld, _Real):
    """Real processes."""


class SimulatedReplicaSets(ReplicaSetWorld, _Simulated):
    """Virtual time."""


class RealReplicaSets(ReplicaSetWorld, _Real):
    """Real processes."""


class _OfItsOwn(KubernetesWorld):
    """A real Kubernetes runs these kinds by itself: the same scenario says whether we do as it does."""

    def settings(self, config: Obj | None) -> Any:
        return settings(config)

    def start_operator(self, **config: Any) -> None:
        """Nobody of ours."""
        del config


class RetoldJobs(JobWorld, Retold):
    """What was heard of Jobs, told again in its order."""


class KubernetesJobs(JobWorld, _OfItsOwn):
    watched = (batch_job.DIALECT.kind, POD)
    retold = RetoldJobs


class RetoldReplicaSets(ReplicaSetWorld, Retold):
    """What was heard of ReplicaSets, told again in its order."""


class KubernetesReplicaSets(ReplicaSetWorld, _OfItsOwn):
    watched = (replica_sets.DIALECT.kind, POD)
    retold = RetoldReplicaSets


def job_scenario(*, real: bool = True, kubernetes: bool = False, thorough: bool = False) -> Any:
    """`kubernetes`: the controllers of Kubernetes play it too, in our place."""
    worlds = Worlds(
        SimulatedJobs, RealJobs, KubernetesJobs if kubernetes else None, watched=(batch_job.DIALECT.kind, POD)
    )
    return any_scenario(real=real, worlds=worlds, thorough=thorough)


def replica_set_scenario(*, kubernetes: bool = False, thorough: bool = False) -> Any:
    worlds = Worlds(
        SimulatedReplicaSets,
        RealReplicaSets,
        KubernetesReplicaSets if kubernetes else None,
        watched=(replica_sets.DIALECT.kind, POD),
    )
    return any_scenario(worlds=worlds, thorough=thorough)
