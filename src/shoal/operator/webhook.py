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

from shoal.dialects.dialect import Dialect
from shoal.kube.errors import invalid
from shoal.kube.objects import Obj, name_of
from shoal.operator.health import Handler

Judge = Callable[[Dialect, Obj], Obj]

_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder(dict[str, Any]).decode


def handlers(dialects: Iterable[Dialect]) -> dict[str, Handler]:
    """By path, for POSTs of AdmissionReviews."""
    known = {(each.kind.group, each.kind.kind): each for each in dialects}
    return {"/validate": _handler(known, validate), "/mutate": _handler(known, mutate)}


def validate(dialect: Dialect, request: Obj) -> Obj:
    new = request["object"]
    mistakes = dialect.judge(new, request.get("oldObject"))
    if mistakes:
        return {"allowed": False, "status": invalid(dialect.kind, name_of(new), mistakes).status()}
    warnings = dialect.warn(new, request.get("oldObject"))
    return {"allowed": True, "warnings": warnings} if warnings else {"allowed": True}


def mutate(dialect: Dialect, request: Obj) -> Obj:
    """Defaults and canonical names, as a patch; nothing where the job has them all, or cannot be completed."""
    written = request["object"]
    if dialect.admit(written):
        return {"allowed": True}  # the other webhook says what is wrong
    completed = dialect.default(written)
    if completed.get("spec") == written.get("spec"):
        return {"allowed": True}
    operations = [{"op": "add", "path": "/spec", "value": completed["spec"]}]
    return {"allowed": True, "patchType": "JSONPatch", "patch": base64.b64encode(_encode(operations)).decode()}


def answer(review: Obj, known: Mapping[tuple[str, str], Dialect], judge: Judge) -> Obj:
    """The review with a response; kinds nobody here knows are let through."""
    request = review["request"]
    kind = request["kind"]
    dialect = known.get((kind["group"], kind["kind"]))
    is_written = dialect is not None and request.get("object") is not None
    response = judge(dialect, request) if dialect is not None and is_written else {"allowed": True}
    return {
        "apiVersion": "admission.k8s.io/v1",
        "kind": "AdmissionReview",
        "response": {"uid": request["uid"], **response},
    }


def _handler(known: Mapping[tuple[str, str], Dialect], judge: Judge) -> Handler:
    async def handle(request: web.Request) -> web.StreamResponse:
        try:
            answered = answer(_decode(await request.read()), known, judge)
        except (msgspec.DecodeError, KeyError, TypeError, AttributeError) as problem:
            return web.Response(status=400, text=f"this is no AdmissionReview of admission.k8s.io/v1: {problem!r}\n")
        return web.Response(body=_encode(answered), content_type="application/json")

    return handle
