"""Patches: how a client sends a change instead of a whole object, in the three formats of Kubernetes.

`json_patch` is a list of operations on paths, `merge_patch` a partial object laid over the whole one, and
`strategic_merge` the same with a schema that marks which lists are really maps. None of them changes its inputs: the
result shares nothing with the object or the patch. A patch that is not well formed raises 400, one that does not fit
the object 422, with the messages of Kubernetes. Server-side apply is `shoal.kube.apply`.
"""

from __future__ import annotations

from shoal.kube.patching.json_patch import json_patch
from shoal.kube.patching.merge_patch import merge_patch
from shoal.kube.patching.strategic import strategic_merge

__all__ = ["json_patch", "merge_patch", "strategic_merge"]
