"""What may change in a stored object and what may not, in the words of a real API server."""

from __future__ import annotations

import pytest

from kit import manifests
from kit.manifests import changed
from kit.validation_tables import Mistake, fresh, mistakes
from shoal.kube import kinds
from shoal.kube.defaults import apply_defaults
from shoal.kube.kinds import Kind
from shoal.kube.objects import Obj
from shoal.kube.validation import validate_update

STORED = {"uid": "3f0c7a52", "resourceVersion": "7", "creationTimestamp": "2026-11-16T04:12:00Z"}


def stored(kind: Kind, obj: Obj) -> Obj:
    """The object as an API server keeps it."""
    kept = fresh(obj)
    kept["metadata"] |= STORED
    if kind == kinds.POD:
        kept.setdefault("status", {"phase": "Pending", "qosClass": "BestEffort"})
    apply_defaults(kind, kept)
    return kept


def causes(kind: Kind, first: Obj, change: Obj, subresource: str = "") -> list[str]:
    before = stored(kind, first)
    after = changed(before, change)
    apply_defaults(kind, after)
    return [str(cause) for cause in validate_update(kind, after, before, subresource)]


CHANGES = [pytest.param(each, id=each.id) for each in mistakes("changes_of_pods", "changes_of_others")]


@pytest.mark.parametrize("mistake", CHANGES)
def test_a_change_is_refused_as_kubernetes_refuses_it(mistake: Mistake) -> None:
    assert causes(mistake.kind, mistake.first, mistake.change, mistake.subresource) == mistake.causes


FIXED = {
    "name": ({"metadata.name": "other"}, 'metadata.name: Invalid value: "other": field is immutable'),
    "namespace": ({"metadata.namespace": "other"}, 'metadata.namespace: Invalid value: "other": field is immutable'),
    "uid": ({"metadata.uid": "other"}, 'metadata.uid: Invalid value: "other": field is immutable'),
    "version": (
        {"metadata.resourceVersion": ""},
        'metadata.resourceVersion: Invalid value: "": must be specified for an update',
    ),
    "generation": (
        {"metadata.generation": -1},
        "metadata.generation: Invalid value: -1: must not be decremented",
    ),
}


@pytest.mark.parametrize(("change", "cause"), FIXED.values(), ids=FIXED)
def test_identity_stays(change: Obj, cause: str) -> None:
    assert causes(kinds.CONFIG_MAP, manifests.config_map(), change) == [cause]


def test_a_leaving_object_takes_no_new_finalizers() -> None:
    leaving = {"metadata.deletionTimestamp": "2026-11-16T04:13:00Z", "metadata.finalizers": ["a.b/c"]}
    first = changed(manifests.config_map(), leaving)
    assert causes(kinds.CONFIG_MAP, first, {"metadata.finalizers": []}) == []
    assert causes(kinds.CONFIG_MAP, first, {"metadata.finalizers": ["a.b/c", "a.b/d"]}) == [
        "metadata.finalizers: Forbidden: no new finalizers can be added if the object is being deleted, "
        'found new finalizers []string{"a.b/d"}'
    ]


def container_status(exit_code: int | None) -> list[Obj]:
    state = {"running": {}} if exit_code is None else {"terminated": {"exitCode": exit_code}}
    return [{"name": "main", "state": state}]


STAYS_ENDED = "status.containerStatuses[0].state: Forbidden: may not be transitioned to non-terminated state"
RESTARTS = {
    "never": ("Never", 1, [STAYS_ENDED]),
    "on failure after success": ("OnFailure", 0, [STAYS_ENDED]),
    "on failure after failure": ("OnFailure", 1, []),
    "always": ("Always", 0, []),
}


@pytest.mark.parametrize(("policy", "exit_code", "expected"), RESTARTS.values(), ids=RESTARTS)
def test_a_container_that_ended_for_good_stays_ended(policy: str, exit_code: int, expected: list[str]) -> None:
    ended = {"spec.restartPolicy": policy, "status.containerStatuses": container_status(exit_code)}
    first = changed(manifests.pod(), ended)
    change = {"status.containerStatuses": container_status(None)}
    assert causes(kinds.POD, first, change, "status") == expected


SHRINKING = {
    "above what it has": ("5Gi", []),
    "below what it has": (
        "1Gi",
        ["spec.resources.requests.storage: Forbidden: field can not be less than status.capacity"],
    ),
}


@pytest.mark.parametrize(("size", "expected"), SHRINKING.values(), ids=SHRINKING)
def test_a_bound_claim_never_asks_for_less_than_it_has(size: str, expected: list[str]) -> None:
    bound = {"status.phase": "Bound", "status.capacity.storage": "2Gi", "spec.resources.requests.storage": "9Gi"}
    first = changed(manifests.claim(), bound)
    assert causes(kinds.PERSISTENT_VOLUME_CLAIM, first, {"spec.resources.requests.storage": size}) == expected
