"""An installation has the name of what it serves, and no rights elsewhere."""

from __future__ import annotations

import pytest

from shoal.install.manifests import render
from shoal.install.options import InstallOptions, default_name


@pytest.mark.parametrize(
    ("served", "name"),
    [(("", ""), "shoal"), (("team-a", ""), "shoal-team-a"), (("team-a", "Fast_1"), "shoal-team-a-fast-1")],
)
def test_installations_for_different_jobs_have_different_names(served: tuple[str, str], name: str) -> None:
    assert default_name(*served) == name


def test_an_installation_for_one_namespace_has_no_right_elsewhere() -> None:
    made = render(InstallOptions(watchNamespace="team-a"))
    assert [obj["kind"] for obj in made if obj["kind"].startswith("Cluster")] == []
    places = {obj["metadata"]["namespace"] for obj in made if obj["kind"] == "Role"}
    assert places == {"team-a", "shoal-system"}
