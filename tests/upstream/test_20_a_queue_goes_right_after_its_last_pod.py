"""A queue is kept for pods that exist, not for what its status still counts."""

from __future__ import annotations

import pytest

from shoal.cluster.apimachinery import MEMORY, Machinery
from shoal.cluster.client import PatchType
from shoal.kube.errors import ApiError
from shoal.kube.kinds import CUSTOM_RESOURCE_DEFINITION, POD
from shoal.kube.objects import Key, Obj
from shoal.scheduler.api.pod_groups import POD_GROUP, QUEUE, definitions
from shoal.scheduler.queue_validation import admit

NAME = Key("", "q")


@pytest.fixture
def machinery() -> Machinery:
    """Queue q, whose status counts one cpu, and the PodGroup g in it."""
    made = Machinery.open(MEMORY)
    for definition in definitions():
        made.create(CUSTOM_RESOURCE_DEFINITION, "", definition)
    admit(made)
    made.create(QUEUE, "", {"metadata": {"name": "q"}, "spec": {}})
    made.patch(QUEUE, NAME, {"status": {"allocated": {"cpu": "1"}}}, PatchType.MERGE, subresource="status")
    made.create(POD_GROUP, "default", {"metadata": {"name": "g"}, "spec": {"queue": "q"}})
    return made


def bound_pod(**annotations: str) -> Obj:
    return {
        "metadata": {"name": "p", "annotations": annotations},
        "spec": {"nodeName": "n", "containers": [{"name": "c", "image": "i"}]},
    }


@pytest.mark.parametrize(
    "annotations",
    [
        pytest.param({"scheduling.k8s.io/group-name": "g"}, id="by its group"),
        pytest.param({"scheduling.volcano.sh/queue-name": "q"}, id="by its annotation"),
    ],
)
def test_20_a_queue_with_a_bound_pod_is_kept(machinery: Machinery, annotations: dict[str, str]):
    machinery.create(POD, "default", bound_pod(**annotations))
    with pytest.raises(ApiError, match="queue q runs pods"):
        machinery.delete(QUEUE, NAME)


def test_20_a_queue_whose_last_pod_is_gone_is_deleted_though_its_status_counts_it(machinery: Machinery):
    machinery.delete(QUEUE, NAME)
    with pytest.raises(ApiError, match="not found"):
        machinery.get(QUEUE, NAME)
