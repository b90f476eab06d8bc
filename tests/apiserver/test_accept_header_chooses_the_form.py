"""The Accept header decides what an answer looks like."""

from __future__ import annotations

import pytest

from shoal.apiserver import negotiation
from shoal.apiserver.negotiation import ResponseForm
from shoal.kube.errors import ApiError

KUBECTL = (
    b"application/json;as=Table;v=v1;g=meta.k8s.io,application/json;as=Table;v=v1beta1;g=meta.k8s.io,application/json"
)
FORMS = {
    b"": ResponseForm(),
    b"*/*": ResponseForm(),
    b"application/*": ResponseForm(),
    b"application/json": ResponseForm(),
    b"application/yaml": ResponseForm(yaml=True),
    b"application/vnd.kubernetes.protobuf,application/json": ResponseForm(),
    b"application/vnd.kubernetes.protobuf, */*": ResponseForm(),
    b"application/yaml;q=0.1, application/json": ResponseForm(),
    KUBECTL: ResponseForm(False, "Table", "v1", "meta.k8s.io"),
    b"application/json;as=Table;v=v2;g=meta.k8s.io,application/json": ResponseForm(),
    b"application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1": ResponseForm(
        False, "PartialObjectMetadataList", "v1", "meta.k8s.io"
    ),
}


@pytest.mark.parametrize(("header", "form"), FORMS.items(), ids=[h.decode() or "none" for h in FORMS])
def test_the_most_wanted_form_we_have_is_taken(header: bytes, form: ResponseForm) -> None:
    assert negotiation.read(header) == form


@pytest.mark.parametrize("header", [b"text/html", b"application/vnd.kubernetes.protobuf"])
def test_an_unsupported_media_type_is_rejected(header: bytes) -> None:
    with pytest.raises(ApiError) as refused:
        negotiation.read(header)
    assert (refused.value.code, refused.value.reason, refused.value.message) == (
        406,
        "NotAcceptable",
        "only the following media types are accepted: application/json, application/yaml",
    )


def test_a_watch_is_not_served_as_yaml() -> None:
    with pytest.raises(ApiError):
        negotiation.read(b"application/yaml", streaming=True)


@pytest.mark.parametrize(
    ("header", "version"),
    [
        (b"application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList,application/json", "v2"),
        (b"application/json;g=apidiscovery.k8s.io;v=v2beta1;as=APIGroupDiscoveryList", "v2beta1"),
        (b"application/json", ""),
        (b"application/json,application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList", ""),
        (b"", ""),
    ],
)
def test_aggregated_discovery_is_served_where_accepted(header: bytes, version: str) -> None:
    assert negotiation.wants_group_list(header) == version
