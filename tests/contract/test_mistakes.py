"""Mistaken objects and mistaken changes: both servers find every mistake and say the same about it.

The tables are those the rules of `shoal.kube.validation` are tested with. Mistaken objects are sent as a dry
run; for a change the object is made first. Causes are compared as a list, and neither server may refuse
sooner and for another reason.
"""

from __future__ import annotations

import pytest

from kit.manifests import changed
from kit.raw_api import Answer, Api
from kit.validation_tables import Mistake, mistakes

TABLES = (
    "containers", "environments", "volumes", "resources", "probes", "placement", "pods", "services", "config",
    "storage", "cluster", "events",
)  # fmt: skip
# Objects a real server refuses before it looks closer: the account they name does not exist there.
ACCOUNTS = ("service account", "token too short", "token without path")


@pytest.mark.parametrize("table", TABLES)
def test_every_cause_of_an_object_is_listed_at_once(server: Api, table: str) -> None:
    cases = [each for each in mistakes(table) if each.id.partition(": ")[2] not in ACCOUNTS]
    assert {each.id: created(server, each) for each in cases} == {each.id: each.causes for each in cases}


@pytest.mark.parametrize("table", ["changes_of_pods", "changes_of_others"])
def test_every_cause_of_a_change_is_listed_at_once(server: Api, table: str, unique_name: str) -> None:
    cases = mistakes(table)
    found = {each.id: edited(server, each, f"{unique_name}-{number}") for number, each in enumerate(cases)}
    assert found == {each.id: each.causes for each in cases}


def created(server: Api, mistake: Mistake) -> list[str]:
    sent = {"apiVersion": mistake.kind.api_version, "kind": mistake.kind.kind, **mistake.second}
    return causes(server.post(collection(mistake), sent, dryRun="All"))


def edited(server: Api, mistake: Mistake, name: str) -> list[str]:
    first = changed(mistake.first, {"metadata.name": name})
    sent = {"apiVersion": mistake.kind.api_version, "kind": mistake.kind.kind, **first}
    stored = server.post(collection(mistake), sent).ok()
    path = f"{collection(mistake)}/{name}"
    below = f"{path}/{mistake.subresource}" if mistake.subresource else path
    answer = server.put(below, changed(stored, mistake.change), dryRun="All")
    server.delete(path, gracePeriodSeconds=0).ok()
    return causes(answer)


def collection(mistake: Mistake) -> str:
    kind = mistake.kind
    base = f"/apis/{kind.group}/{kind.version}" if kind.group else f"/api/{kind.version}"
    return f"{base}/namespaces/default/{kind.plural}" if kind.namespaced else f"{base}/{kind.plural}"


def causes(answer: Answer) -> list[str]:
    """What was refused, each cause once: a real server repeats those of the metadata of a change."""
    if answer.status < 300:
        return []
    found = answer.failure()
    assert (found["code"], found["reason"]) == (422, "Invalid"), found["message"]
    listed = (f"{cause['field']}: {cause['message']}" for cause in found["details"]["causes"])
    return list(dict.fromkeys(text.partition("\n")[0] for text in listed))  # a difference may follow on further lines
