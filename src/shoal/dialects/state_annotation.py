"""The job state of a job whose status has no room for it: one annotation, compact JSON.

Members are written as ranges of indexes, so that ten thousand of them in the same state cost a few letters. Ends are
written once per kind of end; evidence is cut to what a person reads. Terminating pods are identified by uid alone, so
that ten thousand of them have to be listed: their uids are written as bytes. The uid of the job is inside: a manifest
that was copied, annotations and all, brings no past of its own.

A client that may change a job may write this annotation, so it is no more to be trusted than the job's spec: the uid is
compared before anything else is read, and the length of the text and what its ranges unfold to are bounded. A forged
one can only give the operator a wrong state of this one job. A field of the status would need more rights to be
forged, but the original definitions of these kinds drop fields they do not define.
"""

from __future__ import annotations

import re
from base64 import b85decode, b85encode
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import datetime
from typing import Annotated, Any
from uuid import UUID

import msgspec
from msgspec.structs import replace

from shoal.dialects.dialect import StatePatch, StateUnreadable
from shoal.dialects.job_limits import MOST_INDEXES, stored_seconds
from shoal.engine import (
    AttemptState,
    DelayedAction,
    Job,
    JobState,
    Outcome,
    RoleState,
    Round,
    Run,
    SettledReason,
    Stage,
    Stamps,
    TaskState,
    compact_state,
    format_ranges,
    parse_ranges,
)
from shoal.kube.objects import Obj, annotations_of, name_of, namespace_of, uid_of

ANNOTATION = "shoal.dev/ledger"
_Moment = Annotated[datetime, msgspec.Meta(tz=True)]
_UUID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", re.ASCII)
_WORTH_PACKING = 16  # fewer are left to be read by people
_MOST_ENDS = 16  # kinds of ends distinguished in a role
_MOST_DETAILS = 4
_LONGEST_TEXT = 500
_LONGEST_BYTES = 256 * 1024  # all annotations of an object together


class _StoredRole(msgspec.Struct, omit_defaults=True, rename={"had_pod": "born", "reclaimed": "given"}):
    """One role: ranges of indexes by what there is to say about them."""

    name: str
    instance: str = ""
    force: int | None = None
    had_pod: str = ""
    dropped: str = ""
    charged: dict[str, str] = {}  # by number of charges
    later: dict[str, str] = {}  # by the time before which no retry starts
    ends: list[tuple[Outcome, str]] = []
    counts: tuple[int, int] = (0, 0)
    reclaimed: str = ""


class _SettledPods(msgspec.Struct, omit_defaults=True):
    """Pods settled for one reason, by rising index, and their uids one after the other."""

    role: str
    reason: str
    where: str
    uids: str
    ok: bool | None = None


class _StoredOwner(msgspec.Struct):
    """Of a job state only the uid of its job."""

    uid: str


class _StoredState(msgspec.Struct, omit_defaults=True):
    uid: str
    run: Run = Run()
    roles: list[_StoredRole] = []
    charges: dict[str, int] = {}
    settled: dict[str, SettledReason] = {}
    leaving: list[_SettledPods] = []
    due: dict[str, DelayedAction] = {}
    handled: tuple[str, ...] = ()
    stamps: Stamps = Stamps()
    round: Round = Round()
    frozen: dict[str, int] = {}
    memo: Any = None


def record(job: Job, state: JobState) -> StatePatch:
    return StatePatch(annotations={ANNOTATION: encode(job, state)})


def encode(job: Job, state: JobState) -> str:
    """The annotation's text."""
    kept = compact_state(state, job.policies.pod_policy.memory)
    settled, leaving = _pack_settled(kept.settled)
    stored = _StoredState(
        job.uid, kept.run, [_role(role) for role in kept.roles], dict(kept.charges), settled, leaving,
        dict(kept.due), kept.handled, kept.stamps, kept.round, dict(kept.frozen), kept.memo,
    )  # fmt: skip
    return msgspec.json.encode(_without_empty(msgspec.to_builtins(stored))).decode()


def restore(manifest: Obj, most_indexes: int = MOST_INDEXES) -> JobState | None:
    """The job state this very job carries; None where it has none."""
    text = annotations_of(manifest).get(ANNOTATION)
    if not text:
        return None
    try:
        if len(text) > _LONGEST_BYTES:
            raise ValueError(f"it is longer than {_LONGEST_BYTES} bytes")
        if msgspec.json.decode(text, type=_StoredOwner).uid != uid_of(manifest):
            return None
        return _state(msgspec.json.decode(text, type=_StoredState), most_indexes)
    except (ValueError, RecursionError, OverflowError) as problem:  # those of msgspec are ValueErrors
        where = f"{namespace_of(manifest)}/{name_of(manifest)}"
        raise StateUnreadable(
            f"the annotation {ANNOTATION} of {where} was not written by an operator: {problem}. The job is left "
            f"alone; remove the annotation to let it be rebuilt from the status, or delete the job to start over."
        ) from None


def _without_empty(value: Any) -> Any:
    """Drop nulls: a null is equivalent to an absent key."""
    if isinstance(value, dict):
        return {key: _without_empty(each) for key, each in value.items() if each is not None}
    return [_without_empty(each) for each in value] if isinstance(value, list | tuple) else value


# --- settled pods --------------------------------------------------------------------------------------------------


def _pack_settled(settled: Mapping[str, SettledReason]) -> tuple[dict[str, SettledReason], list[_SettledPods]]:
    """What is stored as it is, and what is packed as bytes: many pods settled for one reason, at most one per index."""
    several: dict[tuple[str, str, bool | None], dict[int, str]] = {}
    for uid, why in settled.items():
        if _UUID.fullmatch(uid):
            several.setdefault((why.role, why.reason, why.ok), {}).setdefault(why.index, uid)
    packed = {key: found for key, found in several.items() if len(found) >= _WORTH_PACKING}
    inside = {uid for found in packed.values() for uid in found.values()}
    leaving = [
        _SettledPods(
            role,
            reason,
            format_ranges(found),
            b85encode(b"".join(UUID(found[index]).bytes for index in sorted(found))).decode(),
            ok,
        )
        for (role, reason, ok), found in packed.items()
    ]
    return {uid: why for uid, why in settled.items() if uid not in inside}, leaving


def _unpack_settled(leaving: Iterable[_SettledPods]) -> Iterator[tuple[str, SettledReason]]:
    for each in leaving:
        data = b85decode(each.uids)
        for place, index in enumerate(parse_ranges(each.where, most=len(data) // 16)):
            yield (
                str(UUID(bytes=data[place * 16 : place * 16 + 16])),
                SettledReason(each.role, index, each.reason, each.ok),
            )


# --- roles ---------------------------------------------------------------------------------------------------------


def _role(role: RoleState) -> _StoredRole:
    charged: dict[str, list[int]] = {}
    later: dict[str, list[int]] = {}
    for task in role.tasks:
        if task.charged:
            charged.setdefault(str(task.charged), []).append(task.index)
        if task.not_before is not None:
            later.setdefault(task.not_before.isoformat(), []).append(task.index)
    return _StoredRole(
        role.name,
        role.instance,
        role.force_after_seconds,
        format_ranges(task.index for task in role.tasks if task.had_pod),
        format_ranges(task.index for task in role.tasks if task.dropped),
        {count: format_ranges(found) for count, found in charged.items()},
        {moment: format_ranges(found) for moment, found in later.items()},
        [(outcome, format_ranges(found)) for outcome, found in _ends(role.tasks)],
        (role.ok_count, role.bad_count),
        format_ranges(task.index for task in role.tasks if task.reclaimed),
    )


def _ends(tasks: Iterable[TaskState]) -> list[tuple[Outcome, list[int]]]:
    """Who ended how. Evidence is kept of the first few, and beyond a number of kinds only code and phrase count."""
    found: dict[Outcome, list[int]] = {}
    details = 0
    for task in tasks:
        if task.outcome is None:
            continue
        keeps = details < _MOST_DETAILS and not task.outcome.is_ok and task.outcome.detail is not None
        outcome = _short(task.outcome, keeps=keeps, is_plain=len(found) >= _MOST_ENDS)
        details += keeps
        found.setdefault(outcome, []).append(task.index)
    return list(found.items())


def _short(outcome: Outcome, *, keeps: bool, is_plain: bool) -> Outcome:
    detail = outcome.detail if keeps else None
    if detail is not None:
        ends = tuple(replace(end, message=end.message[-_LONGEST_TEXT:]) for end in detail.containers)
        detail = replace(detail, message=detail.message[:_LONGEST_TEXT], containers=ends)
    text = "" if is_plain or outcome.detail is not None else outcome.text[:_LONGEST_TEXT]
    return replace(outcome, detail=detail, text=text)


class _RangeExpander:
    """Expands ranges of one job state, up to a limit for all of them together."""

    def __init__(self, most: int) -> None:
        self._left = most

    def __call__(self, where: str) -> tuple[int, ...]:
        found = parse_ranges(where, most=self._left)
        self._left -= len(found)
        return found


def _state(stored: _StoredState, most_indexes: int) -> JobState:
    stored_seconds(stored.run.delay_seconds)
    for record in (stored.run, stored.stamps, *stored.due.values()):
        for name, value in msgspec.structs.asdict(record).items():
            if isinstance(value, datetime) and value.tzinfo is None:  # not comparable with others
                raise ValueError(f"{name} is a time without a zone: {value.isoformat()}")
    unfolded = _RangeExpander(most_indexes)
    return JobState(
        run=stored.run,
        roles=tuple(_role_state(role, unfolded) for role in stored.roles),
        charges=stored.charges,
        settled={**stored.settled, **dict(_unpack_settled(stored.leaving))},
        due=stored.due,
        handled=stored.handled,
        stamps=stored.stamps,
        round=stored.round,
        frozen=stored.frozen,
        memo=stored.memo,
    )


def _role_state(role: _StoredRole, unfolded: Callable[[str], tuple[int, ...]]) -> RoleState:
    tasks: dict[int, TaskState] = {}

    def change(where: str, **values: Any) -> None:
        for index in unfolded(where):
            tasks[index] = replace(tasks.get(index) or TaskState(index), **values)

    change(role.had_pod, had_pod=True)
    change(role.reclaimed, reclaimed=True)
    for outcome, where in role.ends:
        change(where, stage=Stage.DONE, attempt=AttemptState(outcome=outcome))
    change(role.dropped, dropped=True, stage=Stage.DONE)
    for count, where in role.charged.items():
        change(where, charged=int(count))
    for moment, where in role.later.items():
        change(where, not_before=msgspec.convert(moment, type=_Moment))
    return RoleState(
        role.name,
        role.instance,
        stored_seconds(role.force),
        tuple(tasks[index] for index in sorted(tasks)),
        *role.counts,
    )
