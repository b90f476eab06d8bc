"""Whoever asks a node for logs or a command is known to the cluster and has its right, asked once in a while."""

from __future__ import annotations

from typing import Any

import pytest

from shoal.kube.objects import Obj
from shoal.node.kubelet_api.authorization import (
    ALLOWED_TTL_SECONDS,
    DENIED_TTL_SECONDS,
    Caller,
    CallerAuthorizer,
    Forbidden,
    Unauthenticated,
    access_review,
)

CERTIFICATE = {"subject": ((("organizationName", "ops"),), (("commonName", "alice"),))}
ALICE = Caller("alice", ("ops", "system:authenticated"))
BOB = Caller("bob", ("devs",), "u7")


class Cluster:
    """Knows the token `good`; lets whom it is told to."""

    def __init__(self, *may: tuple[Caller, str]) -> None:
        self.may = [access_review(caller, verb, "n1")["spec"] for caller, verb in may]
        self.asked: list[str] = []

    async def create(self, kind: Any, obj: Obj, _: str = "", **__: Any) -> Obj:
        self.asked.append(kind.kind)
        if kind.kind == "TokenReview":
            user = {"username": "bob", "groups": ["devs"], "uid": "u7"}
            known = obj["spec"]["token"] == "good"
            return {"status": {"authenticated": known, **({"user": user} if known else {})}}
        return {"status": {"allowed": obj["spec"] in self.may}}


def callers(cluster: Cluster, now: float = 0.0) -> CallerAuthorizer:
    return CallerAuthorizer(cluster, "n1", now=lambda: now)  # type: ignore[arg-type]


async def test_the_holder_of_a_certificate_is_its_subject() -> None:
    assert await callers(Cluster((ALICE, "get"))).authorize(CERTIFICATE, "", verb="get") == ALICE


async def test_the_owner_of_a_token_is_whom_the_cluster_names() -> None:
    assert await callers(Cluster((BOB, "create"))).authorize(None, "good", verb="create") == BOB


@pytest.mark.parametrize(("certificate", "token"), [(None, ""), (None, "bad"), ({"subject": ()}, "good")])
async def test_unknown_credentials_are_rejected(certificate: Obj | None, token: str) -> None:
    with pytest.raises(Unauthenticated):
        await callers(Cluster((BOB, "get"))).authorize(certificate, token, verb="get")


async def test_a_right_to_read_is_no_right_to_run_commands() -> None:
    asked = callers(Cluster((ALICE, "get")))
    await asked.authorize(CERTIFICATE, "", verb="get")
    with pytest.raises(Forbidden, match="alice may not create nodes/proxy of n1"):
        await asked.authorize(CERTIFICATE, "", verb="create")


@pytest.mark.parametrize(("allowed", "seconds"), [(True, ALLOWED_TTL_SECONDS), (False, DENIED_TTL_SECONDS)])
async def test_an_answer_is_remembered_for_a_while(allowed: bool, seconds: float) -> None:
    cluster = Cluster(*([(ALICE, "get")] if allowed else []))
    now = [0.0]
    asked = CallerAuthorizer(cluster, "n1", now=lambda: now[0])  # type: ignore[arg-type]

    async def ask() -> bool:
        try:
            await asked.authorize(CERTIFICATE, "", verb="get")
        except Forbidden:
            return False
        return True

    assert [await ask(), await ask()] == [allowed, allowed]
    assert len(cluster.asked) == 1
    now[0] = seconds
    assert await ask() == allowed
    assert len(cluster.asked) == 2
