"""Which shoal.yaml is read where none is named: the nearest to the person, then to the job, then the person's own."""

from __future__ import annotations

from pathlib import Path

import pytest

from shoal.local.config import default_file


@pytest.mark.parametrize(
    ("there", "job_file", "found"),
    [
        pytest.param(["here", "jobs", "home/shoal"], "jobs/pet.yaml", "here", id="the current folder's first"),
        pytest.param(["jobs", "home/shoal"], "jobs/pet.yaml", "jobs", id="then the one beside the job"),
        pytest.param(["jobs"], "jobs", "jobs", id="in the folder of jobs"),
        pytest.param(["jobs", "home/shoal"], None, "home/shoal", id="without a job the person's own"),
        pytest.param([], "jobs/pet.yaml", None, id="none"),
    ],
)
def test_the_nearest_file_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, there: list[str], job_file: str | None, found: str | None
) -> None:
    for folder in ("here", "jobs", "home/shoal"):
        (tmp_path / folder).mkdir(parents=True)
    for folder in there:
        (tmp_path / folder / "shoal.yaml").touch()
    monkeypatch.chdir(tmp_path / "here")
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "home"))
    path = default_file(None if job_file is None else tmp_path / job_file)
    assert (path and path.absolute()) == (found and tmp_path / found / "shoal.yaml")
