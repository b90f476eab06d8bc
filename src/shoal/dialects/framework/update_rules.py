"""What may become of a stored Framework: the ways its executionType cannot go.

Stop is final, and what was started cannot be put back to before its start. The rules stand here once: the definition
carries them in CEL, for API servers that know nothing else of Frameworks, and `mistakes` says the same where a program
of ours is asked.
"""

from __future__ import annotations

from dataclasses import dataclass

from shoal.kube.errors import Cause
from shoal.kube.objects import Obj, at_path
from shoal.kube.validation.errors import forbidden

_PATH = "spec.executionType"
_UNSAID = "Start"


@dataclass(frozen=True, slots=True)
class Barred:
    """A step that is refused, and why."""

    before: str
    after: str
    why: str


_STOPPED = "a Framework that was stopped stays stopped; delete it and create it again to run it again"
BARRED = (
    Barred("Stop", "Start", _STOPPED),
    Barred("Stop", "Create", _STOPPED),
    Barred("Start", "Create", "a Framework that was started keeps running; Stop ends it"),
)


def rules() -> list[Obj]:
    """For the definition's executionType. An API server asks them when the field changes, and never of a new object."""
    reasons = dict.fromkeys(barred.why for barred in BARRED)
    return [{"rule": _rule(why), "message": why, "reason": "FieldValueForbidden"} for why in reasons]


def _rule(why: str) -> str:
    steps = (f"(oldSelf == '{each.before}' && self == '{each.after}')" for each in BARRED if each.why == why)
    return f"!({' || '.join(steps)})"


def mistakes(manifest: Obj, old: Obj) -> list[Cause]:
    before, after = (at_path(obj, "spec", "executionType", default=_UNSAID) for obj in (old, manifest))
    return [forbidden(_PATH, each.why) for each in BARRED if (each.before, each.after) == (before, after)]
