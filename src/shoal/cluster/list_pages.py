"""Lists: a selection in key order, whole or in pages, of now or of a version history still reaches.

A continue token carries the revision of its first page, so that all pages show one moment. When that moment is no
longer kept the response is 410 with a token that continues at the present, as Kubernetes offers.
"""

from __future__ import annotations

import base64
import binascii
from bisect import bisect_left
from dataclasses import dataclass

import msgspec

from shoal.cluster.selection import Predicate
from shoal.cluster.store import Store, Table
from shoal.cluster.store.tables import key_at, order_of
from shoal.cluster.types import ListOptions, Stored, StoredPage, WatchOptions
from shoal.kube.errors import ApiError, Cause, bad_request, expired, invalid
from shoal.kube.kinds import Kind
from shoal.kube.objects import Key

_TOKEN_VERSION = "meta.k8s.io/v1"  # noqa: S105 - a format's name, no secret
_LIST_OPTIONS = Kind("meta.k8s.io", "v1", "ListOptions", "listoptions", False)
_PRESENT = -1  # the revision of a token that continues with whatever exists now

_CONTINUE_EXPIRED = (
    "The provided continue parameter is too old to display a consistent list result. You can start a new list "
    "without the continue parameter, or use the continue token in this response to retrieve the remainder of the "
    "results. Continuing with the provided token results in an inconsistent list - objects that were created, "
    "modified, or deleted between the time the first chunk was returned and now may show up in the list."
)


class _Token(msgspec.Struct):
    v: str = ""
    rv: int = 0
    start: str = ""


@dataclass(frozen=True, slots=True)
class _View:
    """One moment of a table: its keys in order, its objects, its revision."""

    order: list[str]
    objects: dict[Key, Stored]
    revision: int

    def bounds(self, namespace: str | None, start: str) -> tuple[int, int]:
        first, last = 0, len(self.order)
        if namespace is not None:
            first = bisect_left(self.order, f"{namespace}/")
            last = bisect_left(self.order, f"{namespace}0")  # '0' is right after '/'
        if start:
            first = max(first, bisect_left(self.order, start))
        return first, last


def page(
    store: Store, table: Table, namespace: str | None, predicate: Predicate | None, options: ListOptions
) -> StoredPage:
    """`predicate` covers labels, fields and namespace. Call with everything committed."""
    token = _read_token(options.continue_token) if options.continue_token else None
    view = _view(store, table, options, token)
    first, last = view.bounds(namespace, token.start if token else "")
    plain = not options.labels and not options.fields
    limit = options.limit
    items: list[Stored] = []
    for index in range(first, last):
        stored = view.objects[key_at(view.order[index])]
        if not plain and predicate is not None and not predicate(stored):
            continue
        if limit and len(items) == limit:  # this item belongs to the next page, so there is one
            # The rest of a selection is not counted: every object would have to be matched.
            remaining = last - index if plain else None
            last_item = order_of(items[-1].key)
            next_token = _encode_token(_Token(_TOKEN_VERSION, view.revision, last_item + "\0"))
            return StoredPage(items, view.revision, next_token, remaining)
        items.append(stored)
    return StoredPage(items, view.revision)


def check_options(options: ListOptions) -> None:
    """422 for combinations that have no meaning."""
    match, problems = options.resource_version_match, []
    if match:
        if not options.resource_version:
            problems.append(_forbidden("resourceVersionMatch is forbidden unless resourceVersion is provided"))
        if options.continue_token:
            problems.append(_forbidden("resourceVersionMatch is forbidden when continue is provided"))
        if match not in ("Exact", "NotOlderThan"):
            problems.append(_unsupported(match, '"Exact", "NotOlderThan", ""'))
        if match == "Exact" and options.resource_version == "0":
            problems.append(_forbidden('resourceVersionMatch "exact" is forbidden for resourceVersion "0"'))
    if problems:
        raise invalid(_LIST_OPTIONS, "", problems)


def check_watch_options(options: WatchOptions) -> None:
    match, problems = options.resource_version_match, []
    if options.initial_events is not None and match != "NotOlderThan":
        problems.append(_forbidden("sendInitialEvents requires setting resourceVersionMatch to NotOlderThan"))
    if match and options.initial_events is None:
        problems.append(_forbidden("resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided"))
    if match and match != "NotOlderThan":
        problems.append(_unsupported(match, '"NotOlderThan"'))
    if problems:
        raise invalid(_LIST_OPTIONS, "", problems)


def _forbidden(why: str) -> Cause:
    return Cause("FieldValueForbidden", f"Forbidden: {why}", "resourceVersionMatch")


def _unsupported(match: str, supported: str) -> Cause:
    message = f'Unsupported value: "{match}": supported values: {supported}'
    return Cause("FieldValueNotSupported", message, "resourceVersionMatch")


def _view(store: Store, table: Table, options: ListOptions, token: _Token | None) -> _View:
    revision = _exact_revision(store, options, token)
    if revision is None or revision == store.committed:
        return _View(table.order, table.objects, store.committed)
    if revision < store.compacted:
        if token is not None:
            error = expired(_CONTINUE_EXPIRED)
            error.list_metadata = {"continue": _encode_token(_Token(_TOKEN_VERSION, _PRESENT, token.start))}
            raise error
        raise expired("The resourceVersion for the provided list is too old.")
    objects = table.state_at(revision)
    return _View(sorted(map(order_of, objects)), objects, revision)


def _exact_revision(store: Store, options: ListOptions, token: _Token | None) -> int | None:
    """The revision a list must be served at; None for the present."""
    requested = parse_version(options.resource_version, prefix="invalid resource version: ")
    if token is not None:
        if requested:
            raise bad_request("specifying resource version is not allowed when using continue")
        return None if token.rv == _PRESENT else _check_not_future(store, token.rv)
    if not requested:
        return None
    _check_not_future(store, requested)
    match = options.resource_version_match
    return requested if match == "Exact" or (not match and options.limit) else None


def _check_not_future(store: Store, revision: int) -> int:
    if revision > store.committed:
        raise too_large_version(revision, store.committed)
    return revision


def too_large_version(requested: int, current: int) -> ApiError:
    cause = {"reason": "ResourceVersionTooLarge", "message": "Too large resource version"}
    details = {"causes": [cause], "retryAfterSeconds": 1}
    return ApiError(504, "Timeout", f"Timeout: Too large resource version: {requested}, current: {current}", details)


_MAX_DIGITS = 20  # of 2**64


def parse_version(text: str, *, prefix: str = "") -> int:
    """A resourceVersion parameter as a number; '' reads as 0. `prefix` begins the error message."""
    if not text:
        return 0
    if text.isascii() and text.isdigit() and len(text) <= _MAX_DIGITS and int(text) < 1 << 64:
        return int(text)
    raise bad_request(f'{prefix}resourceVersion: Invalid value: "{text}": must be an integer from 0 to 2^64-1')


def _encode_token(token: _Token) -> str:
    return base64.urlsafe_b64encode(msgspec.json.encode(token)).decode().rstrip("=")


def _read_token(text: str) -> _Token:
    try:
        token = msgspec.json.decode(base64.urlsafe_b64decode(text + "=" * (-len(text) % 4)), type=_Token)
    except (binascii.Error, ValueError, msgspec.MsgspecError) as error:
        raise bad_request(f"invalid continue token: continue key is not valid: {error}") from None
    if token.v != _TOKEN_VERSION or not token.rv or not token.start:
        raise bad_request("invalid continue token: continue key is not valid: it was not given out by this server")
    return token
