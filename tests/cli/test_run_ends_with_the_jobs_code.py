"""`shoal run`: a cluster for one job, its words and its exit code, and nothing left afterwards."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from kit.framework_notation import fw, role
from kit.pod_behavior import runs

pytestmark = pytest.mark.processes


def manifest(folder: Path, script: str, number: int = 2) -> str:
    job = fw("job", role("worker", number, 1, number, fate=runs()))
    job["spec"]["taskRoles"][0]["task"]["pod"]["spec"]["containers"][0]["command"] = ["sh", "-c", script]
    file = folder / "job.yaml"
    file.write_text(yaml.safe_dump(job))
    return str(file)


def started(folder: Path, *words: str, together: bool = False) -> subprocess.Popen[str]:
    """Both outputs in one where they are `together`.

    Temporary folders of the run lie below `folder`, so that what is left can be seen."""
    (folder / "tmp").mkdir()
    return subprocess.Popen(
        [sys.executable, "-m", "shoal", "run", *words],
        env={**os.environ, "TMPDIR": str(folder / "tmp")},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT if together else subprocess.PIPE,
        text=True,
    )


def left_in(folder: Path) -> list[str]:
    return [path.name for path in (folder / "tmp").iterdir()]


def test_a_job_that_succeeds_ends_with_zero(tmp_path: Path) -> None:
    process = started(tmp_path, manifest(tmp_path, "echo hello from $FC_TASK_INDEX"), "--plain", "-o", "json")
    out, err = process.communicate()
    assert process.returncode == 0, err
    assert json.loads(out)["status"]["state"] == "Completed"
    assert {"worker-0 | hello from 0", "worker-1 | hello from 1"} <= set(err.splitlines())
    assert err.splitlines()[-1].endswith(" job: succeeded")
    assert left_in(tmp_path) == []


def test_a_job_that_fails_ends_with_its_code(tmp_path: Path) -> None:
    process = started(tmp_path, manifest(tmp_path, "exit $((FC_TASK_INDEX * 7))"), "--plain", "--no-logs")
    _, err = process.communicate()
    assert process.returncode == 7, err
    assert any(line.endswith(" job worker-1: failed (code 7)") for line in err.splitlines())
    assert re.fullmatch(
        r"Framework job in namespace default \(worker x 2\) failed after \d+s: worker-1 ended with code 7\.",
        err.splitlines()[-1],
    )


def test_fields_are_changed_on_the_way(tmp_path: Path) -> None:
    words = ("--plain", "--set", "spec.taskRoles[worker].taskNumber=1", "--set", "metadata.name=other", "-o", "yaml")
    process = started(tmp_path, manifest(tmp_path, "exit 0"), *words)
    out, err = process.communicate()
    assert process.returncode == 0, err
    stored = yaml.safe_load(out)
    assert (stored["metadata"]["name"], stored["spec"]["taskRoles"][0]["taskNumber"]) == ("other", 1)


def test_a_namespace_that_every_cluster_has_can_be_used(tmp_path: Path) -> None:
    words = ("--plain", "-n", "kube-system", "-o", "yaml")
    process = started(tmp_path, manifest(tmp_path, "exit 0"), *words)
    out, err = process.communicate()
    assert process.returncode == 0, err
    assert yaml.safe_load(out)["metadata"]["namespace"] == "kube-system"


def interrupted(folder: Path, script: str, times: int) -> tuple[int, str]:
    """Ctrl-C once all tasks have spoken, and again when the first one was heard."""
    process = started(folder, manifest(folder, script), "--plain", together=True)
    assert process.stdout is not None
    said, spoken = [], 0
    for line in process.stdout:
        said.append(line)
        spoken += line.endswith("| ready\n")
        if line.endswith("| ready\n") and spoken == 2:
            process.send_signal(signal.SIGINT)
        if line.startswith("Stopping") and times == 2:
            process.send_signal(signal.SIGINT)
    return process.wait(), "".join(said)


def test_an_interrupt_stops_the_job_and_waits_for_it(tmp_path: Path) -> None:
    note = tmp_path / "note"
    code, said = interrupted(tmp_path, f"trap 'echo left >> {note}; exit 0' TERM; echo ready; sleep 1000 & wait", 1)
    assert code == 130, said
    assert " job: stopped" in said
    assert (note.read_text().splitlines(), left_in(tmp_path)) == (["left", "left"], [])


def test_a_second_interrupt_ends_everything_at_once(tmp_path: Path) -> None:
    stubborn = "trap : TERM; echo ready; while :; do sleep 1000 & wait; done"
    code, said = interrupted(tmp_path, stubborn, 2)
    assert code == 130, said
    assert left_in(tmp_path) == []


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        pytest.param("a: [", "is not YAML", id="no YAML"),
        pytest.param("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n", "there is no job in", id="no job"),
        pytest.param(
            "apiVersion: v1\nkind: Gadget\nmetadata: {name: a}\n", "the kind Gadget in v1 is unknown", id="no kind"
        ),
    ],
)
def test_what_cannot_be_run_is_a_sentence(tmp_path: Path, text: str, sentence: str) -> None:
    (tmp_path / "job.yaml").write_text(text)
    process = started(tmp_path, str(tmp_path / "job.yaml"))
    _, err = process.communicate()
    assert (process.returncode, sentence in err, left_in(tmp_path)) == (1, True, []), err
