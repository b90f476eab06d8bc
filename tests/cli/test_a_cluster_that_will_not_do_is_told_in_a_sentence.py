"""Whatever is wrong with the way to a cluster: one sentence with the way out, exit code 1, no stack trace, no secret.

The same for every command that speaks to a cluster. What is wrong with a file is told before anything is asked; what
is wrong with a server is played by one that gives the same answer to every question.
"""

from __future__ import annotations

import base64
import json
import os
import socket
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from cryptography.hazmat.primitives import serialization

from kit.certificate_authority import PEM, Authority
from kit.scripted_server import Step, answer, hang_up, refusal
from kit.threaded_server import threaded
from shoal.apiserver.discovery import version_info
from shoal.cli.main import shoal

OURS, THEIRS = Authority.make(), Authority.make()
SECRETS = ("hush-token", "hush-password", "hush-variable")
JOB = "apiVersion: frameworkcontroller.microsoft.com/v1\nkind: Framework\nmetadata: {name: x}\n"

# {folder} is the folder of the test.
COMMANDS = {
    "operator": "operator --metrics-address off --health-address off",
    "install": "install --image i",
    "uninstall": "uninstall",
    "node": "node --data {folder}/node",
    "submit": "submit {folder}/job.yaml",
    "scheduler": "scheduler --metrics-address off --health-address off",
    "get": "get",
    "describe": "describe x",
    "logs": "logs x",
    "scale": "scale x worker=2",
    "stop": "stop x",
    "start": "start x",
    "delete": "delete x",
    "wait": "wait x",
}
FEW = ("operator", "install", "uninstall", "node", "submit", "get")
SERVING = ("operator", "scheduler", "install", "uninstall")


def told(folder: Path, command: str, *more: str, **environment: str) -> str:
    """The one sentence a command ends with; {folder} stands for the folder, {file} for the kubeconfig."""
    (folder / "job.yaml").write_text(JOB)
    unset = {name: None for name in os.environ if name.startswith(("SHOAL_", "KUBE"))}
    words = COMMANDS[command].format(folder=folder).split()
    ended = CliRunner().invoke(shoal, [*words, *more], env={**unset, **environment})
    assert (ended.exit_code, ended.stdout) == (1, ""), (ended.output, ended.exception)
    assert ended.stderr.startswith("Error: ")
    assert ended.stderr.count("\n") == 1
    assert [word for word in (*SECRETS, "Traceback") if word in ended.stderr] == []
    said = ended.stderr.removeprefix("Error: ").rstrip("\n")
    return said.replace(str(folder / "config"), "{file}").replace(str(folder), "{folder}")


def config(server: str = "https://127.0.0.1:1", **parts: Any) -> dict[str, Any]:
    """A kubeconfig with a secret in it; `cluster`, `user` and what else stands in it are changed by `parts`."""
    cluster = {"server": server, **parts.pop("cluster", {})}
    user = parts.pop("user", {"token": "hush-token"})
    return {
        "current-context": "here",
        "contexts": [{"name": "here", "context": {"cluster": "c", "user": "u"}}],
        "clusters": [{"name": "c", "cluster": cluster}],
        "users": [{"name": "u", "user": user}],
        **parts,
    }


def written(folder: Path, content: Any) -> str:
    file = folder / "config"
    file.write_text(content if isinstance(content, str) else json.dumps(content))
    return str(file)


# --- files -----------------------------------------------------------------------------------------------------------


def encrypted() -> str:
    key = OURS.secret.private_bytes(
        PEM, serialization.PrivateFormat.PKCS8, serialization.BestAvailableEncryption(b"hush-password")
    )
    return base64.b64encode(key).decode()


ANOTHER = "Name another with --kubeconfig or KUBECONFIG."
USED = "the kubeconfig {file} cannot be used: "
CERTIFICATE = base64.b64encode(OURS.certificate).decode()
FILES: dict[str, tuple[Any, str]] = {
    "no YAML": (
        "users: [{name: hush-token}",
        "the kubeconfig {file} is not YAML: line 2: did not find expected ',' or ']'. "
        "Mend it, or name another with --kubeconfig or KUBECONFIG.",
    ),
    "a zero byte": (
        "\0hush-token",
        "the kubeconfig {file} is not YAML: line 1: control characters are not allowed. "
        "Mend it, or name another with --kubeconfig or KUBECONFIG.",
    ),
    "a list": ("[hush-token]", USED + "it should be a mapping, not a list. " + ANOTHER),
    "nothing": ("", "the kubeconfig {file} has no contexts. " + ANOTHER),
    "no current context": (
        config(**{"current-context": None}),
        "the kubeconfig {file} has no current-context; choose one with --context: here.",
    ),
    "another context": (
        config(**{"current-context": "moon"}),
        "the kubeconfig {file} has no entry 'moon' in contexts. There are: here.",
    ),
    "no cluster": (
        config(clusters=[]),
        "the kubeconfig {file} has no entry 'c' in clusters, which contexts[0].context.cluster names. There are: none.",
    ),
    "no user": (
        config(users=[]),
        "the kubeconfig {file} has no entry 'u' in users, which contexts[0].context.user names. There are: none.",
    ),
    "no address": (
        config(server=""),
        USED + "clusters[0].cluster.server is missing; give the server's address, such as https://10.0.0.1:6443.",
    ),
    "a password in the address": (
        config("https://me:hush-password@10.0.0.1"),
        USED + "clusters[0].cluster.server should be an address only: users and passwords have no place in it.",
    ),
    "no certificate": (
        config(cluster={"certificate-authority-data": "AAAA"}),
        USED + "clusters[0].cluster.certificate-authority-data should be a certificate in PEM form.",
    ),
    "a certificate that is not there": (
        config(cluster={"certificate-authority": "ca.crt"}),
        USED + "clusters[0].cluster.certificate-authority names {folder}/ca.crt, which cannot be read: No such file or "
        "directory.",
    ),
    "half a pair": (
        config(user={"client-certificate-data": CERTIFICATE}),
        USED + "users[0].user.client-key is missing, but its certificate is given: they go together.",
    ),
    "no pair": (
        config(user={"client-certificate-data": CERTIFICATE, "client-key-data": "AAAA"}),
        USED + "users[0].user.client-certificate and its client-key do not make a pair in PEM form (unreadable).",
    ),
    "a token file that is not there": (
        config(user={"tokenFile": "token"}),
        "the token file {folder}/token cannot be read: No such file or directory; have it written again.",
    ),
    "a token of two lines": (
        config(user={"token": "hush-token\nX-Other: 1"}),
        USED + "users[0].user.token should be one line of plain characters.",
    ),
    "somebody of two lines": (
        config(user={"token": "hush-token", "as": "me\nX-Other: 1"}),
        USED + "users[0].user.as should be one line of plain characters.",
    ),
    "a password": (
        config(user={"username": "me", "password": "hush-password"}),
        USED + "users[0].user.username cannot be used: API servers take no passwords any more. Use a token instead.",
    ),
    "a proxy of another kind": (
        config(cluster={"proxy-url": "socks5://me:hush-password@proxy"}),
        USED + "clusters[0].cluster.proxy-url should be an http or https address such as http://10.0.0.1:3128.",
    ),
    "a proxy that is none": (
        config(cluster={"proxy-url": "http://me:hush-password@[x"}),
        USED + "clusters[0].cluster.proxy-url should be an http or https address such as http://10.0.0.1:3128.",
    ),
    "a name no server has": (
        config(cluster={"tls-server-name": ".a"}),
        USED + "clusters[0].cluster.tls-server-name should be a host's name such as kubernetes.default, not '.a'.",
    ),
}


@pytest.mark.parametrize("command", COMMANDS)
def test_a_kubeconfig_that_is_not_there(command: str, tmp_path: Path) -> None:
    said = told(tmp_path, command, "--kubeconfig", str(tmp_path / "config"))
    assert said == f"the kubeconfig {{file}} cannot be read: No such file or directory. {ANOTHER}"


@pytest.mark.parametrize("command", COMMANDS)
def test_a_context_that_is_not_there(command: str, tmp_path: Path) -> None:
    said = told(tmp_path, command, "--kubeconfig", written(tmp_path, config()), "--context", "moon")
    assert said == "the kubeconfig {file} has no entry 'moon' in contexts. There are: here."


@pytest.mark.parametrize("command", FEW)
@pytest.mark.parametrize(("content", "sentence"), FILES.values(), ids=list(FILES))
def test_a_kubeconfig_that_cannot_be_used(command: str, content: Any, sentence: str, tmp_path: Path) -> None:
    assert told(tmp_path, command, "--kubeconfig", written(tmp_path, content)) == sentence


@pytest.mark.parametrize("command", FEW)
def test_a_key_that_wants_a_password(command: str, tmp_path: Path) -> None:
    """Nobody is asked for it: the reason in brackets is OpenSSL's, and differs from version to version."""
    user = {"client-certificate-data": CERTIFICATE, "client-key-data": encrypted()}
    said = told(tmp_path, command, "--kubeconfig", written(tmp_path, config(user=user)))
    assert said.startswith(f"{USED}users[0].user.client-certificate and its client-key do not make a pair in PEM form")


def test_a_proxy_in_the_environment_that_is_none(tmp_path: Path) -> None:
    file = written(tmp_path, config("https://cluster.example:6443"))
    said = told(tmp_path, "get", "--kubeconfig", file, https_proxy="me:hush-password@proxy", no_proxy="")
    assert said == (
        "the variable https_proxy should be an http or https address such as http://10.0.0.1:3128. "
        "Set it right, or name the server in no_proxy."
    )


# --- plugins ---------------------------------------------------------------------------------------------------------

LOGIN = "the plugin {folder}/login (users[0].user.exec of {file}) "
PLUGINS = {
    "fails": ("exit 3", LOGIN + "ended with code 3. Run it by hand to see why, or log in again."),
    "babbles": ("echo hush-token", LOGIN + "did not answer with an ExecCredential: its output is not a JSON object."),
    "gives nothing": ('status=\'{}\'', LOGIN + "gave neither a token nor a client certificate."),
    "gives two lines": (
        'status=\'{"token": "hush-token\\nX-Other: 1"}\'',
        LOGIN + "gave a token that is not one line of plain characters.",
    ),
}  # fmt: skip
PROGRAM = """#!/bin/sh
{body}
[ -z "$status" ] ||
echo '{{"apiVersion": "client.authentication.k8s.io/v1", "kind": "ExecCredential", "status": '"$status"'}}'
"""


@pytest.mark.parametrize("command", FEW)
@pytest.mark.parametrize(("body", "sentence"), PLUGINS.values(), ids=list(PLUGINS))
def test_a_plugin_that_does_not_do_its_work(command: str, body: str, sentence: str, tmp_path: Path) -> None:
    (tmp_path / "login").write_text(PROGRAM.format(body=body).replace("\\n", "\\\\n"))
    (tmp_path / "login").chmod(0o755)
    assert told(tmp_path, command, "--kubeconfig", written(tmp_path, config(user=plugin("./login")))) == sentence


@pytest.mark.parametrize("command", FEW)
def test_a_plugin_that_is_not_there(command: str, tmp_path: Path) -> None:
    file = written(tmp_path, config(user=plugin("shoal-no-such-login")))
    assert told(tmp_path, command, "--kubeconfig", file) == (
        "the plugin shoal-no-such-login (users[0].user.exec of {file}) is not there; install it, or put it on the PATH."
    )


def plugin(program: str) -> dict[str, Any]:
    variables = [{"name": "SECRET", "value": "hush-variable"}]
    how = {"apiVersion": "client.authentication.k8s.io/v1", "interactiveMode": "Never", "env": variables}
    return {"exec": {**how, "command": program}}


# --- servers ---------------------------------------------------------------------------------------------------------

NOT_KUBERNETES = "{url} does not answer as a Kubernetes API server: "
FORBIDDEN = 'frameworks is forbidden: User "me" cannot list resource "frameworks"'
SERVERS: dict[str, tuple[Step, str]] = {
    "too old": (
        answer(200, {"major": "1", "minor": "27+", "gitVersion": "v1.27.16"}),
        "{url} is Kubernetes v1.27.16, which is too old: Shoal needs 1.28 or newer. Update the cluster.",
    ),
    "no version": (
        answer(200, {}),
        "{url} does not say which version of Kubernetes it is. Check the address.",
    ),
    "a page": (
        answer(200, b"<html>", content_type="text/html"),
        NOT_KUBERNETES + "/version is no JSON object. Check the address.",
    ),
    "a way to a log-in": (
        answer(302, b"", content_type="text/html", location="/login"),
        NOT_KUBERNETES + "GET /version got 302 and text/html. Check the address.",
    ),
    "not let in": (
        refusal(401, "Unauthorized", "hush-token is wrong"),
        "{url} does not let in user u of {file}: its credentials are wrong or have run out. Log in again.",
    ),
    "not allowed": (
        refusal(403, "Forbidden", FORBIDDEN),
        f"{FORBIDDEN}. Ask for a role that allows it.",
    ),
    "hangs up": (
        hang_up,
        "GET /version was not answered by {url}: the server closed the connection. Try again; if that fails too, "
        "check the cluster.",
    ),
    "unwell": (
        refusal(500, "InternalError", "etcd is gone"),
        "the API server failed: etcd is gone. Try again; its log has the details.",
    ),
}


@pytest.mark.parametrize("command", FEW)
@pytest.mark.parametrize(("step", "sentence"), SERVERS.values(), ids=list(SERVERS))
def test_a_server_that_will_not_do(command: str, step: Step, sentence: str, tmp_path: Path) -> None:
    with threaded(step) as server:
        said = told(tmp_path, command, "--kubeconfig", written(tmp_path, config(server.url)))
    assert said.replace(server.url, "{url}") == sentence
    assert {request.headers["authorization"] for request in server.received} == {"Bearer hush-token"}


@pytest.mark.parametrize("command", SERVING)
def test_a_cluster_that_serves_its_jobs_itself(command: str, tmp_path: Path) -> None:
    with threaded(answer(200, version_info())) as server:
        said = told(tmp_path, command, "--kubeconfig", written(tmp_path, config(server.url)))
    assert said == (
        f"{server.url} is a cluster of `shoal up`, which serves its jobs and places its pods itself. "
        f"Nothing has to be added to it; for another cluster give --kubeconfig or --context."
    )
    assert {request.path for request in server.received} == {"/version"}


@pytest.mark.parametrize("command", FEW)
def test_a_cluster_that_does_not_respond_is_reported(command: str, tmp_path: Path) -> None:
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))  # taken, and nobody listens
        url = f"https://127.0.0.1:{held.getsockname()[1]}"
        said = told(tmp_path, command, "--kubeconfig", written(tmp_path, config(url)))
    assert said == f"{url} cannot be reached: Connection refused. Is the cluster up, and is this its address?"


CERTIFICATES: dict[str, tuple[Callable[[], Any], str]] = {
    "a stranger": (lambda: THEIRS.sign("me"), "shows a certificate that is not signed by an authority we trust ("),
    "out of date": (lambda: OURS.sign("me", days=-2), "is out of date (certificate has expired). Have it renewed, and"),
}


@pytest.mark.parametrize("command", FEW)
@pytest.mark.parametrize(("pair", "words"), CERTIFICATES.values(), ids=list(CERTIFICATES))
def test_a_server_whose_certificate_will_not_do(
    command: str, pair: Callable[[], Any], words: str, tmp_path: Path
) -> None:
    with threaded(answer(200, {}), ssl_context=pair().context()) as server:
        trusted = config(server.url, cluster={"certificate-authority-data": CERTIFICATE})
        said = told(tmp_path, command, "--kubeconfig", written(tmp_path, trusted))
    assert f"{server.url} {words}" in said
    assert server.received == []  # nothing was shown to it
