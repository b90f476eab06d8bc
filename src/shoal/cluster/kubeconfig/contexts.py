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

from shoal.cluster.kubeconfig.connection import FIXED, Connection, Credentials, NoConnection
from shoal.cluster.kubeconfig.exec_plugin import Plugin, PluginCredentials
from shoal.cluster.kubeconfig.parse import Entry, read
from shoal.cluster.kubeconfig.tls import CertificateFiles, Trust
from shoal.cluster.kubeconfig.token_file import TokenFile, bearer, is_token

_PROXIES = ("http", "https")
_PROXY_WANTED = "should be an http or https address such as http://10.0.0.1:3128"


def usual_files(variables: Mapping[str, str]) -> list[Path]:
    """The files KUBECONFIG names, else ~/.kube/config; only those that are there."""
    named = [Path(part).expanduser() for part in variables.get("KUBECONFIG", "").split(os.pathsep) if part]
    return [path for path in named or [Path("~/.kube/config").expanduser()] if path.is_file()]


def contexts(files: Path | Sequence[Path]) -> list[str]:
    """The names of the contexts; none where a file cannot be read."""
    try:
        return list(dict.fromkeys(entry.text("name") for entry in _Files.of(files).each("contexts")))
    except NoConnection:
        return []


def from_kubeconfig(files: Path | Sequence[Path], *, server: str = "", context: str = "") -> Connection:
    """A context, by default the current one; `server` stands in for its address. Raises NoConnection."""
    config = _Files.of(files)
    name = context or config.current()
    chosen = config.named("contexts", name, "context")
    cluster = config.named("clusters", chosen.text("cluster"), "cluster", of=chosen)
    user_name = chosen.text("user")
    user = config.named("users", user_name, "user", of=chosen) if user_name else Entry(chosen.file, "", {})
    url = _url(server) or _server_of(cluster)
    trust = _trust(cluster) if url.startswith("https") else None
    headers, credentials = _credentials(user, cluster, url, trust)
    return Connection(
        url,
        headers,
        _context(trust, user) if trust else None,
        chosen.text("namespace") or "default",
        credentials=credentials,
        proxy=_proxy(cluster, url),
        server_name=_server_name(cluster),
        compresses=not (cluster.flag("disable-compression") or _is_near(url)),
        who=f"user {user_name} of {user.file}" if user_name else f"nobody: context {name} of {chosen.file} has no user",
        name=name,
        certificate=user.content("client-certificate"),
        files=(*(entry.file for entry in config.entries), *_files_of(user)),
    )


def _files_of(user: Entry) -> Iterator[Path]:
    for name in ("client-certificate", "client-key", "tokenFile"):
        if (path := user.file_named(name)) is not None:
            yield path


@dataclass(frozen=True, slots=True)
class _Files:
    entries: tuple[Entry, ...]

    @classmethod
    def of(cls, files: Path | Sequence[Path]) -> _Files:
        several = [files] if isinstance(files, Path) else list(files)
        if not several:
            raise NoConnection("there is no kubeconfig: KUBECONFIG and ~/.kube/config name no file")
        return cls(tuple(read(file) for file in several))

    def __str__(self) -> str:
        return ", ".join(str(entry.file) for entry in self.entries)

    def each(self, group: str) -> Iterator[Entry]:
        for entry in self.entries:
            yield from entry.each(group)

    def current(self) -> str:
        found = next((name for entry in self.entries if (name := entry.text("current-context"))), "")
        if not found:
            there = contexts([entry.file for entry in self.entries])
            if not there:
                raise NoConnection(
                    f"the kubeconfig {self} has no contexts. Name another with --kubeconfig or KUBECONFIG"
                )
            raise NoConnection(
                f"the kubeconfig {self} has no current-context; choose one with --context: {', '.join(there)}"
            )
        return found

    def named(self, group: str, name: str, key: str, of: Entry | None = None) -> Entry:
        for entry in self.each(group):
            if entry.text("name") == name:
                return entry.below(key) or Entry(entry.file, f"{entry.path}.{key}", {})
        there = ", ".join(entry.text("name") for entry in self.each(group)) or "none"
        asked = f", which {of.path}.{key} names" if of else ""
        raise NoConnection(f"the kubeconfig {self} has no entry {name!r} in {group}{asked}. There are: {there}")


def _server_of(cluster: Entry) -> str:
    given = cluster.text("server")
    if not given:
        raise cluster.mistake("server", "is missing; give the server's address, such as https://10.0.0.1:6443")
    if why := why_no_address(given):
        raise cluster.mistake("server", why)
    return _url(given)


def why_no_address(given: str) -> str:
    """What an address of a server should be, where no server can be at this one; '' where one can."""
    if "@" in given:
        return "should be an address only: users and passwords have no place in it"
    return "" if _is_address(_url(given)) else f"should be an address such as https://10.0.0.1:6443, not {given!r}"


def _is_address(url: str) -> bool:
    try:
        parts = urlsplit(url)
        has_port = parts.port is None or parts.port > 0
    except ValueError:
        return False
    is_plain = has_port and not parts.query and not parts.fragment
    return parts.scheme in ("http", "https") and _is_host(parts.hostname) and is_plain


def _is_host(name: str | None) -> bool:
    return re.fullmatch(r"[\w.-]+|[0-9a-fA-F:.]+(%\w+)?", name or "") is not None


def _server_name(cluster: Entry) -> str:
    name = cluster.text("tls-server-name")
    if name and (not _is_host(name) or name.startswith(".")):
        raise cluster.mistake("tls-server-name", f"should be a host's name such as kubernetes.default, not {name!r}")
    return name


def _url(given: str) -> str:
    return (given if "://" in given or not given else f"https://{given}").rstrip("/")


def _trust(cluster: Entry) -> Trust:
    authority = cluster.content("certificate-authority")
    is_blind = cluster.flag("insecure-skip-tls-verify")
    if authority and is_blind:
        what = "and a certificate-authority do not go together: take one of them out"
        raise cluster.mistake("insecure-skip-tls-verify", what)
    try:
        trust = Trust(authority.decode("ascii"), is_blind)
        trust.context()
    except (ssl.SSLError, UnicodeDecodeError):
        name = "certificate-authority-data" if cluster.text("certificate-authority-data") else "certificate-authority"
        raise cluster.mistake(name, "should be a certificate in PEM form") from None
    return trust


def _context(trust: Trust, user: Entry) -> ssl.SSLContext:
    certificate, key = user.content("client-certificate"), user.content("client-key")
    if not certificate and not key:
        return trust.context()
    for mine, given, other in (("client-certificate", certificate, "client-key"), ("client-key", key, "certificate")):
        if not given:
            raise user.mistake(mine, f"is missing, but its {other} is given: they go together")
    try:
        return trust.showing(certificate, key)
    except ssl.SSLError as problem:
        what = f"and its client-key do not make a pair in PEM form ({problem.reason or 'unreadable'})"
        raise user.mistake("client-certificate", what) from None


def _credentials(user: Entry, cluster: Entry, url: str, trust: Trust | None) -> tuple[Mapping[str, str], Credentials]:
    """What every request carries, and what changes. A file counts more than a token written down, as for kubectl."""
    headers = _acting_as(user)
    if user.text("username") or user.text("password"):
        raise user.mistake("username", "cannot be used: API servers take no passwords any more. Use a token instead")
    if (old := user.below("auth-provider")) is not None:
        raise old.mistake("name", f"{old.text('name')!r} was replaced by exec plugins; log in again with a newer tool")
    if (path := user.file_named("tokenFile")) is not None:
        file = TokenFile(path)
        file.fetch()
        return headers, file
    if token := user.text("token"):
        if not is_token(token):
            raise user.mistake("token", "should be one line of plain characters")
        return {**headers, **bearer(token)}, _renewed_files(user, trust) or FIXED
    if (told := user.below("exec")) is not None:
        return headers, PluginCredentials(Plugin.read(told, cluster, url), trust.showing if trust else _plain)
    return headers, _renewed_files(user, trust) or FIXED


def _renewed_files(user: Entry, trust: Trust | None) -> Credentials | None:
    """Where the certificate is in files, others may renew them."""
    certificate, key = user.file_named("client-certificate"), user.file_named("client-key")
    in_files = not user.text("client-certificate-data") and not user.text("client-key-data")
    return CertificateFiles(certificate, key, trust.showing) if trust and certificate and key and in_files else None


def _plain(_: bytes, __: bytes) -> ssl.SSLContext:
    raise NoConnection("the exec plugin gave a client certificate, but the server's address is plain http")


def _acting_as(user: Entry) -> dict[str, str]:
    if user.texts("as-groups") or user.below("as-user-extra"):
        raise user.mistake("as-groups", "and as-user-extra are not served; give the rights to a user of their own")
    given = {"as": "Impersonate-User", "as-uid": "Impersonate-Uid"}
    for name in given:
        if user.text(name) and not is_token(user.text(name)):
            raise user.mistake(name, "should be one line of plain characters")
    return {header: user.text(name) for name, header in given.items() if user.text(name)}


def _proxy(cluster: Entry, url: str) -> str:
    """The cluster's own proxy, else the one the environment names for such addresses."""
    if given := cluster.text("proxy-url"):
        if not _is_proxy(given):
            raise cluster.mistake("proxy-url", _PROXY_WANTED)
        return given
    if _is_near(url):
        return ""
    from urllib.request import getproxies_environment, proxy_bypass  # slow to import, and for servers far away only

    parts = urlsplit(url)
    found = "" if proxy_bypass(parts.hostname or "") else getproxies_environment().get(parts.scheme, "")
    if found and not _is_proxy(found):
        raise NoConnection(
            f"the variable {parts.scheme}_proxy {_PROXY_WANTED}. Set it right, or name the server in no_proxy"
        )
    return found


def _is_proxy(given: str) -> bool:
    """A user and a password may stand in it, so it is not repeated where it is wrong."""
    try:
        parts = urlsplit(given)
        return parts.scheme in _PROXIES and _is_host(parts.hostname) and (parts.port or 1) > 0
    except ValueError:
        return False


def _is_near(url: str) -> bool:
    """Whether the server is on this machine."""
    host = urlsplit(url).hostname or ""
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
