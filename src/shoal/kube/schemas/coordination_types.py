"""Leases: who is alive, who leads."""

from __future__ import annotations

TEXT = """
Lease: A claim that its holder renews while it is alive.
  apiVersion  string      API group and version this object is written in.
  kind        string      Kind of the object.
  metadata    ObjectMeta  Name, labels and what the server keeps about the object.
  spec        LeaseSpec   Who holds it, and for how long.

LeaseSpec: Who holds a lease, and for how long.
  acquireTime           MicroTime                 When the holder got it.
  holderIdentity        string                    Who holds it.
  leaseDurationSeconds  int32                     Seconds it stays good without renewal.
  leaseTransitions      int32                     How often it changed hands.
  preferredHolder       string                    Who should hold it, where the holder is chosen for it.
  renewTime             MicroTime                 When the holder last renewed it.
  strategy              CoordinatedLeaseStrategy  How the holder is chosen.

CoordinatedLeaseStrategy = string
"""
