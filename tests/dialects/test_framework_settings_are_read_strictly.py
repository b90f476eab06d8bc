"""The controller's configuration: its defaults, and all mistakes at once."""

from __future__ import annotations

from typing import Any

import pytest

from shoal.dialects.framework import SettingsInvalid, settings


def test_nothing_said_means_the_shipped_configuration():
    shipped = settings().model_dump(by_alias=True)
    table = shipped.pop("podFailureSpec")

    assert shipped == {
        "kubeApiServerAddress": None,
        "kubeConfigFilePath": None,
        "kubeClientQps": 80,
        "kubeClientBurst": 120,
        "workerNumber": 16,
        "largeFrameworkCompression": False,
        "crdEstablishedCheckIntervalSec": 1,
        "crdEstablishedCheckTimeoutSec": 60,
        "objectLocalCacheCreationTimeoutSec": 300,
        "frameworkCompletedRetainSec": 2_592_000,
        "frameworkMinRetryDelaySecForTransientConflictFailed": 60,
        "frameworkMaxRetryDelaySecForTransientConflictFailed": 900,
        "logObjectSnapshot": {
            "framework": {"onFrameworkRetry": True, "onFrameworkDeletion": True},
            "task": {"onTaskRetry": True, "onTaskDeletion": True},
            "pod": {"onPodDeletion": True},
        },
    }
    assert [entry["code"] for entry in table] == [
        *range(-1000, -1007, -1),
        *range(-1200, -1205, -1),
        *(130, 131, 132, 134, 135, 136, 137, 139, 141, 143),
    ]


def test_what_is_said_wins_and_the_rest_stays():
    said = settings(
        {
            "kubeClientQps": 5,
            "largeFrameworkCompression": True,
            "logObjectSnapshot": {"task": {"onTaskRetry": False}},
            "podFailureSpec": [],
        }
    )

    assert (said.kube_client_qps, said.large_framework_compression) == (5, True)
    assert (said.log_object_snapshot.task.on_task_retry, said.log_object_snapshot.task.on_task_deletion) == (
        False,
        True,
    )
    assert len(said.rules) == 4  # the three exit codes of the protocol, and whatever is left


MISTAKES: dict[str, tuple[dict[str, Any], str]] = {
    "no calls": ({"kubeClientQps": 0}, "kubeClientQps: Invalid value: 0: must be more than 0"),
    "too many calls": ({"kubeClientBurst": 10_001}, "kubeClientBurst: Invalid value: 10001: must be 10000 or less"),
    "no workers": ({"workerNumber": 0}, "workerNumber: Invalid value: 0: must be more than 0"),
    "no interval": (
        {"crdEstablishedCheckIntervalSec": 0},
        "crdEstablishedCheckIntervalSec: Invalid value: 0: must be 1 or more",
    ),
    "no patience": (
        {"crdEstablishedCheckTimeoutSec": 9},
        "crdEstablishedCheckTimeoutSec: Invalid value: 9: must be 10 or more",
    ),
    "no time to appear": (
        {"objectLocalCacheCreationTimeoutSec": 59},
        "objectLocalCacheCreationTimeoutSec: Invalid value: 59: must be 60 or more: a slow cache would otherwise look "
        "like a lost object",
    ),
    "negative delay": (
        {"frameworkMinRetryDelaySecForTransientConflictFailed": -1},
        "frameworkMinRetryDelaySecForTransientConflictFailed: Invalid value: -1: must be 0 or more",
    ),
    "delays the wrong way round": (
        {"frameworkMaxRetryDelaySecForTransientConflictFailed": 30},
        "frameworkMaxRetryDelaySecForTransientConflictFailed: Invalid value: 30: must be 60 or more, as "
        "frameworkMinRetryDelaySecForTransientConflictFailed says",
    ),
    "text for a switch": (
        {"largeFrameworkCompression": "on"},
        'largeFrameworkCompression: Invalid value: "on": must be true or false',
    ),
    "unknown key": ({"workers": 3}, "workers: Forbidden: there is no such key"),
    "unknown switch": (
        {"logObjectSnapshot": {"pod": {"onPodRetry": True}}},
        "logObjectSnapshot.pod.onPodRetry: Forbidden: there is no such key",
    ),
}


@pytest.mark.parametrize(("written", "words"), MISTAKES.values(), ids=list(MISTAKES))
def test_a_mistake_is_named_with_its_path(written: dict[str, Any], words: str):
    with pytest.raises(SettingsInvalid) as refused:
        settings(written)

    assert [str(cause) for cause in refused.value.causes] == [words]


def test_all_mistakes_are_listed_at_once():
    with pytest.raises(SettingsInvalid) as refused:
        settings({"workerNumber": 0, "podFailureSpec": [{"code": 0, "podPatterns": [{}]}], "typo": 1})

    assert str(refused.value).splitlines() == [
        "the settings have 3 mistakes:",
        "  workerNumber: Invalid value: 0: must be more than 0",
        "  podFailureSpec[0].code: Invalid value: 0: must lie outside [-999, 0] and [200, 219], which belong to the "
        "controller",
        "  typo: Forbidden: there is no such key",
    ]


def test_tests_may_be_less_patient():
    assert (
        settings({"objectLocalCacheCreationTimeoutSec": 2}, relaxed=True).object_local_cache_creation_timeout_sec == 2
    )
