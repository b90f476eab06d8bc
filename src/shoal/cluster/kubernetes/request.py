"""A request to an API server, and how it is to be handled on the way."""

from __future__ import annotations

from dataclasses import dataclass

JSON = "application/json"
# Metadata alone, or all of it where that cannot be had.
METADATA = f"{JSON};as=PartialObjectMetadata;g=meta.k8s.io;v=v1,{JSON}"
LIST_OF_METADATA = f"{JSON};as=PartialObjectMetadataList;g=meta.k8s.io;v=v1,{JSON}"


@dataclass(frozen=True, slots=True)
class ApiRequest:
    method: str
    path: str  # with its query, both encoded
    body: bytes | None = None
    content_type: str = JSON
    accept: str = JSON
    repeatable: bool = False  # twice is the same as once
    urgent: bool = False  # does not wait in line
    latency_class: str = ""  # whose latency shows the server's state; '' where it depends on the response's size
    verb: str = "get"
    resource: str = ""  # the plural of what is requested; '' where it is the server itself

    def __str__(self) -> str:
        return f"{self.method} {self.path.partition('?')[0]}"
