"""Jobs somebody has spoiled, logs that break off and stops that are refused: words for people, and no traces."""

from __future__ import annotations

from collections.abc import AsyncIterator
from datetime import UTC, datetime
from typing import Any

import click
import pytest

from kit.frameworks import framework, pod_of, role
from shoal.cli.commands.logs import Archive, LogSelection, pods_by_head, print_logs
from shoal.cli.commands.run import InterruptHandler, make_namespace
from shoal.cli.context import report_errors
from shoal.cli.describe_page import DescribeContext, describe_job
from shoal.cli.job_lookup import FoundJob
from shoal.cli.job_table import job_row
from shoal.cli.line_filter import LineFilter
from shoal.cluster.client import LogOptions, OutcomeUnknown, Page
from shoal.dialects.dialect import StateUnreadable
from shoal.dialects.framework import DIALECT
from shoal.kube.errors import ApiError, already_exists, forbidden, unavailable
from shoal.kube.kinds import NAMESPACE
from shoal.kube.objects import Obj, name_of

NOW = datetime(2030, 1, 1, tzinfo=UTC)


def spoilt() -> FoundJob:
    """A Framework whose status is somebody else's."""
    return FoundJob({**framework(role("worker", 2), name="odd"), "status": {"startTime": 7}}, DIALECT)


def test_an_unreadable_status_is_listed() -> None:
    assert job_row(spoilt(), NOW) == ["odd", "Framework", "unreadable", "", "", "", "", ""]


def test_describe_an_unreadable_status_shows_the_remedy() -> None:
    event = {"reason": "LedgerUnreadable", "message": "its status is odd", "lastTimestamp": "2029-12-31T23:59:00Z"}
    page = describe_job(spoilt(), DescribeContext([], [{**event, "metadata": {}}], None, NOW))
    assert page.startswith("Framework odd in namespace default (worker x 2) is unreadable: the status of Framework ")
    assert "delete the Framework and create it again to start over." in page
    assert page.splitlines()[-1].endswith("(60s ago)  its status is odd.")


def test_describe_an_unreadable_manifest() -> None:
    odd = FoundJob(framework(role("worker", -3), name="odd"), DIALECT)
    assert (
        describe_job(odd, DescribeContext([], [], None, NOW))
        == "Framework odd in namespace default (unreadable) is new."
    )


@pytest.mark.parametrize(
    ("problem", "sentence"),
    [
        pytest.param(forbidden(NAMESPACE, "a", "no"), 'namespaces "a" is forbidden: no', id="refused"),
        pytest.param(
            OutcomeUnknown("it broke off"),
            "it broke off. Try again; if that fails too, check the cluster.",
            id="unknown",
        ),
        pytest.param(ConnectionError("nobody there"), "nobody there.", id="unreachable"),
        pytest.param(StateUnreadable("its status is odd"), "its status is odd.", id="unreadable"),
    ],
)
def test_every_error_of_a_cluster_is_reported_as_a_sentence(problem: Exception, sentence: str) -> None:
    with pytest.raises(click.ClickException) as caught, report_errors():
        raise problem
    assert caught.value.message == sentence


class Speaking:
    """A cluster with the two pods of a job; the log of the first breaks off."""

    def __init__(self, job: Obj) -> None:
        self._pods = [{**pod_of(job, "worker", index), "status": {"phase": "Running"}} for index in range(2)]

    async def list(self, *_: Any) -> Page:
        return Page(self._pods, "1")

    async def logs(self, pod: str, *_: Any) -> AsyncIterator[bytes]:
        if pod == name_of(self._pods[0]):
            raise OutcomeUnknown("the log broke off")
        yield b"hello\n"


EVERYTHING = LogSelection((), LogOptions(), LineFilter(None), prefix=True, is_previous=False, is_all=False)


async def test_a_log_that_breaks_off_takes_no_other_with_it(capsys: pytest.CaptureFixture[str]) -> None:
    job = framework(role("worker", 2))
    cluster: Any = Speaking(job)
    found = FoundJob(job, DIALECT)
    pods = await pods_by_head(cluster, found)
    with pytest.raises(OutcomeUnknown, match="the log broke off"):
        await print_logs(cluster, found, pods, Archive(None, "default", "any"), EVERYTHING, is_followed=False)
    assert capsys.readouterr().out == "worker-1 | hello\n"


class Refusing:
    """A cluster that answers every write with this; also what a run follows and shows."""

    def __init__(self, refusal: Exception, *jobs: FoundJob) -> None:
        self._refusal = refusal
        self.jobs = {job.name: job for job in jobs}
        self.notes: list[str] = []

    async def create(self, *_: Any, **__: Any) -> Obj:
        raise self._refusal

    patch = create

    def note(self, sentence: str) -> None:
        self.notes.append(sentence)


async def test_a_namespace_that_is_there_is_taken() -> None:
    cluster: Any = Refusing(already_exists(NAMESPACE, "kube-system"))
    await make_namespace(cluster, "kube-system")
    cluster = Refusing(forbidden(NAMESPACE, "mine", "no"))
    with pytest.raises(ApiError, match="forbidden"):
        await make_namespace(cluster, "mine")


@pytest.mark.parametrize("refusal", [unavailable("not now"), OutcomeUnknown("not now"), OSError("not now")])
async def test_a_rejected_stop_is_reported(refusal: Exception) -> None:
    jobs = [FoundJob(framework(role(), name=name), DIALECT) for name in ("a", "b")]
    all_in_one: Any = Refusing(refusal, *jobs)
    await InterruptHandler(all_in_one, all_in_one, all_in_one)._stop()
    assert all_in_one.notes == [
        f"Framework {name} was not stopped: not now. Ctrl-C again ends everything at once." for name in "ab"
    ]
