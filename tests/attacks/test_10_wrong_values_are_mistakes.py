"""Values of wrong types, of wrong size or with a NUL are mistakes in words, never an internal error."""

from __future__ import annotations

import errno
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from kit import manifests
from kit.asgi_client import Asgi
from kit.fake_sandbox import FakeSandboxes
from kit.manifests import changed
from kit.native_world import job
from kit.pods import config, container, pod, running_agent, wait_for_pod
from kit.volcano_jobs import task, vcjob
from shoal.apiserver.app import build_application
from shoal.cluster.apimachinery import Machinery
from shoal.cluster.embedded import EmbeddedCluster
from shoal.cluster.store import StoreBroken
from shoal.dialects.dialect import definitions_of
from shoal.dialects.volcano import DIALECT as VOLCANO
from shoal.kube.counts import parse_count
from shoal.kube.kinds import POD
from shoal.kube.quantity import BadQuantity, Quantity
from shoal.operator.dialect_registration import admit, install


@pytest.fixture
async def http() -> AsyncIterator[Asgi]:
    cluster = await EmbeddedCluster.open(":memory:")
    await install(cluster, definitions_of(VOLCANO))
    admit(cluster.machinery, [VOLCANO])
    yield Asgi(build_application(cluster, token="let-me-in"), "let-me-in")
    await cluster.close()


EVENT = manifests.event()
NODES, EVENTS, JOBS = "/api/v1/nodes", "/api/v1/namespaces/default/events", "/apis/batch/v1/namespaces/default/jobs"
PODS = "/api/v1/namespaces/default/pods"
OWNER = {"apiVersion": "v1", "kind": "Pod", "name": "a"}
PATTERNS = "spec.podFailurePolicy"
WRONG: dict[str, tuple[str, Any, int, str]] = {
    "node: huge exponent": (NODES, changed(manifests.node(), {"status.allocatable": {"cpu": "1e99999"}}), 400,
                            "unable to parse quantity's suffix"),
    "node: long quantity": (NODES, changed(manifests.node(), {"status.allocatable": {"cpu": "9" * 5000}}), 400,
                            "a quantity has at most 1024 characters"),
    "event: no name": (EVENTS, {"involvedObject": EVENT["involvedObject"]}, 422, "metadata.name: Required value"),
    "event: null": (EVENTS, None, 422, "metadata.name: Required value"),
    "event: name with a slash": (EVENTS, changed(EVENT, {"metadata.name": "a/b"}), 422, "may not contain '/'"),
    "event: owner is null": (EVENTS, changed(EVENT, {"metadata.ownerReferences": [None]}), 422,
                             "metadata.ownerReferences.uid"),
    "event: owner without a uid": (EVENTS, changed(EVENT, {"metadata.ownerReferences": [OWNER]}), 422,
                                   "metadata.ownerReferences.uid"),
    "eviction: wrong metadata": (f"{PODS}/a/eviction", {"metadata": True}, 400, "cannot unmarshal bool into Go"),
    "eviction: wrong options": (f"{PODS}/a/eviction", {"deleteOptions": []}, 400, "cannot unmarshal array into Go"),
    "binding: wrong target": (f"{PODS}/a/binding", {"target": "x"}, 400, "cannot unmarshal string into Go"),
    "review: wrong metadata": ("/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", {"metadata": "x"}, 400,
                               "cannot unmarshal string into Go"),
    "review of oneself: wrong metadata": ("/apis/authentication.k8s.io/v1/selfsubjectreviews", {"metadata": 1}, 400,
                                          "cannot unmarshal number into Go"),
    "job: no name": (JOBS, {"spec": job("a")["spec"]}, 422, "metadata.name: Required value"),
    "job: pod condition without a type": (
        JOBS, changed(job("a"), {PATTERNS: {"rules": [{"action": "Ignore", "onPodConditions": [{}]}]}}), 422,
        "spec.podFailurePolicy.rules[0].onPodConditions[0].type: Invalid value"),
    "job: pod condition of no status": (
        JOBS, changed(job("a"), {PATTERNS: {"rules": [
            {"action": "Ignore", "onPodConditions": [{"type": "A", "status": "x"}]}]}}), 422,
        'spec.podFailurePolicy.rules[0].onPodConditions[0].status: Unsupported value: "x"'),
}  # fmt: skip


@pytest.mark.parametrize(("collection", "obj", "code", "message"), WRONG.values(), ids=WRONG)
async def test_it_is_a_mistake(http: Asgi, collection: str, obj: Any, code: int, message: str) -> None:
    answer = await http("POST", collection, obj)
    assert (answer.status, message in answer.json["message"]) == (code, True), answer.body


@pytest.mark.parametrize("form", [{"accept": "application/yaml"}, {"user-agent": "curl/8"}], ids=["YAML", "indented"])
async def test_an_answer_without_a_body_has_none_in_every_form(http: Asgi, form: dict[str, str]) -> None:
    answer = await http("OPTIONS", PODS, b"", form)
    assert (answer.status, answer.body) == (204, b""), answer.body


async def test_a_path_with_thousands_of_watches_leads_nowhere(http: Asgi) -> None:
    answer = await http("GET", "/api/v1/" + "watch/" * 10_000 + "pods")
    assert answer.status == 404, answer.body


async def test_a_version_of_thousands_of_digits_is_a_mistake(http: Asgi) -> None:
    answer = await http("GET", NODES, resourceVersion="9" * 5000)
    assert (answer.status, "must be an integer from 0 to 2^64-1" in answer.json["message"]) == (400, True), answer.body


async def test_a_patch_that_makes_metadata_text_is_a_mistake(http: Asgi) -> None:
    jobs = "/apis/batch.volcano.sh/v1alpha1/namespaces/default/jobs"
    assert (await http("POST", jobs, vcjob("v", task("t")))).status == 201
    patch = [{"op": "replace", "path": path, "value": "x"} for path in ("/metadata", "/kind")]
    answer = await http("PATCH", f"{jobs}/v", patch, {"content-type": "application/json-patch+json"})
    assert answer.status == 422, answer.body


@pytest.mark.parametrize("text", ["9" * 10_000_000, "0." + "1" * 10_000_000, "1e" + "1" * 10_000_000])
def test_ten_megabytes_are_no_quantity(text: str) -> None:
    with pytest.raises(BadQuantity, match="at most 1024 characters"):
        Quantity.parse(text)


async def test_warnings_of_many_tasks_fit_into_the_header(http: Asgi) -> None:
    tasks = [{**task(f"t{n}"), "policies": [{"event": "JobUpdated", "action": "AbortJob"}]} for n in range(200)]
    answer = await http("POST", "/apis/batch.volcano.sh/v1alpha1/namespaces/default/jobs", vcjob("v", *tasks))
    assert answer.status == 201, answer.body[:500]
    warnings = answer.all_of("warning")
    assert (len(warnings) > 10, sum(map(len, warnings)) < 8192) == (True, True)
    assert warnings[-1].endswith(' more warnings are not shown"')


@pytest.mark.parametrize("field", ["subPath", "mountPath"])
async def test_a_nul_in_a_path_keeps_a_container_waiting_with_a_reason(field: str, tmp_path: Path) -> None:
    mount = {"name": "v", "mountPath": "/data", field: "a\0b"}
    made = pod("p", container("main", volumeMounts=[mount]), volumes=[{"name": "v", "emptyDir": {}}])
    cluster = await EmbeddedCluster.open(":memory:")
    async with running_agent(cluster, FakeSandboxes(), config(tmp_path)):
        await cluster.create(POD, made, "default")
        held = await wait_for_pod(cluster, "p", lambda found: "CreateContainerConfigError" in str(found))
    await cluster.close()
    assert "contains a NUL byte" in str(held)


async def test_an_empty_store_is_damaged_not_new(tmp_path: Path) -> None:
    path = tmp_path / "store.db"
    Machinery.open(path).close()
    path.write_bytes(b"")
    with pytest.raises(StoreBroken, match=r"is there and holds nothing: what the cluster stored is lost\. Restore"):
        Machinery.open(path)
    assert path.read_bytes() == b""


def test_a_store_is_made_where_files_have_no_second_names(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise PermissionError(errno.EPERM, "Operation not permitted")

    monkeypatch.setattr(Path, "hardlink_to", refuse)
    path = tmp_path / "store.db"
    Machinery.open(path).close()
    Machinery.open(path).close()
    assert (list(tmp_path.iterdir()), path.stat().st_mode & 0o777) == ([path], 0o600)


@pytest.mark.parametrize(
    ("text", "count"),
    [
        ("12", 12),
        ("007", 7),
        ("", None),
        (None, None),
        ("-1", None),
        ("٣", None),
        ("9" * 18, 10**18 - 1),
        ("9" * 5000, None),
    ],
    ids=lambda value: str(value)[:6],
)
def test_a_count_in_an_annotation_is_a_number_of_64_bits_or_none(text: str | None, count: int | None) -> None:
    assert parse_count(text) == count
