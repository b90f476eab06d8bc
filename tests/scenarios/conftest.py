"""The Kubernetes that some scenarios are played on."""

from __future__ import annotations

from kit.kubernetes_plane import kubernetes_plane

__all__ = ["kubernetes_plane"]
