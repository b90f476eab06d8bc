"""Variables, arguments and ports of the containers of a pod that is being built. The pod is changed in place."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from shoal.kube.objects import Obj


def find_container(spec: Obj, name: str) -> Obj | None:
    found: Obj | None = next((each for each in spec.get("containers") or () if each.get("name") == name), None)
    return found


def add_variables(containers: Iterable[Obj], variables: Mapping[str, str]) -> None:
    """After the container's own: a later entry of the same name wins, as it does in Kubernetes."""
    added = [{"name": name, "value": value} for name, value in variables.items()]
    for container in containers:
        container["env"] = [*(container.get("env") or ()), *added]


def put_arguments_first(container: Obj, arguments: Iterable[str]) -> None:
    container["args"] = [*arguments, *(container.get("args") or ())]


def port_of(spec: Obj, container: str, name: str, otherwise: int) -> int:
    """The number of the container's port of that name."""
    found = find_container(spec, container) or {}
    return next(
        (int(port["containerPort"]) for port in found.get("ports") or () if port.get("name") == name), otherwise
    )


def open_port(container: Obj, name: str, number: int) -> None:
    """Unless it has a port of that name."""
    ports = container.get("ports") or []
    if all(port.get("name") != name for port in ports):
        container["ports"] = [*ports, {"name": name, "containerPort": number, "protocol": "TCP"}]
