"""`shoal completion`: the script a shell needs to complete our commands and options."""

from __future__ import annotations

import click
from click.shell_completion import get_completion_class


@click.command("completion")
@click.argument("shell", type=click.Choice(["bash", "fish", "zsh"]))
def command(shell: str) -> None:
    """Print shell completion code.

    \b
    bash:  eval "$(shoal completion bash)"   in ~/.bashrc
    zsh:   eval "$(shoal completion zsh)"    in ~/.zshrc
    fish:  shoal completion fish | source    in ~/.config/fish/config.fish
    """
    from shoal.cli.main import shoal

    completion = get_completion_class(shell)
    if completion is None:
        raise click.ClickException(f"this version of click has no completion for {shell}")
    click.echo(completion(shoal, {}, "shoal", "_SHOAL_COMPLETE").source())
