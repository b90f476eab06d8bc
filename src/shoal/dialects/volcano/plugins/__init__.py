"""Job plugins: what a Job may add to its pods beside the templates, one file each.

A plugin has FLAGS, its arguments with their defaults, and `configure_pod`, which changes a pod in place. They run in
the order written here, so that hcclrank sees the ranks the frameworks gave. Objects a plugin needs beside the pods
(svc, ssh, ray) are owned objects of the job; they exist until it ends, so that a restart of pods never deletes them.
"""

from __future__ import annotations

from collections.abc import Iterator
from types import ModuleType
from typing import Any

from shoal.dialects.volcano.plugins import env, hcclrank, mpi, pytorch, ray, ssh, svc, tensorflow
from shoal.dialects.volcano.plugins.pods import InvalidFlag, PluginPod, flags, unknown_arguments
from shoal.dialects.volcano.spec import JobSpec
from shoal.kube.errors import Cause
from shoal.kube.objects import Obj

PLUGINS: dict[str, ModuleType] = {
    "env": env,
    "svc": svc,
    "ssh": ssh,
    "tensorflow": tensorflow,
    "mpi": mpi,
    "pytorch": pytorch,
    "ray": ray,
    "hcclrank": hcclrank,
}


def requested_plugins(spec: JobSpec) -> dict[str, dict[str, Any]]:
    """The plugins of a Job in the order in which they run, each with its arguments."""
    return {name: arguments(spec, name) for name in PLUGINS if name in spec.plugins}


def arguments(spec: JobSpec, name: str) -> dict[str, Any]:
    return flags(name, spec.plugins.get(name), PLUGINS[name].FLAGS)


def configure_pod(pod: Obj, place: PluginPod) -> None:
    for name, read in requested_plugins(place.scene.spec).items():
        PLUGINS[name].configure_pod(pod, place, read)


def ignored_arguments(spec: JobSpec) -> Iterator[str]:
    for name in PLUGINS:
        if name in spec.plugins:
            yield from unknown_arguments(name, spec.plugins[name], PLUGINS[name].FLAGS)


def find_errors(spec: JobSpec) -> Iterator[Cause]:
    """Unknown plugins, arguments with values of the wrong type, and an MPI job without its master."""
    for name in spec.plugins:
        path = f"spec.plugins[{name}]"
        if name not in PLUGINS:
            known = ", ".join(PLUGINS)
            yield Cause("FieldValueInvalid", f"unable to find job plugin: {name}; there are: {known}", path)
            continue
        try:
            read = arguments(spec, name)
        except InvalidFlag as wrong:
            yield Cause("FieldValueInvalid", str(wrong), path)
            continue
        if name == "mpi" and spec.task(read["master"]) is None:
            words = f"the specified mpi master task was not found: there is no task {read['master']!r}"
            yield Cause("FieldValueInvalid", words, path)
