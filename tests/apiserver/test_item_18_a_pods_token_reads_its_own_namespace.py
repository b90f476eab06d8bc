"""The token of a pod's service account: a fixed rule says what it may read, and it ends with the pod."""

from __future__ import annotations

import time
from dataclasses import replace

import pytest

from kit.asgi_client import Asgi
from shoal.apiserver.app import build_application
from shoal.cluster.embedded import EmbeddedCluster
from shoal.cluster.token_signer import TokenClaims, TokenSigner
from shoal.kube.kinds import POD
from shoal.kube.objects import uid_of

SECRET = "let-me-in"
OWN = "/api/v1/namespaces/default"
POD_SPEC = {"containers": [{"name": "main", "image": "x"}]}
USER = "system:serviceaccount:default:trainer"


@pytest.fixture
async def claims(cluster: EmbeddedCluster) -> TokenClaims:
    pod = await cluster.create(POD, {"metadata": {"name": "p"}, "spec": POD_SPEC}, "default")
    return TokenClaims("default", "trainer", "p", uid_of(pod), int(time.time()) + 3600)


def client(cluster: EmbeddedCluster, token: str, *, admin: str | None = SECRET) -> Asgi:
    return Asgi(build_application(cluster, token=admin, signer=TokenSigner(SECRET)), token)


@pytest.fixture
def pod(cluster: EmbeddedCluster, claims: TokenClaims) -> Asgi:
    return client(cluster, TokenSigner(SECRET).sign(claims))


@pytest.mark.parametrize(
    "path",
    [
        *(f"{OWN}/{plural}" for plural in ("pods", "pods/p", "services", "endpoints", "configmaps")),
        "/apis/discovery.k8s.io/v1/namespaces/default/endpointslices",
        *("/api", "/api/v1", "/apis", "/openapi/v3", "/version", "/healthz"),
    ],
)
async def test_a_pod_reads_what_its_peers_are_found_by(pod: Asgi, path: str) -> None:
    assert (await pod("GET", path)).status == 200


@pytest.mark.parametrize(
    ("method", "path"),
    [
        *(
            ("GET", f"{OWN}/{plural}")
            for plural in ("secrets", "serviceaccounts", "pods/p/log", "pods/p/status", "nowhere")
        ),
        ("GET", "/api/v1/pods"),
        ("GET", "/api/v1/watch/pods"),
        ("GET", "/api/v1/namespaces/kube-system/pods"),
        ("GET", "/api/v1/nodes"),
        ("GET", "/apis/metrics.k8s.io/v1beta1/nodes"),
        ("GET", "/metrics"),
        ("GET", "/versions"),
        ("POST", f"{OWN}/pods"),
        ("POST", f"{OWN}/pods/p/exec"),
        ("POST", f"{OWN}/pods/p/eviction"),
        ("PUT", f"{OWN}/pods/p"),
        ("PATCH", f"{OWN}/pods/p"),
        ("DELETE", f"{OWN}/pods/p"),
        ("DELETE", f"{OWN}/pods"),
    ],
)
async def test_everything_else_is_forbidden(pod: Asgi, method: str, path: str) -> None:
    answer = await pod(method, path)
    assert (answer.status, answer.json["reason"]) == (403, "Forbidden")


async def test_a_rejection_has_the_message_of_kubernetes(pod: Asgi) -> None:
    answer = await pod("DELETE", f"{OWN}/pods/p")
    assert answer.json["message"] == (
        f'pods "p" is forbidden: User "{USER}" cannot delete resource "pods" in API group "" in the namespace "default"'
    )
    assert (await pod("GET", "/metrics")).json["message"] == f'forbidden: User "{USER}" cannot get path "/metrics"'


async def test_a_command_in_another_pod_is_forbidden(pod: Asgi) -> None:
    async with pod.socket(f"{OWN}/pods/p/exec", ["v5.channel.k8s.io"], command="echo") as socket:
        assert (await socket.next())["status"] == 403


@pytest.mark.parametrize(("verb", "resource", "allowed"), [("list", "pods", True), ("create", "pods", False)])
async def test_a_pod_learns_what_it_may_do(pod: Asgi, verb: str, resource: str, allowed: bool) -> None:
    asked = {"resourceAttributes": {"verb": verb, "resource": resource, "namespace": "default"}}
    review = {"apiVersion": "authorization.k8s.io/v1", "kind": "SelfSubjectAccessReview", "spec": asked}
    answer = await pod("POST", "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", review)
    assert (answer.status, answer.json["status"]["allowed"]) == (201, allowed)
    review = {"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"}
    answer = await pod("POST", "/apis/authentication.k8s.io/v1/selfsubjectreviews", review)
    assert answer.json["status"]["userInfo"]["username"] == USER


async def status_of(cluster: EmbeddedCluster, token: str) -> int:
    return (await client(cluster, token)("GET", f"{OWN}/pods")).status


async def test_a_token_is_valid_for_its_time_its_pod_and_its_signature(
    cluster: EmbeddedCluster, claims: TokenClaims
) -> None:
    sign = TokenSigner(SECRET).sign
    assert await status_of(cluster, sign(claims)) == 200
    assert await status_of(cluster, sign(replace(claims, expires_at=int(time.time()) - 1))) == 401
    assert await status_of(cluster, sign(replace(claims, audience="vault"))) == 401
    assert await status_of(cluster, sign(replace(claims, pod_uid="another"))) == 401
    assert await status_of(cluster, TokenSigner("guessed").sign(claims)) == 401
    header, _, signature = sign(claims).split(".")
    other = sign(replace(claims, namespace="kube-system")).split(".")[1]
    for forged in (f"{header}.{other}.{signature}", f"{header}..{signature}", "..", ".", "\xff"):
        assert await status_of(cluster, forged) == 401, forged
    await cluster.delete(POD, "p", "default")
    assert await status_of(cluster, sign(claims)) == 401


async def test_where_only_pods_are_admitted_the_administrator_is_not(
    cluster: EmbeddedCluster, claims: TokenClaims
) -> None:
    for_pods = client(cluster, SECRET, admin=None)
    assert (await for_pods("GET", f"{OWN}/pods")).status == 401
    token = TokenSigner(SECRET).sign(claims)
    assert (await client(cluster, token, admin=None)("GET", f"{OWN}/pods")).status == 200
