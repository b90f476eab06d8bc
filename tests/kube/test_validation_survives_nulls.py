"""A null anywhere in an object is a mistake or nothing at all, never a crash."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from kit import manifests
from kit.validation_tables import KINDS, Mistake, fresh, mistakes
from shoal.kube.defaults import apply_defaults
from shoal.kube.kinds import Kind
from shoal.kube.objects import Obj
from shoal.kube.validation import validate_create, validate_update

TABLES = (
    "containers", "environments", "volumes", "resources", "probes", "placement", "pods", "services", "storage",
    "cluster", "events", "config",
)  # fmt: skip


def places(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Every place below `value`: keys of maps and positions in lists."""
    steps = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for step, inner in steps:
        yield (*path, step)
        yield from places(inner, (*path, step))


def nulled(obj: Obj, path: tuple[Any, ...]) -> Obj:
    copied = fresh(obj)
    here: Any = copied
    for step in path[:-1]:
        here = here[step]
    here[path[-1]] = None
    return copied


def check(kind: Kind, obj: Obj, old: Obj, subresource: str = "") -> None:
    apply_defaults(kind, obj)
    validate_create(kind, obj)
    validate_update(kind, obj, old, subresource)
    validate_update(kind, old, obj, subresource)


SMALL = [pytest.param(each, id=each.id) for each in mistakes(*TABLES) if len(str(each.second)) < 5000]


@pytest.mark.parametrize("mistake", SMALL)
def test_no_rule_trips_over_a_null(mistake: Mistake) -> None:
    obj = mistake.second
    old = fresh(mistake.first)
    apply_defaults(mistake.kind, old)
    for path in places(obj):
        check(mistake.kind, nulled(obj, path), old, mistake.subresource)


@pytest.mark.parametrize("builder", sorted(KINDS))
def test_an_object_of_nothing_has_mistakes_and_no_more(builder: str) -> None:
    empty: Obj = {"metadata": None}
    old = getattr(manifests, builder)()
    apply_defaults(KINDS[builder], old)
    check(KINDS[builder], empty, old)
