"""Watching: where a watch begins, what it tells, and how it ends."""

from __future__ import annotations

import pytest

from kit.api_objects import cause, config_map, failure, invalid, pod, seen
from kit.raw_api import JSON, TABLE, Obj, Space

STREAMED = {"sendInitialEvents": True, "resourceVersionMatch": "NotOlderThan", "allowWatchBookmarks": True}


def now(space: Space) -> str:
    version: str = space.get("configmaps").ok()["metadata"]["resourceVersion"]
    return version


def test_a_watch_from_a_version_delivers_later_events(space: Space) -> None:
    version = now(space)
    made = space.post("configmaps", config_map("a", {"x": "1"})).ok()
    changed = space.patch("configmaps/a", {"data": {"x": "2"}}).ok()
    with space.watch("configmaps", resourceVersion=version) as watch:
        assert watch.take(2) == [{"type": "ADDED", "object": made}, {"type": "MODIFIED", "object": changed}]


def test_a_deletion_has_the_last_state_under_the_version_of_the_deletion(space: Space) -> None:
    made = space.post("configmaps", config_map("a", {"x": "1"})).ok()
    space.delete("configmaps/a").ok()
    with space.watch("configmaps", resourceVersion=made["metadata"]["resourceVersion"]) as watch:
        (event,) = watch.take(1)
    version = event["object"]["metadata"].pop("resourceVersion")
    assert int(version) > int(made["metadata"].pop("resourceVersion"))
    assert event == {"type": "DELETED", "object": made}


def test_a_watch_delivers_events_while_it_is_open(space: Space) -> None:
    with space.watch("configmaps", resourceVersion=now(space)) as watch:
        for name in "ab":
            space.post("configmaps", config_map(name)).ok()
        assert seen(watch.take(2)) == [("ADDED", "a"), ("ADDED", "b")]
        space.delete("configmaps/a").ok()
        assert seen(watch.take(1)) == [("DELETED", "a")]


def test_events_come_in_the_order_of_versions(space: Space) -> None:
    version = now(space)
    for number in range(20):
        space.post("configmaps", config_map(f"c{number % 7}-{number}")).ok()
    with space.watch("configmaps", resourceVersion=version) as watch:
        versions = [int(event["object"]["metadata"]["resourceVersion"]) for event in watch.take(20)]
    assert versions == sorted(set(versions))


@pytest.mark.parametrize("start", [{}, {"resourceVersion": "0"}], ids=["no version", "version 0"])
def test_a_watch_without_a_version_begins_with_what_is_there(space: Space, start: dict[str, str]) -> None:
    made = [space.post("configmaps", config_map(name)).ok() for name in "ab"]
    with space.watch("configmaps", **start) as watch:
        found = watch.take(2)
        assert sorted(seen(found)) == [("ADDED", "a"), ("ADDED", "b")]
        assert {event["object"]["metadata"]["uid"] for event in found} == {each["metadata"]["uid"] for each in made}
        space.delete("configmaps/a").ok()
        assert seen(watch.take(1)) == [("DELETED", "a")]


def test_a_streamed_list_ends_with_a_marked_bookmark(space: Space) -> None:
    made = [space.post("configmaps", config_map(name)).ok() for name in "ab"]
    with space.watch("configmaps", **STREAMED) as watch:
        *first, bookmark = watch.take(3)
        space.post("configmaps", config_map("c")).ok()
        assert seen(watch.take(1)) == [("ADDED", "c")]
    assert first == [{"type": "ADDED", "object": each} for each in made]
    version = bookmark["object"]["metadata"].pop("resourceVersion")
    assert int(version) >= int(made[-1]["metadata"]["resourceVersion"])
    ended = {"annotations": {"k8s.io/initial-events-end": "true"}}
    assert bookmark == {"type": "BOOKMARK", "object": {"kind": "ConfigMap", "apiVersion": "v1", "metadata": ended}}


def test_a_streamed_list_of_nothing_is_only_the_bookmark(space: Space) -> None:
    with space.watch("configmaps", **STREAMED) as watch:
        assert [event["type"] for event in watch.take(1)] == ["BOOKMARK"]


def test_a_streamed_list_honours_selectors(space: Space) -> None:
    space.post("configmaps", config_map("a", labels={"x": "1"})).ok()
    space.post("configmaps", config_map("b")).ok()
    with space.watch("configmaps", labelSelector="x=1", **STREAMED) as watch:
        assert [event["type"] for event in watch.take(2)] == ["ADDED", "BOOKMARK"]


def test_without_initial_events_the_existing_is_left_out(space: Space) -> None:
    space.post("configmaps", config_map("a")).ok()
    version = now(space)
    query = {"sendInitialEvents": False, "resourceVersionMatch": "NotOlderThan", "resourceVersion": version}
    with space.watch("configmaps", **query) as watch:
        space.post("configmaps", config_map("b")).ok()
        assert seen(watch.take(1)) == [("ADDED", "b")]


def test_a_watch_can_be_resumed_from_its_closing_bookmark(space: Space) -> None:
    query = {"labelSelector": "team=vision", "resourceVersion": now(space)}
    with space.watch("configmaps", **query, allowWatchBookmarks=True, timeoutSeconds=12) as watch:
        made = space.post("configmaps", config_map("a")).ok()  # not ours; but there is something newer to mark
        bookmarks = list(watch)
    assert {event["type"] for event in bookmarks} == {"BOOKMARK"}
    version = bookmarks[-1]["object"]["metadata"]["resourceVersion"]
    assert int(version) >= int(made["metadata"]["resourceVersion"])
    space.post("configmaps", config_map("b")).ok()
    with space.watch("configmaps", resourceVersion=version) as watch:
        assert seen(watch.take(1)) == [("ADDED", "b")]


def test_no_bookmarks_come_unasked(space: Space) -> None:
    with space.watch("configmaps", resourceVersion=now(space), timeoutSeconds=3) as watch:
        assert list(watch) == []


def test_a_watch_ends_quietly_when_its_time_is_up(space: Space) -> None:
    made = space.post("configmaps", config_map("a")).ok()
    with space.watch("configmaps", timeoutSeconds=6) as watch:
        assert list(watch) == [{"type": "ADDED", "object": made}]


def test_an_object_that_leaves_the_selection_is_a_deleted_event(space: Space) -> None:
    made = space.post("configmaps", config_map("a", labels={"x": "1"})).ok()
    with space.watch("configmaps", resourceVersion=made["metadata"]["resourceVersion"], labelSelector="x=1") as watch:
        left = space.patch("configmaps/a", {"metadata": {"labels": {"x": "2"}}}).ok()
        back = space.patch("configmaps/a", {"metadata": {"labels": {"x": "1"}}}).ok()
        first, second = watch.take(2)
    # What is told is the state that was last selected, under the version of the change that ended it.
    expected = made | {"metadata": made["metadata"] | {"resourceVersion": left["metadata"]["resourceVersion"]}}
    assert first == {"type": "DELETED", "object": expected}
    assert second == {"type": "ADDED", "object": back}


def test_changes_outside_the_selection_are_not_delivered(space: Space) -> None:
    version = now(space)
    space.post("configmaps", config_map("a")).ok()
    space.patch("configmaps/a", {"data": {"x": "1"}}).ok()
    space.delete("configmaps/a").ok()
    space.post("configmaps", config_map("b", labels={"x": "1"})).ok()
    with space.watch("configmaps", resourceVersion=version, labelSelector="x=1") as watch:
        assert seen(watch.take(1)) == [("ADDED", "b")]


def test_one_object_is_watched_by_its_name(space: Space) -> None:
    version = now(space)
    for name in "ab":
        space.post("configmaps", config_map(name)).ok()
    with space.watch("configmaps", resourceVersion=version, fieldSelector="metadata.name=b") as watch:
        assert seen(watch.take(1)) == [("ADDED", "b")]


def test_pods_are_watched_by_their_node(space: Space) -> None:
    version = now(space)
    space.post("pods", pod("a")).ok()
    space.post("pods", pod("b", nodeName="n1")).ok()
    binding = {"metadata": {"name": "a"}, "target": {"kind": "Node", "name": "n1"}}
    space.post("pods/a/binding", binding).ok()
    with space.watch("pods", resourceVersion=version, fieldSelector="spec.nodeName=n1") as watch:
        assert seen(watch.take(2)) == [("ADDED", "b"), ("ADDED", "a")]


def test_events_of_other_namespaces_are_not_delivered(space: Space) -> None:
    version = now(space)
    space.api.post("/api/v1/namespaces/default/configmaps", {"metadata": {"generateName": "w-"}}).ok()
    space.post("configmaps", config_map("mine")).ok()
    with space.watch("configmaps", resourceVersion=version) as watch:
        assert seen(watch.take(1)) == [("ADDED", "mine")]


def test_the_old_paths_of_watches_work(space: Space) -> None:
    version = now(space)
    space.post("configmaps", config_map("a")).ok()
    path = f"/api/v1/watch/namespaces/{space.name}/configmaps"
    with space.api.watch(path, watch=None, resourceVersion=version) as watch:
        assert seen(watch.take(1)) == [("ADDED", "a")]


def test_a_watch_answers_as_a_chunked_json_stream(space: Space) -> None:
    with space.watch("configmaps", resourceVersion=now(space)) as watch:
        assert (watch.status, watch.headers["Content-Type"], watch.headers["Transfer-Encoding"]) == (
            200,
            JSON,
            "chunked",
        )


def test_a_watch_can_deliver_tables(space: Space) -> None:
    space.post("configmaps", config_map("a", {"x": "1"})).ok()
    with space.watch("configmaps", accept=TABLE) as watch:
        (event,) = watch.take(1)
    table = event["object"]
    assert (event["type"], table["kind"], [row["cells"][:2] for row in table["rows"]]) == ("ADDED", "Table", [["a", 1]])
    assert [column["name"] for column in table["columnDefinitions"]] == ["Name", "Data", "Age"]


FORBIDDEN = {
    "initial events without a match": (
        {"sendInitialEvents": True},
        "Forbidden: sendInitialEvents requires setting resourceVersionMatch to NotOlderThan",
    ),
    "a match without initial events": (
        {"resourceVersionMatch": "NotOlderThan"},
        "Forbidden: resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided",
    ),
}


@pytest.mark.parametrize(("query", "why"), FORBIDDEN.values(), ids=FORBIDDEN.keys())
def test_options_that_do_not_go_together_are_refused(space: Space, query: Obj, why: str) -> None:
    with space.watch("configmaps", **query) as watch:
        refused = watch.refused().failure()
    wrong = cause("resourceVersionMatch", why, "FieldValueForbidden")
    assert refused == invalid("ListOptions", "", wrong, group="meta.k8s.io")


LABEL_SELECTOR = "unable to parse requirement: found 'b' expected: '('"
FIELD_SELECTOR = '"spec.x" is not a known field selector: only "metadata.name", "metadata.namespace"'
BAD_QUERIES = {
    "label selector": ({"labelSelector": "a in b"}, LABEL_SELECTOR, LABEL_SELECTOR),
    "time-out": ({"timeoutSeconds": "x"}, '"x"', 'timeoutSeconds: Invalid value: "x": must be an integer'),
    "field selector": ({"fieldSelector": "spec.x=1"}, FIELD_SELECTOR, FIELD_SELECTOR),
}


@pytest.mark.parametrize(("query", "part", "embedded"), BAD_QUERIES.values(), ids=BAD_QUERIES.keys())
def test_a_watch_with_bad_parameters_is_refused(space: Space, query: Obj, part: str, embedded: str) -> None:
    with space.watch("configmaps", **query) as watch:
        refused = watch.refused().failure()
    assert refused == failure(400, "BadRequest", space.own_words(refused, embedded=embedded))
    assert part in refused["message"]


def test_a_watch_from_a_version_that_is_no_number_is_refused(space: Space) -> None:
    with space.watch("configmaps", resourceVersion="abc") as watch:
        refused = watch.refused().failure()
    # A real server calls this its own mistake (500); the promise is the refusal with the field and its value.
    assert refused["message"].startswith('resourceVersion: Invalid value: "abc": ')
