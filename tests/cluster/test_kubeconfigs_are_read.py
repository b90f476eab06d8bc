"""Kubeconfigs lead to a connection as they do for kubectl, and every mistake is named with its file and path."""

from __future__ import annotations

import base64
import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from kit.certificate_authority import Authority
from shoal.cluster.kubeconfig import (
    ConnectionConfig,
    ConnectionConfigError,
    contexts,
    default_files,
    from_kubeconfig,
    in_cluster,
)

URL = "https://10.0.0.1:6443"


def write(path: Path, *, cluster: Any = None, user: Any = None, context: Any = None, **more: Any) -> Path:
    config = {
        "current-context": "here",
        "contexts": [{"name": "here", "context": {"cluster": "c", "user": "u", **(context or {})}}],
        "clusters": [{"name": "c", "cluster": {"server": URL} if cluster is None else cluster}],
        "users": [{"name": "u", "user": {"token": "t"} if user is None else user}],
        **more,
    }
    path.write_text(yaml.safe_dump(config))
    return path


def b64(data: bytes) -> str:
    return base64.b64encode(data).decode()


def test_a_context_names_cluster_user_and_namespace(tmp_path: Path) -> None:
    file = write(tmp_path / "config", cluster={"server": "http://10.0.0.1:8001/"}, context={"namespace": "team"})
    found = from_kubeconfig(file)
    assert found == ConnectionConfig("http://10.0.0.1:8001", {"Authorization": "Bearer t"}, None, "team")
    assert found.user_description == f"user u of {file}"


def test_of_several_files_the_first_entry_wins(tmp_path: Path) -> None:
    first, second = tmp_path / "first", tmp_path / "second"
    write(first, cluster={"server": "http://first"}, contexts=None, users=None)
    write(second, cluster={"server": "http://second"}, **{"current-context": "other"})
    variables = {"KUBECONFIG": f"{first}::{tmp_path / 'missing'}:{second}"}
    files = default_files(variables)
    assert files == [first, second]
    assert contexts(files) == ["here"]
    assert from_kubeconfig(files) == ConnectionConfig("http://first", {"Authorization": "Bearer t"})


def test_file_paths_are_relative_to_the_kubeconfig(tmp_path: Path) -> None:
    (tmp_path / "one").mkdir()
    (tmp_path / "two").mkdir()
    (tmp_path / "two" / "token").write_text("two\n")
    first = write(tmp_path / "one" / "config", cluster={"server": "http://a"}, users=None)
    second = write(tmp_path / "two" / "config", user={"tokenFile": "token"})
    assert from_kubeconfig([first, second]).request_credentials().headers == {"Authorization": "Bearer two"}


def test_a_token_file_is_read_again_when_it_changes(tmp_path: Path) -> None:
    token = tmp_path / "token"
    token.write_text("old")
    connection = from_kubeconfig(write(tmp_path / "config", user={"tokenFile": str(token), "token": "written down"}))
    before = connection.request_credentials()
    (tmp_path / "new").write_text("newer")
    (tmp_path / "new").rename(token)
    assert (before.headers, connection.request_credentials().headers) == (
        {"Authorization": "Bearer old"},
        {"Authorization": "Bearer newer"},
    )


def test_certificates_come_from_files_or_data(tmp_path: Path) -> None:
    authority = Authority.make()
    mine = authority.sign("me")
    (tmp_path / "ca.crt").write_bytes(authority.certificate)
    (tmp_path / "me.crt").write_bytes(mine.certificate)
    (tmp_path / "me.key").write_bytes(mine.key)
    by_file = write(
        tmp_path / "a",
        cluster={"server": URL, "certificate-authority": "ca.crt"},
        user={"client-certificate": "me.crt", "client-key": str(tmp_path / "me.key")},
    )
    by_data = write(
        tmp_path / "b",
        cluster={"server": URL, "certificate-authority-data": b64(authority.certificate)},
        user={"client-certificate-data": b64(mine.certificate), "client-key-data": b64(mine.key)},
    )
    for file in (by_file, by_data):
        ssl_context = from_kubeconfig(file).ssl_context
        assert ssl_context is not None
        assert [dict(pair[0] for pair in ca["subject"])["commonName"] for ca in ssl_context.get_ca_certs()] == [
            "authority"
        ]
        assert ssl_context.check_hostname


def test_a_certificate_in_files_may_be_renewed(tmp_path: Path) -> None:
    authority = Authority.make()
    old, new = authority.sign("old"), authority.sign("new")
    certificate, key = tmp_path / "me.crt", tmp_path / "me.key"
    certificate.write_bytes(old.certificate)
    key.write_bytes(old.key)
    user = {"client-certificate": "me.crt", "client-key": "me.key"}
    connection = from_kubeconfig(write(tmp_path / "config", user=user))
    first, again = connection.request_credentials().ssl_context, connection.request_credentials().ssl_context
    certificate.write_bytes(new.certificate)
    half = connection.request_credentials().ssl_context  # not a pair yet
    key.write_bytes(new.key)
    renewed = connection.request_credentials().ssl_context
    assert (first is again, first is half, first is renewed, renewed is None) == (True, True, False, False)


def test_secrets_are_not_shown_by_accident(tmp_path: Path) -> None:
    cluster = {"server": URL, "proxy-url": "http://me:hush@proxy"}
    connection = from_kubeconfig(write(tmp_path / "config", user={"token": "hush"}, cluster=cluster))
    assert connection.request_credentials().headers == {"Authorization": "Bearer hush"}
    assert "hush" not in f"{connection} {connection.request_credentials()}"


def test_a_server_may_be_believed_blindly_or_under_another_name(tmp_path: Path) -> None:
    blind = from_kubeconfig(write(tmp_path / "a", cluster={"server": URL, "insecure-skip-tls-verify": True}))
    named = from_kubeconfig(write(tmp_path / "b", cluster={"server": URL, "tls-server-name": "kubernetes"}))
    assert blind.ssl_context is not None
    assert named.ssl_context is not None
    assert (blind.ssl_context.check_hostname, named.ssl_context.check_hostname, named.server_name) == (
        False,
        True,
        "kubernetes",
    )


@pytest.mark.parametrize(
    ("cluster", "variables", "proxy"),
    [
        ({"proxy-url": "http://proxy:3128"}, {"HTTPS_PROXY": "http://other"}, "http://proxy:3128"),
        ({}, {"HTTPS_PROXY": "http://other"}, "http://other"),
        ({}, {"HTTPS_PROXY": "http://other", "NO_PROXY": "10.0.0.1"}, ""),
        ({"server": "https://127.0.0.1:1"}, {"HTTPS_PROXY": "http://other"}, ""),
    ],
    ids=["its own", "the environment's", "excepted", "on this machine"],
)
def test_the_way_may_lead_through_a_proxy(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, cluster: dict[str, str], variables: dict[str, str], proxy: str
) -> None:
    for name in ("HTTPS_PROXY", "https_proxy", "NO_PROXY", "no_proxy", "REQUEST_METHOD"):
        monkeypatch.delenv(name, raising=False)
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    assert from_kubeconfig(write(tmp_path / "config", cluster={"server": URL, **cluster})).proxy == proxy


CA = Authority.make()
PAIR = CA.sign("me")
MISTAKES: list[Any] = [
    pytest.param({"text": ": :"}, "{file} is not YAML: ", id="not YAML"),
    pytest.param({"text": "[1]"}, "{file} cannot be used: it should be a mapping, not a list", id="a list"),
    pytest.param({"text": "clusters: 3"}, "{file} has no contexts. Name another with --kubeconfig", id="no contexts"),
    pytest.param({"current-context": ""}, "{file} has no current-context; choose one with --context: here", id="none"),
    pytest.param({"current-context": "x"}, "{file} has no entry 'x' in contexts. There are: here", id="no context"),
    pytest.param(
        {"clusters": []},
        "{file} has no entry 'c' in clusters, which contexts[0].context.cluster names",
        id="no cluster",
    ),
    pytest.param({"users": "u"}, "{file} cannot be used: users should be a list, not text", id="users is text"),
    pytest.param({"cluster": {}}, "clusters[0].cluster.server is missing", id="no server"),
    pytest.param({"cluster": {"server": "ftp://x"}}, "clusters[0].cluster.server should be an address", id="ftp"),
    pytest.param({"cluster": {"server": "https://a b"}}, "clusters[0].cluster.server should be an address", id="a b"),
    pytest.param({"cluster": {"server": "https://x:0"}}, "cluster.server should be an address", id="port 0"),
    pytest.param({"cluster": {"server": "https://x:99999"}}, "cluster.server should be an address", id="port 99999"),
    pytest.param({"cluster": {"server": "https://me:secret@x"}}, "users and passwords have no place", id="with a user"),
    pytest.param({"user": {"token": "two\nlines"}}, "users[0].user.token should be one line", id="two lines"),
    pytest.param({"cluster": {"server": 5}}, "clusters[0].cluster.server should be text, not a number", id="number"),
    pytest.param(
        {"cluster": {"server": URL, "proxy-url": "socks5://x"}},
        "clusters[0].cluster.proxy-url should be an http or https address",
        id="socks",
    ),
    pytest.param(
        {"cluster": {"server": URL, "certificate-authority": "none.crt"}},
        "clusters[0].cluster.certificate-authority names {folder}/none.crt, which cannot be read: No such file",
        id="no authority file",
    ),
    pytest.param(
        {"cluster": {"server": URL, "certificate-authority-data": "%"}},
        "clusters[0].cluster.certificate-authority-data should be base64",
        id="not base64",
    ),
    pytest.param(
        {"cluster": {"server": URL, "certificate-authority-data": b64(b"hello")}},
        "clusters[0].cluster.certificate-authority-data should be a certificate in PEM form",
        id="not a certificate",
    ),
    pytest.param(
        {
            "cluster": {
                "server": URL,
                "certificate-authority-data": b64(CA.certificate),
                "insecure-skip-tls-verify": True,
            }
        },
        "clusters[0].cluster.insecure-skip-tls-verify and a certificate-authority do not go together",
        id="blind with an authority",
    ),
    pytest.param(
        {"user": {"client-certificate-data": b64(PAIR.certificate)}},
        "users[0].user.client-key is missing, but its certificate is given",
        id="no key",
    ),
    pytest.param(
        {"user": {"client-certificate-data": b64(PAIR.certificate), "client-key-data": b64(CA.sign("x").key)}},
        "users[0].user.client-certificate and its client-key do not make a pair",
        id="another's key",
    ),
    pytest.param(
        {"user": {"username": "me", "password": "secret"}}, "users[0].user.username cannot be used: API", id="password"
    ),
    pytest.param(
        {"user": {"auth-provider": {"name": "gcp"}}},
        "users[0].user.auth-provider.name 'gcp' was replaced by exec plugins",
        id="auth-provider",
    ),
    pytest.param(
        {"user": {"tokenFile": "none"}}, "the token file {folder}/none cannot be read: No such file", id="no token file"
    ),
]


@pytest.mark.parametrize(("config", "sentence"), MISTAKES)
def test_a_mistake_is_named_with_file_and_path(tmp_path: Path, config: dict[str, Any], sentence: str) -> None:
    file = tmp_path / "config"
    if "text" in config:
        file.write_text(config["text"])
    else:
        write(file, **config)
    with pytest.raises(ConnectionConfigError, match=re.escape(sentence.format(file=file, folder=tmp_path))) as caught:
        from_kubeconfig(file)
    assert str(file) in str(caught.value) or str(tmp_path) in str(caught.value)
    assert "secret" not in str(caught.value)


def test_a_pod_finds_its_cluster(tmp_path: Path) -> None:
    variables = {"KUBERNETES_SERVICE_HOST": "fd00::1", "KUBERNETES_SERVICE_PORT": "6443"}
    assert in_cluster({}, tmp_path) is None
    assert in_cluster(variables, tmp_path) is None
    (tmp_path / "token").write_text("first")
    (tmp_path / "ca.crt").write_bytes(CA.certificate)
    (tmp_path / "namespace").write_text("team\n")
    found = in_cluster(variables, tmp_path)
    assert found is not None
    assert (found.url, found.namespace) == ("https://[fd00::1]:6443", "team")
    assert found.request_credentials().headers == {"Authorization": "Bearer first"}
    (tmp_path / "token").write_text("the second")
    assert found.request_credentials().headers == {"Authorization": "Bearer the second"}


def test_an_unreadable_service_account_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "token").write_text("first")
    with pytest.raises(ConnectionConfigError, match=re.escape(f"{tmp_path}/ca.crt cannot be used")):
        in_cluster({"KUBERNETES_SERVICE_HOST": "10.0.0.1"}, tmp_path)
