"""The contents of configMap, secret, downwardAPI and projected volumes.

Pure: takes a volume and the objects it refers to, and returns a table of relative path -> `File`, for `atomic_files` to
put on disk. A missing reference raises `ReferenceMissing` unless it is optional.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache

from shoal.kube.kinds import CONFIG_MAP, SECRET, Kind
from shoal.kube.messages import Message
from shoal.kube.objects import Obj
from shoal.node.downward_api import field_value, resource_value
from shoal.node.environment import EnvContext, Read, reader
from shoal.node.pod_references import ReferenceMissing, not_found
from shoal.node.service_account_tokens import token_request_of

DEFAULT_MODE = 0o644


@dataclass(frozen=True, slots=True)
class File:
    data: bytes
    mode: int = DEFAULT_MODE


Files = dict[str, File]
Field = Callable[[str], bytes]  # of the pod, by its path

FILE_VOLUMES = ("configMap", "secret", "downwardAPI", "projected")


def has_files(volume: Obj) -> bool:
    """Whether the volume's files come from the API, and change when the API's objects do."""
    return any(source in volume for source in FILE_VOLUMES)


def files_of(pod: Obj, volume: Obj, env_context: EnvContext) -> Files:
    """The files of one such volume."""
    read = reader(pod, env_context)

    @cache  # many files may show the same annotations
    def field(path: str) -> bytes:
        return field_value(
            pod, path, pod_ip=env_context.pod_ip, host_ip=env_context.host_ip, node=env_context.node
        ).encode()

    if source := volume.get("configMap"):
        return _keyed(CONFIG_MAP, source["name"], source, read, _mode(source))
    if source := volume.get("secret"):
        return _keyed(SECRET, source["secretName"], source, read, _mode(source))
    if "downwardAPI" in volume:
        source = volume["downwardAPI"] or {}
        return _downward(source, pod, env_context, field, _mode(source))
    return _projected(volume.get("projected") or {}, pod, env_context, read, field)


def _projected(source: Obj, pod: Obj, env_context: EnvContext, read: Read, field: Field) -> Files:
    files: Files = {}
    mode = _mode(source)
    for part in source.get("sources") or ():
        if chosen := part.get("configMap"):
            files.update(_keyed(CONFIG_MAP, chosen["name"], chosen, read, mode))
        elif chosen := part.get("secret"):
            files.update(_keyed(SECRET, chosen["name"], chosen, read, mode))
        elif chosen := part.get("downwardAPI"):
            files.update(_downward(chosen, pod, env_context, field, mode))
        elif "serviceAccountToken" in part:
            chosen, issued = part["serviceAccountToken"] or {}, env_context.lookup.issued
            token_request = token_request_of(chosen)
            if issued is None:
                raise ReferenceMissing(Message("Token.NotIssued"))
            if token_request not in issued.tokens:
                raise ReferenceMissing(issued.refusals.get(token_request) or Message("Token.NotRequested"))
            files[chosen["path"]] = File(issued.tokens[token_request], mode)
        else:
            raise ReferenceMissing(Message("Volume.UnknownSource", {"sources": list(part)}))
    return files


def _mode(source: Obj) -> int:
    mode = source.get("defaultMode")
    return DEFAULT_MODE if mode is None else int(mode)


def _keyed(kind: Kind, name: str, source: Obj, read: Read, mode: int) -> Files:
    """All keys, or the `items` chosen from them with their own paths and modes."""
    data = read(kind, name)
    if data is None:
        if source.get("optional"):
            return {}
        raise not_found(kind, name)
    if not source.get("items"):
        return {key: File(value, mode) for key, value in data.items()}
    files: Files = {}
    for item in source["items"]:
        if item["key"] in data:
            files[item["path"]] = File(data[item["key"]], _item_mode(item, mode))
        elif not source.get("optional"):
            parameters = {"kind": kind.kind.lower(), "name": name, "key": item["key"]}
            raise ReferenceMissing(Message("Object.NoSuchKey", parameters))
    return files


def _downward(source: Obj, pod: Obj, env_context: EnvContext, field: Field, mode: int) -> Files:
    files: Files = {}
    for item in source.get("items") or ():
        if ref := item.get("fieldRef"):
            data = field(ref["fieldPath"])
        else:
            data = resource_value(pod, {}, item["resourceFieldRef"], env_context.allocatable).encode()
        files[item["path"]] = File(data, _item_mode(item, mode))
    return files


def _item_mode(item: Obj, mode: int) -> int:
    return mode if item.get("mode") is None else int(item["mode"])
