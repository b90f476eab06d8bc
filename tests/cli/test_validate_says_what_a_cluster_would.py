"""`shoal validate` and `shoal crds`: no cluster needed."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml
from click.testing import CliRunner, Result

from kit.framework_notation import fw, role
from kit.volcano_jobs import task, vcjob
from shoal.cli.main import shoal
from shoal.kube.objects import Obj


def validated(folder: Path, *objects: Obj, words: tuple[str, ...] = ()) -> Result:
    file = folder / "job.yaml"
    file.write_text("---\n".join(yaml.safe_dump(obj) for obj in objects))
    return CliRunner().invoke(shoal, ["validate", str(file), *words])


def test_a_good_manifest_is_in_order(tmp_path: Path) -> None:
    result = validated(tmp_path, fw("pet", role("worker", 2)))
    assert (result.exit_code, result.output) == (0, f"{tmp_path}/job.yaml: Framework pet is valid.\n")


def test_every_mistake_of_every_document_is_listed(tmp_path: Path) -> None:
    service = {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": "s"},
        "spec": {"ports": [{"port": 70000, "targetPort": 80}]},
    }
    result = validated(tmp_path, fw("my-job", role("worker", -1), start="Pause"), service)
    assert result.exit_code == 1
    assert result.output.splitlines() == [
        f"{tmp_path}/job.yaml, document 1: Framework my-job has 3 mistakes:",
        '  metadata.name: Invalid value: "my-job": must consist of 1 to 63 lower case letters and digits, '
        "for example myjob",
        '  spec.executionType: Unsupported value: "Pause": supported values: "Create", "Start", "Stop"',
        "  spec.taskRoles[0].taskNumber: Invalid value: -1: must be 0 or more: a role has from 0 to 10000 tasks",
        f"{tmp_path}/job.yaml, document 2: Service s has 1 mistake:",
        "  spec.ports[0].port: Invalid value: 70000: must be between 1 and 65535, inclusive",
    ]


def gang_kind(kind: str, name: str, **spec: object) -> Obj:
    return {"apiVersion": "scheduling.volcano.sh/v1beta1", "kind": kind, "metadata": {"name": name}, "spec": spec}


def test_queues_and_groups_are_validated_by_their_own_fields(tmp_path: Path) -> None:
    good = gang_kind("Queue", "good", parent="dept", capability={"cpu": 4}), gang_kind("PodGroup", "good", queue="dept")
    negative = gang_kind("Queue", "q", capability={"cpu": "-1"}), gang_kind("PodGroup", "g", minResources={"cpu": "-3"})
    result = validated(tmp_path, *good, *negative, gang_kind("Queue", "loop", parent="loop"))
    assert (result.exit_code, [line.removeprefix(f"{tmp_path}/job.yaml, ") for line in result.output.splitlines()]) == (
        1,
        [
            "document 1: Queue good is valid.",
            "document 2: PodGroup good is valid.",
            "document 3: Queue q has 1 mistake:",
            "  spec.capability: Invalid value: an amount is below zero; give zero or more",
            "document 4: PodGroup g has 1 mistake:",
            "  spec.minResources: Invalid value: an amount is below zero; give zero or more",
            "document 5: Queue loop has 1 mistake:",
            "  spec.parent: Invalid value: queue loop would be below itself; choose another parent than loop",
        ],
    )


def test_a_job_for_the_queue_above_all_others_is_refused(tmp_path: Path) -> None:
    result = validated(tmp_path, vcjob("a", task(), queue="root"))
    assert 'spec.queue: Invalid value: "root": can not submit job to root queue: choose a leaf' in result.output


def test_an_unknown_kind_is_a_mistake(tmp_path: Path) -> None:
    result = validated(tmp_path, {"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": "w"}})
    assert result.exit_code == 1
    assert "the kind Widget in example.com/v1 is unknown" in result.output


def test_warnings_pass_unless_they_are_to_count(tmp_path: Path) -> None:
    odd = fw("pet", role("worker", 1))
    odd["spec"]["taskRoles"][0]["task"]["pod"]["spec"]["ActiveDeadlineSeconds"] = 60
    lenient, strict = validated(tmp_path, odd), validated(tmp_path, odd, words=("--strict",))
    assert (lenient.exit_code, strict.exit_code) == (0, 1)
    assert (
        "warning: spec.taskRoles[0].task.pod.spec.ActiveDeadlineSeconds: read as activeDeadlineSeconds" in strict.output
    )


def test_changes_are_judged_too(tmp_path: Path) -> None:
    result = validated(tmp_path, fw("pet", role("worker", 1)), words=("--set", "spec.retryPolicy.maxRetryCount=-3"))
    assert (result.exit_code, "spec.retryPolicy.maxRetryCount" in result.output) == (1, True)


@pytest.mark.parametrize("form", ["yaml", "json"])
def test_definitions_are_printed(form: str) -> None:
    result = CliRunner().invoke(shoal, ["crds", "framework", "-o", form])
    definition = yaml.safe_load(result.output)
    assert (definition["kind"], definition["metadata"]["name"]) == (
        "CustomResourceDefinition", "frameworks.frameworkcontroller.microsoft.com",
    )  # fmt: skip


def test_an_unknown_language_is_named() -> None:
    result = CliRunner().invoke(shoal, ["crds", "cobol"])
    assert (result.exit_code, "there is no job language 'cobol'; there are: framework" in result.output) == (2, True)
