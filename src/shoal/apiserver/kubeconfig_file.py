"""The kubeconfig of the server: its address, the token, and the certificate to trust.

It holds a secret, so it is readable by its owner alone from its first moment, and it is replaced whole: a reader
sees the old file or the new one.
"""

from __future__ import annotations

import base64
import os
import tempfile
from pathlib import Path
from typing import Any

import yaml

from shoal.apiserver.auth import USER


def contents(*, server: str, token: str, context: str = "shoal", ca_pem: bytes | None = None) -> str:
    """A kubeconfig with one cluster, one user and one context, all current."""
    cluster: dict[str, Any] = {"server": server}
    if ca_pem is not None:
        cluster["certificate-authority-data"] = base64.b64encode(ca_pem).decode()
    user = f"{context}-{USER}"
    config = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": context, "cluster": cluster}],
        "users": [{"name": user, "user": {"token": token}}],
        "contexts": [{"name": context, "context": {"cluster": context, "user": user, "namespace": "default"}}],
        "current-context": context,
        "preferences": {},
    }
    return yaml.safe_dump(config, sort_keys=False)


def write(path: Path, *, server: str, token: str, context: str = "shoal", ca_pem: bytes | None = None) -> None:
    text = contents(server=server, token=token, context=context, ca_pem=ca_pem)
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")  # made with mode 0600
    fresh = Path(name)
    try:
        with os.fdopen(handle, "w") as file:
            file.write(text)
            file.flush()
            # Before the rename: a power cut must not leave an empty kubeconfig in place of the old one.
            os.fsync(file.fileno())
        fresh.replace(path)
    except BaseException:
        fresh.unlink(missing_ok=True)
        raise


def authority(path: Path) -> str | None:
    """The certificate that the file at `path` makes clients trust, in PEM; None if it names none."""
    cluster = yaml.safe_load(path.read_text())["clusters"][0]["cluster"]
    encoded = cluster.get("certificate-authority-data")
    return base64.b64decode(encoded).decode() if encoded else None
