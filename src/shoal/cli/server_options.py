"""What `shoal operator` and `shoal scheduler` share: programs that serve a cluster until they are stopped.

Their options can all be given in the environment, under a prefix of the program's own; the options for the cluster,
leader election, the HTTP pages and logging are the same for both.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any, TypeVar

import click

Command = TypeVar("Command", bound=Callable[..., Any])
Option = Callable[..., Callable[[Any], Any]]

CLUSTER = "Path to the kubeconfig.  [default: KUBECONFIG, the pod's service account, or ~/.kube/config]"


def option_of(prefix: str) -> Option:
    """Options of one program: --lease-duration also from PREFIX_LEASE_DURATION."""

    def option(*names: str, **more: Any) -> Callable[[Any], Any]:
        variable = prefix + names[0].partition("/")[0].removeprefix("--").replace("-", "_").upper()
        return click.option(*names, envvar=variable, show_envvar=True, **more)

    return option


def kubeconfig_options(help_text: str = CLUSTER) -> Callable[[Command], Command]:
    """The options --kubeconfig, described by `help_text`, and --context."""

    def decorate(command: Command) -> Command:
        command = click.option("--context", default="", metavar="NAME", help="Context of the kubeconfig.")(command)
        return click.option("--kubeconfig", type=click.Path(dir_okay=False, path_type=Path), help=help_text)(command)

    return decorate


def leader_election_options(option: Option) -> Callable[[Command], Command]:
    """How replicas take turns."""

    def decorate(command: Any) -> Any:
        command = option(
            "--lease-duration", default=15, show_default=True, type=click.IntRange(3, 600), metavar="SECONDS",
            help="Another replica becomes leader when the Lease was not renewed for this long.",
        )(command)  # fmt: skip
        return option(
            "--leader-election/--no-leader-election", default=True, show_default=True,
            help="Wait for the Lease before starting. Disable it only with a single replica.",
        )(command)  # fmt: skip

    return decorate


def log_option(option: Option) -> Callable[[Any], Any]:
    return option(
        "--log-format", type=click.Choice(["text", "json"]), default="text", show_default=True,
        help="Format of the log on standard error.",
    )  # fmt: skip


def address_option(option: Option, name: str, default: str, what: str) -> Callable[[Any], Any]:
    """Where a program serves its pages; `option` makes it."""
    help_text = f"{what}; `off` disables it."
    made: Callable[[Any], Any] = option(
        name, default=default, show_default=True, callback=address_of, metavar="HOST:PORT", help=help_text
    )
    return made


def address_of(_: click.Context, __: click.Parameter, text: str) -> Any:
    from shoal.controller_runtime.health import Address

    if text in ("", "off"):
        return None
    try:
        return Address.parse(text)
    except ValueError as wrong:
        raise click.BadParameter(f"{wrong}; `off` for none") from None


def run_server(work: Coroutine[Any, Any, None]) -> None:
    """Run a program of the cluster until it is stopped; an error that keeps it from working ends it with a message."""
    import asyncio

    from shoal.cli.context import format_api_error, format_error
    from shoal.cluster.client import OutcomeUnknown
    from shoal.controller_runtime.crd_installer import CrdUnusable
    from shoal.controller_runtime.health import ListenError
    from shoal.controller_runtime.preflight import PreflightError
    from shoal.kube.errors import ApiError
    from shoal.local import gc_tuning

    gc_tuning.serve()
    try:
        asyncio.run(work)
    except (PreflightError, CrdUnusable, ListenError, OutcomeUnknown, OSError) as problem:
        raise click.ClickException(format_error(problem)) from None
    except ApiError as refused:
        raise click.ClickException(format_error(format_api_error(refused))) from None
