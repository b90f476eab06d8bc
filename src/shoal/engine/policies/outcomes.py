"""Outcomes a policy uses where a dialect has no wording of its own."""

from __future__ import annotations

from shoal.engine.types import FailureClass, Outcome

BAD = Outcome(FailureClass.UNKNOWN, code=1, phrase="Failed")
GOOD = Outcome(FailureClass.OK, phrase="Succeeded")
POD_OK = Outcome(FailureClass.OK, phrase="Succeeded", text="Pod succeeded")
POD_LEAVING = Outcome(FailureClass.LOST, phrase="Lost", text="The pod is being deleted by others")
POD_GONE = Outcome(FailureClass.LOST, phrase="Lost", text="The pod was deleted by others")
POD_UNSEEN = Outcome(FailureClass.LOST, phrase="Unseen", text="The pod was created and never seen")
TOO_LARGE = Outcome(
    FailureClass.PERMANENT, code=1, phrase="Failed", final=True,
    text="The state of the job is too large to be stored in its object",
)  # fmt: skip
DROPPED = Outcome(FailureClass.PERMANENT, phrase="Dropped", text="The task was scaled away", final=True)
