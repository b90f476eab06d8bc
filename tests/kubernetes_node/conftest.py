"""A whole Kubernetes with one `shoal node`, shared by every test of a run."""

from __future__ import annotations

import sys

from kit import elastic_group
from kit.control_plane_with_node import kubernetes_plane

sys.path.append(str(elastic_group.EXAMPLE))

__all__ = ["kubernetes_plane"]
