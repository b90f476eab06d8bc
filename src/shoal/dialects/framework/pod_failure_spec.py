"""Classification of pod failures: the configurable table `podFailureSpec`.

An entry is a code with its phrase and type, and patterns of the pods it applies to; the first entry with a matching
pattern wins, after the three exit codes by which any container can report to the controller. The table is written as in
a configuration file and read by the same model, so the shipped default is also an example.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, Field

from shoal.dialects.framework.controller_outcomes import CONFLICT, PERMANENT, TRANSIENT, UNRECOGNIZED, failure_class_of
from shoal.dialects.validation_errors import StrictModel
from shoal.engine import FailureClass
from shoal.engine.policies import ContainerPattern, FailureRule, PodPattern, Span
from shoal.kube.re2 import BadPattern, Pattern, compiled

RESERVED = (range(-999, 1), range(200, 220))


def _expression(pattern: str) -> str:
    try:
        compiled(pattern)
    except BadPattern as problem:
        raise ValueError(f"must be a regular expression: {problem}") from None
    return pattern


def _unreserved(code: int) -> int:
    if any(code in span for span in RESERVED):
        raise ValueError("must lie outside [-999, 0] and [200, 219], which belong to the controller")
    return code


Expression = Annotated[str, AfterValidator(_expression)]


class Range(StrictModel):
    """Both ends belong to it; a missing one is open."""

    min: int | None = None
    max: int | None = None


class ContainerFailurePattern(StrictModel):
    """What one container of the pod must show; all but the name need a container that terminated."""

    name_regex: Expression | None = None
    reason_regex: Expression | None = None
    message_regex: Expression | None = None
    signal_range: Range | None = None
    code_range: Range | None = None


class PodFailurePattern(StrictModel):
    """The pattern of a pod: every field that is set must match."""

    name_regex: Expression | None = None
    reason_regex: Expression | None = None
    message_regex: Expression | None = None
    containers: list[ContainerFailurePattern] = Field(default_factory=list)


class FailureType(StrictModel):
    name: Literal["Failed"] = "Failed"
    attributes: list[Literal["Transient", "Permanent", "Conflict"]] = Field(default_factory=list)


class PodFailureSpec(StrictModel):
    """One entry of the table."""

    code: Annotated[int, AfterValidator(_unreserved)]
    phrase: str = ""
    type: FailureType = FailureType()
    pod_patterns: Annotated[list[PodFailurePattern], Field(min_length=1)]


def rules(table: tuple[PodFailureSpec, ...]) -> tuple[FailureRule, ...]:
    """The ordered rules of the engine: exit codes of the protocol, the table, and whatever is left."""
    found = list(_PROTOCOL)
    for entry in table:
        attributes = tuple(entry.type.attributes)
        patterns = tuple(_pod_pattern(pattern) for pattern in entry.pod_patterns)
        found.append(FailureRule(failure_class_of(attributes), entry.code, entry.phrase, attributes, patterns))
    return (*found, FailureRule(FailureClass.UNKNOWN, phrase=UNRECOGNIZED))


def _pod_pattern(pattern: PodFailurePattern) -> PodPattern:
    return PodPattern(
        _compiled(pattern.name_regex),
        _compiled(pattern.reason_regex),
        _compiled(pattern.message_regex),
        tuple(
            ContainerPattern(
                _compiled(container.name_regex),
                _compiled(container.reason_regex),
                _compiled(container.message_regex),
                _span(container.signal_range),
                _span(container.code_range),
            )
            for container in pattern.containers
        ),
    )


def _compiled(pattern: str | None) -> Pattern | None:
    return None if pattern is None else compiled(pattern)


def _span(written: Range | None) -> Span | None:
    return None if written is None else Span(written.min, written.max)


_ANYTHING = compiled("(?s).*")


def _protocol(code: int, phrase: str, *attributes: str) -> FailureRule:
    """An exit code by which a container classifies its own failure; name and message are the evidence."""
    container = ContainerPattern(name=_ANYTHING, message=_ANYTHING, code=Span(code, code))
    return FailureRule(failure_class_of(attributes), code, phrase, attributes, (PodPattern(containers=(container,)),))


_PROTOCOL = (
    _protocol(200, "ContainerTransientFailed", TRANSIENT),
    _protocol(201, "ContainerTransientConflictFailed", TRANSIENT, CONFLICT),
    _protocol(210, "ContainerPermanentFailed", PERMANENT),
)


# --- the table that is shipped -------------------------------------------------------------------------------------


def _entry(code: int, phrase: str, attribute: str | None, *patterns: dict[str, Any]) -> dict[str, Any]:
    return {
        "code": code,
        "phrase": phrase,
        "type": {"attributes": [attribute] if attribute else []},
        "podPatterns": list(patterns),
    }


def _reason(*reasons: str) -> dict[str, Any]:
    return {"reasonRegex": f"(?i)^({'|'.join(reasons)})$"}


def _container(**parts: Any) -> dict[str, Any]:
    return {"containers": [parts]}


def _code(code: int) -> dict[str, int]:
    return {"min": code, "max": code}


def _cannot_run(code: int, **parts: Any) -> dict[str, Any]:
    """A command that could not be started: ContainerCannotRun with Docker, StartError with containerd and our nodes."""
    return _container(reasonRegex="(?i)^(ContainerCannotRun|StartError)$", codeRange=_code(code), **parts)


def _signals() -> Iterator[dict[str, Any]]:
    for code, name, attribute in (
        (130, "Int", TRANSIENT),
        (131, "Quit", TRANSIENT),
        (132, "Ill", PERMANENT),
        (134, "Abrt", None),
        (135, "Bus", PERMANENT),
        (136, "Fpe", PERMANENT),
        (137, "Kill", TRANSIENT),
        (139, "Segv", PERMANENT),
        (141, "Pipe", PERMANENT),
        (143, "Term", TRANSIENT),
    ):
        yield _entry(code, f"ContainerSig{name}Received", attribute, _container(codeRange=_code(code)))


_UNEXPECTED = ("UnexpectedAdmissionError", "UnknownReason", "InvalidNodeInfo", "UnexpectedPredicateFailureType")
_NOT_FOUND = "(?msi)not found|cannot find|no such"

DEFAULT_SPEC: tuple[dict[str, Any], ...] = (
    _entry(-1000, "PodEvicted", TRANSIENT, _reason("Evicted")),
    _entry(-1001, "PodNodeLost", TRANSIENT, _reason("NodeLost")),
    _entry(-1002, "PodScheduledToInsufficientResourceNode", TRANSIENT, _reason(r"OutOf\S+")),
    _entry(-1003, "PodPreemptedForCriticalPod", TRANSIENT, _reason("Preempting")),
    _entry(-1004, "PodDeadlineExceeded", PERMANENT, _reason("DeadlineExceeded")),
    _entry(-1005, "PodNodeAdmissionForbidden", PERMANENT, _reason("Forbidden")),
    _entry(-1006, "PodNodeAdmissionUnexpectedError", TRANSIENT, _reason(*_UNEXPECTED)),
    # Before 137: a container over its memory limit exits so too, and trying again will not help it.
    _entry(
        -1200,
        "ContainerDockerOOMKilled",
        PERMANENT,
        _container(reasonRegex="(?i)^OOMKilled$", codeRange={"min": 1}),
    ),
    _entry(-1201, "ContainerDockerCreationError", None, _cannot_run(125)),
    _entry(-1202, "ContainerDockerStartCmdPermissionDenied", PERMANENT, _cannot_run(126)),
    _entry(
        -1203,
        "ContainerDockerStartCmdNotFound",
        PERMANENT,
        _cannot_run(127),
        _cannot_run(128, messageRegex=_NOT_FOUND),
    ),
    _entry(-1204, "ContainerDockerStartUnknownError", None, _cannot_run(128)),
    *_signals(),
)
