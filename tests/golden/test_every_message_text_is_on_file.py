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
    "action": "RestartJob",
    "amount": "8",
    "attempt": 1,
    "budget": "etcd",
    "budgets": ["etcd", "store"],
    "cause": "CAUSE",
    "causes": ["CAUSE", "CAUSE"],
    "charged": 1,
    "children": ["a", "b"],
    "claim": "checkpoints",
    "claims": ["checkpoints", "data"],
    "code": 137,
    "command": "AbortJob",
    "count": 3,
    "domain": "rack-1",
    "error": "ERROR",
    "exist": "2 pods",
    "field": "deserved",
    "fits": 2,
    "free": "1",
    "gated": 2,
    "group": "pet",
    "high": "capability",
    "high_amount": "4",
    "job": "pet",
    "key": "kubernetes.io/hostname",
    "kind": "PodGroup",
    "known": ["OpenQueue", "CloseQueue"],
    "least": 4,
    "limit": "8",
    "low": "guarantee",
    "low_amount": "6",
    "max_skew": 1,
    "members": "2 of the 4 pods it needs at once",
    "missing": 2,
    "more": 2,
    "most": 10,
    "name": "pet",
    "namespace": "team-a",
    "namespaces": ["team-a", "team-b"],
    "need": "4",
    "node": "node-1",
    "nodes": "all 3 nodes",
    "others": "pod with app=a",
    "outcome": "OUTCOME",
    "parent": "root",
    "parts": ["CAUSE", "CAUSE"],
    "path": "root/sci",
    "permitted": 3,
    "phrase": "PHRASE",
    "placed": 2,
    "pod": "pet-worker-0",
    "pods": "4 pods",
    "port": 8080,
    "queue": "research",
    "quota": "compute",
    "remedy": "REMEDY",
    "resource": "cpu",
    "role": "worker",
    "round": 2,
    "run": 1,
    "seconds": 30,
    "selector": "app=a",
    "since": "12:00:00",
    "size": 4,
    "started": 3,
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
    "unit": "role worker",
    "used": "6",
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
