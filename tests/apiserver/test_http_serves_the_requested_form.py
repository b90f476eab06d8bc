"""The same object as JSON, as YAML, indented, compressed, as a Table or as metadata alone."""

from __future__ import annotations

import gzip
import json
from typing import Any

import pytest
import yaml

from kit.asgi_client import Asgi

MAPS = "/api/v1/namespaces/default/configmaps"
TABLE = {"accept": "application/json;as=Table;v=v1;g=meta.k8s.io"}
METADATA = {"accept": "application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io"}
METADATA_LIST = {"accept": "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io"}


@pytest.fixture
async def made(http: Asgi) -> dict[str, Any]:
    obj: dict[str, Any] = (await http("POST", MAPS, {"metadata": {"name": "a"}, "data": {"k": "v"}})).json
    return obj


async def test_create_answers_201_with_the_object(http: Asgi, made: dict[str, Any]) -> None:
    assert (made["apiVersion"], made["kind"], made["data"]) == ("v1", "ConfigMap", {"k": "v"})
    assert (await http("GET", f"{MAPS}/a")).json == made


async def test_yaml_goes_both_ways(http: Asgi) -> None:
    body = b"apiVersion: v1\nkind: ConfigMap\nmetadata: {name: form}\ndata: {when: '2020-01-01', day: '1'}\n"
    answer = await http("POST", MAPS, body, {"content-type": "application/yaml", "accept": "application/yaml"})
    assert (answer.status, answer.header("content-type")) == (201, "application/yaml")
    assert yaml.safe_load(answer.body)["data"] == {"when": "2020-01-01", "day": "1"}


@pytest.mark.parametrize(
    ("headers", "query", "indented"),
    [({}, {}, False), ({}, {"pretty": "true"}, True), ({"user-agent": "curl/8"}, {}, True),
     ({"user-agent": "curl/8"}, {"pretty": "false"}, False)],
    ids=["program", "asked", "curl", "curl, not asked"],
)  # fmt: skip
async def test_browsers_and_curl_get_indented_json(
    http: Asgi, made: dict[str, Any], headers: dict[str, str], query: dict[str, str], indented: bool
) -> None:
    answer = await http("GET", f"{MAPS}/a", headers=headers, **query)
    assert (b'\n  "kind": "ConfigMap"' in answer.body) == indented
    assert answer.json == made


async def test_a_long_list_is_compressed_for_those_who_can_read_it(http: Asgi) -> None:
    for number in range(4):
        await http("POST", MAPS, {"metadata": {"name": f"m{number}"}, "data": {"k": "v" * 40_000}})
    plain = await http("GET", MAPS)
    packed = await http("GET", MAPS, headers={"accept-encoding": "gzip"})
    assert (plain.header("content-encoding"), packed.header("content-encoding")) == (None, "gzip")
    assert gzip.decompress(packed.body) == plain.body
    assert len(packed.body) < len(plain.body) / 50
    assert (await http("GET", f"{MAPS}/m0", headers={"accept-encoding": "gzip"})).header("content-encoding") is None


async def test_head_is_get_without_the_body(http: Asgi, made: dict[str, Any]) -> None:
    got, head = await http("GET", f"{MAPS}/a"), await http("HEAD", f"{MAPS}/a")
    assert (head.status, head.body, head.header("content-length")) == (200, b"", str(len(got.body)))


async def test_a_table_of_one_object(http: Asgi, made: dict[str, Any]) -> None:
    table = (await http("GET", f"{MAPS}/a", headers=TABLE)).json
    assert [column["name"] for column in table["columnDefinitions"]] == ["Name", "Data", "Age"]
    assert table["columnDefinitions"][0]["format"] == "name"
    assert (table["kind"], table["apiVersion"]) == ("Table", "meta.k8s.io/v1")
    assert table["metadata"] == {"resourceVersion": made["metadata"]["resourceVersion"]}
    [row] = table["rows"]
    assert row["cells"][:2] == ["a", 1]
    meta = {"kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1", "metadata": made["metadata"]}
    assert row["object"] == meta


@pytest.mark.parametrize("include", ["Object", "None"])
async def test_rows_carry_the_requested_object(http: Asgi, made: dict[str, Any], include: str) -> None:
    [row] = (await http("GET", MAPS, headers=TABLE, includeObject=include)).json["rows"]
    assert row.get("object") == (made if include == "Object" else None)


async def test_a_table_of_a_page_has_a_continue_token(http: Asgi, made: dict[str, Any]) -> None:
    await http("POST", MAPS, {"metadata": {"name": "b"}})
    table = (await http("GET", MAPS, headers=TABLE, limit="1")).json
    assert len(table["rows"]) == 1
    assert table["metadata"]["remainingItemCount"] == 1
    rest = (await http("GET", MAPS, headers=TABLE, **{"continue": table["metadata"]["continue"]})).json
    assert [row["cells"][0] for row in rest["rows"]] == ["b"]


async def test_metadata_without_the_rest(http: Asgi, made: dict[str, Any]) -> None:
    alone = {"kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1", "metadata": made["metadata"]}
    assert (await http("GET", f"{MAPS}/a", headers=METADATA)).json == alone
    listed = (await http("GET", MAPS, headers=METADATA_LIST)).json
    assert (listed["kind"], listed["items"]) == ("PartialObjectMetadataList", [alone])


async def test_a_shape_that_does_not_fit_is_refused(http: Asgi, made: dict[str, Any]) -> None:
    assert (await http("GET", MAPS, headers=METADATA)).status == 406
    assert (await http("GET", f"{MAPS}/a", headers=METADATA_LIST)).status == 406


async def test_delete_answers_with_a_status_or_the_object(http: Asgi, made: dict[str, Any]) -> None:
    gone = await http("DELETE", f"{MAPS}/a")
    assert (gone.status, gone.json) == (
        200,
        {
            "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success",
            "details": {"name": "a", "kind": "configmaps", "uid": made["metadata"]["uid"]},
        },
    )  # fmt: skip
    held = {"metadata": {"name": "held", "finalizers": ["example.com/x"]}}
    await http("POST", MAPS, held)
    lingering = await http("DELETE", f"{MAPS}/held")
    assert lingering.json["metadata"]["deletionTimestamp"]


async def test_a_deleted_collection_is_listed(http: Asgi, made: dict[str, Any]) -> None:
    answer = await http("DELETE", MAPS)
    assert (answer.json["kind"], [item["metadata"]["name"] for item in answer.json["items"]]) == (
        "ConfigMapList",
        ["a"],
    )
    assert (await http("GET", MAPS)).json["items"] == []


async def test_an_unknown_field_is_warned_of(http: Asgi) -> None:
    answer = await http("POST", MAPS, {"metadata": {"name": "w"}, "colour": "red"})
    assert answer.all_of("warning") == ['299 - "unknown field \\"colour\\""']


async def test_protobuf_is_read_and_json_answered(http: Asgi) -> None:
    raw = bytes.fromhex(
        "6b3873000a0f0a02763112094e616d657370616365121b0a130a03666f6f12001a0022002a0032003800420012001a020a001a002200"
    )
    accept = "application/vnd.kubernetes.protobuf,application/json"
    headers = {"content-type": "application/vnd.kubernetes.protobuf", "accept": accept}
    answer = await http("POST", "/api/v1/namespaces", raw, headers)
    assert (answer.status, answer.json["metadata"]["name"]) == (201, "foo")


async def test_the_field_manager_is_taken_from_the_user_agent(http: Asgi) -> None:
    answer = await http("POST", MAPS, {"metadata": {"name": "u"}, "data": {"a": "b"}}, {"user-agent": "robot/1.0 (x)"})
    assert [entry["manager"] for entry in answer.json["metadata"]["managedFields"]] == ["robot"]


async def test_the_body_of_a_list_is_valid_json_however_it_was_joined(http: Asgi) -> None:
    assert json.loads((await http("GET", "/api/v1/pods")).body)["items"] == []
