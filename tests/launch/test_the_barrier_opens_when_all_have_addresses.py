"""The barrier's decision: from a Framework to yes or no, the files and the exit code."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from kit.frameworks import FrameworkWorld, framework, role
from shoal.dialects.framework.barrier import Progress, addresses, injector, progress
from shoal.dialects.framework.compression import packed
from shoal.kube.objects import Obj
from shoal.launch.framework_barrier.barrier import BarrierResult, wait, write_files
from shoal.launch.framework_barrier.framework_client import FrameworkNotFound, ReadFailed


def with_addresses(manifest: Obj, **ips: list[str | None]) -> Obj:
    """The Framework with these addresses of its tasks; None where a pod has none yet."""
    roles = [
        {
            "name": name,
            "taskStatuses": [
                {"index": index, "deletionPending": False, "state": "Completed", "attemptStatus": {"podIP": ip}}
                for index, ip in enumerate(found)
            ],
        }
        for name, found in ips.items()
    ]
    return {**manifest, "status": {"attemptStatus": {"taskRoleStatuses": roles}}}


GANG = framework(role("server", 2), role("worker", 2), name="gang")
READY = with_addresses(GANG, server=["10.0.0.1", "10.0.0.2"], worker=["10.0.0.3", "10.0.0.4"])


def dropped(manifest: Obj, name: str, index: int) -> Obj:
    for each in manifest["status"]["attemptStatus"]["taskRoleStatuses"]:
        if each["name"] == name:
            each["taskStatuses"][index]["deletionPending"] = True
    return manifest


PROGRESS = {
    "nobody has looked at it": (GANG, Progress(0, 4)),
    "no status": ({**GANG, "status": None}, Progress(0, 4)),
    "some": (with_addresses(GANG, server=["a", None], worker=["", "b"]), Progress(2, 4)),
    "all": (READY, Progress(4, 4)),
    "a role is missing": (with_addresses(GANG, server=["a", "b"]), Progress(2, 4)),
    "more than the spec asks for": (
        with_addresses(framework(role("worker", 1)), worker=["a", "b", "c"], gone=["d"]),
        Progress(1, 1),
    ),
    "scaled away does not count": (
        dropped(with_addresses(framework(role("worker", 2)), worker=["a", "b"]), "worker", 1),
        Progress(1, 2),
    ),
    "no tasks": (framework(), Progress(0, 0)),
    "packed": (
        {
            **framework(role("worker", 1)),
            "status": packed(
                {
                    "attemptStatus": {
                        "taskRoleStatuses": [
                            {
                                "name": "worker",
                                "taskStatuses": [{"attemptStatus": {"podIP": "a", "pad": "x" * 800_000}}],
                            }
                        ]
                    }
                }
            ),
        },
        Progress(1, 1),
    ),
}


@pytest.mark.parametrize(("manifest", "expected"), PROGRESS.values(), ids=list(PROGRESS))
def test_addresses_are_counted(manifest: Obj, expected: Progress):
    assert progress(manifest) == expected


def test_scenario_46_a_role_scaled_down_lets_the_rest_pass():
    waiting = with_addresses(framework(role("server", 1), role("worker", 2)), server=["a"], worker=["b", None])
    assert not progress(waiting).is_passed
    waiting["spec"]["taskRoles"][1]["taskNumber"] = 1

    assert progress(waiting).is_passed
    assert addresses(waiting) == {"server": ["a"], "worker": ["b"]}


def test_a_task_that_is_done_still_counts_by_the_address_it_had():
    world = FrameworkWorld(framework(role("worker", 1)))
    world.settle()
    world.run()
    world.settle()
    world.exits("worker-0", 0)
    world.settle()

    assert world.status["state"] == "Completed"
    assert addresses({**world.manifest, "status": world.status}) == {"worker": ["10.0.0.1"]}


# --- the files -------------------------------------------------------------------------------------------------------


def test_scenario_44_the_injector_exports_the_addresses_of_all_tasks(tmp_path: Path):
    write_files(READY, tmp_path)
    script = 'FB_SERVER_PORT=4001 FB_WORKER_PORT=5001; . ./injector.sh; env | grep "^FB_.*S=" | sort'
    said = subprocess.run(["sh", "-c", script], cwd=tmp_path, capture_output=True, text=True, check=True).stdout

    told = [
        "FB_SERVER_IPS=10.0.0.1,10.0.0.2",
        "FB_WORKER_IPS=10.0.0.3,10.0.0.4",
        "FB_SERVER_ADDRESSES=10.0.0.1:4001,10.0.0.2:4001",
        "FB_WORKER_ADDRESSES=10.0.0.3:5001,10.0.0.4:5001",
    ]
    assert said.splitlines() == [*told, *sorted(told)]


def test_the_injector_lists_all_ips_before_all_addresses():
    assert [line.split("=")[0] for line in injector(READY).splitlines() if line.startswith("export")] == [
        "export FB_SERVER_IPS",
        "export FB_WORKER_IPS",
        "export FB_SERVER_ADDRESSES",
        "export FB_WORKER_ADDRESSES",
    ]


def test_both_files_lie_in_every_folder_with_their_modes(tmp_path: Path):
    write_files(READY, tmp_path / "a", tmp_path / "b" / "c")
    for folder in (tmp_path / "a", tmp_path / "b" / "c"):
        assert sorted(path.name for path in folder.iterdir()) == ["framework.json", "injector.sh"]
        assert json.loads((folder / "framework.json").read_text()) == READY
        assert (folder / "framework.json").stat().st_mode & 0o777 == 0o644
        assert (folder / "injector.sh").stat().st_mode & 0o777 == 0o755


def test_a_packed_status_is_written_in_the_clear(tmp_path: Path):
    manifest, _ = PROGRESS["packed"]
    write_files(manifest, tmp_path)
    written = json.loads((tmp_path / "framework.json").read_text())

    assert written["status"]["attemptStatus"]["taskRoleStatuses"][0]["name"] == "worker"
    assert "taskRoleStatusesCompressed" not in written["status"]["attemptStatus"]


# --- the loop --------------------------------------------------------------------------------------------------------

NOT_YET = with_addresses(GANG, server=["10.0.0.1", "10.0.0.2"], worker=["10.0.0.3", None])


class Scripted:
    """A reader that plays reads and changes on a clock of its own."""

    def __init__(self, reads: list[Obj | Exception], changes: list[list[Obj]] | None = None) -> None:
        self.reads = reads
        self.heard = changes or []
        self.time = 0.0
        self.bounds: list[float] = []
        self.read_bounds: list[float] = []

    def now(self) -> float:
        return self.time

    def read(self, seconds: float) -> Obj:
        self.read_bounds.append(seconds)
        answer = self.reads.pop(0) if len(self.reads) > 1 else self.reads[0]
        if isinstance(answer, Exception):
            raise answer
        return answer

    def changes(self, framework: Obj | None, seconds: float) -> Iterator[Obj]:
        self.bounds.append(seconds)
        if self.heard:
            yield from self.heard.pop(0)
        self.time += seconds


def verdict(reader: Scripted, **more: Any) -> BarrierResult:
    return wait(reader, interval_seconds=10, timeout_seconds=60, now=reader.now, **more)


def test_all_there_at_once():
    reader = Scripted([READY])

    assert verdict(reader) == BarrierResult(0, "passed: 4 of 4 tasks have an address", READY)
    assert reader.bounds == []


def test_a_change_opens_it_without_waiting():
    reader = Scripted([NOT_YET], [[NOT_YET, READY]])

    assert verdict(reader).code == 0
    assert reader.time == 0


def test_scenario_45_time_is_up():
    reader = Scripted([NOT_YET])

    assert verdict(reader) == BarrierResult(201, "timed out after 60 s: 3 of 4 tasks have an address")
    assert reader.bounds == [10] * 6


def test_the_last_wait_is_cut_to_the_time_that_is_left():
    reader = Scripted([NOT_YET])
    wait(reader, interval_seconds=50, timeout_seconds=60, now=reader.now)

    assert reader.bounds == [50, 10]


def test_no_read_lasts_longer_than_the_time_that_is_left():
    reader = Scripted([NOT_YET])
    wait(reader, interval_seconds=25, timeout_seconds=60, now=reader.now)

    assert reader.read_bounds == [60, 35, 10, 1]


def test_no_such_framework_is_hopeless():
    gone = FrameworkNotFound("there is no Framework default/gang")
    sentence = "there is no Framework default/gang; a barrier runs in the pods of a Framework that exists"

    assert verdict(Scripted([gone])) == BarrierResult(210, sentence)
    assert verdict(Scripted([NOT_YET, gone])) == BarrierResult(210, sentence)


def test_a_read_that_fails_is_tried_again():
    assert verdict(Scripted([ReadFailed("refused"), ReadFailed("refused"), READY])).code == 0


def test_the_last_read_failed():
    reader = Scripted([NOT_YET, ReadFailed("the API server answered 403: forbidden")])

    assert verdict(reader) == BarrierResult(1, "gave up after 60 s: the API server answered 403: forbidden")


def test_the_time_out_after_a_failure_that_passed_is_a_time_out():
    assert verdict(Scripted([ReadFailed("refused"), NOT_YET])).code == 201


def test_the_reason_of_the_wait_is_printed_once():
    said: list[str] = []
    verdict(Scripted([ReadFailed("refused"), NOT_YET, NOT_YET, READY]), report=said.append)

    assert said == ["refused", "3 of 4 tasks have an address", "4 of 4 tasks have an address"]
