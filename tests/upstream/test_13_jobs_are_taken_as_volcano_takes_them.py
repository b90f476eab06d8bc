"""Arguments that no plugin has, events named twice in one policy, and the names in a PodGroup's minResources."""

from __future__ import annotations

import pytest

from kit.volcano_jobs import task, vcjob
from shoal.dialects.gang_backends.volcano import spec as group_spec
from shoal.dialects.volcano.job_patches import warn
from shoal.dialects.volcano.pod_groups import gangs
from shoal.dialects.volcano.spec import spec_of
from shoal.dialects.volcano.validation import admit
from shoal.scheduler.api.implicit_pod_groups import group_of


@pytest.mark.parametrize(
    ("plugin", "argument"), [("ssh", "--no-root"), ("svc", "--enable-networking"), ("env", "loose")]
)
def test_13_an_unknown_argument_of_a_plugin_is_accepted_with_a_warning(plugin: str, argument: str):
    job = vcjob("a", task(pod={"restartPolicy": "Never"}), plugins={plugin: [argument]})
    assert admit(job) == []
    (warning,) = warn(job)
    assert warning.startswith(f"spec.plugins[{plugin}]: unknown argument {argument!r} is ignored; known arguments: ")


def test_13_known_arguments_beside_an_unknown_one_still_count():
    job = vcjob("a", task(pod={"restartPolicy": "Never"}), plugins={"ssh": ["--no-root", "--ssh-port", "99999"]})
    assert [cause.field for cause in admit(job)] == ["spec.plugins[ssh]"]


def test_13_an_event_twice_in_one_policy_is_accepted_and_in_two_policies_is_not():
    twice = {"events": ["PodFailed", "PodFailed", "PodEvicted"], "action": "RestartJob"}
    assert admit(vcjob("a", task(), policies=[twice])) == []
    again = {"event": "PodEvicted", "action": "AbortJob"}
    assert [cause.field for cause in admit(vcjob("a", task(), policies=[twice, again]))] == ["spec.policies"]


def test_13_min_resources_have_the_names_of_quotas_too():
    worker = task("worker", 2)
    worker["template"]["spec"]["containers"][0]["resources"] = {
        "requests": {"cpu": "1", "nvidia.com/gpu": "1"}, "limits": {"cpu": "2", "memory": "1Gi", "nvidia.com/gpu": "1"}
    }  # fmt: skip
    gang = gangs(spec_of(vcjob("a", worker)), job="a", uid="u")[""]
    assert group_spec(gang)["minResources"] == {
        "cpu": "2", "memory": "2Gi", "nvidia.com/gpu": "2", "pods": "2",
        "requests.cpu": "2", "requests.memory": "2Gi", "requests.nvidia.com/gpu": "2", "count/pods": "2",
        "limits.cpu": "4", "limits.memory": "2Gi",
    }  # fmt: skip


def test_13_min_resources_of_the_group_of_a_pod_without_one_have_them_as_well():
    resources = {"requests": {"cpu": "1"}, "limits": {"cpu": "2", "memory": "1Gi"}}
    spec = {"schedulerName": "volcano", "containers": [{"name": "main", "image": "x", "resources": resources}]}
    pod = {"metadata": {"name": "a", "namespace": "default", "uid": "u"}, "spec": spec}
    group = group_of(pod, {"scheduling.volcano.sh/group-min-member": "2"}, {})
    assert group["spec"]["minResources"] == {
        "cpu": "2", "memory": "2147483648", "pods": "2",
        "requests.cpu": "2", "requests.memory": "2147483648", "count/pods": "2",
        "limits.cpu": "4", "limits.memory": "2147483648",
    }  # fmt: skip
