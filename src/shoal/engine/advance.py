"""One pass: the job as it is wished, the ledger, the world and the time go in; the next ledger and its writes come out.

The order is the safety of the whole. Recognising comes first, because all later steps speak of uids; resizing and
giving back before judging, so that a member scaled away or given back in this pass costs nobody anything; facts before
decisions; deciding before turning; and the wishes once more at the doors, because a run may have opened meanwhile.
"""

from __future__ import annotations

from datetime import datetime

from msgspec.structs import replace

from shoal.engine.decide import decide, lose_anchor
from shoal.engine.gates import admit
from shoal.engine.membership import publish
from shoal.engine.model import Guarded, Job
from shoal.engine.observed import Observed
from shoal.engine.pass_context import Scene
from shoal.engine.plan_writes import shape
from shoal.engine.pod_matching import recognise
from shoal.engine.pod_outcomes import judge
from shoal.engine.reclaim import give_back
from shoal.engine.run_lifecycle import begin, turn
from shoal.engine.scaling import resize
from shoal.engine.state import JobState
from shoal.engine.state_diff import news
from shoal.engine.unindexed_pods import count_done
from shoal.engine.wakeup import wake
from shoal.engine.writes import Step

_UNGUARDED = Guarded()


def advance(job: Job, state: JobState, observed: Observed, now: datetime) -> Step:
    """Pure: equal inputs give equal steps, and inputs are never changed. `state` may be `JobState()`."""
    stored = state
    state, scene = recognise(job, state, observed, now)  # 1 whose is what
    if state.is_new:
        state = begin(job, state, scene)
    state = resize(job, state, scene)  # 2 who should be there
    state = give_back(job, state, scene)
    state = lose_anchor(job, state, scene)
    state, events = judge(job, state, scene)  # 3 what happened
    state = decide(job, state, scene, events)  # 4 what it means
    state = count_done(job, state, scene)
    state = turn(job, state, scene)  # 5 close, drain, next run or rest
    state = publish(job, state, scene)
    doors = admit(job, state, scene)  # 6 may bodies exist now
    state, guarded = _guard(job, state, scene)
    writes = shape(job, state, scene, doors, guarded)  # 7 the difference
    return Step(
        state,
        notices=tuple(scene.notices),
        writes=tuple(writes),
        notifications=tuple(scene.notifications),
        doors=doors,
        wake_at=wake(job, state, scene),  # 8 when to look again
        again=scene.again,
        news=news(stored, state),
        charges=tuple(scene.charges),
    )


def _guard(job: Job, state: JobState, scene: Scene) -> tuple[JobState, Guarded]:
    """A dialect's own conversation may delay and decorate; it never creates, deletes or judges."""
    if job.guard is None:
        return state, _UNGUARDED
    guarded = job.guard(job, state.memo, scene, scene.now)
    if guarded.sentence:
        scene.emit("", "Guarded", text=guarded.sentence)
    return (state if guarded.memo == state.memo else replace(state, memo=guarded.memo)), guarded
