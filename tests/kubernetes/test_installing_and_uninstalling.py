"""`shoal install` on a real control plane: fresh, again, changed, and off again; what others made stays."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from kit.framework_notation import fw, role
from kit.operator_namespace import FRAMEWORK, Ground, until
from kit.pod_behavior import runs
from kit.shoal_command import shoal
from shoal.cluster.client import PatchType
from shoal.controller_runtime.crd_installer import CrdUnusable, apply_crd
from shoal.install.apply import ApplyResult, install, uninstall
from shoal.install.manifests import definitions
from shoal.kube.errors import ApiError
from shoal.kube.kinds import CUSTOM_RESOURCE_DEFINITION, NAMESPACE, SECRET
from shoal.kube.objects import Obj, name_of

pytestmark = pytest.mark.kubernetes

DEFINITION = "frameworks.frameworkcontroller.microsoft.com"


def actions(told: list[ApplyResult]) -> dict[str, set[str]]:
    """Kinds by what became of them."""
    found: dict[str, set[str]] = {}
    for each in told:
        found.setdefault(each.action, set()).add(each.kind)
    return found


ALWAYS = {
    "Deployment", "NetworkPolicy", "PodDisruptionBudget", "Role", "RoleBinding", "Service", "ServiceAccount",
}  # fmt: skip
WITH_WEBHOOK = {
    "ClusterRole", "ClusterRoleBinding", "MutatingWebhookConfiguration", "Secret", "ValidatingWebhookConfiguration",
}  # fmt: skip


async def test_installing_again_changes_only_what_was_changed(ground: Ground) -> None:
    assert actions(await ground.install()) == {
        "created": {"Namespace", *ALWAYS}, "unchanged": {"CustomResourceDefinition"},
    }  # fmt: skip
    assert actions(await ground.install()) == {"unchanged": {"CustomResourceDefinition", "Namespace", *ALWAYS}}
    with_webhook = actions(await ground.install(webhook=True))
    assert with_webhook["created"] == WITH_WEBHOOK
    assert with_webhook["configured"] == {"Deployment", "NetworkPolicy", "Role", "Service"}
    await ground.admin.patch(SECRET, f"{ground.options.name}-webhook", ground.own, patch={"data": {"tls.key": "AAAA"}})
    assert actions(await ground.install()) == {
        "unchanged": {"CustomResourceDefinition", "Namespace", *ALWAYS, *WITH_WEBHOOK}
    }
    assert actions(await ground.install(webhook=False))["deleted"] == WITH_WEBHOOK


async def test_from_the_command_line_and_off_again(ground: Ground) -> None:
    job = await ground.submit(fw("stays", role(fate=runs())))
    where = ["--kubeconfig", ground.plane.kubeconfig, "-n", ground.own, "--name", ground.options.name]
    tried = await shoal("install", "--image", "i", *where, "--watch-namespace", ground.jobs, "--dry-run")
    assert (tried.code, tried.err, tried.out.splitlines()[-1]) == (0, "", "Nothing was changed.")
    assert await missing(ground, NAMESPACE, ground.own)
    put = await shoal("install", "--image", "i", *where, "--watch-namespace", ground.jobs)
    cluster = f"Cluster: context test at {ground.plane.url}\n"
    assert (put.code, put.err) == (0, cluster)
    assert f"Deployment {ground.options.name} created" in put.out.splitlines()
    taken = await shoal("uninstall", *where)
    assert (taken.code, taken.err) == (0, cluster)
    assert taken.out.splitlines()[0] == f"Deployment {ground.options.name} deleted"
    assert taken.out.splitlines()[-2:] == [f"Namespace {ground.own} deleted", "Uninstalled; kinds and jobs are kept."]
    kept = await ground.admin.get(FRAMEWORK, "stays", ground.jobs)
    assert kept["metadata"]["uid"] == job["metadata"]["uid"]
    await until(ground.admin, NAMESPACE, ground.own, None, lambda found: found is None)
    again = await shoal("uninstall", *where)
    assert (again.code, again.out) == (0, "Uninstalled; kinds and jobs are kept.\n")


async def test_a_namespace_of_others_or_with_jobs_is_kept(ground: Ground) -> None:
    where = ["--kubeconfig", ground.plane.kubeconfig, "--name", ground.options.name]
    put = await shoal("install", "--image", "i", *where, "-n", ground.jobs)
    assert f"Namespace {ground.jobs} left alone: it existed before" in put.out.splitlines()
    taken = await shoal("uninstall", *where, "-n", ground.jobs)
    assert "Namespace" not in taken.out
    await shoal("install", "--image", "i", *where, "-n", ground.own)
    await ground.admin.create(FRAMEWORK, fw("lives", role(fate=runs())), ground.own)
    kept = await shoal("uninstall", *where, "-n", ground.own)
    assert f"Namespace {ground.own} kept: it contains frameworks" in kept.out.splitlines()


async def test_all_kinds_of_the_languages_that_were_served_go_if_they_are_named(ground: Ground) -> None:
    """Only tried out: others use these kinds meanwhile."""
    await ground.install(dialects=("framework", "volcano"))
    told: list[ApplyResult] = []
    unsaid = replace(ground.options, dialects=("framework",))
    await uninstall(ground.admin, unsaid, told.append, crds=True, dry_run=True)
    kinds = [each.name for each in told if each.kind == "CustomResourceDefinition" and each.action != "kept"]
    assert kinds == [name_of(each) for each in definitions(("framework", "volcano"))]


async def test_a_scheduler_in_another_namespace_is_pointed_at(ground: Ground) -> None:
    """Two that do not know of each other would give the same room away twice."""
    await ground.install(scheduler=True)
    told: list[ApplyResult] = []
    elsewhere = replace(ground.options, namespace=f"elsewhere-{ground.own}")
    await install(ground.admin, elsewhere, told.append, dry_run=True)
    ours = f"{ground.own}/{ground.options.name}-scheduler"
    assert [each for each in told if each.name == ours] == [
        ApplyResult(
            "Deployment",
            ours,
            "is a scheduler too",
            f"it places pods of the whole cluster too, so the scheduler in elsewhere-{ground.own} only stands by. Keep "
            "one of them: to remove the other, repeat its installation without --scheduler",
        )
    ]
    assert not [each for each in await ground.install() if each.name == ours]


def renamed(definition: Obj, group: str) -> Obj:
    """The same definition in a group of the test's own, so that others do not see it."""
    name = f"frameworks.{group}"
    return {
        **definition,
        "metadata": {**definition["metadata"], "name": name},
        "spec": {**definition["spec"], "group": group},
    }


async def test_a_definition_of_others_is_used_as_it_is(ground: Ground) -> None:
    (ours,) = definitions(("framework",))
    ours = renamed(ours, f"{ground.jobs}.example.com")
    name = ours["metadata"]["name"]
    theirs: dict[str, Any] = {**ours, "metadata": {"name": name}}
    (version,) = ours["spec"]["versions"]
    schema = {"type": "object", "properties": {"spec": {"type": "object", "properties": {}}, "status": PRESERVED}}
    plain = {key: value for key, value in version.items() if key != "subresources"}
    theirs["spec"] = {**ours["spec"], "versions": [{**plain, "schema": {"openAPIV3Schema": schema}}]}
    theirs["spec"]["versions"][0].pop("additionalPrinterColumns")
    before = await ground.admin.create(CUSTOM_RESOURCE_DEFINITION, theirs)
    try:
        standing = await apply_crd(ground.admin, ours)
        after = await ground.admin.get(CUSTOM_RESOURCE_DEFINITION, name)
    finally:
        await ground.admin.delete(CUSTOM_RESOURCE_DEFINITION, name)
    assert after["spec"] == before["spec"]
    assert (standing.action, standing.has_status) == ("left alone", False)
    assert standing.remark == (
        "it is not Shoal's and stays as it is; "
        "it has no status subresource, so the status is written with the job; "
        "it drops fields that Shoal knows: .spec.description, .spec.executionType, .spec.retryPolicy, .spec.taskRoles"
    )


PRESERVED = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}


async def test_a_missing_definition_is_made_and_later_renewed(ground: Ground) -> None:
    (ours,) = definitions(("framework",))
    ours = renamed(ours, f"{ground.jobs}.example.com")
    name = ours["metadata"]["name"]
    try:
        first = (await apply_crd(ground.admin, ours)).action
        second = (await apply_crd(ground.admin, ours)).action
        older = [{"op": "replace", "path": "/spec/names/shortNames", "value": ["old"]}]
        await ground.admin.patch(CUSTOM_RESOURCE_DEFINITION, name, patch=older, patch_type=PatchType.JSON)
        third = (await apply_crd(ground.admin, ours)).action
    finally:
        await ground.admin.delete(CUSTOM_RESOURCE_DEFINITION, name)
    assert [first, second, third] == ["created", "unchanged", "configured"]


async def test_a_definition_without_our_version_is_refused_in_a_sentence(ground: Ground) -> None:
    (ours,) = definitions(("framework",))
    ours = renamed(ours, f"{ground.jobs}.example.com")
    name = ours["metadata"]["name"]
    (version,) = ours["spec"]["versions"]
    other = {**ours, "metadata": {"name": name}}
    other["spec"] = {**ours["spec"], "versions": [{**version, "name": "v9"}]}
    await ground.admin.create(CUSTOM_RESOURCE_DEFINITION, other)
    try:
        with pytest.raises(CrdUnusable) as refused:
            await apply_crd(ground.admin, ours)
    finally:
        await ground.admin.delete(CUSTOM_RESOURCE_DEFINITION, name)
    assert str(refused.value) == (
        f"the definition {name} in this cluster is not Shoal's and does not serve v1. "
        f"Remove it, or take its language out of --dialects"
    )


async def missing(ground: Ground, kind: Any, name: str) -> bool:
    try:
        await ground.admin.get(kind, name)
    except ApiError as refused:
        return refused.code == 404
    return False
