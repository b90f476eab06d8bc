"""The webhook on a real API server: its certificate makes itself, jobs are checked and completed as they come."""

from __future__ import annotations

import asyncio
from copy import deepcopy
from dataclasses import replace

import pytest

from kit import audited_control_plane
from kit.eventually import answer_becomes
from kit.framework_notation import fw, role
from kit.operator_namespace import Ground, until
from kit.operator_process import rights_without, user_of
from kit.recording_cluster import Call, Noting, first
from kit.webhook_operator import impossible, is_trusted, webhook
from shoal.cluster.kubeconfig import from_kubeconfig
from shoal.cluster.kubernetes import open_client
from shoal.controller_runtime.preflight import PreflightError, check_permissions
from shoal.controller_runtime.rights import Permission
from shoal.dialects.framework import DIALECT
from shoal.install.manifests import render
from shoal.kube.errors import ApiError
from shoal.kube.kinds import SECRET, Kind
from shoal.operator.rbac import MUTATING, VALIDATING, secret_rights, webhook_rights
from shoal.operator.webhook_certs import CertificatePair, Certifier

pytestmark = pytest.mark.kubernetes

RIGHTS = [*secret_rights("s"), *webhook_rights("w")]


async def test_jobs_are_refused_with_every_mistake_and_completed(ground: Ground) -> None:
    async with webhook(ground):
        with pytest.raises(ApiError) as refused:
            await ground.submit(impossible("wrong"))
        made = await ground.submit(fw("right", role()))
    mistakes = DIALECT.validate(impossible("wrong"))
    assert refused.value.code == 422
    assert [(cause.field, cause.message) for cause in refused.value.causes] == [
        (mistake.field, mistake.message) for mistake in mistakes
    ]
    assert made["spec"] == DIALECT.default(fw("right", role()))["spec"]


async def test_the_certificate_is_for_the_names_it_is_called_by_and_trusted(ground: Ground) -> None:
    async with webhook(ground):
        secret = await ground.admin.get(SECRET, f"{ground.options.name}-webhook", ground.own)
        configuration = await ground.admin.get(VALIDATING, ground.options.name)
    pair = CertificatePair.from_secret(secret)
    assert pair is not None
    assert pair.renewal(["127.0.0.1", f"{ground.options.name}.{ground.own}.svc"]).year > 2000
    trusted = configuration["webhooks"][0]["clientConfig"]["caBundle"]
    assert trusted == pair.data()["ca.crt"]


# --- its rights ----------------------------------------------------------------------------------------------------


def call_of(right: Permission) -> Call:
    return right.verb, right.resource


async def certifies(ground: Ground, cluster: Noting) -> None:
    """Everything the webhook ever writes: a certificate into the Secret, and trust in it."""
    certifier = Certifier(ground.options.name, ground.own)

    async def done() -> None:
        for kind in (VALIDATING, MUTATING):
            await until(ground.admin, kind, ground.options.name, None, is_trusted)
        await until(
            ground.admin,
            SECRET,
            certifier.secret_name,
            ground.own,
            lambda found: CertificatePair.from_secret(found) is not None,
        )

    await first(certifier.follow(cluster), certifier.run(cluster), done())  # type: ignore[arg-type]


async def test_the_webhook_uses_every_right_it_has(ground: Ground) -> None:
    await ground.install(webhook=True)
    await settles(ground, RIGHTS, granted=True)
    async with open_client(from_kubeconfig(ground.kubeconfig())) as account:
        cluster = Noting(account)
        await certifies(ground, cluster)
    needed = {call_of(right) for right in RIGHTS}
    watches = {call for call in needed if call[0] == "watch"}

    async def used() -> set[Call]:
        asked = audited_control_plane.requests(ground.plane, user_of(ground.options.name, ground.own))
        return {(entry["verb"], entry["objectRef"]["resource"]) for entry in asked}

    # A watch is recorded when the server has noticed that nobody listens any more.
    calls = await answer_becomes(used, lambda calls: watches <= calls)
    assert cluster.refused == []
    assert calls - {("create", "selfsubjectaccessreviews")} == needed


@pytest.mark.parametrize("right", RIGHTS, ids=str)
async def test_the_webhook_misses_each_right_that_is_taken_away(ground: Ground, right: Permission) -> None:
    await ground.install(webhook=True)
    wanted = (right.group, right.resource, right.verb)
    for obj in rights_without(render(ground.options), lambda *found: found == wanted):
        if obj["kind"] in ROLES:
            kind, place = ROLES[obj["kind"]], obj["metadata"].get("namespace", "")
            await ground.admin.patch(kind, obj["metadata"]["name"], place, patch={"rules": deepcopy(obj["rules"])})
    await settles(ground, [right], granted=False)
    missed = asyncio.Event()
    async with open_client(from_kubeconfig(ground.kubeconfig())) as account:
        cluster = Noting(account, on_refusal=lambda call: missed.set() if call == call_of(right) else None)
        await first(certifies(ground, cluster), missed.wait())
        assert call_of(right) in [call for call, _ in cluster.refused]


ROLES = {
    kind: Kind("rbac.authorization.k8s.io", "v1", kind, plural, kind == "Role")
    for kind, plural in (("Role", "roles"), ("ClusterRole", "clusterroles"))
}


async def settles(ground: Ground, rights: list[Permission], *, granted: bool) -> None:
    """The server learns of roles a moment after they are written, and tells nobody when."""
    name = ground.options.name
    wanted = [
        (ground.own, replace(right, names=(f"{name}-webhook",)))
        if right.resource == "secrets"
        else ("", replace(right, names=(name,)))
        for right in rights
    ]
    async with open_client(from_kubeconfig(ground.kubeconfig())) as account:
        while True:
            try:
                await check_permissions(account, wanted)
            except PreflightError:
                if not granted:
                    return
            else:
                if granted:
                    return
