"""What the files of configMap, secret, downwardAPI and projected volumes hold.

Pure: a volume and the objects it refers to go in, a table of relative path -> `File` comes out, for
`atomic_files` to put on disk. A missing reference raises `NotThere` unless it is optional.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache

from shoal.kube.kinds import CONFIG_MAP, SECRET, Kind
from shoal.kube.objects import Obj
from shoal.node.downward_api import field_value, resource_value
from shoal.node.environment import Read, Surroundings, reader
from shoal.node.pod_references import NotThere
from shoal.node.service_account_tokens import NONE_HERE, Issued, wish_of

DEFAULT_MODE = 0o644


@dataclass(frozen=True, slots=True)
class File:
    data: bytes
    mode: int = DEFAULT_MODE


Files = dict[str, File]
Field = Callable[[str], bytes]  # of the pod, by its path

WRITTEN = ("configMap", "secret", "downwardAPI", "projected")


def is_written(volume: Obj) -> bool:
    """Whether the volume's files come from the API, and change when the API's objects do."""
    return any(source in volume for source in WRITTEN)


def files_of(pod: Obj, volume: Obj, around: Surroundings) -> Files:
    """The files of one such volume."""
    read = reader(pod, around)

    @cache  # many files may show the same annotations
    def field(path: str) -> bytes:
        return field_value(pod, path, pod_ip=around.pod_ip, host_ip=around.host_ip, node=around.node).encode()

    if source := volume.get("configMap"):
        return _keyed(CONFIG_MAP, source["name"], source, read, _mode(source))
    if source := volume.get("secret"):
        return _keyed(SECRET, source["secretName"], source, read, _mode(source))
    if "downwardAPI" in volume:
        source = volume["downwardAPI"] or {}
        return _downward(source, pod, around, field, _mode(source))
    return _projected(volume.get("projected") or {}, pod, around, read, field)


def _projected(source: Obj, pod: Obj, around: Surroundings, read: Read, field: Field) -> Files:
    files: Files = {}
    mode = _mode(source)
    for part in source.get("sources") or ():
        if chosen := part.get("configMap"):
            files.update(_keyed(CONFIG_MAP, chosen["name"], chosen, read, mode))
        elif chosen := part.get("secret"):
            files.update(_keyed(SECRET, chosen["name"], chosen, read, mode))
        elif chosen := part.get("downwardAPI"):
            files.update(_downward(chosen, pod, around, field, mode))
        elif "serviceAccountToken" in part:
            chosen = part["serviceAccountToken"] or {}
            files[chosen["path"]] = File(_token(chosen, around.lookup.issued), mode)
        else:
            raise NotThere(f"this node cannot project {', '.join(part)} into a volume")
    return files


def _token(source: Obj, issued: Issued | None) -> bytes:
    wish = wish_of(source)
    if issued is None:
        raise NotThere(NONE_HERE)
    if wish not in issued.tokens:
        raise NotThere(issued.refusals.get(wish, "the token of its service account has not been asked for yet"))
    return issued.tokens[wish]


def _mode(source: Obj) -> int:
    mode = source.get("defaultMode")
    return DEFAULT_MODE if mode is None else int(mode)


def _keyed(kind: Kind, name: str, source: Obj, read: Read, mode: int) -> Files:
    """All keys, or the `items` chosen from them with their own paths and modes."""
    data = read(kind, name)
    if data is None:
        if source.get("optional"):
            return {}
        raise NotThere(f'{kind.kind.lower()} "{name}" not found')
    if not source.get("items"):
        return {key: File(value, mode) for key, value in data.items()}
    files: Files = {}
    for item in source["items"]:
        if item["key"] in data:
            files[item["path"]] = File(data[item["key"]], _item_mode(item, mode))
        elif not source.get("optional"):
            raise NotThere(f'{kind.kind.lower()} "{name}" references non-existent key: {item["key"]}')
    return files


def _downward(source: Obj, pod: Obj, around: Surroundings, field: Field, mode: int) -> Files:
    files: Files = {}
    for item in source.get("items") or ():
        if ref := item.get("fieldRef"):
            data = field(ref["fieldPath"])
        else:
            data = resource_value(pod, {}, item["resourceFieldRef"], around.allocatable).encode()
        files[item["path"]] = File(data, _item_mode(item, mode))
    return files


def _item_mode(item: Obj, mode: int) -> int:
    return mode if item.get("mode") is None else int(item["mode"])
