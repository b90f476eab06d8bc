"""What plugins receive about the pod they change, and the small changes they all make.

Pods are changed in place: the caller has created each of them for that.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from shoal.dialects.volcano import names
from shoal.dialects.volcano.spec import JobSpec, TaskSpec
from shoal.kube.objects import Obj, at_path
from shoal.kube.schema_errors import FieldWarning


@dataclass(frozen=True, slots=True)
class PluginJob:
    """The job a plugin works for."""

    job: str
    namespace: str
    spec: JobSpec

    def hosts(self, task: TaskSpec) -> list[str]:
        """The addresses of a task's pods. A template with a hostname of its own gives all of them that one name."""
        pod = task.template.get("spec") or {}
        subdomain, own = pod.get("subdomain") or self.job, pod.get("hostname")
        if own:
            return [f"{own}.{subdomain}"]
        return [f"{names.pod_name(self.job, task.name, index)}.{subdomain}" for index in range(task.replicas)]


@dataclass(frozen=True, slots=True)
class PluginPod:
    """The pod that is configured."""

    scene: PluginJob
    task: TaskSpec
    index: int


def containers(pod: Obj, *, init: bool = True) -> Iterator[Obj]:
    for group in ("initContainers", "containers") if init else ("containers",):
        yield from at_path(pod, "spec", group, default=())


def add_env(pod: Obj, variables: Sequence[Obj], *, init: bool = True) -> None:
    """After the container's own, so that these count."""
    for container in containers(pod, init=init):
        container["env"] = [*(container.get("env") or ()), *variables]


def plain(**values: object) -> list[Obj]:
    return [{"name": name, "value": str(value)} for name, value in values.items()]


def mount(pod: Obj, volume: Obj, mounts: Sequence[Obj]) -> None:
    pod["spec"]["volumes"] = [*(pod["spec"].get("volumes") or ()), volume]
    for container in containers(pod):
        container["volumeMounts"] = [*(container.get("volumeMounts") or ()), *mounts]


def open_port(pod: Obj, name: str, port: int) -> None:
    """In every container that has not opened it itself."""
    for container in containers(pod, init=False):
        opened = container.get("ports") or []
        if all(each.get("containerPort") != port for each in opened):
            container["ports"] = [*opened, {"name": name, "containerPort": port, "protocol": "TCP"}]


class InvalidFlag(ValueError):
    """An argument of a plugin that it does not accept; the message describes what would be valid."""


def flags(plugin: str, arguments: Sequence[str] | None, known: Mapping[str, Any]) -> dict[str, Any]:
    """`--name=value` and `--name value` beside the defaults, which also give the type of a value."""
    given = _split(arguments, known)
    return {**known, **{name: _value(plugin, name, text, known[name]) for _, name, text in given if name in known}}


def unknown_arguments(plugin: str, arguments: Sequence[str] | None, known: Mapping[str, Any]) -> Iterator[str]:
    """Warnings about arguments that are ignored, as Volcano ignores them."""
    listed = ", ".join(f"--{each}" for each in known) or "none"
    for word, name, _ in _split(arguments, known):
        if name not in known:
            text = f"unknown argument {word!r} is ignored; known arguments: {listed}"
            yield FieldWarning(f"spec.plugins[{plugin}]", text)


def _split(arguments: Sequence[str] | None, known: Mapping[str, Any]) -> Iterator[tuple[str, str, str]]:
    """Each argument as it is written, its name ('' for a word that is none) and its value."""
    words = iter(arguments or ())
    for word in words:
        name, equals, value = word.lstrip("-").partition("=")
        if not word.startswith("-"):
            name = ""
        elif not equals and name in known:
            value = "true" if isinstance(known[name], bool) else next(words, "true")
        yield word, name, value


def _value(plugin: str, name: str, text: str, like: Any) -> Any:
    if isinstance(like, bool):
        if text.lower() not in ("true", "false", "1", "0"):
            raise InvalidFlag(f"{plugin}: --{name} must be true or false, not {text!r}")
        return text.lower() in ("true", "1")
    if isinstance(like, int):
        if not (text.isascii() and text.isdigit() and 0 < int(text) < 65536):
            raise InvalidFlag(f"{plugin}: --{name} must be a number from 1 to 65535, not {text!r}")
        return int(text)
    return text
