"""`scheduler:` in shoal.yaml: what it sets, every mistake at once, and that options win."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click
import pytest
from click.testing import CliRunner

from shoal.cli.commands import scheduler
from shoal.local.config import load
from shoal.scheduler.manager import SchedulerOptions
from shoal.scheduler.planner.gang_types import PlannerSettings

WHOLE = """
scheduler:
  sharing: capacity
  enqueue: false
  overcommit: 2
  preempt: false
  reclaim: false
  evictWholeGangs: false
  evictionAttempts: 4
  inqueueTimeout: 5m
  backoff: 90
  hold: 1m30s
  reserveAfter: 2h
  waitingTime: 1h
  profile: pack
  accelerators: [acme.io/npu]
  acceleratorWeight: 3
  tiers: [rack, topology.kubernetes.io/zone]
"""


def written(folder: Path, text: str) -> Path:
    file = folder / "shoal.yaml"
    file.write_text(text)
    return file


def test_every_setting_of_the_planner_can_be_given(tmp_path: Path) -> None:
    assert load(written(tmp_path, WHOLE)).settings.scheduler == PlannerSettings(
        sharing="capacity",
        enqueue=False,
        overcommit=2,
        preempt=False,
        reclaim=False,
        evict_whole_gangs=False,
        eviction_attempts=4,
        inqueue_timeout_seconds=300,
        backoff_seconds=90,
        hold_seconds=90,
        starving_seconds=7200,
        sla_seconds=3600,
        profile="pack",
        accelerators=("acme.io/npu",),
        accelerator_weight=3,
        tiers=("rack", "topology.kubernetes.io/zone"),
    )


def test_what_is_left_out_is_as_the_planner_has_it(tmp_path: Path) -> None:
    assert load(written(tmp_path, "scheduler: {hold: 5, tiers: }")).settings.scheduler == PlannerSettings(
        hold_seconds=5
    )
    assert load(written(tmp_path, "scheduler:")).settings.scheduler is None


MISTAKES = {
    "all at once": (
        "nodes: 0\n"
        "scheduler: {sharing: fair, overcommit: 0.5, hold: soon, tiers: [a b], evictWholeGang: true, preempt: 1}",
        [
            'scheduler.sharing: "fair" is not right; write proportion or capacity',
            "scheduler.overcommit: 0.5 is not right; write a number of at least 1, such as 1.2",
            "scheduler.preempt: 1 is not right; write true or false",
            'scheduler.hold: "soon" is not right; write a time such as 90s, 10m or 1h30m',
            "scheduler.tiers[0]: 'a b' is no name of a label or a resource: name part must consist of alphanumeric",
            "scheduler.evictWholeGang: there is no such key; did you mean `evictWholeGangs`?",
            "nodes: 0 is not right; write a whole number from 1 to 64",
        ],
    ),
    "absurd amounts": (
        "scheduler: {overcommit: 1.0e+9, reserveAfter: -1, evictionAttempts: 0}",
        [
            "scheduler.overcommit: 1000000000 is not right; write a number of at least 1, such as 1.2",
            "scheduler.evictionAttempts: 0 is not right; write a whole number from 1 to 10000",
            "scheduler.reserveAfter: -1 is not right; write a time such as 90s, 10m or 1h30m",
        ],
    ),
    "another shape": (
        "scheduler: [pack]",
        ['scheduler: ["pack"] is not right; write a mapping with keys such as sharing, enqueue, overcommit'],
    ),
}


@pytest.mark.parametrize(("text", "mistakes"), MISTAKES.values(), ids=MISTAKES)
def test_every_mistake_is_reported_with_its_path(tmp_path: Path, text: str, mistakes: list[str]) -> None:
    with pytest.raises(click.ClickException) as refused:
        load(written(tmp_path, text))
    told = [line.removeprefix("  ") for line in refused.value.message.splitlines()[1:]]
    assert [line[: len(known)] for line, known in zip(told, mistakes, strict=True)] == mistakes


OPTIONS: dict[str, tuple[list[str], dict[str, str], dict[str, Any]]] = {
    "the file alone": ([], {}, {"sharing": "capacity", "preempt": False, "hold_seconds": 5}),
    "options win": (
        ["--sharing", "proportion", "--preempt", "--tiers", "rack"],
        {},
        {"tiers": ("rack",), "hold_seconds": 5},
    ),
    "so does the environment": (
        [],
        {"SHOAL_SCHEDULER_SHARING": "proportion", "SHOAL_SCHEDULER_TIERS": ""},
        {"preempt": False, "hold_seconds": 5},
    ),
}


@pytest.mark.parametrize(("options", "environment", "settings"), OPTIONS.values(), ids=OPTIONS)
def test_options_of_the_scheduler_win_over_the_file(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    options: list[str],
    environment: dict[str, str],
    settings: dict[str, Any],
) -> None:
    charges: list[SchedulerOptions] = []

    async def noted(_: Any, charge: SchedulerOptions) -> None:
        charges.append(charge)

    monkeypatch.setattr("shoal.scheduler.main.run_scheduler", noted)
    file = written(tmp_path, "scheduler: {sharing: capacity, preempt: false, hold: 5}")
    done = CliRunner().invoke(scheduler.command, ["--config", str(file), *options], env=environment)
    assert (done.exit_code, [charge.settings for charge in charges]) == (0, [PlannerSettings(**settings)]), done.output
