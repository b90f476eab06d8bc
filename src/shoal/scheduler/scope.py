"""What one scheduler serves: which pods it places, which groups it admits, and where it watches."""

from __future__ import annotations

from dataclasses import dataclass

from shoal.kube.kinds import Kind
from shoal.kube.objects import Key, Obj, namespace_of
from shoal.scheduler.api.implicit_pod_groups import group_name_of, lacks_group
from shoal.scheduler.api.pod_groups import POD_GROUP, QUEUE


@dataclass(frozen=True, slots=True)
class SchedulerScope:
    schedulers: frozenset[str] | None = None  # names that pods select; None: whatever they select
    namespace: str | None = None  # of pods and groups; None: all
    gangs: bool = True  # whether the cluster has PodGroups and Queues
    hypernodes: bool = False  # and HyperNodes
    implicit_groups: bool = False  # whether pods of Volcano's scheduler that name no group get one
    all_groups: bool = True  # or only those that a pod of this scheduler names: another scheduler admits the others
    group_kind: Kind = POD_GROUP  # as this cluster serves it
    queue_kind: Kind = QUEUE

    def is_responsible_for(self, pod: Obj) -> bool:
        if self.namespace is not None and namespace_of(pod) != self.namespace:
            return False
        return self.schedulers is None or pod["spec"].get("schedulerName") in self.schedulers

    def implicit_group(self, pod: Obj) -> Key | None:
        """The group of a pod that names none, whether that group exists already or not."""
        if not (self.implicit_groups and lacks_group(pod) and self.is_responsible_for(pod)):
            return None
        return Key(namespace_of(pod), group_name_of(pod))

    @property
    def manages_queues(self) -> bool:
        """Only a scheduler that sees all groups reports what queues hold, and executes Commands for them."""
        return self.gangs and self.all_groups and self.namespace is None
