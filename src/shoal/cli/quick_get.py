"""A single question to a cluster of this machine, for commands that are about the cluster itself and not its objects.

They do without the client that other commands use, which takes longer to load than the question takes.
"""

from __future__ import annotations

import json
import ssl
import urllib.error
import urllib.request
from typing import Any

from shoal.local.data_dir import ClusterInfo, DataFolder


class NoAnswer(Exception):
    """The process exists and does not answer; the message states what became of the request."""


def items(data: DataFolder, running: ClusterInfo, plural: str, *, timeout_seconds: float = 30) -> list[dict[str, Any]]:
    """All objects of a core kind."""
    from shoal.apiserver import kubeconfig_file

    request = urllib.request.Request(  # noqa: S310 - our own address
        f"{running.url}/api/v1/{plural}", headers={"Authorization": f"Bearer {data.token()}"}
    )
    try:
        # Not the cluster's own certificate: it may have been given another.
        ssl_context = ssl.create_default_context(cadata=kubeconfig_file.authority(data.kubeconfig))
        with urllib.request.urlopen(request, context=ssl_context, timeout=timeout_seconds) as answer:  # noqa: S310
            found: list[dict[str, Any]] = json.load(answer)["items"]
            return found
    except (urllib.error.URLError, OSError, ValueError) as problem:
        raise NoAnswer(
            f"the cluster in {data.path} (pid {running.pid}) does not answer at {running.url}: {problem}. "
            f"Its log is {data.log}."
        ) from None
