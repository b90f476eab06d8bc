"""How a Volcano Job may end, and how its pods do. The phrase of a job's outcome is the phase it ends in."""

from __future__ import annotations

from shoal.engine import FailureClass, Outcome

COMPLETED = Outcome(FailureClass.OK, phrase="Completed", text="enough pods succeeded")
COMPLETED_BY_COUNT = Outcome(
    FailureClass.OK, phrase="Completed", text="{count} pods succeeded, minSuccess asks for {need}"
)
FAILED = Outcome(FailureClass.UNKNOWN, code=1, phrase="Failed", text="too few pods succeeded")
OUT_OF_RETRIES = Outcome(FailureClass.UNKNOWN, code=1, phrase="Failed", text="maxRetry permits no further run")
# Final: the end was requested.
TERMINATED = Outcome(FailureClass.PERMANENT, code=1, phrase="Terminated", text="the job was terminated", final=True)
ABORTED = Outcome(FailureClass.UNKNOWN, code=1, phrase="Aborted", text="the job was aborted")

POD_LEAVING = Outcome(FailureClass.LOST, phrase="PodEvicted", text="the pod is being deleted by others")
POD_GONE = Outcome(FailureClass.LOST, phrase="PodEvicted", text="the pod was deleted by others")
POD_UNSEEN = Outcome(FailureClass.LOST, phrase="PodUnseen", text="the pod was created and never seen")
POD_SUCCEEDED = Outcome(FailureClass.OK, phrase="Succeeded", text="the pod succeeded")
SCALED_AWAY = Outcome(FailureClass.PERMANENT, phrase="ScaledAway", text="the task was scaled down", final=True)
# shown, not stored
CUT_OFF = Outcome(FailureClass.PERMANENT, phrase="CutOff", text="the job ended without it", final=True)
NO_CODE = Outcome(FailureClass.UNKNOWN, code=1, phrase="PodFailed", text="the pod failed")
