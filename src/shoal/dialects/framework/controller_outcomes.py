"""How a Framework's attempts may end: the codes, phrases and texts the controller itself assigns.

Codes of a pod's own failure are defined in `pod_failure_spec`. Completion type and failure class are equivalent:
attributes refine "Failed", and the retry policy reads nothing else. Two codes mean that an object of ours was deleted
externally; four are final, and no retry policy applies to them.
"""

from __future__ import annotations

from collections.abc import Iterable

from shoal.engine import FailureClass, Outcome

TRANSIENT = "Transient"
PERMANENT = "Permanent"
CONFLICT = "Conflict"
ATTRIBUTES = (TRANSIENT, PERMANENT, CONFLICT)

CONFIGMAP_DELETED = -100
POD_DELETED = -101
STOPPED = -210
CUT = -220
DROPPED = -230
OVERSIZE = -240
_LOST = frozenset({CONFIGMAP_DELETED, POD_DELETED})
_FINAL = frozenset({STOPPED, CUT, DROPPED, OVERSIZE})


def failure_class_of(attributes: Iterable[str], code: int = 1, *, succeeded: bool = False) -> FailureClass:
    """The engine's word for an end of that type."""
    if succeeded:
        return FailureClass.OK
    if code in _LOST:
        return FailureClass.LOST
    found = frozenset(attributes)
    if TRANSIENT in found:
        return FailureClass.CONFLICT if CONFLICT in found else FailureClass.TRANSIENT
    return FailureClass.PERMANENT if PERMANENT in found else FailureClass.UNKNOWN


def is_final(code: int) -> bool:
    return code in _FINAL


def _failed(code: int, phrase: str, text: str = "", *attributes: str) -> Outcome:
    return Outcome(
        failure_class_of(attributes, code),
        code=code,
        phrase=phrase,
        text=text,
        attributes=attributes,
        final=is_final(code),
    )


POD_SUCCEEDED = Outcome(FailureClass.OK, code=0, phrase="Succeeded", text="Pod succeeded")
ALL_COMPLETED = Outcome(FailureClass.OK, code=0, phrase="Succeeded")  # the text is the completion policy's

CONFIGMAP_LEAVING = _failed(
    CONFIGMAP_DELETED, "ConfigMapExternalDeleted", "ConfigMap is being deleted by others", TRANSIENT
)
CONFIGMAP_GONE = _failed(CONFIGMAP_DELETED, "ConfigMapExternalDeleted", "ConfigMap was deleted by others", TRANSIENT)
POD_LEAVING = _failed(POD_DELETED, "PodExternalDeleted", "Pod is being deleted by others", TRANSIENT)
POD_GONE = _failed(POD_DELETED, "PodExternalDeleted", "Pod was deleted by others", TRANSIENT)
CONFIGMAP_UNSEEN = _failed(
    -110, "ConfigMapLocalCacheCreationTimeout", "ConfigMap was created and did not appear in time", TRANSIENT
)
POD_UNSEEN = _failed(-111, "PodLocalCacheCreationTimeout", "Pod was created and did not appear in time", TRANSIENT)
POD_REFUSED = _failed(-200, "PodCreationPermanentError", "", PERMANENT)
STOP_REQUESTED = _failed(STOPPED, "StopFrameworkRequested", "User has requested to stop the Framework", PERMANENT)
CUT_OFF = _failed(CUT, "FrameworkAttemptCompletion", "Stop to complete current FrameworkAttempt", PERMANENT)
SCALED_AWAY = _failed(
    DROPPED, "DeleteTaskRequested", "User has requested to delete the Task by Framework ScaleDown", PERMANENT
)
TOO_LARGE = _failed(
    OVERSIZE, "FrameworkStatusTooLarge", "The status of the Framework is too large to be stored", PERMANENT
)
NO_FAILED_CONTAINER = _failed(-300, "PodFailedWithoutFailedContainer")
POD_REFUSED_UNKNOWN = _failed(-310, "PodCreationUnknownError")
UNRECOGNIZED = "ContainerUnrecognizedFailed"
