"""The kinds of jobs on a cluster that is not our own: found, created where they are missing, never fought over.

A definition that carries our label is kept up to date. One of another owner is used as it is: it may prune fields or
have no status subresource, and the consequences are reported in a message. Where this account may not read definitions
at all, the server's discovery has to do.
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
_MAX_LISTED = 5


class CrdUnusable(Exception):
    """A job language cannot be served here; the message has the reason and what to do."""


class DiscoveryCluster(Cluster, Protocol):
    """A cluster that also reports which kinds it serves."""

    async def find_kind(self, api_version: str, kind: str) -> Kind | None: ...


@dataclass(frozen=True, slots=True)
class CrdState:
    """What was found under the name of a definition, and what became of it."""

    name: str
    action: str  # created, configured, unchanged, left alone
    has_status: bool = True
    remark: str = ""  # a note for the user


async def apply_crd(cluster: Cluster, definition: Obj, *, status: Obj | None = None, dry_run: bool = False) -> CrdState:
    """Create or update our definition, or leave another owner's alone. 403 where we may not read or create it.

    `status`: the fields of the status, where our definition leaves them open.
    """
    name = name_of(definition)
    found: Obj | None
    try:
        found = await cluster.get(CUSTOM_RESOURCE_DEFINITION, name)
    except ApiError as refused:
        if refused.code != 404:
            raise
        found = None
    if found is not None and labels_of(found).get(PART_OF) != "shoal":
        return check_foreign_crd(found, definition, status)
    applied = await cluster.patch(
        CUSTOM_RESOURCE_DEFINITION, name,
        patch=definition, patch_type=PatchType.APPLY, field_manager=MANAGER, force=True, dry_run=dry_run,
    )  # fmt: skip
    if not dry_run and not is_true(applied, "Established"):
        await wait_established(cluster, name)
    if found is None:
        return CrdState(name, "created")
    same = applied["metadata"]["resourceVersion"] == found["metadata"]["resourceVersion"]
    return CrdState(name, "unchanged" if same else "configured")


async def wait_established(cluster: Cluster, name: str) -> None:
    """Wait until the cluster serves the kind."""
    while True:  # a watch may end before its time
        events = cluster.watch(CUSTOM_RESOURCE_DEFINITION, fields=f"metadata.name={name}", initial_events=True)
        async with aclosing(cast(AsyncGenerator[WatchEvent, None], events)) as stream:
            async for event in stream:
                if is_true(event.object, "Established"):
                    return


# --- another owner's -----------------------------------------------------------------------------------------------


def check_foreign_crd(found: Obj, ours: Obj, status: Obj | None = None) -> CrdState:
    """What another owner's definition lacks of ours, whose status has the fields of `status` where it is left open."""
    name, our_version = name_of(ours), ours["spec"]["versions"][0]
    version = next((each for each in found["spec"]["versions"] if each["name"] == our_version["name"]), None)
    if version is None or not version.get("served"):
        raise CrdUnusable(
            f"the definition {name} in this cluster is not Shoal's and does not serve "
            f"{our_version['name']}. Remove it, or take its language out of --dialects"
        )
    has_status = "status" in (version.get("subresources") or {})
    schema = at_path(version, "schema", "openAPIV3Schema", default={})
    our_schema = our_version["schema"]["openAPIV3Schema"]
    if status is not None:
        our_schema = {**our_schema, "properties": {**our_schema["properties"], "status": status}}
    dropped = [] if found["spec"].get("preserveUnknownFields") else list(_dropped_fields(our_schema, schema))
    return CrdState(name, "left alone", has_status, _warning(dropped, has_status=has_status))


def _warning(dropped: list[str], *, has_status: bool) -> str:
    sentences = ["it is not Shoal's and stays as it is"]
    if not has_status:
        sentences.append("it has no status subresource, so the status is written with the job")
    if dropped:
        suffix = f" and {len(dropped) - _MAX_LISTED} more" if len(dropped) > _MAX_LISTED else ""
        sentences.append(f"it drops fields that Shoal knows: {', '.join(dropped[:_MAX_LISTED])}{suffix}")
    return "; ".join(sentences)


def _dropped_fields(ours: Any, theirs: Any, path: str = "") -> Iterator[str]:
    """Paths of fields that a server with their schema would prune."""
    if theirs.get("x-kubernetes-preserve-unknown-fields"):
        return
    known = theirs.get("properties") or {}
    for name, schema in (ours.get("properties") or {}).items():
        if path == "" and name in ("apiVersion", "kind", "metadata"):
            continue
        if name in known:
            yield from _dropped_fields(schema, known[name], f"{path}.{name}")
        elif "additionalProperties" not in theirs:
            yield f"{path}.{name}"
    if "items" in ours and "items" in theirs:
        yield from _dropped_fields(ours["items"], theirs["items"], f"{path}[]")
