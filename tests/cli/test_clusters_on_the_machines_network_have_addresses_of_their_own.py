"""Clusters whose pods share the machine's network take ranges of addresses that no other uses, and keep them."""

from __future__ import annotations

from ipaddress import IPv4Address
from pathlib import Path
from uuid import uuid4

import pytest

from shoal.kube.kinds import POD, SERVICE
from shoal.kube.objects import Obj
from shoal.local.cluster import open_store
from shoal.local.data_dir import DataFolder
from shoal.local.loopback_ranges import PAIRS, Ranges, RecordUnreadable, ranges_of, reserved_ranges
from shoal.node.sandbox.interface import Network

SHARED = "another cluster uses the same loopback addresses"


@pytest.fixture(autouse=True)
def alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """Under a name that nobody else on this machine uses: tests run beside this one, and clusters."""
    monkeypatch.setattr("shoal.local.loopback_ranges._NAME", f"shoal test {uuid4()}")


def service(name: str) -> Obj:
    return {"metadata": {"name": name}, "spec": {"ports": [{"port": 80}]}}


def test_each_new_cluster_takes_the_first_free_ranges(tmp_path: Path) -> None:
    with reserved_ranges(tmp_path / "one", is_new=True) as one, reserved_ranges(tmp_path / "two", is_new=True) as two:
        assert (one, two) == (ranges_of(0), ranges_of(1))
    with reserved_ranges(tmp_path / "three", is_new=True) as three:
        assert three == ranges_of(0)


def test_a_cluster_keeps_its_ranges(tmp_path: Path) -> None:
    with reserved_ranges(tmp_path / "one", is_new=True), reserved_ranges(tmp_path / "two", is_new=True):
        pass
    with reserved_ranges(tmp_path / "two", is_new=False) as two:
        assert two == ranges_of(1)


def test_addresses_on_record_stay_though_another_cluster_has_them(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with reserved_ranges(tmp_path / "one", is_new=True):
        pass
    with reserved_ranges(tmp_path / "other", is_new=True), reserved_ranges(tmp_path / "one", is_new=False) as one:
        assert one == ranges_of(0)
    assert [record.getMessage() for record in caplog.records] == [SHARED]


@pytest.mark.parametrize(
    ("given_out", "number"),
    [
        pytest.param(["None", "10.96.0.7", "127.0.0.1", "127.77.1.9"], 0, id="a pod from before there were records"),
        pytest.param(["None", "10.96.0.7", "127.0.0.1", "127.96.0.20"], 0, id="a Service from before"),
        pytest.param(["10.96.0.7", "10.77.1.2"], 1, id="networks for its pods, so ranges that are free"),
    ],
)
def test_a_cluster_without_a_record_goes_by_its_addresses(tmp_path: Path, given_out: list[str], number: int) -> None:
    with (
        reserved_ranges(tmp_path / "other", is_new=True),
        reserved_ranges(tmp_path / "one", is_new=False, addresses=lambda: given_out) as one,
    ):
        assert one == ranges_of(number)
    with reserved_ranges(tmp_path / "one", is_new=False) as one:
        assert one == ranges_of(number)


async def test_the_addresses_of_a_cluster_are_found_in_its_store(tmp_path: Path) -> None:
    data = DataFolder(tmp_path)
    async with open_store(data, Network.ISOLATED) as (cluster, _, _):
        await cluster.create(SERVICE, service("isolated"), "default")
    with reserved_ranges(tmp_path / "other", is_new=True):
        async with open_store(data, Network.LOOPBACK) as (cluster, pods, _):
            made = await cluster.create(SERVICE, service("shared"), "default")
    data.loopback.unlink()
    async with open_store(data, Network.LOOPBACK) as (_, pods_again, _):
        assert (pods, pods_again) == (ranges_of(1).pods, ranges_of(1).pods)
    assert IPv4Address(made["spec"]["clusterIP"]) in ranges_of(1).services


async def test_the_range_of_a_cluster_without_services_is_found_by_its_pods(tmp_path: Path) -> None:
    data = DataFolder(tmp_path)
    async with open_store(data, Network.ISOLATED) as (cluster, _, _):
        await cluster.create(
            POD, {"metadata": {"name": "p"}, "spec": {"containers": [{"name": "c", "image": "i"}]}}, "default"
        )
        await cluster.patch(POD, "p", "default", patch={"status": {"podIP": "127.80.1.2"}}, subresource="status")
    async with open_store(data, Network.LOOPBACK) as (_, pods, _):
        assert pods == ranges_of(3).pods


@pytest.mark.parametrize("record", ["", "many", "-1", str(PAIRS)])
def test_an_empty_record_is_ignored(tmp_path: Path, record: str) -> None:
    (tmp_path / "one").write_text(record)
    with reserved_ranges(tmp_path / "other", is_new=True), reserved_ranges(tmp_path / "one", is_new=True) as one:
        assert one == ranges_of(1)
    with reserved_ranges(tmp_path / "one", is_new=False) as one:
        assert one == ranges_of(1)


@pytest.mark.parametrize("record", ["", "many", "-1", str(PAIRS)])
def test_an_empty_record_is_rejected_when_addresses_are_in_use(tmp_path: Path, record: str) -> None:
    (tmp_path / "one").write_text(record)
    refusal = rf"{tmp_path}/one does not name the loopback addresses .* Remove the file; the cluster then uses"
    with pytest.raises(RecordUnreadable, match=refusal), reserved_ranges(tmp_path / "one", is_new=False):
        pass
    (tmp_path / "one").unlink()
    with reserved_ranges(tmp_path / "one", is_new=False, addresses=lambda: ["127.79.1.2"]) as one:
        assert one == ranges_of(2)


def test_a_record_is_written_once_and_all_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    written = []
    write_text = Path.write_text

    def write(path: Path, text: str) -> int:
        written.append(path.name)
        return write_text(path, text)

    monkeypatch.setattr(Path, "write_text", write)
    for is_new in (True, False):
        with reserved_ranges(tmp_path / "one", is_new=is_new):
            pass
    assert written == [".one.new"]
    assert [(path.name, path.read_text()) for path in tmp_path.iterdir()] == [("one", "0\n")]


def test_when_all_are_taken_the_first_is_shared(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("shoal.local.loopback_ranges.PAIRS", 1)
    with reserved_ranges(tmp_path / "one", is_new=True) as one, reserved_ranges(tmp_path / "two", is_new=True) as two:
        assert (one, two) == (ranges_of(0), ranges_of(0))
    assert [record.getMessage() for record in caplog.records] == [SHARED]


def test_no_two_ranges_overlap() -> None:
    ranges: list[Ranges] = [ranges_of(number) for number in range(PAIRS)]
    assert len({each.pods for each in ranges} | {str(each.services) for each in ranges}) == 2 * PAIRS
