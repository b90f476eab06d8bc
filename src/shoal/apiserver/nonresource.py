"""Paths that name no resource: health, version, metrics, discovery and the OpenAPI documents."""

from __future__ import annotations

from collections.abc import Callable

from shoal.apiserver import discovery, negotiation, request_info, responses
from shoal.apiserver.openapi import Documents
from shoal.apiserver.request import Request
from shoal.apiserver.responses import TEXT, BytesResponse
from shoal.cluster.apimachinery import Machinery
from shoal.kube.errors import method_not_allowed, no_such_path

_HEALTH = ("/healthz", "/livez", "/readyz")
_METRICS = "/metrics"

Exposition = Callable[[], tuple[bytes, str]]  # what Prometheus reads, and its content type


# kubectl requests the old document in protobuf only, and only for kinds the new documents do not have. One that
# describes nothing makes kubectl report that the kind does not exist.
_PROTOBUF = b"com.github.proto-openapi.spec.v2@v1.0+protobuf"
_EMPTY_SWAGGER = b"\x0a\x032.0"


class NonResourcePaths:
    def __init__(self, machinery: Machinery, metrics: Exposition | None = None) -> None:
        self._machinery = machinery
        self._metrics = metrics
        self._documents = Documents(machinery.kinds)

    def respond(self, request: Request) -> BytesResponse:
        response = self._respond(request)
        if response is None:
            raise no_such_path()
        if request.method not in ("GET", "HEAD"):
            raise method_not_allowed()
        return response

    def _respond(self, request: Request) -> BytesResponse | None:
        path = request.path.rstrip("/") or "/"
        if path.startswith(_HEALTH):
            name, _, check = path.removeprefix("/").partition("/")
            if f"/{name}" not in _HEALTH or check not in ("", "ping", "etcd", "log"):
                return None
            # A server that answers is alive, and ready: the store is open before the socket is.
            return BytesResponse(b"ok", content_type=TEXT)
        if path == "/version":
            return responses.object_bytes_response(discovery.version_info())
        if path == _METRICS and self._metrics is not None:
            body, content_type = self._metrics()
            return BytesResponse(body, content_type=content_type.encode())
        if path == "/":
            kinds = discovery.all_kinds(self._machinery.kinds())
            groups = sorted({f"/apis/{kind.group}/{kind.version}" for kind in kinds if kind.group})
            metrics = [_METRICS] if self._metrics is not None else []
            openapi = ["/openapi/v2", "/openapi/v3"]
            all_paths = ["/api", "/api/v1", "/apis", *groups, *_HEALTH, *metrics, *openapi, "/version"]
            return responses.object_bytes_response({"paths": all_paths})
        if path.startswith("/api"):
            return self._discovery(request, path)
        if path.startswith("/openapi/"):
            return self._openapi(request, path)
        return None

    def _discovery(self, request: Request, path: str) -> BytesResponse | None:
        kinds = discovery.all_kinds(self._machinery.kinds())
        known = request.headers.get(b"if-none-match", b"")
        if path in ("/api", "/apis"):
            version = negotiation.wants_group_list(request.headers.get(b"accept", b""))
            if version:
                document = discovery.aggregated(kinds, version, core=path == "/api")
                content_type = f"application/json;g=apidiscovery.k8s.io;v={version};as=APIGroupDiscoveryList".encode()
                return discovery.with_etag(document, known, content_type)
            host = request.headers.get(b"host", b"").decode("latin-1")
            return discovery.with_etag(
                discovery.core_versions(host) if path == "/api" else discovery.group_list(kinds), known
            )
        info = request_info.read(path)
        steps = path.split("/")
        if info is not None:
            found = discovery.resource_list(kinds, info.group, info.version)
        else:
            found = discovery.group(kinds, steps[2]) if path.startswith("/apis/") and len(steps) == 3 else None
        return discovery.with_etag(found, known) if found is not None else None

    def _openapi(self, request: Request, path: str) -> BytesResponse | None:
        if path == "/openapi/v2":
            if _PROTOBUF in request.headers.get(b"accept", b""):
                return BytesResponse(_EMPTY_SWAGGER, content_type=b"application/" + _PROTOBUF.replace(b"@", b"."))
            return discovery.with_etag(self._documents.swagger(), request.headers.get(b"if-none-match", b""))
        if path == "/openapi/v3":
            return self._documents.index()
        info = request_info.read(path.removeprefix("/openapi/v3"))
        if info is None or info.plural:
            return None
        return self._documents.document(info.group, info.version)
