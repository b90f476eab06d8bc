"""`shoal status`: whether a cluster runs here, its nodes and what they run."""

from __future__ import annotations

import json
import ssl
import urllib.error
import urllib.request
from collections import Counter
from pathlib import Path
from typing import Any

import click

from shoal.cli.down import left_behind
from shoal.cli.folders import DataFolder, Running, data_option


@click.command("status")
@data_option
@click.option("-o", "--output", type=click.Choice(["text", "json"]), default="text", show_default=True)
def command(folder: Path, output: str) -> None:
    """Show what runs where.

    Ends with code 3 where no cluster runs in the folder.
    """
    data = DataFolder(folder)
    running = data.running()
    if running is None:
        _say(
            output,
            {"running": False, "data": str(data.path)},
            f"No cluster runs in {data.path}.{left_behind(data)} Start it: {data.command('up')}",
        )
        raise SystemExit(3)
    nodes, pods = (_items(data, running, plural) for plural in ("nodes", "pods"))
    summary = {
        "running": True,
        "data": str(data.path),
        "url": running.url,
        "pid": running.pid,
        "kubeconfig": str(data.kubeconfig),
        "nodes": {node["metadata"]["name"]: node["status"].get("allocatable") or {} for node in nodes},
        "pods": dict(sorted(Counter(_phase(pod) for pod in pods).items())),
    }
    _say(output, summary, _text(summary, _by_node(pods)))


def _say(output: str, summary: dict[str, Any], text: str) -> None:
    click.echo(json.dumps(summary, indent=2) if output == "json" else text)


def _text(summary: dict[str, Any], by_node: Counter[str]) -> str:
    from shoal.cli.amounts import spoken

    lines = [f"Cluster in {summary['data']} is up at {summary['url']} (pid {summary['pid']})"]
    for name, room in summary["nodes"].items():
        lines.append(f"  node {name}: {by_node[name]} pod{'s' * (by_node[name] != 1)}, {spoken(room)}")
    phases = ", ".join(f"{count} {phase}" for phase, count in summary["pods"].items()) or "none"
    lines += [f"  pods: {phases}", f"  export KUBECONFIG={summary['kubeconfig']}"]
    return "\n".join(lines)


def _by_node(pods: list[dict[str, Any]]) -> Counter[str]:
    placed = (pod["spec"].get("nodeName") for pod in pods if _phase(pod) in ("Pending", "Running"))
    return Counter(node for node in placed if node)


def _phase(pod: dict[str, Any]) -> str:
    return str((pod.get("status") or {}).get("phase") or "Pending")


def _items(data: DataFolder, running: Running, plural: str) -> list[dict[str, Any]]:
    from shoal.apiserver import kubeconfig

    request = urllib.request.Request(  # noqa: S310 - our own address
        f"{running.url}/api/v1/{plural}", headers={"Authorization": f"Bearer {data.token()}"}
    )
    try:
        # Not the cluster's own certificate: it may have been given another.
        trust = ssl.create_default_context(cadata=kubeconfig.authority(data.kubeconfig))
        with urllib.request.urlopen(request, context=trust, timeout=30) as answer:  # noqa: S310
            items: list[dict[str, Any]] = json.load(answer)["items"]
            return items
    except (urllib.error.URLError, OSError, ValueError) as problem:
        raise click.ClickException(
            f"the cluster in {data.path} (pid {running.pid}) does not answer at {running.url}: {problem}. "
            f"Its log is {data.log}."
        ) from None
