"""Scenarios on a real API server with the operator as a process that is killed (kill -9) at a chosen write.

The man in the middle (`kit.fault_proxy`) sees the write come and kills; the next operator starts at once, on what the
last one left. Pods live on hollow nodes, at a pace of their own. Every run has a namespace, a way to the server and
hollow nodes for itself, so several can be played at a time. As with any real server, what happened is put in its order
at the end and held to the promises then; and the last picture must be that of a run without any disturbance.
"""

from __future__ import annotations

import asyncio
import json
import secrets
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import aiohttp

from kit.control_plane import ControlPlane
from kit.external_operator_world import OutsideWorld
from kit.fault_matrix import Case, differences
from kit.fault_proxy import Between, Death, When, between, kubeconfig_by, to_server
from kit.framework_notation import fw, role
from kit.operator_forkserver import Child, Nursery, nursery
from kit.operator_namespace import Ground
from shoal.cluster.kubeconfig import from_kubeconfig
from shoal.cluster.kubernetes import KubernetesCluster, open_client
from shoal.kube.objects import Obj

PACE = 0.02  # real seconds in a second of a scenario
AT_ONCE = 5  # runs; most of the time they wait for each other's timers
LAST = "zzlast"  # a Framework that the next operator has to look at, after all others
LAST_RESORT_SECONDS = 240  # for one run, on a machine that is very busy


@dataclass(frozen=True)
class Stage:
    """What runs share."""

    plane: ControlPlane
    cluster: KubernetesCluster  # the person's
    server: aiohttp.ClientSession
    nursery: Nursery
    folder: Path
    token: str  # of the account that `shoal install` made for operators


@asynccontextmanager
async def stage(plane: ControlPlane, folder: Path) -> AsyncIterator[Stage]:
    async with (
        open_client(from_kubeconfig(Path(plane.kubeconfig))) as cluster,
        to_server(plane) as server,
        nursery() as children,
    ):
        installed = Ground(plane, cluster, folder, secrets.token_hex(4))
        await installed.install(watchNamespace="", dialects=("framework",))
        account = json.loads(installed.kubeconfig().read_text())
        yield Stage(plane, cluster, server, children, folder, account["users"][0]["user"]["token"])


class MortalWorld(OutsideWorld):
    """A world whose operator dies when `death` says so, and another takes its place."""

    def __init__(self, ground: Stage, death: Death | None) -> None:
        super().__init__(ground.plane, ground.cluster, pace=PACE)
        self._ground = ground
        self._death = death
        self._log = ground.folder / f"{self.namespace}.log"
        self._child: Child | None = None
        self.way: Between

    async def __aenter__(self) -> MortalWorld:
        await super().__aenter__()
        self.way = await self._stack.enter_async_context(between(self._ground.server, self._death))
        self.way.on_death = self._strike
        self.start_operator()
        return self

    # The operator's lives

    def start_operator(self, **config: Any) -> None:
        assert not config, "the settings of this operator are those of its command"
        self._operator = asyncio.create_task(self._lives())

    async def kill_operator(self) -> None:
        await super().kill_operator()
        if self._child is not None:
            self._child.kill()
            await self._child.ended.wait()

    def _strike(self) -> None:
        assert self._child is not None
        self._child.kill()

    async def _lives(self) -> None:
        """One that dies by our hand has a successor; one that ends by itself is a fault."""
        words = self._words()
        await self._live(words)
        assert self.way.has_struck, f"the operator ended by itself:\n{self.log}"
        self.way.death = None
        await self._live(words)
        raise AssertionError(f"the second operator ended by itself:\n{self.log}")

    async def _live(self, words: list[str]) -> None:
        self._child = await self._ground.nursery.start(words, self._log)
        await self._child.ended.wait()

    def _words(self) -> list[str]:
        kubeconfig = self._ground.folder / f"{self.namespace}.kubeconfig"
        kubeconfig.write_text(json.dumps(kubeconfig_by(self.way.url, self._ground.token)))
        return [
            "operator", "--kubeconfig", str(kubeconfig), "--namespace", self.namespace, "--dialects", "framework",
            "--no-leader-election", "--metrics-address", "off", "--health-address", "off", "--log-format", "json",
            "--history", "off",
        ]  # fmt: skip

    @property
    def log(self) -> str:
        return self._log.read_text() if self._log.exists() else ""


@dataclass(frozen=True)
class Siege:
    """One scenario, with a kill at each of its writes."""

    case: Case
    ground: Stage

    async def run(self) -> int:
        """How many runs there were in which the operator was killed."""
        picture, _ = await self.case.play()  # on the virtual clock, where one knows when all is at rest
        writes, _ = await self._play(picture, None)
        assert writes, "no write of the operator was seen: nobody would be killed"
        deaths = [Death(number, when) for number in range(1, writes + 1) for when in When]
        at_once = asyncio.Semaphore(AT_ONCE)

        async def one(death: Death) -> bool:
            async with at_once:
                return (await self._play(picture, death))[1]

        async with asyncio.TaskGroup() as group:
            runs = [group.create_task(one(death)) for death in deaths]
        later = [await self._beyond(picture, writes, when) for when in When]
        struck = sum(run.result() for run in runs)
        assert struck >= writes, f"only {struck} of {len(deaths)} operators were killed as planned"
        return struck + sum(later)

    async def _beyond(self, picture: Obj, writes: int, when: When) -> int:
        """Some runs take a write more than others: until one was over before its operator was to die."""
        number = writes + 1
        while (await self._play(picture, Death(number, when)))[1]:
            number += 1
        return number - writes - 1

    async def _play(self, picture: Obj, death: Death | None) -> tuple[int, bool]:
        """One run: the writes there were, and whether the operator was killed."""
        world = MortalWorld(self.ground, death)
        try:
            async with asyncio.timeout(LAST_RESORT_SECONDS), world:
                await self._until_alike(world, picture)
                return world.way.writes, world.way.has_struck
        except Exception as failure:
            shown = "; ".join(differences(picture, self._shown(world)))
            told = f"{self.case.script.__name__}, {death or 'undisturbed'}: {failure!r}\nnot as it should end: {shown}"
            raise AssertionError(f"{told}\n{world.log[-6000:]}") from failure

    async def _until_alike(self, world: MortalWorld, picture: Obj) -> None:
        await self.case.script(world)
        await world.until(lambda: self._shown(world) == picture)
        if world.way.has_struck:
            await world.submit(fw(LAST, role(number=0), start="Create"))
            await world.until(lambda: world.state(LAST) != "")  # the next operator is at work
            assert self._shown(world) == picture, "what was at its end has changed"

    def _shown(self, world: MortalWorld) -> Obj:
        shown = world.picture(self.case.varies)
        shown["frameworks"].pop(LAST, None)
        return shown
