"""`shoal submit` takes folder, environment and images of its project along, so that two projects share a cluster."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from kit.cli_runner import SHOAL, Terminal, at_a_cluster
from kit.framework_notation import fw, role
from shoal.kube.objects import Obj

pytestmark = pytest.mark.processes

SCRIPT = "echo at $PWD; cat /project/here; echo $COLOUR; echo path ${PATH%%:*}; echo venv ${VIRTUAL_ENV:-none}"


@pytest.fixture(scope="module")
def terminal(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Terminal]:
    with at_a_cluster(tmp_path_factory.mktemp("shared")) as opened:
        yield opened


def job(name: str, image: str = "acme/trainer:1", script: str = SCRIPT) -> Obj:
    made = fw(name, role("worker", 1))
    container = made["spec"]["taskRoles"][0]["task"]["pod"]["spec"]["containers"][0]
    container |= {"image": image, "command": ["sh", "-c", script]}
    return made


def project(folder: Path, colour: str) -> Path:
    (folder / "src").mkdir(parents=True)
    (folder / "src" / "here").write_text(f"the {colour} project\n")
    entry = {"mounts": {"/project": "./src"}, "env": {"COLOUR": colour}}
    (folder / "shoal.yaml").write_text(yaml.safe_dump({"images": {"acme/*": entry}}))
    (folder / "job.yaml").write_text(yaml.safe_dump(job(colour)))
    return folder


def submit(terminal: Terminal, folder: Path, *words: str, **environment: str) -> str:
    env = {**terminal.env, **environment}
    made = subprocess.run([SHOAL, "submit", *words], cwd=folder, env=env, capture_output=True, text=True, check=False)
    assert made.returncode == 0, made.stderr
    return made.stderr


def test_two_projects_share_a_cluster(terminal: Terminal, tmp_path: Path) -> None:
    for colour in ("red", "blue"):
        folder = project(tmp_path / colour, colour)
        path = f"/opt/{colour}/bin:{os.environ['PATH']}"
        submit(terminal, folder, "job.yaml", PATH=path, VIRTUAL_ENV=f"/opt/{colour}")
    for colour in ("red", "blue"):
        terminal("wait", colour)
        assert terminal("logs", colour).splitlines() == [
            f"at {tmp_path / colour}", f"the {colour} project", colour, f"path /opt/{colour}/bin",
            f"venv /opt/{colour}",
        ]  # fmt: skip


def test_the_file_beside_the_job_is_used_from_elsewhere(terminal: Terminal, tmp_path: Path) -> None:
    folder = project(tmp_path / "green", "green")
    (tmp_path / "elsewhere").mkdir()
    submit(terminal, tmp_path / "elsewhere", str(folder / "job.yaml"))
    terminal("wait", "green")
    lines = terminal("logs", "green").splitlines()
    assert lines[:3] == [f"at {tmp_path / 'elsewhere'}", "the green project", "green"]


def test_every_attempt_of_a_job_has_its_project(terminal: Terminal, tmp_path: Path) -> None:
    made = fw("again", role("worker", 1, 1, 1, retry=(False, 1)))
    container = made["spec"]["taskRoles"][0]["task"]["pod"]["spec"]["containers"][0]
    container["command"] = ["sh", "-c", "echo at $PWD; [ -e tried ] || { touch tried; exit 1; }"]
    (tmp_path / "job.yaml").write_text(yaml.safe_dump(made))
    submit(terminal, tmp_path, "job.yaml")
    terminal("wait", "again")
    assert terminal("logs", "again", "--all-attempts", "--no-prefix") == f"at {tmp_path}\nat {tmp_path}\n"


def test_a_project_that_is_not_stored_keeps_a_pod_waiting_with_the_reason(terminal: Terminal, tmp_path: Path) -> None:
    """A client of the API names projects; it makes none, and no path of its own is one."""
    pod = {
        "apiVersion": "v1", "kind": "Pod",
        "metadata": {"name": "stranger", "annotations": {"shoal.dev/project": "../../../tmp"}},
        "spec": {"containers": [{"name": "main", "image": "any", "command": ["true"]}]},
    }  # fmt: skip
    (tmp_path / "pod.yaml").write_text(yaml.safe_dump(pod))
    kubectl = ["kubectl", "--kubeconfig", str(terminal.folder / "data" / "kubeconfig")]
    subprocess.run([*kubectl, "create", "-f", "pod.yaml"], cwd=tmp_path, check=True)
    path = "jsonpath={.status.containerStatuses[0].state.waiting.reason}=CreateContainerConfigError"
    subprocess.run([*kubectl, "wait", "pod/stranger", f"--for={path}", "--timeout=120s"], check=True)
    shown = subprocess.run([*kubectl, "describe", "pod/stranger"], check=True, capture_output=True, text=True).stdout
    assert "this cluster has not stored the project" in shown


def test_an_image_without_an_entry_is_warned_of_with_the_nearest(terminal: Terminal, tmp_path: Path) -> None:
    folder = project(tmp_path / "typo", "typo")
    (folder / "job.yaml").write_text(yaml.safe_dump(job("typo", image="acmee/trainer:1", script="true")))
    (folder / "shoal.yaml").write_text(yaml.safe_dump({"images": {"acme/trainer:*": {}}}))
    warning = (
        f'job.yaml: warning: image "acmee/trainer:1" has no entry under `images:` in {folder}/shoal.yaml; '
        'did you mean "acme/trainer:*"? Its command runs in your own environment.\n'
    )
    assert warning in submit(terminal, folder, "job.yaml")
    run = subprocess.run(
        [SHOAL, "run", "job.yaml", "--plain", "--no-out"], cwd=folder, env=terminal.env, capture_output=True, text=True
    )
    assert (run.returncode, warning in run.stderr) == (0, True)


def test_args_alone_run_as_the_command(terminal: Terminal) -> None:
    kubectl = ["kubectl", "--kubeconfig", str(terminal.folder / "data" / "kubeconfig")]
    words = ["run", "hi", "--image=busybox", "--restart=Never", "--", "echo", "hi"]
    subprocess.run([*kubectl, *words], check=True)
    subprocess.run(
        [*kubectl, "wait", "pod/hi", "--for=jsonpath={.status.phase}=Succeeded", "--timeout=120s"], check=True
    )
    shown = subprocess.run([*kubectl, "logs", "hi"], check=True, capture_output=True, text=True).stdout
    assert shown == "hi\n"


def test_capacity_beside_a_job_is_named_as_without_effect_on_a_running_cluster(
    terminal: Terminal, tmp_path: Path
) -> None:
    folder = project(tmp_path / "gray", "gray")
    with (folder / "shoal.yaml").open("a") as file:
        file.write("capacity: {example.com/thing: 4}\n")
    assert f"Warning: capacity in {folder / 'shoal.yaml'} differs" in submit(terminal, folder, "job.yaml")
