"""The names a Framework's objects carry: keys of labels, annotations, environment and placeholders."""

from __future__ import annotations

GROUP = "frameworkcontroller.microsoft.com"
VERSION = "v1"
API_VERSION = f"{GROUP}/{VERSION}"

FRAMEWORK_NAMESPACE = "FC_FRAMEWORK_NAMESPACE"
FRAMEWORK_NAME = "FC_FRAMEWORK_NAME"
TASKROLE_NAME = "FC_TASKROLE_NAME"
TASK_INDEX = "FC_TASK_INDEX"
CONFIGMAP_NAME = "FC_CONFIGMAP_NAME"
POD_NAME = "FC_POD_NAME"
FRAMEWORK_UID = "FC_FRAMEWORK_UID"
FRAMEWORK_ATTEMPT_ID = "FC_FRAMEWORK_ATTEMPT_ID"
FRAMEWORK_ATTEMPT_INSTANCE_UID = "FC_FRAMEWORK_ATTEMPT_INSTANCE_UID"
CONFIGMAP_UID = "FC_CONFIGMAP_UID"
TASKROLE_UID = "FC_TASKROLE_UID"
TASK_UID = "FC_TASK_UID"
TASK_ATTEMPT_ID = "FC_TASK_ATTEMPT_ID"
POD_UID = "FC_POD_UID"
TASK_ATTEMPT_INSTANCE_UID = "FC_TASK_ATTEMPT_INSTANCE_UID"

# The only names that may stand in {{...}} within a template: known before the pod exists, the same for every attempt.
PLACEHOLDERS = (FRAMEWORK_NAMESPACE, FRAMEWORK_NAME, TASKROLE_NAME, TASK_INDEX, CONFIGMAP_NAME, POD_NAME)
# A pod carries these as annotations and, in this order and before the user's own, as environment.
STAMPS = (
    *PLACEHOLDERS,
    FRAMEWORK_UID,
    FRAMEWORK_ATTEMPT_ID,
    FRAMEWORK_ATTEMPT_INSTANCE_UID,
    CONFIGMAP_UID,
    TASKROLE_UID,
    TASK_UID,
    TASK_ATTEMPT_ID,
)
POD_LABELS = (FRAMEWORK_NAME, TASKROLE_NAME, TASK_INDEX)

FOREGROUND = "foregroundDeletion"  # on the ConfigMap from the start: every deletion of it takes the pods first


def run_owner_name(framework: str) -> str:
    """The ConfigMap that owns the pods of an attempt; the same name for every attempt."""
    return f"{framework}-attempt"


def pod_name(framework: str, role: str, index: int) -> str:
    return f"{framework}-{role}-{index}"


def instance_uid(number: int, uid: str | None) -> str | None:
    """One running instance of an attempt: its id and the object that embodies it."""
    return None if uid is None else f"{number}_{uid}"
