"""Only what changed is written, and conditions lose what they no longer say."""

from __future__ import annotations

from shoal.node.status_manager import status_patch

READY = {"type": "Ready", "status": "True", "lastTransitionTime": "t1"}
UNREADY = {"type": "Ready", "status": "False", "reason": "ContainersNotReady", "lastTransitionTime": "t0"}
OTHERS = {"type": "example.com/gate", "status": "True"}


def test_nothing_new_is_no_patch() -> None:
    status = {"phase": "Running", "conditions": [READY]}
    assert status_patch({**status, "qosClass": "BestEffort", "conditions": [READY, OTHERS]}, status) == {}


def test_only_changed_fields_are_in_the_patch() -> None:
    before = {"phase": "Pending", "startTime": "t", "conditions": [READY]}
    assert status_patch(before, {**before, "phase": "Running"}) == {"phase": "Running"}


def test_a_condition_that_holds_again_drops_its_reason() -> None:
    before = {"conditions": [UNREADY, OTHERS]}
    assert status_patch(before, {"conditions": [READY]}) == {"conditions": [{**READY, "reason": None}]}
