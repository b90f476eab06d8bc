"""What people do to a Framework, as the one patch that does it."""

from __future__ import annotations

import json

import pytest

from kit.capabilities import capability
from kit.frameworks import framework, pet, role
from shoal.dialects.capabilities import Scaling, Suspension
from shoal.dialects.framework import DIALECT
from shoal.kube.objects import Obj
from shoal.kube.patching import json_patch


def scaled(manifest: Obj, **sizes: int) -> list[Obj]:
    return capability(DIALECT, Scaling).patch(manifest, sizes)


def test_scaling_the_story_is_the_patch_of_the_original():
    worker = "/spec/taskRoles/1"

    assert scaled(pet(), worker=2) == [
        {"op": "test", "path": f"{worker}/name", "value": "worker"},
        {"op": "replace", "path": f"{worker}/taskNumber", "value": 2},
        {"op": "replace", "path": f"{worker}/frameworkAttemptCompletionPolicy/minSucceededTaskCount", "value": 2},
    ]


# before: tasks, failed/succeeded; to; after
SCALES = [
    ("all succeed", (4, 1, 4), 2, (2, 1, 2)),
    ("any succeeds, all fail", (4, 4, 1), 2, (2, 2, 1)),
    ("one of one", (1, 1, 1), 3, (3, 1, 3)),
    ("default", (4, 1, -1), 8, (8, 1, -1)),
    ("some fail", (10, 3, -1), 5, (5, 3, -1)),
    ("without a rule, to nothing", (3, 1, -1), 0, (0, 1, -1)),
]


@pytest.mark.parametrize(("before", "to", "after"), [row[1:] for row in SCALES], ids=[row[0] for row in SCALES])
def test_counts_that_ask_for_all_follow_the_size(before: tuple[int, int, int], to: int, after: tuple[int, int, int]):
    manifest = framework(role("a"), role("b", *before))
    patched = json_patch(manifest, scaled(manifest, b=to))

    assert patched == framework(role("a"), role("b", *after))
    assert DIALECT.validate(patched) == []


Shape = tuple[int, int, int]

TRIPS: list[tuple[str, Shape, list[tuple[int, Shape]]]] = [
    ("all succeed, by nothing", (4, 1, 4), [(0, (0, 1, 4)), (4, (4, 1, 4))]),
    ("all succeed, by nothing to fewer", (4, 1, 4), [(0, (0, 1, 4)), (2, (2, 1, 2))]),
    ("elastic, by one", (4, 4, 1), [(1, (1, 1, 1)), (4, (4, 4, 1))]),
    ("elastic, by nothing and one", (4, 4, 1), [(0, (0, 4, 1)), (1, (1, 1, 1)), (3, (3, 3, 1))]),
    ("elastic, by one and nothing", (4, 4, 1), [(1, (1, 1, 1)), (0, (0, 1, 1)), (3, (3, 3, 1))]),
    ("some fail, by as many", (10, 3, -1), [(3, (3, 3, -1)), (10, (10, 3, -1))]),
]


@pytest.mark.parametrize(("before", "steps"), [row[1:] for row in TRIPS], ids=[row[0] for row in TRIPS])
def test_counts_keep_their_meaning_on_the_way(before: Shape, steps: list[tuple[int, Shape]]):
    manifest = framework(role("b", *before))
    seen = []
    for to, _ in steps:
        manifest = json_patch(manifest, scaled(manifest, b=to))
        seen.append((to, manifest["spec"]["taskRoles"][0]))
        assert DIALECT.validate(manifest) == []

    assert seen == [(to, role("b", *shape)) for to, shape in steps]


def test_nothing_is_remembered_once_the_counts_speak_for_themselves():
    manifest = framework(role("a", 4, 4, 1), role("b", 4, 4, 1))
    manifest["metadata"]["annotations"] = {"mine": "kept"}
    down = json_patch(manifest, scaled(manifest, a=1, b=0))

    assert json.loads(down["metadata"]["annotations"]["shoal.dev/counts-of-all"]) == {
        "a": {"shape": [1, 1, 1], "all": ["minFailedTaskCount"]},
        "b": {"shape": [0, 4, 1], "all": ["minFailedTaskCount"]},
    }
    assert json_patch(down, scaled(down, a=4, b=4)) == manifest


def test_what_somebody_wrote_since_counts_more_than_what_is_remembered():
    manifest = framework(role("b", 4, 4, 1))
    down = json_patch(manifest, scaled(manifest, b=1))
    down["spec"]["taskRoles"][0] = role("b", 1, -1, 1)

    assert json_patch(down, scaled(down, b=4))["spec"]["taskRoles"] == [role("b", 4, -1, 4)]


@pytest.mark.parametrize("words", ["{", "7", '{"b": 1}', '{"b": {"shape": [4, 4, 1], "all": 2}}'])
def test_words_nobody_can_read_are_no_memory(words: str):
    manifest = framework(role("b", 4, 4, 1))
    manifest["metadata"]["annotations"] = {"shoal.dev/counts-of-all": words}

    assert json_patch(manifest, scaled(manifest, b=2))["spec"]["taskRoles"] == [role("b", 2, 2, 1)]


def test_several_roles_travel_in_one_patch():
    manifest = framework(role("a", 1), role("b", 2))

    assert json_patch(manifest, scaled(manifest, b=5, a=4)) == framework(role("a", 4), role("b", 5))


def test_a_size_that_was_left_out_is_added():
    manifest = {"spec": {"taskRoles": [{"name": "a"}]}}

    assert json_patch(manifest, scaled(manifest, a=2)) == {"spec": {"taskRoles": [{"name": "a", "taskNumber": 2}]}}


def test_a_role_that_is_not_there_is_named():
    with pytest.raises(LookupError, match="there is no role 'ps'; the roles are: etcd, worker"):
        scaled(pet(), ps=1)


def test_stop_and_start():
    created = framework(role(), start="Create")

    suspension = capability(DIALECT, Suspension)
    assert json_patch(created, suspension.start_patch(created)) == framework(role())
    assert json_patch(created, suspension.stop_patch(created)) == framework(role(), start="Stop")
    assert json_patch({"spec": {}}, suspension.stop_patch({"spec": {}})) == {"spec": {"executionType": "Stop"}}
