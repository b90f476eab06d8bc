"""Gang schedulers, which place the pods of a gang: one module each, chosen once for an operator.

    gang.py          what a job needs, independent of any scheduler
    backend.py       the interface: a gang in, an object and changes to pods out, a standing back
    volcano.py       Volcano's own scheduler, and Shoal's, which reads the same PodGroups
    coscheduling.py  the plugin of scheduler-plugins
    kueue.py         Kueue, which admits a job with all its pods
    native.py        the PodGroups of Kubernetes itself
    none.py          no gang scheduler: pods are placed one by one
    delegate.py      a dialect whose gangs are handed to one of these

A new scheduler is a new module here and its line in `_MAKERS`.
"""

from __future__ import annotations

from collections.abc import Callable

from shoal.dialects.gang_backends import coscheduling, kueue, native, none, volcano
from shoal.dialects.gang_backends.backend import Backend

_MAKERS: dict[str, Callable[[str, str], Backend]] = {
    "shoal": lambda scheduler, _: volcano.shoal(scheduler),
    "volcano": lambda scheduler, _: volcano.volcano(scheduler),
    "coscheduling": lambda scheduler, _: coscheduling.coscheduling(scheduler),
    "kueue": kueue.kueue,
    "native": native.native,
    "none": lambda scheduler, _: none.none(scheduler),
}
NAMES = tuple(_MAKERS)


def backend(name: str, *, scheduler: str = "", version: str = "") -> Backend:
    """The backend of that name; '' for its usual scheduler and the newest version of its API."""
    return _MAKERS[name](scheduler, version)


def backend_by_label(label: str) -> Backend | None:
    """Return the backend a job was handed to, as recorded on the job; None where that name is unknown."""
    name, _, version = label.partition("/")
    known = {"kueue": kueue.VERSIONS, "native": native.VERSIONS}.get(name)
    if name not in _MAKERS or (known is not None and version not in known):
        return None
    return backend(name, version=version)
