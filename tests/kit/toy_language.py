"""The language of docs/writing-a-dialect.md, made of the code on that page, and a world for its jobs."""

from __future__ import annotations

import re
import sys
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any

from kit.pod_behavior import Fate, Rule, exits, pod_with
from kit.scenario import SimulatedWorld
from shoal.dialects.dialect import Dialect
from shoal.kube.objects import Obj

PAGE = Path(__file__).resolve().parents[2] / "docs" / "writing-a-dialect.md"
BLOCK = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def toy_source() -> str:
    return "\n\n".join(BLOCK.findall(PAGE.read_text()))


@cache
def toy_dialect() -> Dialect:
    module = ModuleType("toy_swarm")
    sys.modules[module.__name__] = module  # where pydantic looks up the types of its models
    exec(compile(toy_source(), str(PAGE), "exec"), module.__dict__)
    found: Dialect = module.DIALECT
    return found


def swarm(name: str = "a", fate: Fate | None = None, **spec: Any) -> Obj:
    kind = toy_dialect().kind
    template = pod_with(Rule(fate or exits(0)))
    return {
        "apiVersion": kind.api_version,
        "kind": kind.kind,
        "metadata": {"name": name},
        "spec": {"template": template, **spec},
    }


class SwarmWorld(SimulatedWorld):
    """Virtual time, with jobs of the toy language."""

    dialect = toy_dialect()

    def settings(self, config: Obj | None) -> Any:
        return self.dialect.settings(config)

    def phase(self, name: str) -> str:
        return str(self.status(name).get("phase"))

    def counts(self, name: str) -> Obj:
        found: Obj = self.status(name).get("roles", {}).get("worker", {})
        return found

    async def ended(self, name: str) -> str:
        await self.until(lambda: self.phase(name) in ("Succeeded", "Failed"))
        return self.phase(name)
