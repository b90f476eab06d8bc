"""The texts of all message catalogs, by code, with sample parameters.

Other tests assert codes and parameters. A sentence is changed in its catalog and here, and nowhere else.
"""

from __future__ import annotations

from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from string import Formatter
from typing import Any

import pytest

import shoal
from golden.conftest import Golden
from shoal.kube.messages import Catalog, Message

ROOT = Path(shoal.__file__).parent

SAMPLES: dict[str, Any] = {
    "account": "trainer",
    "action": "RestartJob",
    "address": "10.0.0.1",
    "advice": "ADVICE",
    "allowed": ["a", "b"],
    "amount": "8",
    "annotation": "example.com/note",
    "attempt": 1,
    "budget": "etcd",
    "budgets": ["etcd", "store"],
    "capacity": "8",
    "cause": "CAUSE",
    "causes": ["CAUSE", "CAUSE"],
    "charged": 1,
    "children": ["a", "b"],
    "claim": "checkpoints",
    "claims": ["checkpoints", "data"],
    "code": 137,
    "command": "AbortJob",
    "container": "main",
    "containers": ["main", "side"],
    "count": 3,
    "domain": "rack-1",
    "error": "ERROR",
    "exist": "2 pods",
    "field": "deserved",
    "file": "/data/model",
    "first": "main",
    "fits": 2,
    "folder": "/data",
    "free": "1",
    "gate": "example.com/gate",
    "gated": 2,
    "group": "pet",
    "handlers": ["exec", "httpGet"],
    "high": "capability",
    "high_amount": "4",
    "holder": "other",
    "image": "acme/trainer:1",
    "job": "pet",
    "key": "kubernetes.io/hostname",
    "kind": "PodGroup",
    "kinds": ["ConfigMap", "Secret"],
    "known": ["OpenQueue", "CloseQueue"],
    "least": 4,
    "limit": "8",
    "low": "guarantee",
    "low_amount": "6",
    "max_skew": 1,
    "medium": "Memory",
    "members": "2 of the 4 pods it needs at once",
    "missing": 2,
    "more": 2,
    "most": 10,
    "mount": "/data",
    "name": "pet",
    "namespace": "team-a",
    "namespaces": ["team-a", "team-b"],
    "need": "4",
    "network": "isolated",
    "node": "node-1",
    "nodes": "all 3 nodes",
    "number": 2,
    "others": "pod with app=a",
    "outcome": "OUTCOME",
    "output": "OUTPUT",
    "owner": "nobody",
    "parameter": "PARAMETER",
    "parent": "root",
    "parts": ["CAUSE", "CAUSE"],
    "path": "root/sci",
    "pause": "10s",
    "permitted": 3,
    "phase": "Pending",
    "phrase": "PHRASE",
    "placed": 2,
    "pod": "pet-worker-0",
    "pods": "4 pods",
    "port": 8080,
    "probe": "Readiness",
    "protocol": "TCP",
    "python": "/usr/bin/python3",
    "queue": "research",
    "quota": "compute",
    "range": "10.77.0.0/16",
    "reason": "REASON",
    "remedy": "REMEDY",
    "requested": "4",
    "resource": "cpu",
    "retry": "RETRY",
    "role": "worker",
    "round": 2,
    "run": 1,
    "seconds": 30,
    "selector": "app=a",
    "since": "12:00:00",
    "size": 4,
    "sources": ["configMap", "secret"],
    "started": 3,
    "status": 500,
    "steps": 2,
    "storage_class": "standard",
    "subject": "worker-0",
    "taint": "gpu:NoSchedule",
    "target": "worker-0",
    "task": "worker-0",
    "tasks": "worker-0..2",
    "text": "TEXT",
    "tier": "rack",
    "times": 5,
    "total": 4,
    "type": "DirectoryOrCreate",
    "uid": "1000",
    "unit": "role worker",
    "url": "http://10.0.0.1/",
    "used": "6",
    "user": "trainer",
    "value": "VALUE",
    "variable": "HOME",
    "variables": ["HOME", "USER"],
    "verb": "mount",
    "volume": "disk-1",
    "ways": ["REMEDY", "REMEDY"],
    "weight": "x",
    "weights": "1/x",
    "whole": "8",
}


def catalogs() -> Iterator[tuple[str, dict[str, Catalog]]]:
    """Each package with a `messages.py`, and the catalogs in it, by name."""
    for path in sorted(ROOT.rglob("messages.py")):
        package = ".".join(path.relative_to(ROOT).parent.parts)
        module = import_module(f"shoal.{package}.messages")
        if found := {name: value for name, value in vars(module).items() if isinstance(value, Catalog)}:
            yield package, found


CATALOGS = dict(catalogs())


def own_texts(package: str) -> dict[str, dict[str, str]]:
    """The texts that the package adds to catalogs it imports, by catalog and code."""
    others = {name for name, each in CATALOGS[package].items() for other, several in CATALOGS.items()
              if other != package and each in several.values()}  # fmt: skip
    imported = {code: text for name in others for code, text in CATALOGS[package][name].texts.items()}
    return {
        name: {code: text for code, text in each.texts.items() if imported.get(code) != text}
        for name, each in CATALOGS[package].items()
        if name not in others
    }


def render(code: str, catalog: Catalog) -> str:
    fields = [name for _, name, _, _ in Formatter().parse(catalog.texts[code]) if name]
    lacking = sorted(set(fields) - SAMPLES.keys())
    assert not lacking, f"{code} has parameters without a sample value: {', '.join(lacking)}"
    return catalog.text(Message(code, {name: SAMPLES[name] for name in fields}))


@pytest.mark.parametrize("package", CATALOGS)
def test_the_texts_of_a_catalog_are_on_file(package: str, golden: Golden) -> None:
    sections = []
    for name, texts in own_texts(package).items():
        catalog = CATALOGS[package][name]
        sections.append("\n".join([f"# {name}", *(f"{code}: {render(code, catalog)}" for code in texts)]))
    golden(f"messages/{package}.txt", "\n\n".join(sections))
