"""A job language without what needs Secrets, for operators that have no right to them.

Only plugin ssh of Volcano's Job keeps a key of the job in one. A Job that asks for it is refused with the way out.
"""

from __future__ import annotations

from dataclasses import replace

from shoal.dialects.dialect import Dialect, DialectSettings, ManifestInvalid
from shoal.engine import Job
from shoal.kube.errors import Cause
from shoal.kube.kinds import SECRET
from shoal.kube.objects import Obj, at_path
from shoal.kube.validation.errors import forbidden

PLUGIN = "ssh"
_WHY = "the operator was installed without a right to Secrets: let an administrator run shoal install --ssh-plugin"


def needs_secrets(dialect: Dialect) -> bool:
    return dialect.owned_objects is not None and any(child.kind == SECRET for child in dialect.owned_objects.children)


def without_secrets(dialect: Dialect) -> Dialect:
    """The language as it is where it needs none."""
    if dialect.owned_objects is None or not needs_secrets(dialect):
        return dialect
    children = tuple(child for child in dialect.owned_objects.children if child.kind != SECRET)

    def admit(manifest: Obj) -> list[Cause]:
        return [*dialect.admit(manifest), *_secret_errors(dialect, manifest)]

    def read(manifest: Obj, settings: DialectSettings) -> Job | None:
        if mistakes := _secret_errors(dialect, manifest):
            raise ManifestInvalid(mistakes)
        return dialect.read(manifest, settings)

    return replace(dialect, admit=admit, read=read, owned_objects=replace(dialect.owned_objects, children=children))


def _secret_errors(dialect: Dialect, manifest: Obj) -> list[Cause]:
    """Also of plugins that bring ssh along."""
    plugins = at_path(dialect.default(manifest), "spec", "plugins")
    asks = isinstance(plugins, dict) and PLUGIN in plugins
    return [forbidden(f"spec.plugins[{PLUGIN}]", _WHY)] if asks else []
