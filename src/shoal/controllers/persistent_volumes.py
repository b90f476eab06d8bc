"""Storage on one machine: every claim gets a folder.

A claim is first matched with a volume made for it by others; else a volume is made, whose folder lies in the data
folder. A volume on storage that is neither hostPath nor local is a folder there, too. A claim whose class waits for its
first pod is left alone until the scheduler has chosen a volume or a node for it. `plan_actions` decides from claims,
volumes and classes alone; the loop makes folders, writes objects, and removes the folder of a volume whose claim is
gone where its reclaim policy is Delete.
"""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from shoal.cluster.client import Cluster, OutcomeUnknown
from shoal.cluster.informer import Change, Informer
from shoal.controller_runtime.workqueue import WorkQueue
from shoal.kube.errors import ApiError
from shoal.kube.kinds import PERSISTENT_VOLUME, PERSISTENT_VOLUME_CLAIM, STORAGE_CLASS, Kind
from shoal.kube.objects import Key, Obj, annotations_of, at_path, is_terminating, key_of, name_of, uid_of
from shoal.kube.persistent_volumes import FOLDER, needs_folder, path_of
from shoal.scheduler.planner.volume_matching import (
    NO_PROVISIONER,
    SELECTED_NODE,
    class_of,
    is_for,
    is_free,
    reference_to,
    satisfies,
    smallest,
    waits_for_first_consumer,
)

PROVISIONED_BY = "pv.kubernetes.io/provisioned-by"
OURS = "shoal.dev/folder"
EVERYTHING = Key("", "")


@dataclass(frozen=True, slots=True)
class ProvisionVolume:
    """Make a folder and a volume for the claim."""

    claim: Obj


@dataclass(frozen=True, slots=True)
class BindVolume:
    """Bind claim and volume to each other."""

    claim: Obj
    volume: Obj


@dataclass(frozen=True, slots=True)
class ReleaseVolume:
    """The claim is gone; the volume determines what becomes of the data."""

    volume: Obj


Action = ProvisionVolume | BindVolume | ReleaseVolume


def plan_actions(
    claims: Iterable[Obj], volumes: Iterable[Obj], classes: Mapping[str, Obj] | None = None
) -> list[Action]:
    """What to do now. A volume is given to one claim only, by the claim's UID, also within one call."""
    claims, volumes, classes = list(claims), list(volumes), classes or {}
    by_uid = {uid_of(claim): claim for claim in claims}
    free = [volume for volume in volumes if is_free(volume)]
    actions: list[Action] = []
    for claim in sorted(claims, key=key_of):
        if at_path(claim, "status", "phase") == "Bound" or is_terminating(claim):
            continue
        storage, wanted = classes.get(class_of(claim)), at_path(claim, "spec", "volumeName")
        waits = waits_for_first_consumer(storage)
        # The volume that names this claim or that the claim names, else the smallest free one that would do.
        volume = next((each for each in volumes if _is_reserved(each, claim, wanted)), None)
        if volume is None and not waits and not wanted:
            volume = smallest(each for each in free if satisfies(each, claim))
        if volume is None:
            # A class may have no provisioner, or provision volumes for the node of the first pod.
            has_provisioner = storage is None or storage.get("provisioner") != NO_PROVISIONER
            if not wanted and has_provisioner and (not waits or SELECTED_NODE in annotations_of(claim)):
                actions.append(ProvisionVolume(claim))
            continue
        if volume in free:
            free.remove(volume)
        actions.append(BindVolume(claim, volume))
    for volume in volumes:
        owner = at_path(volume, "spec", "claimRef", "uid")
        if owner and owner not in by_uid and not (_keeps_data(volume) and _is_released(volume)):
            actions.append(ReleaseVolume(volume))
    return actions


def _keeps_data(volume: Obj) -> bool:
    return bool(at_path(volume, "spec", "persistentVolumeReclaimPolicy") != "Delete")


def _is_released(volume: Obj) -> bool:
    return bool(at_path(volume, "status", "phase") == "Released")


def _is_reserved(volume: Obj, claim: Obj, wanted: str | None) -> bool:
    return is_for(volume, claim) or (not at_path(volume, "spec", "claimRef") and name_of(volume) == wanted)


def volume_for(claim: Obj, folder: Path) -> Obj:
    spec = claim["spec"]
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolume",
        "metadata": {"name": f"pvc-{uid_of(claim)}", "annotations": {PROVISIONED_BY: OURS}},
        "spec": {
            "capacity": {"storage": at_path(spec, "resources", "requests", "storage", default="1Gi")},
            "accessModes": spec.get("accessModes") or ["ReadWriteOnce"],
            "persistentVolumeReclaimPolicy": "Delete",
            "storageClassName": class_of(claim),
            "volumeMode": spec.get("volumeMode") or "Filesystem",
            "hostPath": {"path": str(folder), "type": "DirectoryOrCreate"},
            "claimRef": reference_to(claim),
        },
    }


def _make_folder(folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    folder.chmod(0o777)  # containers may run as any user; others do not get past the data folder


class PersistentVolumeController:
    name = "volumes"

    def __init__(self, cluster: Cluster, folder: Path) -> None:
        self._cluster = cluster
        self._folder = folder
        self._work = WorkQueue(self.name, self.reconcile)
        self._claims = Informer(cluster, PERSISTENT_VOLUME_CLAIM, on_change=self._changed)
        self._volumes = Informer(cluster, PERSISTENT_VOLUME, on_change=self._changed)
        self._classes = Informer(cluster, STORAGE_CLASS, on_change=self._changed)

    async def run(self) -> None:
        try:
            async with asyncio.TaskGroup() as group:
                for informer in (self._claims, self._volumes, self._classes):
                    group.create_task(informer.run())
        finally:
            await self._work.close()

    def _changed(self, _: Change) -> None:
        self._work.add(EVERYTHING)

    async def reconcile(self, _: Key) -> None:
        """One claim that cannot be served now keeps no other waiting; the pass as a whole is then tried again."""
        for informer in (self._claims, self._volumes, self._classes):
            await informer.synced.wait()
        classes = {key.name: each for key, each in self._classes.objects.items()}
        failures: list[Exception] = []
        for action in plan_actions(self._claims.objects.values(), self._volumes.objects.values(), classes):
            try:
                match action:
                    case ProvisionVolume(claim):
                        await self._provision(claim)
                    case BindVolume(claim, volume):
                        await self._join(claim, volume)
                    case ReleaseVolume(volume):
                        await self._release(volume)
            except (ApiError, OutcomeUnknown, OSError) as failure:
                failures.append(failure)
        if failures:
            raise failures[0]

    async def _provision(self, claim: Obj) -> None:
        key = key_of(claim)
        folder = self._folder / key.namespace / f"{key.name}-{uid_of(claim)}"
        _make_folder(folder)
        try:
            await self._cluster.create(PERSISTENT_VOLUME, volume_for(claim, folder))
        except ApiError as refused:
            if refused.reason != "AlreadyExists":
                raise

    async def _join(self, claim: Obj, volume: Obj) -> None:
        key, name = key_of(claim), name_of(volume)
        guard: Obj = {"uid": uid_of(volume), "resourceVersion": volume["metadata"]["resourceVersion"]}
        is_bound = at_path(volume, "spec", "claimRef", "uid") == uid_of(claim)  # by the scheduler, for a first pod
        if needs_folder(volume) and not path_of(volume):
            folder = self._folder_of(volume)
            _make_folder(folder)
            guard["annotations"] = {FOLDER: str(folder)}
        if not is_bound or "annotations" in guard:
            bound = {"metadata": guard, "spec": {"claimRef": reference_to(claim)}}
            await self._cluster.patch(PERSISTENT_VOLUME, name, patch=bound)
        await self._phase(PERSISTENT_VOLUME, Key("", name), {"phase": "Bound"})
        if at_path(claim, "spec", "volumeName") != name:
            named = {"metadata": {"uid": uid_of(claim)}, "spec": {"volumeName": name}}
            await self._cluster.patch(PERSISTENT_VOLUME_CLAIM, key.name, key.namespace, patch=named)
        status = {
            "phase": "Bound",
            "accessModes": volume["spec"]["accessModes"],
            "capacity": volume["spec"]["capacity"],
        }
        await self._phase(PERSISTENT_VOLUME_CLAIM, key, status)

    async def _release(self, volume: Obj) -> None:
        name = name_of(volume)
        if not _is_released(volume):
            await self._phase(PERSISTENT_VOLUME, Key("", name), {"phase": "Released"})
        if _keeps_data(volume):
            return
        # The data first: the volume is what reminds us of a folder still to be removed after a crash.
        is_ours = at_path(volume, "metadata", "annotations", PROVISIONED_BY) == OURS
        if is_ours or needs_folder(volume):
            folder = Path(path_of(volume)) if is_ours else self._folder_of(volume)
            if self._folder in folder.parents:  # only what lies in our own folder is ours to remove
                await asyncio.to_thread(shutil.rmtree, folder, ignore_errors=True)
        await self._cluster.delete(PERSISTENT_VOLUME, name)

    def _folder_of(self, volume: Obj) -> Path:
        """Of a volume on storage that is not there."""
        return self._folder / f"{name_of(volume)}-{uid_of(volume)}"

    async def _phase(self, kind: Kind, key: Key, status: Obj) -> None:
        await self._cluster.patch(kind, key.name, key.namespace, patch={"status": status}, subresource="status")
