"""`--help` of `shoal` and of every command, 100 columns wide."""

from __future__ import annotations

from copy import copy

import click
import pytest

from golden.conftest import Golden
from shoal.cli.main import COMMANDS, shoal

WIDTH = 100


def help_of(command: click.Command, name: str) -> str:
    # A command keeps the help option of the first context it is used in, and other tests use it without its group.
    command = copy(command)
    command._help_option = None
    settings = {**shoal.context_settings, "terminal_width": WIDTH, "max_content_width": WIDTH}
    return command.get_help(click.Context(command, info_name=name, **settings))


def test_the_overview_is_on_file(golden: Golden) -> None:
    golden("help/shoal.txt", help_of(shoal, "shoal"))


@pytest.mark.parametrize("name", COMMANDS)
def test_the_help_of_a_command_is_on_file(name: str, golden: Golden) -> None:
    command = shoal.get_command(click.Context(shoal), name)
    assert command is not None
    golden(f"help/{name}.txt", help_of(command, f"shoal {name}"))
