"""Labels of everything Shoal installs: the application, the installation, and the class of jobs it serves."""

from __future__ import annotations

from shoal.kube.objects import Obj

PART_OF = "app.kubernetes.io/part-of"


INSTANCE = "app.kubernetes.io/instance"


CLASS_LABEL = "shoal.dev/class"


def with_install_labels(definition: Obj) -> Obj:
    """The definition with the label that names its owner."""
    metadata = definition["metadata"]
    return {**definition, "metadata": {**metadata, "labels": {**(metadata.get("labels") or {}), PART_OF: "shoal"}}}
