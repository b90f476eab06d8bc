"""Annotations by which a pod names what it was made for, whatever language its job is written in."""

from __future__ import annotations

JOB = "shoal.dev/job"  # <Kind>.<group>/<name>; without a group, <Kind>/<name>
JOB_UID = "shoal.dev/job-uid"
PROJECT = "shoal.dev/project"  # on jobs and pods: a project that the cluster on this machine has stored
TASK = "shoal.dev/task"  # as `shoal logs` names it, such as worker-0
