"""Lists: in key order, selected, in pages that all show the moment of the first."""

from __future__ import annotations

import pytest

from kit.cluster_objects import config_map, define, key, machinery, names, obj, pod, refusal
from shoal.cluster.client import PatchType
from shoal.cluster.types import ListOptions
from shoal.kube import kinds
from shoal.kube.errors import ApiError


@pytest.fixture
def cluster():
    made = machinery()
    for name in ("c", "a", "e", "b", "d"):
        made.create(kinds.CONFIG_MAP, "default", config_map(name, labels={"half": "1" if name < "c" else "2"}))
    return made


def listed(cluster, **options):
    return cluster.list(kinds.CONFIG_MAP, "default", ListOptions(**options))


def test_a_list_is_in_key_order_under_the_newest_version(cluster):
    page = listed(cluster)
    assert (names(page), page.revision, page.continue_token, page.remaining) == (
        ["a", "b", "c", "d", "e"], cluster.store.revision, "", None,
    )  # fmt: skip


def test_namespaces_sort_as_etcd_sorts_their_keys():
    cluster = machinery()
    for namespace in ("a", "a-b", "ab"):
        cluster.create(kinds.NAMESPACE, "", obj(namespace))
        cluster.create(kinds.CONFIG_MAP, namespace, config_map("x"))
    assert [s.key.namespace for s in cluster.list(kinds.CONFIG_MAP).items] == ["a-b", "a", "ab"]
    assert names(cluster.list(kinds.CONFIG_MAP, "a")) == ["x"]


def test_pages_add_up_to_the_list_and_count_the_remaining_items(cluster):
    pages, token = [], ""
    while True:
        page = listed(cluster, limit=2, continue_token=token)
        pages.append((names(page), page.remaining))
        token = page.continue_token
        if not token:
            break
    assert pages == [(["a", "b"], 3), (["c", "d"], 1), (["e"], None)]


def test_later_pages_show_the_moment_of_the_first(cluster):
    first = listed(cluster, limit=2)
    cluster.delete(kinds.CONFIG_MAP, key("c"))
    cluster.create(kinds.CONFIG_MAP, "default", config_map("bb"))
    cluster.patch(kinds.CONFIG_MAP, key("d"), {"data": {"mode": "new"}}, PatchType.MERGE)
    rest = listed(cluster, continue_token=first.continue_token)
    assert [(s.key.name, s.obj()["data"]["mode"]) for s in rest.items] == [("c", "fast"), ("d", "fast"), ("e", "fast")]
    assert rest.revision == first.revision


def test_what_remains_is_not_counted_for_a_selection(cluster):
    page = listed(cluster, limit=1, labels="half=1")
    assert (names(page), page.remaining, bool(page.continue_token)) == (["a"], None, True)


def test_a_token_of_a_compacted_revision_is_410_with_an_inconsistent_token(cluster):
    first = listed(cluster, limit=2)
    cluster.create(kinds.CONFIG_MAP, "default", config_map("bb"))
    cluster.store.compact()
    with pytest.raises(ApiError) as caught:
        listed(cluster, continue_token=first.continue_token)
    status = caught.value.status()
    assert (status["code"], status["reason"]) == (410, "Expired")
    assert names(listed(cluster, continue_token=status["metadata"]["continue"])) == ["bb", "c", "d", "e"]


def test_an_older_state_can_be_listed_exactly(cluster):
    then = cluster.store.revision
    cluster.delete(kinds.CONFIG_MAP, key("a"))
    cluster.patch(kinds.CONFIG_MAP, key("b"), {"metadata": {"labels": {"half": "9"}}}, PatchType.MERGE)
    exact = ListOptions(resource_version=str(then), resource_version_match="Exact", labels="half=1")
    assert names(cluster.list(kinds.CONFIG_MAP, "default", exact)) == ["a", "b"]
    newer = ListOptions(resource_version=str(then), resource_version_match="NotOlderThan")
    assert names(cluster.list(kinds.CONFIG_MAP, "default", newer)) == ["b", "c", "d", "e"]


def test_a_version_of_the_future_is_too_large(cluster):
    now = cluster.store.revision
    assert refusal(listed, cluster, resource_version=str(now + 1)) == (
        504, "Timeout", f"Timeout: Too large resource version: {now + 1}, current: {now}",
    )  # fmt: skip


@pytest.mark.parametrize(
    ("options", "code"),
    [
        ({"continue_token": "!!"}, 400),
        ({"continue_token": "bm9uc2Vuc2U"}, 400),
        ({"resource_version": "x"}, 400),
        ({"resource_version": "-1"}, 400),
        ({"labels": "a in b"}, 400),
        ({"fields": "metadata.name"}, 400),
        ({"resource_version_match": "Exact"}, 422),
        ({"resource_version": "1", "resource_version_match": "Nearly"}, 422),
    ],
    ids=str,
)
def test_bad_options_are_refused(cluster, options, code):
    assert refusal(listed, cluster, **options)[0] == code


@pytest.mark.parametrize(
    ("kind", "text", "message"),
    [
        (kinds.POD, "spec.image=x", "field label not supported: spec.image"),
        (kinds.NODE, "metadata.namespace=x", "field label not supported: metadata.namespace"),
        (
            kinds.CONFIG_MAP, "data.x=y",
            '"data.x" is not a known field selector: only "metadata.name", "metadata.namespace"',
        ),
    ],
    ids=["a pod field nobody indexes", "a namespace of a node", "a config map"],
)  # fmt: skip
def test_fields_that_cannot_be_selected_are_named(kind, text, message):
    assert refusal(machinery().list, kind, None, ListOptions(fields=text)) == (400, "BadRequest", message)


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("metadata.name=p", ["p"]),
        ("metadata.name!=p", ["q", "r"]),
        ("spec.nodeName=n1", ["q"]),
        ("spec.nodeName=", ["p", "r"]),
        ("status.phase=Running", ["r"]),
        ("status.phase!=Running,spec.nodeName=n1", ["q"]),
        ("spec.restartPolicy=Always", ["p", "q", "r"]),
        ("spec.hostNetwork=false", ["p", "q", "r"]),
    ],
)
def test_pods_are_selected_by_field(text, found):
    cluster = machinery()
    for made in (pod("p"), pod("q", node="n1"), pod("r")):
        cluster.create(kinds.POD, "default", made)
    cluster.patch(kinds.POD, key("r"), {"status": {"phase": "Running"}}, PatchType.MERGE, subresource="status")
    assert names(cluster.list(kinds.POD, "default", ListOptions(fields=text))) == found


def test_custom_kinds_are_selected_by_the_fields_their_definition_names():
    cluster = machinery()
    widget = define(cluster)
    where = key("widgets.example.com", "")
    versions = cluster.get(kinds.CUSTOM_RESOURCE_DEFINITION, where).obj()["spec"]["versions"]
    change = {"spec": {"versions": [{**v, "selectableFields": [{"jsonPath": ".spec.colour"}]} for v in versions]}}
    for name, colour in (("w", "red"), ("x", "blue")):
        cluster.create(widget, "default", obj(name, spec={"colour": colour}))
    cluster.patch(kinds.CUSTOM_RESOURCE_DEFINITION, where, change, PatchType.MERGE)
    widget = cluster.find("example.com", "v1", "widgets")
    assert names(cluster.list(widget, "default", ListOptions(fields="spec.colour=red"))) == ["w"]
