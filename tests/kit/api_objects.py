"""Objects and refusals for tests of the API: builders for the ordinary parts, and whole Status objects.

A builder gives the smallest manifest a server accepts; what a test is about is passed in. `settled` takes
away what no two runs share (uid, versions, times, bookkeeping), so that the rest is compared as a whole.
"""

from __future__ import annotations

import copy
import re
from typing import Any

from kit.eventually import answer_turns
from kit.raw_api import Api, Obj

BOOKKEEPING = ("uid", "resourceVersion", "creationTimestamp")


def config_map(name: str, data: dict[str, str] | None = None, **metadata: Any) -> Obj:
    obj: Obj = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, **metadata}}
    return obj | ({"data": data} if data is not None else {})


def pod(name: str, metadata: Obj | None = None, **spec: Any) -> Obj:
    """A pod that asks for no token, so that admission adds no volume to it."""
    ordinary = {"containers": [container()], "automountServiceAccountToken": False}
    meta = {"name": name, **(metadata or {})}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": ordinary | spec}


def container(name: str = "main", **more: Any) -> Obj:
    return {"name": name, "image": "tool:1"} | more


def service(name: str, **spec: Any) -> Obj:
    ordinary = {"selector": {"app": name}, "ports": [{"port": 80}]}
    return {"apiVersion": "v1", "kind": "Service", "metadata": {"name": name}, "spec": ordinary | spec}


def secret(name: str, **more: Any) -> Obj:
    return {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": name}} | more


def lease(name: str, **spec: Any) -> Obj:
    return {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": {"name": name}, "spec": spec}


def owned_by(owner: Obj, *, block: bool | None = None, controller: bool | None = None) -> Obj:
    reference = {key: owner[key] for key in ("apiVersion", "kind")}
    reference |= {"name": owner["metadata"]["name"], "uid": owner["metadata"]["uid"]}
    flags = {"blockOwnerDeletion": block, "controller": controller}
    return reference | {key: value for key, value in flags.items() if value is not None}


ANYTHING: Obj = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}


def crd(group: str, schema: Obj | None = None, *, versions: list[Obj] | None = None, **spec: Any) -> Obj:
    """A definition of Boats in `group`: one version `v1` with `schema`, or the versions given."""
    names = {"plural": "boats", "singular": "boat", "kind": "Boat", "listKind": "BoatList"}
    ordinary = {
        "group": group,
        "scope": "Namespaced",
        "names": names,
        "versions": versions or [version("v1", schema)],
    }
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"boats.{group}"},
        "spec": ordinary | spec,
    }


def version(name: str, schema: Obj | None = None, *, storage: bool = True, served: bool = True, **more: Any) -> Obj:
    shape = {"openAPIV3Schema": schema or ANYTHING}
    return {"name": name, "served": served, "storage": storage, "schema": shape} | more


def boat(group: str, name: str, *, version: str = "v1", metadata: Obj | None = None, **more: Any) -> Obj:
    meta = {"name": name, **(metadata or {})}
    return {"apiVersion": f"{group}/{version}", "kind": "Boat", "metadata": meta} | more


BOAT_SCHEMA: Obj = {
    "type": "object",
    "properties": {
        "spec": {
            "type": "object",
            "required": ["size"],
            "properties": {
                "size": {"type": "integer", "minimum": 1, "maximum": 10},
                "mode": {"type": "string", "enum": ["sail", "row"], "default": "sail"},
                "flag": {"type": "string", "nullable": True, "pattern": "^x+$", "maxLength": 3},
                "either": {"x-kubernetes-int-or-string": True},
                "free": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
                "tags": {"type": "object", "additionalProperties": {"type": "string"}},
                "ports": {"type": "array", "x-kubernetes-list-type": "set", "items": {"type": "string"}},
                "crew": {
                    "type": "array",
                    "x-kubernetes-list-type": "map",
                    "x-kubernetes-list-map-keys": ["name"],
                    "items": {
                        "type": "object",
                        "required": ["name"],
                        "properties": {"name": {"type": "string"}, "role": {"type": "string", "default": "hand"}},
                    },
                },
            },
        },
        "status": {
            "type": "object",
            "properties": {
                "phase": {"type": "string"},
                "replicas": {"type": "integer"},
                "selector": {"type": "string"},
            },
        },
    },
}


def settled(obj: Obj) -> Obj:
    """The object without what differs from run to run. Each of those must have been there."""
    rest = copy.deepcopy(obj)
    for name in BOOKKEEPING:
        assert rest["metadata"].pop(name, None), f"metadata.{name} is missing in {obj}"
    rest["metadata"].pop("managedFields", None)  # absent where nobody set a field that can be owned
    return rest


def names(listed: Obj) -> list[str]:
    return [item["metadata"]["name"] for item in listed["items"]]


def seen(events: list[Obj]) -> list[tuple[str, str]]:
    """The type of each event and the name of its object."""
    return [(event["type"], event["object"]["metadata"]["name"]) for event in events]


def failure(code: int, reason: str, message: str, **details: Any) -> Obj:
    """A whole Status. Details are left out where none are named; `about={}` gives empty ones."""
    status: Obj = {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure", "message": message}
    if reason:
        status["reason"] = reason
    if details:
        status["details"] = details.pop("about", {}) | details
    return status | {"code": code}


def cause(field: str, message: str, reason: str = "FieldValueInvalid") -> Obj:
    return {"reason": reason, "message": message, "field": field}


def required(field: str, why: str = "") -> Obj:
    return cause(field, f"Required value: {why}" if why else "Required value", "FieldValueRequired")


def invalid(kind: str, name: str, *causes: Obj, group: str = "") -> Obj:
    """422 with every mistake: one is told alone, several in brackets."""
    told = [f"{each['field']}: {each['message']}" for each in causes]
    listed = told[0] if len(told) == 1 else f"[{', '.join(told)}]"
    about = ({"name": name} if name else {}) | ({"group": group} if group else {}) | {"kind": kind}
    qualified = f"{kind}.{group}" if group else kind
    message = f'{qualified} "{name}" is invalid: {listed}'
    return failure(422, "Invalid", message, about=about, causes=list(causes))


def not_found(resource: str, name: str, group: str = "") -> Obj:
    about = {"name": name} | ({"group": group} if group else {}) | {"kind": resource}
    qualified = f"{resource}.{group}" if group else resource
    return failure(404, "NotFound", f'{qualified} "{name}" not found', about=about)


STALE = "the object has been modified; please apply your changes to the latest version and try again"


def conflict(resource: str, name: str, why: str = STALE, group: str = "") -> Obj:
    about = {"name": name} | ({"group": group} if group else {}) | {"kind": resource}
    qualified = f"{resource}.{group}" if group else resource
    return failure(409, "Conflict", f'Operation cannot be fulfilled on {qualified} "{name}": {why}', about=about)


def without_storage(status: Obj) -> Obj:
    """A failed precondition without the address inside etcd that a real server puts before the reason."""
    message = re.sub(r"StorageError: .*AdditionalErrorMsg: ", "", status["message"])
    return status | {"message": message}


def told_once(status: Obj) -> Obj:
    """A real server checks the metadata of a patched object twice and then lists the same cause twice."""
    causes = [each for n, each in enumerate(status["details"]["causes"]) if each not in status["details"]["causes"][:n]]
    return status | {"details": status["details"] | {"causes": causes}}


def serve(api: Api, definition: Obj) -> Obj:
    """Create a definition, or find that another test process of this plane did, and wait until its first served
    version answers."""
    definitions = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
    name = definition["metadata"]["name"]
    made = api.post(definitions, definition)
    created = api.get(f"{definitions}/{name}").ok() if made.status == 409 else made.ok()
    version = created["metadata"]["resourceVersion"]
    if not is_established(created):
        with api.watch(definitions, fieldSelector=f"metadata.name={name}", resourceVersion=version) as watch:
            created = watch.until(lambda event: is_established(event["object"]))[-1]["object"]
    spec = created["spec"]
    served = next(each["name"] for each in spec["versions"] if each["served"])
    group, plural = f"/apis/{spec['group']}/{served}", spec["names"]["plural"]
    # Nothing tells when a real server has put the new path up, nor, from another part of it, what is discovered there;
    # Established comes a moment before.
    answer_turns(lambda: api.get(f"{group}/{plural}"), lambda answer: answer.status == 200)
    answer_turns(lambda: api.get(group), lambda answer: answer.status == 200 and plural in _plurals(answer.ok()))
    return created


def _plurals(group: Obj) -> list[str]:
    return [resource["name"] for resource in group["resources"]]


def is_established(definition: Obj) -> bool:
    conditions = definition.get("status", {}).get("conditions") or []
    return any(each["type"] == "Established" and each["status"] == "True" for each in conditions)
