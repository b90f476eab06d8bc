"""The Kubernetes that some of these tests compare with."""

from __future__ import annotations

from kit.control_plane_with_node import kubernetes_plane

__all__ = ["kubernetes_plane"]
