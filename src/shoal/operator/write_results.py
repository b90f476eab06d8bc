"""The results of the writes of one pass, and the errors among them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from shoal.cluster.client import OutcomeUnknown
from shoal.engine import Create, Notification, Refused, TaskRef, WriteResult
from shoal.kube.errors import ApiError
from shoal.kube.objects import Key, Obj
from shoal.operator.expectations import Expectations

TRANSIENT_ERRORS = (ApiError, OutcomeUnknown, OSError)


class UnsupportedWrite(Exception):
    """The engine requests something this dialect has no form for: a bug of Shoal."""


class DeletionPending(OutcomeUnknown):
    """A deletion that has to be confirmed is not over yet."""


@dataclass(slots=True)
class WriteResults:
    """Filled in by the write executor while it works."""

    expectations: Expectations  # of the job: a create whose response was lost is repeated under its name
    write_results: list[WriteResult] = field(default_factory=list)
    refused: list[Create] = field(default_factory=list)
    made: list[Create] = field(default_factory=list)
    quota_exceeded: dict[str, Refused] = field(default_factory=dict)  # roles with an exhausted quota
    barred: dict[str, Refused] = field(default_factory=dict)  # roles whose pods are forbidden
    withheld: list[TaskRef] = field(default_factory=list)  # not requested: they would be refused like another
    name_conflicts: list[Key] = field(default_factory=list)  # pod names that another owner's pods have
    failure_messages: list[Notification] = field(default_factory=list)  # what users should see
    pod_fitter: Callable[[Obj, str], None] | None = None  # adapts a pod of a role to what its group was granted
    failure: Exception | None = None  # the first request that failed; the pass is tried again
    is_urgent: bool = False  # the engine needs it at once: no watch event will follow
