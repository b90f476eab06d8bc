"""The user a pod's processes run as on a node that root started and whose pods are not trusted.

Every namespace has a user and a group of its own, outside the ranges that Linux systems hand out, so that pods of
different namespaces cannot read each other's memory, files or environment. A pod may choose another user and group
(`runAsUser`, `runAsGroup`), but neither an account of this machine (root, a person's, a service's) nor the user of
another namespace, which any client can compute. Two namespaces that choose the same free number share a user.
"""

from __future__ import annotations

import grp
import hashlib
import pwd
from collections.abc import Callable
from typing import Any

from shoal.kube.messages import Message
from shoal.node.pod_references import ReferenceMissing

# 0x70000000 to 0x7fffffff: assigned to nothing by Debian, Fedora and systemd.
FIRST = 0x70000000
COUNT = 1 << 28


def user_of_namespace(namespace: str) -> int:
    """Uid and gid of the namespace: the same on every node, so that files on shared storage stay accessible."""
    digest = hashlib.sha256(namespace.encode()).digest()
    return FIRST + int.from_bytes(digest[:4], "big") % COUNT


def resolve_user(namespace: str, uid: int | None, gid: int | None) -> tuple[int, int]:
    """Uid and gid for a process of the namespace; ReferenceMissing where it requests those of others."""
    own = user_of_namespace(namespace)
    for field, number in (("runAsUser", uid), ("runAsGroup", gid)):
        if number not in (None, own) and number in range(FIRST, FIRST + COUNT):
            parameters = {"field": field, "number": number, "namespace": namespace, "first": FIRST}
            raise ReferenceMissing(Message("User.OfNamespace", parameters))
    if uid is not None and _exists(pwd.getpwuid, uid):
        raise ReferenceMissing(Message("User.Account", {"field": "runAsUser", "number": uid}))
    if gid is not None and _exists(grp.getgrgid, gid):
        raise ReferenceMissing(Message("User.Group", {"field": "runAsGroup", "number": gid}))
    return own if uid is None else uid, own if gid is None else gid


def _exists(find: Callable[[int], Any], number: int) -> bool:
    if number == 0:
        return True
    try:
        find(number)
    except KeyError:
        return False
    return True
