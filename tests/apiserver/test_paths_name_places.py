"""A URL path names one place, or none."""

from __future__ import annotations

import pytest

from shoal.apiserver import paths
from shoal.apiserver.paths import Place

PLACES = {
    "/api/v1": Place("", "v1"),
    "/api/v1/pods": Place("", "v1", "pods"),
    "/api/v1/namespaces": Place("", "v1", "namespaces"),
    "/api/v1/namespaces/team": Place("", "v1", "namespaces", None, "team"),
    "/api/v1/namespaces/team/status": Place("", "v1", "namespaces", None, "team", "status"),
    "/api/v1/namespaces/team/finalize": Place("", "v1", "namespaces", None, "team", "finalize"),
    "/api/v1/namespaces/team/pods": Place("", "v1", "pods", "team"),
    "/api/v1/namespaces/team/pods/": Place("", "v1", "pods", "team"),
    "/api/v1/namespaces/team/pods/a": Place("", "v1", "pods", "team", "a"),
    "/api/v1/namespaces/team/pods/a/log": Place("", "v1", "pods", "team", "a", "log"),
    "/api/v1/nodes/n1/status": Place("", "v1", "nodes", None, "n1", "status"),
    "/apis/batch.example.com/v1": Place("batch.example.com", "v1"),
    "/apis/batch.example.com/v1/jobs": Place("batch.example.com", "v1", "jobs"),
    "/apis/batch.example.com/v1/namespaces/team/jobs/j/scale": Place(
        "batch.example.com", "v1", "jobs", "team", "j", "scale"
    ),
}


@pytest.mark.parametrize(("path", "place"), PLACES.items(), ids=PLACES)
def test_a_resource_path_names_its_place(path: str, place: Place) -> None:
    assert paths.read(path) == place


@pytest.mark.parametrize(
    "path", ["/", "/api", "/apis", "/apis/batch.example.com", "/version", "/api//pods", "/api/v1/a/b/c/d", "relative"]
)
def test_other_paths_name_no_place(path: str) -> None:
    assert paths.read(path) is None
