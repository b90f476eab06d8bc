"""The conditions of a training job, in the order in which they came true.

A condition that changes is removed and appended, so that the last one says what the job does now. Once a job has
succeeded or failed, no condition changes any more.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from shoal.kube.objects import Obj

CREATED, QUEUING, RUNNING, RESTARTING, SUSPENDED = "Created", "Queuing", "Running", "Restarting", "Suspended"
SUCCEEDED, FAILED = "Succeeded", "Failed"
FINAL = (SUCCEEDED, FAILED)
_EXCLUDES = {RUNNING: RESTARTING, RESTARTING: RUNNING}


@dataclass(frozen=True, slots=True)
class ConditionTexts:
    """The words of a language: reasons by type, messages with {name} and, of failures, {count} and {role}."""

    reasons: Mapping[str, str]
    messages: Mapping[str, str]
    ended: Mapping[str, str] = field(default_factory=dict)  # messages of a failed job by the phrase of its outcome


@dataclass(frozen=True, slots=True)
class Conditions:
    """The list, with the changes of one report. `now` is the time in RFC 3339."""

    texts: ConditionTexts
    name: str
    now: str
    entries: Sequence[Obj]

    def has(self, condition_type: str) -> bool:
        return any(each["type"] == condition_type and each["status"] == "True" for each in self.entries)

    @property
    def is_final(self) -> bool:
        return any(self.has(each) for each in FINAL)

    def set(
        self, condition_type: str, status: bool = True, *, reason: str = "", message: str = "", **parameters: object
    ) -> Conditions:
        """Unchanged where the same is said already, whatever its message."""
        reason = reason or self.texts.reasons[condition_type]
        text = (message or self.texts.messages[condition_type]).format(name=self.name, **parameters)
        shown = "True" if status else "False"
        before = next((each for each in self.entries if each["type"] == condition_type), None)
        if self.is_final or (before is not None and (before["status"], before["reason"]) == (shown, reason)):
            return self
        is_same_status = before is not None and before["status"] == shown
        made = {
            "type": condition_type,
            "status": shown,
            "reason": reason,
            "message": text,
            "lastUpdateTime": self.now,
            "lastTransitionTime": before["lastTransitionTime"] if before is not None and is_same_status else self.now,
        }
        out = {condition_type, _EXCLUDES.get(condition_type, "") if status else ""}
        kept = [each for each in self.entries if each["type"] not in out]
        return Conditions(self.texts, self.name, self.now, (*kept, made))

    def end(self, condition_type: str, *, message: str = "", count: int = 0, role: str = "") -> Conditions:
        """The last condition; the job no longer runs."""
        before = self
        if self.has(RUNNING):
            running = next(each for each in self.entries if each["type"] == RUNNING)
            over = {**running, "status": "False", "lastUpdateTime": self.now, "lastTransitionTime": self.now}
            entries = tuple(over if each["type"] == RUNNING else each for each in self.entries)
            before = Conditions(self.texts, self.name, self.now, entries)
        if self.is_final:
            return self
        return before.set(condition_type, message=message, count=count, role=role)
