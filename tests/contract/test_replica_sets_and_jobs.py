"""What a server fills into ReplicaSets and Jobs, what it refuses, and how their size is changed."""

from __future__ import annotations

from typing import Any

import pytest

from kit.api_objects import cause, invalid, required, settled
from kit.raw_api import TABLE, Obj, Space

LABELS = {"app": "a"}
CONTAINER = {"name": "main", "image": "busybox:1"}
FILLED_CONTAINER = CONTAINER | {
    "resources": {},
    "terminationMessagePath": "/dev/termination-log",
    "terminationMessagePolicy": "File",
    "imagePullPolicy": "IfNotPresent",
}
MISFIT = "`selector` does not match template `labels`"
UNLABELLED = cause("spec.template.metadata.labels", f"Invalid value: null: {MISFIT}")
NEGATIVE = "must be greater than or equal to 0"


def template(**pod: Any) -> Obj:
    return {"metadata": {"labels": LABELS}, "spec": {"containers": [CONTAINER], **pod}}


def filled(policy: str, labels: Obj) -> Obj:
    pod = {
        "containers": [FILLED_CONTAINER],
        "restartPolicy": policy,
        "terminationGracePeriodSeconds": 30,
        "dnsPolicy": "ClusterFirst",
        "securityContext": {},
        "schedulerName": "default-scheduler",
    }
    return {"metadata": {"labels": labels}, "spec": pod}


def replica_set(**spec: Any) -> Obj:
    return {"metadata": {"name": "a"}, "spec": {"selector": {"matchLabels": LABELS}, "template": template(), **spec}}


def job(**spec: Any) -> Obj:
    return {"metadata": {"name": "a"}, "spec": {"suspend": True, "template": template(restartPolicy="Never"), **spec}}


def test_a_replica_set_gets_its_defaults(space: Space) -> None:
    made = space.post("replicasets", replica_set(), group="apps/v1").ok()
    assert settled(made) == {
        "apiVersion": "apps/v1",
        "kind": "ReplicaSet",
        "metadata": {"name": "a", "namespace": space.name, "generation": 1},
        "spec": {"replicas": 1, "selector": {"matchLabels": LABELS}, "template": filled("Always", LABELS)},
        "status": {"replicas": 0},
    }


def test_a_job_gets_its_defaults_and_labels_of_its_own(space: Space) -> None:
    made = space.post("jobs", job(), group="batch/v1").ok()
    uid = made["metadata"]["uid"]
    own = {"batch.kubernetes.io/controller-uid": uid, "batch.kubernetes.io/job-name": "a"}
    labels = {**LABELS, **own, "controller-uid": uid, "job-name": "a"}
    assert settled(made) == {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": "a", "namespace": space.name, "generation": 1, "labels": labels},
        "spec": {
            "parallelism": 1,
            "completions": 1,
            "backoffLimit": 6,
            "selector": {"matchLabels": {"batch.kubernetes.io/controller-uid": uid}},
            "manualSelector": False,
            "template": filled("Never", labels),
            "completionMode": "NonIndexed",
            "suspend": True,
            "podReplacementPolicy": "TerminatingOrFailed",
        },
        "status": {},
    }


def test_parallelism_alone_leaves_completions_open(space: Space) -> None:
    made = space.post("jobs", job(parallelism=2), group="batch/v1").ok()
    assert {name: made["spec"].get(name) for name in ("parallelism", "completions")} == {
        "parallelism": 2,
        "completions": None,
    }


BAD_REPLICA_SETS: dict[str, tuple[Obj, list[Obj]]] = {
    "no selector": ({"selector": None}, [required("spec.selector"), UNLABELLED | {
        "message": f'Invalid value: {{"app":"a"}}: {MISFIT}'}]),
    "selector of others": (
        {"selector": {"matchLabels": {"app": "b"}}},
        [cause("spec.template.metadata.labels", f'Invalid value: {{"app":"a"}}: {MISFIT}')],
    ),
    "negative": ({"replicas": -1}, [cause("spec.replicas", f"Invalid value: -1: {NEGATIVE}")]),
    "pods that end": (
        {"template": template(restartPolicy="Never")},
        [cause("spec.template.spec.restartPolicy", 'Unsupported value: "Never": supported values: "Always"',
               "FieldValueNotSupported")],
    ),
}  # fmt: skip


@pytest.mark.parametrize(("spec", "causes"), BAD_REPLICA_SETS.values(), ids=BAD_REPLICA_SETS.keys())
def test_a_replica_set_is_refused_with(space: Space, spec: Obj, causes: list[Obj]) -> None:
    refused = space.post("replicasets", replica_set(**spec), group="apps/v1").failure()
    assert refused == invalid("ReplicaSet", "a", *causes, group="apps")


def count(name: str, value: int, why: str = NEGATIVE) -> Obj:
    return cause(f"spec.{name}", f"Invalid value: {value}: {why}")


COUNTS = ("parallelism", "completions", "activeDeadlineSeconds", "backoffLimit", "ttlSecondsAfterFinished")
NEEDS_INDEXES = "requires indexed completion mode"
SUCCESS = "spec.successPolicy.rules[0]"


def by_success(*rules: Obj) -> Obj:
    return {"completionMode": "Indexed", "completions": 3, "successPolicy": {"rules": list(rules)}}


BAD_JOBS: dict[str, tuple[Obj, list[Obj]]] = {
    "negative": (dict.fromkeys(COUNTS, -1), [count(name, -1) for name in COUNTS]),
    "pods that never end": (
        {"template": template()},
        [required("spec.template.spec.restartPolicy", 'valid values: "OnFailure", "Never"')],
    ),
    "indexes without a number": (
        {"completionMode": "Indexed", "parallelism": 2},
        [required("spec.completions", "when completion mode is Indexed")],
    ),
    "patience per index without indexes": (
        {"backoffLimitPerIndex": 1, "maxFailedIndexes": 1},
        [count("backoffLimitPerIndex", 1, NEEDS_INDEXES), count("maxFailedIndexes", 1, NEEDS_INDEXES)],
    ),
    "a rule without a condition": (
        {"podFailurePolicy": {"rules": [{"action": "Ignore"}]}},
        [cause("spec.podFailurePolicy.rules[0]",
               "Invalid value: specifying one of OnExitCodes and OnPodConditions is required")],
    ),
    "a rule about success": (
        {"podFailurePolicy": {"rules": [{"action": "Ignore", "onExitCodes": {"operator": "In", "values": [0]}}]}},
        [cause("spec.podFailurePolicy.rules[0].onExitCodes.values[0]",
               "Invalid value: 0: must not be 0 for the In operator")],
    ),
    "success by no rule": (
        by_success(),
        [required(SUCCESS.removesuffix("[0]"),
                  "at least one rules must be specified when the successPolicy is specified")],
    ),
    "success by an empty rule": (
        by_success({}),
        [required(SUCCESS, "at least one of succeededCount or succeededIndexes must be specified")],
    ),
    "success by less than none": (
        by_success({"succeededCount": -1}),
        [cause(f"{SUCCESS}.succeededCount", "Invalid value: -1: must be greater than or equal to 0")],
    ),
    "success by more than there are": (
        by_success({"succeededCount": 4}),
        [cause(f"{SUCCESS}.succeededCount",
               "Invalid value: 4: must be less than or equal to 3 (the number of specified completions)")],
    ),
    "success by more than are meant": (
        by_success({"succeededIndexes": "0-1", "succeededCount": 3}),
        [cause(f"{SUCCESS}.succeededCount",
               "Invalid value: 3: must be less than or equal to 2 (the number of indexes in the specified "
               "succeededIndexes field)")],
    ),
    **{
        f"success by the indexes {text}": (by_success({"succeededIndexes": text}), [
            cause(f"{SUCCESS}.succeededIndexes", f'Invalid value: "{text}": error parsing succeededIndexes: {why}')
        ])
        for text, why in {
            "all": 'cannot convert string to integer for index: "all"',
            "1-": 'cannot convert string to integer for index: ""',
            "0,,1": 'cannot convert string to integer for index: ""',
            "2-1": "non-increasing order, previous: 2, current: 1",
            "1,0": "non-increasing order, previous: 1, current: 0",
            "0-1,1": "non-increasing order, previous: 1, current: 1",
            "0-3": 'too large index: "3"',
            "0-1-2": 'the fragment "0-1-2" violates the requirement that an index interval can have at most two parts '
                     "separated by '-'",
        }.items()
    },
}  # fmt: skip


@pytest.mark.parametrize(("spec", "causes"), BAD_JOBS.values(), ids=BAD_JOBS.keys())
def test_a_job_is_refused_with(space: Space, spec: Obj, causes: list[Obj]) -> None:
    refused = space.post("jobs", job(**spec), group="batch/v1").failure()
    assert refused == invalid("Job", "a", *causes, group="batch")


def test_what_a_job_is_does_not_change(space: Space) -> None:
    space.post("jobs", job(), group="batch/v1").ok()
    refused = space.patch("jobs/a", {"spec": {"completions": 2, "completionMode": "Indexed"}}, group="batch/v1")
    message = "Invalid value: 2: can only be modified in tandem with spec.parallelism"
    mode = cause("spec.completionMode", 'Invalid value: "Indexed": field is immutable')
    assert refused.failure() == invalid("Job", "a", cause("spec.completions", message), mode, group="batch")
    assert space.patch("jobs/a", {"spec": {"parallelism": 2}}, group="batch/v1").ok()["metadata"]["generation"] == 2


def test_a_replica_set_is_scaled_through_its_scale(space: Space) -> None:
    space.post("replicasets", replica_set(), group="apps/v1").ok()
    scale = space.patch("replicasets/a/scale", {"spec": {"replicas": 3}}, group="apps/v1").ok()
    assert (scale["kind"], scale["spec"], scale["status"]) == (
        "Scale", {"replicas": 3}, {"replicas": 0, "selector": "app=a"},
    )  # fmt: skip
    assert space.get("replicasets/a", group="apps/v1").ok()["spec"]["replicas"] == 3


def test_tables_show_the_replica_counts(space: Space) -> None:
    space.post("replicasets", replica_set(replicas=2), group="apps/v1").ok()
    space.post("jobs", job(), group="batch/v1").ok()
    found = {}
    for group, resource in (("apps/v1", "replicasets"), ("batch/v1", "jobs")):
        table = space.get(resource, group=group, accept=TABLE).ok()
        heads = [column["name"] for column in table["columnDefinitions"] if not column["priority"]]
        cells = table["rows"][0]["cells"][: len(heads)]
        found[resource] = [(head, cell) for head, cell in zip(heads, cells, strict=True) if head != "Age"]
    assert found == {
        "replicasets": [("Name", "a"), ("Desired", 2), ("Current", 0), ("Ready", 0)],
        "jobs": [("Name", "a"), ("Status", "Running"), ("Completions", "0/1"), ("Duration", "")],
    }


# --- Deployments ---------------------------------------------------------------------------------------------------


def deployment(**spec: Any) -> Obj:
    return replica_set(**spec)


def test_a_deployment_gets_its_defaults(space: Space) -> None:
    made = space.post("deployments", deployment(), group="apps/v1").ok()
    assert settled(made) == {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "a", "namespace": space.name, "generation": 1},
        "spec": {
            "replicas": 1,
            "selector": {"matchLabels": LABELS},
            "template": filled("Always", LABELS),
            "strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": "25%", "maxSurge": "25%"}},
            "revisionHistoryLimit": 10,
            "progressDeadlineSeconds": 600,
        },
        "status": {},
    }


def rolling(**limits: Any) -> Obj:
    return {"strategy": {"rollingUpdate": limits}}


LIMITS = "spec.strategy.rollingUpdate"
NO_PERCENTAGE = (
    "a valid percent string must be a numeric string followed by an ending '%' (e.g. '1%',  or '93%', regex used for "
    "validation is '[0-9]+%')"
)
BAD_DEPLOYMENTS: dict[str, tuple[Obj, list[Obj]]] = {
    "negative": (
        {"replicas": -1, "minReadySeconds": -1, "revisionHistoryLimit": -1},
        [count("replicas", -1), count("minReadySeconds", -1), count("revisionHistoryLimit", -1)],
    ),
    "selector of others": (
        {"selector": {"matchLabels": {"app": "b"}}},
        [cause("spec.template.metadata.labels", f'Invalid value: {{"app":"a"}}: {MISFIT}')],
    ),
    "pods that end": (
        {"template": template(restartPolicy="Never")},
        [cause("spec.template.spec.restartPolicy", 'Unsupported value: "Never": supported values: "Always"',
               "FieldValueNotSupported")],
    ),
    "a deadline that comes before readiness": (
        {"minReadySeconds": 5, "progressDeadlineSeconds": 5},
        [count("progressDeadlineSeconds", 5, "must be greater than minReadySeconds")],
    ),
    "limits of an update that does not roll": (
        {"strategy": {"type": "Recreate", "rollingUpdate": {"maxSurge": 1}}},
        [cause(LIMITS, "Forbidden: may not be specified when strategy `type` is 'Recreate'", "FieldValueForbidden")],
    ),
    "an update that cannot move": (
        rolling(maxSurge=0, maxUnavailable="0%"),
        [cause(f"{LIMITS}.maxUnavailable", 'Invalid value: "0%": may not be 0 when `maxSurge` is 0')],
    ),
    "negative limits": (
        rolling(maxSurge=-1, maxUnavailable=-1),
        [cause(f"{LIMITS}.{name}", f"Invalid value: -1: {NEGATIVE}") for name in ("maxUnavailable", "maxSurge")],
    ),
    "more than all": (
        rolling(maxUnavailable="101%"),
        [cause(f"{LIMITS}.maxUnavailable", 'Invalid value: "101%": must not be greater than 100%')],
    ),
    "no percentage": (
        rolling(maxSurge="many"),
        [cause(f"{LIMITS}.maxSurge", f'Invalid value: "many": {NO_PERCENTAGE}')],
    ),
}  # fmt: skip


@pytest.mark.parametrize(("spec", "causes"), BAD_DEPLOYMENTS.values(), ids=BAD_DEPLOYMENTS.keys())
def test_a_deployment_is_refused_with(space: Space, spec: Obj, causes: list[Obj]) -> None:
    refused = space.post("deployments", deployment(**spec), group="apps/v1").failure()
    assert refused == invalid("Deployment", "a", *causes, group="apps")


def test_the_selector_of_a_deployment_does_not_change(space: Space) -> None:
    space.post("deployments", deployment(), group="apps/v1").ok()
    labels = LABELS | {"app": "b"}
    changed = {"selector": {"matchLabels": labels}, "template": {"metadata": {"labels": labels}}}
    refused = space.patch("deployments/a", {"spec": changed}, group="apps/v1").failure()
    why = 'Invalid value: {"matchLabels":{"app":"b"}}: field is immutable'
    assert refused == invalid("Deployment", "a", cause("spec.selector", why), group="apps")


def test_the_generation_of_a_deployment_counts_annotations(space: Space) -> None:
    space.post("deployments", deployment(), group="apps/v1").ok()
    steps: list[tuple[str, Obj]] = [
        ("deployments/a", {"metadata": {"annotations": {"a": "b"}}}),
        ("deployments/a", {"metadata": {"labels": {"a": "b"}}}),
        ("deployments/a/status", {"metadata": {"annotations": {"c": "d"}, "labels": {"c": "d"}}}),
        ("deployments/a/scale", {"spec": {"replicas": 2}}),
    ]
    for path, patch in steps:
        space.patch(path, patch, group="apps/v1").ok()
    found = space.get("deployments/a", group="apps/v1").ok()
    meta = {name: found["metadata"].get(name) for name in ("generation", "labels", "annotations")}
    assert meta == {"generation": 3, "labels": {"a": "b"}, "annotations": {"a": "b", "c": "d"}}


def test_the_table_of_deployments(space: Space) -> None:
    space.post("deployments", deployment(replicas=2), group="apps/v1").ok()
    table = space.get("deployments", group="apps/v1", accept=TABLE).ok()
    shown = [column["name"] for column in table["columnDefinitions"] if not column["priority"]]
    cells = table["rows"][0]["cells"][: len(shown)]
    assert [each for each in zip(shown, cells, strict=True) if each[0] != "Age"] == [
        ("Name", "a"), ("Ready", "0/2"), ("Up-to-date", 0), ("Available", 0),
    ]  # fmt: skip
