"""Annotations by which a pod names what it was made for, whatever language its job is written in."""

from __future__ import annotations

JOB = "shoal.dev/job"  # <Kind>.<group>/<name>; without a group, <Kind>/<name>
JOB_UID = "shoal.dev/job-uid"
TASK = "shoal.dev/task"  # as `shoal logs` names it, such as worker-0
