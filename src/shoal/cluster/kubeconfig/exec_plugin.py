"""Exec plugins: programs that a kubeconfig names and that fetch credentials (cloud log-ins, single sign-on).

The program is told in KUBERNETES_EXEC_INFO what is wanted, and answers with an ExecCredential on its output. What it
gave is kept until it expires or the server does not accept it. Whether it may ask the person something is what
`interactiveMode` and our own input decide.
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

from shoal.cluster.kubeconfig.connection import NoConnection, Shown
from shoal.cluster.kubeconfig.parse import Entry
from shoal.cluster.kubeconfig.token_file import bearer, is_token

VERSIONS = ("client.authentication.k8s.io/v1", "client.authentication.k8s.io/v1beta1")
Showing = Callable[[bytes, bytes], ssl.SSLContext]


class Interactive(StrEnum):
    NEVER = "Never"
    IF_AVAILABLE = "IfAvailable"
    ALWAYS = "Always"


@dataclass(frozen=True, slots=True)
class Plugin:
    command: str
    args: tuple[str, ...]
    env: Mapping[str, str] = field(repr=False)
    api_version: str
    interactive: Interactive
    where: str  # the file and path of its entry, for sentences
    hint: str = ""  # how to install it
    cluster: Mapping[str, Any] | None = field(default=None)  # what it is told about the cluster, where it wants that

    @classmethod
    def read(cls, told: Entry, cluster: Entry, url: str) -> Plugin:
        version, command = told.text("apiVersion"), told.text("command")
        if version not in VERSIONS:
            raise told.mistake("apiVersion", f"should be {' or '.join(VERSIONS)}, not {version!r}")
        if not command:
            raise told.mistake("command", "is missing; name the program that fetches the credentials")
        if "/" in command:
            command = str(told.file.parent / Path(command).expanduser())
        env = {entry.text("name"): entry.text("value") for entry in told.each("env")}
        about = _about(cluster, url) if told.flag("provideClusterInfo") else None
        return cls(
            command, tuple(told.texts("args")), env, version, _mode(told, version), f"{told.path} of {told.file}",
            told.text("installHint").strip(), about,
        )  # fmt: skip

    def run(self, *, has_terminal: bool) -> Mapping[str, Any]:
        """The status of the ExecCredential it answers with."""
        if self.interactive is Interactive.ALWAYS and not has_terminal:
            raise NoConnection(
                f"the plugin {self.command} ({self.where}) wants to ask a person, but there is no terminal"
            )
        asks = has_terminal and self.interactive is not Interactive.NEVER
        try:
            ran = subprocess.run(  # its own complaints go to our stderr, where the person sees them
                [self.command, *self.args],
                stdin=None if asks else subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                env={**os.environ, **self.env, "KUBERNETES_EXEC_INFO": self._info(asks=asks)},
                check=False,
            )
        except OSError as problem:
            raise self._not_there(problem) from None
        except ValueError:  # no program can be given a zero byte
            raise NoConnection(f"the plugin {self.command!r} ({self.where}) has a zero byte in its entry") from None
        if ran.returncode:
            told = f"the plugin {self.command} ({self.where}) ended with code {ran.returncode}"
            raise NoConnection(f"{told}. Run it by hand to see why, or log in again")
        return self._answer(ran.stdout)

    def _info(self, *, asks: bool) -> str:
        spec: dict[str, Any] = {"interactive": asks}
        if self.cluster is not None:
            spec["cluster"] = self.cluster
        return json.dumps({"apiVersion": self.api_version, "kind": "ExecCredential", "spec": spec})

    def _not_there(self, problem: OSError) -> NoConnection:
        hint = f". {self.hint}" if self.hint else "; install it, or put it on the PATH"
        missing = shutil.which(self.command) is None
        reason = f"is not there{hint}" if missing else f"cannot be run: {problem.strerror}"
        return NoConnection(f"the plugin {self.command} ({self.where}) {reason}")

    def _answer(self, said: bytes) -> Mapping[str, Any]:
        wrong = f"the plugin {self.command} ({self.where}) did not answer with an ExecCredential"
        try:
            told = json.loads(said)
            version, status = told.get("apiVersion"), told.get("status")
        except (ValueError, AttributeError):
            raise NoConnection(f"{wrong}: its output is not a JSON object") from None
        if version != self.api_version:
            raise NoConnection(f"{wrong} of version {self.api_version}: it is {version!r}")
        if not isinstance(status, dict):
            raise NoConnection(f"{wrong}: it has no status")
        return status


def _mode(told: Entry, version: str) -> Interactive:
    given = told.text("interactiveMode")
    if not given and version.endswith("/v1beta1"):
        return Interactive.IF_AVAILABLE
    try:
        return Interactive(given)
    except ValueError:
        raise told.mistake("interactiveMode", f"should be one of {', '.join(Interactive)}, not {given!r}") from None


def _about(cluster: Entry, url: str) -> dict[str, Any]:
    given: dict[str, Any] = {
        "server": url,
        "tls-server-name": cluster.text("tls-server-name"),
        "insecure-skip-tls-verify": cluster.flag("insecure-skip-tls-verify"),
        "certificate-authority-data": base64.b64encode(cluster.content("certificate-authority")).decode(),
        "proxy-url": cluster.text("proxy-url"),
    }
    for extension in cluster.each("extensions"):
        if extension.text("name") == "client.authentication.k8s.io/exec":
            given["config"] = extension.values.get("extension")
    return {name: value for name, value in given.items() if value}


class PluginCredentials:
    """What the plugin gave, until it expires; `now` and `has_terminal` are the world's."""

    def __init__(
        self,
        plugin: Plugin,
        showing: Showing,
        *,
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
        has_terminal: Callable[[], bool] = lambda: sys.stdin is not None and sys.stdin.isatty(),
    ) -> None:
        self._plugin = plugin
        self._showing = showing
        self._now = now
        self._has_terminal = has_terminal
        self._kept: tuple[Shown, datetime | None] | None = None

    def at_hand(self) -> Shown | None:
        if self._kept is None:
            return None
        shown, until = self._kept
        return shown if until is None or self._now() < until else None

    def fetch(self) -> Shown:
        status = self._plugin.run(has_terminal=self._has_terminal())
        token = _text(status, "token")
        if token and not is_token(token):
            raise self._wrong("gave a token that is not one line of plain characters")
        shown = Shown(bearer(token) if token else {}, self._certificate(status))
        if not shown.headers and shown.trust is None:
            raise self._wrong("gave neither a token nor a client certificate")
        self._kept = (shown, self._until(status))
        return shown

    def _certificate(self, status: Mapping[str, Any]) -> ssl.SSLContext | None:
        certificate, key = _text(status, "clientCertificateData"), _text(status, "clientKeyData")
        if not certificate and not key:
            return None
        if not certificate or not key:
            raise self._wrong("gave a client certificate without its key, or a key without its certificate")
        try:
            return self._showing(certificate.encode(), key.encode())
        except ssl.SSLError:
            raise self._wrong("gave a client certificate and a key that do not make a pair in PEM form") from None

    def _until(self, status: Mapping[str, Any]) -> datetime | None:
        given = _text(status, "expirationTimestamp")
        if not given:
            return None
        try:
            return datetime.fromisoformat(given).astimezone(UTC)
        except ValueError:
            raise self._wrong(f"says that its credentials expire at {given!r}, which is no time") from None

    def _wrong(self, what: str) -> NoConnection:
        return NoConnection(f"the plugin {self._plugin.command} ({self._plugin.where}) {what}")


def _text(status: Mapping[str, Any], name: str) -> str:
    value = status.get(name)
    return value if isinstance(value, str) else ""
