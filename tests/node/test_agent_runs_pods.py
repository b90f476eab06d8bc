"""The agent against the embedded cluster: what becomes of bound pods, told by their status."""

from __future__ import annotations

from itertools import count
from pathlib import Path
from typing import Any

import pytest

from kit.fake_sandbox import FakeSandboxes
from kit.pods import config, container, is_gone, phase_is, pod, running_agent, wait_for_pod
from shoal.cluster.client import DeleteOptions, LogOptions
from shoal.cluster.embedded import EmbeddedCluster
from shoal.kube.conditions import is_true
from shoal.kube.kinds import CONFIG_MAP, EVENT, POD
from shoal.kube.messages import MESSAGE, Message, decode
from shoal.kube.objects import Obj, annotations_of, name_of, uid_of
from shoal.node.checkpoint import PodFolder, PodRecord
from shoal.node.images import read_images
from shoal.node.pod_lifecycle import BackOff


async def run(cluster: EmbeddedCluster, obj: Obj) -> Obj:
    return await cluster.create(POD, obj, "default")


async def until(cluster: EmbeddedCluster, name: str, *phases: str) -> Obj:
    found = await wait_for_pod(cluster, name, phase_is(*phases))
    assert found is not None
    return found


def waiting(obj: Obj | None) -> Obj:
    told = ((obj or {}).get("status") or {}).get("containerStatuses") or [{}]
    return (told[0].get("state") or {}).get("waiting") or {}


async def test_init_containers_run_in_order_before_the_rest(cluster: EmbeddedCluster, tmp_path: Path) -> None:
    sandboxes = FakeSandboxes()
    made = pod("p", container("a", "exit", "0"), container("b", "exit", "0"), restartPolicy="Never",
               inits=(container("i", "exits", "1,0"), container("j", "exit", "0")))  # fmt: skip
    made["spec"]["restartPolicy"] = "OnFailure"
    async with running_agent(cluster, sandboxes, config(tmp_path)):
        await run(cluster, made)
        done = await until(cluster, "p", "Succeeded", "Failed")
    assert [process for _, process in sandboxes.started] == ["i.0", "i.1", "j.0", "a.0", "b.0"]
    assert done["status"]["phase"] == "Succeeded"
    assert [s["restartCount"] for s in done["status"]["initContainerStatuses"]] == [1, 0]


async def test_a_sidecar_outlives_the_work_and_no_longer(cluster: EmbeddedCluster, tmp_path: Path) -> None:
    sandboxes = FakeSandboxes()
    made = pod("p", container("a", "exit", "0"), inits=(container("s", restartPolicy="Always"),), restartPolicy="Never")
    async with running_agent(cluster, sandboxes, config(tmp_path)):
        await run(cluster, made)
        done = await until(cluster, "p", "Succeeded", "Failed")
    assert [process for _, process in sandboxes.started] == ["s.0", "a.0"]
    assert [(process, number) for _, process, number in sandboxes.signals] == [("s.0", 15)]
    assert done["status"]["phase"] == "Succeeded"


async def test_a_crash_loop_backs_off_and_reports_it(cluster: EmbeddedCluster, tmp_path: Path) -> None:
    patient = config(tmp_path, backoff=BackOff(initial_seconds=999))
    async with running_agent(cluster, FakeSandboxes(), patient):
        await run(cluster, pod("p", container("main", "exit", "1")))
        looping = await wait_for_pod(cluster, "p", lambda p: waiting(p).get("reason") == "CrashLoopBackOff")
    assert looping is not None
    status = looping["status"]
    assert (status["phase"], status["containerStatuses"][0]["restartCount"]) == ("Running", 1)
    assert status["containerStatuses"][0]["lastState"]["terminated"]["exitCode"] == 1
    assert "back-off 16m39s restarting failed container=main" in waiting(looping)["message"]


async def test_a_deaf_container_is_killed_when_patience_ends(cluster: EmbeddedCluster, tmp_path: Path) -> None:
    sandboxes = FakeSandboxes()
    async with running_agent(cluster, sandboxes, config(tmp_path)):
        await run(cluster, pod("p", container("main", "deaf"), terminationGracePeriodSeconds=0))
        await until(cluster, "p", "Running")
        await cluster.patch(POD, "p", "default", patch={"metadata": {"finalizers": ["example.com/wait"]}})
        await cluster.delete(POD, "p", "default")
        lingering = await until(cluster, "p", "Failed")
        await cluster.patch(POD, "p", "default", patch={"metadata": {"finalizers": None}})
        await wait_for_pod(cluster, "p", is_gone)
    assert [number for _, _, number in sandboxes.signals] == [15, 9]
    assert lingering["status"]["containerStatuses"][0]["state"]["terminated"]["exitCode"] == 137
    assert not list((tmp_path / "nodes/n1/pods").iterdir())


async def test_a_pod_deleted_while_it_waits_for_a_reference_goes(cluster: EmbeddedCluster, tmp_path: Path) -> None:
    source = [{"configMapRef": {"name": "late"}}]
    sandboxes = FakeSandboxes()
    async with running_agent(cluster, sandboxes, config(tmp_path)):
        await run(cluster, pod("p", container("main", envFrom=source)))
        held = await wait_for_pod(cluster, "p", lambda p: bool(waiting(p).get("message")))
        await cluster.delete(POD, "p", "default")
        await wait_for_pod(cluster, "p", is_gone)
    assert waiting(held) == {"reason": "CreateContainerConfigError", "message": 'configmap "late" not found'}
    assert sandboxes.started == []


async def test_a_container_that_waits_for_a_config_map_starts_when_it_appears(
    cluster: EmbeddedCluster, tmp_path: Path
) -> None:
    sandboxes = FakeSandboxes()
    async with running_agent(cluster, sandboxes, config(tmp_path)):
        created = await run(cluster, pod("p", container("main", envFrom=[{"configMapRef": {"name": "late"}}])))
        await wait_for_pod(cluster, "p", lambda p: bool(waiting(p).get("message")))
        await cluster.create(CONFIG_MAP, {"metadata": {"name": "late"}, "data": {"A": "1"}}, "default")
        await until(cluster, "p", "Running")
    assert sandboxes.specs[(uid_of(created), "main.0")].env["A"] == "1"


async def test_a_container_without_a_command_waits_with_a_remedy(cluster: EmbeddedCluster, tmp_path: Path) -> None:
    async with running_agent(cluster, FakeSandboxes(), config(tmp_path)):
        await run(cluster, pod("p", {"name": "main", "image": "acme/t:1"}, restartPolicy="Never"))
        held = await wait_for_pod(cluster, "p", lambda p: bool(waiting(p).get("message")))
    assert held is not None
    assert (held["status"]["phase"], waiting(held)["reason"]) == ("Pending", "ImageNotConfigured")
    assert 'add an entry "acme/t:1" with `command:` under `images:` in shoal.yaml' in waiting(held)["message"]


async def test_a_container_whose_python_is_missing_starts_once_it_is_created(
    cluster: EmbeddedCluster, tmp_path: Path
) -> None:
    sandboxes, home = FakeSandboxes(), tmp_path / "venvs" / "trainer"
    images = read_images({"acme/*": {"python": str(home)}}, config_file="shoal.yaml", base=tmp_path)
    async with running_agent(cluster, sandboxes, config(tmp_path, images=images)):
        created = await run(cluster, pod("p", container("main", image="acme/t:1", command=["python", "train.py"])))
        held = await wait_for_pod(cluster, "p", lambda p: bool(waiting(p).get("message")))
        (home / "bin").mkdir(parents=True)
        await until(cluster, "p", "Running")
    assert held is not None
    assert waiting(held) == {
        "reason": "ImageNotConfigured",
        "message": f'image "acme/t:1" is mapped to the Python environment {home}, which does not exist: it has '
        f"no folder bin. Create it, for example with `python3 -m venv {home}`, and the container starts; "
        "or correct `python:` under `images:` in shoal.yaml and start the cluster again",
    }
    assert sandboxes.specs[(uid_of(created), "main.0")].env["VIRTUAL_ENV"] == str(home)


async def test_a_deadline_ends_the_pod(cluster: EmbeddedCluster, tmp_path: Path) -> None:
    now = [1000.0]
    async with running_agent(cluster, FakeSandboxes(), config(tmp_path, clock=lambda: now[0])):
        await run(cluster, pod("p", activeDeadlineSeconds=60))
        await until(cluster, "p", "Running")
        now[0] += 60
        await cluster.patch(POD, "p", "default", patch={"metadata": {"labels": {"any": "event"}}})
        late = await until(cluster, "p", "Failed")
    assert late["status"]["reason"] == "DeadlineExceeded"
    assert late["status"]["containerStatuses"][0]["state"]["terminated"]["exitCode"] == 143


async def test_a_phase_written_by_another_client_ends_the_pod(cluster: EmbeddedCluster, tmp_path: Path) -> None:
    sandboxes = FakeSandboxes()
    verdict = {"phase": "Failed", "reason": "Evicted", "message": "The node was low on resource: memory."}
    async with running_agent(cluster, sandboxes, config(tmp_path)):
        await run(cluster, pod("p"))
        await until(cluster, "p", "Running")
        await cluster.patch(POD, "p", "default", patch={"status": verdict}, subresource="status")
        stopped = await wait_for_pod(
            cluster, "p", lambda p: p is not None and "terminated" in p["status"]["containerStatuses"][0]["state"]
        )
    assert stopped is not None
    assert {key: stopped["status"][key] for key in verdict} == verdict
    assert sandboxes.sandboxes == {}


async def test_a_pod_the_node_has_no_room_for_is_refused(cluster: EmbeddedCluster, tmp_path: Path) -> None:
    sandboxes = FakeSandboxes()
    async with running_agent(cluster, sandboxes, config(tmp_path)):
        await run(cluster, pod("p", container("main", resources={"requests": {"cpu": "65"}})))
        refused = await until(cluster, "p", "Failed")
    assert refused["status"]["reason"] == "OutOfcpu"
    assert sandboxes.started == []


def with_gpus(name: str, count: int, *command: str) -> Obj:
    limits = {"limits": {"nvidia.com/gpu": str(count)}}
    return pod(name, container("main", *command, resources=limits), restartPolicy="Never")


async def test_gpus_are_held_until_the_pod_is_over(cluster: EmbeddedCluster, tmp_path: Path) -> None:
    sandboxes = FakeSandboxes()
    seen: dict[str, str] = {}
    async with running_agent(cluster, sandboxes, config(tmp_path, capacity={"nvidia.com/gpu": "4"})):
        for made, phase in (
            (with_gpus("first", 1), "Running"),
            (with_gpus("second", 2, "exit", "0"), "Succeeded"),
            (with_gpus("third", 3), "Running"),
            (pod("none"), "Running"),
        ):
            created = await run(cluster, made)
            await until(cluster, name_of(made), phase)
            seen[name_of(made)] = sandboxes.specs[(uid_of(created), "main.0")].env["CUDA_VISIBLE_DEVICES"]
    assert seen == {"first": "0", "second": "1,2", "third": "1,2,3", "none": ""}


LOST: dict[str, tuple[str, str, list[str]]] = {
    "Always": ("Running", "Running", ["i.0", "main.0", "i.1", "main.1"]),
    "Never": ("Running", "Failed", ["i.0", "main.0"]),
}


@pytest.mark.parametrize("away", [False, True], ids=["while the agent looks on", "while the agent is away"])
@pytest.mark.parametrize("policy", LOST, ids=str)
async def test_a_lost_shim_is_an_unknown_container_status(
    policy: str, away: bool, cluster: EmbeddedCluster, tmp_path: Path
) -> None:
    before, after, started = LOST[policy]
    sandboxes = FakeSandboxes()

    def is_done(obj: Obj | None) -> bool:
        (told,) = (obj or {})["status"]["containerStatuses"]
        ended: Any = told["lastState"].get("terminated") or told["state"].get("terminated") or {}
        return phase_is(after)(obj) and ended.get("reason") == "ContainerStatusUnknown"

    async with running_agent(cluster, sandboxes, config(tmp_path)):
        await run(cluster, pod("p", inits=(container("i", "exit", "0"),), restartPolicy=policy))
        await until(cluster, "p", before)
        (sandbox,) = sandboxes.sandboxes.values()
        if not away:
            sandbox.lose()
            found = await wait_for_pod(cluster, "p", is_done)
    if away:
        sandbox.lose()
        async with running_agent(cluster, sandboxes, config(tmp_path)):
            found = await wait_for_pod(cluster, "p", is_done)
    assert found is not None
    assert [process for _, process in sandboxes.started] == started


async def test_events_report_each_step(cluster: EmbeddedCluster, tmp_path: Path) -> None:
    async with running_agent(cluster, FakeSandboxes(), config(tmp_path)):
        await run(cluster, pod("p"))
        await until(cluster, "p", "Running")
        await cluster.delete(POD, "p", "default")
        seen: list[tuple[str, str, Message | None]] = []
        async for event in cluster.watch(EVENT, "default", initial_events=True):
            if event.type == "ADDED":
                found = event.object
                seen.append((found["reason"], found["message"], decode(annotations_of(found)[MESSAGE])))
            if len(seen) == 2:
                break
    assert seen == [
        ("Started", "Started container main", Message("Started", {"container": "main"})),
        ("Killing", "Stopping container main", Message("Killing", {"container": "main"})),
    ]


async def test_a_pod_that_waits_for_a_folder_starts_once_it_is_created(
    cluster: EmbeddedCluster, tmp_path: Path
) -> None:
    folder = tmp_path / "deep" / "er"
    volume = {"name": "v", "hostPath": {"path": str(folder), "type": "Directory"}}
    async with running_agent(cluster, FakeSandboxes(), config(tmp_path / "data")):
        await run(cluster, pod("p", volumes=[volume]))
        held = await wait_for_pod(cluster, "p", lambda p: bool(waiting(p).get("message")))
        folder.mkdir(parents=True)
        await until(cluster, "p", "Running")
    assert waiting(held)["message"] == f"hostPath type check failed: {folder} is not a directory"


async def test_an_invalid_path_is_reported_in_the_status(cluster: EmbeddedCluster, tmp_path: Path) -> None:
    volume = {"name": "v", "hostPath": {"path": "/tmp/a\0b"}}
    async with running_agent(cluster, FakeSandboxes(), config(tmp_path)):
        await run(cluster, pod("p", volumes=[volume]))
        held = await wait_for_pod(cluster, "p", lambda p: bool(waiting(p).get("message")))
    said = "a volume of the pod has a path that no file system accepts: embedded null byte"
    assert waiting(held) == {"reason": "ContainerCreating", "message": said}


HOOKS = {"works": (0, ["main.0"]), "fails": (1, ["main.0", "main.1"])}


@pytest.mark.parametrize("case", HOOKS, ids=str)
async def test_a_container_whose_start_hook_fails_is_started_again(
    case: str, cluster: EmbeddedCluster, tmp_path: Path
) -> None:
    code, started = HOOKS[case]
    sandboxes = FakeSandboxes()
    sandboxes.exec_codes[("hook",)] = code
    hooked = container("main", lifecycle={"postStart": {"exec": {"command": ["hook"]}}})
    async with running_agent(cluster, sandboxes, config(tmp_path)):
        await run(cluster, pod("p", hooked))
        await wait_for_pod(cluster, "p", lambda p: len(sandboxes.started) >= len(started) and phase_is("Running")(p))
        sandboxes.exec_codes.clear()
        await wait_for_pod(cluster, "p", lambda p: is_true(p or {}, "Ready"))
    assert [process for _, process in sandboxes.started][: len(started)] == started


# Which write of the record finds no room: the sandbox and the start are meant (1, 2) before they happen.
FULL_DISK = {"when it starts": 3, "when it ends": 4}


@pytest.mark.parametrize("case", FULL_DISK, ids=str)
async def test_a_full_disk_does_not_hide_the_end_of_a_container(
    case: str, cluster: EmbeddedCluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sandboxes, save, writes = FakeSandboxes(), PodFolder.save, count()

    def save_unless_full(folder: PodFolder, record: PodRecord) -> None:
        if record.containers and next(writes) + 1 == FULL_DISK[case]:
            raise OSError(28, "No space left on device")
        save(folder, record)

    monkeypatch.setattr(PodFolder, "save", save_unless_full)
    async with running_agent(cluster, sandboxes, config(tmp_path)):
        await run(cluster, pod("p", restartPolicy="Never"))
        await until(cluster, "p", "Running")
        (sandbox,) = sandboxes.sandboxes.values()
        sandbox.end("main.0", 0)
        done = await until(cluster, "p", "Succeeded", "Failed")
    assert (done["status"]["phase"], [process for _, process in sandboxes.started]) == ("Succeeded", ["main.0"])


async def test_a_followed_log_ends_when_the_pod_is_removed(cluster: EmbeddedCluster, tmp_path: Path) -> None:
    async with running_agent(cluster, FakeSandboxes(), config(tmp_path)) as agent:
        await run(cluster, pod("p"))
        running = await until(cluster, "p", "Running")
        log = PodFolder(tmp_path / "nodes/n1/pods" / uid_of(running)).log_file("main", 0)
        log.write_text("2030-03-17T17:46:40.000000000Z stdout F hello\n")
        lines = agent.logs(running, LogOptions(container="main", follow=True))
        assert await anext(lines) == b"hello\n"
        await cluster.delete(POD, "p", "default", DeleteOptions(grace_seconds=0))
        assert [line async for line in lines] == []
