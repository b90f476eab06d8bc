"""Nobody who knows gangs: pods are made at once and placed one by one by whatever scheduler there is."""

from __future__ import annotations

from shoal.dialects.gang_backends.backend import Backend, Standing, use_scheduler
from shoal.dialects.gang_backends.gang import Gang
from shoal.kube.objects import Obj


def none(scheduler: str = "") -> Backend:
    def join(pod: Obj, _: Gang) -> None:
        use_scheduler(pod, scheduler)

    return Backend(
        "none", scheduler, None, lambda _: {}, lambda _: Standing(admitted=True), join,
        leaves_out=lambda gang: ("that its pods belong together",) if gang.least > 1 else (),
    )  # fmt: skip
