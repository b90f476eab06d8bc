"""Priorities of pods."""

from __future__ import annotations

TEXT = """
PriorityClass: A name for a priority that pods can have.
  apiVersion        string            API group and version this object is written in.
  description       string            When to use it, for people.
  globalDefault     bool              Whether pods that name no class get this one.
  kind              string            Kind of the object.
  metadata          ObjectMeta        Name, labels and what the server keeps about the object.
  preemptionPolicy  PreemptionPolicy  Whether its pods may push out others of lower priority.
  value             int32             The priority; higher is scheduled first. Cannot be changed.
"""
