"""Rules about PodGroups and Queues on a real API server: of one object by its definition, the rest by the webhook."""

from __future__ import annotations

from typing import Any

import pytest

from kit.operator_namespace import Ground
from kit.webhook_operator import webhook
from shoal.kube.errors import ApiError
from shoal.kube.kinds import Kind
from shoal.kube.objects import Obj
from shoal.scheduler.api.pod_groups import BELOW_ZERO, ONE_TIER, POD_GROUP, QUEUE

pytestmark = pytest.mark.kubernetes


async def refusal(ground: Ground, kind: Kind, name: str, labels: dict[str, str] | None = None, **spec: Any) -> str:
    """What the server says of it; '' where it lets it in."""
    obj: Obj = {"metadata": {"name": name, "labels": labels or {}}, "spec": spec}
    try:
        await ground.admin.create(kind, obj, ground.jobs if kind.namespaced else "", dry_run=True)
    except ApiError as refused:
        return refused.message
    return ""


async def test_what_an_object_breaks_by_itself_its_definition_refuses(ground: Ground) -> None:
    await ground.install(scheduler=True)
    both = {"highestTierAllowed": 1, "highestTierName": "rack"}
    wrong = {
        ONE_TIER: (POD_GROUP, {"networkTopology": both}),
        BELOW_ZERO: (POD_GROUP, {"minResources": {"cpu": 1, "memory": "-1Gi"}}),
        f"spec.capability: Invalid value: {BELOW_ZERO}": (QUEUE, {"capability": {"cpu": -1}}),
        "queue q would be below itself; choose another parent than q": (QUEUE, {"parent": "q"}),
    }
    told = {words: await refusal(ground, kind, "q", **spec) for words, (kind, spec) in wrong.items()}
    assert [words for words, said in told.items() if words.rpartition(": ")[2] not in said] == []
    right = {"minResources": {"cpu": 1, "memory": "1Gi"}, "networkTopology": {"highestTierName": "rack"}}
    assert await refusal(ground, POD_GROUP, "g", **right) == ""
    assert await refusal(ground, QUEUE, "q", parent="root", deserved={"cpu": "1500m"}) == ""


async def test_what_it_breaks_among_others_the_webhook_refuses(ground: Ground) -> None:
    own = {"test.shoal.dev/of": ground.jobs}
    name = f"q-{ground.jobs}"
    async with webhook(ground, scheduler=True, labels=own):
        told = [
            await refusal(ground, QUEUE, name, own, guarantee={"resource": {"cpu": "2"}}),
            await refusal(ground, QUEUE, name, own, parent="nobody"),
            await refusal(ground, POD_GROUP, "g", own, queue="nowhere"),
        ]
        await ground.admin.create(QUEUE, {"metadata": {"name": name, "labels": own}, "spec": {}})
        status = {"status": {"allocated": {"cpu": "1"}}}
        await ground.admin.patch(QUEUE, name, patch=status, subresource="status")
        with pytest.raises(ApiError) as kept:
            await ground.admin.delete(QUEUE, name)
    await ground.admin.delete(QUEUE, name)
    wanted = [
        f"queue {name}: guarantee of cpu is 2, more than deserved 0; lower guarantee or raise deserved",
        f"queue {name}: parent 'nobody' does not exist; create it first",
        "queue nowhere does not exist; create it or name another",
        f"queue {name} runs pods; close it and wait until they have ended",
    ]
    assert [words for words, said in zip(wanted, [*told, kept.value.message], strict=True) if words not in said] == []
