"""No gang scheduler: pods are created at once and placed one by one by whatever scheduler there is."""

from __future__ import annotations

from shoal.dialects.gang_backends.backend import Backend, GangStatus, use_scheduler
from shoal.dialects.gang_backends.gang import GangSpec
from shoal.kube.objects import Obj


def none(scheduler: str = "") -> Backend:
    def join(pod: Obj, _: GangSpec) -> None:
        use_scheduler(pod, scheduler)

    return Backend(
        "none", scheduler, None, lambda _: {}, lambda _: GangStatus(admitted=True), join,
        unsupported_fields=lambda gang: ("that its pods belong together",) if gang.minimum > 1 else (),
    )  # fmt: skip
