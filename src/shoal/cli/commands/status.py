"""`shoal status`: whether a cluster runs here, its nodes and what they run."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import click

from shoal.cli.commands.down import describe_orphans
from shoal.cli.quick_get import NoAnswer, items
from shoal.local.data_dir import DataFolder, data_option
from shoal.local.orphan_cleanup import end_throwaways


@click.command("status")
@data_option
@click.option("-o", "--output", type=click.Choice(["text", "json"]), default="text", show_default=True)
def command(folder: Path, output: str) -> None:
    """Show the nodes and pods of a cluster on this machine.

    Exits with 3 if no cluster runs in the folder.
    """
    end_throwaways()
    data = DataFolder(folder)
    running = data.running()
    if running is None:
        _print(
            output,
            {"running": False, "data": str(data.path)},
            f"No cluster runs in {data.path}.{describe_orphans(data)} Start it: {data.command('up')}",
        )
        raise SystemExit(3)
    try:
        nodes, pods = (items(data, running, plural) for plural in ("nodes", "pods"))
    except NoAnswer as problem:
        raise click.ClickException(str(problem)) from None
    summary = {
        "running": True,
        "data": str(data.path),
        "url": running.url,
        "pid": running.pid,
        "kubeconfig": str(data.kubeconfig),
        "nodes": {node["metadata"]["name"]: node["status"].get("allocatable") or {} for node in nodes},
        "pods": dict(sorted(Counter(_phase(pod) for pod in pods).items())),
    }
    placed = [pod["spec"].get("nodeName") for pod in pods if _phase(pod) in ("Pending", "Running")]
    _print(output, summary, text_of(summary, Counter(node for node in placed if node)))


def _print(output: str, summary: dict[str, Any], text: str) -> None:
    click.echo(json.dumps(summary, indent=2) if output == "json" else text)


def text_of(summary: dict[str, Any], by_node: Counter[str]) -> str:
    from shoal.cli.node_format import format_allocatable

    lines = [f"Cluster in {summary['data']} is up at {summary['url']} (pid {summary['pid']})"]
    for name, allocatable in summary["nodes"].items():
        lines.append(
            f"  node {name}: {by_node[name]} pod{'s' * (by_node[name] != 1)}, {format_allocatable(allocatable)}"
        )
    phases = ", ".join(f"{count} {phase}" for phase, count in summary["pods"].items()) or "none"
    lines += [f"  pods: {phases}", f"  export KUBECONFIG={summary['kubeconfig']}"]
    return "\n".join(lines)


def _phase(pod: dict[str, Any]) -> str:
    return str((pod.get("status") or {}).get("phase") or "Pending")
