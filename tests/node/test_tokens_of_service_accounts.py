"""A pod on a real cluster is shown a token of its service account, made for it alone and renewed in time."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from kit.pods import T0, pod, stored
from shoal.kube.errors import ApiError
from shoal.kube.objects import Obj
from shoal.kube.times import rfc3339
from shoal.node.environment import EnvContext
from shoal.node.pod_references import Lookup, ReferenceMissing
from shoal.node.service_account_tokens import IssuedTokens, TokenManager, TokenRequest
from shoal.node.volume_files import File, files_of

SOURCE = {"serviceAccountToken": {"path": "token", "expirationSeconds": 3607}}
VOLUME = {"name": "access", "projected": {"defaultMode": 0o600, "sources": [SOURCE]}}
WISH = TokenRequest("", 3607)


class Issuer:
    """A cluster that issues tokens and remembers who asked."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, str, Obj]] = []
        self.now = T0
        self.refusal: ApiError | None = None

    async def create(self, kind: Any, obj: Obj, namespace: str = "", **_: Any) -> Obj:
        if self.refusal is not None:
            raise self.refusal
        self.asked.append((kind.plural, namespace, obj["spec"]))
        until = datetime.fromtimestamp(self.now + obj["spec"]["expirationSeconds"], UTC)
        return {"status": {"token": f"t{len(self.asked)}", "expirationTimestamp": rfc3339(until)}}


def asker(*sources: Obj, **spec: Any) -> Obj:
    volumes = [{"name": "access", "projected": {"sources": list(sources or (SOURCE,))}}]
    return stored(pod("p", volumes=volumes, **spec))


def around(issued: IssuedTokens | None) -> EnvContext:
    return EnvContext("n1", "127.0.0.1", "10.0.0.1", "p", lookup=Lookup(issued=issued))


async def test_a_token_is_bound_to_its_pod_and_lasts_as_the_volume_says() -> None:
    issuer = Issuer()
    issued = await TokenManager(issuer).issue(asker(serviceAccountName="trainer"), T0)  # type: ignore[arg-type]
    bound = {"apiVersion": "v1", "kind": "Pod", "name": "p", "uid": "u1"}
    assert issuer.asked == [
        ("serviceaccounts/trainer/token", "default", {"expirationSeconds": 3607, "boundObjectRef": bound})
    ]
    assert issued == IssuedTokens({WISH: b"t1"}, {}, T0 + 3607 * 0.8)


async def test_a_token_is_kept_until_most_of_its_time_is_over_and_then_replaced() -> None:
    issuer = Issuer()
    accounts = TokenManager(issuer)  # type: ignore[arg-type]
    first = await accounts.issue(asker(), T0)
    assert first.refresh_at is not None
    assert await accounts.issue(asker(), first.refresh_at - 1) == first
    issuer.now = first.refresh_at
    assert (await accounts.issue(asker(), issuer.now)).tokens == {WISH: b"t2"}
    accounts.remove("u1")
    assert (await accounts.issue(asker(), issuer.now)).tokens == {WISH: b"t3"}


async def test_another_audience_is_another_token() -> None:
    issuer = Issuer()
    vault = {"serviceAccountToken": {"path": "vault", "audience": "vault"}}
    issued = await TokenManager(issuer).issue(asker(SOURCE, vault), T0)  # type: ignore[arg-type]
    assert set(issued.tokens) == {WISH, TokenRequest("vault", 3600)}
    assert [spec.get("audiences") for _, _, spec in issuer.asked if "audiences" in spec] == [["vault"]]


async def test_a_refused_token_is_reported_and_requested_again_soon() -> None:
    issuer = Issuer()
    issuer.refusal = ApiError(403, "Forbidden", "nodes may not")
    issued = await TokenManager(issuer).issue(asker(), T0)  # type: ignore[arg-type]
    assert (issued.tokens, set(issued.refusals), issued.refresh_at) == ({}, {WISH}, T0 + 5.0)
    with pytest.raises(ReferenceMissing, match='no token for the service account "default": nodes may not'):
        files_of(asker(), VOLUME, around(issued))


def test_the_volume_holds_the_token() -> None:
    assert files_of(asker(), VOLUME, around(IssuedTokens({WISH: b"t1"}))) == {"token": File(b"t1", 0o600)}


def test_the_error_of_a_cluster_without_tokens_names_the_remedy() -> None:
    with pytest.raises(ReferenceMissing, match="automountServiceAccountToken: false"):
        files_of(asker(), VOLUME, around(None))
