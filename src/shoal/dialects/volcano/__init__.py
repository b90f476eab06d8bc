"""The dialect of Volcano: `batch.volcano.sh/v1alpha1`, kind Job.

* `manifest`, `admission`, `templates`, `lifecycle`, `stages`: the manifest, its defaults and mistakes;
* `definition`, `settings`, `names`, `outcomes`: the CRD, the configuration, keys and outcomes;
* `reading`: a manifest as the engine's model, with all policies of this dialect in one module;
* `rendering`, `plugins`: the pods, and what plugins put into them;
* `kinship`, `groups`, `commands`: PodGroups, plugin objects and claims; Commands;
* `reporting`, `status`: the status, which is derived from the job state and the pods;
* `operations`: user actions, and warnings for users.
"""

from shoal.dialects.dialect import Dialect
from shoal.dialects.volcano import (
    actions,
    children,
    commands,
    crd,
    job_spec,
    pod_builder,
    spec,
    status,
    validation,
)
from shoal.dialects.volcano.settings import VolcanoSettings, settings
from shoal.scheduler.api.pod_groups import QUEUE

DIALECT = Dialect(
    kind=crd.kind(),
    crd=crd.crd,
    settings=settings,
    default=spec.default,
    admit=validation.admit,
    preview_pods=actions.preview_pods,
    warn=actions.warn,
    read=job_spec.read,
    build_pod=pod_builder.build_pod,
    pod_name=pod_builder.pod_name,
    restore=status.restore,
    record=status.record,
    owner=pod_builder.owner,
    observe_pod=pod_builder.observe_pod,
    report=status.report,
    owned_objects=children.OWNED_OBJECTS,
    commands=commands.JOB_COMMANDS,
    deletion_mark=pod_builder.MARK,
    scale_patch=actions.scale_patch,
    admit_change=validation.admit_change,
    validate_in_cluster=validation.validate_in_cluster,
    validated_against=(QUEUE,),
    status_state=status.status_state,
)

__all__ = ["DIALECT", "VolcanoSettings", "settings"]
