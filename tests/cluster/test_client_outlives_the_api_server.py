"""A real API server is killed and comes back: watches go on, and nothing that happened meanwhile is missed."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from kit.cluster_objects import config_map
from kit.control_plane import Keeper, kept
from kit.raw_api import Api
from kit.run_folder import needs_a_control_plane
from shoal.cluster.informer import Change, Informer
from shoal.cluster.kubeconfig import from_kubeconfig
from shoal.cluster.kubernetes import Unreachable, open_client
from shoal.kube.kinds import CONFIG_MAP
from shoal.kube.objects import Key

CM = CONFIG_MAP
MAPS = "/api/v1/namespaces/default/configmaps"
OURS = {"app": "ours"}


@pytest.mark.kubernetes
async def test_a_copy_stays_true_while_the_api_server_is_restarted(tmp_path: Path) -> None:
    changes_queue: asyncio.Queue[Change] = asyncio.Queue()
    needs_a_control_plane()
    with kept(Keeper, tmp_path) as keeper:
        async with open_client(from_kubeconfig(Path(keeper.plane.kubeconfig))) as cluster:
            for name in ("stays", "goes"):
                await cluster.create(CM, config_map(name, labels=OURS), "default")
            copy = Informer(cluster, CM, "default", labels="app=ours", on_change=changes_queue.put_nowait)
            running = asyncio.create_task(copy.run())
            await copy.synced.wait()
            keeper.kill_apiserver()
            with pytest.raises(Unreachable, match="cannot be reached: Connection refused"):
                await cluster.create(CM, config_map("never"), "default")
            keeper.begin_apiserver()
            keeper.await_apiserver()
            other = Api(keeper.plane.url, keeper.plane.token, keeper.plane.ca_file)
            other.delete(f"{MAPS}/goes").ok()
            other.post(MAPS, {"apiVersion": "v1", "kind": "ConfigMap", **config_map("comes", labels=OURS)}).ok()
            changes = [await changes_queue.get() for _ in range(4)]
            await cluster.patch(CM, "stays", "default", patch={"data": {"mode": "slow"}})
            changes.append(await changes_queue.get())
            running.cancel()
            listed = (await cluster.list(CM, "default", labels="app=ours")).items
    assert {key: obj["data"]["mode"] for key, obj in copy.objects.items()} == {
        Key("default", "stays"): "slow",
        Key("default", "comes"): "fast",
    }
    assert sorted(copy.objects) == [Key("default", item["metadata"]["name"]) for item in listed]
    seen = [(change.key.name, change.old is not None, change.new is not None) for change in changes]
    assert sorted(seen[:2]) == [("goes", False, True), ("stays", False, True)]
    assert sorted(seen[2:4]) == [("comes", False, True), ("goes", True, False)]
    assert seen[4] == ("stays", True, True)
