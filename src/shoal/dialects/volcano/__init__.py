"""The dialect of Volcano: `batch.volcano.sh/v1alpha1`, kind Job.

* `dialect`: the language as the operator sees it, put together from the other modules;
* `spec`, `validation`, `partial_validation`, `lifecycle_policies`, `depends_on`: the manifest, its defaults and
  mistakes;
* `crd`, `cel_rules`, `settings`, `names`, `completion_codes`: the CRD, the configuration, keys and outcomes;
* `job_spec`: a manifest as the engine's model, with all policies of this dialect in one module;
* `pod_builder`, `plugins`: the pods, and what plugins put into them;
* `children`, `pod_groups`, `commands`: PodGroups, plugin objects and claims; Commands;
* `status`, `status_types`: the status, which is derived from the job state and the pods;
* `actions`, `min_available`: user actions, and warnings for users.
"""

from shoal.dialects.volcano.dialect import DIALECT
from shoal.dialects.volcano.settings import VolcanoSettings, settings

__all__ = ["DIALECT", "VolcanoSettings", "settings"]
