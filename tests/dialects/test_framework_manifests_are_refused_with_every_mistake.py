"""What a Framework may say: every mistake at once, with its path and what would be right."""

from __future__ import annotations

from collections.abc import Iterator
from copy import deepcopy
from typing import Any

import pytest

from kit.capabilities import capability
from kit.frameworks import framework, pet, pod_template, role
from shoal.cli.manifest_files import Manifest
from shoal.cli.offline_validation import make_machinery, validate
from shoal.cluster.apimachinery import Machinery
from shoal.cluster.types import WriteOptions
from shoal.dialects.capabilities import ManifestWarnings, PodPreview
from shoal.dialects.dialect import ManifestInvalid
from shoal.dialects.framework import DIALECT, settings
from shoal.kube.errors import ApiError
from shoal.kube.kinds import CUSTOM_RESOURCE_DEFINITION
from shoal.kube.objects import Obj
from shoal.operator import dialect_registration

RETRIES = "-2 retries always, -1 after every failure, 0 never, n at most n times"
COUNTS = "-1 or 0 switches the rule off, n asks for n tasks"
TASKS = "a role has from 0 to 10000 tasks"


def mistakes(manifest: Obj) -> list[str]:
    return [str(cause) for cause in DIALECT.validate(manifest)]


def with_role(**changes: Any) -> Obj:
    return framework({**role(), **changes})


SCENARIO_51 = {
    "name": (
        framework(role(), name="my-job"),
        'metadata.name: Invalid value: "my-job": must consist of 1 to 63 lower case letters and digits, for example '
        "myjob",
    ),
    "too few tasks": (
        with_role(taskNumber=-1),
        f"spec.taskRoles[0].taskNumber: Invalid value: -1: must be 0 or more: {TASKS}",
    ),
    "too many tasks": (
        with_role(taskNumber=10_001),
        f"spec.taskRoles[0].taskNumber: Invalid value: 10001: must be 10000 or less: {TASKS}",
    ),
    "framework retries": (
        framework(role(), retry=(True, -3)),
        f"spec.retryPolicy.maxRetryCount: Invalid value: -3: must be -2 or more: {RETRIES}",
    ),
    "task retries": (
        framework(role(retry=(False, -3))),
        f"spec.taskRoles[0].task.retryPolicy.maxRetryCount: Invalid value: -3: must be -2 or more: {RETRIES}",
    ),
    "failed count": (
        framework(role(failed=-2)),
        "spec.taskRoles[0].frameworkAttemptCompletionPolicy.minFailedTaskCount: Invalid value: -2: must be -1 or more: "
        + COUNTS,
    ),
    "succeeded count": (
        framework(role(succeeded=-2)),
        "spec.taskRoles[0].frameworkAttemptCompletionPolicy.minSucceededTaskCount: Invalid value: -2: must be -1 or "
        f"more: {COUNTS}",
    ),
    "execution type": (
        framework(role(), start="Pause"),
        'spec.executionType: Unsupported value: "Pause": supported values: "Create", "Start", "Stop"',
    ),
    "role name": (
        framework(role("my_role")),
        'spec.taskRoles[0].name: Invalid value: "my_role": must match ^[a-z0-9]{1,63}$: 1 to 63 lower case letters '
        "and digits",
    ),
    "no role name": (
        framework({"taskNumber": 1}),
        "spec.taskRoles[0].name: Required value: 1 to 63 lower case letters and digits",
    ),
    "duplicate roles": (
        framework(role("a"), role("b"), role("a")),
        'spec.taskRoles[2]: Duplicate value: {"name":"a"}: give every role a name of its own',
    ),
    "text for a number": (
        with_role(taskNumber="4"),
        f'spec.taskRoles[0].taskNumber: Invalid value: "4": must be an integer: {TASKS}',
    ),
    "text for a switch": (
        framework(role(retry=("yes", 0))),  # type: ignore[arg-type]
        'spec.taskRoles[0].task.retryPolicy.fancyRetryPolicy: Invalid value: "yes": must be true or false',
    ),
    "fraction of a second": (
        framework(role(grace=1.5)),  # type: ignore[arg-type]
        "spec.taskRoles[0].task.podGracefulDeletionTimeoutSec: Invalid value: 1.5: must be an integer: seconds after "
        "which a pod is deleted by force, or null for never",
    ),
    "seconds below zero": (
        framework(role(grace=-1)),
        "spec.taskRoles[0].task.podGracefulDeletionTimeoutSec: Invalid value: -1: must be 0 or more: seconds after "
        "which a pod is deleted by force, or null for never",
    ),
    "template": (
        with_role(task={"pod": []}),
        "spec.taskRoles[0].task.pod: Invalid value: []: must be an object: the template of the role's pods",
    ),
    "text for a number in the template": (
        framework(role(pod=pod_template(ActiveDeadlineSeconds="60"))),
        'spec.taskRoles[0].task.pod.spec.activeDeadlineSeconds: Invalid value: "60": must be an integer',
    ),
    "roles by name": (
        {**framework(), "spec": {"taskRoles": {"a": role()}}},
        None,
    ),
    "no name": (
        {**framework(role()), "metadata": {}},
        "metadata.name: Required value: give the Framework a name of 1 to 63 lower case letters and digits",
    ),
    "generated name": (
        {**framework(role()), "metadata": {"generateName": "run-"}},
        'metadata.generateName: Invalid value: "run-": must consist of 1 to 58 lower case letters and digits, for '
        "example run",
    ),
}


@pytest.mark.parametrize(("manifest", "words"), SCENARIO_51.values(), ids=list(SCENARIO_51))
def test_scenario_51_validation(manifest: Obj, words: str | None):
    found = mistakes(manifest)

    assert len(found) == 1
    assert words is None or found == [words]


def test_all_mistakes_are_listed_at_once():
    manifest = framework(
        role("a", -1, failed=-2), role("a", 10_001, retry=(True, -3)), start="Pause", retry=(True, -9), name="my-job"
    )

    assert [cause.field for cause in DIALECT.validate(manifest)] == [
        "metadata.name",
        "spec.executionType",
        "spec.retryPolicy.maxRetryCount",
        "spec.taskRoles[0].taskNumber",
        "spec.taskRoles[0].frameworkAttemptCompletionPolicy.minFailedTaskCount",
        "spec.taskRoles[1].taskNumber",
        "spec.taskRoles[1].task.retryPolicy.maxRetryCount",
        "spec.taskRoles[1]",
    ]


SOUND = {
    "the story": pet(),
    "no forced deletion": framework(role(grace=None)),
    "zero tasks": framework(role(number=0)),
    "no roles": framework(),
    "nothing at all": {"metadata": {"name": "fw"}},
    "nulls": {"metadata": {"name": "fw"}, "spec": {"description": None, "taskRoles": None, "retryPolicy": None}},
    "a status": {**framework(role()), "status": {"state": "Completed"}},
    "a pod the API will refuse": framework(role(pod={"spec": {"containers": [{"name": "No_Name"}]}})),
    "unknown pod fields": framework(role(pod={"spec": {"shareable": True, "containers": []}})),
    "the widest values": framework(role("z" * 63, 10_000, 0, 10_000, retry=(True, 2**31 - 1), grace=2**62), name="9"),
}


@pytest.mark.parametrize("manifest", SOUND.values(), ids=list(SOUND))
def test_a_sound_manifest_is_let_in_and_read(manifest: Obj):
    assert mistakes(manifest) == []
    assert DIALECT.to_job(DIALECT.default(manifest), settings()) is not None


def test_reading_a_stored_mistake_lists_all_of_them():
    with pytest.raises(ManifestInvalid) as refused:
        DIALECT.to_job(framework(role(number=-1), retry=(True, -3)), settings())

    assert len(refused.value.causes) == 2


def test_what_is_left_out_gets_its_default():
    made = DIALECT.default({"metadata": {"name": "fw"}, "spec": {"taskRoles": [{"name": "a"}]}})
    never = {"fancyRetryPolicy": False, "maxRetryCount": 0}

    assert made["spec"] == {
        "description": "",
        "executionType": "Start",
        "retryPolicy": never,
        "taskRoles": [
            {
                "name": "a",
                "taskNumber": 0,
                "frameworkAttemptCompletionPolicy": {"minFailedTaskCount": 1, "minSucceededTaskCount": -1},
                "task": {"retryPolicy": never, "pod": {}},
            }
        ],
    }
    assert DIALECT.default(made) == made


def test_defaults_leave_alone_what_is_said():
    assert DIALECT.default(pet()) == pet()


def test_pod_fields_get_their_proper_names_and_maps_keep_their_keys():
    pod = {
        "Metadata": {"Labels": {"App": "x"}},
        "Spec": {
            "activedeadlineseconds": 60,
            "ActiveDeadlineSeconds": 90,
            "NodeSelector": {"Disk": "ssd"},
            "Containers": [{"NAME": "a", "resources": {"Limits": {"Nvidia.com/gpu": 1}}, "Colour": {"Red": 1}}],
        },
    }
    made = DIALECT.default(framework(role(pod=pod)))

    assert made["spec"]["taskRoles"][0]["task"]["pod"] == {
        "metadata": {"labels": {"App": "x"}},
        "spec": {
            "activeDeadlineSeconds": 90,
            "nodeSelector": {"Disk": "ssd"},
            "containers": [{"name": "a", "resources": {"limits": {"Nvidia.com/gpu": 1}}, "Colour": {"Red": 1}}],
        },
    }


def test_a_proper_name_wins_over_its_odd_twin():
    pod = {"spec": {"nodename": "odd", "nodeName": "proper", "NodeName": "odder"}}

    assert DIALECT.default(framework(role(pod=pod)))["spec"]["taskRoles"][0]["task"]["pod"] == {
        "spec": {"nodeName": "proper"}
    }


BARRIER = {"name": "barrier", "image": "frameworkcontroller/frameworkbarrier"}
OURS = {"name": "barrier", "image": "shoal", "command": ["/usr/bin/shoal", "barrier"]}
POD = "spec.taskRoles[0].task.pod"
RESTARTS = "restarts the barrier in place, so its time-out can never free the other pods; use Never"
REFUSED = "the role's pods will be refused"
WARNINGS = {
    "odd names": (
        framework(role(pod={"spec": {"ActiveDeadlineSeconds": 60, "containers": [{"name": "a", "image": "i"}]}})),
        [f"{POD}.spec.ActiveDeadlineSeconds: read as activeDeadlineSeconds"],
    ),
    "no template": (
        framework(role(pod={})),
        [f"{POD}: Required value: the template of the role's pods; {REFUSED}"],
    ),
    "a barrier that restarts": (
        framework(role(pod=pod_template(restartPolicy="OnFailure", initContainers=[BARRIER]))),
        [f"{POD}.spec.restartPolicy: OnFailure {RESTARTS}"],
    ),
    "our barrier, restarted by default": (
        framework(role(pod={"spec": {"initContainers": [OURS], "containers": [{"name": "a", "image": "i"}]}})),
        [f"{POD}.spec.restartPolicy: Always {RESTARTS}"],
    ),
    "fields nobody knows": (
        framework(role(pod={"metadata": {"lables": {}}, **pod_template(colour="red")})),
        [
            f"{POD}.metadata.lables: there is no such field; did you mean labels?",
            f"{POD}.spec.colour: there is no such field here",
        ],
    ),
    "a pod nobody would take": (
        framework(role(pod=pod_template(restartPolicy="never"))),
        [
            f'{POD}.spec.restartPolicy: Unsupported value: "never": supported values: "Always", "OnFailure", "Never"; '
            + REFUSED,
        ],
    ),
    "no tasks": (
        framework(role(number=0)),
        ["spec.taskRoles: no role has tasks: it waits until `shoal scale` gives worker some"],
    ),
    "no roles": (
        framework(),
        ["spec.taskRoles: there are no roles, so there are no tasks: it waits until there are some"],
    ),
    "a barrier that speaks": (framework(role(pod=pod_template(initContainers=[BARRIER]))), []),
    "the story": (pet(), []),
}


@pytest.mark.parametrize(("manifest", "words"), WARNINGS.values(), ids=list(WARNINGS))
def test_what_is_probably_not_meant_is_said(manifest: Obj, words: list[str]):
    assert capability(DIALECT, ManifestWarnings).warn(manifest, None) == words


ODD_SHAPES: list[Any] = [
    [],
    {"taskRoles": {"a": 1}},
    {"taskRoles": [None, 3, {"name": 4, "task": "x"}, {"task": {"pod": "x"}}]},
    {"taskRoles": [{"task": {"pod": {"spec": []}}}, {"task": {"pod": {"spec": {"initContainers": {"command": 3}}}}}]},
    {"taskRoles": [{"task": {"pod": {"spec": {"initContainers": [3, {"command": 3}], "containers": "x"}}}}]},
    {"executionType": ["Start"], "retryPolicy": "never"},
]


@pytest.mark.parametrize("spec", ODD_SHAPES, ids=str)
def test_whatever_shape_it_has_there_are_words_for_it(spec: Any):
    manifest = {"metadata": {"name": "fw"}, "spec": spec}
    capability(DIALECT, ManifestWarnings).warn(manifest, framework(role()))

    assert DIALECT.validate(DIALECT.default(manifest)) == DIALECT.validate(manifest) != []


STOPPED = (
    "spec.executionType: Forbidden: a Framework that was stopped stays stopped; delete it and create it again to run "
    "it again"
)
TRANSITIONS: list[tuple[str, str, list[str]]] = [
    ("Create", "Create", []),
    ("Create", "Start", []),
    ("Create", "Stop", []),
    ("Start", "Start", []),
    ("Start", "Stop", []),
    ("Stop", "Stop", []),
    ("Stop", "Start", [STOPPED]),
    ("Stop", "Create", [STOPPED]),
    (
        "Start",
        "Create",
        ["spec.executionType: Forbidden: a Framework that was started keeps running; Stop ends it"],
    ),
]


@pytest.mark.parametrize(("before", "after", "words"), TRANSITIONS, ids=[f"{a} to {b}" for a, b, _ in TRANSITIONS])
def test_an_execution_type_that_cannot_be_taken_back_is_refused(before: str, after: str, words: list[str]):
    old, new = framework(role(), start=before), framework(role(), start=after)

    assert [str(cause) for cause in DIALECT.validate(new, old)] == words
    assert DIALECT.validate(new) == []


def test_an_execution_type_that_is_not_said_means_start():
    unsaid = {"metadata": {"name": "fw"}, "spec": {"taskRoles": []}}

    assert [str(cause) for cause in DIALECT.validate(unsaid, framework(role(), start="Stop"))] == [STOPPED]
    assert DIALECT.validate(framework(role(), start="Stop"), unsaid) == []


# --- in the embedded cluster -----------------------------------------------------------------------------------------


@pytest.fixture
def machinery() -> Iterator[Machinery]:
    """An embedded cluster's machinery that knows Frameworks."""
    made = Machinery.open(":memory:")
    made.create(CUSTOM_RESOURCE_DEFINITION, "", DIALECT.crd(), WriteOptions())
    dialect_registration.admit(made, (DIALECT,))
    yield made
    made.close()


def test_every_mistake_is_listed_once(machinery: Machinery):
    wrong = framework(role("a", -1), role("a", 10_001, failed=-2), start="Pause")
    wrong["metadata"] = {"name": "my-job"}
    with pytest.raises(ApiError) as refused:
        machinery.create(DIALECT.kind, "default", wrong, WriteOptions())

    assert refused.value.causes == tuple(DIALECT.validate(wrong))


def test_a_manifest_is_stored_with_defaults_and_proper_names_and_a_word_about_them(machinery: Machinery):
    pod = {"spec": {"NodeName": "n", "containers": [{"name": "a", "image": "i"}]}}
    odd = framework({"name": "a", "taskNumber": 1, "task": {"pod": pod}})
    odd["metadata"] = {"name": "fw"}
    written = machinery.create(DIALECT.kind, "default", odd, WriteOptions())

    assert written.stored.obj()["spec"] == DIALECT.default(odd)["spec"]
    assert written.warnings == ("spec.taskRoles[0].task.pod.spec.NodeName: read as nodeName",)


# A cluster refuses a job without a name before it looks at it, and makes up the rest of a generated name, another one
# each time.
SENT = {name: manifest for name, (manifest, _) in SCENARIO_51.items() if "name" in manifest["metadata"]}


@pytest.mark.parametrize("manifest", SENT.values(), ids=list(SENT))
def test_validate_says_what_the_cluster_says_now_and_of_the_pods_later(machinery: Machinery, manifest: Obj):
    named = {key: value for key, value in manifest["metadata"].items() if key == "name"}
    new = {**manifest, "metadata": named}
    with pytest.raises(ApiError) as refused:
        machinery.create(DIALECT.kind, "default", deepcopy(new), WriteOptions())
    judged = validate(make_machinery(), Manifest(new, "job.yaml"))

    later = [
        cause
        for cause in capability(DIALECT, PodPreview).errors(new)
        if cause.field not in {each.field for each in refused.value.causes}
    ]
    assert [str(cause) for cause in refused.value.causes] == mistakes(new)
    assert list(judged.mistakes) == [*mistakes(new), *map(str, later)]
