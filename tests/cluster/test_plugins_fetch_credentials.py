"""Exec plugins get the request in their environment; credentials are cached, and failures name the plugin."""

from __future__ import annotations

import json
import re
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
import yaml

from kit.certificate_authority import Authority
from shoal.cluster.kubeconfig import ConnectionConfig, ConnectionConfigError, from_kubeconfig
from shoal.cluster.kubeconfig.exec_plugin import ExecPlugin, ExecPluginCredentials
from shoal.cluster.kubeconfig.kubeconfig_entry import KubeconfigEntry
from shoal.cluster.kubeconfig.tls import TlsConfig

V1 = "client.authentication.k8s.io/v1"
BETA = "client.authentication.k8s.io/v1beta1"
NOON = datetime(2030, 1, 1, 12, tzinfo=UTC)


def program(folder: Path, status: Any, *, version: str = V1, then: str = "") -> Path:
    """A plugin that records its input and its runs, and answers with the status."""
    answer = json.dumps({"apiVersion": version, "kind": "ExecCredential", "status": status})
    path = folder / "login"
    path.write_text(
        f'#!/bin/sh\necho run >> {folder}/runs\nprintf %s "$KUBERNETES_EXEC_INFO" > {folder}/told\n'
        f'printf "%s %s" "$1" "$REGION" > {folder}/asked\ncat <<END\n{answer}\nEND\n{then}\n'
    )
    path.chmod(0o755)
    return path


def runs(folder: Path) -> int:
    return len((folder / "runs").read_text().split()) if (folder / "runs").exists() else 0


def connection(folder: Path, *, cluster: Any = None, **fields: Any) -> ConnectionConfig:
    """From a kubeconfig whose user is the plugin."""
    given = {"apiVersion": V1, "command": "./login", "interactiveMode": "Never", **fields}
    config = {
        "current-context": "here",
        "contexts": [{"name": "here", "context": {"cluster": "c", "user": "u"}}],
        "clusters": [{"name": "c", "cluster": {"server": "https://10.0.0.1", **(cluster or {})}}],
        "users": [{"name": "u", "user": {"exec": given}}],
    }
    (folder / "config").write_text(yaml.safe_dump(config))
    return from_kubeconfig(folder / "config")


def plugin(folder: Path, **fields: Any) -> ExecPlugin:
    given = {"apiVersion": V1, "command": "./login", "interactiveMode": "Never", **fields}
    return ExecPlugin.read(
        KubeconfigEntry(folder / "config", "exec", given),
        KubeconfigEntry(folder / "config", "cluster", {}),
        "https://x",
    )


def test_a_plugin_receives_its_exec_info(tmp_path: Path) -> None:
    program(tmp_path, {"token": "fetched"})
    cluster = {"tls-server-name": "kubernetes", "extensions": [
        {"name": "client.authentication.k8s.io/exec", "extension": {"audience": "me"}}
    ]}  # fmt: skip
    fields = {"args": ["get-token"], "env": [{"name": "REGION", "value": "north"}], "provideClusterInfo": True}
    found = connection(tmp_path, cluster=cluster, **fields)
    assert runs(tmp_path) == 0  # not before it is needed
    assert found.request_credentials().headers == {"Authorization": "Bearer fetched"}
    assert (tmp_path / "asked").read_text() == "get-token north"
    about = {"server": "https://10.0.0.1", "tls-server-name": "kubernetes", "config": {"audience": "me"}}
    assert json.loads((tmp_path / "told").read_text()) == {
        "apiVersion": V1, "kind": "ExecCredential", "spec": {"interactive": False, "cluster": about},
    }  # fmt: skip


def test_what_it_gave_is_kept_until_it_expires(tmp_path: Path) -> None:
    program(tmp_path, {"token": "a", "expirationTimestamp": "2030-01-01T12:10:00Z"})
    now = [NOON]
    credentials = ExecPluginCredentials(plugin(tmp_path), TlsConfig().context_with_certificate, now=lambda: now[0])
    assert credentials.cached() is None
    fetched = credentials.fetch()
    assert (credentials.cached(), runs(tmp_path)) == (fetched, 1)
    now[0] += timedelta(minutes=10)
    assert credentials.cached() is None


def test_without_an_expiry_credentials_are_cached_until_the_next_fetch(tmp_path: Path) -> None:
    program(tmp_path, {"token": "a"}, version=BETA)
    found = connection(tmp_path, apiVersion=BETA, interactiveMode=None)
    assert [found.request_credentials().headers for _ in range(2)] == [{"Authorization": "Bearer a"}] * 2
    assert runs(tmp_path) == 1
    found.credentials.fetch()
    assert runs(tmp_path) == 2


def test_a_plugin_may_give_a_certificate(tmp_path: Path) -> None:
    authority = Authority.make()
    pair = authority.sign("me")
    program(tmp_path, {"clientCertificateData": pair.certificate.decode(), "clientKeyData": pair.key.decode()})
    found = connection(tmp_path)
    shown = found.request_credentials()
    assert shown.headers == {}
    assert shown.ssl_context is not None
    assert shown.ssl_context is not found.ssl_context


@pytest.mark.parametrize(
    ("mode", "terminal", "asks"),
    [("Never", True, False), ("IfAvailable", True, True), ("IfAvailable", False, False), ("Always", True, True)],
)
def test_a_plugin_is_interactive_only_where_allowed(tmp_path: Path, mode: str, terminal: bool, asks: bool) -> None:
    program(tmp_path, {"token": "a"})
    made = plugin(tmp_path, interactiveMode=mode)
    ExecPluginCredentials(made, TlsConfig().context_with_certificate, has_terminal=lambda: terminal).fetch()
    assert json.loads((tmp_path / "told").read_text())["spec"] == {"interactive": asks}


def test_an_interactive_plugin_needs_a_terminal(tmp_path: Path) -> None:
    program(tmp_path, {"token": "a"})
    made = ExecPluginCredentials(
        plugin(tmp_path, interactiveMode="Always"), TlsConfig().context_with_certificate, has_terminal=lambda: False
    )
    with pytest.raises(ConnectionConfigError, match="wants to ask a person, but there is no terminal"):
        made.fetch()
    assert runs(tmp_path) == 0


FAULTS: list[Any] = [
    pytest.param({"status": {}}, "gave neither a token nor a client certificate", id="nothing"),
    pytest.param({"status": None}, "did not answer with an ExecCredential: it has no status", id="no status"),
    pytest.param({"status": {"token": "a"}, "version": BETA}, f"of version {V1}: it is '{BETA}'", id="other version"),
    pytest.param({"status": {"token": "a"}, "then": "exit 3"}, "ended with code 3", id="failed"),
    pytest.param({"status": {"token": "a"}, "then": "echo hi"}, "its output is not a JSON object", id="chatty"),
    pytest.param({"status": {"clientKeyData": "k"}}, "without its key, or a key without", id="half a pair"),
    pytest.param(
        {"status": {"clientCertificateData": "c", "clientKeyData": "k"}}, "do not make a pair in PEM", id="no pair"
    ),
    pytest.param(
        {"status": {"token": "a", "expirationTimestamp": "soon"}}, "expire at 'soon', which is no time", id="no time"
    ),
]


@pytest.mark.parametrize(("answer", "sentence"), FAULTS)
def test_a_plugin_that_fails_is_named(tmp_path: Path, answer: dict[str, Any], sentence: str) -> None:
    program(tmp_path, answer.pop("status"), **answer)
    with pytest.raises(ConnectionConfigError, match=re.escape(sentence)) as caught:
        connection(tmp_path).request_credentials()
    assert f"the plugin {tmp_path}/login (users[0].user.exec of {tmp_path}/config)" in str(caught.value)


def test_a_missing_plugin_is_an_error_with_the_install_hint(tmp_path: Path) -> None:
    found = connection(tmp_path, command="shoal-no-such-login", installHint="Get it from your cloud.")
    with pytest.raises(ConnectionConfigError, match=r"shoal-no-such-login .* is not there\. Get it from your cloud\."):
        found.request_credentials()


@pytest.mark.parametrize(
    ("fields", "sentence"),
    [
        ({"apiVersion": "client.authentication.k8s.io/v1alpha1"}, "users[0].user.exec.apiVersion should be"),
        ({"command": ""}, "users[0].user.exec.command is missing"),
        ({"interactiveMode": None}, "users[0].user.exec.interactiveMode should be one of Never, IfAvailable, Always"),
        ({"args": "get-token"}, "users[0].user.exec.args should be a list of texts"),
    ],
    ids=["old version", "no command", "no mode in v1", "args as text"],
)
def test_a_mistake_in_the_entry_is_named(tmp_path: Path, fields: dict[str, Any], sentence: str) -> None:
    with pytest.raises(ConnectionConfigError, match=re.escape(sentence)):
        connection(tmp_path, **fields)
