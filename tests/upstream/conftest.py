"""The Kubernetes that some of these tests compare with."""

from __future__ import annotations

from kit.kubernetes_plane import kubernetes_plane

__all__ = ["kubernetes_plane"]
