"""Rendezvous: the published members of a job, in rank order, and the membership round.

The round rises when the members change, or when a member requests another; nothing else changes it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from msgspec.structs import replace

from shoal.engine.observed import SignalKind
from shoal.engine.pass_context import PassContext
from shoal.engine.state import JobState, Round
from shoal.engine.types import Stage

if TYPE_CHECKING:
    from shoal.engine.model import Job


@dataclass(frozen=True, slots=True)
class Rendezvous:
    published: bool = False  # the members and their round are in the job state
    frozen: Mapping[str, int] = field(default_factory=dict)  # values of the spec fixed when the first run opens


def publish_members(job: Job, state: JobState, context: PassContext) -> JobState:
    if not job.policies.rendezvous.published:
        return state
    wanted = [s.key for s in context.observed.signals if s.kind is SignalKind.ROUND_WANTED]
    asked = wanted[-1] if wanted else state.round.asked
    present = members(state) if state.run.is_open else ()
    if present == state.round.members and asked == state.round.asked:
        return state
    number = state.round.number + 1
    context.emit("", "RoundChanged", job=job.name, round=number, size=len(present))
    return replace(state, round=Round(number, present, asked))


def members(state: JobState) -> tuple[tuple[str, int, str], ...]:
    """Undropped living tasks that have a pod, roles in order, then by index."""
    return tuple(
        (role.name, task.index, task.uid)
        for role in state.roles
        for task in role.tasks
        if task.uid is not None and not task.dropped and task.stage in (Stage.PREPARING, Stage.RUNNING)
    )
