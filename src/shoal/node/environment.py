"""The environment and the command line of a container.

Pure. Layers, from the bottom: the caller's environment (there is no image that would bring one), what the sandbox
offers (egress from the pod's network), the image entry, HOSTNAME, links to Services, `envFrom`, `env`, and last
CUDA_VISIBLE_DEVICES: a container sees exactly the devices the node gave it, whatever it sets itself, because two jobs
on one GPU is the worse surprise. `$(VAR)` is expanded as Kubernetes does it: from what the manifest defines, never from
the layers below.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache

from shoal.kube.kinds import CONFIG_MAP, SECRET, Kind
from shoal.kube.messages import Message
from shoal.kube.objects import Obj, name_of, namespace_of
from shoal.node.downward_api import field_value, resource_value
from shoal.node.pod_references import Lookup, ReferenceMissing, not_found

MAX_TEXT_CHARACTERS = 128 << 10  # of an expanded text: the kernel takes no longer argument or variable
MAX_CHARACTERS = 6 << 20  # of the arguments, and of the variables: the kernel takes no more of both together
_REFERENCE = re.compile(r"\$(?:\$|\(([^)]*)\))")
_NAME = re.compile(r"[-._a-zA-Z][-._a-zA-Z0-9]*")
API = ("default", "kubernetes")
CUDA_DEVICES = "CUDA_VISIBLE_DEVICES"
# Indices are NVML's, in the order of the bus; left to itself CUDA counts the fastest device first.
CUDA_ORDER = {"CUDA_DEVICE_ORDER": "PCI_BUS_ID"}
Read = Callable[[Kind, str], Mapping[str, bytes] | None]  # of the pod's namespace; None where there is no such object


@dataclass(frozen=True, slots=True)
class EnvContext:
    """The values of the node that a container's environment may need."""

    node: str
    host_ip: str
    pod_ip: str
    hostname: str
    allocatable: Mapping[str, str] = field(default_factory=dict)
    services: tuple[Obj, ...] = ()  # of the pod's namespace
    lookup: Lookup = field(default_factory=Lookup)
    gpus: tuple[int, ...] | None = None  # None: the node has no GPUs at all
    owner: tuple[int, int] | None = None  # uid and gid of the files written for the pod; None: the agent's


def expand(text: str, variables: Mapping[str, str]) -> str:
    """`$(NAME)` becomes its value; `$$` becomes `$`; an unknown name stays as it is written.

    A variable may hold others several times and be held by the next one, which doubles with each step: ReferenceMissing
    where the text becomes longer than a process can be given.
    """
    pieces: list[str] = []
    size = end = 0
    for found in _references(text):
        value = "$" if found[1] is None else variables.get(found[1], found[0])
        pieces += text[end : found.start()], value
        size += found.start() - end + len(value)
        end = found.end()
        if size > MAX_TEXT_CHARACTERS:
            raise ReferenceMissing(Message("Environment.LongText", {"limit": MAX_TEXT_CHARACTERS}))
    return "".join([*pieces, text[end:].replace("$$", "$")])


def unknown_names(text: str, variables: Mapping[str, str]) -> list[str]:
    """The names in `$(NAME)` that nothing defines."""
    return [found[1] for found in _references(text) if found[1] is not None and found[1] not in variables]


def _references(text: str) -> Iterator[re.Match[str]]:
    """Up to the last closing bracket: after it, the search for one would go through the rest at every opening one."""
    return _REFERENCE.finditer(text, 0, text.rfind(")") + 1)


class _Size:
    """Counts what a process is given, so that many references to a long value fill no memory."""

    def __init__(self, code: str) -> None:
        self._code = code  # of the message where it is too much
        self._characters = 0

    def add(self, *texts: str | bytes) -> None:
        self._characters += sum(map(len, texts))
        if self._characters > MAX_CHARACTERS:
            raise ReferenceMissing(Message(self._code, {"limit": MAX_CHARACTERS}))


def reader(pod: Obj, env_context: EnvContext) -> Read:
    """Decodes each ConfigMap and Secret once, however many references to it there are."""
    namespace = namespace_of(pod)
    return cache(lambda kind, name: env_context.lookup.data(kind, namespace, name))


def declared_variables(pod: Obj, container: Obj, env_context: EnvContext) -> dict[str, str]:
    """The variables that come from the manifest and the cluster: these `$(VAR)` may name."""
    variables = dict(service_links(pod, env_context.services))
    size = _Size("Environment.ManyVariables")
    read = reader(pod, env_context)
    for source in container.get("envFrom") or ():
        variables.update(_from_source(source, read, size))
    for variable in container.get("env") or ():
        value = _value(pod, container, variable, variables, env_context, read)
        if value is not None:
            size.add(variable["name"], value)
            variables[variable["name"]] = value
    return variables


def environment(
    variables: Mapping[str, str], *, caller: Mapping[str, str], image: Mapping[str, str], env_context: EnvContext
) -> dict[str, str]:
    """All a process gets, from the caller's environment up to the devices it may use."""
    layers = {**caller, **image, "HOSTNAME": env_context.hostname, **variables}
    if env_context.gpus is not None:
        layers |= CUDA_ORDER
        layers[CUDA_DEVICES] = ",".join(str(index) for index in env_context.gpus)
    return layers


def command_line(container: Obj, image_command: Iterable[str], variables: Mapping[str, str]) -> tuple[str, ...]:
    """The entry's command takes the place of an image's entrypoint: `command` replaces it, `args` follow it.

    Where there is neither, `args` are the command: `kubectl run x --image=busybox -- echo hi` writes them alone.
    """
    command = container.get("command") or list(image_command)
    argv, size = [], _Size("Environment.ManyArguments")
    for part in [*command, *(container.get("args") or ())]:
        argv.append(expand(part, variables))
        size.add(argv[-1])
    return tuple(argv)


def _value(
    pod: Obj, container: Obj, variable: Obj, before: Mapping[str, str], env_context: EnvContext, read: Read
) -> str | None:
    """None where an optional reference leads nowhere: the variable is then not set at all."""
    origin = variable.get("valueFrom")
    if not origin:
        return expand(variable.get("value") or "", before)
    if ref := origin.get("fieldRef"):
        path = ref["fieldPath"]
        return field_value(pod, path, pod_ip=env_context.pod_ip, host_ip=env_context.host_ip, node=env_context.node)
    if ref := origin.get("resourceFieldRef"):
        return resource_value(pod, container, ref, env_context.allocatable)
    if ref := origin.get("configMapKeyRef"):
        return _key(CONFIG_MAP, ref, namespace_of(pod), read)
    if ref := origin.get("secretKeyRef"):
        return _key(SECRET, ref, namespace_of(pod), read)
    parameters = {"variable": variable["name"], "sources": list(origin)}
    raise ReferenceMissing(Message("Environment.UnknownSource", parameters))


def _key(kind: Kind, ref: Obj, namespace: str, read: Read) -> str | None:
    data = read(kind, ref["name"])
    if data is None:
        if ref.get("optional"):
            return None
        raise not_found(kind, ref["name"])
    if ref["key"] not in data:
        if ref.get("optional"):
            return None
        raise ReferenceMissing(
            Message(
                "Object.KeyNotFound",
                {"kind": kind.kind, "namespace": namespace, "name": ref["name"], "key": ref["key"]},
            )
        )
    return data[ref["key"]].decode(errors="replace")


def _from_source(source: Obj, read: Read, size: _Size) -> dict[str, str]:
    prefix = source.get("prefix") or ""
    found: dict[str, str] = {}
    for kind, field_name in ((CONFIG_MAP, "configMapRef"), (SECRET, "secretRef")):
        ref = source.get(field_name)
        if not ref:
            continue
        data = read(kind, ref["name"])
        if data is None and not ref.get("optional"):
            raise not_found(kind, ref["name"])
        for key, value in (data or {}).items():
            size.add(prefix, key, value)  # also where it is no variable: it has been looked at
            if _NAME.fullmatch(prefix + key):
                found[prefix + key] = value.decode(errors="replace")
    return found


# Links to Services, as Docker once named them


def service_links(pod: Obj, services: Iterable[Obj]) -> Iterable[tuple[str, str]]:
    only_api = pod["spec"].get("enableServiceLinks") is False
    for service in sorted(services, key=name_of):
        if only_api and (namespace_of(service), name_of(service)) != API:
            continue  # the API's variables are set whatever the pod requests: client libraries need them
        spec = service.get("spec") or {}
        address, ports = spec.get("clusterIP"), spec.get("ports") or []
        if not address or address == "None" or not ports or spec.get("type") == "ExternalName":
            continue
        stem = _variable_name(name_of(service))
        yield f"{stem}_SERVICE_HOST", address
        yield f"{stem}_SERVICE_PORT", str(ports[0]["port"])
        for port in ports:
            if port.get("name"):
                yield f"{stem}_SERVICE_PORT_{_variable_name(port['name'])}", str(port["port"])
        for index, port in enumerate(ports):
            protocol = str(port.get("protocol") or "TCP")
            url = f"{protocol.lower()}://{address}:{port['port']}"
            if index == 0:
                yield f"{stem}_PORT", url
            link = f"{stem}_PORT_{port['port']}_{protocol}"
            yield link, url
            yield f"{link}_PROTO", protocol.lower()
            yield f"{link}_PORT", str(port["port"])
            yield f"{link}_ADDR", address


def _variable_name(name: str) -> str:
    return name.upper().replace("-", "_")
