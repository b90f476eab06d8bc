"""Custom resources: whether a definition is valid, which kinds it defines, and how its schema applies to objects.

* `crd_problems` and `crd_warnings` check a CustomResourceDefinition (`crd_validation`, `structural`);
* `kinds_of` returns the kinds it serves, `accepted` the status it has once it is accepted;
* `schema_from` parses its schema into a `Schema` (`schema_parser`);
* `prune`, `apply_defaults` and `validate` are applied to an object on every write, in this order
  (`prune_default`, `schema_validation`).

The rules and the messages are those of Kubernetes. Rules in CEL (x-kubernetes-validations) are kept but not enforced;
`crd_warnings` reports each place that relies on them.
"""

from __future__ import annotations

from shoal.kube.structural_schema.crd_validation import accepted, crd_problems, crd_warnings, kinds_of
from shoal.kube.structural_schema.prune_default import apply_defaults, prune
from shoal.kube.structural_schema.schema_parser import schema_from
from shoal.kube.structural_schema.schema_validation import NO_FIELD, validate

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
