"""The paths of an OpenAPI document: for each kind its collection, its objects and its subresources.

Every operation names its kind and its verb as Kubernetes does (x-kubernetes-group-version-kind,
x-kubernetes-action): that is how kubectl finds the kind behind a resource and what may be patched.
"""

from __future__ import annotations

from typing import Any

from shoal.kube.kinds import NAMESPACE, Kind
from shoal.kube.openapi.components import Components, gvk

Operation = dict[str, Any]

_PATCH_TYPES = ("application/apply-patch+yaml", "application/json-patch+json", "application/merge-patch+json")
_STRATEGIC = "application/strategic-merge-patch+json"
_BODY_TYPES = ("application/json", "application/yaml")

# name -> JSON type and what it does
_PARAMETERS: dict[str, tuple[str, str]] = {
    "allowWatchBookmarks": ("boolean", "Send bookmarks, which carry the version reached."),
    "command": ("string", "The command to run; repeated for each argument."),
    "container": ("string", "The container; the only one, or the default one, where empty."),
    "continue": ("string", "Go on with a list from this token."),
    "dryRun": ("string", "All: check everything, store nothing."),
    "fieldManager": ("string", "Who makes the change."),
    "fieldSelector": ("string", "Only objects whose fields match."),
    "fieldValidation": ("string", "What to do about unknown fields: Ignore, Warn or Strict."),
    "follow": ("boolean", "Go on as more is written."),
    "force": ("boolean", "Take over fields that others own (apply only)."),
    "gracePeriodSeconds": ("integer", "Seconds the object is given to end in good order."),
    "labelSelector": ("string", "Only objects whose labels match."),
    "limit": ("integer", "At most so many objects; the rest on further pages."),
    "limitBytes": ("integer", "At most so many bytes."),
    "orphanDependents": ("boolean", "Older form of propagationPolicy."),
    "pretty": ("string", "true: indented output."),
    "previous": ("boolean", "The log of the container before this one."),
    "propagationPolicy": ("string", "What happens to dependents: Orphan, Background or Foreground."),
    "resourceVersion": ("string", "The version to show or to start from."),
    "resourceVersionMatch": ("string", "How resourceVersion is meant: NotOlderThan or Exact."),
    "sendInitialEvents": ("boolean", "Begin a watch with an event for each object there is."),
    "sinceSeconds": ("integer", "Only what was written in the last so many seconds."),
    "sinceTime": ("string", "Only what was written since then."),
    "stderr": ("boolean", "Pass on standard error."),
    "stdin": ("boolean", "Pass on standard input."),
    "stdout": ("boolean", "Pass on standard output."),
    "tailLines": ("integer", "Only the last so many lines."),
    "timeoutSeconds": ("integer", "Seconds the request may take."),
    "timestamps": ("boolean", "Put the time in front of each line."),
    "tty": ("boolean", "Give the command a terminal."),
    "watch": ("boolean", "Send changes as they happen, instead of a list."),
}
_LIST = (
    "allowWatchBookmarks", "continue", "fieldSelector", "labelSelector", "limit", "resourceVersion",
    "resourceVersionMatch", "sendInitialEvents", "timeoutSeconds", "watch",
)  # fmt: skip
_DELETE = ("dryRun", "gracePeriodSeconds", "orphanDependents", "propagationPolicy")
_DELETE_ALL = (
    "continue", "fieldSelector", "labelSelector", "limit", "resourceVersion", "resourceVersionMatch", *_DELETE,
)  # fmt: skip
_WRITE = ("dryRun", "fieldManager", "fieldValidation")
_LOG = (
    "container", "follow", "limitBytes", "previous", "sinceSeconds", "sinceTime", "tailLines", "timestamps",
)  # fmt: skip
_EXEC = ("command", "container", "stderr", "stdin", "stdout", "tty")


def paths_of(kind: Kind, components: Components) -> dict[str, Any]:
    """Every path of a kind."""
    return _Paths(kind, components).all()


class _Paths:
    def __init__(self, kind: Kind, components: Components) -> None:
        self.kind = kind
        self.components = components
        self.ref = components.of_kind(kind)
        root = f"/apis/{kind.group}/{kind.version}" if kind.group else f"/api/{kind.version}"
        self.everywhere = f"{root}/{kind.plural}"
        self.collection = f"{root}/namespaces/{{namespace}}/{kind.plural}" if kind.namespaced else self.everywhere
        self.object = f"{self.collection}/{{name}}"

    def all(self) -> dict[str, Any]:
        paths = {
            self.collection: self.path(get=self.list_all(), post=self.create(), **self.delete_all()),
            self.object: self.path(
                "name",
                get=self.operation("get", "read", (), self.answer(200, self.ref)),
                delete=self.operation(
                    "delete", "delete", _DELETE, self.delete_body() | self.answer(200, self.ref, 202)
                ),
                **self.writes(self.kind, self.ref),
            ),
        }
        if self.kind.namespaced:
            listing = self.list_all("ForAllNamespaces")
            paths[self.everywhere] = {"get": listing, "parameters": _parameters("pretty")}
        for subresource in sorted(self.kind.subresources):
            paths[f"{self.object}/{subresource}"] = self.path("name", **self.subresource(subresource))
        return paths

    def path(self, *named: str, **operations: Operation) -> dict[str, Any]:
        inside = [_path_parameter("namespace", "Name of the namespace.")] if self.kind.namespaced else []
        path_operations = [_path_parameter(name, f"Name of the {self.kind.kind}.") for name in named]
        return {**operations, "parameters": [*inside, *path_operations, *_parameters("pretty")]}

    def status(self) -> dict[str, str]:
        return self.components.of_type("Status", "meta")

    def list_all(self, where: str = "") -> Operation:
        return self.operation("list", "list", _LIST, self.answer(200, self.components.of_list(self.kind)), where)

    def delete_all(self) -> dict[str, Operation]:
        if self.kind == NAMESPACE:  # as in Kubernetes, namespaces are deleted one by one
            return {}
        answer = self.answer(200, self.status())
        return {"delete": self.operation("deletecollection", "delete", _DELETE_ALL, self.delete_body() | answer)}

    def create(self) -> Operation:
        return self.operation("post", "create", _WRITE, _body(self.ref) | self.answer(200, self.ref, 201, 202))

    def delete_body(self) -> Operation:
        body = _body(self.components.of_type("DeleteOptions", "meta"))
        body["requestBody"]["required"] = False
        return body

    def writes(self, kind: Kind, ref: dict[str, str], suffix: str = "") -> dict[str, Operation]:
        """PUT and PATCH of an object or a subresource."""
        accepted = _PATCH_TYPES if self.kind.custom else (*_PATCH_TYPES, _STRATEGIC)
        body = {"requestBody": {"required": True, "content": _content(self.components.of_patch(), accepted)}}
        answer = self.answer(200, ref, 201)
        return {
            "put": self.operation("put", "replace", _WRITE, _body(ref) | answer, suffix, kind),
            "patch": self.operation("patch", "patch", (*_WRITE, "force"), body | answer, suffix, kind),
        }

    def subresource(self, name: str) -> dict[str, Operation]:
        if name == "status":
            read = self.operation("get", "read", (), self.answer(200, self.ref), "Status")
            return {"get": read, **self.writes(self.kind, self.ref, "Status")}
        if name == "scale":
            ref = self.components.of_type("Scale", "autoscaling")
            scale = Kind("autoscaling", "v1", "Scale", "scales")
            read = self.operation("get", "read", (), self.answer(200, ref), "Scale", scale)
            return {"get": read, **self.writes(scale, ref, "Scale")}
        if name in ("binding", "eviction"):
            return {"post": self.request(*_REQUESTS[name])}
        if name == "finalize":
            return {
                "put": self.operation(
                    "put", "replace", _WRITE, _body(self.ref) | self.answer(200, self.ref), "Finalize"
                )
            }
        text = {"responses": {"200": {"description": "OK", "content": {"text/plain": {"schema": {"type": "string"}}}}}}
        if name == "log":
            return {"get": self.operation("get", "read", _LOG, text, "Log")}
        label = name.capitalize()
        return {
            verb: self.operation("connect", f"connect{verb.capitalize()}", _EXEC, text, label)
            for verb in ("get", "post")
        }

    def request(self, name: str, group: str) -> Operation:
        """A request for an action on an object rather than a change of it."""
        ref = self.components.of_type(name, group)
        query_parameters = Kind(group, "v1", name, name.lower())
        return self.operation(
            "post", "create", _WRITE, _body(ref) | self.answer(201, self.status()), name, query_parameters
        )

    def answer(self, code: int, ref: dict[str, str], *more: int) -> Operation:
        good = {
            str(c): {"description": _VERB_DESCRIPTIONS[c], "content": _content(ref, _BODY_TYPES)} for c in (code, *more)
        }
        refused = {"description": "Refused, with the reason", "content": _content(self.status(), _BODY_TYPES)}
        return {"responses": {**good, "401": {"description": "Unauthorized"}, "default": refused}}

    def operation(
        self,
        action: str,
        verb: str,
        query: tuple[str, ...],
        more: Operation,
        suffix: str = "",
        about: Kind | None = None,
    ) -> Operation:
        group = self.kind.group.split(".")[0].title().replace("-", "") or "Core"
        scope = "Namespaced" if self.kind.namespaced and suffix != "ForAllNamespaces" else ""
        if action == "deletecollection":
            scope = f"Collection{scope}"
        made: Operation = {
            "operationId": f"{verb}{group}{self.kind.version.capitalize()}{scope}{self.kind.kind}{suffix}",
            "description": f"{verb[:1].upper()}{verb[1:]} {self.kind.kind}{suffix and f' ({suffix})'}",
            "tags": [f"{self.kind.group or 'core'}_{self.kind.version}"],
            **more,
            "x-kubernetes-action": action,
            "x-kubernetes-group-version-kind": gvk(about or self.kind),
        }
        if query:
            made["parameters"] = _parameters(*query)
        return made


_REQUESTS = {"binding": ("Binding", ""), "eviction": ("Eviction", "policy")}
_VERB_DESCRIPTIONS = {200: "OK", 201: "Created", 202: "Accepted"}


def _content(ref: dict[str, str], types: tuple[str, ...]) -> dict[str, Any]:
    return {media_type: {"schema": ref} for media_type in types}


def _body(ref: dict[str, str]) -> Operation:
    return {"requestBody": {"required": True, "content": _content(ref, _BODY_TYPES)}}


def _path_parameter(name: str, description: str) -> dict[str, Any]:
    return {"name": name, "in": "path", "required": True, "description": description, "schema": {"type": "string"}}


def _parameters(*names: str) -> list[dict[str, Any]]:
    return [
        {"name": name, "in": "query", "description": description, "schema": {"type": kind}}
        for name, (kind, description) in ((name, _PARAMETERS[name]) for name in names)
    ]


# --- Swagger 2.0 ---------------------------------------------------------------------------------------------------


def paths_of_v2(kind: Kind, components: Components) -> dict[str, Any]:
    """The same paths with bodies as parameters and media types beside them."""
    return {
        path: {
            name: [_flat(p) for p in part] if name == "parameters" else _operation_v2(part)
            for name, part in item.items()
        }
        for path, item in paths_of(kind, components).items()
    }


def _flat(parameter: dict[str, Any]) -> dict[str, Any]:
    return {**{name: part for name, part in parameter.items() if name != "schema"}, **parameter["schema"]}


def _operation_v2(operation: Operation) -> Operation:
    made = {name: part for name, part in operation.items() if name not in ("requestBody", "parameters", "responses")}
    parameters = [_flat(parameter) for parameter in operation.get("parameters", ())]
    body = operation.get("requestBody")
    if body is not None:
        first = next(iter(body["content"].values()))
        parameters.append({"name": "body", "in": "body", "required": body["required"], "schema": first["schema"]})
        made["consumes"] = list(body["content"])
    made["parameters"] = parameters
    made["produces"] = ["application/json", "application/yaml"]
    made["responses"] = {
        code: {"description": answer["description"]}
        | ({"schema": next(iter(answer["content"].values()))["schema"]} if "content" in answer else {})
        for code, answer in operation["responses"].items()
    }
    return made
