"""What `get`, `describe`, `events` and `validate` print, from jobs and manifests in `jobs/` and `manifests/`.

The texts of Events are made from their codes here, so that a job on file has the sentences of today.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from golden.conftest import Golden
from shoal.cli.commands.wait import describe_result
from shoal.cli.describe_page import DescribeContext, describe_job
from shoal.cli.job_lookup import FoundJob
from shoal.cli.job_table import JOB_COLUMNS, format_table, job_row
from shoal.cli.manifest_files import load
from shoal.cli.offline_validation import format_result, make_machinery, validate
from shoal.dialects import dialect_of
from shoal.kube import times
from shoal.kube.messages import MESSAGE, decode
from shoal.kube.objects import annotations_of
from shoal.operator.messages import CATALOG

FOLDER = Path(__file__).parent
JOBS = sorted((FOLDER / "jobs").glob("*.yaml"))
MANIFESTS = sorted((FOLDER / "manifests").glob("*.yaml"))

pytestmark = pytest.mark.usefixtures("_utc")


def read(path: Path) -> tuple[FoundJob, DescribeContext]:
    data: dict[str, Any] = yaml.safe_load(path.read_text())
    job = data["job"]
    dialect = dialect_of(job["apiVersion"], job["kind"])
    assert dialect is not None
    for event in data["events"]:
        message = decode(annotations_of(event).get(MESSAGE) or "")
        if message is not None:
            event["message"] = f"{CATALOG.text(message)}."
    now = times.parse(data["now"])
    context = DescribeContext(data["pods"], data["events"], data["run_owner"], now, tuple(data["owned_objects"]))
    return FoundJob(job, dialect), context


@pytest.mark.parametrize("path", JOBS, ids=lambda path: path.stem)
def test_the_description_of_a_job_is_on_file(path: Path, golden: Golden) -> None:
    job, context = read(path)
    golden(f"describe/{path.stem}.txt", describe_job(job, context))


def test_the_list_of_jobs_is_on_file(golden: Golden) -> None:
    found = [read(path) for path in JOBS]
    golden("get.txt", format_table([job_row(job, context.now) for job, context in found], JOB_COLUMNS))


def test_the_results_of_a_wait_are_on_file(golden: Golden) -> None:
    golden("wait.txt", "\n".join(describe_result(read(path)[0]) for path in JOBS))


@pytest.mark.parametrize("path", MANIFESTS, ids=lambda path: path.stem)
def test_the_mistakes_of_a_manifest_are_on_file(path: Path, golden: Golden) -> None:
    machinery = make_machinery()
    lines = [line for each in load([path]) for line in format_result(each, validate(machinery, each))]
    golden(f"validate/{path.stem}.txt", "\n".join(lines).replace(str(path), path.name))
