"""Exec plugins: programs that a kubeconfig names and that fetch credentials (cloud log-ins, single sign-on).

The program receives the request in KUBERNETES_EXEC_INFO, and writes an ExecCredential to its output. The credential
is kept until it expires or the server does not accept it. Whether the program may prompt the user depends on
`interactiveMode` and on our own input.
"""

from __future__ import annotations

import base64
import json
import os
import shutil
import ssl
import subprocess
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from enum import StrEnum
from pathlib import Path
from typing import Any

from shoal.cluster.kubeconfig.connection_config import ConnectionConfigError, RequestCredentials
from shoal.cluster.kubeconfig.kubeconfig_entry import KubeconfigEntry
from shoal.cluster.kubeconfig.token_file import bearer_header, is_token

VERSIONS = ("client.authentication.k8s.io/v1", "client.authentication.k8s.io/v1beta1")
MakeSslContext = Callable[[bytes, bytes], ssl.SSLContext]


class InteractiveMode(StrEnum):
    NEVER = "Never"
    IF_AVAILABLE = "IfAvailable"
    ALWAYS = "Always"


@dataclass(frozen=True, slots=True)
class ExecPlugin:
    command: str
    args: tuple[str, ...]
    env: Mapping[str, str] = field(repr=False)
    api_version: str
    interactive: InteractiveMode
    where: str  # the file and path of its entry, for messages
    hint: str = ""  # how to install it
    cluster: Mapping[str, Any] | None = field(default=None)  # what it receives about the cluster, if it requires that

    @classmethod
    def read(cls, entry: KubeconfigEntry, cluster: KubeconfigEntry, url: str) -> ExecPlugin:
        version, command = entry.text("apiVersion"), entry.text("command")
        if version not in VERSIONS:
            raise entry.error("apiVersion", f"should be {' or '.join(VERSIONS)}, not {version!r}")
        if not command:
            raise entry.error("command", "is missing; name the program that fetches the credentials")
        if "/" in command:
            command = str(entry.file.parent / Path(command).expanduser())
        mode = entry.text("interactiveMode")
        if not mode and version.endswith("/v1beta1"):
            mode = InteractiveMode.IF_AVAILABLE
        if mode not in set(InteractiveMode):
            raise entry.error("interactiveMode", f"should be one of {', '.join(InteractiveMode)}, not {mode!r}")
        env = {entry.text("name"): entry.text("value") for entry in entry.items("env")}
        cluster_info = _cluster_info(cluster, url) if entry.flag("provideClusterInfo") else None
        return cls(
            command, tuple(entry.strings("args")), env, version, InteractiveMode(mode),
            f"{entry.path} of {entry.file}", entry.text("installHint").strip(), cluster_info,
        )  # fmt: skip

    def run(self, *, has_terminal: bool) -> Mapping[str, Any]:
        """The status of the ExecCredential it answers with."""
        if self.interactive is InteractiveMode.ALWAYS and not has_terminal:
            raise ConnectionConfigError(
                f"the plugin {self.command} ({self.where}) wants to ask a person, but there is no terminal"
            )
        is_interactive = has_terminal and self.interactive is not InteractiveMode.NEVER
        spec: dict[str, Any] = {"interactive": is_interactive}
        if self.cluster is not None:
            spec["cluster"] = self.cluster
        exec_info = json.dumps({"apiVersion": self.api_version, "kind": "ExecCredential", "spec": spec})
        try:
            result = subprocess.run(  # its own complaints go to our stderr, where the person sees them
                [self.command, *self.args],
                stdin=None if is_interactive else subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                env={**os.environ, **self.env, "KUBERNETES_EXEC_INFO": exec_info},
                check=False,
            )
        except OSError as problem:
            hint = f". {self.hint}" if self.hint else "; install it, or put it on the PATH"
            missing = shutil.which(self.command) is None
            reason = f"is not there{hint}" if missing else f"cannot be run: {problem.strerror}"
            raise ConnectionConfigError(f"the plugin {self.command} ({self.where}) {reason}") from None
        except ValueError:  # no program can be given a zero byte
            raise ConnectionConfigError(
                f"the plugin {self.command!r} ({self.where}) has a zero byte in its entry"
            ) from None
        if result.returncode:
            entry = f"the plugin {self.command} ({self.where}) ended with code {result.returncode}"
            raise ConnectionConfigError(f"{entry}. Run it by hand to see why, or log in again")
        return self._parse_output(result.stdout)

    def _parse_output(self, output: bytes) -> Mapping[str, Any]:
        message = f"the plugin {self.command} ({self.where}) did not answer with an ExecCredential"
        try:
            entry = json.loads(output)
            version, status = entry.get("apiVersion"), entry.get("status")
        except (ValueError, AttributeError):
            raise ConnectionConfigError(f"{message}: its output is not a JSON object") from None
        if version != self.api_version:
            raise ConnectionConfigError(f"{message} of version {self.api_version}: it is {version!r}")
        if not isinstance(status, dict):
            raise ConnectionConfigError(f"{message}: it has no status")
        return status


def _cluster_info(cluster: KubeconfigEntry, url: str) -> dict[str, Any]:
    value: dict[str, Any] = {
        "server": url,
        "tls-server-name": cluster.text("tls-server-name"),
        "insecure-skip-tls-verify": cluster.flag("insecure-skip-tls-verify"),
        "certificate-authority-data": base64.b64encode(cluster.content("certificate-authority")).decode(),
        "proxy-url": cluster.text("proxy-url"),
    }
    for extension in cluster.items("extensions"):
        if extension.text("name") == "client.authentication.k8s.io/exec":
            value["config"] = extension.values.get("extension")
    return {name: value for name, value in value.items() if value}


class ExecPluginCredentials:
    """What the plugin returned, until it expires. `make_context` is None where the server has a plain http address."""

    def __init__(
        self,
        plugin: ExecPlugin,
        make_context: MakeSslContext | None,
        *,
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
        has_terminal: Callable[[], bool] = lambda: sys.stdin is not None and sys.stdin.isatty(),
    ) -> None:
        self._plugin = plugin
        self._make_context = make_context
        self._now = now
        self._has_terminal = has_terminal
        self._cached: tuple[RequestCredentials, datetime | None] | None = None

    def cached(self) -> RequestCredentials | None:
        if self._cached is None:
            return None
        creds, expires_at = self._cached
        return creds if expires_at is None or self._now() < expires_at else None

    def fetch(self) -> RequestCredentials:
        status = self._plugin.run(has_terminal=self._has_terminal())
        token = _text(status, "token")
        if token and not is_token(token):
            raise self._error("gave a token that is not one line of plain characters")
        creds = RequestCredentials(bearer_header(token) if token else {}, self._certificate(status))
        if not creds.headers and creds.ssl_context is None:
            raise self._error("gave neither a token nor a client certificate")
        expires_at = None
        if expiration := _text(status, "expirationTimestamp"):
            try:
                expires_at = datetime.fromisoformat(expiration).astimezone(UTC)
            except ValueError:
                raise self._error(f"returned credentials that expire at {expiration!r}, which is no time") from None
        self._cached = (creds, expires_at)
        return creds

    def _certificate(self, status: Mapping[str, Any]) -> ssl.SSLContext | None:
        certificate, key = _text(status, "clientCertificateData"), _text(status, "clientKeyData")
        if not certificate and not key:
            return None
        if self._make_context is None:
            raise self._error("gave a client certificate, but the server's address is plain http")
        if not certificate or not key:
            raise self._error("gave a client certificate without its key, or a key without its certificate")
        try:
            return self._make_context(certificate.encode(), key.encode())
        except ssl.SSLError:
            raise self._error("gave a client certificate and a key that do not make a pair in PEM form") from None

    def _error(self, what: str) -> ConnectionConfigError:
        return ConnectionConfigError(f"the plugin {self._plugin.command} ({self._plugin.where}) {what}")


def _text(status: Mapping[str, Any], name: str) -> str:
    value = status.get(name)
    return value if isinstance(value, str) else ""
