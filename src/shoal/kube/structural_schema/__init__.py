"""Custom resources: whether a definition is valid, which kinds it defines, and how its schema applies to objects.

* `crd_problems` checks a CustomResourceDefinition (`crd_validation`, `structural`, `validation_rules`);
* `kinds_of` returns the kinds it serves, `accepted` the status it has once it is accepted;
* `schema_from` parses its schema into a `Schema` (`schema_parser`);
* `prune`, `apply_defaults` and `validate` are applied to an object on every write, in this order
  (`prune_default`, `schema_validation`), and then `broken_rules`, the rules in CEL (`validation_rules`).

The rules and the messages are those of Kubernetes.
"""

from __future__ import annotations

from shoal.kube.structural_schema.crd_validation import accepted, crd_problems, kinds_of
from shoal.kube.structural_schema.prune_default import apply_defaults, prune
from shoal.kube.structural_schema.schema_parser import schema_from
from shoal.kube.structural_schema.schema_validation import NO_FIELD, validate
from shoal.kube.structural_schema.validation_rules import BLOCKING, broken_rules

__all__ = [
    "BLOCKING",
    "NO_FIELD",
    "accepted",
    "apply_defaults",
    "broken_rules",
    "crd_problems",
    "kinds_of",
    "prune",
    "schema_from",
    "validate",
]
