"""The operator has a right to Secrets only where plugin ssh of Volcano Jobs is on."""

from __future__ import annotations

from typing import Any

import pytest

from kit.volcano_jobs import task, vcjob
from shoal.dialects import NAMES
from shoal.dialects.dialect import ManifestInvalid
from shoal.dialects.volcano import DIALECT
from shoal.dialects.without_secrets import without_secrets
from shoal.install.manifests import render
from shoal.install.options import InstallOptions
from shoal.kube.objects import Obj
from shoal.operator.main import OperatorOptions, _operator_config
from shoal.operator.rbac import job_rights

WITHOUT = without_secrets(DIALECT)


def granted(**chosen: Any) -> set[str]:
    """Verbs on Secrets that are not limited to one by name."""
    roles = [
        each for each in render(InstallOptions(dialects=NAMES, **chosen)) if each["kind"] in ("Role", "ClusterRole")
    ]
    rules = [rule for role in roles for rule in role["rules"] if "secrets" in rule["resources"]]
    return {verb for rule in rules if "resourceNames" not in rule for verb in rule["verbs"]}


def asked(**said: Any) -> set[str]:
    """Verbs on Secrets that an operator asks for when it starts."""
    dialects = _operator_config(OperatorOptions(dialects=NAMES, **said)).dialects.values()
    return {right.verb for right in job_rights(dialects) if right.resource == "secrets"}


def with_plugin(name: str) -> Obj:
    made = vcjob("a", task("master"), task("worker"), plugins={name: []})
    made["metadata"] |= {"uid": "u", "namespace": "default"}
    return DIALECT.default(made)


def test_10_a_right_to_secrets_comes_with_the_plugin_and_not_without():
    assert granted() == granted(webhook=True) == asked() == set()
    assert granted(sshPlugin=True) == asked(ssh_plugin=True) == {"create", "delete", "get", "list", "patch", "watch"}


@pytest.mark.parametrize("plugin", ["ssh", "mpi"])
def test_10_without_it_a_job_that_needs_a_key_is_refused_with_the_way_out(plugin: str):
    manifest = with_plugin(plugin)
    words = "shoal install --ssh-plugin"

    assert DIALECT.validate(manifest) == []
    assert [words in str(cause) for cause in WITHOUT.validate(manifest)] == [True]
    with pytest.raises(ManifestInvalid, match=words):
        WITHOUT.to_job(manifest, WITHOUT.settings(None))


def test_10_without_it_other_jobs_are_served():
    manifest = with_plugin("svc")

    assert WITHOUT.validate(manifest) == []
    assert WITHOUT.to_job(manifest, WITHOUT.settings(None)) is not None
