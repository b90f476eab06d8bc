"""`shoal run` of a job that could only wait ends at once with the reason; `validate` and `submit` warn of it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner

from kit.cli_runner import at_a_cluster
from kit.framework_notation import fw, role
from kit.pod_behavior import runs
from kit.shoal_command import shoal
from kit.volcano_jobs import task, vcjob
from shoal.cli.main import shoal as command
from shoal.cli.offline_validation import without_command
from shoal.kube.objects import Obj
from shoal.node.images import Images

REST = (
    "The cluster of `shoal run` exists only while its jobs run: change the file, or submit it to a cluster of "
    "`shoal up`."
)


def framework(*roles: Obj, start: str = "Start", **container: Any) -> Obj:
    job = fw("x", *roles, start=start)
    for each in job["spec"]["taskRoles"]:
        each["task"]["pod"]["spec"]["containers"] = [{"name": "main", "image": "acme/trainer:1", **container}]
    return job


def closed_queue() -> list[Obj]:
    queues = "scheduling.volcano.sh/v1beta1"
    queue = {"apiVersion": queues, "kind": "Queue", "metadata": {"name": "shut"}, "spec": {"weight": 1}}
    close = {
        "apiVersion": "bus.volcano.sh/v1alpha1", "kind": "Command", "metadata": {"name": "close"},
        "action": "CloseQueue", "target": {"apiVersion": queues, "kind": "Queue", "name": "shut"},
    }  # fmt: skip
    job = vcjob("x", task(fate=runs()), queue="shut")
    # Its pods would otherwise start if the Job came to the queue before the Command was carried out.
    job["spec"]["tasks"][0]["template"]["spec"]["schedulingGates"] = [{"name": "example.com/gate"}]
    return [queue, close, job]


def batch_job(**spec: Any) -> Obj:
    container = {"name": "main", "image": "acme/trainer:1", **RUNS}
    template = {"spec": {"restartPolicy": "Never", "containers": [container]}}
    return {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "x"}, "spec": {"template": template, **spec}}


RUNS = {"command": ["sleep", "1000000"]}
WAITING: dict[str, tuple[list[Obj], str]] = {
    "no roles": ([framework()], f"is stopped: it has no roles and so no tasks. {REST}"),
    "no tasks": ([framework(role("worker", 0), **RUNS)], f"is stopped: it has no tasks. {REST}"),
    "not started": (
        [framework(role("worker", 1), start="Create", **RUNS)],
        f"is stopped: The Framework waits for executionType Start. {REST}",
    ),
    "no command for the image": (
        [framework(role("worker", 1))],
        'is stopped: container main sets no command, and none is configured for image "acme/trainer:1".',
    ),
    "a Volcano Job without tasks": (
        [vcjob("x", task(replicas=0), minAvailable=0)],
        f"Job x can never start here and is stopped: it has no tasks. {REST}",
    ),
    "no pod at a time": ([batch_job(parallelism=0)], f"is stopped: it has no tasks. {REST}"),
    "suspended": ([batch_job(suspend=True)], f"is stopped: it is suspended. {REST}"),
    "another controller": (
        [batch_job(managedBy="example.com/other")],
        f"is stopped: spec.managedBy assigns it to the controller example.com/other. {REST}",
    ),
    "a closed queue": (closed_queue(), "queue shut is closed"),
}


# What `submit` does not warn of: a start that `shoal start` brings, a command that the image has on Kubernetes, and the
# state of a queue.
WITHOUT_WARNING = ("not started", "no command for the image", "a closed queue")


@pytest.mark.processes
@pytest.mark.parametrize(("objects", "reason"), WAITING.values(), ids=list(WAITING))
async def test_a_job_that_can_only_wait_ends_with_the_reason(tmp_path: Path, objects: list[Obj], reason: str) -> None:
    file = tmp_path / "job.yaml"
    file.write_text(yaml.safe_dump_all(objects))
    ended = await shoal("run", "--plain", str(file))
    assert (ended.code, reason in ended.err) == (1, True), ended.err


def settings_from(**of_reference: Any) -> Obj:
    return {"envFrom": [{"configMapRef": {"name": "settings", **of_reference}}]}


def mounting(job: Obj, **volume: Any) -> Obj:
    """The job with a volume that its first container mounts."""
    pod = job["spec"].get("template") or job["spec"]["tasks"][0]["template"]
    pod["spec"]["volumes"] = [{"name": "v", **volume}]
    pod["spec"]["containers"][0]["volumeMounts"] = [{"name": "v", "mountPath": "/v"}]
    return job


def claiming(job: Obj) -> Obj:
    return mounting(job, persistentVolumeClaim={"claimName": "data"})


def gang_with_a_claim() -> Obj:
    """The other task waits for the one that lacks its claim."""
    job = vcjob("x", task("first", fate=runs()), task("second", fate=runs()), minAvailable=2)
    return claiming(job)


def job_with_a_claim_of_others() -> Obj:
    return vcjob("x", task(fate=runs()), volumes=[{"mountPath": "/v", "volumeClaimName": "data"}])


ABSENT: dict[str, tuple[Obj, str]] = {
    "a ConfigMap": (framework(role("worker", 2), **RUNS, **settings_from()), "ConfigMap settings"),
    "a Secret in a volume": (mounting(batch_job(), secret={"secretName": "keys"}), "Secret keys"),
    "a claim": (claiming(batch_job()), "PersistentVolumeClaim data"),
    "a claim of one task of a gang": (gang_with_a_claim(), "PersistentVolumeClaim data"),
    "a claim of a whole Volcano Job": (job_with_a_claim_of_others(), "PersistentVolumeClaim data"),
}


@pytest.mark.processes
@pytest.mark.parametrize(("job", "what"), ABSENT.values(), ids=list(ABSENT))
async def test_a_job_that_waits_for_an_object_in_no_file_ends(tmp_path: Path, job: Obj, what: str) -> None:
    file = tmp_path / "job.yaml"
    file.write_text(yaml.safe_dump_all([job]))
    ended = await shoal("run", "--plain", str(file))
    reason = f" x can never start here and is stopped: {what} does not exist in namespace default; add it to the files"
    assert (ended.code, reason in ended.err) == (1, True), ended.err


@pytest.mark.processes
async def test_objects_of_the_files_may_follow_the_job(tmp_path: Path) -> None:
    settings = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "settings"}, "data": {"A": "1"}}
    job = framework(role("worker", 1), command=["sh", "-c", "test $A = 1"], **settings_from())
    file = tmp_path / "job.yaml"
    file.write_text(yaml.safe_dump_all([job, settings]))
    ended = await shoal("run", "--plain", str(file))
    assert ended.code == 0, ended.err


@pytest.mark.processes
async def test_an_optional_reference_holds_nothing_up(tmp_path: Path) -> None:
    job = framework(role("worker", 1), command=["true"], **settings_from(optional=True))
    file = tmp_path / "job.yaml"
    file.write_text(yaml.safe_dump(job))
    ended = await shoal("run", "--plain", str(file))
    assert ended.code == 0, ended.err


@pytest.mark.processes
async def test_a_job_goes_on_while_a_task_of_it_runs(tmp_path: Path) -> None:
    """The end of the first task is the end of the job."""
    job = framework(role("first", 1, ok=1), role("second", 1), command=["sleep", "5"])
    job["spec"]["taskRoles"][1]["task"]["pod"]["spec"]["containers"][0] |= settings_from()
    file = tmp_path / "job.yaml"
    file.write_text(yaml.safe_dump(job))
    ended = await shoal("run", "--plain", str(file))
    reason = "continues, but second-0 can never start here: ConfigMap settings does not exist"
    assert (ended.code, reason in ended.err) == (0, True), ended.err


@pytest.mark.processes
async def test_a_replica_set_without_pods_does_not_fail_the_job_beside_it(tmp_path: Path) -> None:
    template = {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "c", "image": "x", **RUNS}]}}
    idle = {
        "apiVersion": "apps/v1", "kind": "ReplicaSet", "metadata": {"name": "idle"},
        "spec": {"replicas": 0, "selector": {"matchLabels": {"a": "b"}}, "template": template},
    }  # fmt: skip
    file = tmp_path / "job.yaml"
    file.write_text(yaml.safe_dump_all([idle, framework(role("worker", 1), command=["true"])]))
    ended = await shoal("run", "--plain", str(file))
    assert ended.code == 0, ended.err


def validated(folder: Path, *objects: Obj, config: str = "") -> tuple[int, str]:
    (folder / "shoal.yaml").write_text(config)
    file = folder / "job.yaml"
    file.write_text(yaml.safe_dump_all(objects))
    result = CliRunner().invoke(command, ["validate", str(file)])
    return result.exit_code, result.output


@pytest.mark.parametrize("case", [case for case in WAITING if case != "a closed queue"])
def test_what_would_only_wait_is_not_in_order(tmp_path: Path, case: str) -> None:
    code, output = validated(tmp_path, *WAITING[case][0])
    assert (code, " x has 1 warning:" in output, "in order" in output) == (0, True, False), output


def test_a_name_that_the_server_makes_hides_no_warning(tmp_path: Path) -> None:
    job = {**batch_job(suspend=True), "metadata": {"generateName": "x-"}}
    assert "spec: it is suspended; `shoal run` ends at once" in validated(tmp_path, job)[1]


def test_a_batch_job_that_wants_no_success_is_warned_of(tmp_path: Path) -> None:
    _, output = validated(tmp_path, batch_job(completions=0))
    assert output.endswith("has 1 warning:\n  warning: spec: it requires 0 completions: it succeeds without a pod\n")


@pytest.mark.processes
def test_submit_warns_of_what_would_only_wait(tmp_path: Path) -> None:
    with at_a_cluster(tmp_path) as terminal:
        for number, case in enumerate(case for case in WAITING if case not in WITHOUT_WARNING):
            (job,) = WAITING[case][0]
            named = {**job, "metadata": {"name": f"x{number}"}}
            _, output = validated(tmp_path, named)
            warning = output.partition("  warning: ")[2]
            assert f"job.yaml: warning: {warning}" in terminal("submit", terminal.file(named)), case


def test_an_image_with_a_command_is_in_order(tmp_path: Path) -> None:
    _, output = validated(tmp_path, framework(role("worker", 1)), config='images: {"acme/*": {command: [python]}}')
    assert output.endswith("Framework x is valid.\n")


async def test_run_refuses_what_validate_calls_a_mistake_before_anything_starts(tmp_path: Path) -> None:
    job = framework({**role("worker", 1), "tasknumber": 2}, **RUNS)
    job["spec"]["taskRoles"][0]["task"]["pod"]["spec"]["restartPolicy"] = "never"
    service = {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "s"}, "spec": {"prots": []}}
    code, output = validated(tmp_path, job, service)
    ended = await shoal("run", str(tmp_path / "job.yaml"))
    assert (code, ended.code, ended.err) == (1, 1, f"Error: {output}")
    mistakes = [line.strip().partition(": ")[0] for line in output.splitlines() if line.startswith("  ")]
    assert sorted(mistakes) == [
        "spec.ports", "spec.prots", "spec.taskRoles[0].task.pod.spec.restartPolicy", "spec.taskRoles[0].tasknumber",
    ]  # fmt: skip


def test_a_list_of_that_name_in_another_object_is_no_list_of_containers() -> None:
    assert list(without_command({"spec": {"containers": ["x", None]}}, Images())) == []
