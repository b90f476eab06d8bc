"""A program's own admission of objects of a kind, where a Kubernetes cluster would call its webhooks.

Called on every write that touches what people wrote, never for the status: first `warn`, which sees the object as it
was written and returns what is accepted and probably not meant; then `default`; then, beside the schema of the
definition, `check` with every mistake at once. For a deletion request, `deny_delete` returns why it is not allowed.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from shoal.kube.errors import Cause
from shoal.kube.objects import Obj
from shoal.kube.structural_schema import NO_FIELD


@dataclass(frozen=True, slots=True)
class Admission:
    """None of the functions changes what it is given."""

    default: Callable[[Obj], Obj]
    check: Callable[[Obj, Obj | None], list[Cause]]  # new and old
    warn: Callable[[Obj, Obj | None], list[str]]
    deny_delete: Callable[[Obj], str] | None = None  # why it may not be deleted, '' where it may; None: it always may


def merge_causes(webhook_causes: list[Cause], schema_causes: list[Cause]) -> list[Cause]:
    """Both lists; for a field in both the program's own message stays, because it states what would be right."""
    covered = {cause.field for cause in webhook_causes}
    merged = list(webhook_causes)
    for cause in schema_causes:
        # For a number that is no integer a schema names the field in the message alone.
        field = cause.message.rpartition(" in ")[2] if cause.field == NO_FIELD else cause.field
        if field not in covered:
            merged.append(cause)
    return merged
