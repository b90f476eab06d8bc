"""Large Frameworks: thousands of task statuses do not fit into one object as they are, so they are packed.

Whoever reads a Framework goes through `unpacked`, whatever the controller's options are.
"""

from __future__ import annotations

import base64
import binascii
import gzip
import json
import zlib
from typing import Any

import msgspec

from shoal.kube.objects import Obj

LARGE_BYTES = 700 * 1024
# With the rest of the object no API server would store more; the option cannot mean that nothing is stored at all.
TOO_LARGE_BYTES = 1250 * 1024


def packed(status: Obj, *, from_bytes: int = LARGE_BYTES) -> Obj:
    """The status with its task roles compressed where their JSON is large; the status itself where it is not."""
    attempt = status["attemptStatus"]
    plain = msgspec.json.encode(attempt["taskRoleStatuses"])
    if len(plain) < from_bytes:
        return status
    squeezed = base64.b64encode(gzip.compress(plain, compresslevel=6, mtime=0)).decode()
    return {
        **status,
        "attemptStatus": {**attempt, "taskRoleStatuses": None, "taskRoleStatusesCompressed": squeezed},
    }


def unpacked(status: Obj | None) -> Obj | None:
    """The status with its task roles in the clear. A plain list wins over a compressed one."""
    attempt = (status or {}).get("attemptStatus") or {}
    squeezed = attempt.get("taskRoleStatusesCompressed")
    if status is None or not squeezed:
        return status
    rest = {key: value for key, value in attempt.items() if key != "taskRoleStatusesCompressed"}
    if rest.get("taskRoleStatuses") is None:
        rest["taskRoleStatuses"] = _roles(squeezed)
    return {**status, "attemptStatus": rest}


def _roles(squeezed: str) -> Any:
    try:
        return json.loads(gzip.decompress(base64.b64decode(squeezed, validate=True)))
    except (binascii.Error, OSError, EOFError, zlib.error, ValueError) as problem:
        raise ValueError(f"status.attemptStatus.taskRoleStatusesCompressed cannot be unpacked: {problem}") from None
