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

from shoal.dialects.dialect import SettingsInvalid
from shoal.dialects.framework.dialect import DIALECT
from shoal.dialects.framework.settings import FrameworkSettings, settings

__all__ = ["DIALECT", "FrameworkSettings", "SettingsInvalid", "settings"]
