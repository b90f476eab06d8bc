"""The official Python client against the embedded API."""

from __future__ import annotations

import secrets
from collections.abc import Iterator

import pytest
from kubernetes import client, config

from kit.embedded_api_server import Running, serve


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    with serve(tmp_path_factory.mktemp("server")) as running:
        yield running


@pytest.fixture
def api(server: Running) -> Iterator[client.ApiClient]:
    with config.new_client_from_config(str(server.kubeconfig)) as made:
        yield made


@pytest.fixture
def core(api: client.ApiClient) -> client.CoreV1Api:
    return client.CoreV1Api(api)


@pytest.fixture
def space(core: client.CoreV1Api) -> str:
    name = f"t-{secrets.token_hex(4)}"
    core.create_namespace(client.V1Namespace(metadata=client.V1ObjectMeta(name=name)))
    return name
