"""Which cluster a command speaks to, and how.

One that was named (`--kubeconfig`, `--context`) comes first, then the one that runs in the data folder, then what
KUBECONFIG or ~/.kube/config say. A command is a coroutine that gets the cluster; what the cluster refuses becomes
a sentence and exit code 1.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Coroutine, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from shoal.cli.folders import DataFolder, data_option
from shoal.cli.programs import kubeconfig_options

if TYPE_CHECKING:
    from shoal.cluster.connecting import Connection
    from shoal.cluster.kubernetes import KubernetesCluster

T = TypeVar("T")
Command = TypeVar("Command", bound=Callable[..., Any])


@dataclass(frozen=True, slots=True)
class Choice:
    """What was said about the cluster on the command line."""

    folder: Path
    kubeconfig: Path | None
    context: str
    namespace: str


def cluster_options(command: Command) -> Command:
    """--data, --kubeconfig, --context and --namespace, given to the command as one `choice`."""

    @wraps(command)
    def wrapped(folder: Path, kubeconfig: Path | None, context: str, namespace: str, **others: Any) -> Any:
        return command(choice=Choice(folder, kubeconfig, context, namespace), **others)

    options = (
        click.option("-n", "--namespace", default="", metavar="NAME", help="Namespace.  [default: the context's]"),
        kubeconfig_options("Another cluster.  [default: the one in --data, then KUBECONFIG or ~/.kube/config]"),
        data_option,
    )  # fmt: skip
    made: Command = decorated(wrapped, options)
    return made


def decorated(command: Any, options: Sequence[Callable[[Any], Any]]) -> Any:
    """The command with these options; the last one is shown first."""
    for option in options:
        command = option(command)
    return command


def connection_of(choice: Choice) -> Connection:
    from shoal.cluster.connecting import NoConnection, from_kubeconfig

    files = [choice.kubeconfig] if choice.kubeconfig else _usual() if choice.context else _found(choice)
    if not files:
        folder = DataFolder(choice.folder)
        raise click.ClickException(
            f"there is no cluster to speak to: none runs in {folder.path}, and neither KUBECONFIG nor ~/.kube/config "
            f"names one. Start one with `shoal up`, or name one with --kubeconfig."
        )
    try:
        return from_kubeconfig(files, context=choice.context)
    except NoConnection as problem:
        raise click.ClickException(ended(problem)) from None


def _found(choice: Choice) -> list[Path]:
    folder = DataFolder(choice.folder)
    return [folder.kubeconfig] if folder.running() is not None else _usual()


def _usual() -> list[Path]:
    from shoal.cluster.connecting import usual_files

    return usual_files(os.environ)


def with_cluster(choice: Choice, work: Callable[[KubernetesCluster, str], Coroutine[Any, Any, T]]) -> T:
    """Run `work` with the chosen cluster and namespace; refusals end the command with a sentence."""
    from shoal.cluster.kubernetes import opened

    connection = connection_of(choice)

    async def run() -> T:
        async with opened(connection) as cluster:
            await cluster.require_supported()
            return await work(cluster, choice.namespace or connection.namespace)

    try:
        with told_in_sentences():
            return asyncio.run(run())
    except KeyboardInterrupt:
        raise SystemExit(130) from None


@contextmanager
def told_in_sentences() -> Iterator[None]:
    """What a cluster refuses, breaks off or has stored wrongly ends a command with a sentence."""
    from shoal.cluster.port import OutcomeUnknown
    from shoal.dialects.dialect import LedgerUnreadable
    from shoal.kube.errors import ApiError

    try:
        yield
    except ApiError as refused:
        raise click.ClickException(sentence_of(refused)) from None
    except (OutcomeUnknown, OSError, LedgerUnreadable) as broken:
        raise click.ClickException(ended(broken)) from None


def ended(problem: object) -> str:
    """A sentence with its end, and the way out where only waiting is one."""
    from shoal.cluster.port import OutcomeUnknown

    text = str(problem)
    whole = text if text.endswith((".", "?", "!")) else f"{text}."
    return f"{whole} Try again, and see whether the cluster is well." if isinstance(problem, OutcomeUnknown) else whole


def sentence_of(refused: Any) -> str:
    """A refusal with every mistake on a line of its own."""
    causes = [str(cause) for cause in refused.causes]
    if refused.code >= 500:
        return f"the API server is unwell: {ended(refused.message)} Try again; its own log says more."
    if refused.code == 403 and " cannot " in refused.message:
        return f"{ended(refused.message)} Ask for a role that allows it."
    if len(causes) < 2:
        return ended(refused.message) if refused.code == 401 else str(refused.message)
    head = str(refused.message).partition(" is invalid: ")[0]
    return f"{head} has {len(causes)} mistakes:\n" + "\n".join(f"  {cause}" for cause in causes)
