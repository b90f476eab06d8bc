"""What a failed pod means: the exit codes of the protocol, the shipped table, a table of one's own, refused pods."""

from __future__ import annotations

import json
from typing import Any

import pytest

from kit.frameworks import ended, failed, framework, pod_of, pod_template, role, stamped
from shoal.dialects.framework import DIALECT, FrameworkSettings, SettingsInvalid, settings
from shoal.dialects.framework.controller_outcomes import POD_REFUSED, POD_REFUSED_UNKNOWN
from shoal.engine import ContainerEnd, Detail, Outcome, Refused, TaskRef
from shoal.engine.failure_classification import classify, classify_refusal
from shoal.kube.objects import Obj

TRANSIENT, PERMANENT, UNKNOWN = ("Transient",), ("Permanent",), ()
MANIFEST = framework(role(pod=pod_template(initContainers=[{"name": "init", "image": "busybox"}])))


def outcome(status: dict[str, Any], config: FrameworkSettings | None = None) -> Outcome:
    """How the dialect's policies judge a pod with that status."""
    job = DIALECT.to_job(MANIFEST, config or settings())
    body = DIALECT.observe_pod(stamped(pod_of(MANIFEST, "worker", 0), **status), MANIFEST)
    assert job is not None
    assert body is not None
    return classify(job.policies.classify, job.policies.pod_end, body)


def with_code(code: int, **more: Any) -> dict[str, Any]:
    return failed(containerStatuses=[ended(code=code, **more)])


def cannot_run(code: int, message: str = "") -> dict[str, Any]:
    return with_code(code, reason="ContainerCannotRun", message=message)


TABLE: list[tuple[str, dict[str, Any], int, str, tuple[str, ...], Obj]] = [
    ("exit 200", with_code(200), 200, "ContainerTransientFailed", TRANSIENT, {"name": "main", "code": 200}),
    (
        "exit 201",
        with_code(201, message="barrier"),
        201,
        "ContainerTransientConflictFailed",
        ("Transient", "Conflict"),
        {"name": "main", "message": "barrier", "code": 201},
    ),
    (
        "exit 210",
        with_code(210, message="a\nb"),
        210,
        "ContainerPermanentFailed",
        PERMANENT,
        {"name": "main", "message": "a\nb", "code": 210},
    ),
    ("evicted", failed(reason="Evicted", message="disk"), -1000, "PodEvicted", TRANSIENT, {"reason": "Evicted"}),
    ("evicted, any case", failed(reason="EVICTED"), -1000, "PodEvicted", TRANSIENT, {"reason": "EVICTED"}),
    ("node lost", failed(reason="NodeLost"), -1001, "PodNodeLost", TRANSIENT, {"reason": "NodeLost"}),
    (
        "out of something",
        failed(reason="OutOfnvidia.com/gpu"),
        -1002,
        "PodScheduledToInsufficientResourceNode",
        TRANSIENT,
        {"reason": "OutOfnvidia.com/gpu"},
    ),
    (
        "preempting",
        failed(reason="Preempting"),
        -1003,
        "PodPreemptedForCriticalPod",
        TRANSIENT,
        {"reason": "Preempting"},
    ),
    (
        "deadline",
        failed(reason="DeadlineExceeded"),
        -1004,
        "PodDeadlineExceeded",
        PERMANENT,
        {"reason": "DeadlineExceeded"},
    ),
    ("forbidden", failed(reason="Forbidden"), -1005, "PodNodeAdmissionForbidden", PERMANENT, {"reason": "Forbidden"}),
    *(
        (reason, failed(reason=reason), -1006, "PodNodeAdmissionUnexpectedError", TRANSIENT, {"reason": reason})
        for reason in (
            "UnexpectedAdmissionError",
            "UnknownReason",
            "InvalidNodeInfo",
            "UnexpectedPredicateFailureType",
        )
    ),
    (
        "out of memory",
        with_code(137, reason="OOMKilled"),
        -1200,
        "ContainerDockerOOMKilled",
        PERMANENT,
        {"reason": "OOMKilled", "code": 137},
    ),
    (
        "not created",
        cannot_run(125),
        -1201,
        "ContainerDockerCreationError",
        UNKNOWN,
        {"reason": "ContainerCannotRun", "code": 125},
    ),
    (
        "not permitted",
        cannot_run(126),
        -1202,
        "ContainerDockerStartCmdPermissionDenied",
        PERMANENT,
        {"reason": "ContainerCannotRun", "code": 126},
    ),
    (
        "not found",
        cannot_run(127),
        -1203,
        "ContainerDockerStartCmdNotFound",
        PERMANENT,
        {"reason": "ContainerCannotRun", "code": 127},
    ),
    (
        "no such file",
        cannot_run(128, "exec:\nNo such file"),
        -1203,
        "ContainerDockerStartCmdNotFound",
        PERMANENT,
        {"reason": "ContainerCannotRun", "message": "No such", "code": 128},
    ),
    (
        "not started",
        cannot_run(128, "odd"),
        -1204,
        "ContainerDockerStartUnknownError",
        UNKNOWN,
        {"reason": "ContainerCannotRun", "code": 128},
    ),
    *(
        (f"exit {code}", with_code(code), code, f"ContainerSig{name}Received", attributes, {"code": code})
        for code, name, attributes in (
            (130, "Int", TRANSIENT),
            (131, "Quit", TRANSIENT),
            (132, "Ill", PERMANENT),
            (134, "Abrt", UNKNOWN),
            (135, "Bus", PERMANENT),
            (136, "Fpe", PERMANENT),
            (137, "Kill", TRANSIENT),
            (139, "Segv", PERMANENT),
            (141, "Pipe", PERMANENT),
            (143, "Term", TRANSIENT),
        )
    ),
]


@pytest.mark.parametrize(
    ("status", "code", "phrase", "attributes", "evidence"), [row[1:] for row in TABLE], ids=[row[0] for row in TABLE]
)
def test_scenario_35_the_shipped_table(
    status: dict[str, Any], code: int, phrase: str, attributes: tuple[str, ...], evidence: Obj
):
    found = outcome(status)
    shown = evidence if "containerStatuses" not in status else {"containers": [evidence]}

    assert (found.code, found.phrase, found.attributes) == (code, phrase, attributes)
    assert found.text == "Pod failed: PodPattern matched: " + json.dumps(shown, separators=(",", ":"))


def test_a_reason_must_match_as_a_whole():
    assert outcome(failed(reason="NotEvicted")).code == -300


UNMATCHED = "Pod failed: PodPattern unmatched: "


def test_scenario_35_a_failure_nobody_knows_keeps_the_exit_code():
    found = outcome(with_code(1, reason="Error", message="boom", signal=9))

    assert (found.code, found.phrase, found.attributes) == (1, "ContainerUnrecognizedFailed", ())
    assert found.text == UNMATCHED + (
        '{"containers":[{"name":"main","reason":"Error","message":"boom","signal":9,"code":1}]}'
    )
    assert found.detail == Detail(containers=(ContainerEnd("main", 1, "Error", "boom", 9),))


def test_scenario_35_a_failed_pod_without_a_failed_container():
    found = outcome(failed(reason="Foo", message="bar", containerStatuses=[ended(code=0, reason="Completed")]))

    assert (found.code, found.phrase, found.attributes) == (-300, "PodFailedWithoutFailedContainer", ())
    assert found.text == UNMATCHED + (
        '{"reason":"Foo","message":"bar","containers":[{"name":"main","reason":"Completed","code":0}]}'
    )


def test_the_container_that_failed_last_speaks_for_the_pod():
    early, late = "2026-11-16T04:00:00Z", "2026-11-16T04:00:09Z"
    by_time = failed(containerStatuses=[ended("a", 3, finishedAt=early), ended("b", 4, finishedAt=late), ended("c", 0)])
    tied = failed(
        initContainerStatuses=[ended("init", 5, finishedAt=late)],
        containerStatuses=[ended("a", 6, finishedAt=late)],
    )

    assert outcome(by_time).code == 4
    assert outcome(tied).code == 5


def test_init_containers_are_looked_at_first():
    found = outcome(failed(initContainerStatuses=[ended("init", 201)], containerStatuses=[{"name": "main"}]))

    assert (found.code, found.detail) == (201, Detail(containers=(ContainerEnd("init", 201),)))


# --- a table of one's own --------------------------------------------------------------------------------------------


def table(*entries: Obj) -> FrameworkSettings:
    return settings({"podFailureSpec": list(entries)})


def test_scenario_36_an_entry_with_an_expression_over_the_log():
    pattern = {"containers": [{"messageRegex": "(?msi)tensorflow.*OOM", "codeRange": {"min": 1}}]}
    config = table({"code": 221, "phrase": "OutOfGpu", "type": {"attributes": ["Permanent"]}, "podPatterns": [pattern]})
    found = outcome(with_code(1, message="x TensorFlow says\nit is oom!"), config)

    assert (found.code, found.phrase, found.attributes) == (221, "OutOfGpu", PERMANENT)
    assert found.text == (
        'Pod failed: PodPattern matched: {"containers":[{"message":"TensorFlow says\\nit is oom","code":1}]}'
    )


def test_all_parts_of_a_pattern_must_match():
    config = table(
        {"code": 1, "phrase": "name", "podPatterns": [{"nameRegex": "^other"}]},
        {
            "code": 2,
            "phrase": "two containers",
            "podPatterns": [{"containers": [{"nameRegex": "a"}, {"nameRegex": "z"}]}],
        },
        {
            "code": 3,
            "phrase": "still running",
            "podPatterns": [{"containers": [{"nameRegex": "b", "reasonRegex": ""}]}],
        },
        {"code": 4, "phrase": "signal", "podPatterns": [{"containers": [{"signalRange": {"min": 10, "max": 20}}]}]},
        {"code": 5, "phrase": "any of them", "podPatterns": [{"reasonRegex": "^Foo$"}, {"reasonRegex": "^Bar$"}]},
        {"code": 6, "phrase": "everything", "podPatterns": [{}]},
    )
    running = {"name": "b", "state": {"running": {}}}

    def code(**status: Any) -> int:
        return outcome(failed(**status), config).code

    assert code(containerStatuses=[ended("a", 9), running]) == 6
    assert code(containerStatuses=[ended("a", 9), ended("z", 0)]) == 2
    assert code(containerStatuses=[ended("b", 0)]) == 3
    assert code(containerStatuses=[ended("x", 9, signal=20)]) == 4
    assert code(reason="Bar") == 5
    assert code() == 6


def test_names_and_codes_are_part_of_the_evidence_even_when_empty():
    config = table(
        {"code": 1, "podPatterns": [{"nameRegex": "^", "containers": [{"nameRegex": "$", "codeRange": {}}]}]}
    )

    assert outcome(with_code(0), config).text == (
        'Pod failed: PodPattern matched: {"name":"","containers":[{"name":"","code":0}]}'
    )


PATTERN: list[Obj] = [{"reasonRegex": "x"}]
RESERVED = "must lie outside [-999, 0] and [200, 219], which belong to the controller"
BAD_TABLES: dict[str, tuple[list[Any], list[str]]] = {
    "reserved for containers": (
        [{"code": 205, "podPatterns": PATTERN}],
        [f"podFailureSpec[0].code: Invalid value: 205: {RESERVED}"],
    ),
    "reserved for the controller": (
        [{"code": -5, "podPatterns": PATTERN}],
        [f"podFailureSpec[0].code: Invalid value: -5: {RESERVED}"],
    ),
    "no code": (
        [{"podPatterns": PATTERN}],
        ["podFailureSpec[0].code: Required value: the completion code of the entry"],
    ),
    "the same code twice": (
        [{"code": 7, "podPatterns": PATTERN}, {"code": 7, "podPatterns": PATTERN}],
        ["podFailureSpec[1].code: Duplicate value: 7: give every entry a code of its own"],
    ),
    "no patterns": (
        [{"code": 7, "podPatterns": []}],
        [
            "podFailureSpec[0].podPatterns: Invalid value: []: must have 1 or more: at least one pattern of the pods "
            "the entry is for"
        ],
    ),
    "null pattern": (
        [{"code": 7, "podPatterns": [None]}],
        ["podFailureSpec[0].podPatterns[0]: Invalid value: null: must be an object"],
    ),
    "null container": (
        [{"code": 7, "podPatterns": [{"containers": [None]}]}],
        ["podFailureSpec[0].podPatterns[0].containers[0]: Invalid value: null: must be an object"],
    ),
    "success": (
        [{"code": 7, "type": {"name": "Succeeded"}, "podPatterns": PATTERN}],
        ['podFailureSpec[0].type.name: Unsupported value: "Succeeded": supported values: "Failed"'],
    ),
    "look-ahead": (
        [{"code": 7, "podPatterns": [{"messageRegex": "(?=x)"}]}],
        [
            'podFailureSpec[0].podPatterns[0].messageRegex: Invalid value: "(?=x)": must be a regular expression: '
            "error parsing regexp: invalid or unsupported Perl syntax: `(?=`"
        ],
    ),
}


@pytest.mark.parametrize(("entries", "words"), BAD_TABLES.values(), ids=list(BAD_TABLES))
def test_scenario_36_a_bad_table_keeps_the_controller_from_starting(entries: list[Any], words: list[str]):
    with pytest.raises(SettingsInvalid) as refused:
        settings({"podFailureSpec": entries})

    assert [str(cause) for cause in refused.value.causes] == words


# --- pods the API does not take --------------------------------------------------------------------------------------

REFUSALS = [
    ("invalid", 422, "spec.containers[0].name: Invalid value", POD_REFUSED),
    ("too large", 413, "request is too large", POD_REFUSED),
    ("cut short", 422, "read tcp: connection reset by peer", POD_REFUSED_UNKNOWN),
    ("cut off", 413, "unexpected EOF", POD_REFUSED_UNKNOWN),
    ("bad request", 400, "cannot be handled", POD_REFUSED_UNKNOWN),
    ("forbidden", 403, "is forbidden: no", POD_REFUSED_UNKNOWN),
    ("quota", 403, "is forbidden: exceeded quota: q", None),
    ("unrecognized", 400, "the object provided is unrecognized (must be of type Pod)", None),
    ("exists", 409, "already exists", None),
    ("unauthorized", 401, "Unauthorized", None),
    ("no namespace", 404, "not found", None),
    ("too many requests", 429, "slow down", None),
    ("server error", 500, "etcdserver: leader changed", None),
    ("lost", 0, "the answer was lost", None),
]


@pytest.mark.parametrize(("code", "text", "expected"), [row[1:] for row in REFUSALS], ids=[row[0] for row in REFUSALS])
def test_what_a_refused_pod_means(code: int, text: str, expected: Outcome | None):
    job = DIALECT.to_job(MANIFEST, settings())
    assert job is not None
    found = classify_refusal(job.policies.classify, Refused(TaskRef("worker", 0), code, text))

    if expected is None:
        assert found is None
    else:
        assert found is not None
        assert (found.code, found.phrase, found.attributes) == (expected.code, expected.phrase, expected.attributes)
        assert found.text == f"Failed to create Pod: {text}"
