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
from shoal.dialects.gangs import QUEUE
from shoal.dialects.volcano import (
    admission,
    definition,
    kinship,
    manifest,
    operations,
    orders,
    reading,
    rendering,
    reporting,
)
from shoal.dialects.volcano.settings import Settings, settings

DIALECT = Dialect(
    kind=definition.kind(),
    crd=definition.crd,
    settings=settings,
    default=manifest.default,
    admit=admission.admit,
    foresee=operations.foresee,
    warn=operations.warn,
    read=reading.read,
    render=rendering.render,
    pod_name=rendering.pod_name,
    restore=reporting.restore,
    record=reporting.record,
    owner=rendering.owner,
    body=rendering.body,
    report=reporting.report,
    kin=kinship.KIN,
    orders=orders.ORDERS,
    mark=rendering.MARK,
    scale_patch=operations.scale_patch,
    admit_change=admission.admit_change,
    admit_among=admission.admit_among,
    neighbours=(QUEUE,),
    shown=reporting.shown,
)

__all__ = ["DIALECT", "Settings", "settings"]
