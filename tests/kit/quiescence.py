"""When an operator has come to rest: it has seen all there is, has thought about it, and has stored what it thinks.

Asked of its own state, and told by events: its copies change, a pass begins, its work runs out. A moment it waits for
(a retry that is due, a job kept for a month) is part of resting; facts that wait for company in the ledger are not.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from contextlib import ExitStack

from shoal.kube.objects import Obj
from shoal.operator.embedded import JobReconciler

Objects = Mapping[str, Mapping[str, Obj]]  # by resource and name


async def rested(
    loop: JobReconciler,
    there: Callable[[], Objects],
    *,
    namespace: str,
    changed: Callable[[], None],
    news: Callable[[], Awaitable[None]],
) -> None:
    """Until the operator rests on what is `there`; `news` waits for the next call of `changed`."""
    with ExitStack() as ending:
        for copy in loop._informers:
            ending.callback(copy.subscribe(lambda _: changed()))
        while True:
            await loop._work.idle()
            if loop.idle and _has_seen(loop, there(), namespace) and not _has_more_to_do(loop):
                return
            await news()


def _has_seen(loop: JobReconciler, there: Objects, namespace: str) -> bool:
    """Every kind in exactly the versions there are; each copy may know more than the scenario looks at."""
    for copy in loop._informers:
        seen = {key.name: _version(obj) for key, obj in copy.objects.items() if key.namespace == namespace}
        wanted = {name: _version(obj) for name, obj in there[copy.kind.resource].items()}
        if {name: version for name, version in seen.items() if name in wanted or name not in GIVEN} != wanted:
            return False
    return loop.is_synced and _shows_what_was_answered(loop, there, namespace)


def _shows_what_was_answered(loop: JobReconciler, there: Objects, namespace: str) -> bool:
    """The answer to a write is known to the operator before any watch tells of it."""
    jobs = there[loop._kind.resource]
    ours = {key.name: known for key, known in loop._cache.active.items() if key.namespace == namespace}
    return all(name not in jobs or _version(jobs[name]) == _version(known.manifest) for name, known in ours.items())


def _has_more_to_do(loop: JobReconciler) -> bool:
    entries = loop._cache.active.values()
    unwritten = any(entry.stored.unwritten_since is not None or entry.expectations._results for entry in entries)
    return unwritten or bool(loop._work._retries)


def _version(obj: Obj) -> str:
    return str(obj["metadata"]["resourceVersion"])


GIVEN = {"kube-root-ca.crt"}  # what every namespace of a real Kubernetes gets
