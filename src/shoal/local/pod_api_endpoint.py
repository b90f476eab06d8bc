"""How pods reach the API server: the Service `kubernetes`, and a listener of its own behind it.

The listener is on loopback, the one address of the machine's loopback that isolated pods reach. It takes tokens of
service accounts and not the token of the kubeconfig, and has a certificate for the names pods use and connections of
its own: pods that open too many do not keep kubectl out.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from ipaddress import IPv4Network, ip_address
from pathlib import Path

from shoal.apiserver.app import build_application
from shoal.apiserver.server import Server
from shoal.apiserver.serving_certificate import Certificate, ensure
from shoal.cluster.embedded import EmbeddedCluster
from shoal.cluster.token_signer import TokenSigner
from shoal.kube.errors import ApiError
from shoal.kube.kinds import SERVICE, SERVICE_ACCOUNT
from shoal.kube.objects import Key, Obj, at_path

NAMESPACE, NAME = "default", "kubernetes"
HOST = "127.0.0.1"
NAMES = (NAME, "kubernetes.default", "kubernetes.default.svc", "kubernetes.default.svc.cluster.local")
PORT = 443
UNPRIVILEGED_PORT = 6443  # on the machine's own network, where an ordinary user may not listen on 443


async def publish_service(cluster: EmbeddedCluster, network: IPv4Network) -> str:
    """Create the Service where it is missing, or left from a start with another network. Returns its address."""
    port = UNPRIVILEGED_PORT if network.is_loopback else PORT
    with suppress(ApiError):  # not found
        found = await cluster.get(SERVICE, NAME, NAMESPACE)
        address = str(at_path(found, "spec", "clusterIP"))
        if is_within(address, network) and [each["port"] for each in at_path(found, "spec", "ports") or ()] == [port]:
            return address
        await cluster.delete(SERVICE, NAME, NAMESPACE)
    service: Obj = {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": NAME, "labels": {"component": "apiserver", "provider": NAME}},
        "spec": {"clusterIP": str(network[1]), "ports": [{"name": "https", "port": port, "protocol": "TCP"}]},
    }
    try:
        created = await cluster.create(SERVICE, service, NAMESPACE)
    except ApiError:  # another Service claimed the first address; the clients only need one
        service["spec"].pop("clusterIP")
        created = await cluster.create(SERVICE, service, NAMESPACE)
    return str(created["spec"]["clusterIP"])


@asynccontextmanager
async def serve_to_pods(
    cluster: EmbeddedCluster, signer: TokenSigner, certificate: Certificate
) -> AsyncIterator[tuple[str, int]]:
    """The address of the listener, which ends with the body."""
    server = Server(build_application(cluster, token=None, signer=signer), HOST, 0, ssl=certificate.context())
    await server.start()
    try:
        yield HOST, server.port
    finally:
        await server.stop()


def certificate_for_pods(folder: Path, address: str) -> Certificate:
    return ensure(folder / "pods", *NAMES, address, subject="shoal-pods")


def automounts(cluster: EmbeddedCluster, namespace: str, account: str) -> bool:
    """Whether pods of the service account are given a token unless they decide themselves."""
    try:
        found = cluster.machinery.get(SERVICE_ACCOUNT, Key(namespace, account)).obj()
    except ApiError:  # not found
        return True
    return found.get("automountServiceAccountToken") is not False


def is_within(address: str, network: IPv4Network) -> bool:
    with suppress(ValueError):
        return ip_address(address) in network
    return False
