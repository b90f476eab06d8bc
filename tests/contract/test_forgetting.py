"""Versions a server no longer keeps: 410, and how a client goes on."""

from __future__ import annotations

import base64
import json
import re

from kit.api_objects import config_map, failure, names
from kit.raw_api import Space

FORGOTTEN = 2


def test_a_watch_from_an_expired_version_ends_with_an_error_event(space: Space, fleet: str) -> None:
    with space.watch("boats", group=f"{fleet}/v1", resourceVersion="1") as watch:
        (event,) = watch
    message = event["object"]["message"]
    assert re.fullmatch(r"too old resource version: 1 \(\d+\)", message)
    assert event == {"type": "ERROR", "object": failure(410, "Expired", message)}


def test_a_list_at_an_expired_version_is_rejected(space: Space) -> None:
    refused = space.get("configmaps", resourceVersion=FORGOTTEN, resourceVersionMatch="Exact").failure()
    assert refused == failure(410, "Expired", "The resourceVersion for the provided list is too old.")


def older(token: str) -> str:
    """The token of a list that began long ago: the same place at a forgotten version."""
    decoded_token = json.loads(base64.urlsafe_b64decode(token + "=" * (-len(token) % 4))) | {"rv": FORGOTTEN}
    return base64.urlsafe_b64encode(json.dumps(decoded_token).encode()).decode().rstrip("=")


def test_a_list_that_took_too_long_is_refused_with_a_way_to_go_on(space: Space) -> None:
    for name in "abc":
        space.post("configmaps", config_map(name)).ok()
    token = space.get("configmaps", limit=2).ok()["metadata"]["continue"]
    refused = space.get("configmaps", **{"continue": older(token)}).failure()
    onward = refused["metadata"].pop("continue")
    message = (
        "The provided continue parameter is too old to display a consistent list result. You can start a new list "
        "without the continue parameter, or use the continue token in this response to retrieve the remainder of the "
        "results. Continuing with the provided token results in an inconsistent list - objects that were created, "
        "modified, or deleted between the time the first chunk was returned and now may show up in the list."
    )
    assert refused == failure(410, "Expired", message)
    assert names(space.get("configmaps", **{"continue": onward}).ok()) == ["c"]
