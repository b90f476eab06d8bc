"""The server that plays an older one in other tests refuses in the words of a real one that is told to be older."""

from __future__ import annotations

import pytest

from kit.control_plane import ControlPlane
from kit.old_api_server import REFUSAL
from kit.raw_api import Api

pytestmark = pytest.mark.kubernetes


def test_a_list_that_should_stream(operated_plane: ControlPlane) -> None:
    api = Api(operated_plane.url, operated_plane.token, operated_plane.ca_file)
    asked = {"watch": "true", "sendInitialEvents": "true", "resourceVersionMatch": "NotOlderThan"}
    refused = api.get("/api/v1/namespaces/default/configmaps", **asked).failure()
    assert refused == REFUSAL
