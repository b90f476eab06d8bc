"""Queues get their defaults stored, and hierarchy annotations and HyperNodes are rejected where they make no sense."""

from __future__ import annotations

from typing import Any

import pytest

from shoal.cluster.apimachinery import MEMORY, Machinery
from shoal.kube.errors import ApiError
from shoal.kube.kinds import CUSTOM_RESOURCE_DEFINITION, Kind
from shoal.kube.objects import Obj
from shoal.scheduler.api.hypernodes import HYPER_NODE, hypernode_definition
from shoal.scheduler.api.pod_groups import QUEUE, definitions
from shoal.scheduler.queue_validation import admit

PATH, WEIGHTS = "volcano.sh/hierarchy", "volcano.sh/hierarchy-weights"


@pytest.fixture
def machinery() -> Machinery:
    made = Machinery.open(MEMORY)
    for definition in (*definitions(), hypernode_definition()):
        made.create(CUSTOM_RESOURCE_DEFINITION, "", definition)
    admit(made)
    return made


def create(machinery: Machinery, kind: Kind, name: str, **parts: Any) -> Obj:
    meta = {"name": name, "annotations": parts.pop("annotations", {})}
    obj = {"apiVersion": kind.api_version, "kind": kind.kind, "metadata": meta, **parts}
    return machinery.create(kind, "", obj).stored.obj()


def mistakes(machinery: Machinery, kind: Kind, name: str, **parts: Any) -> list[str]:
    with pytest.raises(ApiError) as refused:
        create(machinery, kind, name, **parts)
    return [str(cause) for cause in refused.value.causes]


def test_a_stored_queue_is_reclaimable_unless_it_states_otherwise(machinery: Machinery):
    assert create(machinery, QUEUE, "q", spec={"weight": 1})["spec"]["reclaimable"] is True
    assert create(machinery, QUEUE, "r", spec={"reclaimable": False})["spec"]["reclaimable"] is False


def test_a_hierarchy_with_a_weight_per_step_is_accepted(machinery: Machinery):
    made = create(machinery, QUEUE, "q", spec={}, annotations={PATH: "root/sci/dev", WEIGHTS: "1/2.5/8"})
    assert made["metadata"]["annotations"][PATH] == "root/sci/dev"


@pytest.mark.parametrize(
    ("path", "weights", "wrong"),
    [
        pytest.param("root/sci", "1", '"1": 1 weights for the 2 steps of "root/sci"; give one for each', id="too few"),
        pytest.param("root/sci", "1/x", '"1/x": "x" is not a number greater than zero', id="no number"),
        pytest.param("root/sci", "1/-2", '"1/-2": "-2" is not a number greater than zero', id="negative"),
        pytest.param("root/sci", "1/0", '"1/0": "0" is not a number greater than zero', id="zero"),
        pytest.param("root/sci", "1/nan", '"1/nan": "nan" is not a number greater than zero', id="nan"),
    ],
)
def test_weights_that_fit_no_hierarchy_are_rejected(machinery: Machinery, path: str, weights: str, wrong: str):
    found = mistakes(machinery, QUEUE, "q", spec={}, annotations={PATH: path, WEIGHTS: weights})
    assert found == [f"metadata.annotations[{WEIGHTS}]: {wrong}"]


def test_a_queue_above_another_one_in_the_hierarchy_is_rejected(machinery: Machinery):
    create(machinery, QUEUE, "dev", spec={}, annotations={PATH: "root/sci/dev", WEIGHTS: "1/1/1"})
    found = mistakes(machinery, QUEUE, "sci", spec={}, annotations={PATH: "root/sci", WEIGHTS: "1/1"})
    above = '"root/sci": queue dev is below it; only leaves of the hierarchy are queues'
    assert found == [f"metadata.annotations[{PATH}]: {above}"]


def member(**selector: Any) -> Obj:
    return {"type": "Node", "selector": selector}


def test_a_hypernode_with_members_is_accepted(machinery: Machinery):
    named = [member(exactMatch={"name": "a"}), member(regexMatch={"pattern": "^node-[0-9]+$"})]
    assert create(machinery, HYPER_NODE, "leaf", spec={"members": named})["spec"]["tier"] == 1


@pytest.mark.parametrize(
    ("members", "field"),
    [
        pytest.param([], "spec.members", id="no members"),
        pytest.param(
            [member(regexMatch={"pattern": "node-["})],
            "spec.members[0].selector.regexMatch.pattern",
            id="a pattern that does not compile",
        ),
        pytest.param([member()], "spec.members[0].selector", id="no selector"),
        pytest.param(
            [member(exactMatch={"name": "a"}, regexMatch={"pattern": "a"})],
            "spec.members[0].selector",
            id="two selectors",
        ),
        pytest.param([member(exactMatch={"name": ""})], "spec.members[0].selector.exactMatch.name", id="no name"),
    ],
)
def test_a_hypernode_that_selects_nothing_is_rejected(machinery: Machinery, members: list[Obj], field: str):
    found = mistakes(machinery, HYPER_NODE, "leaf", spec={"members": members})
    assert [words.partition(":")[0] for words in found] == [field]
