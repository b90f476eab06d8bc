"""What the stage of the scenarios promises of a Job holds from one status to the next of the same Job."""

from __future__ import annotations

from kit.volcano_world import RetoldVolcano
from shoal.dialects.volcano import DIALECT


def told(*stories: tuple[str, str, int]) -> list[str]:
    """What is broken after a Job was seen so: its uid, phase and version."""
    world = RetoldVolcano()
    for uid, phase, version in stories:
        status = {"state": {"phase": phase}, "version": version}
        job = {"metadata": {"name": "a", "namespace": "default", "uid": uid}, "spec": {}, "status": status}
        world.wrote(DIALECT.kind.resource, "a", job)
    return world.promises.broken


def test_a_job_does_not_come_back_from_its_end() -> None:
    assert told(("1", "Completed", 2), ("1", "Running", 1)) == [
        "a was Completed and is Running",
        "the version of a fell",
    ]


def test_a_job_made_anew_begins_a_new_story() -> None:
    assert told(("1", "Completed", 2), ("2", "Pending", 0), ("2", "Running", 1)) == []
