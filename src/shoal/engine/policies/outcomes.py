"""Outcomes a policy uses where a dialect has no wording of its own."""

from __future__ import annotations

from shoal.engine.types import Nature, Outcome

BAD = Outcome(Nature.UNKNOWN, code=1, phrase="Failed")
GOOD = Outcome(Nature.OK, phrase="Succeeded")
POD_OK = Outcome(Nature.OK, phrase="Succeeded", text="Pod succeeded")
POD_LEAVING = Outcome(Nature.LOST, phrase="Lost", text="The pod is being deleted by others")
POD_GONE = Outcome(Nature.LOST, phrase="Lost", text="The pod was deleted by others")
POD_UNSEEN = Outcome(Nature.LOST, phrase="Unseen", text="The pod was created and never seen")
TOO_LARGE = Outcome(
    Nature.PERMANENT, code=1, phrase="Failed", final=True,
    text="The state of the job is too large to be stored in its object",
)  # fmt: skip
DROPPED = Outcome(Nature.PERMANENT, phrase="Dropped", text="The task was scaled away", final=True)
