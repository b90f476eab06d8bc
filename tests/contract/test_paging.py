"""Lists in pages: limit, continue, what remains, and versions a server cannot give."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from kit.api_objects import cause, config_map, failure, invalid, names
from kit.raw_api import Obj, Space


def five(space: Space) -> None:
    for name in "abcde":
        space.post("configmaps", config_map(name, labels={"vowel": "yes" if name in "ae" else "no"})).ok()


def pages(space: Space, **query: object) -> Iterator[Obj]:
    token = None
    while token != "":
        page = space.get("configmaps", **query, **{"continue": token}).ok()
        yield page
        token = page["metadata"].get("continue", "")


def test_pages_follow_each_other_and_count_the_remaining_items(space: Space) -> None:
    five(space)
    found = [(names(page), page["metadata"].get("remainingItemCount")) for page in pages(space, limit=2)]
    assert found == [(["a", "b"], 3), (["c", "d"], 1), (["e"], None)]


def test_a_page_that_holds_all_has_no_next(space: Space) -> None:
    five(space)
    (page,) = pages(space, limit=5)
    assert (names(page), set(page["metadata"])) == (list("abcde"), {"resourceVersion"})


def test_limit_0_is_no_limit(space: Space) -> None:
    five(space)
    assert names(space.get("configmaps", limit=0).ok()) == list("abcde")


def test_pages_show_one_moment_although_objects_come_and_go(space: Space) -> None:
    five(space)
    walk = pages(space, limit=2)
    first = next(walk)
    space.delete("configmaps/d").ok()
    space.post("configmaps", config_map("cc")).ok()
    rest = list(walk)
    assert [names(page) for page in (first, *rest)] == [["a", "b"], ["c", "d"], ["e"]]
    assert {page["metadata"]["resourceVersion"] for page in rest} == {first["metadata"]["resourceVersion"]}


def test_what_remains_is_not_counted_under_a_selector(space: Space) -> None:
    five(space)
    found = [
        (names(page), "remainingItemCount" in page["metadata"])
        for page in pages(space, limit=1, labelSelector="vowel=yes")
    ]
    assert [page for page, _ in found if page] == [["a"], ["e"]]
    assert not any(counted for _, counted in found)


def test_an_unknown_token_is_rejected(space: Space) -> None:
    refused = space.get("configmaps", limit=2, **{"continue": "abc"}).failure()
    assert (refused["code"], refused["reason"]) == (400, "BadRequest")
    assert refused["message"].startswith("invalid continue token: continue key is not valid: ")


def test_a_token_goes_with_no_version(space: Space) -> None:
    five(space)
    token = space.get("configmaps", limit=2).ok()["metadata"]["continue"]
    refused = space.get("configmaps", resourceVersion="5", **{"continue": token}).failure()
    assert refused == failure(400, "BadRequest", "specifying resource version is not allowed when using continue")


def test_a_limit_that_is_no_number_is_refused(space: Space) -> None:
    refused = space.get("configmaps", limit="x").failure()
    embedded = 'limit: Invalid value: "x": must be an integer'
    assert refused == failure(400, "BadRequest", space.own_words(refused, embedded=embedded))
    assert '"x"' in refused["message"]


def test_a_list_at_an_exact_version_shows_that_moment(space: Space) -> None:
    five(space)
    then = space.get("configmaps").ok()
    space.delete("configmaps/a").ok()
    version = then["metadata"]["resourceVersion"]
    again = space.get("configmaps", resourceVersion=version, resourceVersionMatch="Exact").ok()
    assert again == then


def test_a_list_not_older_than_a_version_shows_at_least_that(space: Space) -> None:
    five(space)
    version = space.get("configmaps").ok()["metadata"]["resourceVersion"]
    space.delete("configmaps/a").ok()
    listed = space.get("configmaps", resourceVersion=version, resourceVersionMatch="NotOlderThan").ok()
    assert int(listed["metadata"]["resourceVersion"]) >= int(version)


def test_a_version_from_the_future_cannot_be_given(space: Space) -> None:
    future = "999999999"
    refused = space.get("configmaps", resourceVersion=future).failure()
    message = f"Timeout: Too large resource version: {future}, current: "
    about = {
        "causes": [{"reason": "ResourceVersionTooLarge", "message": "Too large resource version"}],
        "retryAfterSeconds": 1,
    }
    assert refused["message"].startswith(message)
    assert refused | {"message": ""} == failure(504, "Timeout", "", about=about)


BAD_MATCHES = {
    "unknown": (
        {"resourceVersion": "1", "resourceVersionMatch": "Bogus"},
        'Unsupported value: "Bogus": supported values: "Exact", "NotOlderThan", ""',
        "FieldValueNotSupported",
    ),
    "without a version": (
        {"resourceVersionMatch": "Exact"},
        "Forbidden: resourceVersionMatch is forbidden unless resourceVersion is provided",
        "FieldValueForbidden",
    ),
    "exactly 0": (
        {"resourceVersion": "0", "resourceVersionMatch": "Exact"},
        'Forbidden: resourceVersionMatch "exact" is forbidden for resourceVersion "0"',
        "FieldValueForbidden",
    ),
}


@pytest.mark.parametrize(("query", "why", "reason"), BAD_MATCHES.values(), ids=BAD_MATCHES.keys())
def test_how_to_match_a_version_is_checked(space: Space, query: dict[str, str], why: str, reason: str) -> None:
    refused = space.get("configmaps", **query).failure()
    expected = invalid("ListOptions", "", cause("resourceVersionMatch", why, reason), group="meta.k8s.io")
    assert refused == expected
