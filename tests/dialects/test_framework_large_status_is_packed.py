"""Thousands of tasks fit into one object: their statuses are packed when they are large, and read either way."""

from __future__ import annotations

import base64
import gzip
import json

import pytest

from kit.frameworks import framework, role
from shoal.dialects.framework import DIALECT, settings
from shoal.dialects.framework.compression import LARGE_BYTES, packed, unpacked
from shoal.engine import JobState, Observed, advance
from shoal.kube.objects import Obj

PACKING = settings({"largeFrameworkCompression": True})
PLAIN = settings()


def stored(number: int, config: object) -> tuple[Obj, JobState]:
    """A Framework of so many tasks after its first pass, as it is stored, and the ledger that was meant."""
    from kit.engine_world import T0

    manifest = framework(role("worker", number))
    job = DIALECT.to_job(manifest, config)
    assert job is not None
    state = advance(job, JobState(), Observed(nonce="n"), T0).state
    (operation,) = DIALECT.save_state(job, state, config).operations
    return {**manifest, "status": operation["value"]}, state


def test_scenario_47_compression():
    manifest, state = stored(3000, PACKING)
    attempt = manifest["status"]["attemptStatus"]

    assert attempt["taskRoleStatuses"] is None
    (worker,) = json.loads(gzip.decompress(base64.b64decode(attempt["taskRoleStatusesCompressed"])))
    assert [task["index"] for task in worker["taskStatuses"]] == list(range(3000))
    assert len(json.dumps(manifest)) < 1_500_000
    assert DIALECT.load_state(manifest) == state


def test_scenario_47_a_controller_without_the_option_reads_it_all_the_same():
    manifest, state = stored(3000, PACKING)
    job = DIALECT.to_job(manifest, PLAIN)
    assert job is not None
    (operation,) = DIALECT.save_state(job, DIALECT.load_state(manifest), PLAIN).operations

    assert DIALECT.load_state({**manifest, "status": operation["value"]}) == state


@pytest.mark.parametrize(("number", "is_packed"), [(1500, False), (3000, True)])
def test_without_the_option_only_what_no_server_would_store_is_packed(number: int, is_packed: bool):
    manifest, state = stored(number, PLAIN)

    assert (manifest["status"]["attemptStatus"]["taskRoleStatuses"] is None) == is_packed
    assert len(json.dumps(manifest)) < 1_500_000
    assert DIALECT.load_state(manifest) == state


def status(size: int) -> Obj:
    """A status whose task roles are so many bytes of JSON."""
    return {"attemptStatus": {"taskRoleStatuses": ["x" * (size - 4)]}}


@pytest.mark.parametrize(("size", "is_packed"), [(LARGE_BYTES - 1, False), (LARGE_BYTES, True)])
def test_the_limit_is_700_kib(size: int, is_packed: bool):
    made = packed(status(size))

    assert LARGE_BYTES == 716_800
    assert ("taskRoleStatusesCompressed" in made["attemptStatus"]) is is_packed
    assert unpacked(made) == status(size)


def test_a_plain_list_wins():
    both = packed(status(LARGE_BYTES))
    both["attemptStatus"]["taskRoleStatuses"] = ["plain"]

    assert unpacked(both) == {"attemptStatus": {"taskRoleStatuses": ["plain"]}}


def test_the_same_status_packs_to_the_same_bytes():
    assert packed(status(LARGE_BYTES)) == packed(status(LARGE_BYTES))
