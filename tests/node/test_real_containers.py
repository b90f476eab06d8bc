"""Real processes: what they see (files, variables, devices), how they are probed, stopped and read."""

from __future__ import annotations

import asyncio
import base64
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from kit.pods import container, is_gone, phase_is, pod, running_agent, wait_for_pod
from shoal.cluster.client import ExecRequest, LogOptions, Streams
from shoal.cluster.embedded import EmbeddedCluster
from shoal.kube.conditions import is_true
from shoal.kube.kinds import CONFIG_MAP, EVENT, PERSISTENT_VOLUME, PERSISTENT_VOLUME_CLAIM, POD, SECRET
from shoal.kube.objects import Obj
from shoal.node.agent import Agent
from shoal.node.config import NodeConfig
from shoal.node.sandbox.sandbox_manager import SandboxManager

pytestmark = pytest.mark.processes

Config = Callable[..., NodeConfig]


def sh(script: str, **more: Any) -> Obj:
    return container("main", "sh", "-c", script, **more)


async def log_of(agent: Agent, obj: Obj | None, **options: Any) -> str:
    assert obj is not None
    return b"".join([chunk async for chunk in agent.logs(obj, LogOptions(**options))]).decode()


async def finished(cluster: EmbeddedCluster, name: str = "p") -> Obj:
    done = await wait_for_pod(cluster, name, phase_is("Succeeded", "Failed"))
    assert done is not None
    return done


def ended(obj: Obj) -> Obj:
    state: Obj = obj["status"]["containerStatuses"][0]["state"]["terminated"]
    return {key: state[key] for key in ("exitCode", "reason", "signal", "message") if key in state}


async def test_variables_and_arguments_come_from_everywhere(
    cluster: EmbeddedCluster, keepers: SandboxManager, real_config: Config
) -> None:
    await cluster.create(CONFIG_MAP, {"metadata": {"name": "cm"}, "data": {"A": "from map", "B": "b"}}, "default")
    await cluster.create(SECRET, {"metadata": {"name": "s"}, "stringData": {"key": "hush"}}, "default")
    env = [
        {"name": "SECRET", "valueFrom": {"secretKeyRef": {"name": "s", "key": "key"}}},
        {"name": "NAME", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}},
        {"name": "CPUS", "valueFrom": {"resourceFieldRef": {"resource": "limits.cpu"}}},
        {"name": "BOTH", "value": "$(NAME)-$(SECRET)-$(NOBODY)-$$(NAME)"},
    ]
    script = container(
        "main",
        "sh",
        "-c",
        'echo "$A|$BOTH|$CPUS|$HOSTNAME|$CUDA_VISIBLE_DEVICES|$1"',
        "x",
        "$(NAME)",
        env=env,
        envFrom=[{"configMapRef": {"name": "cm"}}],
        resources={"limits": {"cpu": "1500m", "nvidia.com/gpu": "2"}},
    )
    async with running_agent(cluster, keepers, real_config(capacity={"nvidia.com/gpu": "4"})) as agent:
        await cluster.create(POD, pod("p", script, restartPolicy="Never"), "default")
        said = await log_of(agent, await finished(cluster))
    assert said == "from map|p-hush-$(NOBODY)-$(NAME)|2|p|0,1|p\n"


async def test_volumes_of_every_kind_are_where_they_belong(
    cluster: EmbeddedCluster, keepers: SandboxManager, real_config: Config, tmp_path: Path
) -> None:
    (tmp_path / "file").write_text("from the machine")
    (tmp_path / "claim").mkdir()
    await cluster.create(CONFIG_MAP, {"metadata": {"name": "cm"}, "data": {"a": "A", "b": "B"}}, "default")
    secret = {"metadata": {"name": "s"}, "data": {"k": base64.b64encode(b"K").decode()}}
    await cluster.create(SECRET, secret, "default")
    await bound_claim(cluster, "claim", tmp_path / "claim")
    volumes = {
        "empty": {"emptyDir": {}},
        "memory": {"emptyDir": {"medium": "Memory", "sizeLimit": "8Mi"}},
        "host": {"hostPath": {"path": str(tmp_path), "type": "Directory"}},
        "map": {"configMap": {"name": "cm", "items": [{"key": "a", "path": "deep/a"}]}},
        "all": {"projected": {"sources": [{"configMap": {"name": "cm"}}, {"secret": {"name": "s"}}]}},
        "pod": {"downwardAPI": {"items": [{"path": "name", "fieldRef": {"fieldPath": "metadata.name"}}]}},
        "claim": {"persistentVolumeClaim": {"claimName": "claim"}},
    }
    script = """
    echo hi > /v/empty/x; cat /v/empty/x /v/host/file /v/map/deep/a /v/all/a /v/all/k /v/pod/name /v/one
    df --output=fstype,size /v/memory | tail -1; echo kept > /v/claim/kept
    echo no 2>/dev/null > /v/all/a || echo read-only
    """
    mounts = [{"name": name, "mountPath": f"/v/{name}"} for name in volumes]
    mounts.append({"name": "all", "mountPath": "/v/one", "subPath": "b"})
    spec = {"volumes": [{"name": name, **source} for name, source in volumes.items()], "restartPolicy": "Never"}
    async with running_agent(cluster, keepers, real_config()) as agent:
        await cluster.create(POD, pod("p", sh(script, volumeMounts=mounts), **spec), "default")
        said = await log_of(agent, await finished(cluster))
    lines = said.splitlines()
    assert lines[:2] == ["hi", "from the machineAAKpB" + lines[1].removeprefix("from the machineAAKpB")]
    assert "".join(lines[1:]).replace(" ", "").startswith("fromthemachineAAKpBtmpfs8192")
    assert lines[-1] == "read-only"
    assert (tmp_path / "claim" / "kept").read_text() == "kept\n"


async def bound_claim(cluster: EmbeddedCluster, name: str, path: Path) -> None:
    size = {"storage": "1Gi"}
    volume = {"accessModes": ["ReadWriteOnce"], "capacity": size, "hostPath": {"path": str(path)}}
    await cluster.create(PERSISTENT_VOLUME, {"metadata": {"name": "pv"}, "spec": volume})
    claim = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": size}, "volumeName": "pv"}
    await cluster.create(PERSISTENT_VOLUME_CLAIM, {"metadata": {"name": name}, "spec": claim}, "default")
    bound = {"status": {"phase": "Bound"}}
    await cluster.patch(PERSISTENT_VOLUME_CLAIM, name, "default", patch=bound, subresource="status")


async def test_a_missing_config_map_holds_the_pod_until_it_appears(
    cluster: EmbeddedCluster, keepers: SandboxManager, real_config: Config
) -> None:
    def waits(obj: Obj | None) -> bool:
        told = ((obj or {}).get("status") or {}).get("containerStatuses") or [{}]
        return "message" in (told[0].get("state") or {}).get("waiting", {})

    volume = {"name": "v", "configMap": {"name": "late"}}
    held = pod(
        "p", sh("cat /v/k", volumeMounts=[{"name": "v", "mountPath": "/v"}]), volumes=[volume], restartPolicy="Never"
    )
    async with running_agent(cluster, keepers, real_config()) as agent:
        await cluster.create(POD, held, "default")
        waiting = await wait_for_pod(cluster, "p", waits)
        assert waiting is not None
        assert waiting["status"]["containerStatuses"][0]["state"] == {
            "waiting": {"reason": "ContainerCreating", "message": 'configmap "late" not found'}
        }
        await cluster.create(CONFIG_MAP, {"metadata": {"name": "late"}, "data": {"k": "here now"}}, "default")
        assert await log_of(agent, await finished(cluster)) == "here now"


async def test_files_of_a_config_map_change_while_the_pod_runs(
    cluster: EmbeddedCluster, keepers: SandboxManager, real_config: Config
) -> None:
    await cluster.create(CONFIG_MAP, {"metadata": {"name": "cm"}, "data": {"k": "old"}}, "default")
    # Waits for the swap of the link by the kernel's word, in the shell's own terms: it reads until the text is new.
    script = "echo ready; read line < /tmp/go-$HOSTNAME; cat /v/k"
    mount = [{"name": "v", "mountPath": "/v"}, {"name": "t", "mountPath": "/tmp"}]
    volumes = [{"name": "v", "configMap": {"name": "cm"}}, {"name": "t", "emptyDir": {}}]
    made = pod(
        "p", sh(f"mkfifo /tmp/go-$HOSTNAME; {script}", volumeMounts=mount), volumes=volumes, restartPolicy="Never"
    )
    async with running_agent(cluster, keepers, real_config()) as agent:
        await cluster.create(POD, made, "default")
        running = await wait_for_pod(cluster, "p", phase_is("Running"))
        assert running is not None
        async for chunk in agent.logs(running, LogOptions(follow=True)):
            assert chunk == b"ready\n"
            break
        await cluster.patch(CONFIG_MAP, "cm", "default", patch={"data": {"k": "new"}})
        folder = real_config().data / "nodes/n1/pods" / running["metadata"]["uid"] / "volumes"
        await until_text(folder / "v", "k", "new")
        (folder / "t" / "go-p").write_text("go\n")
        assert await log_of(agent, await finished(cluster)) == "ready\nnew"


async def until_text(folder: Path, name: str, text: str) -> None:
    from shoal.node.inotify import FolderWatch

    with FolderWatch(folder) as watch:
        while (folder / name).read_text() != text:
            await watch.changed()


async def test_the_termination_of_a_container_is_reported_in_full(
    cluster: EmbeddedCluster, keepers: SandboxManager, real_config: Config
) -> None:
    cases = {
        "zero": (sh("true"), {"exitCode": 0, "reason": "Completed"}),
        "three": (
            sh("echo my last words > /dev/termination-log; exit 3"),
            {"exitCode": 3, "reason": "Error", "message": "my last words\n"},
        ),
        "signal": (sh("kill -s SEGV $$$$"), {"exitCode": 139, "reason": "Error", "signal": 11}),
        "log": (
            sh("echo it broke >&2; exit 1", terminationMessagePolicy="FallbackToLogsOnError"),
            {"exitCode": 1, "reason": "Error", "message": "it broke\n"},
        ),
        "silent": (
            sh("exit 1", terminationMessagePolicy="FallbackToLogsOnError"),
            {"exitCode": 1, "reason": "Error"},
        ),
    }
    async with running_agent(cluster, keepers, real_config()):
        for name, (what, _) in cases.items():
            await cluster.create(POD, pod(name, what, restartPolicy="Never"), "default")
        told = {name: ended(await finished(cluster, name)) for name in cases}
    assert told == {name: expected for name, (_, expected) in cases.items()}


async def test_a_missing_working_folder_is_created(
    cluster: EmbeddedCluster, keepers: SandboxManager, real_config: Config
) -> None:
    async with running_agent(cluster, keepers, real_config()) as agent:
        made = sh("pwd; echo x > y; cat y", workingDir="/workspace/deep")
        await cluster.create(POD, pod("p", made, restartPolicy="Never"), "default")
        assert await log_of(agent, await finished(cluster)) == "/workspace/deep\nx\n"


async def test_a_program_that_is_not_there_fails_with_its_name(
    cluster: EmbeddedCluster, keepers: SandboxManager, real_config: Config
) -> None:
    async with running_agent(cluster, keepers, real_config()) as agent:
        await cluster.create(POD, pod("p", container("main", "/no/such/program"), restartPolicy="Never"), "default")
        done = await finished(cluster)
        told = ended(done)
        assert await log_of(agent, done) == ""
    assert (told["exitCode"], told["reason"]) == (127, "StartError")
    assert "/no/such/program" in told["message"]


async def test_probes_gate_readiness_and_restart_what_is_stuck(
    cluster: EmbeddedCluster, keepers: SandboxManager, real_config: Config
) -> None:
    probed = sh(
        "test -e /v/again || touch /v/alive; touch /v/again; exec sleep 1000",
        volumeMounts=[{"name": "v", "mountPath": "/v"}],
        startupProbe={"exec": {"command": ["test", "-e", "/v/again"]}, "periodSeconds": 1},
        livenessProbe={
            "exec": {"command": ["sh", "-c", "rm -f /v/alive && ! test -e /v/dead"]},
            "periodSeconds": 1,
            "failureThreshold": 1,
        },
        readinessProbe={"exec": {"command": ["test", "-e", "/v/again"]}, "periodSeconds": 1},
    )
    made = pod("p", probed, volumes=[{"name": "v", "emptyDir": {}}], terminationGracePeriodSeconds=0)
    async with running_agent(cluster, keepers, real_config()):
        await cluster.create(POD, made, "default")
        ready = await wait_for_pod(cluster, "p", lambda p: p is not None and is_true(p, "Ready"))
        assert ready is not None
        folder = real_config().data / "nodes/n1/pods" / ready["metadata"]["uid"] / "volumes/v"
        (folder / "dead").touch()
        restarted = await wait_for_pod(
            cluster, "p", lambda p: p is not None and p["status"]["containerStatuses"][0]["restartCount"] > 0
        )
        (folder / "dead").unlink()
        assert restarted is not None
        last = restarted["status"]["containerStatuses"][0]["lastState"]["terminated"]
        await told(cluster, "Killing", "Container main failed liveness probe, will be restarted")
        await cluster.delete(POD, "p", "default")
        await wait_for_pod(cluster, "p", is_gone)
    assert last["exitCode"] in (137, 143)


async def told(cluster: EmbeddedCluster, reason: str, message: str) -> None:
    """Until there is that Event: the agent tells them behind its own back."""
    async for event in cluster.watch(EVENT, "default", initial_events=True):
        if (event.object.get("reason"), event.object.get("message")) == (reason, message):
            return
    raise AssertionError("the watch ended")


async def test_termination_runs_the_hook_then_asks_then_kills(
    cluster: EmbeddedCluster, keepers: SandboxManager, real_config: Config, tmp_path: Path
) -> None:
    host = [{"name": "h", "hostPath": {"path": str(tmp_path)}}]
    mount = [{"name": "h", "mountPath": "/h"}]
    polite = sh(
        "trap 'echo term >> /h/polite; exit 0' TERM; echo up; while :; do sleep 1000 & wait; done",
        volumeMounts=mount,
        lifecycle={"preStop": {"exec": {"command": ["sh", "-c", "echo hook >> /h/polite"]}}},
    )
    deaf = sh("trap '' TERM; echo up; while :; do sleep 1000 & wait; done")
    async with running_agent(cluster, keepers, real_config()) as agent:
        await cluster.create(POD, pod("polite", polite, volumes=host), "default")
        await cluster.create(POD, pod("deaf", deaf, terminationGracePeriodSeconds=1), "default")
        for name in ("polite", "deaf"):
            running = await wait_for_pod(cluster, name, phase_is("Running"))
            assert running is not None
            async for _ in agent.logs(running, LogOptions(follow=True)):
                break
            await cluster.delete(POD, name, "default")
        for name in ("polite", "deaf"):
            await wait_for_pod(cluster, name, is_gone)
    assert (tmp_path / "polite").read_text() == "hook\nterm\n"


async def test_logs_are_followed_to_the_end_and_the_run_before_is_kept(
    cluster: EmbeddedCluster, keepers: SandboxManager, real_config: Config
) -> None:
    script = "echo one; echo two; echo run $(wc -l < /v/n); exit $(test $(wc -l < /v/n) -ge 2; echo $?)"
    counting = sh(f"echo x >> /v/n; {script}", volumeMounts=[{"name": "v", "mountPath": "/v"}])
    made = pod("p", counting, volumes=[{"name": "v", "emptyDir": {}}], restartPolicy="OnFailure")
    async with running_agent(cluster, keepers, real_config()) as agent:
        await cluster.create(POD, made, "default")
        done = await finished(cluster)
        assert await log_of(agent, done, follow=True) == "one\ntwo\nrun 2\n"
        assert await log_of(agent, done, previous=True) == "one\ntwo\nrun 1\n"
        assert await log_of(agent, done, tail_lines=1) == "run 2\n"
        assert await log_of(agent, done, limit_bytes=5) == "one\nt"


async def test_a_command_runs_beside_the_container(
    cluster: EmbeddedCluster, keepers: SandboxManager, real_config: Config
) -> None:
    got: dict[str, bytes] = {"out": b"", "err": b""}

    async def out(data: bytes) -> None:
        got["out"] += data

    async def err(data: bytes) -> None:
        got["err"] += data

    async def typed() -> Any:
        yield b"hello "
        yield b"there"

    async with running_agent(cluster, keepers, real_config()) as agent:
        made = pod("p", sh("exec sleep 1000", env=[{"name": "V", "value": "v"}]), terminationGracePeriodSeconds=0)
        await cluster.create(POD, made, "default")
        running = await wait_for_pod(cluster, "p", phase_is("Running"))
        assert running is not None
        command = ExecRequest("", ("sh", "-c", "cat; echo $V $(hostname) >&2; exit 7"))
        code = await agent.execute(running, command, Streams(out, err, typed()))
        usage = await agent.usage()
        await cluster.delete(POD, "p", "default")
        await wait_for_pod(cluster, "p", is_gone)
    assert (code, got) == (7, {"out": b"hello there", "err": b"v p\n"})
    assert usage.pods[running["metadata"]["uid"]]["main"].memory_bytes > 0


async def test_the_agent_can_be_replaced_while_a_pod_runs(
    cluster: EmbeddedCluster, keepers: SandboxManager, real_config: Config
) -> None:
    made = pod(
        "p",
        sh("mkfifo /v/go; echo up; read x < /v/go; exit 4", volumeMounts=[{"name": "v", "mountPath": "/v"}]),
        volumes=[{"name": "v", "emptyDir": {}}],
        restartPolicy="Never",
    )
    async with running_agent(cluster, keepers, real_config()) as agent:
        await cluster.create(POD, made, "default")
        running = await wait_for_pod(cluster, "p", phase_is("Running"))
        assert running is not None
        async for _ in agent.logs(running, LogOptions(follow=True)):
            break
    async with running_agent(cluster, keepers, real_config()) as agent:
        fifo = real_config().data / "nodes/n1/pods" / running["metadata"]["uid"] / "volumes/v/go"
        await asyncio.to_thread(fifo.write_text, "on\n")
        done = await finished(cluster)
        assert await log_of(agent, done) == "up\n"
    assert ended(done) == {"exitCode": 4, "reason": "Error"}
    assert done["status"]["containerStatuses"][0]["restartCount"] == 0
