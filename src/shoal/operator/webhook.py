"""Admission over HTTP: jobs are checked and completed at the moment they are written, and so are gangs and queues.

The same functions of each language, and of the scheduler, that a cluster of our own calls in its own process. A review
that cannot be read is a mistake of the sender and answered 400; an object is refused with every mistake and its path.

A large job takes a second or more to be checked. That happens in a thread, so that the event loop goes on to renew
the Lease and to reconcile jobs; few are checked, and few bodies are read, at the same time.
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
from shoal.dialects.dialect import Dialect
from shoal.kube.errors import ApiError, forbidden, invalid
from shoal.kube.kinds import Kind
from shoal.kube.objects import Obj, name_of
from shoal.logs import Logger
from shoal.scheduler.admission import judge_group, judge_queue, why_kept
from shoal.scheduler.api.pod_groups import POD_GROUP, QUEUE

Known = Callable[[Kind], "list[Obj] | None"]  # every object of a kind; None where it cannot be seen
Judge = Callable[[Obj, Known], Obj]


@dataclass(frozen=True, slots=True)
class Subject:
    """A kind that is reviewed: what answers a request, and what has to be looked at for that."""

    judge: Judge
    neighbours: Callable[[Obj], tuple[Kind, ...]] = lambda _: ()


Subjects = Mapping[tuple[str, str], Subject]  # by group and kind

log = Logger(__name__)
CHECKED_AT_ONCE, READ_AT_ONCE = 2, 8
PATIENCE_SECONDS = 5  # as long as the API server waits for an answer
_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder(dict[str, Any]).decode


def handlers(dialects: Iterable[Dialect], cluster: Cluster | None = None) -> dict[str, Handler]:
    """By path, for POSTs of AdmissionReviews. What new objects are checked against is asked of `cluster`."""
    spoken, places = list(dialects), Places()
    return {
        "/validate": _handler(validated(spoken), cluster, places),
        "/mutate": _handler(completed(spoken), None, places),
    }


class Places:
    """How many reviews are read and checked at the same time, over all paths."""

    def __init__(self) -> None:
        self.reading = asyncio.Semaphore(READ_AT_ONCE)
        self.checking = asyncio.Semaphore(CHECKED_AT_ONCE)


def validated(dialects: Iterable[Dialect]) -> Subjects:
    """Jobs of every language that is served, and what their gangs and queues are."""

    def among(dialect: Dialect, request: Obj) -> tuple[Kind, ...]:
        return dialect.neighbours if request.get("oldObject") is None else ()

    jobs = {_place(each.kind): Subject(partial(validate, each), partial(among, each)) for each in dialects}
    return {
        **jobs,
        _place(QUEUE): Subject(validate_queue, lambda _: (QUEUE,)),
        _place(POD_GROUP): Subject(validate_group, lambda request: () if request.get("oldObject") else (QUEUE,)),
    }


def completed(dialects: Iterable[Dialect]) -> Subjects:
    return {_place(each.kind): Subject(partial(mutate, each)) for each in dialects}


def _place(kind: Kind) -> tuple[str, str]:
    return kind.group, kind.kind


def validate(dialect: Dialect, request: Obj, known: Known) -> Obj:
    new, old = request.get("object"), request.get("oldObject")
    if new is None:
        return {"allowed": True}
    mistakes = dialect.judge(new, old)
    if old is None and dialect.admit_among is not None:
        mistakes += dialect.admit_among(new, lambda kind: known(kind) or ())
    if mistakes:
        return _refused(invalid(dialect.kind, name_of(new), mistakes))
    warnings = dialect.warn(new, old)
    return {"allowed": True, "warnings": warnings} if warnings else {"allowed": True}


def validate_queue(request: Obj, known: Known) -> Obj:
    new, old = request.get("object"), request.get("oldObject")
    if new is None:
        why = why_kept(old or {}, known(QUEUE))
        return _refused(forbidden(QUEUE, name_of(old or {}), why)) if why else {"allowed": True}
    mistakes = judge_queue(new, old, known(QUEUE))
    return _refused(invalid(QUEUE, name_of(new), mistakes)) if mistakes else {"allowed": True}


def validate_group(request: Obj, known: Known) -> Obj:
    new = request.get("object")
    mistakes = judge_group(new, request.get("oldObject"), known(QUEUE)) if new is not None else []
    return _refused(invalid(POD_GROUP, name_of(new or {}), mistakes)) if mistakes else {"allowed": True}


def _refused(error: ApiError) -> Obj:
    return {"allowed": False, "status": error.status()}


def mutate(dialect: Dialect, request: Obj, _: Known) -> Obj:
    """Defaults and canonical names, as a patch; nothing where the job has them all, or cannot be completed."""
    written = request.get("object")
    if written is None or dialect.admit(written):
        return {"allowed": True}  # the other webhook says what is wrong
    filled = dialect.default(written)
    if filled.get("spec") == written.get("spec"):
        return {"allowed": True}
    operations = [{"op": "add", "path": "/spec", "value": filled["spec"]}]
    return {"allowed": True, "patchType": "JSONPatch", "patch": base64.b64encode(_encode(operations)).decode()}


async def answer(review: Obj, subjects: Subjects, cluster: Cluster | None = None) -> Obj:
    """The review with a response; kinds nobody here knows are let through."""
    request = review["request"]
    kind = request["kind"]
    subject = subjects.get((kind["group"], kind["kind"]))
    response: Obj = {"allowed": True}
    if subject is not None and any(request.get(word) is not None for word in ("object", "oldObject")):
        around = await _around(subject.neighbours(request), cluster) if cluster is not None else {}
        response = await asyncio.to_thread(subject.judge, request, around.get)
    return {
        "apiVersion": "admission.k8s.io/v1",
        "kind": "AdmissionReview",
        "response": {"uid": request["uid"], **response},
    }


async def _around(kinds: Iterable[Kind], cluster: Cluster) -> dict[Kind, list[Obj]]:
    """What a new object is checked against. What cannot be seen refuses nobody: the loops tell when they read it."""
    found: dict[Kind, list[Obj]] = {}
    for kind in kinds:
        try:
            async with asyncio.timeout(PATIENCE_SECONDS):
                found[kind] = (await cluster.list(kind)).items
        except (ApiError, OutcomeUnknown, OSError) as unseen:
            log.warning("new objects are not checked against others", kind=kind.kind, problem=str(unseen))
    return found


def _handler(subjects: Subjects, cluster: Cluster | None, places: Places) -> Handler:
    async def handle(request: web.Request) -> web.StreamResponse:
        try:
            async with places.reading:
                async with asyncio.timeout(PATIENCE_SECONDS):
                    body = await request.read()
                async with places.checking:
                    answered = await answer(await asyncio.to_thread(_decode, body), subjects, cluster)
        except TimeoutError:
            return web.Response(status=408, text=f"the body did not arrive within {PATIENCE_SECONDS} s\n")
        except (msgspec.DecodeError, KeyError, TypeError, AttributeError) as problem:
            return web.Response(status=400, text=f"this is no AdmissionReview of admission.k8s.io/v1: {problem!r}\n")
        return web.Response(body=_encode(answered), content_type="application/json")

    return handle
