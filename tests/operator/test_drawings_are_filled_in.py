"""Drawings: values in their places, conditions decided, repetitions counted."""

from __future__ import annotations

from typing import Any

import pytest

from shoal.install.manifests import Options, render, usual_name
from shoal.install.templates import filled

VALUES = {"name": "shoal", "replicas": 2, "webhook": True, "jobClass": "", "dialects": ("framework",), "shards": 2}
CASES: dict[str, tuple[Any, Any]] = {
    "a value alone keeps its type": ("${replicas}", 2),
    "a value within a text is text": ("${name}-${replicas}", "shoal-2"),
    "keys are filled in too": ({"${name}": 1}, {"shoal": 1}),
    "an item under a condition": (["a", {"$if webhook": "b"}], ["a", "b"]),
    "several items under a condition": ([{"$if webhook": ["a", "b"]}], ["a", "b"]),
    "an item whose condition does not hold": ([{"$if jobClass": "a"}], []),
    "the opposite of a condition": ([{"$if not jobClass": "a"}, {"$if not webhook": "b"}], ["a"]),
    "fields under a condition": ({"$if webhook": {"a": 1}, "$if not webhook": {"b": 2}}, {"a": 1}),
    "a word in a list": ([{"$if dialects=framework": 1}, {"$if dialects=volcano": 2}], [1]),
    "once per number": ([{"$each shard": "${name}-${shard}"}], ["shoal-0", "shoal-1"]),
    "anything else stays": ({"a": [1, None, True]}, {"a": [1, None, True]}),
}


@pytest.mark.parametrize(("drawn", "made"), CASES.values(), ids=CASES)
def test_filling_in(drawn: Any, made: Any) -> None:
    assert filled(drawn, VALUES) == made


def test_an_unknown_mark_is_a_mistake() -> None:
    with pytest.raises(ValueError, match="is no mark of a drawing"):
        filled([{"$unless webhook": 1}], VALUES)


@pytest.mark.parametrize(
    ("served", "name"),
    [(("", ""), "shoal"), (("team-a", ""), "shoal-team-a"), (("team-a", "Fast_1"), "shoal-team-a-fast-1")],
)
def test_installations_for_different_jobs_have_different_names(served: tuple[str, str], name: str) -> None:
    assert usual_name(*served) == name


def test_an_installation_for_one_namespace_has_no_right_elsewhere() -> None:
    made = render(Options(watchNamespace="team-a"))
    assert [obj["kind"] for obj in made if obj["kind"].startswith("Cluster")] == []
    places = {obj["metadata"]["namespace"] for obj in made if obj["kind"] == "Role"}
    assert places == {"team-a", "shoal-system"}
