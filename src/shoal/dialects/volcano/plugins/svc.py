"""Plugin svc: the pods find each other. A headless Service gives them names, a ConfigMap lists those names.

The lists are in files below /etc/volcano, which follow when the job is scaled, and in variables, which do not. A list
too long for the environment of a process stays in its file alone.
"""

from __future__ import annotations

from typing import Any

from shoal.dialects.volcano import names
from shoal.dialects.volcano.plugins.pods import PluginJob, PluginPod, add_env, mount
from shoal.dialects.volcano.spec import TaskSpec
from shoal.kube.objects import Obj

FLAGS: dict[str, Any] = {
    "publish-not-ready-addresses": False,
    "disable-network-policy": False,
    "inject-hosts-env": True,
}
FOLDER = "/etc/volcano"
LONGEST_VARIABLE = 64 * 1024


def config_name(job: str) -> str:
    return f"{job}-svc"


def configure_pod(pod: Obj, place: PluginPod, flags: dict[str, Any]) -> None:
    spec, job = pod["spec"], place.scene.job
    spec.setdefault("hostname", names.pod_name(job, place.task.name, place.index))
    spec.setdefault("subdomain", job)
    if flags["inject-hosts-env"]:
        sources = {key: {"configMapKeyRef": {"name": config_name(job), "key": key}} for key in keys(place.scene)}
        add_env(pod, [{"name": key, "valueFrom": source} for key, source in sources.items()])
    volume = config_name(job)
    mount(pod, {"name": volume, "configMap": {"name": volume}}, [{"name": volume, "mountPath": FOLDER}])


def keys(scene: PluginJob) -> list[str]:
    """The names of the variables. Called for every pod, so no host list is built."""
    found: list[str] = []
    for task in scene.spec.tasks:
        word = names.variable(task.name)
        found += [f"VC_{word}_HOSTS"] if fits_a_variable(scene, task) else []
        found.append(f"VC_{word}_NUM")
    return found


def variables(scene: PluginJob) -> dict[str, str]:
    """VC_<TASK>_HOSTS and VC_<TASK>_NUM of every task; without lists too long to start a process with."""
    found: dict[str, str] = {}
    for task in scene.spec.tasks:
        hosts, word = scene.hosts(task), names.variable(task.name)
        if fits_a_variable(scene, task):
            found[f"VC_{word}_HOSTS"] = ",".join(hosts)
        found[f"VC_{word}_NUM"] = str(len(hosts))
    return found


def fits_a_variable(scene: PluginJob, task: TaskSpec) -> bool:
    """Whether the hosts of a task, comma-separated, can be passed to a process; computed from the longest."""
    longest = names.pod_name(scene.job, task.name, max(task.replicas - 1, 0))
    subdomain = (task.template.get("spec") or {}).get("subdomain") or scene.job
    return (len(longest) + len(subdomain) + 2) * task.replicas <= LONGEST_VARIABLE


def config(scene: PluginJob) -> Obj:
    """The data of the ConfigMap: a file per task, and the variables."""
    files = {f"{task.name.replace('-', '_')}.host": "\n".join(scene.hosts(task)) for task in scene.spec.tasks}
    return {"data": {**files, **variables(scene)}}


def service(scene: PluginJob, flags: dict[str, Any]) -> Obj:
    """Headless: a name per pod. Kubernetes requires a port of every Service; no process listens there."""
    return {
        "spec": {
            "clusterIP": "None",
            "selector": selector(scene),
            "publishNotReadyAddresses": bool(flags["publish-not-ready-addresses"]),
            "ports": [{"name": "placeholder-volcano", "port": 1, "protocol": "TCP", "targetPort": 1}],
        }
    }


def selector(scene: PluginJob) -> dict[str, str]:
    return {names.JOB_NAME: scene.job, names.JOB_NAMESPACE: scene.namespace}
