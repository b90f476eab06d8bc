"""Update rules of a stored Framework: the transitions that executionType must not make.

Stop is final, and a started Framework cannot return to before its start. The rules are defined here once: the CRD
contains them in CEL, for API servers that have nothing else of Frameworks, and `transition_errors` applies the same
rules in Shoal's own programs.
"""

from __future__ import annotations

from dataclasses import dataclass

from shoal.kube.errors import Cause
from shoal.kube.objects import Obj, at_path
from shoal.kube.validation.errors import forbidden

_PATH = "spec.executionType"
_DEFAULT = "Start"


@dataclass(frozen=True, slots=True)
class ForbiddenTransition:
    """A step that is refused, and why."""

    before: str
    after: str
    why: str


_STOPPED = "a Framework that was stopped stays stopped; delete it and create it again to run it again"
FORBIDDEN_TRANSITIONS = (
    ForbiddenTransition("Stop", "Start", _STOPPED),
    ForbiddenTransition("Stop", "Create", _STOPPED),
    ForbiddenTransition("Start", "Create", "a Framework that was started keeps running; Stop ends it"),
)


def rules() -> list[Obj]:
    """For the definition's executionType. An API server evaluates them when the field changes, never on creation."""
    reasons = dict.fromkeys(barred.why for barred in FORBIDDEN_TRANSITIONS)
    return [{"rule": _rule(why), "message": why, "reason": "FieldValueForbidden"} for why in reasons]


def _rule(why: str) -> str:
    steps = (
        f"(oldSelf == '{each.before}' && self == '{each.after}')" for each in FORBIDDEN_TRANSITIONS if each.why == why
    )
    return f"!({' || '.join(steps)})"


def transition_errors(manifest: Obj, old: Obj) -> list[Cause]:
    before, after = (at_path(obj, "spec", "executionType", default=_DEFAULT) for obj in (old, manifest))
    return [
        forbidden(_PATH, each.why) for each in FORBIDDEN_TRANSITIONS if (each.before, each.after) == (before, after)
    ]
