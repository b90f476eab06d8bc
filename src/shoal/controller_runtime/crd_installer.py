"""The kinds of jobs on a cluster that is not our own: found, made where they are missing, never fought over.

A definition that carries our label is kept up to date. One that somebody else made is used as it is: it may prune
fields or have no status subresource, and what that costs is said in a sentence. Where this account may not look at
definitions at all, what the server says it serves has to do.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Iterator
from contextlib import aclosing
from dataclasses import dataclass
from typing import Any, Protocol, cast

from shoal.cluster.client import Cluster, PatchType, WatchEvent
from shoal.controller_runtime.labels import PART_OF
from shoal.kube.conditions import is_true
from shoal.kube.errors import ApiError
from shoal.kube.kinds import CUSTOM_RESOURCE_DEFINITION, Kind
from shoal.kube.objects import Obj, at_path, labels_of, name_of
from shoal.logs import Logger

log = Logger(__name__)

MANAGER = "shoal-install"
_SHOWN = 5


class Unserved(Exception):
    """A job language cannot be served here; the message says why and what to do."""


class Discovering(Cluster, Protocol):
    """A cluster that also says which kinds it serves."""

    async def find_kind(self, api_version: str, kind: str) -> Kind | None: ...


@dataclass(frozen=True, slots=True)
class Standing:
    """What was found under the name of a definition, and what became of it."""

    name: str
    action: str  # created, configured, unchanged, left alone
    has_status: bool = True
    remark: str = ""  # what people should know


async def ensure(cluster: Cluster, definition: Obj, *, status: Obj | None = None, dry_run: bool = False) -> Standing:
    """Make or renew our definition, or leave somebody else's alone. 403 where we may not look or make.

    `status`: the fields of the status, where our definition leaves them open.
    """
    name = name_of(definition)
    found = await _existing(cluster, name)
    if found is not None and not _is_ours(found):
        return judge(found, definition, status)
    made = await cluster.patch(
        CUSTOM_RESOURCE_DEFINITION, name,
        patch=definition, patch_type=PatchType.APPLY, field_manager=MANAGER, force=True, dry_run=dry_run,
    )  # fmt: skip
    if not dry_run and not is_true(made, "Established"):
        await established(cluster, name)
    if found is None:
        return Standing(name, "created")
    same = made["metadata"]["resourceVersion"] == found["metadata"]["resourceVersion"]
    return Standing(name, "unchanged" if same else "configured")


async def established(cluster: Cluster, name: str) -> None:
    """Wait until the cluster serves the kind."""
    events = cluster.watch(CUSTOM_RESOURCE_DEFINITION, fields=f"metadata.name={name}", initial_events=True)
    async with aclosing(cast(AsyncGenerator[WatchEvent, None], events)) as told:
        async for event in told:
            if is_true(event.object, "Established"):
                return


# --- somebody else's -----------------------------------------------------------------------------------------------


def judge(found: Obj, ours: Obj, status: Obj | None = None) -> Standing:
    """What somebody else's definition lacks of ours, whose status has the fields of `status` where it is left open."""
    name, wanted = name_of(ours), ours["spec"]["versions"][0]
    version = next((each for each in found["spec"]["versions"] if each["name"] == wanted["name"]), None)
    if version is None or not version.get("served"):
        raise Unserved(
            f"the definition {name} in this cluster was made by somebody else and does not serve {wanted['name']}. "
            f"Remove it, or take its language out of --dialects"
        )
    has_status = "status" in (version.get("subresources") or {})
    schema = at_path(version, "schema", "openAPIV3Schema", default={})
    whole = wanted["schema"]["openAPIV3Schema"]
    if status is not None:
        whole = {**whole, "properties": {**whole["properties"], "status": status}}
    lost = [] if found["spec"].get("preserveUnknownFields") else list(_lost(whole, schema))
    return Standing(name, "left alone", has_status, _remark(lost, has_status=has_status))


def _remark(lost: list[str], *, has_status: bool) -> str:
    said = ["it was made by somebody else and stays as it is"]
    if not has_status:
        said.append("it has no status subresource, so the status is written with the job")
    if lost:
        more = f" and {len(lost) - _SHOWN} more" if len(lost) > _SHOWN else ""
        said.append(f"it drops fields that Shoal knows: {', '.join(lost[:_SHOWN])}{more}")
    return "; ".join(said)


def _lost(ours: Any, theirs: Any, path: str = "") -> Iterator[str]:
    """Paths of fields that a server with their schema would prune."""
    if theirs.get("x-kubernetes-preserve-unknown-fields"):
        return
    known = theirs.get("properties") or {}
    for name, schema in (ours.get("properties") or {}).items():
        if path == "" and name in ("apiVersion", "kind", "metadata"):
            continue
        if name in known:
            yield from _lost(schema, known[name], f"{path}.{name}")
        elif "additionalProperties" not in theirs:
            yield f"{path}.{name}"
    if "items" in ours and "items" in theirs:
        yield from _lost(ours["items"], theirs["items"], f"{path}[]")


async def _existing(cluster: Cluster, name: str) -> Obj | None:
    try:
        return await cluster.get(CUSTOM_RESOURCE_DEFINITION, name)
    except ApiError as refused:
        if refused.code == 404:
            return None
        raise


def _is_ours(definition: Obj) -> bool:
    return labels_of(definition).get(PART_OF) == "shoal"
