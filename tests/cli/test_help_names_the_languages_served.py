"""The default in the help texts is the one the programs take."""

from __future__ import annotations

from shoal.cli.commands.operator import DIALECTS_HELP
from shoal.dialects import DEFAULT


def test_the_help_names_the_default_dialects() -> None:
    assert DIALECTS_HELP.endswith(f"[default: {','.join(DEFAULT)}]")
