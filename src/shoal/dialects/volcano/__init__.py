"""The language of Volcano: `batch.volcano.sh/v1alpha1`, kind Job.

* `manifest`, `admission`, `templates`, `lifecycle`, `stages`: what people write, its defaults and mistakes;
* `definition`, `settings`, `names`, `outcomes`: the definition, the configuration, keys and ends;
* `reading`: a manifest in the engine's words, all policies of this language on one page;
* `rendering`, `plugins`: the pods, and what plugins put into them;
* `kinship`, `groups`, `orders`: PodGroups, plugin objects and claims; Commands;
* `reporting`, `status`: the status, which follows from the ledger and the pods;
* `operations`: what people do to it, and what to warn them of.
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
from shoal.dialects.volcano.settings import Settings, settings
from shoal.scheduler.api.pod_groups import QUEUE

DIALECT = Dialect(
    kind=crd.kind(),
    crd=crd.crd,
    settings=settings,
    default=spec.default,
    admit=validation.admit,
    foresee=actions.foresee,
    warn=actions.warn,
    read=job_spec.read,
    render=pod_builder.render,
    pod_name=pod_builder.pod_name,
    restore=status.restore,
    record=status.record,
    owner=pod_builder.owner,
    body=pod_builder.body,
    report=status.report,
    kin=children.KIN,
    orders=commands.ORDERS,
    mark=pod_builder.MARK,
    scale_patch=actions.scale_patch,
    admit_change=validation.admit_change,
    admit_among=validation.admit_among,
    neighbours=(QUEUE,),
    shown=status.shown,
)

__all__ = ["DIALECT", "Settings", "settings"]
