"""Query parameters and option bodies, read into the records the machinery takes.

Invalid numbers give 400; values outside a list of choices give 422 about the options object. Both name the field.
Unknown parameters are ignored, as the API promises.
"""

from __future__ import annotations

from functools import lru_cache
from typing import NoReturn
from urllib.parse import parse_qsl

from shoal.cluster.client import DeleteOptions, DeletionPropagation, LogOptions, PatchType, Preconditions
from shoal.cluster.types import ListOptions, WatchOptions, WriteOptions
from shoal.kube import times
from shoal.kube.errors import Cause, bad_request, invalid
from shoal.kube.kinds import Kind
from shoal.kube.objects import Obj

Query = dict[str, list[str]]

_FIELD_VALIDATION = ("Ignore", "Strict", "Warn")
_MANAGER_LIMIT = 128
_INT64 = 2**63


@lru_cache(maxsize=1024)
def read(query_string: bytes) -> Query:
    """Every parameter with its values in order. Shared between requests: never changed."""
    found: Query = {}
    for name, value in parse_qsl(query_string.decode("latin-1"), keep_blank_values=True):
        found.setdefault(name, []).append(value)
    return found


def text(query: Query, name: str) -> str:
    return query[name][0] if name in query else ""


def flag(query: Query, name: str) -> bool:
    """Present and not plainly no."""
    return name in query and query[name][0].lower() not in ("0", "false")


def number(query: Query, name: str) -> int | None:
    if name not in query:
        return None
    raw_value = query[name][0]
    try:
        if not raw_value.lstrip("+-").isascii() or "_" in raw_value or raw_value != raw_value.strip():
            raise ValueError
        value = int(raw_value)
    except ValueError:
        raise bad_request(f'{name}: Invalid value: "{raw_value}": must be an integer') from None
    if not -_INT64 <= value < _INT64:
        raise bad_request(f'{name}: Invalid value: "{raw_value}": must be an integer of 64 bits')
    return value


def write_options(query: Query, user_agent: bytes, verb: str, patch_type: PatchType | None = None) -> WriteOptions:
    """`verb` is Create, Update or Patch: it names the options object in a refusal."""
    if not query and patch_type is not PatchType.APPLY:
        return _plain_options(user_agent)
    manager = text(query, "fieldManager")
    validation = text(query, "fieldValidation")
    causes = _dry_run_causes(query.get("dryRun", []))
    if len(manager.encode()) > _MANAGER_LIMIT:
        too_long = f"Too long: may not be more than {_MANAGER_LIMIT} bytes"
        causes.append(Cause("FieldValueTooLong", too_long, "fieldManager"))
    for position, char in enumerate(manager):
        if not char.isprintable():
            quoted = manager.encode("unicode_escape").decode().replace('"', '\\"')
            reason = f"invalid character U+{ord(char):04X} (at position {position})"
            causes.append(Cause("FieldValueInvalid", f'Invalid value: "{quoted}": {reason}', "fieldManager"))
    if validation and validation not in _FIELD_VALIDATION:
        causes.append(_unsupported("fieldValidation", f'"{validation}"', ("", *_FIELD_VALIDATION)))
    if patch_type is PatchType.APPLY and not manager:
        causes.insert(0, Cause("FieldValueRequired", "Required value: is required for apply patch", "fieldManager"))
    if patch_type not in (None, PatchType.APPLY) and "force" in query:
        causes.insert(0, Cause("FieldValueForbidden", "Forbidden: may not be specified for non-apply patch", "force"))
    if causes:
        _raise_invalid(f"{verb}Options", causes)
    return WriteOptions(
        field_manager=manager or _manager_from(user_agent),
        dry_run="dryRun" in query and query["dryRun"] != [""],
        field_validation=validation or "Warn",
        force=flag(query, "force"),
    )


@lru_cache(maxsize=256)
def _plain_options(user_agent: bytes) -> WriteOptions:
    return WriteOptions(field_manager=_manager_from(user_agent))


def _manager_from(user_agent: bytes) -> str:
    """The field manager if the request names none: the program's name from its User-Agent."""
    name = user_agent.decode("utf-8", "replace").partition("/")[0]
    return "".join(c for c in name if c.isprintable()).encode()[:_MANAGER_LIMIT].decode("utf-8", "ignore") or "unknown"


def _dry_run_causes(raw_value: list[str]) -> list[Cause]:
    if all(value in ("All", "") for value in raw_value):
        return []
    display = "[" + ",".join(f'"{value}"' for value in raw_value) + "]"
    return [_unsupported("dryRun", display, ("All",))]


def _unsupported(field: str, display: str, supported: tuple[str, ...]) -> Cause:
    choices = ", ".join(f'"{choice}"' for choice in supported)
    return Cause("FieldValueNotSupported", f"Unsupported value: {display}: supported values: {choices}", field)


def _raise_invalid(options_kind: str, causes: list[Cause]) -> NoReturn:
    raise invalid(Kind("meta.k8s.io", "v1", options_kind, options_kind.lower()), "", causes)


def list_options(query: Query) -> ListOptions:
    if not query:
        return _EVERYTHING
    if "sendInitialEvents" in query:
        _raise_invalid("ListOptions", [_forbidden("sendInitialEvents", "sendInitialEvents is forbidden for list")])
    limit = number(query, "limit") or 0
    return ListOptions(
        labels=text(query, "labelSelector"),
        fields=text(query, "fieldSelector"),
        limit=max(limit, 0),
        continue_token=text(query, "continue"),
        resource_version=text(query, "resourceVersion"),
        resource_version_match=text(query, "resourceVersionMatch"),
    )


_EVERYTHING = ListOptions()


def watch_options(query: Query) -> WatchOptions:
    seconds = number(query, "timeoutSeconds")
    return WatchOptions(
        resource_version=text(query, "resourceVersion"),
        labels=text(query, "labelSelector"),
        fields=text(query, "fieldSelector"),
        bookmarks=flag(query, "allowWatchBookmarks"),
        initial_events=flag(query, "sendInitialEvents") if "sendInitialEvents" in query else None,
        timeout_seconds=float(seconds) if seconds is not None and seconds > 0 else None,
        resource_version_match=text(query, "resourceVersionMatch"),
    )


def _forbidden(field: str, reason: str) -> Cause:
    return Cause("FieldValueForbidden", f"Forbidden: {reason}", field)


def delete_options(query: Query, body: Obj | None) -> DeleteOptions:
    """From the body where there is one, else from the query, never from both."""
    options: Obj = {}
    if body is not None:
        options = body
    else:
        if "gracePeriodSeconds" in query:
            options["gracePeriodSeconds"] = number(query, "gracePeriodSeconds")
        if "propagationPolicy" in query:
            options["propagationPolicy"] = text(query, "propagationPolicy")
        if "orphanDependents" in query:
            options["orphanDependents"] = flag(query, "orphanDependents")
        if "dryRun" in query:
            options["dryRun"] = query["dryRun"]
    policy, orphan = options.get("propagationPolicy"), options.get("orphanDependents")
    dry_run = options.get("dryRun") or []
    causes = []
    if policy is not None and orphan is not None:
        reason = "orphanDependents and deletionPropagation cannot be both set"
        causes.append(Cause("FieldValueInvalid", f'Invalid value: "{policy}": {reason}', "propagationPolicy"))
    if policy is not None and policy not in set(DeletionPropagation):
        causes.append(
            _unsupported("propagationPolicy", f'"{policy}"', (*(p.value for p in DeletionPropagation), "nil"))
        )
    causes += _dry_run_causes(dry_run)
    if causes:
        _raise_invalid("DeleteOptions", causes)
    preconditions = options.get("preconditions") or {}
    propagation = DeletionPropagation(policy) if policy is not None else None
    if policy is None and orphan is not None:
        propagation = DeletionPropagation.ORPHAN if orphan else DeletionPropagation.BACKGROUND
    return DeleteOptions(
        grace_seconds=options.get("gracePeriodSeconds"),
        propagation=propagation,
        preconditions=Preconditions(preconditions.get("uid"), preconditions.get("resourceVersion")),
        dry_run=any(dry_run),
    )


def log_options(query: Query, container: str, pod: str) -> LogOptions:
    tail, limit, since = number(query, "tailLines"), number(query, "limitBytes"), number(query, "sinceSeconds")
    since_time = text(query, "sinceTime") or None
    if since_time is not None:
        try:
            since_time = times.rfc3339_micro(times.parse(since_time))
        except ValueError:
            example = "must be a time such as 2026-01-31T08:00:00Z"
            raise bad_request(f'sinceTime: Invalid value: "{since_time}": {example}') from None
    causes = []
    if tail is not None and tail < 0:
        causes.append(_bad_number("tailLines", tail, "must be greater than or equal to 0"))
    if limit is not None and limit < 1:
        causes.append(_bad_number("limitBytes", limit, "must be greater than 0"))
    if since is not None and since_time is not None:
        causes.append(_forbidden("", "at most one of `sinceTime` or `sinceSeconds` may be specified"))
    elif since is not None and since < 1:
        causes.append(_bad_number("sinceSeconds", since, "must be greater than 0"))
    if causes:
        raise invalid(Kind("", "v1", "PodLogOptions", "podlogoptions"), pod, causes)
    return LogOptions(
        container=container,
        follow=flag(query, "follow"),
        previous=flag(query, "previous"),
        tail_lines=tail,
        since_seconds=since,
        since_time=since_time,
        timestamps=flag(query, "timestamps"),
        limit_bytes=limit,
    )


def _bad_number(field: str, value: int, reason: str) -> Cause:
    return Cause("FieldValueInvalid", f"Invalid value: {value}: {reason}", field)
