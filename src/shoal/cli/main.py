"""The command itself: its subcommands by name, each loaded only when it is called or its help is shown."""

from __future__ import annotations

import signal
from importlib import import_module
from typing import Any

import click

from shoal import __version__

INTERRUPTED = 130  # what shells say of a command that Ctrl-C ended
HANDLES_INTERRUPTS = object()  # given to a command that is to clean up after Ctrl-C, not only to end

# Name of the command -> one line for the overview. The module of the same name holds the function `command`.
COMMANDS = {
    "run": "Run jobs on a temporary cluster and wait for them.",
    "submit": "Submit jobs to a cluster.",
    "get": "List jobs of every job language.",
    "describe": "Show what happened to a job, when and why, and what happens next.",
    "logs": "Print the logs of a job's tasks.",
    "events": "List Events, the latest last.",
    "top": "Show the CPU and memory usage of the tasks of jobs.",
    "scale": "Set a new number of tasks for a role.",
    "stop": "Stop a job and keep its object.",
    "start": "Start a job that was created without being started.",
    "delete": "Delete jobs.",
    "wait": "Wait until a job has completed, is running, or is deleted.",
    "validate": "Check manifests without a cluster.",
    "crds": "Print the CustomResourceDefinitions of the job languages.",
    "up": "Start a cluster on this machine.",
    "down": "Stop a cluster and keep its data.",
    "status": "Show the nodes and pods of a cluster on this machine.",
    "kubeconfig": "Print the kubeconfig of a cluster.",
    "doctor": "Check which features work on this machine, and the effects of those that do not.",
    "node": "Join a Kubernetes cluster as a node that runs pods as processes.",
    "install": "Install the operator on a Kubernetes cluster, or upgrade it.",
    "uninstall": "Remove the operator from a cluster and keep the jobs.",
    "operator": "Reconcile jobs on a Kubernetes cluster.",
    "scheduler": "Schedule pods on a Kubernetes cluster, gangs all at once or not at all.",
    "barrier": "Wait until every task of a Framework has a pod IP.",
    "muster": "Wait for the servers and trainers of a Paddle job, then start this pod's program.",
    "completion": "Print shell completion code.",
}


# The names in kubectl, docker, ps and Slurm for the same.
ALIASES = {"ls": "get", "ps": "get", "apply": "submit", "cancel": "stop", "rm": "delete"}


class Overview(click.Group):
    """Lists commands without importing them, so that `shoal --help` stays quick.

    Ctrl-C at a moment that no command handles itself ends it without a message: the user sent the signal.
    """

    def invoke(self, ctx: click.Context) -> Any:
        try:
            if ctx.obj is HANDLES_INTERRUPTS:
                signal.signal(signal.SIGINT, signal.default_int_handler)
            return super().invoke(ctx)
        except KeyboardInterrupt:
            raise SystemExit(INTERRUPTED) from None

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002
        name = ALIASES.get(cmd_name, cmd_name)
        if name not in COMMANDS:
            return None
        command: click.Command = import_module(f"shoal.cli.commands.{name}").command
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002
        with formatter.section("Commands"):
            formatter.write_dl(list(COMMANDS.items()))
        with formatter.section("Other names"):
            formatter.write_dl([(alias, f"The same as `shoal {name}`.") for alias, name in ALIASES.items()])

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        known = [*COMMANDS, *ALIASES]
        if args and args[0] not in known and not args[0].startswith("-"):
            from difflib import get_close_matches

            near = get_close_matches(args[0], known, n=1)
            hint = f"Did you mean `shoal {near[0]}`?" if near else "`shoal --help` lists them."
            raise click.UsageError(f"There is no command {args[0]!r}. {hint}", ctx)
        return super().resolve_command(ctx, args)


@click.group(cls=Overview, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="shoal")
def shoal() -> None:
    """Run elastic distributed training jobs from the job files you already have.

    `shoal up` starts a small cluster on this machine that serves the Kubernetes API and runs pods as processes;
    kubectl and every other Kubernetes client work with it.
    """
