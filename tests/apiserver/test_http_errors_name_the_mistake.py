"""A request that cannot be served gets a Status with the code and the reason of Kubernetes, and a clear message."""

from __future__ import annotations

import json
import logging
from typing import Any

import pytest

from kit.asgi_client import Asgi
from shoal.cluster.embedded import EmbeddedCluster

PODS = "/api/v1/namespaces/default/pods"
MAPS = "/api/v1/namespaces/default/configmaps"
NO_RESOURCE = "the server could not find the requested resource"
NOT_ALLOWED = "the server does not allow this method on the requested resource"
JSON_BODY = {"content-type": "application/json"}
MERGE = {"content-type": "application/merge-patch+json"}
JSON_PATCH = {"content-type": "application/json-patch+json"}
APPLY = {"content-type": "application/apply-patch+yaml"}
UNKNOWN_FORMAT = "the body of the request was in an unknown format - accepted media types include: "
OBJECTS = "application/json, application/yaml, application/vnd.kubernetes.protobuf"

# name: (method, path, body, headers, query), (code, reason, message)
REFUSED: dict[str, tuple[tuple[Any, ...], tuple[int, str, str]]] = {
    "unknown resource": (("GET", "/api/v1/sandwiches"), (404, "NotFound", NO_RESOURCE)),
    "unknown group": (("GET", "/apis/food.example.com/v1/sandwiches"), (404, "NotFound", NO_RESOURCE)),
    "unknown path": (("GET", "/lunch"), (404, "NotFound", NO_RESOURCE)),
    "unknown part": (("GET", f"{PODS}/p/lunch"), (404, "NotFound", NO_RESOURCE)),
    "pod without its namespace": (("GET", "/api/v1/pods/p"), (404, "NotFound", NO_RESOURCE)),
    "node in a namespace": (("GET", "/api/v1/namespaces/default/nodes"), (404, "NotFound", NO_RESOURCE)),
    "unknown object": (("GET", f"{PODS}/ghost"), (404, "NotFound", 'pods "ghost" not found')),
    "post to an object": (("POST", f"{PODS}/p", {}), (405, "MethodNotAllowed", NOT_ALLOWED)),
    "create in all namespaces": (("POST", "/api/v1/pods", {}), (405, "MethodNotAllowed", NOT_ALLOWED)),
    "write a log": (("PUT", f"{PODS}/p/log", {}), (405, "MethodNotAllowed", NOT_ALLOWED)),
    "post to version": (("POST", "/version", {}), (405, "MethodNotAllowed", NOT_ALLOWED)),
    "odd accept": (
        ("GET", PODS, b"", {"accept": "text/html"}),
        (406, "NotAcceptable", "only the following media types are accepted: application/json, application/yaml"),
    ),
    "odd content": (
        ("POST", PODS, b"x", {"content-type": "text/plain"}),
        (415, "UnsupportedMediaType", UNKNOWN_FORMAT + OBJECTS),
    ),
    "odd patch": (("PATCH", f"{PODS}/p", {}, JSON_BODY), (415, "UnsupportedMediaType", "415: Unsupported Media Type")),
    "broken json": (
        ("POST", MAPS, b'{"a":', JSON_BODY),
        (
            400,
            "BadRequest",
            "the object provided is unrecognized (must be of type ConfigMap): invalid JSON: "
            "line 1 column 6: expecting value, found the end of the document",
        ),
    ),
    "broken patch": (
        ("PATCH", f"{MAPS}/a", b"{", MERGE),
        (
            400,
            "BadRequest",
            "error decoding patch: invalid JSON: line 1 column 2: expecting property name enclosed in double quotes, "
            "found the end of the document",
        ),
    ),
    "json patch that is no list": (
        ("PATCH", f"{MAPS}/a", {}, JSON_PATCH),
        (
            400,
            "BadRequest",
            "error decoding patch: must be a list of operations, not an object",
        ),
    ),
    "apply without a manager": (
        ("PATCH", f"{MAPS}/a", {}, APPLY),
        (
            422,
            "Invalid",
            'PatchOptions.meta.k8s.io "" is invalid: fieldManager: Required value: is required for apply patch',
        ),
    ),
    "force without apply": (
        ("PATCH", f"{MAPS}/a", {}, MERGE, {"force": "true"}),
        (
            422,
            "Invalid",
            'PatchOptions.meta.k8s.io "" is invalid: force: Forbidden: may not be specified for non-apply patch',
        ),
    ),
    "odd dry run": (
        ("POST", MAPS, {}, JSON_BODY, {"dryRun": "Some"}),
        (
            422,
            "Invalid",
            'CreateOptions.meta.k8s.io "" is invalid: dryRun: Unsupported value: ["Some"]: supported values: "All"',
        ),
    ),
    "odd validation": (
        ("POST", MAPS, {}, JSON_BODY, {"fieldValidation": "Lax"}),
        (
            422,
            "Invalid",
            'CreateOptions.meta.k8s.io "" is invalid: fieldValidation: Unsupported value: "Lax": '
            'supported values: "", "Ignore", "Strict", "Warn"',
        ),
    ),
    "limit that is no number": (
        ("GET", PODS, b"", {}, {"limit": "few"}),
        (400, "BadRequest", 'limit: Invalid value: "few": must be an integer'),
    ),
    "limit beyond numbers": (
        ("GET", PODS, b"", {}, {"limit": "9" * 30}),
        (400, "BadRequest", f'limit: Invalid value: "{"9" * 30}": must be an integer of 64 bits'),
    ),
    "initial events of a list": (
        ("GET", PODS, b"", {}, {"sendInitialEvents": "true"}),
        (
            422,
            "Invalid",
            'ListOptions.meta.k8s.io "" is invalid: sendInitialEvents: Forbidden: '
            "sendInitialEvents is forbidden for list",
        ),
    ),
    "odd policy": (
        ("DELETE", f"{MAPS}/a", {"propagationPolicy": "Sideways"}, JSON_BODY),
        (
            422,
            "Invalid",
            'DeleteOptions.meta.k8s.io "" is invalid: propagationPolicy: Unsupported value: "Sideways": '
            'supported values: "Foreground", "Background", "Orphan", "nil"',
        ),
    ),
    "wrong type in options": (
        ("DELETE", f"{MAPS}/a", {"gracePeriodSeconds": "soon"}, JSON_BODY),
        (
            400,
            "BadRequest",
            "DeleteOptions.gracePeriodSeconds: must be an integer, not a string",
        ),
    ),
    "odd include": (
        ("GET", PODS, b"", {"accept": "application/json;as=Table;v=v1;g=meta.k8s.io"}, {"includeObject": "Half"}),
        (
            400,
            "BadRequest",
            "Unable to convert to Table as requested: includeObject: Invalid value: \"Half\": "
            "must be 'Metadata', 'Object', 'None', or empty",
        ),
    ),
    "exec in no pod": (("POST", f"{PODS}/ghost/exec"), (404, "NotFound", 'pods "ghost" not found')),
}  # fmt: skip


@pytest.mark.parametrize(("request_", "refusal"), REFUSED.values(), ids=REFUSED)
async def test_an_error_has_reason_and_message(
    http: Asgi, request_: tuple[Any, ...], refusal: tuple[int, str, str]
) -> None:
    method, path, body, headers, query = (*request_, *(b"", {}, {})[len(request_) - 2 :])
    answer = await http(method, path, body, headers, **query)
    status = answer.json
    assert (answer.status, status["reason"], status["message"]) == refusal
    assert (status["kind"], status["status"], status["code"]) == ("Status", "Failure", answer.status)
    assert answer.header("content-type") == "application/json"


async def test_a_body_over_the_limit_is_refused(http: Asgi) -> None:
    answer = await http("POST", MAPS, b'{"data":{"a":"' + b"x" * 3 * 1024 * 1024 + b'"}}', JSON_BODY)
    assert (answer.status, answer.json["reason"], answer.json["message"]) == (
        413,
        "RequestEntityTooLarge",
        "Request entity too large: limit is 3145728",
    )


async def test_a_method_that_is_not_allowed_gets_the_allow_header(http: Asgi) -> None:
    assert (await http("PUT", PODS, {})).header("allow") == "DELETE, GET, OPTIONS, POST"
    answer = await http("OPTIONS", f"{PODS}/p")
    assert (answer.status, answer.header("allow"), answer.body) == (204, "DELETE, GET, OPTIONS, PATCH, PUT", b"")


async def test_an_unexpected_exception_is_logged_and_not_shown(
    http: Asgi, cluster: EmbeddedCluster, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def fail(*_: Any, **__: Any) -> None:
        raise ZeroDivisionError("a secret detail")

    monkeypatch.setattr(cluster.machinery, "list", fail)
    with caplog.at_level(logging.ERROR):
        answer = await http("GET", PODS)
    assert (answer.status, answer.json["reason"], answer.json["code"]) == (500, "InternalError", 500)
    assert b"secret" not in answer.body
    assert b"Traceback" not in answer.body
    assert "ZeroDivisionError: a secret detail" in caplog.text


DOUBLED = b'{"metadata":{"name":"a","name":"b"}}'


async def test_a_duplicate_key_follows_the_field_validation(http: Asgi) -> None:
    strict = await http("POST", MAPS, DOUBLED, JSON_BODY, fieldValidation="Strict")
    assert (strict.status, strict.json["message"]) == (
        400,
        'ConfigMap in version "v1" cannot be handled as a ConfigMap: strict decoding error: '
        'duplicate field "metadata.name"',
    )
    warned = await http("POST", MAPS, DOUBLED, JSON_BODY, fieldValidation="Warn", dryRun="All")
    assert (warned.status, warned.all_of("warning")) == (201, ['299 - "duplicate field \\"metadata.name\\""'])
    ignored = await http("POST", MAPS, DOUBLED, JSON_BODY, fieldValidation="Ignore")
    assert (ignored.status, ignored.all_of("warning"), ignored.json["metadata"]["name"]) == (201, [], "b")


async def test_an_error_is_yaml_where_accepted(http: Asgi) -> None:
    answer = await http("GET", f"{PODS}/ghost", headers={"accept": "application/yaml"})
    assert (answer.status, answer.header("content-type")) == (404, "application/yaml")
    assert b"reason: NotFound" in answer.body


async def test_nothing_is_written_by_a_refused_request(http: Asgi) -> None:
    before = (await http("GET", MAPS)).json
    for request_, _ in REFUSED.values():
        method, path, body, headers, query = (*request_, *(b"", {}, {})[len(request_) - 2 :])
        await http(method, path, body, headers, **query)
    after = (await http("GET", MAPS)).json
    assert json.dumps(after) == json.dumps(before)
