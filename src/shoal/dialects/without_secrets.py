"""A job language without what needs Secrets, for operators that have no right to them.

Only plugin ssh of Volcano's Job keeps a key of the job in one. A Job that requests it is refused with the way out.
"""

from __future__ import annotations

from shoal.dialects.capabilities import DialectSettings, OwnedObjects, OwnedObjectsWrapper
from shoal.dialects.dialect import Dialect, DialectWrapper, ManifestInvalid
from shoal.engine import Job
from shoal.kube.errors import Cause
from shoal.kube.kinds import SECRET
from shoal.kube.objects import Obj, at_path
from shoal.kube.validation.errors import forbidden

PLUGIN = "ssh"
_WHY = "the operator was installed without a right to Secrets: let an administrator run shoal install --ssh-plugin"


def needs_secrets(dialect: Dialect) -> bool:
    owned = dialect.capability(OwnedObjects)
    return owned is not None and any(child.kind == SECRET for child in owned.children)


def without_secrets(dialect: Dialect) -> Dialect:
    """The language as it is where it needs none."""
    owned = dialect.capability(OwnedObjects)
    return dialect if owned is None or not needs_secrets(dialect) else _SecretlessDialect(dialect, owned)


class _SecretlessDialect(DialectWrapper):
    def __init__(self, dialect: Dialect, owned: OwnedObjects) -> None:
        children = tuple(child for child in owned.children if child.kind != SECRET)
        super().__init__(dialect, replaced=(OwnedObjects,), added=(OwnedObjectsWrapper(owned, children),))

    def validate(self, new: Obj, old: Obj | None = None) -> list[Cause]:
        return [*super().validate(new, old), *_secret_errors(self, new)]

    def to_job(self, manifest: Obj, settings: DialectSettings) -> Job | None:
        if mistakes := _secret_errors(self, manifest):
            raise ManifestInvalid(mistakes)
        return super().to_job(manifest, settings)


def _secret_errors(dialect: Dialect, manifest: Obj) -> list[Cause]:
    """Also of plugins that bring ssh along."""
    plugins = at_path(dialect.default(manifest), "spec", "plugins")
    asks = isinstance(plugins, dict) and PLUGIN in plugins
    return [forbidden(f"spec.plugins[{PLUGIN}]", _WHY)] if asks else []
