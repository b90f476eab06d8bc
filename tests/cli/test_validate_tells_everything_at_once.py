"""A newcomer's manifest is wrong in several ways; one call of `shoal validate` tells them all."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner

from kit.framework_notation import fw, role
from shoal.cli.main import shoal
from shoal.cli.manifest_files import Manifest
from shoal.cli.offline_validation import ValidationResult, make_machinery, validate
from shoal.kube.objects import Obj

POD = "spec.taskRoles[0].task.pod"
AMOUNT = "must be an amount such as 2, 500m or 1.5Gi"
TEXT = "must be text; put it in quotes"
NO_ROLES = "spec.taskRoles: there are no roles, so there are no tasks: it waits until there are some"


def judged(obj: Obj) -> ValidationResult:
    return validate(make_machinery(), Manifest(obj, "job.yaml"))


def of_pod(spec: Obj, **metadata: Any) -> Obj:
    manifest = fw("pet", role("worker", 1))
    manifest["spec"]["taskRoles"][0]["task"]["pod"] = {"spec": spec}
    manifest["metadata"] |= metadata
    return manifest


def container(**fields: Any) -> Obj:
    return {"name": "main", "image": "busybox", **fields}


def test_what_an_api_server_will_refuse_when_pods_are_made_is_a_mistake_now() -> None:
    mount = {"name": "data", "mountPath": "/data"}
    found = judged(
        of_pod({"restartPolicy": "never", "containers": [{"name": "a", "img": "b", "volumeMounts": [mount]}]})
    )
    assert found == ValidationResult(
        (
            f"{POD}.spec.containers[0].image: Required value",
            f'{POD}.spec.containers[0].volumeMounts[0].name: Not found: "data"',
            f'{POD}.spec.restartPolicy: Unsupported value: "never": supported values: "Always", "OnFailure", "Never"',
            f"{POD}.spec.containers[0].img: there is no such field; did you mean image?",
        ),
    )


def test_values_of_a_wrong_type_hide_nothing() -> None:
    sick = container(resources={"limits": {"cpu": "1,5", "memory": "2Gigs"}}, image="")
    found = judged(of_pod({"containers": [sick]}, annotations={"n": 3, "m": "x"}, lables={}))
    assert found == ValidationResult(
        (
            f"metadata.annotations.n: Invalid value: 3: {TEXT}",
            f'{POD}.spec.containers[0].resources.limits.cpu: Invalid value: "1,5": {AMOUNT}',
            f'{POD}.spec.containers[0].resources.limits.memory: Invalid value: "2Gigs": {AMOUNT}',
            f"{POD}.spec.containers[0].image: Required value",
            "metadata.lables: there is no such field; did you mean labels?",
        ),
    )


def test_unknown_fields_are_mistakes_among_the_others() -> None:
    manifest = fw("pet", {**role("worker", -1), "tasknumber": 3})
    manifest["spec"]["executiontype"] = "Start"
    assert judged(manifest) == ValidationResult(
        (
            "spec.taskRoles[0].taskNumber: Invalid value: -1: must be 0 or more: a role has from 0 to 10000 tasks",
            "spec.taskRoles[0].tasknumber: there is no such field; did you mean taskNumber?",
            "spec.executiontype: there is no such field; did you mean executionType?",
        ),
    )


def test_other_objects_are_validated_too() -> None:
    odd = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "X"}, "data": {"a": 3, "b": True}, "dta": {}}
    found = judged(odd)
    assert found.mistakes[:2] == (f"data.a: Invalid value: 3: {TEXT}", f"data.b: Invalid value: true: {TEXT}")
    assert found.mistakes[2].startswith("metadata.name: ")
    assert found.mistakes[3:] == ("dta: there is no such field; did you mean data?",)
    assert found.warnings == ()


WITHOUT_TASKS: dict[str, tuple[Obj, tuple[str, ...]]] = {
    "no spec": ({}, (NO_ROLES,)),
    "no roles": ({"spec": {"taskRoles": []}}, (NO_ROLES,)),
    "no tasks": (
        {"spec": {"taskRoles": [role("worker", 0)]}},
        ("spec.taskRoles: no role has tasks: it waits until `shoal scale` gives worker some",),
    ),
}


@pytest.mark.parametrize(("written", "warnings"), WITHOUT_TASKS.values(), ids=list(WITHOUT_TASKS))
def test_a_job_without_tasks_is_let_in_with_a_warning(written: Obj, warnings: tuple[str, ...]) -> None:
    head = {key: value for key, value in fw("pet").items() if key != "spec"}
    assert judged({**head, **written}) == ValidationResult((), warnings)


def test_a_spec_in_another_case_is_a_mistake() -> None:
    head = {key: value for key, value in fw("pet").items() if key != "spec"}
    assert judged({**head, "Spec": {}}) == ValidationResult(
        ("Spec: there is no such field; did you mean spec?",), (NO_ROLES,)
    )


MEANT = "; did you mean Framework in frameworkcontroller.microsoft.com/v1?"
UNKNOWN = {
    "another case": ("frameworkcontroller.microsoft.com/v1", "framework", MEANT),
    "another version": ("frameworkcontroller.microsoft.com/v2", "Framework", MEANT),
    "nothing like it": ("example.com/v1", "Widget", ""),
}


@pytest.mark.parametrize(("api_version", "kind", "hint"), UNKNOWN.values(), ids=list(UNKNOWN))
def test_an_unknown_kind_is_reported_with_the_nearest_kind(api_version: str, kind: str, hint: str) -> None:
    found = judged({"apiVersion": api_version, "kind": kind, "metadata": {"name": "pet"}})
    assert found == ValidationResult((f"apiVersion, kind: the kind {kind} in {api_version} is unknown{hint}",))


@pytest.mark.parametrize("sick", [3, {"name": "a", "namespace": "A B"}, "x", [], [1], {"name": 3}, None], ids=str)
@pytest.mark.parametrize("place", ["metadata", "spec"])
def test_whatever_stands_in_a_place_there_is_a_verdict(place: str, sick: Any) -> None:
    found = judged({**fw("pet", role("worker", 1)), place: sick})
    assert found.mistakes or found.warnings


def test_one_file_that_cannot_be_read_hides_no_other(tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_text("a: [1")
    (tmp_path / "b.yaml").write_text("services: {}")
    (tmp_path / "c.yaml").write_text(yaml.safe_dump(fw("pet", role("worker", 1))))
    result = CliRunner().invoke(shoal, ["validate", str(tmp_path), str(tmp_path / "none.yaml")])
    told = result.output.splitlines()
    assert (result.exit_code, told[0].partition(" is not YAML: ")[0]) == (1, f"{tmp_path}/a.yaml")
    assert told[1:] == [
        f"{tmp_path}/b.yaml is no manifest: apiVersion and kind are missing.",
        f"{tmp_path}/c.yaml: Framework pet is valid.",
        f"cannot read {tmp_path}/none.yaml: No such file or directory.",
    ]


def test_a_mistake_that_two_checks_find_is_one(tmp_path: Path) -> None:
    job = tmp_path / "job.yaml"
    job.write_text(
        "apiVersion: batch/v1\nkind: Job\nmetadata: {name: j}\n"
        "spec: {template: {spec: {containers: [{name: c, image: i, command: [echo]}]}}}\n"
    )
    ended = CliRunner().invoke(shoal, ["validate", str(job)])
    lines = [line for line in ended.output.splitlines() if "restartPolicy" in line]
    assert (ended.exit_code, len(lines)) == (1, 1), ended.output
