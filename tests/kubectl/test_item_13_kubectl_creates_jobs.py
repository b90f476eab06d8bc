"""`kubectl create job` and `kubectl create deployment`, which send protobuf and do not fall back to JSON."""

from __future__ import annotations

from typing import Any


def test_kubectl_create_job_makes_a_job(kubectl: Any) -> None:
    assert kubectl("create", "job", "hi", "--image=busybox", "--", "echo", "hi").out == "job.batch/hi created\n"
    job = kubectl.read("get", "job", "hi")
    (container,) = job["spec"]["template"]["spec"]["containers"]
    assert (container["image"], container["command"]) == ("busybox", ["echo", "hi"])
    assert job["spec"]["template"]["spec"]["restartPolicy"] == "Never"
    kubectl("delete", "job", "hi")


def test_kubectl_create_deployment_makes_a_deployment(kubectl: Any) -> None:
    arguments = ("create", "deployment", "web", "--image=busybox", "--replicas=0", "--", "sleep", "1")
    assert kubectl(*arguments).out == "deployment.apps/web created\n"
    spec = kubectl.read("get", "deployment", "web")["spec"]
    (container,) = spec["template"]["spec"]["containers"]
    assert (spec["replicas"], container["image"], container["command"]) == (0, "busybox", ["sleep", "1"])
    kubectl("delete", "deployment", "web")
