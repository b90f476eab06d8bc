"""Killing a program at a chosen step: every call it makes to the world passes a `Lifeline`.

Step n is the moment before or after the n-th effect. At the chosen step the program is dead: the call never
comes back and no later call of the same life has any effect, which is what kill -9 looks like from outside.
"""

from __future__ import annotations

import asyncio
from typing import Any


class Killed(BaseException):
    """Raised in a program's own synchronous steps; nothing in the program catches it."""


class Lifeline:
    """One life. `killed` is set when the step comes; `steps` names what was passed."""

    def __init__(self, die_at: int | None = None) -> None:
        self.die_at = die_at
        self.killed = asyncio.Event()
        self.steps: list[str] = []

    def _passes(self, step: str) -> bool:
        if self.killed.is_set():
            return False
        if len(self.steps) == self.die_at:
            self.killed.set()
            return False
        self.steps.append(step)
        return True

    async def step(self, name: str) -> None:
        if not self._passes(name):
            await asyncio.get_running_loop().create_future()

    def step_now(self, name: str) -> None:
        if not self._passes(name):
            raise Killed(name)


class Mortal:
    """Wraps an object so that its chosen coroutine methods pass the lifeline before and after they act."""

    def __init__(self, inner: Any, life: Lifeline, name: str, methods: tuple[str, ...], wrap: dict[str, Any]) -> None:
        self._inner = inner
        self._life = life
        self._name = name
        self._methods = methods
        self._wrap = wrap

    def __getattr__(self, attribute: str) -> Any:
        value = getattr(self._inner, attribute)
        if attribute not in self._methods:
            return value

        async def mortal(*args: Any, **kwargs: Any) -> Any:
            step = f"{self._name}.{attribute}"
            await self._life.step(f"before {step}")
            result = await value(*args, **kwargs)
            await self._life.step(f"after {step}")
            return self._wrap[attribute](result) if attribute in self._wrap else result

        return mortal


def mortal_cluster(cluster: Any, life: Lifeline) -> Any:
    return Mortal(cluster, life, "cluster", ("create", "patch", "delete", "get"), {})


def mortal_sandboxes(sandboxes: Any, life: Lifeline) -> Any:
    def one(sandbox: Any) -> Any:
        return Mortal(sandbox, life, "sandbox", ("start", "signal", "close"), {})

    def adopted(found: Any) -> Any:
        kept, lost = found
        return [one(sandbox) for sandbox in kept], lost

    return Mortal(sandboxes, life, "sandboxes", ("create", "adopt", "remove"), {"create": one, "adopt": adopted})
