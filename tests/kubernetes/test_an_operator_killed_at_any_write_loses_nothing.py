"""kill -9 of the operator before and after each of its writes to a real API server, in ten scenarios that differ.

The first life of the operator ends at the chosen write, the second one ends the job. Every run keeps the promises in
`kit.scenario_invariants` and ends in the same picture as an undisturbed one. Events are no writes in this sense: they
are sent beside the work and nothing is ever read from them.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from kit.control_plane import ControlPlane
from kit.operator_kills import Siege, stage
from scenarios import test_attempts_end as ending
from scenarios import test_deletions as deleting
from scenarios import test_rescaling as rescaling
from scenarios import test_starting_and_stopping as starting

pytestmark = [pytest.mark.kubernetes, pytest.mark.processes, pytest.mark.timeout(1800)]

CHOSEN = (
    ending.test_scenario_01_success_default_policy,
    ending.test_scenario_02_two_roles_service_cut_off,
    ending.test_scenario_06_unknown_failure_nested_budgets,
    starting.test_scenario_13_create_without_start,
    starting.test_scenario_15_stop_while_running,
    deleting.test_scenario_17_pod_deleted_by_user_retry,
    deleting.test_scenario_20_config_map_deleted_externally,
    deleting.test_scenario_21_foreground_delete,
    deleting.test_scenario_22_background_delete_and_same_name_re_create,
    rescaling.test_scenario_24_rescale_4_2_3_running,
)


@pytest.mark.parametrize("chosen", [pytest.param(each, id=each.__name__.removeprefix("test_")) for each in CHOSEN])
async def test_the_next_operator_ends_what_the_killed_one_began(
    chosen: Any, littered_plane: ControlPlane, tmp_path: Path, record_property: Callable[[str, Any], None]
) -> None:
    async with stage(littered_plane, tmp_path) as ground:
        record_property("disturbed runs", await Siege(chosen.case, ground).run())
