"""Before the first job: install the definition of its kind, and register its dialect's admission.

In the embedded cluster admission is a function in the same process; elsewhere a webhook does it, and what it misses is
reported by the reconciler when it reads the job.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial

from shoal.cluster.admission import Admission
from shoal.cluster.apimachinery import Machinery
from shoal.cluster.client import Cluster, PatchType
from shoal.controller_runtime.crd_installer import wait_established
from shoal.dialects.dialect import Dialect, warnings_of, write_errors
from shoal.kube.errors import Cause
from shoal.kube.kinds import CUSTOM_RESOURCE_DEFINITION, Kind
from shoal.kube.objects import Obj, name_of


async def install(cluster: Cluster, definitions: Iterable[Obj]) -> None:
    """Apply the definitions and wait until the cluster serves their kinds."""
    for definition in definitions:
        await cluster.patch(
            CUSTOM_RESOURCE_DEFINITION, name_of(definition),
            patch=definition, patch_type=PatchType.APPLY, field_manager="shoal", force=True,
        )  # fmt: skip
        await wait_established(cluster, name_of(definition))


def admit(machinery: Machinery, dialects: Iterable[Dialect]) -> None:
    """Register each dialect's admission, which rejects what it cannot run at the moment it is written."""
    for dialect in dialects:
        validate = partial(_validate, machinery, dialect)
        machinery.admissions[dialect.kind.resource] = Admission(
            dialect.default, validate, partial(warnings_of, dialect)
        )


def _validate(machinery: Machinery, dialect: Dialect, new: Obj, old: Obj | None) -> list[Cause]:
    """The dialect's errors in the manifest and, for a new one, in relation to the other objects."""

    def lookup(kind: Kind) -> list[Obj]:
        if kind not in machinery.kinds():
            return []
        return [stored.obj() for stored in machinery.list(kind).items]

    return write_errors(dialect, new, old, lookup)
