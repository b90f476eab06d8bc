"""Defaults of a CustomResourceDefinition: the names that follow from the kind, and no conversion."""

from __future__ import annotations

from shoal.kube.defaults.field_access import below, each, fill, fill_missing
from shoal.kube.objects import Obj

_WEBHOOK_PORT = 443


def definition(obj: Obj) -> None:
    spec = below(obj, "spec")
    names = below(spec, "names")
    kind = names.get("kind") or ""
    fill(names, "singular", kind.lower())
    if kind:
        fill(names, "listKind", f"{kind}List")
    fill_missing(spec, "conversion", {"strategy": "None"})
    webhook = spec["conversion"].get("webhook") or {}
    if service := (webhook.get("clientConfig") or {}).get("service"):
        fill_missing(service, "port", _WEBHOOK_PORT)
    status = below(obj, "status")
    if not status.get("storedVersions"):
        stored = [version.get("name") or "" for version in each(spec, "versions") if version.get("storage")]
        status["storedVersions"] = stored[:1]
    status.setdefault("conditions", None)  # present as null, as the API server serializes it
    accepted = below(status, "acceptedNames")
    fill_missing(accepted, "plural", "")
    fill_missing(accepted, "kind", "")
