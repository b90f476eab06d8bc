"""`shoal operator` as a process of its own, as people start it, and accounts for it with chosen rights.

What it logs is read as it comes, so that a test waits for a word instead of a while.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

from kit.control_plane import ControlPlane
from kit.raw_api import Api
from shoal.kube.objects import Obj

Line = dict[str, Any]


class OperatorProcess:
    """One process. `said` is its log so far, a dictionary per line; lines that are no JSON are under `text`."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self.process = process
        self.said: list[Line] = []
        self._news = asyncio.Condition()
        self._reading = asyncio.create_task(self._read())

    async def _read(self) -> None:
        assert self.process.stderr is not None
        async for raw in self.process.stderr:
            try:
                line = json.loads(raw)
            except ValueError:
                line = {"text": raw.decode().rstrip("\n")}
            async with self._news:
                self.said.append(line)
                self._news.notify_all()
        async with self._news:
            self.said.append({"event": "end of log"})
            self._news.notify_all()

    async def says(self, event: str, **fields: Any) -> Line:
        """Wait for a line; fails with the whole log where the process ends without it."""
        wanted = {"event": event, **fields}
        return await self._comes(event, lambda line: line.items() >= wanted.items())

    async def remembers(self, trigger: str) -> Line:
        """Wait for a record of the history."""
        return await self._comes(trigger, lambda line: f": {trigger}: ObjectSnapshot: " in line.get("event", ""))

    async def _comes(self, name: str, is_wanted: Callable[[Line], bool]) -> Line:
        def found() -> Line | None:
            return next(filter(is_wanted, self.said), None)

        async with self._news:
            await self._news.wait_for(lambda: found() or self.has_ended)
            line = found()
        assert line is not None, f"the operator ended without {name!r}:\n{self.log}"
        return line

    @property
    def has_ended(self) -> bool:
        return any(line.get("event") == "end of log" for line in self.said)

    @property
    def log(self) -> str:
        return "\n".join(line.get("text") or json.dumps(line) for line in self.said)

    async def port(self, what: str) -> int:
        return int((await self.says("serving", what=what))["port"])

    def signal(self, number: int) -> None:
        with suppress(ProcessLookupError):  # it has ended, and our loop has not heard of it yet
            os.kill(self.process.pid, number)

    async def stop(self) -> int:
        """Ask it to stop, as Kubernetes does; its exit code."""
        if self.process.returncode is None:
            self.signal(signal.SIGCONT)  # it may be paused
            self.signal(signal.SIGTERM)
        code = await self.process.wait()
        await self._reading
        return code


@asynccontextmanager
async def operator(kubeconfig: Path | str, *options: str, program: str = "operator") -> AsyncIterator[OperatorProcess]:
    """Started with its pages on any port, and JSON as its log; or `shoal scheduler`, which is started alike."""
    words = ["--kubeconfig", str(kubeconfig), "--log-format", "json"]
    words += ["--metrics-address", "127.0.0.1:0", "--health-address", "127.0.0.1:0", *options]
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "shoal", program, *words,
        stdin=asyncio.subprocess.DEVNULL, stderr=asyncio.subprocess.PIPE,
        env={name: value for name, value in os.environ.items() if not name.startswith("SHOAL_")},
        limit=16 << 20,
    )  # fmt: skip
    running = OperatorProcess(process)
    try:
        yield running
    finally:
        await running.stop()


# --- accounts ------------------------------------------------------------------------------------------------------


def kubeconfig_of(plane: ControlPlane, folder: Path, account: str, namespace: str) -> Path:
    """A kubeconfig with a fresh token of a service account, in that account's namespace."""
    api = Api(plane.url, plane.token, plane.ca_file)
    request = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {"expirationSeconds": 3600}}
    token = api.post(f"/api/v1/namespaces/{namespace}/serviceaccounts/{account}/token", request).ok()["status"]["token"]
    cluster = {"server": plane.url, "certificate-authority": plane.ca_file}
    config = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "test", "cluster": cluster}],
        "users": [{"name": account, "user": {"token": token}}],
        "contexts": [{"name": "test", "context": {"cluster": "test", "user": account, "namespace": namespace}}],
        "current-context": "test",
    }
    path = folder / f"{namespace}-{account}.kubeconfig"
    path.write_text(json.dumps(config))
    path.chmod(0o600)
    return path


def user_of(account: str, namespace: str) -> str:
    return f"system:serviceaccount:{namespace}:{account}"


def rights_without(objects: Sequence[Obj], leave_out: Callable[[str, str, str], bool]) -> list[Obj]:
    """The objects with every (group, resource, verb) taken out of their rules that `leave_out` names."""
    made = json.loads(json.dumps(list(objects)))
    for obj in made:
        for rule in obj.get("rules") or ():
            group, resource = rule["apiGroups"][0], rule["resources"][0]
            rule["verbs"] = [verb for verb in rule["verbs"] if not leave_out(group, resource, verb)]
        if "rules" in obj:
            obj["rules"] = [rule for rule in obj["rules"] if rule["verbs"]]
    return made
