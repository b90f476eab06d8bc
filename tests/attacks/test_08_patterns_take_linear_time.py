"""Patterns of tenants take time linear in the text they search, and bounded memory, wherever they are used.

A backtracking engine would need 2**50000 steps for these: the tests end, or never do.
"""

from __future__ import annotations

from typing import Any

import pytest

from kit.asgi_client import Asgi
from shoal.apiserver.app import build_application
from shoal.cluster.embedded import EmbeddedCluster
from shoal.dialects.framework.settings import settings
from shoal.kube import kinds
from shoal.kube.re2 import BadPattern, compiled
from shoal.scheduler.api.hypernodes import check
from shoal.scheduler.cache.hypernode_domains import selected_members

PATTERNS = ["^(a+)+$", "^(a|a)*$", "^(a*)*b$", "(.*a){20}$", "^(a|aa)+$"]
TEXT = "a" * 50_000 + "!"


@pytest.mark.parametrize("pattern", PATTERNS)
def test_a_pattern_is_searched_in_linear_time(pattern: str) -> None:
    assert not compiled(pattern).matches(TEXT)


@pytest.mark.parametrize("pattern", ["((a{100}){100}){100}", "a{1001}", r"(\pL{100}){10}{10}"])
def test_a_pattern_that_expands_without_bound_is_refused(pattern: str) -> None:
    with pytest.raises(BadPattern):
        compiled(pattern)


def gadgets(pattern: str) -> dict[str, Any]:
    schema = {"type": "object", "properties": {"text": {"type": "string", "pattern": pattern}}}
    return {
        "metadata": {"name": "gadgets.example.com"},
        "spec": {
            "group": "example.com", "scope": "Namespaced", "names": {"plural": "gadgets", "kind": "Gadget"},
            "versions": [{"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}],
        },
    }  # fmt: skip


async def test_an_object_of_a_definition_with_such_a_pattern_is_judged() -> None:
    cluster = await EmbeddedCluster.open(":memory:")
    http = Asgi(build_application(cluster, token="let-me-in"), "let-me-in")
    await cluster.create(kinds.CUSTOM_RESOURCE_DEFINITION, gadgets("^(a+)+$"))
    gadget = {"apiVersion": "example.com/v1", "kind": "Gadget", "metadata": {"name": "a"}, "text": TEXT}
    answer = await http("POST", "/apis/example.com/v1/namespaces/default/gadgets", gadget)
    await cluster.close()
    assert (answer.status, "text in body should match '^(a+)+$'" in answer.json["message"]) == (422, True)


def test_hypernodes_and_failure_tables_use_the_same_patterns() -> None:
    member = {"type": "Node", "selector": {"regexMatch": {"pattern": "^(a+)+$"}}}
    assert check({"spec": {"members": [member]}}) == []
    assert selected_members(member["selector"], {TEXT: {}, "aa": {}}) == ["aa"]
    read = settings({"podFailureSpec": [{"code": 7, "podPatterns": [{"messageRegex": "^(a+)+$"}]}]})
    assert read.pod_failure_spec[0].pod_patterns[0].message_regex == "^(a+)+$"
