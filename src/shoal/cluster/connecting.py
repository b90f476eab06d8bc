"""How to reach an API server: what a kubeconfig or a pod's service account says, ready for any HTTP client."""

from __future__ import annotations

import base64
import binascii
import os
import ssl
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

_ACCOUNT = Path("/var/run/secrets/kubernetes.io/serviceaccount")


class NoConnection(Exception):
    """There is no way to an API server; the message says what was looked for."""


@dataclass(frozen=True, slots=True)
class Connection:
    """Where the server is, what to show it, and how to know it. `trust` is None for plain HTTP."""

    url: str
    headers: Mapping[str, str] = field(default_factory=dict)
    trust: ssl.SSLContext | None = None
    namespace: str = "default"


def in_cluster(variables: Mapping[str, str]) -> Connection | None:
    """What every pod of a cluster is given; None where this is no pod."""
    host, port = variables.get("KUBERNETES_SERVICE_HOST"), variables.get("KUBERNETES_SERVICE_PORT", "443")
    token, authority, namespace = (_ACCOUNT / name for name in ("token", "ca.crt", "namespace"))
    if not host or not token.is_file():
        return None
    shown = f"[{host}]" if ":" in host else host
    trust = ssl.create_default_context(cafile=str(authority))
    return Connection(
        f"https://{shown}:{port}",
        {"Authorization": f"Bearer {token.read_text().strip()}"},
        trust,
        namespace.read_text().strip() if namespace.is_file() else "default",
    )


def contexts(path: Path) -> list[str]:
    """The names of a kubeconfig's contexts; none where it cannot be read."""
    try:
        config = yaml.safe_load(path.read_text()) or {}
        return [str(entry["name"]) for entry in config.get("contexts") or ()]
    except (OSError, KeyError, AttributeError, TypeError, yaml.YAMLError):
        return []


def from_kubeconfig(path: Path, *, server: str = "", context: str = "") -> Connection:
    """A context of a kubeconfig, by default the current one. Plug-ins that fetch credentials are not run."""
    try:
        config = yaml.safe_load(path.read_text()) or {}
        chosen = _named(config, "contexts", context or config.get("current-context") or "", "context")
        cluster = _named(config, "clusters", chosen.get("cluster") or "", "cluster")
        user = _named(config, "users", chosen.get("user") or "", "user") if chosen.get("user") else {}
        url = (server if "://" in server or not server else f"https://{server}") or cluster["server"]
        namespace = chosen.get("namespace") or "default"
        return Connection(url.rstrip("/"), _headers(user, path), _trust(cluster, user, path, url), namespace)
    except (OSError, KeyError, AttributeError, yaml.YAMLError, binascii.Error) as problem:
        raise NoConnection(f"the kubeconfig {path} cannot be used: {problem}") from None


def _named(config: dict[str, Any], group: str, name: str, key: str) -> dict[str, Any]:
    found = next((entry[key] for entry in config.get(group) or () if entry.get("name") == name), None)
    if found is None:
        raise NoConnection(f"the kubeconfig has no entry {name!r} in {group}")
    entry: dict[str, Any] = found
    return entry


def _headers(user: dict[str, Any], path: Path) -> dict[str, str]:
    token = user.get("token")
    if not token and user.get("tokenFile"):
        token = (path.parent / user["tokenFile"]).read_text().strip()
    if token:
        return {"Authorization": f"Bearer {token}"}
    if user.get("username"):
        pair = base64.b64encode(f"{user['username']}:{user.get('password') or ''}".encode()).decode()
        return {"Authorization": f"Basic {pair}"}
    return {}


def _trust(cluster: dict[str, Any], user: dict[str, Any], path: Path, url: str) -> ssl.SSLContext | None:
    if not url.startswith("https"):
        return None
    authority = _content(cluster, "certificate-authority", path)
    trust = ssl.create_default_context(cadata=authority.decode() if authority else None)
    if cluster.get("insecure-skip-tls-verify"):
        trust.check_hostname = False
        trust.verify_mode = ssl.CERT_NONE
    certificate, key = _content(user, "client-certificate", path), _content(user, "client-key", path)
    if certificate and key:
        _show(trust, certificate, key)
    return trust


def _content(entry: dict[str, Any], name: str, path: Path) -> bytes | None:
    """What `name-data` holds, or the file `name` names."""
    if entry.get(f"{name}-data"):
        return base64.b64decode(entry[f"{name}-data"])
    return (path.parent / entry[name]).read_bytes() if entry.get(name) else None


def _show(trust: ssl.SSLContext, certificate: bytes, key: bytes) -> None:
    """A client certificate can only be loaded from a file, so there is one for a moment that only we can read."""
    handle, name = tempfile.mkstemp(prefix="shoal-")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(certificate + b"\n" + key)
        trust.load_cert_chain(name)
    finally:
        Path(name).unlink()
