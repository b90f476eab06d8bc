"""Errors of the API: one exception that is a Kubernetes Status.

The code, the reason and the message are those clients rely on. A message names the field or the object it is about, so
that a user can act on it without reading anything else.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from shoal.kube.kinds import Kind
from shoal.kube.objects import Obj


@dataclass(frozen=True, slots=True)
class Cause:
    """One error: its kind, a message that describes it, and the path of the field."""

    reason: str  # FieldValueInvalid, FieldValueRequired, FieldValueDuplicate, FieldValueNotSupported, ...
    message: str
    field: str = ""

    def __str__(self) -> str:
        return f"{self.field}: {self.message}" if self.field else self.message


MAX_CAUSES_CHARACTERS = 2**18


def bounded(causes: Iterable[Cause]) -> list[Cause]:
    """The first errors, and a note that there are more where all would make a response of megabytes.

    An object may hold a hundred thousand wrong values, and a cause may show the whole list that a value stands in.
    """
    kept, characters = [], 0
    for cause in causes:
        if characters > MAX_CAUSES_CHARACTERS:
            kept.append(Cause("FieldValueInvalid", "there are more mistakes, which are not listed"))
            break
        kept.append(cause)
        characters += len(cause.field) + len(cause.message)
    return kept


class ApiError(Exception):
    """A request the API refused, as the Status object a client receives."""

    def __init__(self, code: int, reason: str, message: str, details: dict[str, Any] | None = None) -> None:
        super().__init__(message)
        self.code = code
        self.reason = reason
        self.message = message
        self.details = details
        self.list_metadata: dict[str, Any] = {}  # of a refused list: where it could go on

    def __repr__(self) -> str:
        return f"ApiError({self.code}, {self.reason!r}, {self.message!r})"

    def status(self) -> Obj:
        status: Obj = {
            "kind": "Status",
            "apiVersion": "v1",
            "metadata": dict(self.list_metadata),
            "status": "Failure",
            "message": self.message,
            "reason": self.reason,
        }
        if self.details is not None:
            status["details"] = self.details
        status["code"] = self.code
        return status

    @property
    def causes(self) -> tuple[Cause, ...]:
        found = (self.details or {}).get("causes") or ()
        return tuple(Cause(c.get("reason", ""), c.get("message", ""), c.get("field", "")) for c in found)


def _about(kind: Kind, name: str, **more: Any) -> dict[str, Any]:
    details: dict[str, Any] = {}
    if name:
        details["name"] = name
    if kind.group:
        details["group"] = kind.group
    details["kind"] = kind.plural
    return {**details, **more}


def not_found(kind: Kind, name: str) -> ApiError:
    return ApiError(404, "NotFound", f'{kind.resource} "{name}" not found', _about(kind, name))


def no_such_path() -> ApiError:
    return ApiError(404, "NotFound", "the server could not find the requested resource", {})


def already_exists(kind: Kind, name: str) -> ApiError:
    return ApiError(409, "AlreadyExists", f'{kind.resource} "{name}" already exists', _about(kind, name))


def conflict(kind: Kind, name: str, why: str) -> ApiError:
    message = f'Operation cannot be fulfilled on {kind.resource} "{name}": {why}'
    return ApiError(409, "Conflict", message, _about(kind, name))


STALE = "the object has been modified; please apply your changes to the latest version and try again"


def stale(kind: Kind, name: str) -> ApiError:
    """The write was made against an older version of the object."""
    return conflict(kind, name, STALE)


def invalid(kind: Kind, name: str, causes: Iterable[Cause]) -> ApiError:
    """All errors at once, in the wording of Kubernetes: one alone, several in brackets."""
    found = bounded(causes)
    texts = list(dict.fromkeys(str(c) for c in found))
    listed = texts[0] if len(texts) == 1 else f"[{', '.join(texts)}]"
    details = _about(kind, name, causes=[{"reason": c.reason, "message": c.message, "field": c.field} for c in found])
    details["kind"] = kind.kind
    return ApiError(422, "Invalid", f'{kind.qualified_kind} "{name}" is invalid: {listed}', details)


def bad_request(message: str) -> ApiError:
    return ApiError(400, "BadRequest", message)


def unauthorized() -> ApiError:
    return ApiError(401, "Unauthorized", "Unauthorized")


def forbidden(kind: Kind, name: str, why: str) -> ApiError:
    return ApiError(403, "Forbidden", f'{kind.resource} "{name}" is forbidden: {why}', _about(kind, name))


def method_not_allowed() -> ApiError:
    return ApiError(405, "MethodNotAllowed", "the server does not allow this method on the requested resource", {})


def expired(message: str) -> ApiError:
    """The requested version is no longer kept: list again (HTTP 410)."""
    return ApiError(410, "Expired", message)


def too_large(message: str) -> ApiError:
    return ApiError(413, "RequestEntityTooLarge", message)


def is_too_large(refused: ApiError) -> bool:
    """Whether the object is larger than the server stores. etcd's own limit is reported as an internal error."""
    if refused.code == 413 or "request is too large" in refused.message or "larger than max" in refused.message:
        return True
    return any(
        cause.reason == "FieldValueTooLong" and cause.field == "metadata.annotations" for cause in refused.causes
    )


def unsupported_media_type(message: str) -> ApiError:
    return ApiError(415, "UnsupportedMediaType", message)


def unavailable(message: str) -> ApiError:
    return ApiError(503, "ServiceUnavailable", message)
