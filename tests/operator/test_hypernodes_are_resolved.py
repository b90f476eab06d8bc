"""HyperNodes name nodes exactly, by pattern, by label, or through other HyperNodes; a circle ends."""

from __future__ import annotations

from typing import Any

from shoal.scheduler.cache.hypernode_domains import resolved
from shoal.scheduler.planner.gang_types import HyperNode

NODES = {"a-1": {"rack": "r1"}, "a-2": {"rack": "r1"}, "b-1": {"rack": "r2"}}


def hyper(tier: int, *members: tuple[str, dict[str, Any]]) -> dict[str, Any]:
    return {"spec": {"tier": tier, "members": [{"type": kind, "selector": chosen} for kind, chosen in members]}}


def test_each_way_of_naming() -> None:
    exact, pattern = {"exactMatch": {"name": "b-1"}}, {"regexMatch": {"pattern": "a-.*"}}
    label = {"labelMatch": {"matchLabels": {"rack": "r1"}}}
    found = resolved(
        {
            "leaf": hyper(1, ("Node", exact), ("Node", {"exactMatch": {"name": "gone"}})),
            "named": hyper(1, ("Node", pattern)),
            "labelled": hyper(1, ("Node", label)),
            "spine": hyper(2, *(("HyperNode", {"exactMatch": {"name": name}}) for name in ("leaf", "named"))),
        },
        NODES,
    )
    assert found == {
        "leaf": HyperNode("leaf", 1, frozenset({"b-1"})),
        "named": HyperNode("named", 1, frozenset({"a-1", "a-2"})),
        "labelled": HyperNode("labelled", 1, frozenset({"a-1", "a-2"})),
        "spine": HyperNode("spine", 2, frozenset({"a-1", "a-2", "b-1"})),
    }


def test_a_circle_ends_and_what_cannot_be_read_is_left_out() -> None:
    found = resolved(
        {
            "round": hyper(
                1, ("HyperNode", {"exactMatch": {"name": "round"}}), ("Node", {"exactMatch": {"name": "b-1"}})
            ),
            "wrong": hyper(1, ("Node", {"regexMatch": {"pattern": "("}})),
        },
        NODES,
    )
    assert found == {"round": HyperNode("round", 1, frozenset({"b-1"}))}


def test_many_that_name_each_other_are_each_looked_at_once() -> None:
    """Followed along every path there would be forty to the power of its length."""
    everybody = ("HyperNode", {"regexMatch": {"pattern": "h.*"}})
    made = {
        f"h{n}": hyper(1, everybody, *([("Node", {"exactMatch": {"name": "b-1"}})] if not n else [])) for n in range(40)
    }
    assert resolved(made, NODES) == {name: HyperNode(name, 1, frozenset({"b-1"})) for name in made}


def test_one_with_an_unreadable_one_within_is_left_out_too() -> None:
    found = resolved(
        {
            "spine": hyper(2, ("HyperNode", {"exactMatch": {"name": "wrong"}})),
            "wrong": hyper(1, ("Node", {"regexMatch": {"pattern": "("}})),
        },
        NODES,
    )
    assert found == {}
