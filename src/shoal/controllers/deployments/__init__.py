"""Deployments of the embedded cluster: each version of the pod template has a ReplicaSet, and pods move between them.

* `replica_sets`: which ReplicaSet has the current template, what a new one looks like, revisions and annotations;
* `rollout`: one step of a rollout, from a Deployment and its ReplicaSets to writes;
* `progress`: the status of a Deployment and its conditions;
* `deployment_controller`: the loop that runs these functions and carries out the writes.

The rules are those of the Deployment controller of kube-controller-manager, so that kubectl understands the result.
"""
