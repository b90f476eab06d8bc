"""`shoal validate` has the warnings about images that `shoal run` and `shoal submit` print."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml
from click.testing import CliRunner

from kit.framework_notation import fw, role
from shoal.cli.commands.validate import command


@pytest.mark.parametrize(("words", "code"), [((), 0), (("--strict",), 1)])
def test_a_missing_source_and_the_nearest_image_are_named(tmp_path: Path, words: tuple[str, ...], code: int) -> None:
    job = fw("hello", role("worker", 1))
    job["spec"]["taskRoles"][0]["task"]["pod"]["spec"]["containers"][0]["image"] = "acme/trainr:1"
    (tmp_path / "job.yaml").write_text(yaml.safe_dump(job))
    config = tmp_path / "shoal.yaml"
    config.write_text(yaml.safe_dump({"images": {"acme/trainer:1": {"mounts": {"/in": "./absent"}}}}))
    ended = CliRunner().invoke(command, [str(tmp_path / "job.yaml"), "--config", str(config), *words])
    assert (ended.exit_code, ended.stderr) == (
        code,
        f'Warning: {config}: images."acme/trainer:1".mounts./in: {tmp_path / "absent"} is not there. '
        "Pods of that image wait or fail for it.\n",
    )
    assert ended.stdout.splitlines()[1:] == [
        f'  warning: image "acme/trainr:1" has no entry under `images:` in {config}; did you mean "acme/trainer:1"? '
        "Its command runs in your own environment."
    ]
