"""The dialect of FrameworkController: `frameworkcontroller.microsoft.com/v1`, kind Framework.

* `dialect`: the language as the operator sees it, put together from the other modules;
* `spec`, `template_fields`, `crd`: the manifest, its defaults and mistakes, its permitted changes, and its
  CRD;
* `settings`, `pod_failure_spec`, `controller_outcomes`: the configuration, what a failed pod means, and the codes of
  all other outcomes;
* `pod_preview`: which errors an API server will return for the pods, before they are created;
* `job_spec`: a manifest as the engine's model, all policies of this dialect in one module;
* `pod_builder`: builds the ConfigMap of an attempt and the pods of its tasks, and finds the owner of an object;
* `status`, `status_types`, `compression`: the job state, which is the status;
* `actions`, `history`, `barrier`: user actions, the history log, and how tasks find each other.
"""

from shoal.dialects.dialect import SettingsInvalid
from shoal.dialects.framework.dialect import DIALECT
from shoal.dialects.framework.settings import FrameworkSettings, settings

__all__ = ["DIALECT", "FrameworkSettings", "SettingsInvalid", "settings"]
