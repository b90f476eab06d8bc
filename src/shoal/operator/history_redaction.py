"""Redaction for the history log: an object's whole past, without the secrets that users wrote into it.

Passwords belong into Secrets, which the operator does not read; users write them into the environment of a container
all the same, and logs travel further than objects. So values of variables are masked, and so is the copy of the
manifest that kubectl leaves in an annotation.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from shoal.dialects.capabilities import Snapshot
from shoal.operator.job_events import log_snapshot

REDACTED = "(covered)"
_ENV, _VALUE = "env", "value"
_COPY = "kubectl.kubernetes.io/last-applied-configuration"


def log_redacted(snapshot: Snapshot) -> None:
    """One record of the history logger, without values of environment variables."""
    log_snapshot(replace(snapshot, object=redact(snapshot.object)))


def drop_snapshot(_: Snapshot) -> None:
    """No history."""


def redact(node: Any) -> Any:
    """A copy of the object with every variable's value covered."""
    if isinstance(node, list):
        return [redact(item) for item in node]
    if not isinstance(node, dict):
        return node
    return {
        key: redact_variables(value) if len(key) == len(_ENV) and key.lower() == _ENV else redact(value)
        for key, value in node.items()
        if key != _COPY
    }


def redact_variables(written: Any) -> Any:
    """The variables of a container. A template may write field names in any case, and may hold a map where a list
    belongs."""
    if isinstance(written, dict):
        return dict.fromkeys(written, REDACTED)
    if not isinstance(written, list):
        return written and REDACTED
    return [
        {key: REDACTED if key.lower() == _VALUE else value for key, value in entry.items()}
        if isinstance(entry, dict)
        else entry and REDACTED
        for entry in written
    ]
