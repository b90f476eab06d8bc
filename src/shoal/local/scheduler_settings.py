"""What `shoal.yaml` may say about placing pods, under `scheduler:`.

    scheduler:
      sharing: capacity       # queues share by what each deserves; proportion: by weight
      overcommit: 1.5         # groups are let in for so much more than the cluster has
      reserveAfter: 10m       # nodes are kept for a group that has waited so long
      tiers: [topology.kubernetes.io/zone]

Times are seconds, or texts such as 90s and 1h30m. What is left out is as the planner has it.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError

from shoal.kube import names
from shoal.node.config_errors import error_lines
from shoal.scheduler.planner.from_objects import seconds
from shoal.scheduler.planner.gang_types import PlannerSettings

TIME = "a time such as 90s, 10m or 1h30m"
SWITCH = "true or false"


def parse_time(written: Any) -> Any:
    """A number is seconds; what is no time is returned as it is, and reported as any other wrong type."""
    if isinstance(written, str):
        found = seconds(written)
        return written if found is None else found
    return written


def check_label(written: Any) -> Any:
    if isinstance(written, str) and (wrong := names.qualified_name(written)):
        raise ValueError(f": {written!r} is no name of a label or a resource: {wrong[0]}")
    return written


Time = Annotated[float, BeforeValidator(parse_time), Field(ge=0, le=31_536_000)]
Name = Annotated[str, BeforeValidator(check_label)]


# What the planner calls the settings whose names here are shorter.
PLANNERS = {
    "evictWholeGangs": "evict_whole_gangs",
    "evictionAttempts": "eviction_attempts",
    "inqueueTimeout": "inqueue_timeout_seconds",
    "backoff": "backoff_seconds",
    "hold": "hold_seconds",
    "reserveAfter": "starving_seconds",
    "waitingTime": "sla_seconds",
    "acceleratorWeight": "accelerator_weight",
}


class SchedulerSettings(BaseModel):
    """Defaults are the planner's, and stand there."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)

    sharing: Literal["proportion", "capacity"] | None = Field(None, description="proportion or capacity")
    enqueue: bool | None = Field(None, description=SWITCH)
    overcommit: float | None = Field(
        None, ge=1, le=1000, allow_inf_nan=False, description="a number of at least 1, such as 1.2"
    )
    preempt: bool | None = Field(None, description=SWITCH)
    reclaim: bool | None = Field(None, description=SWITCH)
    evictWholeGangs: bool | None = Field(None, description=SWITCH)  # noqa: N815
    evictionAttempts: int | None = Field(  # noqa: N815
        None, ge=1, le=10_000, description="a whole number from 1 to 10000"
    )
    inqueueTimeout: Time | None = Field(None, description=TIME)  # noqa: N815
    backoff: Time | None = Field(None, description=TIME)
    hold: Time | None = Field(None, description=TIME)
    reserveAfter: Time | None = Field(None, description=TIME)  # noqa: N815
    waitingTime: Time | None = Field(None, description=TIME)  # noqa: N815
    profile: Literal["auto", "pack", "spread"] | None = Field(None, description="auto, pack or spread")
    accelerators: list[Name] | None = Field(None, description="names of resources, such as [nvidia.com/gpu]")
    acceleratorWeight: int | None = Field(  # noqa: N815
        None, ge=0, le=1000, description="a whole number from 0 to 1000"
    )
    tiers: list[Name] | None = Field(None, description="labels of nodes, the nearest first")

    def settings(self) -> PlannerSettings:
        given = self.model_dump(exclude_none=True)
        lists = {name: tuple(value) for name, value in given.items() if isinstance(value, list)}
        return PlannerSettings(**{PLANNERS.get(name, name): value for name, value in {**given, **lists}.items()})


def read(written: Any) -> tuple[PlannerSettings, list[str]]:
    """The settings, and every mistake with its path."""
    try:
        return SchedulerSettings.model_validate(written).settings(), []
    except ValidationError as invalid:
        return PlannerSettings(), [f"scheduler{line}" for line in error_lines(invalid, SchedulerSettings)]
