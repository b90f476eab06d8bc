"""Admission over HTTP: jobs are checked and completed at the moment they are written.

The same functions of each language that a cluster of our own calls in its own process. A review that cannot be read is
a mistake of the sender and answered 400; a job is refused with every mistake and its path.
"""

from __future__ import annotations

import base64
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import msgspec
from aiohttp import web

from shoal.cluster.port import Cluster, OutcomeUnknown
from shoal.dialects.dialect import Dialect, Lookup
from shoal.kube.errors import ApiError, invalid
from shoal.kube.kinds import Kind
from shoal.kube.objects import Obj, name_of
from shoal.logs import Logger
from shoal.operator.health import Handler

Judge = Callable[[Dialect, Obj, Lookup], Obj]

log = Logger(__name__)
_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder(dict[str, Any]).decode


def handlers(dialects: Iterable[Dialect], cluster: Cluster | None = None) -> dict[str, Handler]:
    """By path, for POSTs of AdmissionReviews. What new jobs are checked against is asked of `cluster`."""
    known = {(each.kind.group, each.kind.kind): each for each in dialects}
    return {"/validate": _handler(known, validate, cluster), "/mutate": _handler(known, mutate, None)}


def validate(dialect: Dialect, request: Obj, lookup: Lookup) -> Obj:
    new, old = request["object"], request.get("oldObject")
    mistakes = dialect.judge(new, old)
    if old is None and dialect.admit_among is not None:
        mistakes += dialect.admit_among(new, lookup)
    if mistakes:
        return {"allowed": False, "status": invalid(dialect.kind, name_of(new), mistakes).status()}
    warnings = dialect.warn(new, old)
    return {"allowed": True, "warnings": warnings} if warnings else {"allowed": True}


def mutate(dialect: Dialect, request: Obj, _: Lookup) -> Obj:
    """Defaults and canonical names, as a patch; nothing where the job has them all, or cannot be completed."""
    written = request["object"]
    if dialect.admit(written):
        return {"allowed": True}  # the other webhook says what is wrong
    completed = dialect.default(written)
    if completed.get("spec") == written.get("spec"):
        return {"allowed": True}
    operations = [{"op": "add", "path": "/spec", "value": completed["spec"]}]
    return {"allowed": True, "patchType": "JSONPatch", "patch": base64.b64encode(_encode(operations)).decode()}


async def answer(
    review: Obj, known: Mapping[tuple[str, str], Dialect], judge: Judge, cluster: Cluster | None = None
) -> Obj:
    """The review with a response; kinds nobody here knows are let through."""
    request = review["request"]
    kind = request["kind"]
    dialect = known.get((kind["group"], kind["kind"]))
    response: Obj = {"allowed": True}
    if dialect is not None and request.get("object") is not None:
        is_new = request.get("oldObject") is None
        around = await _around(dialect, cluster) if is_new and cluster is not None else {}
        response = judge(dialect, request, lambda kind: around.get(kind, ()))
    return {
        "apiVersion": "admission.k8s.io/v1",
        "kind": "AdmissionReview",
        "response": {"uid": request["uid"], **response},
    }


async def _around(dialect: Dialect, cluster: Cluster) -> dict[Kind, list[Obj]]:
    """What a new job is checked against. What cannot be seen refuses nobody: the loop tells when it reads the job."""
    found: dict[Kind, list[Obj]] = {}
    for kind in dialect.neighbours:
        try:
            found[kind] = (await cluster.list(kind)).items
        except (ApiError, OutcomeUnknown, OSError) as unseen:
            log.warning("new jobs are not checked against others", kind=kind.kind, problem=str(unseen))
    return found


def _handler(known: Mapping[tuple[str, str], Dialect], judge: Judge, cluster: Cluster | None) -> Handler:
    async def handle(request: web.Request) -> web.StreamResponse:
        try:
            answered = await answer(_decode(await request.read()), known, judge, cluster)
        except (msgspec.DecodeError, KeyError, TypeError, AttributeError) as problem:
            return web.Response(status=400, text=f"this is no AdmissionReview of admission.k8s.io/v1: {problem!r}\n")
        return web.Response(body=_encode(answered), content_type="application/json")

    return handle
