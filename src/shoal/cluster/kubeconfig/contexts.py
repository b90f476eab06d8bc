"""Kubeconfigs: from one file or several to the connection of one context.

Several files are read as kubectl reads them: of two entries with one name the first counts, and so does the first
current-context. A file that an entry names is looked for beside the kubeconfig that holds the entry.
"""

from __future__ import annotations

import ipaddress
import os
import re
import ssl
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

from shoal.cluster.kubeconfig.connection_config import (
    STATIC_CREDENTIALS,
    ConnectionConfig,
    ConnectionConfigError,
    Credentials,
)
from shoal.cluster.kubeconfig.exec_plugin import ExecPlugin, ExecPluginCredentials
from shoal.cluster.kubeconfig.kubeconfig_entry import KubeconfigEntry, read
from shoal.cluster.kubeconfig.tls import CertificateFiles, TlsConfig
from shoal.cluster.kubeconfig.token_file import TokenFile, bearer_header, is_token

_PROXIES = ("http", "https")
_PROXY_WANTED = "should be an http or https address such as http://10.0.0.1:3128"


def default_files(variables: Mapping[str, str]) -> list[Path]:
    """The files KUBECONFIG names, else ~/.kube/config; only those that are there."""
    named = [Path(part).expanduser() for part in variables.get("KUBECONFIG", "").split(os.pathsep) if part]
    return [path for path in named or [Path("~/.kube/config").expanduser()] if path.is_file()]


def contexts(files: Path | Sequence[Path]) -> list[str]:
    """The names of the contexts; none where a file cannot be read."""
    try:
        return list(dict.fromkeys(entry.text("name") for entry in _Files.referrer(files).items("contexts")))
    except ConnectionConfigError:
        return []


def from_kubeconfig(files: Path | Sequence[Path], *, server: str = "", context: str = "") -> ConnectionConfig:
    """A context, by default the current one; `server` replaces its address. Raises ConnectionConfigError."""
    config = _Files.referrer(files)
    name = context or config.current()
    context_entry = config.named("contexts", name, "context")
    cluster = config.named("clusters", context_entry.text("cluster"), "cluster", referrer=context_entry)
    user_name = context_entry.text("user")
    user = (
        config.named("users", user_name, "user", referrer=context_entry)
        if user_name
        else KubeconfigEntry(context_entry.file, "", {})
    )
    url = _url(server or _server_of(cluster))
    tls = _tls_config(cluster) if url.startswith("https") else None
    headers, credentials = _credentials(user, cluster, url, tls)
    server_name = cluster.text("tls-server-name")
    if server_name and (not _is_host(server_name) or server_name.startswith(".")):
        why = f"should be a host's name such as kubernetes.default, not {server_name!r}"
        raise cluster.error("tls-server-name", why)
    credential_files = [user.file_path(key) for key in ("client-certificate", "client-key", "tokenFile")]
    return ConnectionConfig(
        url,
        headers,
        _ssl_context(tls, user) if tls else None,
        context_entry.text("namespace") or "default",
        credentials=credentials,
        proxy=_proxy(cluster, url),
        server_name=server_name,
        compression=not (cluster.flag("disable-compression") or _is_local(url)),
        user_description=f"user {user_name} of {user.file}"
        if user_name
        else f"no user: context {name} of {context_entry.file} has no user",
        name=name,
        certificate=user.content("client-certificate"),
        files=(*(entry.file for entry in config.entries), *(path for path in credential_files if path is not None)),
    )


@dataclass(frozen=True, slots=True)
class _Files:
    entries: tuple[KubeconfigEntry, ...]

    @classmethod
    def referrer(cls, files: Path | Sequence[Path]) -> _Files:
        paths = [files] if isinstance(files, Path) else list(files)
        if not paths:
            raise ConnectionConfigError("there is no kubeconfig: KUBECONFIG and ~/.kube/config name no file")
        return cls(tuple(read(file) for file in paths))

    def __str__(self) -> str:
        return ", ".join(str(entry.file) for entry in self.entries)

    def items(self, group: str) -> Iterator[KubeconfigEntry]:
        for entry in self.entries:
            yield from entry.items(group)

    def current(self) -> str:
        found = next((name for entry in self.entries if (name := entry.text("current-context"))), "")
        if not found:
            known = contexts([entry.file for entry in self.entries])
            if not known:
                raise ConnectionConfigError(
                    f"the kubeconfig {self} has no contexts. Name another with --kubeconfig or KUBECONFIG"
                )
            raise ConnectionConfigError(
                f"the kubeconfig {self} has no current-context; choose one with --context: {', '.join(known)}"
            )
        return found

    def named(self, group: str, name: str, key: str, referrer: KubeconfigEntry | None = None) -> KubeconfigEntry:
        for entry in self.items(group):
            if entry.text("name") == name:
                return entry.mapping(key) or KubeconfigEntry(entry.file, f"{entry.path}.{key}", {})
        known = ", ".join(entry.text("name") for entry in self.items(group)) or "none"
        reference = f", which {referrer.path}.{key} names" if referrer else ""
        raise ConnectionConfigError(
            f"the kubeconfig {self} has no entry {name!r} in {group}{reference}. There are: {known}"
        )


def _server_of(cluster: KubeconfigEntry) -> str:
    value = cluster.text("server")
    if not value:
        raise cluster.error("server", "is missing; give the server's address, such as https://10.0.0.1:6443")
    if why := server_url_error(value):
        raise cluster.error("server", why)
    return value


def server_url_error(value: str) -> str:
    """What an address of a server should be, where no server can be at this one; '' where one can."""
    if "@" in value:
        return "should be an address only: users and passwords have no place in it"
    try:
        parts = urlsplit(_url(value))
        has_valid_port = parts.port is None or parts.port > 0
    except ValueError:
        has_valid_port = False
    if (
        has_valid_port
        and parts.scheme in ("http", "https")
        and _is_host(parts.hostname)
        and not (parts.query or parts.fragment)
    ):
        return ""
    return f"should be an address such as https://10.0.0.1:6443, not {value!r}"


def _is_host(name: str | None) -> bool:
    return re.fullmatch(r"[\w.-]+|[0-9a-fA-F:.]+(%\w+)?", name or "") is not None


def _url(value: str) -> str:
    return (value if "://" in value or not value else f"https://{value}").rstrip("/")


def _tls_config(cluster: KubeconfigEntry) -> TlsConfig:
    authority = cluster.content("certificate-authority")
    skip_verify = cluster.flag("insecure-skip-tls-verify")
    if authority and skip_verify:
        what = "and a certificate-authority do not go together: take one of them out"
        raise cluster.error("insecure-skip-tls-verify", what)
    try:
        tls = TlsConfig(authority.decode("ascii"), skip_verify)
        tls.context()
    except (ssl.SSLError, UnicodeDecodeError):
        name = "certificate-authority-data" if cluster.text("certificate-authority-data") else "certificate-authority"
        raise cluster.error(name, "should be a certificate in PEM form") from None
    return tls


def _ssl_context(tls: TlsConfig, user: KubeconfigEntry) -> ssl.SSLContext:
    certificate, key = user.content("client-certificate"), user.content("client-key")
    if not certificate and not key:
        return tls.context()
    for present, value, other in (
        ("client-certificate", certificate, "client-key"),
        ("client-key", key, "certificate"),
    ):
        if not value:
            raise user.error(present, f"is missing, but its {other} is given: they go together")
    try:
        return tls.context_with_certificate(certificate, key)
    except ssl.SSLError as problem:
        what = f"and its client-key do not make a pair in PEM form ({problem.reason or 'unreadable'})"
        raise user.error("client-certificate", what) from None


def _credentials(
    user: KubeconfigEntry, cluster: KubeconfigEntry, url: str, tls: TlsConfig | None
) -> tuple[Mapping[str, str], Credentials]:
    """What every request carries, and what changes. A file counts more than a token written down, as for kubectl."""
    if user.strings("as-groups") or user.mapping("as-user-extra"):
        raise user.error("as-groups", "and as-user-extra are not served; give the rights to a user of their own")
    headers: dict[str, str] = {}
    for name, header in (("as", "Impersonate-User"), ("as-uid", "Impersonate-Uid")):
        if value := user.text(name):
            if not is_token(value):
                raise user.error(name, "should be one line of plain characters")
            headers[header] = value
    if user.text("username") or user.text("password"):
        raise user.error("username", "cannot be used: API servers take no passwords any more. Use a token instead")
    if (old := user.mapping("auth-provider")) is not None:
        raise old.error("name", f"{old.text('name')!r} was replaced by exec plugins; log in again with a newer tool")
    if (path := user.file_path("tokenFile")) is not None:
        file = TokenFile(path)
        file.fetch()
        return headers, file
    if token := user.text("token"):
        if not is_token(token):
            raise user.error("token", "should be one line of plain characters")
        return {**headers, **bearer_header(token)}, _renewed_files(user, tls) or STATIC_CREDENTIALS
    if (entry := user.mapping("exec")) is not None:
        return headers, ExecPluginCredentials(
            ExecPlugin.read(entry, cluster, url), tls.context_with_certificate if tls else None
        )
    return headers, _renewed_files(user, tls) or STATIC_CREDENTIALS


def _renewed_files(user: KubeconfigEntry, tls: TlsConfig | None) -> Credentials | None:
    """Where the certificate is in files, others may renew them."""
    certificate, key = user.file_path("client-certificate"), user.file_path("client-key")
    in_files = not user.text("client-certificate-data") and not user.text("client-key-data")
    return (
        CertificateFiles(certificate, key, tls.context_with_certificate)
        if tls and certificate and key and in_files
        else None
    )


def _proxy(cluster: KubeconfigEntry, url: str) -> str:
    """The cluster's own proxy, else the one the environment names for such addresses."""
    if value := cluster.text("proxy-url"):
        if not _is_proxy(value):
            raise cluster.error("proxy-url", _PROXY_WANTED)
        return value
    if _is_local(url):
        return ""
    from urllib.request import getproxies_environment, proxy_bypass  # slow to import, and for servers far away only

    parts = urlsplit(url)
    found = "" if proxy_bypass(parts.hostname or "") else getproxies_environment().get(parts.scheme, "")
    if found and not _is_proxy(found):
        raise ConnectionConfigError(
            f"the variable {parts.scheme}_proxy {_PROXY_WANTED}. Set it right, or name the server in no_proxy"
        )
    return found


def _is_proxy(value: str) -> bool:
    """A user and a password may stand in it, so it is not repeated where it is wrong."""
    try:
        parts = urlsplit(value)
        return parts.scheme in _PROXIES and _is_host(parts.hostname) and (parts.port or 1) > 0
    except ValueError:
        return False


def _is_local(url: str) -> bool:
    """Whether the server is on this machine."""
    host = urlsplit(url).hostname or ""
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
