"""OpenAPI documents: what the API serves, for `kubectl explain`, client-side validation and generated clients.

`document` describes one group and version in OpenAPI 3.0, `v2` everything in Swagger 2.0. Both are plain data made from
the kinds (`operations`) and their schemas (`components`); the server caches them until the kinds change. kubectl needs:
the kind on each operation, `fieldValidation` on PATCH, the strategic merge content type where that patch is served, and
merge keys on lists.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from shoal.kube.kinds import Kind
from shoal.kube.openapi.components import Components, as_v2
from shoal.kube.openapi.operations import paths_of, paths_of_v2

INFO = {"title": "Kubernetes", "version": "unversioned"}


def document(kinds: Iterable[Kind], group: str, version: str) -> dict[str, Any]:
    """OpenAPI 3.0 of one group and version. Kinds of others are passed over."""
    components = Components()
    paths: dict[str, Any] = {}
    for kind in kinds:
        if (kind.group, kind.version) == (group, version):
            paths |= paths_of(kind, components)
    return {
        "openapi": "3.0.0",
        "info": INFO,
        "paths": paths,
        "components": {
            "schemas": components.schemas(),
            "securitySchemes": {
                "BearerToken": {
                    "type": "apiKey",
                    "in": "header",
                    "name": "authorization",
                    "description": "The token from the kubeconfig, as: Bearer TOKEN",
                }
            },
        },
        "security": [{"BearerToken": []}],
    }


def v2(kinds: Iterable[Kind]) -> dict[str, Any]:
    """Swagger 2.0 of all kinds: the same facts in the older form."""
    components = Components()
    paths: dict[str, Any] = {}
    for kind in kinds:
        paths |= paths_of_v2(kind, components)
    return {
        "swagger": "2.0",
        "info": INFO,
        "paths": as_v2(paths),
        "definitions": as_v2(components.schemas()),
        "securityDefinitions": {"BearerToken": {"type": "apiKey", "in": "header", "name": "authorization"}},
        "security": [{"BearerToken": []}],
    }
