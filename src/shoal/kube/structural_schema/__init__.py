"""Custom resources: whether a definition is sound, which kinds it brings, and what its schema does to objects.

* `crd_problems` and `crd_warnings` judge a CustomResourceDefinition (`definitions`, `shapes`);
* `kinds_of` gives the kinds it serves, `accepted` the status it has once it is taken on;
* `schema_from` reads its schema into a `Schema` (`reading`);
* `prune`, `apply_defaults` and `validate` are what happens to an object on every write, in this order
  (`filling`, `values`).

The rules and the wording are those of Kubernetes. Rules in CEL (x-kubernetes-validations) are kept but not
enforced; `crd_warnings` says so at the place where somebody relies on them.
"""

from __future__ import annotations

from shoal.kube.structural_schema.crd import accepted, crd_problems, crd_warnings, kinds_of
from shoal.kube.structural_schema.parse import schema_from
from shoal.kube.structural_schema.prune_default import apply_defaults, prune
from shoal.kube.structural_schema.validate import NO_FIELD, validate

__all__ = [
    "NO_FIELD",
    "accepted",
    "apply_defaults",
    "crd_problems",
    "crd_warnings",
    "kinds_of",
    "prune",
    "schema_from",
    "validate",
]
