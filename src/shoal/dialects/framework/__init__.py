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
    actions,
    crd,
    history,
    job_spec,
    pod_builder,
    pod_preview,
    spec,
    status,
    update_rules,
)
from shoal.dialects.framework.settings import FrameworkSettings, idle_settings, settings, workers

DIALECT = Dialect(
    kind=crd.kind(),
    crd=crd.crd,
    settings=settings,
    default=spec.default,
    admit=spec.admit,
    preview_pods=pod_preview.preview_pods,
    warn=actions.warn,
    read=job_spec.read,
    build_pod=pod_builder.build_pod,
    pod_name=pod_builder.pod_name,
    restore=status.restore,
    record=status.record,
    owner=pod_builder.owner,
    observe_pod=pod_builder.observe_pod,
    report=status.report,
    build_run_owner=pod_builder.build_run_owner,
    run_owner_name=pod_builder.run_owner_name,
    run_owner=pod_builder.run_owner,
    snapshot=history.snapshot,
    deletion_snapshot=history.deletion_snapshot,
    scale_patch=actions.scale_patch,
    stop_patch=actions.stop_patch,
    start_patch=actions.start_patch,
    workers=workers,
    idle_settings=idle_settings,
    admit_change=update_rules.transition_errors,
    status_model=crd.status_model,
)

__all__ = ["DIALECT", "FrameworkSettings", "SettingsInvalid", "settings"]
