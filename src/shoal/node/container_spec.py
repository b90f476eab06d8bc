"""From a container in a manifest to the process the sandbox is to start.

Everything that can be missing (a ConfigMap, a volume, a command) is found here, before anything is started, and raised
as `CannotStart` with the reason and the message for the container's status.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path, PurePosixPath
from typing import Any

from shoal.kube.job_annotations import PROJECT
from shoal.kube.messages import Message
from shoal.kube.objects import Obj, annotations_of, namespace_of
from shoal.kube.quantity import Quantity
from shoal.node import volumes
from shoal.node.checkpoint import PodFolder, PodRecord
from shoal.node.cluster_dns import hostname_of
from shoal.node.config import NodeConfig
from shoal.node.container_record_recovery import process_id
from shoal.node.environment import EnvContext, command_line, declared_variables, environment
from shoal.node.messages import text
from shoal.node.pod_lifecycle import Waiting
from shoal.node.pod_references import Lookup, ReferenceMissing
from shoal.node.pod_user import resolve_user
from shoal.node.projects import Projects
from shoal.node.sandbox.interface import Mount, ProcessSpec

MESSAGE_PATH = "/dev/termination-log"


class CannotStart(Exception):
    """A container cannot be started now; the pod waits until what it lacks appears."""

    def __init__(self, waiting: Waiting, *, is_volume: bool = False, path: Path | None = None) -> None:
        super().__init__(text(waiting.message))
        self.waiting = waiting
        self.is_volume = is_volume
        self.path = path  # of this machine, whose appearance would help


@dataclass(frozen=True, slots=True)
class SpecContext:
    """What the node offers to every process it starts."""

    config: NodeConfig
    services: tuple[Obj, ...] = ()
    lookup: Lookup = field(default_factory=Lookup)
    offered_env: Mapping[str, str] = field(default_factory=dict)  # by the sandboxes
    projects: Projects | None = None  # None: pods bring none, as on Kubernetes

    def with_project(self, pod: Obj) -> SpecContext:
        """With the working folder, environment and images of the project that the pod names; raises CannotStart."""
        name = annotations_of(pod).get(PROJECT)
        if name is None or self.projects is None:
            return self
        project = self.projects.load(name)
        if project is None:
            missing = {"annotation": PROJECT, "name": name, "retry": Message("Retry.Submit")}
            raise CannotStart(Waiting("CreateContainerConfigError", Message("Project.NotStored", missing)))
        config = self.config
        with_project = replace(
            config,
            working_dir=project.working_dir,
            caller_env=project.environment(config.caller_env),
            images=project.read_images(config.images),
        )
        return replace(self, config=with_project)


def make_env_context(pod: Obj, record: PodRecord, context: SpecContext, container: str = "") -> EnvContext:
    config = context.config
    gpus = None if config.devices is None else tuple(record.gpus.get(container, ()))
    return EnvContext(
        node=config.name,
        host_ip=config.machine.host_ip,
        pod_ip=record.ip or config.machine.host_ip,
        hostname=config.machine.hostname if pod["spec"].get("hostNetwork") else hostname_of(pod),
        allocatable=config.allocatable,
        services=context.services,
        lookup=context.lookup,
        gpus=gpus,
        owner=_files_owner(pod, config),
    )


def prepare_volumes(
    pod: Obj, record: PodRecord, folder: PodFolder, context: SpecContext
) -> dict[str, volumes.PreparedVolume]:
    try:
        return volumes.prepare(pod, folder, make_env_context(pod, record, context))
    except ReferenceMissing as missing:
        raise CannotStart(Waiting("ContainerCreating", missing.message), is_volume=True, path=missing.path) from missing
    except OSError as error:
        raise CannotStart(Waiting("ContainerCreating", str(error)), is_volume=True) from error
    except ValueError as error:
        message = Message("Volume.InvalidPath", {"error": str(error)})
        raise CannotStart(Waiting("ContainerCreating", message), is_volume=True) from error


def process_spec(
    pod: Obj, container: Obj, record: PodRecord, folder: PodFolder, context: SpecContext, attempt: int
) -> ProcessSpec:
    """The process for one start of the container; raises CannotStart."""
    prepared = prepare_volumes(pod, record, folder, context)
    context = context.with_project(pod)
    try:
        for probe in ("startupProbe", "livenessProbe", "readinessProbe"):
            if "grpc" in (container.get(probe) or {}):
                raise ReferenceMissing(Message("Probe.GrpcNotSupported", {"probe": probe}))
        return _build_spec(pod, container, record, folder, context, attempt, prepared)
    except ReferenceMissing as missing:
        raise CannotStart(Waiting("CreateContainerConfigError", missing.message)) from missing
    except OSError as error:
        raise CannotStart(Waiting("CreateContainerConfigError", str(error))) from error
    except ValueError as error:
        message = Message("Container.InvalidPath", {"error": str(error)})
        raise CannotStart(Waiting("CreateContainerConfigError", message)) from error


def _build_spec(
    pod: Obj,
    container: Obj,
    record: PodRecord,
    folder: PodFolder,
    context: SpecContext,
    attempt: int,
    prepared: Mapping[str, volumes.PreparedVolume],
) -> ProcessSpec:
    config, name, image = context.config, container["name"], container.get("image") or ""
    env_context = make_env_context(pod, record, context, name)
    variables = declared_variables(pod, container, env_context)
    argv = command_line(container, config.images.command(image), variables)
    if not argv:
        raise CannotStart(Waiting("ImageNotConfigured", config.images.missing_command(image, name)))
    caller = {**config.caller_env, **context.offered_env}  # the caller's own proxy is out of a pod's reach
    image_env = config.images.env(image, caller.get("PATH", os.defpath))
    uid, gid = _user(pod, container, config)
    security = container.get("securityContext") or {}
    folder.path.mkdir(parents=True, exist_ok=True)
    cwd = container.get("workingDir") or config.images.working_dir(image) or config.working_dir
    mounts = (*config.images.mounts(image), *volumes.mounts_for(container, prepared, variables))
    home = config.images.python(image)
    if home and not (home / "bin").is_dir() and not any(home.is_relative_to(mount.target) for mount in mounts):
        # The program would else run with some other Python than the one that was meant, and not say so.
        raise CannotStart(Waiting("ImageNotConfigured", config.images.missing_python(image)), path=home / "bin")
    hidden = config.confinement.hidden if config.confinement else ()
    _check_sources(mounts, hidden, folder)
    return ProcessSpec(
        id=process_id(name, attempt),
        argv=argv,
        env=environment(variables, caller=caller, image=image_env, env_context=env_context),
        cwd=cwd,
        log_file=folder.log_file(name, attempt),
        mounts=(*mounts, *_working_dir_mount(cwd, mounts, folder, name), _message_mount(container, folder, attempt)),
        uid=uid,
        gid=gid,
        memory_bytes=_limit(container, "memory", Quantity.value),
        cpu_milli=_limit(container, "cpu", Quantity.milli),
        hidden=hidden,
        no_new_privs=config.confinement is not None or security.get("allowPrivilegeEscalation") is False,
    )


def _check_sources(mounts: tuple[Mount, ...], hidden: tuple[Path, ...], folder: PodFolder) -> None:
    """A process sees what it mounts from a hidden folder, so the source must be in its own pod's folder."""
    for mount in mounts:
        source = mount.source
        if source is None or not any(source.is_relative_to(place) for place in hidden):
            continue
        if ".." in source.parts or not source.is_relative_to(folder.path):
            raise ReferenceMissing(Message("Mount.NodePath", {"path": str(source)}))


def _working_dir_mount(cwd: str, mounts: tuple[Mount, ...], folder: PodFolder, name: str) -> tuple[Mount, ...]:
    """A working folder that neither the machine nor a volume has is made for the container, as runtimes do."""
    path = PurePosixPath(cwd)
    if Path(cwd).exists() or any(path.is_relative_to(mount.target) for mount in mounts):
        return ()
    place = folder.path / "work" / name
    place.mkdir(parents=True, exist_ok=True)
    place.chmod(0o777)
    return (Mount(cwd, place),)


def _message_mount(container: Obj, folder: PodFolder, attempt: int) -> Mount:
    """An empty file for the container's termination message."""
    place = folder.message_file(container["name"], attempt)
    file = os.open(place, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC)
    try:
        os.fchmod(file, 0o666)  # containers may run as any user
    finally:
        os.close(file)
    return Mount(container.get("terminationMessagePath") or MESSAGE_PATH, place)


def _limit(container: Obj, resource: str, amount: Callable[[Quantity], int]) -> int | None:
    """None without a limit; the API takes a limit of 0 for none."""
    limit = ((container.get("resources") or {}).get("limits") or {}).get(resource)
    return amount(Quantity.parse(str(limit))) or None if limit is not None else None


def _files_owner(pod: Obj, config: NodeConfig) -> tuple[int, int] | None:
    """The pod's user where it is not the agent's: a file of mode 0400 has to be readable for the pod."""
    if config.confinement is None or not config.confinement.separate_users:
        return None
    try:
        return _separate_user(pod, pod["spec"].get("securityContext") or {})
    except ReferenceMissing:  # no container of the pod will start as that user
        return resolve_user(namespace_of(pod), None, None)


def _separate_user(pod: Obj, wanted: Mapping[str, Any]) -> tuple[int, int]:
    return resolve_user(namespace_of(pod), wanted.get("runAsUser"), wanted.get("runAsGroup"))


def _user(pod: Obj, container: Obj, config: NodeConfig) -> tuple[int | None, int | None]:
    """Uid and gid: the container's `securityContext` before the pod's; where neither has them, the namespace's own
    on a node with separate users and the agent's (None) elsewhere."""
    wanted = {**(pod["spec"].get("securityContext") or {}), **(container.get("securityContext") or {})}
    if config.confinement is not None and config.confinement.separate_users:
        return _separate_user(pod, wanted)
    uid, gid = wanted.get("runAsUser"), wanted.get("runAsGroup")
    effective = os.geteuid() if uid is None else int(uid)
    if wanted.get("runAsNonRoot") and effective == 0:
        raise ReferenceMissing(Message("User.Root"))
    return (None if uid is None else int(uid)), (None if gid is None else int(gid))
