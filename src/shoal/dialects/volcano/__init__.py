"""The dialect of Volcano: `batch.volcano.sh/v1alpha1`, kind Job.

* `manifest`, `admission`, `templates`, `lifecycle`, `stages`: the manifest, its defaults and mistakes;
* `definition`, `settings`, `names`, `outcomes`: the CRD, the configuration, keys and outcomes;
* `reading`: a manifest as the engine's model, with all policies of this dialect in one module;
* `rendering`, `plugins`: the pods, and what plugins put into them;
* `kinship`, `groups`, `commands`: PodGroups, plugin objects and claims; Commands;
* `reporting`, `status`: the status, which is derived from the job state and the pods;
* `operations`: user actions, and warnings for users.
"""

from shoal.dialects.volcano.dialect import DIALECT
from shoal.dialects.volcano.settings import VolcanoSettings, settings

__all__ = ["DIALECT", "VolcanoSettings", "settings"]
