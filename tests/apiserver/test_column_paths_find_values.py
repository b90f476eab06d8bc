"""The small JSONPath of printer columns."""

from __future__ import annotations

from typing import Any

import pytest

from shoal.apiserver import jsonpath

OBJECT = {
    "metadata": {"labels": {"app.example/name": "x", "plain": "y"}},
    "spec": {"replicas": 3, "containers": [{"name": "a", "image": "i"}, {"name": "b"}]},
    "status": {"conditions": [{"type": "Ready", "status": "True"}, {"type": "Done", "status": "False"}]},
}
FOUND: dict[str, list[Any]] = {
    ".spec.replicas": [3],
    "{.spec.replicas}": [3],
    "$.spec.replicas": [3],
    ".spec.containers[0].image": ["i"],
    ".spec.containers[-1].name": ["b"],
    ".spec.containers[*].name": ["a", "b"],
    ".spec.containers[7].name": [],
    ".spec.containers[-1:].name": ["b"],
    ".spec.containers[:1].name": ["a"],
    ".spec.replicas[-1:]": [],
    ".metadata.labels.plain": ["y"],
    r".metadata.labels.app\.example/name": ["x"],
    ".metadata.labels['app.example/name']": ["x"],
    '.status.conditions[?(@.type=="Ready")].status': ["True"],
    ".status.conditions[?(@.type=='Done')].status": ["False"],
    '.status.conditions[?(@.type!="Done")].type': ["Ready"],
    ".status.missing.deeper": [],
    ".spec[": [],
    "": [OBJECT],
}


@pytest.mark.parametrize(("path", "found"), FOUND.items(), ids=[p or "empty" for p in FOUND])
def test_a_path_finds_what_it_names(path: str, found: list[Any]) -> None:
    assert jsonpath.find(OBJECT, path) == found
