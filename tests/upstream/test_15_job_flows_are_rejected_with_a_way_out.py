"""A JobFlow is not run, and the answer says so with what to use instead."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner

from shoal.cli.main import shoal

FLOW = """
apiVersion: flow.volcano.sh/v1alpha1
kind: JobFlow
metadata: {name: flow}
spec: {flows: [{name: first}, {name: second, dependsOn: {targets: [first]}}]}
"""


@pytest.mark.parametrize("command", ["validate", "run"])
def test_15_a_job_flow_is_rejected_with_a_way_out(command: str, tmp_path: Path) -> None:
    file = tmp_path / "flow.yaml"
    file.write_text(FLOW)
    result = CliRunner().invoke(shoal, [command, str(file)])
    assert result.exit_code == 1
    assert "Shoal does not run JobFlows: make the Jobs of the flow tasks of one Job with `dependsOn`" in result.output
