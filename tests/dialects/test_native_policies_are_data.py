"""ReplicaSet and batch Job in the engine's words: what a spec asks for, and what becomes of pods."""

from __future__ import annotations

import pytest

from kit.native_world import job, replica_set
from shoal.dialects.dialect import ManifestInvalid, SettingsInvalid
from shoal.dialects.native import batch_job, replica_sets
from shoal.dialects.native.pod_failure_policy import classify
from shoal.dialects.native.settings import settings
from shoal.engine import BuildContext, Create, TaskRef
from shoal.engine.policies import ContainerPattern, PodPattern, Span
from shoal.kube.defaults import apply_defaults
from shoal.kube.kinds import JOB, REPLICA_SET
from shoal.kube.objects import Obj

META = {"uid": "u", "namespace": "default"}


def stored(manifest: Obj) -> Obj:
    kind = REPLICA_SET if "replicas" in manifest["spec"] else JOB
    apply_defaults(kind, manifest)
    manifest["metadata"] |= META
    return manifest


def made(dialect: object, manifest: Obj, index: int = 0) -> Obj:
    pod: Obj = dialect.DIALECT.build_pod(manifest, Create(TaskRef("any", index), BuildContext(), failures=2))  # type: ignore[attr-defined]
    return pod


def test_a_pod_of_a_replica_set_has_a_name_to_be_drawn_and_one_owner():
    pod = made(replica_sets, stored(replica_set("a", 2)), 1)
    assert pod["metadata"]["generateName"] == "a-"
    assert (pod["metadata"]["labels"], pod["metadata"]["annotations"]["shoal.dev/slot"]) == ({"app": "a"}, "1")
    assert pod["metadata"]["ownerReferences"] == [
        {
            "apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "a", "uid": "u",
            "controller": True, "blockOwnerDeletion": True,
        }
    ]  # fmt: skip


def test_a_pod_of_an_index_knows_it():
    pod = made(batch_job, stored(job("a", completionMode="Indexed", completions=3, backoffLimitPerIndex=4)), 2)
    meta, spec = pod["metadata"], pod["spec"]
    assert (meta["generateName"], spec["hostname"], meta["finalizers"]) == ("a-2-", "a-2", [batch_job.FINALIZER])
    annotations = meta["annotations"]
    assert (meta["labels"][batch_job.INDEX], annotations[batch_job.INDEX], annotations[batch_job.FAILURES]) == (
        "2", "2", "2",
    )  # fmt: skip
    assert spec["containers"][0]["env"][-1] == {
        "name": "JOB_COMPLETION_INDEX",
        "valueFrom": {"fieldRef": {"apiVersion": "v1", "fieldPath": f"metadata.labels['{batch_job.INDEX}']"}},
    }


def test_codes_that_are_none_of_some_are_the_spans_between():
    codes = {"containerName": "main", "operator": "NotIn", "values": [3, 1]}
    (rule, _) = classify({"podFailurePolicy": {"rules": [{"action": "Ignore", "onExitCodes": codes}]}}).rules
    name = rule.patterns[0].containers[0].name
    spans = (Span(None, -1), Span(2, 2), Span(4, None))
    assert rule.patterns == tuple(PodPattern(containers=(ContainerPattern(name=name, code=span),)) for span in spans)
    assert name is not None
    assert (name.matches("main"), name.matches("mainly")) == (True, False)


def test_what_others_take_care_of_is_not_ours():
    managed = stored(job("a", managedBy="example.com/other"))
    assert batch_job.DIALECT.to_job(managed, settings()) is None


def test_a_replica_set_that_a_deployment_controls_is_run():
    owned = stored(replica_set("b", 1))
    owned["metadata"]["ownerReferences"] = [
        {"apiVersion": "apps/v1", "kind": "Deployment", "name": "d", "uid": "d", "controller": True}
    ]
    assert replica_sets.DIALECT.to_job(owned, settings()) == replica_sets.DIALECT.to_job(
        stored(replica_set("b", 1)), settings()
    )


def test_a_spec_nobody_could_have_stored_is_refused_with_its_mistakes():
    with pytest.raises(ManifestInvalid, match=r"spec\.parallelism: Invalid value: -1"):
        batch_job.DIALECT.to_job(stored(job("a", parallelism=-1)), settings())


def test_there_is_nothing_to_set():
    with pytest.raises(SettingsInvalid, match="there is no such key"):
        settings({"fast": True})
