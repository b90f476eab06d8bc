"""Every path asks for the token, but for those anybody may know."""

from __future__ import annotations

import pytest

from kit.asgi_client import Asgi
from shoal.apiserver.auth import Authenticator

UNAUTHORIZED = {
    "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure", "message": "Unauthorized",
    "reason": "Unauthorized", "code": 401,
}  # fmt: skip
GUARDED = ["/api", "/apis", "/api/v1/pods", "/openapi/v3", "/", "/nowhere", "/apis/metrics.k8s.io/v1beta1/nodes"]


@pytest.mark.parametrize("path", GUARDED)
@pytest.mark.parametrize(
    "header", ["", "Bearer", "Bearer wrong", "Basic let-me-in", "let-me-in"], ids=lambda h: h or "none"
)
async def test_without_the_token_there_is_nothing_to_see(http: Asgi, path: str, header: str) -> None:
    answer = await http("GET", path, headers={"authorization": header})
    assert (answer.status, answer.json) == (401, UNAUTHORIZED)


@pytest.mark.parametrize("path", ["/healthz", "/livez", "/readyz", "/version", "/readyz/ping"])
async def test_health_and_version_are_open(http: Asgi, path: str) -> None:
    assert (await http("GET", path, headers={"authorization": ""})).status == 200


async def test_a_wrong_token_is_refused_even_where_none_is_needed(http: Asgi) -> None:
    assert (await http("GET", "/version", headers={"authorization": "Bearer wrong"})).status == 401


def test_an_empty_token_cannot_be_set() -> None:
    with pytest.raises(ValueError, match="authenticate every client"):
        Authenticator("")


async def test_a_websocket_needs_the_token_too(http: Asgi) -> None:
    path = "/api/v1/namespaces/default/pods/p/exec"
    async with http.socket(path, ["v5.channel.k8s.io"], {"authorization": "Bearer wrong"}, command="echo") as socket:
        assert (await socket.next())["status"] == 401
