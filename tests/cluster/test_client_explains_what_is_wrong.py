"""Whatever keeps us from a cluster is one sentence with the way out, in the client and at the end of a command."""

from __future__ import annotations

import asyncio
import json
import re
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from kit.certificate_authority import Authority
from kit.control_plane import ControlPlane
from kit.scripted_server import answer, refusal, scripted
from shoal.cli.main import shoal
from shoal.cluster.kubeconfig import ConnectionConfig, from_kubeconfig
from shoal.cluster.kubeconfig.tls import TlsConfig
from shoal.cluster.kubernetes import KubernetesCluster, Unreachable, open_client
from shoal.kube.errors import ApiError
from shoal.kube.kinds import CONFIG_MAP, POD

OURS, THEIRS = Authority.make(), Authority.make()
FOUND = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}}


async def complaint(cluster: KubernetesCluster) -> str:
    with pytest.raises((Unreachable, ApiError)) as caught:
        await cluster.get(CONFIG_MAP, "a", "default")
    return str(caught.value)


@asynccontextmanager
async def serving_certificate(
    pair: Any, url_host: str = "127.0.0.1", **more: Any
) -> AsyncIterator[tuple[KubernetesCluster, str]]:
    """A server that shows this certificate, and a client that trusts our authority."""
    async with scripted(answer(200, FOUND), ssl_context=pair.context()) as server:
        url = server.url.replace("127.0.0.1", url_host)
        ssl_context = TlsConfig(OURS.certificate.decode()).context()
        async with open_client(ConnectionConfig(url, ssl_context=ssl_context, **more)) as cluster:
            yield cluster, url


def unused() -> int:
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))
        port: int = held.getsockname()[1]
    return port


async def test_nothing_listens_on_the_port() -> None:
    url = f"http://127.0.0.1:{unused()}"
    async with open_client(ConnectionConfig(url)) as cluster:
        message = await complaint(cluster)
    assert message == f"{url} cannot be reached: Connection refused. Is the cluster up, and is this its address?"


async def test_there_is_no_such_host() -> None:
    async with open_client(
        ConnectionConfig("https://nowhere.invalid:6443", ssl_context=TlsConfig().context())
    ) as cluster:
        message = await complaint(cluster)
    assert message == (
        "https://nowhere.invalid:6443 cannot be reached: there is no host nowhere.invalid here. Check the address"
    )


async def test_the_host_cannot_be_a_name() -> None:
    url = f"https://{'a' * 64}:6443"
    async with open_client(ConnectionConfig(url, ssl_context=TlsConfig().context())) as cluster:
        message = await complaint(cluster)
    assert message == f"{url} cannot be reached: its host is no name. Check the address"


async def test_the_server_has_a_certificate_we_trust() -> None:
    async with serving_certificate(OURS.sign("me")) as (cluster, _):
        assert await cluster.get(CONFIG_MAP, "a", "default") == FOUND


async def test_the_certificate_is_signed_by_an_unknown_authority() -> None:
    async with serving_certificate(THEIRS.sign("me")) as (cluster, url):
        message = await complaint(cluster)
    assert message.startswith(f"{url} shows a certificate that is not signed by an authority we trust (")
    assert message.endswith("). Is this the right server? Then give its certificate-authority")


async def test_the_servers_certificate_has_ended() -> None:
    async with serving_certificate(OURS.sign("me", days=-2)) as (cluster, url):
        message = await complaint(cluster)
    assert message == (
        f"the certificate of {url} is out of date (certificate has expired). "
        f"Have it renewed, and check the clock of this machine"
    )


async def test_the_servers_certificate_is_for_another_name() -> None:
    async with serving_certificate(OURS.sign("me"), url_host="localhost") as (cluster, url):
        message = await complaint(cluster)
    assert message.startswith(f"the certificate of {url} is for another name (")
    async with serving_certificate(OURS.sign("me"), url_host="localhost", server_name="me") as (cluster, _):
        assert await cluster.get(CONFIG_MAP, "a", "default") == FOUND


async def test_plain_where_tls_is_wanted_and_the_other_way_round() -> None:
    plain = answer(400, b"Client sent an HTTP request to an HTTPS server.\n", content_type="text/plain")
    async with scripted(plain) as server, open_client(ConnectionConfig(server.url)) as cluster:
        assert await complaint(cluster) == (f"{server.url} speaks TLS only. The address should begin with https://")

    async def misunderstand(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read(1)
        writer.write(b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n")
        await reader.read()
        writer.close()

    async with await asyncio.start_server(misunderstand, "127.0.0.1", 0) as other:
        url = f"https://127.0.0.1:{other.sockets[0].getsockname()[1]}"
        async with open_client(ConnectionConfig(url, ssl_context=TlsConfig().context())) as cluster:
            assert (await complaint(cluster)).startswith(f"{url} does not speak TLS. Should the address begin")


@pytest.mark.parametrize(
    ("step", "what"),
    [
        (answer(200, b"<html>hello</html>", content_type="text/html"), "is no JSON object. Check the address"),
        (answer(404, b"<html>no</html>", content_type="text/html"), "got 404 and text/html. Check the address"),
        (answer(302, b"", content_type="text/html", location="/login"), "got 302 and text/html. Check the address"),
    ],
    ids=["a page", "no page", "a way elsewhere"],
)
async def test_what_is_there_is_not_kubernetes(step: Any, what: str) -> None:
    async with scripted(step) as server, open_client(ConnectionConfig(server.url)) as cluster:
        message = await complaint(cluster)
    assert message.startswith(f"{server.url} does not answer as a Kubernetes API server: GET /api/v1/")
    assert message.endswith(what)


async def test_an_old_server_is_named_as_too_old() -> None:
    old = answer(200, {"major": "1", "minor": "27+", "gitVersion": "v1.27.3-gke.1"})
    async with scripted(old) as server, open_client(ConnectionConfig(server.url)) as cluster:
        with pytest.raises(Unreachable) as caught:
            await cluster.require_supported()
    assert str(caught.value) == (
        f"{server.url} is Kubernetes v1.27.3-gke.1, which is too old: Shoal needs 1.28 or newer. Update the cluster"
    )


async def test_a_client_certificate_that_ended_is_named() -> None:
    ended = OURS.sign("me", days=-3).certificate
    async with (
        scripted(refusal(401, "Unauthorized")) as server,
        open_client(ConnectionConfig(server.url, certificate=ended, user_description="user me of config")) as cluster,
    ):
        message = await complaint(cluster)
    pattern = rf"{re.escape(server.url)} does not let in user me of config: its client certificate ran out on "
    assert re.fullmatch(rf"{pattern}\d{{4}}-\d\d-\d\d\. Log in again", message)


async def test_the_way_leads_through_a_proxy() -> None:
    asked: list[bytes] = []

    async def pass_on(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        asked.append(await reader.readuntil(b"\r\n\r\n"))
        host, port = asked[-1].split()[1].decode().split(":")
        there, back = await asyncio.open_connection(host, int(port))
        writer.write(b"HTTP/1.1 200 OK\r\n\r\n")

        async def copy(source: asyncio.StreamReader, target: asyncio.StreamWriter) -> None:
            while data := await source.read(65536):
                target.write(data)
            target.close()

        await asyncio.gather(copy(reader, back), copy(there, writer))

    async with await asyncio.start_server(pass_on, "127.0.0.1", 0) as between:
        proxy = f"http://me:secret@127.0.0.1:{between.sockets[0].getsockname()[1]}"
        async with serving_certificate(OURS.sign("me"), proxy=proxy) as (cluster, url):
            assert await cluster.get(CONFIG_MAP, "a", "default") == FOUND
    assert asked[0].startswith(f"CONNECT {url.removeprefix('https://')} HTTP/1.1\r\n".encode())
    assert b"Proxy-Authorization: Basic bWU6c2VjcmV0\r\n" in asked[0]


async def test_the_proxys_password_is_not_shown() -> None:
    proxy = f"http://me:secret@127.0.0.1:{unused()}"
    async with open_client(ConnectionConfig("http://10.0.0.1", proxy=proxy)) as cluster:
        message = await complaint(cluster)
    assert ("does not answer" in message, "secret" in message) == (True, False)


# At the end of a command


def command(config: dict[str, Any], folder: Path, *arguments: str) -> tuple[int, str]:
    (folder / "config").write_text(json.dumps(config))
    result = CliRunner().invoke(shoal, [*(arguments or ("get",)), "--kubeconfig", str(folder / "config")])
    assert "Traceback" not in result.output
    return result.exit_code, result.output


def config_for(plane: ControlPlane, **user: Any) -> dict[str, Any]:
    config: dict[str, Any] = json.loads(Path(plane.kubeconfig).read_text())
    config["users"][0]["user"].update(user)
    return config


def config_of(url: str) -> dict[str, Any]:
    return {
        "current-context": "a",
        "contexts": [{"name": "a", "context": {"cluster": "a"}}],
        "clusters": [{"name": "a", "cluster": {"server": url}}],
    }


@pytest.mark.parametrize(
    ("step", "sentence"),
    [
        (
            answer(200, {"major": "1", "minor": "25", "gitVersion": "v1.25.0"}),
            "{url} is Kubernetes v1.25.0, which is too old: Shoal needs 1.28 or newer. Update the cluster.",
        ),
        (
            answer(200, b"<html>", content_type="text/html"),
            "{url} does not answer as a Kubernetes API server: /version is no JSON object. Check the address.",
        ),
        (
            answer(404, b"<html>", content_type="text/html"),
            "{url} does not answer as a Kubernetes API server: GET /version got 404 and text/html. Check the address.",
        ),
    ],
    ids=["old", "a page", "no page"],
)
async def test_a_command_reports_a_server_that_is_too_old(tmp_path: Path, step: Any, sentence: str) -> None:
    async with scripted(step) as server:
        ended = await asyncio.to_thread(command, config_of(server.url), tmp_path)
    assert ended == (1, f"Error: {sentence.format(url=server.url)}\n")


def test_a_command_reports_an_unreachable_server(tmp_path: Path) -> None:
    url = f"https://127.0.0.1:{unused()}"
    assert command(config_of(url), tmp_path) == (
        1,
        f"Error: {url} cannot be reached: Connection refused. Is the cluster up, and is this its address?\n",
    )


@pytest.mark.kubernetes
def test_a_command_reports_an_unknown_authority(plane: ControlPlane, tmp_path: Path) -> None:
    config = config_for(plane)
    (tmp_path / "other.crt").write_bytes(THEIRS.certificate)
    config["clusters"][0]["cluster"]["certificate-authority"] = "other.crt"
    code, message = command(config, tmp_path)
    assert (code, message.count("\n")) == (1, 1)
    assert message.startswith(f"Error: {plane.url} shows a certificate that is not signed by an authority we trust")


@pytest.mark.kubernetes
def test_a_command_reports_a_wrong_token(plane: ControlPlane, tmp_path: Path) -> None:
    user_description, why = f"user admin of {tmp_path}/config", "its credentials are wrong or have run out"
    assert command(config_for(plane, token="wrong"), tmp_path) == (
        1,
        f"Error: {plane.url} does not let in {user_description}: {why}. Log in again.\n",
    )


@pytest.mark.kubernetes
def test_a_command_reports_a_missing_permission(plane: ControlPlane, tmp_path: Path) -> None:
    code, message = command(config_for(plane, **{"as": "nobody-special"}), tmp_path, "logs", "pet")
    assert code == 1
    assert 'User "nobody-special" cannot list resource' in message
    assert message.endswith("Ask for a role that allows it.\n")


@pytest.mark.kubernetes
async def test_the_real_server_is_understood(plane: ControlPlane) -> None:
    async with open_client(from_kubeconfig(Path(plane.kubeconfig))) as cluster:
        with pytest.raises(ApiError) as caught:
            await cluster.get(POD, "none", "default")
    assert (caught.value.code, caught.value.message) == (404, 'pods "none" not found')
