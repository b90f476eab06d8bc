"""Which node the credentials of a kubeconfig are for.

A node authenticates as `system:node:NAME` in the group `system:nodes`, as a kubelet does. The cluster's Node authorizer
and its admission plugin NodeRestriction then confine it to its own Node and Lease, the pods bound to it, and the
objects those refer to.
"""

from __future__ import annotations

from dataclasses import dataclass

from shoal.cluster.client import Cluster
from shoal.kube.kinds import Kind
from shoal.kube.objects import at_path

SELF_REVIEW = Kind("authentication.k8s.io", "v1", "SelfSubjectReview", "selfsubjectreviews", namespaced=False)
PREFIX = "system:node:"
GROUP = "system:nodes"


@dataclass(frozen=True, slots=True)
class Identity:
    user: str
    groups: tuple[str, ...] = ()

    @property
    def node(self) -> str:
        """'' of a user that is no node."""
        return self.user.removeprefix(PREFIX) if self.user.startswith(PREFIX) and GROUP in self.groups else ""


async def review_self(cluster: Cluster) -> Identity:
    """The user this client is authenticated as."""
    review = {"apiVersion": SELF_REVIEW.api_version, "kind": SELF_REVIEW.kind, "metadata": {}}
    answer = await cluster.create(SELF_REVIEW, review)
    user = at_path(answer, "status", "userInfo") or {}
    return Identity(str(user.get("username") or ""), tuple(user.get("groups") or ()))
