"""The Kubernetes that some scenarios are played on."""

from __future__ import annotations

from kit.control_plane_with_node import kubernetes_plane

__all__ = ["kubernetes_plane"]
