"""The commands people use, against a cluster as `shoal up` starts it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from kit.cli_runner import Terminal, at_a_cluster
from kit.framework_notation import fw, role
from kit.pod_behavior import exits, runs
from kit.volcano_jobs import vcjob
from shoal.kube.objects import Obj

pytestmark = pytest.mark.processes


@pytest.fixture(scope="module")
def terminal(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Terminal]:
    with at_a_cluster(tmp_path_factory.mktemp("cli")) as opened:
        yield opened


def speaking(name: str, words: str) -> Obj:
    manifest = fw(name, role("worker", 2, 1, 2, fate=runs()))
    manifest["spec"]["taskRoles"][0]["task"]["pod"]["spec"]["containers"][0]["command"] = ["sh", "-c", words]
    return manifest


def test_a_job_from_submission_to_deletion(terminal: Terminal) -> None:
    service = {
        "apiVersion": "v1", "kind": "Service", "metadata": {"name": "pet"}, "spec": {"ports": [{"port": 80}]},
    }  # fmt: skip
    file = terminal.file(service, speaking("pet", "echo hello from $FC_TASK_INDEX; exec sleep 100000"))
    assert terminal("submit", file) == "Service pet stored.\nFramework pet stored.\n"
    assert "Framework pet already exists" in terminal("submit", file, code=1)
    assert terminal("wait", "pet", "--for", "running") == "Framework pet is running.\n"
    assert terminal("start", "pet") == "Framework pet needs no start: it is running.\n"
    assert terminal("get", "-o", "name") == "framework/pet\n"
    assert terminal("scale", "pet", "worker=3") == "Framework pet scaled to 3 x worker.\n"
    assert terminal("scale", "pet", "worker=3") == "Framework pet already has 3 x worker: nothing was changed.\n"
    stored = json.loads(terminal("get", "framework/pet", "-o", "json"))["spec"]["taskRoles"][0]
    assert (stored["taskNumber"], stored["frameworkAttemptCompletionPolicy"]["minSucceededTaskCount"]) == (3, 3)
    assert "It succeeds as soon as 3 tasks of worker have succeeded." in terminal("describe", "pet")
    said = ["worker-0 | hello from 0\n", "worker-1 | hello from 1\n"]
    with terminal.start("logs", "-f", "pet", "worker-0", "worker-1") as following:  # who runs may not have spoken yet
        assert following.stdout is not None
        assert sorted(following.stdout.readline() for _ in said) == said
        following.terminate()
    assert sorted(terminal("logs", "pet", "worker-0", "worker-1").splitlines(keepends=True)) == said
    assert terminal("stop", "pet") == "Framework pet stops. `shoal wait pet` waits until it has.\n"
    assert terminal("wait", "pet", code=1) == "Framework pet was stopped.\n"
    assert terminal("stop", "pet") == "Framework pet has ended already: stopped.\n"
    assert "Framework pet has ended and cannot be scaled." in terminal("scale", "pet", "worker=1", code=1)
    assert terminal("delete", "pet") == "Framework pet deleted.\n"
    assert terminal("wait", "pet", "--for", "deleted") == "There is no job pet in namespace default: it is gone.\n"
    assert "there is no job 'pet' in namespace default" in terminal("wait", "pet", code=1)
    assert "there is no job 'pet' in namespace default" in terminal("describe", "pet", code=1)


def test_a_job_that_was_only_created_is_started(terminal: Terminal) -> None:
    terminal("submit", terminal.file(fw("later", role("worker", fate=exits(0)), start="Create")))
    assert "waits for executionType Start" in terminal("describe", "later")
    assert terminal("wait", "later", "--timeout", "0.2", code=124) == "Framework later is not completed after 0.2 s.\n"
    assert terminal("start", "later") == "Framework later starts.\n"
    assert terminal("wait", "later") == "Framework later has succeeded.\n"
    assert "has ended; to run it again, `shoal delete later` and submit it again." in terminal("start", "later", code=1)


def test_a_rejected_job_is_reported_with_every_mistake(terminal: Terminal) -> None:
    file = terminal.file(fw("my-job", role("worker", -1)))
    told = terminal("submit", file, code=1)
    assert told.startswith(f"Error: {file}: ")
    assert ("metadata.name" in told, "spec.taskRoles[0].taskNumber" in told) == (True, True)


SICK = {"restartPolicy": "never", "containers": [{"name": "Main", "image": "a", "img": "b", "tty": "yes"}]}
SAME = {
    "Framework": fw("sick", {**role("worker", -1), "task": {"pod": {"spec": SICK}}, "tasknumber": 3}),
    "Job": vcjob("sick", {"replicas": "two", "template": {"spec": SICK}}, plugins={"magic": []}, minimum=3),
}


@pytest.mark.parametrize("language", SAME)
def test_validate_and_the_api_server_list_the_same_mistakes(terminal: Terminal, language: str) -> None:
    file = terminal.file(SAME[language])
    judged = terminal("validate", file, code=1)
    assert (judged.count("\n  spec."), judged.count("warning: ")) == (6, 0)
    assert terminal("submit", file, code=1) == f"Error: {judged}"


def test_a_dry_run_keeps_nothing(terminal: Terminal) -> None:
    file = terminal.file(fw("dry", role("worker")))
    assert terminal("submit", file, "--dry-run") == "Framework dry would be stored.\n"
    assert "there is no job 'dry'" in terminal("get", "dry", code=1)


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        pytest.param(("scale", "pet", "worker"), "should be ROLE=NUMBER, for example worker=2", id="no size"),
        pytest.param(("get", "--context", "moon"), "KUBECONFIG names /nowhere, which does not exist", id="no context"),
        pytest.param(("get", "--kubeconfig", "/nowhere"), "the kubeconfig /nowhere cannot be read", id="no file"),
    ],
)
def test_what_is_wrong_is_a_sentence(terminal: Terminal, words: tuple[str, ...], sentence: str) -> None:
    assert sentence in terminal(*words, code=2 if words[0] == "scale" else 1)


def completed(terminal: Terminal, words: str) -> list[str]:
    """What a shell is told when somebody presses the tabulator after these words."""
    asked = {"_SHOAL_COMPLETE": "bash_complete", "COMP_WORDS": words, "COMP_CWORD": str(words.count(" "))}
    terminal.env |= asked
    try:
        return terminal().split()
    finally:
        for name in asked:
            del terminal.env[name]


def test_names_of_jobs_roles_and_tasks_are_completed(terminal: Terminal) -> None:
    terminal("submit", terminal.file(fw("complete", role("worker", 2), role("ps", 1), start="Create")))
    assert completed(terminal, "shoal describe com") == ["plain,complete"]
    assert completed(terminal, "shoal scale complete ") == ["plain,worker=", "plain,ps="]
    assert completed(terminal, "shoal logs complete w") == ["plain,worker", "plain,worker-0", "plain,worker-1"]
    assert completed(terminal, "shoal logs nobody ") == []


def test_probable_mistakes_are_warned_of_when_the_job_is_stored(terminal: Terminal) -> None:
    odd = fw("warned", role("worker", 0))
    odd["spec"]["taskRoles"][0]["task"]["pod"]["spec"]["restartPolicy"] = "never"
    file = terminal.file(odd)
    assert terminal("submit", file, "--dry-run").splitlines() == [
        f"{file}: warning: spec.taskRoles: no role has tasks: it waits until `shoal scale` gives worker some",
        f'{file}: warning: spec.taskRoles[0].task.pod.spec.restartPolicy: Unsupported value: "never": supported '
        'values: "Always", "OnFailure", "Never"; the role\'s pods will be refused',
        "Framework warned would be stored.",
    ]


def test_a_field_that_does_not_exist_is_refused(terminal: Terminal) -> None:
    file = terminal.file(fw("strict", {**role("worker", 1), "tasknumber": 3}))
    assert terminal("submit", file, code=1).splitlines() == [
        f"Error: {file}: Framework strict has 1 mistake:",
        "  spec.taskRoles[0].tasknumber: there is no such field; did you mean taskNumber?",
    ]
    assert "there is no job 'strict'" in terminal("get", "strict", code=1)


def test_undecodable_fields_are_reported_with_their_path(terminal: Terminal) -> None:
    file = terminal.file({**fw("odd", role("worker")), "metadata": {"name": "odd", "annotations": {"note": 3}}})
    assert terminal("submit", file, code=1).splitlines() == [
        f"Error: {file}: Framework odd has 1 mistake:",
        "  metadata.annotations.note: Invalid value: 3: must be text; put it in quotes",
    ]


def test_without_a_cluster_the_error_names_the_remedy(tmp_path: Path) -> None:
    told = Terminal(tmp_path, tmp_path / "none")("get", code=1)
    assert f"no cluster runs in {tmp_path}/none. Start it with `shoal up`, or leave out" in told
