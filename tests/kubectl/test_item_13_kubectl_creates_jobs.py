"""`kubectl create job`, which sends protobuf and does not fall back to JSON."""

from __future__ import annotations

from typing import Any


def test_kubectl_create_job_makes_a_job(kubectl: Any) -> None:
    assert kubectl("create", "job", "hi", "--image=busybox", "--", "echo", "hi").out == "job.batch/hi created\n"
    job = kubectl.read("get", "job", "hi")
    (container,) = job["spec"]["template"]["spec"]["containers"]
    assert (container["image"], container["command"]) == ("busybox", ["echo", "hi"])
    assert job["spec"]["template"]["spec"]["restartPolicy"] == "Never"
    kubectl("delete", "job", "hi")
