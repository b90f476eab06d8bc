"""The question before the first job: may this account do what will be needed?

Asked once, at the start, so that the answer is one sentence with everything that is missing instead of a trickle of
refusals later.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable

from shoal.cluster.client import Cluster
from shoal.controller_runtime.rights import Right
from shoal.kube.kinds import Kind

ACCESS_REVIEW = Kind("authorization.k8s.io", "v1", "SelfSubjectAccessReview", "selfsubjectaccessreviews", False)


class NotFit(Exception):
    """The operator cannot work here; the message says why and what to do."""


async def check_rights(cluster: Cluster, wanted: Iterable[tuple[str, Right]]) -> None:
    """`wanted` are pairs of a namespace ('' for all) and a right needed there."""
    asked = list(wanted)
    answers = await asyncio.gather(*(_is_allowed(cluster, place, right) for place, right in asked))
    missing = [pair for pair, allowed in zip(asked, answers, strict=True) if not allowed]
    if not missing:
        return
    listed = "\n".join(f"  {right} {_where(place)}, {right.why}" for place, right in missing)
    raise NotFit(
        f"this account lacks {len(missing)} of the {len(asked)} rights the operator needs:\n{listed}\n"
        f"`shoal install` grants exactly these; `shoal install --dry-run -o yaml` shows them"
    )


def _where(namespace: str) -> str:
    return f"in namespace {namespace}" if namespace else "in the whole cluster"


async def _is_allowed(cluster: Cluster, namespace: str, right: Right) -> bool:
    resource, _, subresource = right.resource.partition("/")
    asked = {"group": right.group, "resource": resource, "verb": right.verb}
    if namespace:
        asked["namespace"] = namespace
    if subresource:
        asked["subresource"] = subresource
    if right.names:
        asked["name"] = right.names[0]
    answer = await cluster.create(ACCESS_REVIEW, {"metadata": {}, "spec": {"resourceAttributes": asked}})
    return bool((answer.get("status") or {}).get("allowed"))
