"""The language of FrameworkController: `frameworkcontroller.microsoft.com/v1`, kind Framework.

* `manifest`, `templates`, `transitions`, `definition`: what people write and may change, its defaults and mistakes, and
  the definition made of it;
* `settings`, `failures`, `outcomes`: the configuration, what a failed pod means, and the codes of everything else;
* `foreseeing`: what an API server will say to the pods, before there are any;
* `reading`: a manifest in the engine's words, all policies of this language on one page;
* `rendering`: the ConfigMap of an attempt and the pods of its tasks, and whose an object is;
* `reporting`, `status`, `compression`: the ledger, which is the status;
* `operations`, `snapshots`, `barrier`: what people do to it, what is told of its past, and how its tasks find each
  other.
"""

from shoal.dialects.dialect import Dialect, SettingsInvalid
from shoal.dialects.framework import (
    definition,
    foreseeing,
    manifest,
    operations,
    reading,
    rendering,
    reporting,
    snapshots,
    transitions,
)
from shoal.dialects.framework.settings import Settings, idle_settings, settings, workers

DIALECT = Dialect(
    kind=definition.kind(),
    crd=definition.crd,
    settings=settings,
    default=manifest.default,
    admit=manifest.admit,
    foresee=foreseeing.foresee,
    warn=operations.warn,
    read=reading.read,
    render=rendering.render,
    pod_name=rendering.pod_name,
    restore=reporting.restore,
    record=reporting.record,
    owner=rendering.owner,
    body=rendering.body,
    report=reporting.report,
    dress_anchor=rendering.dress_anchor,
    anchor_name=rendering.anchor_name,
    anchor=rendering.anchor,
    snapshot=snapshots.snapshot,
    deletion_snapshot=snapshots.deletion_snapshot,
    scale_patch=operations.scale_patch,
    stop_patch=operations.stop_patch,
    start_patch=operations.start_patch,
    workers=workers,
    idle_settings=idle_settings,
    admit_change=transitions.mistakes,
    status_model=definition.status_model,
)

__all__ = ["DIALECT", "Settings", "SettingsInvalid", "settings"]
