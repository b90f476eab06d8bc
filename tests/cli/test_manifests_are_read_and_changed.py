"""Job files: several documents, strict YAML, and --set on the way."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click
import pytest

from shoal.cli.manifest_files import Manifest, changed, load

JOB = """\
apiVersion: frameworkcontroller.microsoft.com/v1
kind: Framework
metadata: {name: pet}
spec:
  taskRoles:
  - {name: etcd, taskNumber: 1}
  - {name: worker, taskNumber: 4}
"""
SERVICE = "apiVersion: v1\nkind: Service\nmetadata: {name: pet}\n"


def written(folder: Path, text: str, name: str = "job.yaml") -> Path:
    file = folder / name
    file.write_text(text)
    return file


def shown(manifests: list[Manifest]) -> list[tuple[str, str]]:
    return [(str(manifest), manifest.where) for manifest in manifests]


def test_a_file_may_hold_several_documents(tmp_path: Path) -> None:
    file = written(tmp_path, f"# two objects\n---\n{SERVICE}--- # the job\n{JOB}---\n# nothing here\n")
    assert shown(load([file])) == [("Service pet", f"{file}, document 2"), ("Framework pet", f"{file}, document 3")]


def test_the_documents_of_a_file_with_other_line_ends_are_told_apart(tmp_path: Path) -> None:
    file = tmp_path / "job.yaml"
    file.write_bytes(f"{SERVICE}---\n{JOB}".replace("\n", "\r\n").encode())
    assert [str(manifest) for manifest in load([file])] == ["Service pet", "Framework pet"]


def test_the_line_of_a_mistake_is_counted_from_a_line_that_is_named(tmp_path: Path) -> None:
    file = written(tmp_path, f"{SERVICE}---\nkind: Pod\nspec: !Ref x\n")
    with pytest.raises(click.ClickException) as refused:
        load([file])
    assert refused.value.message == (
        f"{file}, document 2 (it begins at line 5) is not YAML: line 2: the tag !Ref has no meaning here; leave it out"
    )


def test_a_folder_stands_for_the_manifests_in_it(tmp_path: Path) -> None:
    written(tmp_path, JOB, "b.yaml")
    written(tmp_path, SERVICE, "a.yml")
    written(tmp_path, "not a manifest", "README.md")
    written(tmp_path, "images: {}", "shoal.yaml")
    assert [str(manifest) for manifest in load([tmp_path])] == ["Service pet", "Framework pet"]


def test_a_list_is_its_items(tmp_path: Path) -> None:
    file = written(
        tmp_path, '{"apiVersion":"v1","kind":"List","items":[{"apiVersion":"v1","kind":"Pod","metadata":{"name":"p"}}]}'
    )
    assert [str(manifest) for manifest in load([file])] == ["Pod p"]


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        pytest.param("a: [1", "is not YAML", id="no YAML"),
        pytest.param("kind: Framework\nkind: Pod\napiVersion: v1\n", "kind occurs twice", id="a key twice"),
        pytest.param("name: pet\n", "apiVersion and kind are missing", id="no manifest"),
        pytest.param("# nothing\n", "there is no manifest in", id="empty"),
    ],
)
def test_what_cannot_be_read_is_named(tmp_path: Path, text: str, problem: str) -> None:
    file = written(tmp_path, text)
    with pytest.raises(click.ClickException) as refused:
        load([file])
    assert problem in refused.value.message
    assert str(file) in refused.value.message


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(click.ClickException, match="No such file"):
        load([tmp_path / "none.yaml"])


SPEC = {"spec": {"taskRoles": [{"name": "etcd", "taskNumber": 1}, {"name": "worker", "taskNumber": 4}]}}


@pytest.mark.parametrize(
    ("path", "value", "expected"),
    [
        pytest.param("spec.executionType", "Stop", {"spec": {**SPEC["spec"], "executionType": "Stop"}}, id="new"),
        pytest.param(
            "spec.taskRoles[worker].taskNumber", 2,
            {"spec": {"taskRoles": [SPEC["spec"]["taskRoles"][0], {"name": "worker", "taskNumber": 2}]}}, id="by name",
        ),
        pytest.param(
            "spec.taskRoles[0].taskNumber", 3,
            {"spec": {"taskRoles": [{"name": "etcd", "taskNumber": 3}, SPEC["spec"]["taskRoles"][1]]}}, id="by index",
        ),
        pytest.param("metadata.labels[a.b/c]", "d", {**SPEC, "metadata": {"labels": {"a.b/c": "d"}}}, id="with dots"),
    ],
)  # fmt: skip
def test_a_path_leads_to_a_value(path: str, value: Any, expected: Any) -> None:
    assert changed(SPEC, path, value) == expected


@pytest.mark.parametrize(
    ("path", "problem"),
    [
        pytest.param(
            "spec.taskRoles[chief].taskNumber", "there is no member 'chief' here; there are: etcd, worker", id="who"
        ),
        pytest.param("spec.taskRoles[0].name.first", "leads below 'etcd', which has no fields", id="below a text"),
        pytest.param("spec.taskRoles[worker", "the bracket is not closed", id="not closed"),
        pytest.param("spec.taskRoles[worker[0].name", "the bracket is not closed", id="not closed before another"),
        pytest.param("spec.taskRoles.worker].taskNumber", "the bracket is not opened", id="never opened"),
        pytest.param("spec.taskRoles[].taskNumber", "there is nothing in the brackets", id="nothing in them"),
    ],
)
def test_a_path_that_leads_nowhere_is_explained(path: str, problem: str) -> None:
    with pytest.raises(click.BadParameter, match=problem.replace("[", r"\[")):
        changed(SPEC, path, 1)


def test_values_are_yaml_and_only_jobs_are_changed(tmp_path: Path) -> None:
    file = written(tmp_path, f"{SERVICE}---\n{JOB}")
    service, job = load([file], ["spec.taskRoles[worker].taskNumber=2", "spec.description=two words", "spec.x=[1, a]"])
    assert service.obj == {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "pet"}}
    assert job.obj["spec"] == {
        "taskRoles": [{"name": "etcd", "taskNumber": 1}, {"name": "worker", "taskNumber": 2}],
        "description": "two words",
        "x": [1, "a"],
    }
