"""A URL path names one place, or none."""

from __future__ import annotations

import pytest

from shoal.apiserver import request_info
from shoal.apiserver.request_info import RequestInfo

PLACES = {
    "/api/v1": RequestInfo("", "v1"),
    "/api/v1/pods": RequestInfo("", "v1", "pods"),
    "/api/v1/namespaces": RequestInfo("", "v1", "namespaces"),
    "/api/v1/namespaces/team": RequestInfo("", "v1", "namespaces", None, "team"),
    "/api/v1/namespaces/team/status": RequestInfo("", "v1", "namespaces", None, "team", "status"),
    "/api/v1/namespaces/team/finalize": RequestInfo("", "v1", "namespaces", None, "team", "finalize"),
    "/api/v1/namespaces/team/pods": RequestInfo("", "v1", "pods", "team"),
    "/api/v1/namespaces/team/pods/": RequestInfo("", "v1", "pods", "team"),
    "/api/v1/namespaces/team/pods/a": RequestInfo("", "v1", "pods", "team", "a"),
    "/api/v1/namespaces/team/pods/a/log": RequestInfo("", "v1", "pods", "team", "a", "log"),
    "/api/v1/nodes/n1/status": RequestInfo("", "v1", "nodes", None, "n1", "status"),
    "/apis/batch.example.com/v1": RequestInfo("batch.example.com", "v1"),
    "/apis/batch.example.com/v1/jobs": RequestInfo("batch.example.com", "v1", "jobs"),
    "/apis/batch.example.com/v1/namespaces/team/jobs/j/scale": RequestInfo(
        "batch.example.com", "v1", "jobs", "team", "j", "scale"
    ),
}


@pytest.mark.parametrize(("path", "place"), PLACES.items(), ids=PLACES)
def test_a_resource_path_names_its_place(path: str, place: RequestInfo) -> None:
    assert request_info.read(path) == place


@pytest.mark.parametrize(
    "path", ["/", "/api", "/apis", "/apis/batch.example.com", "/version", "/api//pods", "/api/v1/a/b/c/d", "relative"]
)
def test_other_paths_name_no_place(path: str) -> None:
    assert request_info.read(path) is None
