"""Two servers, one set of promises: every test of this folder runs against both.

`kubernetes` is a real kube-apiserver with the controllers that belong to the API's promises; it is the
truth. `embedded` is Shoal's own. A test gets a namespace of its own, so all of them may run at once.
"""

from __future__ import annotations

import asyncio
import contextlib
import secrets
import threading
from collections.abc import Iterator

import pytest

from kit import control_plane
from kit.api_objects import BOAT_SCHEMA, crd, serve, version
from kit.raw_api import Api, Space
from kit.run_folder import folder_of_the_run

SERVERS = ["embedded", pytest.param("kubernetes", marks=pytest.mark.kubernetes)]


@pytest.fixture(scope="session", params=SERVERS)
def server(request: pytest.FixtureRequest) -> Api:
    api: Api = request.getfixturevalue(f"{request.param}_api")
    return api


@pytest.fixture(scope="session")
def kubernetes_api(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Api]:
    with control_plane.shared(folder_of_the_run(tmp_path_factory, "control-plane")) as plane:
        yield Api(plane.url, plane.token, plane.ca_file)


@pytest.fixture(scope="session")
def embedded_api() -> Iterator[Api]:
    with contextlib.ExitStack() as stack:
        yield stack.enter_context(embedded())


@contextlib.contextmanager
def embedded() -> Iterator[Api]:
    """Shoal's server on a loop of its own thread, on a store that is thrown away."""
    from shoal.apiserver.app import build_application
    from shoal.apiserver.server import Server
    from shoal.cluster.embedded import EmbeddedCluster

    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever, name="embedded", daemon=True)
    thread.start()
    token = secrets.token_hex(16)

    async def start() -> tuple[EmbeddedCluster, Server]:
        cluster = await EmbeddedCluster.open(":memory:")
        cluster.machinery.store.compact()  # its first versions are forgotten, as after any restart
        server = Server(build_application(cluster, token=token), "127.0.0.1", 0)
        await server.start()
        return cluster, server

    async def stop() -> None:
        await server.stop()
        await cluster.close()

    try:
        cluster, server = asyncio.run_coroutine_threadsafe(start(), loop).result(60)
        yield Api(server.url, token, is_embedded=True)
        asyncio.run_coroutine_threadsafe(stop(), loop).result(60)
    finally:
        loop.call_soon_threadsafe(loop.stop)
        thread.join(60)
        loop.close()


@pytest.fixture
def space(server: Api) -> Space:
    """A new namespace. Its default account is made here: a real server has a controller for that."""
    name = f"t-{secrets.token_hex(5)}"
    namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}
    server.post("/api/v1/namespaces", namespace).ok()
    made = Space(server, name)
    account = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "default"}}
    assert made.post("serviceaccounts", account).status in (201, 409)
    return made


@pytest.fixture
def group() -> str:
    """An API group nobody else defines."""
    return f"g{secrets.token_hex(5)}.example.com"


@pytest.fixture
def unique_name() -> str:
    """A name for an object that lives in no namespace."""
    return f"w-{secrets.token_hex(5)}"


@pytest.fixture(scope="session")
def fleet(server: Api) -> str:
    """A group whose Boats have a schema, a status and a scale; defined once, for every test that asks."""
    group = f"g{secrets.token_hex(5)}.example.com"
    scale = {
        "specReplicasPath": ".spec.size",
        "statusReplicasPath": ".status.replicas",
        "labelSelectorPath": ".status.selector",
    }
    columns = [
        {"name": "Size", "type": "integer", "jsonPath": ".spec.size"},
        {"name": "Phase", "type": "string", "jsonPath": ".status.phase", "description": "What it does now"},
        {"name": "Mode", "type": "string", "jsonPath": ".spec.mode", "priority": 1},
    ]
    first = version("v1", BOAT_SCHEMA, subresources={"status": {}, "scale": scale}, additionalPrinterColumns=columns)
    other = BOAT_SCHEMA | {"description": "The second version differs in its columns and subresources only"}
    second = version("v2", other, storage=False, selectableFields=[{"jsonPath": ".spec.mode"}])
    serve(server, crd(group, versions=[first, second]))
    return group
