"""Defaults of a Pod: the spec as an API server stores it, with the tolerations and the account admission adds.

The order matters in two places only: amounts are written canonically before requests are copied from
limits, and container ports are complete before host networking copies them.
"""

from __future__ import annotations

import re
from functools import lru_cache

from shoal.kube.defaults import storage_defaults
from shoal.kube.defaults.field_access import amount, amounts, below, each, fill, fill_missing
from shoal.kube.objects import Obj
from shoal.kube.quantity import ZERO, Quantity

FILE_MODE = 0o644
_TOLERATION_SECONDS = 300
_TOLERATED_TAINTS = ("node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable")
_PROBES = ("livenessProbe", "readinessProbe", "startupProbe")
_PROBE_SETTINGS = (("timeoutSeconds", 1), ("periodSeconds", 10), ("successThreshold", 1), ("failureThreshold", 3))
_HOOKS = ("postStart", "preStop")


def apply(pod: Obj) -> None:
    spec = below(pod, "spec")
    init = each(spec, "initContainers")
    containers = each(spec, "containers")
    for container in (*init, *containers):
        _container(container)
        resources = container["resources"]
        if limits := resources.get("limits"):
            requests = below(resources, "requests")
            for resource, value in limits.items():
                requests.setdefault(resource, value)
    for container in each(spec, "ephemeralContainers"):
        _container(container)
    for volume in each(spec, "volumes"):
        _volume(volume)
    _spec_of_template(spec)
    # serviceAccount is the deprecated name; the API server keeps both equal.
    account = spec.get("serviceAccountName") or spec.get("serviceAccount") or "default"
    spec["serviceAccountName"] = spec["serviceAccount"] = account
    fill_missing(spec, "enableServiceLinks", True)
    if spec.get("hostNetwork"):
        # Containers use the host's ports directly, so each container port occupies the host port of that number.
        for container in (*init, *containers):
            for port in each(container, "ports"):
                if not port.get("hostPort") and port.get("containerPort"):
                    port["hostPort"] = port["containerPort"]
    if spec.get("resources"):
        _pod_resources(spec)
    _tolerations(spec)
    if status := pod.get("status"):
        conditions(status)


def apply_to_template(template: Obj) -> None:
    """What is filled in when a template is stored; admission and what depends on the pod itself come with the pod."""
    below(template, "metadata")
    spec = below(template, "spec")
    for name in ("initContainers", "containers", "ephemeralContainers"):
        for container in each(spec, name):
            _container(container)
    for volume in each(spec, "volumes"):
        _volume(volume)
    _spec_of_template(spec)
    if account := spec.get("serviceAccountName") or spec.get("serviceAccount"):
        spec["serviceAccountName"] = spec["serviceAccount"] = account


def conditions(status: Obj) -> None:
    """Times that are not given are present all the same, as null."""
    for condition in each(status, "conditions"):
        fill_missing(condition, "lastProbeTime", None)
        fill_missing(condition, "lastTransitionTime", None)


def _spec_of_template(spec: Obj) -> None:
    fill(spec, "restartPolicy", "Always")
    fill_missing(spec, "terminationGracePeriodSeconds", 30)
    fill(spec, "dnsPolicy", "ClusterFirst")
    fill_missing(spec, "securityContext", {})
    fill(spec, "schedulerName", "default-scheduler")
    amounts(spec, "overhead")


def _container(container: Obj) -> None:
    resources = below(container, "resources")
    if resources:
        amounts(resources, "limits")
        amounts(resources, "requests")
    fill(container, "terminationMessagePath", "/dev/termination-log")
    fill(container, "terminationMessagePolicy", "File")
    if not container.get("imagePullPolicy"):
        container["imagePullPolicy"] = pull_policy(container.get("image") or "")
    for port in each(container, "ports"):
        fill(port, "protocol", "TCP")
    for variable in each(container, "env"):
        if (source := variable.get("valueFrom")) is not None:
            _reference(source)
    for name in _PROBES:
        if (probe := container.get(name)) is not None:
            _handler(probe)
            for setting, value in _PROBE_SETTINGS:
                if not probe.get(setting):
                    probe[setting] = value
    if lifecycle := container.get("lifecycle"):
        for name in _HOOKS:
            _handler(lifecycle.get(name) or {})


def _handler(handler: Obj) -> None:
    if (get := handler.get("httpGet")) is not None:
        fill(get, "path", "/")
        fill(get, "scheme", "HTTP")
    if (grpc := handler.get("grpc")) is not None:
        fill_missing(grpc, "service", "")


def _reference(source: Obj) -> None:
    """A value taken from the pod itself: a field or an amount of resources."""
    if (field := source.get("fieldRef")) is not None:
        fill(field, "apiVersion", "v1")
    if (resource := source.get("resourceFieldRef")) is not None:
        fill_missing(resource, "divisor", "0")
        amount(resource, "divisor")


def _volume(volume: Obj) -> None:
    # A volume without a source is an emptyDir.
    if not any(name != "name" and source is not None for name, source in volume.items()):
        volume["emptyDir"] = {}
        return
    if directory := volume.get("emptyDir"):
        amount(directory, "sizeLimit")
    if (path := volume.get("hostPath")) is not None:
        fill_missing(path, "type", "")
    for name in ("secret", "configMap", "downwardAPI", "projected"):
        source = volume.get(name)
        if source is not None:
            fill_missing(source, "defaultMode", FILE_MODE)
            _files(source)
    for source in each(volume.get("projected") or {}, "sources"):
        if downward := source.get("downwardAPI"):
            _files(downward)
        if (token := source.get("serviceAccountToken")) is not None:
            fill_missing(token, "expirationSeconds", 3600)
    if (image := volume.get("image")) is not None:
        fill(image, "pullPolicy", pull_policy(image.get("reference") or ""))
    template = (volume.get("ephemeral") or {}).get("volumeClaimTemplate")
    if template is not None:
        below(template, "metadata")
        storage_defaults.claim_spec(below(template, "spec"))


def _files(source: Obj) -> None:
    for item in each(source, "items"):
        _reference(item)


def _tolerations(spec: Obj) -> None:
    """A pod may stay five minutes on an unresponsive node, unless it specifies otherwise."""
    tolerations = each(spec, "tolerations")
    # A toleration without a key or without an effect is for every key or every effect.
    tolerated = {
        toleration.get("key") or ""
        for toleration in tolerations
        if (toleration.get("effect") or "NoExecute") == "NoExecute"
    }
    if "" not in tolerated:
        for taint in _TOLERATED_TAINTS:
            if taint not in tolerated:
                tolerations.append({
                    "key": taint, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": _TOLERATION_SECONDS,
                })  # fmt: skip
    spec["tolerations"] = tolerations


def _pod_resources(spec: Obj) -> None:
    """Requests of the pod as a whole: the total of its containers, else its own limits."""
    resources = spec["resources"]
    amounts(resources, "limits")
    amounts(resources, "requests")
    limits = resources.get("limits")
    if not limits:
        return
    requests = below(resources, "requests")
    for resource in ("cpu", "memory"):
        if resource not in requests and (total := _total_of(spec, resource)) is not None:
            requests[resource] = str(total)
    for resource, value in limits.items():
        if resource in ("cpu", "memory") or resource.startswith("hugepages-"):
            requests.setdefault(resource, value)
    if not requests:
        del resources["requests"]


def _total_of(spec: Obj, resource: str) -> Quantity | None:
    """What the containers need at once: all that run together, or the largest step of the start if that is more."""
    running, start, known = ZERO, ZERO, False
    for container in spec.get("initContainers") or ():
        request = _request(container, resource)
        known = known or request is not None
        if container.get("restartPolicy") == "Always":
            running += request or ZERO
            start = max(start, running)
        else:
            start = max(start, running + (request or ZERO))
    for container in spec.get("containers") or ():
        request = _request(container, resource)
        known = known or request is not None
        running += request or ZERO
    return max(running, start) if known else None


def _request(container: Obj, resource: str) -> Quantity | None:
    value = ((container.get("resources") or {}).get("requests") or {}).get(resource)
    return None if value is None else Quantity.parse(value)


# A tenant writes image names, and the operator and the API server match them: that takes linear time. Whether the first
# component is a host is decided after the match, as alternatives in the expression would be tried at every place.
_PART = r"[a-z0-9]+(?:(?:\.|_|__|-+)[a-z0-9]+)*"
_TAG_AND_DIGEST = r"(?::(?P<tag>\w[\w.-]{0,127}))?(?P<digest>@\S+)?"
_IMAGE = re.compile(rf"(?:(?P<host>[A-Za-z0-9.-]+(?::\d+)?)/)?{_PART}(?:/{_PART})*{_TAG_AND_DIGEST}", re.ASCII)
_HOST = re.compile(rf"{_PART}|.*:.*|[A-Za-z0-9-]*[.A-Z].*", re.ASCII)
_WORTH_REMEMBERING = 256  # characters; longer names are rare, and many of them would fill the memory


def pull_policy(image: str) -> str:
    """Always for what may change under its name: the tag `latest`, given or implied. Not for an invalid name."""
    return _remembered_policy(image) if len(image) < _WORTH_REMEMBERING else _policy(image)


def _policy(image: str) -> str:
    parts = _IMAGE.fullmatch(image)
    if parts is None or (parts["host"] is not None and not _HOST.fullmatch(parts["host"])):
        return "IfNotPresent"
    tag = parts["tag"] or ("" if parts["digest"] else "latest")
    return "Always" if tag == "latest" else "IfNotPresent"


_remembered_policy = lru_cache(maxsize=1024)(_policy)
