"""Image names, field paths, references and lengths of time are read in time linear in their length, and what references
expand to is bounded.

Quadratic readers would need hours for these texts: the tests end, or never do.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from kit.pods import container, pod, stored
from shoal.apiserver import jsonpath
from shoal.dialects.volcano.spec import seconds_of
from shoal.kube.defaults.pod_defaults import pull_policy
from shoal.kube.objects import Obj
from shoal.kube.validation.env_rules import FIELD_PATHS, field_reference
from shoal.node.environment import (
    MAX_CHARACTERS,
    MAX_TEXT_CHARACTERS,
    EnvContext,
    command_line,
    declared_variables,
    expand,
    unknown_names,
)
from shoal.node.pod_references import Lookup, ReferenceMissing
from shoal.node.volume_files import files_of

COUNT = 1_000_000
AROUND = EnvContext("n1", "192.0.2.1", "10.77.1.4", "p")


def problems_of_path(path: str) -> list[Any]:
    return list(field_reference({"apiVersion": "v1", "fieldPath": path}, FIELD_PATHS, ""))


def has_no_length(text: str) -> bool:
    with pytest.raises(ValueError, match="must be a length of time"):
        seconds_of(text)
    return True


READERS: dict[str, tuple[Callable[[str], Any], str, Any]] = {
    "image of capitals": (pull_policy, "A" * COUNT + "!", "IfNotPresent"),
    "image of parts": (pull_policy, "a." * COUNT + "!", "IfNotPresent"),
    "image of hosts": (pull_policy, "a:1/" * COUNT, "IfNotPresent"),
    "field path": (lambda text: len(problems_of_path(text)), "a" + "['" * COUNT, 1),
    "subscript": (lambda text: len(problems_of_path(text)), "a" + "['" * COUNT + "']", 1),
    "reference": (lambda text: expand(text, {}) == text, "$(" * COUNT, True),
    "unknown reference": (lambda text: unknown_names(text, {}), "$(" * COUNT, []),
    "length of time": (has_no_length, "1" * COUNT, True),
    "column": (jsonpath.compile_path, "[?(@.a" + " " * COUNT + "==" + " " * COUNT + "x", None),
}


@pytest.mark.parametrize(("read", "text", "found"), READERS.values(), ids=READERS)
def test_a_long_text_is_read_in_linear_time(read: Callable[[str], Any], text: str, found: Any) -> None:
    assert read(text) == found


# What $(VAR) expands to


def doubled(times: int) -> list[Obj]:
    """Each variable holds the one before twice."""
    steps = [{"name": f"V{number}", "value": f"$(V{number - 1})" * 2} for number in range(1, times + 1)]
    return [{"name": "V0", "value": "x"}, *steps]


def variables_of(holder: Obj, env_context: EnvContext = AROUND) -> dict[str, str]:
    return declared_variables(stored(pod("p", holder)), holder, env_context)


def test_variables_that_double_end_in_words() -> None:
    assert len(variables_of(container("main", env=doubled(17)))["V17"]) == MAX_TEXT_CHARACTERS
    with pytest.raises(ReferenceMissing, match=f"expands to more than {MAX_TEXT_CHARACTERS} characters"):
        variables_of(container("main", env=doubled(60)))


def test_variables_are_bounded_together() -> None:
    many = [{"name": f"W{number}", "value": "$(V16)"} for number in range(1000)]
    with pytest.raises(
        ReferenceMissing, match=f"the environment variables of the container have more than {MAX_CHARACTERS} characters"
    ):
        variables_of(container("main", env=[*doubled(16), *many]))


class Counted(Lookup):
    """One large ConfigMap by every name; counts how often it is decoded."""

    decoded = 0

    def data(self, *_: Any) -> dict[str, bytes]:
        type(self).decoded += 1
        return {"a": b"x" * COUNT}


@pytest.fixture
def env_context(monkeypatch: pytest.MonkeyPatch) -> EnvContext:
    monkeypatch.setattr(Counted, "decoded", 0)
    return EnvContext("n1", "192.0.2.1", "10.77.1.4", "p", lookup=Counted())


@pytest.mark.parametrize("prefix", ["P", " "], ids=["variables", "no variables"])
def test_variables_of_the_same_map_under_many_prefixes_are_bounded_together(
    env_context: EnvContext, prefix: str
) -> None:
    sources = [{"prefix": f"{prefix}{number}", "configMapRef": {"name": "m"}} for number in range(1000)]
    with pytest.raises(ReferenceMissing, match="the environment variables of the container have more than"):
        variables_of(container("main", envFrom=sources), env_context)

    assert Counted.decoded == 1


def test_many_references_to_a_map_decode_it_once(env_context: EnvContext) -> None:
    absent = {"configMapKeyRef": {"name": "m", "key": "b", "optional": True}}
    env = [{"name": f"V{number}", "valueFrom": absent} for number in range(1000)]

    assert (variables_of(container("main", env=env), env_context), Counted.decoded) == ({}, 1)


def test_many_files_of_a_map_or_of_annotations_share_its_content(env_context: EnvContext) -> None:
    made = stored(pod("p", container("main")))
    made["metadata"]["annotations"] = {"a": "x"}
    shown = {"fieldRef": {"fieldPath": "metadata.annotations"}}
    sources = [{"configMap": {"name": "m", "items": [{"key": "a", "path": f"m{n}"}]}} for n in range(1000)]
    sources += [{"downwardAPI": {"items": [{**shown, "path": f"a{n}"}]}} for n in range(1000)]
    files = files_of(made, {"name": "v", "projected": {"sources": sources}}, env_context)

    assert (len(files), Counted.decoded, len({id(file.data) for file in files.values()})) == (2000, 1, 2)


def test_arguments_are_bounded_together() -> None:
    with pytest.raises(
        ReferenceMissing, match=f"the arguments of the container have more than {MAX_CHARACTERS} characters"
    ):
        command_line({"command": ["$(V)"] * COUNT}, [], {"V": "x" * MAX_TEXT_CHARACTERS})


def test_one_argument_is_bounded() -> None:
    with pytest.raises(ReferenceMissing, match="the maximum length of an argument or environment variable"):
        command_line({"command": ["$(V)" * COUNT]}, [], {"V": "x" * COUNT})
