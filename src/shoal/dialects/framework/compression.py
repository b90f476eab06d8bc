"""Compression of large Frameworks: thousands of task statuses do not fit into one object uncompressed.

Every reader of a Framework uses `unpacked`, whatever the controller's options are. A client that may write the status
may write anything into it, so the unpacked result is bounded: in bytes, and in the number of decoded values.
"""

from __future__ import annotations

import base64
import binascii
import gzip
import re
import zlib

import msgspec

from shoal.dialects.job_limits import LARGEST_JOB
from shoal.kube.objects import Obj

LARGE_BYTES = 700 * 1024
# With the rest of the object no API server would store more; the option cannot mean that nothing is stored at all.
TOO_LARGE_BYTES = 1250 * 1024
# Of the JSON of as many tasks as a job may have, with some room: the status of a task takes 1 KB, 12 objects and lists
# and 70 texts. The others bound what its values need in memory, which may be fifty times what they need as JSON: each
# value but the first of an object or list follows a comma.
MOST_BYTES = 3_200 * LARGEST_JOB
_MOST_OBJECTS, _MOST_TEXTS = 40 * LARGEST_JOB, 150 * LARGEST_JOB
_MOST_COMMAS = _MOST_OBJECTS + _MOST_TEXTS
_TEXT = re.compile(rb'"[^"]*"')


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
        try:
            rest["taskRoleStatuses"] = msgspec.json.decode(_decompressed(base64.b64decode(squeezed, validate=True)))
        except (binascii.Error, EOFError, zlib.error, ValueError, RecursionError) as problem:
            where = "status.attemptStatus.taskRoleStatusesCompressed"
            raise ValueError(f"{where} cannot be unpacked: {problem}") from None
    return {**status, "attemptStatus": rest}


def _decompressed(squeezed: bytes) -> bytes:
    unpacking = zlib.decompressobj(wbits=31)  # gzip
    plain = unpacking.decompress(squeezed, MOST_BYTES)
    if unpacking.unconsumed_tail or not _has_few_values(plain):
        raise ValueError(f"it is more than the statuses of {LARGEST_JOB} tasks")
    if not unpacking.eof:
        raise EOFError("it ends too early")
    return plain


def _has_few_values(plain: bytes) -> bool:
    if _has_few_parts(plain) and plain.count(b'"') <= 2 * _MOST_TEXTS:
        return True
    plain = plain.replace(b"\\\\", b"").replace(b'\\"', b"")  # what texts contain does not count
    return plain.count(b'"') <= 2 * _MOST_TEXTS and _has_few_parts(_TEXT.sub(b"", plain))


def _has_few_parts(plain: bytes) -> bool:
    return plain.count(b"{") + plain.count(b"[") <= _MOST_OBJECTS and plain.count(b",") <= _MOST_COMMAS
