"""What listens answers what it is there for and nothing else: pages are read, reviews are judged, all else is refused.

The page of metrics counts by kinds, verbs and codes; it names no job and holds nothing that a job says.
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any

import aiohttp
import pytest
from prometheus_client import CollectorRegistry

from kit.framework_notation import fw, role
from kit.pod_behavior import exits
from kit.scenario import SimulatedWorld
from shoal.controller_runtime.health import Address, Handler, health_pages, metrics_pages, page_handler, serve_http
from shoal.controller_runtime.metrics import Metrics
from shoal.dialects.framework import DIALECT
from shoal.operator.webhook import handlers

HERE = Address("127.0.0.1", 0)
KIND = {"group": DIALECT.kind.group, "version": "v1", "kind": "Framework"}


@asynccontextmanager
async def asking(**served: Mapping[str, Handler]) -> AsyncIterator[Any]:
    """A function that asks what is served and gives the code and the text of the answer."""
    async with serve_http("test", HERE, **served) as port, aiohttp.ClientSession(f"http://127.0.0.1:{port}") as session:

        async def ask(method: str, path: str, body: bytes | None = None) -> tuple[int, str]:
            async with session.request(method, path, data=body) as answer:
                return answer.status, await answer.text()

        yield ask


REFUSED = [("POST", "/metrics", 405), ("DELETE", "/healthz", 405), ("GET", "/", 404), ("GET", "/debug/pprof", 404),
           ("GET", "/../etc/passwd", 404), ("GET", "/metrics/", 404)]  # fmt: skip


@pytest.mark.parametrize(("method", "path", "code"), REFUSED)
async def test_pages_can_be_read_and_nothing_else(method: str, path: str, code: int) -> None:
    pages = {**metrics_pages(Metrics(CollectorRegistry())), **health_pages(list)}
    async with asking(get={name: page_handler(page) for name, page in pages.items()}) as ask:
        assert (await ask(method, path))[0] == code


def review(**request: Any) -> bytes:
    return json.dumps({"kind": "AdmissionReview", "request": {"uid": "u", "kind": KIND, **request}}).encode()


ODD = {
    "nothing": (b"", 400),
    "no JSON": (b"<html>", 400),
    "no text": (b"\xff\xfe", 400),
    "a list": (b"[]", 400),
    "no request": (b"{}", 400),
    "a request that is none": (b'{"request": []}', 400),
    "no kind": (b'{"request": {"uid": "u"}}', 400),
    "an object that is none": (review(object=[]), 400),
    "too long": (b" " * (9 << 20), 413),
}


@pytest.mark.parametrize("path", ["/validate", "/mutate"])
@pytest.mark.parametrize(("body", "code"), ODD.values(), ids=list(ODD))
async def test_what_is_no_review_is_the_senders_mistake(path: str, body: bytes, code: int) -> None:
    async with asking(post=handlers([DIALECT])) as ask:
        assert (await ask("POST", path, body))[0] == code
        assert (await ask("GET", path))[0] == 405


@pytest.mark.parametrize("path", ["/validate", "/mutate"])
async def test_kinds_nobody_here_knows_are_let_through(path: str) -> None:
    foreign = review(kind={"group": "", "version": "v1", "kind": "Secret"}, object={"data": {"a": "c2VjcmV0"}})
    async with asking(post=handlers([DIALECT])) as ask:
        code, said = await ask("POST", path, foreign)
    assert (code, json.loads(said)["response"]) == (200, {"uid": "u", "allowed": True})


async def test_a_change_is_judged_by_what_was_stored() -> None:
    old, new = fw("a", role(), start="Stop"), fw("a", role(), start="Start")
    async with asking(post=handlers([DIALECT])) as ask:
        _, said = await ask("POST", "/validate", review(object=new, oldObject=old))
    response = json.loads(said)["response"]
    assert response["allowed"] is False
    assert [cause["field"] for cause in response["status"]["details"]["causes"]] == ["spec.executionType"]


async def test_a_field_that_does_not_exist_is_a_warning() -> None:
    job = fw("a", role())
    job["spec"]["taskRoles"][0]["task"]["pod"]["spec"]["hostNetworks"] = True
    async with asking(post=handlers([DIALECT])) as ask:
        code, said = await ask("POST", "/validate", review(object=job))
    warnings = ["spec.taskRoles[0].task.pod.spec.hostNetworks: there is no such field; did you mean hostNetwork?"]
    assert (code, json.loads(said)["response"]) == (200, {"uid": "u", "allowed": True, "warnings": warnings})


async def test_metrics_name_no_job_and_hold_nothing_it_says() -> None:
    job = fw("verysecretproject", role("confidentialrole", 2, retry=(False, 1), fate=exits(3)))
    async with SimulatedWorld(1) as world:
        await world.submit(job)
        await world.completed("verysecretproject")
        body, _ = world.metrics.exposition()
    assert b"shoal_" in body
    assert [word for word in (b"verysecretproject", b"confidentialrole") if word in body] == []
