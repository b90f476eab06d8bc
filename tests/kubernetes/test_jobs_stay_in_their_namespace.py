"""What a manifest says cannot make the operator act elsewhere, and what is secret stays out of sight.

The operator of these tests may act in the whole cluster and serves one class of jobs; the server's record shows where
it did act.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from kit import audited_control_plane
from kit.framework_notation import fw, role
from kit.hollow_nodes import HollowNodes
from kit.operator_namespace import FRAMEWORK, Ground, until
from kit.operator_process import OperatorProcess, operator, user_of
from kit.pod_behavior import exits, runs
from shoal.kube.kinds import CONFIG_MAP, EVENT, NAMESPACE, POD, SECRET, SERVICE_ACCOUNT
from shoal.kube.objects import Obj, name_of

pytestmark = pytest.mark.kubernetes


@pytest.fixture
async def elsewhere(ground: Ground) -> AsyncIterator[str]:
    """A namespace the job has no business in."""
    name = f"else-{ground.jobs}"
    await ground.admin.create(NAMESPACE, {"metadata": {"name": name}})
    await until(ground.admin, SERVICE_ACCOUNT, "default", name, lambda account: account is not None)
    yield name
    await ground.admin.delete(NAMESPACE, name)


@asynccontextmanager
async def everywhere(ground: Ground) -> AsyncIterator[OperatorProcess]:
    """An operator for the whole cluster, which leaves the jobs of other tests alone."""
    await ground.install(watchNamespace="", jobClass=ground.jobs)
    words = ["--name", ground.options.name, "--class", ground.jobs, "--history", "covered"]
    async with operator(ground.kubeconfig(), *words) as running:
        await running.says("leading")
        yield running


def ours(ground: Ground, framework: Obj) -> Obj:
    framework["metadata"]["labels"] = {"shoal.dev/class": ground.jobs}
    return framework


def tempted(template: Obj, **metadata: object) -> Obj:
    return {**template, "metadata": {**template["metadata"], **metadata}}


async def test_names_namespaces_and_owners_in_a_template_lead_nowhere(ground: Ground, elsewhere: str) -> None:
    victim = await ground.admin.create(FRAMEWORK, fw("victim", role(fate=runs())), elsewhere)  # nobody serves it
    owner = {
        "apiVersion": FRAMEWORK.api_version, "kind": "Framework", "name": "victim", "uid": victim["metadata"]["uid"],
    }  # fmt: skip
    stamps = {"FC_FRAMEWORK_NAMESPACE": elsewhere, "FC_FRAMEWORK_NAME": "victim", "FC_FRAMEWORK_UID": owner["uid"]}
    plain = role(fate=runs())
    template = plain["task"]["pod"]
    marks = {**template["metadata"]["annotations"], **stamps}
    plain["task"]["pod"] = tempted(
        template, name="victim-worker-0", namespace=elsewhere, annotations=marks, labels=stamps,
        generateName="../victim-", uid=owner["uid"], resourceVersion="7", deletionTimestamp="2020-01-01T00:00:00Z",
    )  # fmt: skip
    owning = role("owned", fate=exits(0, after=0.05))
    owning["task"]["pod"] = tempted(owning["task"]["pod"], ownerReferences=[owner])
    async with HollowNodes(ground.admin, namespace=ground.jobs).running(), everywhere(ground):
        await ground.submit(ours(ground, fw("tempter", plain, owning)))
        pod = await until(ground.admin, POD, "tempter-worker-0", ground.jobs, lambda found: found is not None)
        assert pod is not None
        assert (pod["metadata"]["namespace"], pod["metadata"]["annotations"]["FC_FRAMEWORK_NAME"]) == (
            ground.jobs, "tempter",
        )  # fmt: skip
        assert pod["metadata"]["uid"] != owner["uid"]
        assert {"generateName", "deletionTimestamp"} & set(pod["metadata"]) == set()
        await until(ground.admin, POD, "tempter-owned-0", ground.jobs, lambda found: found is not None)
        assert (await ground.admin.list(POD, elsewhere)).items == []
    assert places(ground) == {ground.jobs}


async def test_pods_have_the_account_and_the_token_their_template_asks_for(ground: Ground, elsewhere: str) -> None:
    await ground.admin.create(SERVICE_ACCOUNT, {"metadata": {"name": "trainer"}}, ground.jobs)
    await ground.admin.create(SERVICE_ACCOUNT, {"metadata": {"name": "foreign"}}, elsewhere)
    asked = {
        "usual": {},
        "named": {"serviceAccountName": "trainer"},
        "mute": {"automountServiceAccountToken": False},
        "foreign": {"serviceAccountName": "foreign"},  # there is none of that name here
    }
    roles = [role(name, failed=-1, fate=runs(), **spec) for name, spec in asked.items()]
    async with HollowNodes(ground.admin, namespace=ground.jobs).running(), everywhere(ground):
        job = await ground.submit(ours(ground, fw("asks", *roles)))
        pods = {
            name: await until(ground.admin, POD, f"asks-{name}-0", ground.jobs, lambda found: found is not None)
            for name in ("usual", "named", "mute")
        }
        refused = await ground.becomes(job, lambda found: code_of(found, "foreign") is not None)
    assert {name: account_of(pod or {}) for name, pod in pods.items()} == {
        "usual": ("default", True), "named": ("trainer", True), "mute": ("default", False),
    }  # fmt: skip
    assert code_of(refused, "foreign") == -310  # forbidden, as it would be to anybody
    assert places(ground) == {ground.jobs}


def account_of(pod: Obj) -> tuple[str, bool]:
    """The account of a pod, and whether a token of it is put into its containers."""
    mounts = pod["spec"]["containers"][0].get("volumeMounts") or []
    return pod["spec"]["serviceAccountName"], any("serviceaccount" in mount["mountPath"] for mount in mounts)


def code_of(framework: Obj | None, role_name: str) -> int | None:
    """How the only task of a role ended, as far as it has."""
    attempt = ((framework or {}).get("status") or {}).get("attemptStatus") or {}
    for each in attempt.get("taskRoleStatuses") or ():
        if each["name"] == role_name:
            completion = each["taskStatuses"][0]["attemptStatus"]["completionStatus"]
            return completion["code"] if completion else None
    return None


async def test_a_forged_pod_reaches_no_job_elsewhere(ground: Ground, elsewhere: str) -> None:
    """Somebody claims in one namespace to belong to a job in another, and in the same one to a job of others."""
    async with HollowNodes(ground.admin, namespace=elsewhere).running(), everywhere(ground):
        victim = await ground.admin.create(FRAMEWORK, ours(ground, fw("victim", role(fate=runs()))), elsewhere)
        await until(ground.admin, POD, "victim-worker-0", elsewhere, is_running)
        anchor = await ground.admin.get(CONFIG_MAP, "victim-attempt", elsewhere)
        before = await ground.admin.get(POD, "victim-worker-0", elsewhere)
        forged = {name: before["metadata"][name] for name in ("annotations", "labels")}
        forged["name"] = "victim-worker-0"
        forged["ownerReferences"] = [
            {
                "apiVersion": "v1", "kind": "ConfigMap", "name": "victim-attempt", "uid": anchor["metadata"]["uid"],
                "controller": True,
            }
        ]  # fmt: skip
        spec = {"containers": [{"name": "main", "image": "any"}]}
        await ground.admin.create(POD, {"metadata": forged, "spec": spec}, ground.jobs)
        await until(ground.admin, POD, "victim-worker-0", ground.jobs, lambda found: found is None)  # the collector's
        after = await ground.admin.get(POD, "victim-worker-0", elsewhere)
        assert after["metadata"]["uid"] == before["metadata"]["uid"]
        found = await ground.admin.get(FRAMEWORK, "victim", elsewhere)
        assert found["metadata"]["uid"] == victim["metadata"]["uid"]
    assert places(ground) == {elsewhere}


async def test_secrets_reach_neither_log_nor_events_nor_status(ground: Ground) -> None:
    await ground.admin.create(SECRET, {"metadata": {"name": "key"}, "stringData": {"word": "open-sesame"}}, ground.jobs)
    careless = role(number=1, retry=(False, 1), fate=exits(3, after=0.05))
    careless["task"]["pod"]["spec"]["containers"][0]["env"] = [
        {"name": "PASSWORD", "value": "swordfish"},
        {"name": "WORD", "valueFrom": {"secretKeyRef": {"name": "key", "key": "word"}}},
    ]
    refused = role("refused", failed=-1)
    refused["task"]["pod"]["spec"]["containers"] = [
        {**careless["task"]["pod"]["spec"]["containers"][0], "name": "No_Name"}
    ]
    async with HollowNodes(ground.admin, namespace=ground.jobs).running(), everywhere(ground) as running:
        job = await ground.submit(ours(ground, fw("careless", careless, refused)))
        ended = await ground.ends(job)
        await ground.admin.delete(FRAMEWORK, name_of(job), ground.jobs)
        await ground.becomes(job, lambda found: found is None)
        await running.remembers("OnFrameworkDeletion")  # there is a history to look at
        events = (await ground.admin.list(EVENT, ground.jobs)).items
        assert await running.stop() == 0
        log = running.log
    token = (ground.folder / f"{ground.own}-{ground.options.name}.kubeconfig").read_text().split('"token": "')[1][:40]
    shown = log + str(events) + str(ended["status"])
    assert [word for word in ("swordfish", "open-sesame", token) if word in shown] == []
    assert code_of(ended, "refused") == -200  # there was a request that failed


def is_running(pod: Obj | None) -> bool:
    return ((pod or {}).get("status") or {}).get("phase") == "Running"


def places(ground: Ground) -> set[str]:
    """Where the operator wrote anything besides its Lease and its questions."""
    asked = audited_control_plane.requests(ground.plane, user_of(ground.options.name, ground.own))
    targets = [entry["objectRef"] for entry in asked if entry["verb"] not in ("get", "list", "watch")]
    return {
        target.get("namespace", "")
        for target in targets
        if target["resource"] not in ("leases", "selfsubjectaccessreviews")
    }
