"""The check before the first job: whether this account may do what will be needed.

Made once, at the start, so that the result is one message with everything that is missing instead of a trickle of
rejections later.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable

from shoal.cluster.client import Cluster
from shoal.controller_runtime.rights import Permission
from shoal.kube.kinds import Kind

ACCESS_REVIEW = Kind("authorization.k8s.io", "v1", "SelfSubjectAccessReview", "selfsubjectaccessreviews", False)


class PreflightError(Exception):
    """The operator cannot work here; the message has the reason and what to do."""


async def check_permissions(cluster: Cluster, required: Iterable[tuple[str, Permission]]) -> None:
    """`required` are pairs of a namespace ('' for all) and a right needed there."""
    attributes = list(required)
    answers = await asyncio.gather(
        *(_is_allowed(cluster, namespace, permission) for namespace, permission in attributes)
    )
    missing = [pair for pair, allowed in zip(attributes, answers, strict=True) if not allowed]
    if not missing:
        return
    lines = []
    for namespace, permission in missing:
        scope = f"in namespace {namespace}" if namespace else "in the whole cluster"
        lines.append(f"  {permission} {scope}, {permission.why}")
    listed = "\n".join(lines)
    raise PreflightError(
        f"this account lacks {len(missing)} of the {len(attributes)} rights the operator needs:\n{listed}\n"
        f"`shoal install` grants exactly these; `shoal install --dry-run -o yaml` shows them"
    )


async def _is_allowed(cluster: Cluster, namespace: str, permission: Permission) -> bool:
    resource, _, subresource = permission.resource.partition("/")
    attributes = {"group": permission.group, "resource": resource, "verb": permission.verb}
    if namespace:
        attributes["namespace"] = namespace
    if subresource:
        attributes["subresource"] = subresource
    if permission.names:
        attributes["name"] = permission.names[0]
    answer = await cluster.create(ACCESS_REVIEW, {"metadata": {}, "spec": {"resourceAttributes": attributes}})
    return bool((answer.get("status") or {}).get("allowed"))
