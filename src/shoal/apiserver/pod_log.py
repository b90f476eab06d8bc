"""A pod's logs, as its node's agent gives them, and which container a request means."""

from __future__ import annotations

from shoal.apiserver import query, responses
from shoal.apiserver.query import Query
from shoal.apiserver.responses import TEXT, StreamResponse
from shoal.cluster.embedded import EmbeddedCluster
from shoal.kube.errors import bad_request
from shoal.kube.kinds import POD
from shoal.kube.objects import Key, Obj

_CONTAINERS = ("initContainers", "containers", "ephemeralContainers")


async def logs(cluster: EmbeddedCluster, key: Key, params: Query) -> StreamResponse | responses.BytesResponse:
    """The container's output as a stream. What can be refused is refused before the stream begins."""
    pod = cluster.machinery.get(POD, key).obj()
    options = query.log_options(params, container_of(pod, query.text(params, "container")), key.name)
    if not (pod.get("spec") or {}).get("nodeName"):
        return responses.BytesResponse(b"", content_type=TEXT)  # nothing has run yet, so nothing was written
    chunks = aiter(cluster.node_services_of(pod).logs(pod, options))
    return StreamResponse(chunks, getattr(chunks, "aclose", lambda: None), TEXT, can_fail_at_start=True)


def container_of(pod: Obj, params: str) -> str:
    """The container meant: the one named, or the only one there is."""
    spec = pod.get("spec") or {}
    name = pod["metadata"]["name"]
    names = [str(c["name"]) for group in _CONTAINERS for c in spec.get(group) or ()]
    if params:
        if params not in names:
            raise bad_request(f"container {params} is not valid for pod {name}")
        return params
    if len(spec.get("containers") or ()) == 1:
        return str(spec["containers"][0]["name"])
    raise bad_request(f"a container name must be specified for pod {name}, choose one of: [{' '.join(names)}]")
