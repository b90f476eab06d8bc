"""Admission over HTTP: jobs, gangs and queues are validated and defaulted at the moment they are written.

The functions of each dialect, and of the scheduler, are those that the embedded cluster calls in its own process. A
review that cannot be read is an error of the client and answered with 400; an object is rejected with every mistake and
its path.

Validating a large job takes a second or more. That happens in a thread, so that the event loop continues to renew the
Lease and to reconcile jobs; only few are validated, and few request bodies read, at the same time.
"""

from __future__ import annotations

import asyncio
import base64
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

import msgspec
from aiohttp import web

from shoal.cluster.client import Cluster, OutcomeUnknown
from shoal.controller_runtime.health import Handler
from shoal.dialects.capabilities import ClusterValidation
from shoal.dialects.dialect import Dialect, warnings_of, write_errors
from shoal.kube.errors import ApiError, forbidden, invalid
from shoal.kube.kinds import Kind
from shoal.kube.objects import Obj, name_of
from shoal.logs import Logger
from shoal.scheduler.api.pod_groups import POD_GROUP, QUEUE
from shoal.scheduler.queue_validation import deletion_blocker, group_errors, queue_errors

StoredObjects = Callable[[Kind], "list[Obj] | None"]  # every object of a kind; None where it cannot be seen
Reviewer = Callable[[Obj, StoredObjects], Obj]


@dataclass(frozen=True, slots=True)
class ReviewedKind:
    """A kind that is reviewed: what answers a request, and the kinds of stored objects it needs for that."""

    validate: Reviewer
    validated_against: Callable[[Obj], tuple[Kind, ...]] = lambda _: ()


ReviewedKinds = Mapping[tuple[str, str], ReviewedKind]  # by group and kind

log = Logger(__name__)
CHECKED_AT_ONCE, READ_AT_ONCE = 2, 8
PATIENCE_SECONDS = 5  # as long as the API server waits for an answer
_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder(dict[str, Any]).decode


def handlers(dialects: Iterable[Dialect], cluster: Cluster | None = None) -> dict[str, Handler]:
    """By path, for POSTs of AdmissionReviews. `cluster` is queried for what new objects are checked against."""
    served, limits = list(dialects), ReviewLimits()
    return {
        "/validate": _handler(validating_kinds(served), cluster, limits),
        "/mutate": _handler(mutating_kinds(served), None, limits),
    }


class ReviewLimits:
    """How many reviews are read and checked at the same time, over all paths."""

    def __init__(self) -> None:
        self.reading = asyncio.Semaphore(READ_AT_ONCE)
        self.checking = asyncio.Semaphore(CHECKED_AT_ONCE)


def validating_kinds(dialects: Iterable[Dialect]) -> ReviewedKinds:
    """Jobs of every language that is served, and what their gangs and queues are."""

    def among(dialect: Dialect, request: Obj) -> tuple[Kind, ...]:
        checks = dialect.capability(ClusterValidation)
        return checks.kinds if checks is not None and request.get("oldObject") is None else ()

    jobs = {_kind_key(each.kind): ReviewedKind(partial(validate, each), partial(among, each)) for each in dialects}
    return {
        **jobs,
        _kind_key(QUEUE): ReviewedKind(validate_queue, lambda _: (QUEUE,)),
        _kind_key(POD_GROUP): ReviewedKind(
            validate_group, lambda request: () if request.get("oldObject") else (QUEUE,)
        ),
    }


def mutating_kinds(dialects: Iterable[Dialect]) -> ReviewedKinds:
    return {_kind_key(each.kind): ReviewedKind(partial(mutate, each)) for each in dialects}


def _kind_key(kind: Kind) -> tuple[str, str]:
    return kind.group, kind.kind


def validate(dialect: Dialect, request: Obj, entry: StoredObjects) -> Obj:
    new, old = request.get("object"), request.get("oldObject")
    if new is None:
        return {"allowed": True}
    if mistakes := write_errors(dialect, new, old, lambda kind: entry(kind) or ()):
        return _refused(invalid(dialect.kind, name_of(new), mistakes))
    warnings = [str(warning) for warning in warnings_of(dialect, new, old)]
    return {"allowed": True, "warnings": warnings} if warnings else {"allowed": True}


def validate_queue(request: Obj, entry: StoredObjects) -> Obj:
    new, old = request.get("object"), request.get("oldObject")
    if new is None:
        why = deletion_blocker(old or {}, entry(QUEUE))
        return _refused(forbidden(QUEUE, name_of(old or {}), why)) if why else {"allowed": True}
    mistakes = queue_errors(new, old, entry(QUEUE))
    return _refused(invalid(QUEUE, name_of(new), mistakes)) if mistakes else {"allowed": True}


def validate_group(request: Obj, entry: StoredObjects) -> Obj:
    new = request.get("object")
    mistakes = group_errors(new, request.get("oldObject"), entry(QUEUE)) if new is not None else []
    return _refused(invalid(POD_GROUP, name_of(new or {}), mistakes)) if mistakes else {"allowed": True}


def _refused(error: ApiError) -> Obj:
    return {"allowed": False, "status": error.status()}


def mutate(dialect: Dialect, request: Obj, _: StoredObjects) -> Obj:
    """Defaults and canonical names, as a patch; nothing where the job has them all, or cannot be completed."""
    written = request.get("object")
    if written is None or dialect.validate(written):
        return {"allowed": True}  # the other webhook reports the error
    filled = dialect.default(written)
    if filled.get("spec") == written.get("spec"):
        return {"allowed": True}
    operations = [{"op": "add", "path": "/spec", "value": filled["spec"]}]
    return {"allowed": True, "patchType": "JSONPatch", "patch": base64.b64encode(_encode(operations)).decode()}


async def answer(review: Obj, subjects: ReviewedKinds, cluster: Cluster | None = None) -> Obj:
    """The review with a response; unknown kinds are allowed."""
    request = review["request"]
    kind = request["kind"]
    subject = subjects.get((kind["group"], kind["kind"]))
    response: Obj = {"allowed": True}
    if subject is not None and any(request.get(word) is not None for word in ("object", "oldObject")):
        stored = await _stored_objects(subject.validated_against(request), cluster) if cluster is not None else {}
        response = await asyncio.to_thread(subject.validate, request, stored.get)
    return {
        "apiVersion": "admission.k8s.io/v1",
        "kind": "AdmissionReview",
        "response": {"uid": request["uid"], **response},
    }


async def _stored_objects(kinds: Iterable[Kind], cluster: Cluster) -> dict[Kind, list[Obj]]:
    """What new objects are checked against. A kind that cannot be listed rejects nothing; the reconciler reports it."""
    found: dict[Kind, list[Obj]] = {}
    for kind in kinds:
        try:
            async with asyncio.timeout(PATIENCE_SECONDS):
                found[kind] = (await cluster.list(kind)).items
        except (ApiError, OutcomeUnknown, OSError) as unseen:
            log.warning("new objects are not checked against others", kind=kind.kind, problem=str(unseen))
    return found


def _handler(subjects: ReviewedKinds, cluster: Cluster | None, limits: ReviewLimits) -> Handler:
    async def handle(request: web.Request) -> web.StreamResponse:
        try:
            async with limits.reading:
                async with asyncio.timeout(PATIENCE_SECONDS):
                    body = await request.read()
                async with limits.checking:
                    answered = await answer(await asyncio.to_thread(_decode, body), subjects, cluster)
        except TimeoutError:
            return web.Response(status=408, text=f"the body did not arrive within {PATIENCE_SECONDS} s\n")
        except (msgspec.DecodeError, KeyError, TypeError, AttributeError) as problem:
            return web.Response(status=400, text=f"this is no AdmissionReview of admission.k8s.io/v1: {problem!r}\n")
        return web.Response(body=_encode(answered), content_type="application/json")

    return handle
