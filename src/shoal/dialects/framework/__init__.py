"""The dialect of FrameworkController: `frameworkcontroller.microsoft.com/v1`, kind Framework.

* `manifest`, `templates`, `transitions`, `definition`: the manifest, its permitted changes, defaults and mistakes, and
  its CRD;
* `settings`, `failures`, `outcomes`: the configuration, what a failed pod means, and the codes of all other outcomes;
* `foreseeing`: which errors an API server will return for the pods, before they are created;
* `reading`: a manifest as the engine's model, all policies of this dialect in one module;
* `rendering`: builds the ConfigMap of an attempt and the pods of its tasks, and finds the owner of an object;
* `reporting`, `status`, `compression`: the job state, which is the status;
* `operations`, `snapshots`, `barrier`: user actions, the history log, and how tasks find each other.
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
