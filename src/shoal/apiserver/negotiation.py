"""What form an answer takes: JSON or YAML, the object itself, a Table for people, or its metadata alone.

Clients send it in the Accept header, preferred forms first. Headers repeat, so each distinct one is read once.
"""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

from shoal.kube.errors import ApiError

SERVED = ("application/json", "application/yaml")


class ResponseForm(NamedTuple):
    """`shape` is '' for the object as it is, else Table, PartialObjectMetadata or PartialObjectMetadataList."""

    yaml: bool = False
    shape: str = ""
    version: str = "v1"
    group: str = ""

    @property
    def content_type(self) -> bytes:
        return b"application/yaml" if self.yaml else b"application/json"


UNCHANGED = ResponseForm()
_SHAPES = frozenset({"Table", "PartialObjectMetadata", "PartialObjectMetadataList"})


class _Clause(NamedTuple):
    media_type: str
    parameters: dict[str, str]
    quality: float


@lru_cache(maxsize=512)
def read(accept: bytes, *, streaming: bool = False) -> ResponseForm:
    """The first form the client accepts that is served; 406 where there is none. A watch is always JSON."""
    text = accept.decode("latin-1").strip()
    if not text:
        return UNCHANGED
    for clause in _clauses(text):
        if (form := _form_of(clause)) is not None and not (streaming and form.yaml):
            return form
    served = ", ".join(SERVED[:1] if streaming else SERVED)
    raise ApiError(406, "NotAcceptable", f"only the following media types are accepted: {served}")


@lru_cache(maxsize=512)
def wants_group_list(accept: bytes) -> str:
    """The version of aggregated discovery a client prefers to the plain form, or ''."""
    for clause in _clauses(accept.decode("latin-1")):
        if clause.media_type != "application/json":
            continue
        wanted = clause.parameters
        if wanted.get("as") != "APIGroupDiscoveryList":
            return ""
        if wanted.get("g") == "apidiscovery.k8s.io" and wanted.get("v") in ("v2", "v2beta1"):
            return wanted["v"]
    return ""


def _clauses(text: str) -> list[_Clause]:
    found = []
    for part in text.split(","):
        if not part.strip():
            continue
        media_type, *rest = (piece.strip() for piece in part.split(";"))
        parameters = {name.strip(): value.strip() for name, _, value in (piece.partition("=") for piece in rest)}
        try:
            quality = float(parameters.get("q", "1"))
        except ValueError:
            quality = 0.0
        found.append(_Clause(media_type.lower(), parameters, quality))
    return sorted(found, key=lambda clause: -clause.quality)  # stable: equal qualities keep their order


def _form_of(clause: _Clause) -> ResponseForm | None:
    if clause.media_type == "application/yaml":
        yaml = True
    elif clause.media_type in ("application/json", "*/*", "application/*"):
        yaml = False
    else:
        return None
    shape = clause.parameters.get("as", "")
    if not shape:
        return ResponseForm(yaml)
    version, group = clause.parameters.get("v", ""), clause.parameters.get("g", "")
    if shape in _SHAPES and group == "meta.k8s.io" and version in ("v1", "v1beta1"):
        return ResponseForm(yaml, shape, version, group)
    return None


def wants_pretty(query: dict[str, list[str]], user_agent: bytes) -> bool:
    """Whether to indent: requested by ?pretty, or a tool whose output is read by eye."""
    pretty = query.get("pretty", [""])[0]
    if pretty:
        return pretty in ("1", "t", "T", "true", "True", "TRUE")
    return user_agent.startswith((b"curl", b"Wget", b"Mozilla/5.0"))
