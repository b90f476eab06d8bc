"""Expectations of one job: what was sent to the cluster and is not observed yet, after client-go's expectations.

Informers show a write some time after its response, and may show its watch event before. client-go's controllers skip
a sync until their expectations are satisfied. The reconciler does not: it passes the responses to the engine together
with the observed objects, so that a pass includes a pod that no informer has shown. A response is kept until a pass has
processed it, and that of a create until a stored job state includes it.

Nothing here does I/O, and everything may be lost: after a restart the stored job state and the uids are enough.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TypeVar

from msgspec.structs import replace

from shoal.engine import Created, Gone, JobState, RoleState, Stage, Target, TaskRef, TaskState, WriteResult

Result = TypeVar("Result", bound=WriteResult)


class Expectations:
    """Of one job. The reconciler sets them after its writes, informers report what they observe, and each pass begins
    and ends with them."""

    __slots__ = (
        "_creations",
        "_deletions",
        "_processed_deletions",
        "_requested_names",
        "_results",
        "deleted_uids",
    )

    def __init__(self) -> None:
        self.deleted_uids: frozenset[str] = frozenset()  # confirmed deletions of objects that an informer still shows
        self._results: tuple[WriteResult, ...] = ()  # responses to the last writes, until a pass has processed them
        self._creations: tuple[Created, ...] = ()  # processed, and not included in a stored job state yet
        self._deletions: frozenset[str] = frozenset()  # uids of pods that informers have dropped since the last pass
        self._processed_deletions: frozenset[str] = frozenset()  # those the current pass has; more may arrive
        self._requested_names: dict[Target, str] = {}  # names of creates without a response

    @property
    def is_satisfied(self) -> bool:
        """Whether informers and the stored job state show everything that was answered."""
        return not (self._results or self._creations or self.deleted_uids or self._deletions)

    # Creates and deletes

    def expected_name(self, target: Target) -> str:
        """The name that a create without a response requested: the object may exist. '' if there is no such create."""
        return self._requested_names.get(target, "")

    def create_unanswered(self, target: Target, name: str) -> None:
        """The response to a create got lost: the object may exist under that name."""
        self._requested_names[target] = name

    def create_answered(self, target: Target) -> None:
        """The result of the create is known: the object is the job's, or the name is another owner's."""
        self._requested_names.pop(target, None)

    def set_expectations(self, results: Iterable[WriteResult], *, is_cached: Callable[[str], bool]) -> None:
        """The responses to the writes of a pass; `is_cached`: whether an informer shows the object with that uid."""
        self._results = tuple(results)
        confirmed = {result.uid for result in self._results if isinstance(result, Gone) and result.uid}
        self.deleted_uids = frozenset(uid for uid in self.deleted_uids if is_cached(uid)) | confirmed

    def deletion_observed(self, uid: str) -> None:
        """An informer dropped a pod. It may be one that no pass has seen: then no later look will show it."""
        self._deletions |= {uid}

    # Passes

    def begin_pass(self, state: JobState) -> tuple[WriteResult, ...]:
        """What a pass from `state` requires besides the observed objects."""
        self._processed_deletions = self._deletions
        answered = (*self._creations, *self._results)
        if not self._deletions:
            return answered
        created = [(result.target, result.uid) for result in answered if isinstance(result, Created)]
        for role in state.roles:
            requested = (task for task in role.tasks if task.stage is Stage.REQUESTED)
            created += [(TaskRef(role.name, task.index), task.uid) for task in requested if task.uid]
        # Pods that were created and deleted before any pass observed them: no informer will show them again.
        return (*answered, *(Gone(target, uid) for target, uid in created if uid in self._deletions))

    def end_pass(self, *, is_stored: bool) -> None:
        """The engine has processed what `begin_pass` returned; `is_stored`: and the stored job state includes it."""
        created = tuple(result for result in self._results if isinstance(result, Created))
        self._creations = () if is_stored else self._creations + created
        self._results = ()
        self._deletions -= self._processed_deletions

    def abandon_pass(self) -> None:
        """The stored job state is another than the engine's: the responses no longer matter."""
        self._results, self._creations = (), ()

    def drop_stored(self, before: JobState, stored: JobState) -> None:
        """Drop what the stored job state, perhaps one write ahead of `before`, already includes."""
        self._creations = _not_included(self._creations, before, stored)
        self._results = _not_included(self._results, before, stored)


class OwnWrites:
    """The writes of the job object itself, whose watch events are no news."""

    __slots__ = ("_is_event_postponed", "_is_pending", "_version")

    def __init__(self) -> None:
        self._version = ""  # the version that the last write made
        self._is_pending = False  # a write has no response yet
        self._is_event_postponed = False  # an event of the job arrived meanwhile

    @property
    def is_pending(self) -> bool:
        return self._is_pending

    def write_sent(self) -> None:
        self._is_pending = True

    def expect_version(self, version: str) -> None:
        """The write made this version of the job, and it shows nothing that is new to this process."""
        self._version = version

    def is_own_version(self, version: str) -> bool:
        """Whether the watch event of that version is an echo of the last write."""
        return version == self._version

    def postpone_event(self) -> None:
        """An event of the job arrived during a write; only the response shows whether it is an echo."""
        assert self._is_pending
        self._is_event_postponed = True

    def write_ended(self) -> bool:
        """The write was answered, failed or was cancelled. Returns whether an event was postponed meanwhile."""
        postponed = self._is_event_postponed
        self._is_pending = self._is_event_postponed = False
        return postponed


def _not_included(results: tuple[Result, ...], before: JobState, stored: JobState) -> tuple[Result, ...]:
    """The responses for the attempts of one job state that the stored one does not include yet.

    A compact job state has no attempt numbers; that a pod is settled it always records.
    """
    if before.run.number != stored.run.number:
        return ()
    kept: list[Result] = []
    for result in results:
        if isinstance(result, Created) and result.uid in stored.settled:
            continue
        if isinstance(result.target, TaskRef):
            was, now = before.task(result.target), stored.task(result.target)
            if was is None or now is None:
                continue
            # What became of one attempt does not concern the next.
            if (was.instance, was.attempt.number) != (now.instance, now.attempt.number):
                continue
        kept.append(result)
    return tuple(kept)


def with_unobserved_creates(stored: JobState, before: JobState) -> JobState:
    """A stored job state, plus the pods of `before` that this process created and no informer has shown yet.
    A compact job state cannot distinguish them from pods that vanished."""
    if stored.run.number != before.run.number:
        return stored
    changed: dict[str, dict[int, TaskState]] = {}
    unlisted: dict[str, list[TaskState]] = {}
    for role in before.roles:
        for was in role.tasks:
            task = stored.task(TaskRef(role.name, was.index)) if was.stage is Stage.REQUESTED else was
            if task is None and not was.instance:
                unlisted.setdefault(role.name, []).append(was)  # this job state lists no living tasks
            elif was.uid in stored.settled or task is None or was.stage is not Stage.REQUESTED:
                continue
            elif task.stage is Stage.WAITING and (task.had_pod or not was.instance):
                # The stored state may be one write ahead of ours, whose response got lost: then its decisions hold.
                decisions = (was.charged, was.dropped, was.not_before)
                if decisions == (task.charged, task.dropped, task.not_before):
                    changed.setdefault(role.name, {})[was.index] = was
    state = stored.with_tasks(changed)
    if not unlisted:
        return state
    roles = {role.name: role for role in state.roles}
    for name, tasks in unlisted.items():
        role = roles.get(name) or RoleState(name)
        roles[name] = replace(role, tasks=tuple(sorted([*role.tasks, *tasks], key=lambda task: task.index)))
    return replace(state, roles=tuple(roles.values()))
