"""The chart, the kustomize base and `shoal install` are one thing, and a real API server accepts all of it."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest
import yaml

from kit.control_plane import ROOT, binaries
from kit.operator_namespace import Ground
from shoal.cluster.client import PatchType
from shoal.controller_runtime.crd_installer import wait_established
from shoal.dialects import DEFAULT, NAMES
from shoal.install.manifests import definitions, render
from shoal.install.options import InstallOptions
from shoal.kube.errors import ApiError
from shoal.kube.kinds import CUSTOM_RESOURCE_DEFINITION, POD
from shoal.kube.objects import Obj, name_of, namespace_of

CHART = ROOT / "deploy/helm/shoal"
CHOICES = {
    "as it comes": {},
    "with a webhook": {"webhook": True, "failurePolicy": "Fail", "apiServers": ("10.0.0.0/24", "fd00::1/128")},
    "for one namespace and class": {"watchNamespace": "team-a", "jobClass": "fast", "webhook": True},
    "with plugin ssh": {"dialects": NAMES, "sshPlugin": True},
    "sharded": {"replicas": 3, "shards": 3, "name": "fleet"},
    "with the scheduler": {"scheduler": True},
    "with a scheduler that is told and watched": {
        "scheduler": True, "serviceMonitor": True,
        "schedulerSharing": "capacity", "schedulerTiers": ("rack", "zone"), "schedulerVolcano": "no",
    },
    "watched by Prometheus": {"serviceMonitor": True, "logFormat": "text"},
    "with gangs placed by Kueue": {"dialects": NAMES, "gangScheduler": "kueue", "gangSchedulerName": "second"},
    "beside an original definition": {"plainStatus": NAMES},
}  # fmt: skip


@pytest.fixture(scope="session")
def helm() -> str:
    found = subprocess.run([ROOT / "tools/helm"], stdout=subprocess.PIPE, text=True, check=False)
    if found.returncode:
        pytest.skip("the chart is rendered by helm, which needs Go to be built: set HELM, or install helm or Go")
    return found.stdout.strip()


def by_identity(objects: list[Obj]) -> dict[tuple[str, str, str], Obj]:
    return {(obj["kind"], namespace_of(obj), name_of(obj)): obj for obj in objects}


def test_the_committed_files_are_what_is_installed() -> None:
    check = [sys.executable, str(ROOT / "tools/render-deploy"), "--check"]
    found = subprocess.run(check, stdout=subprocess.PIPE, text=True, check=False)
    assert (found.stdout, found.returncode) == ("", 0)


def test_the_chart_asks_for_an_image(helm: str) -> None:
    command = [helm, "template", "x", str(CHART), "--kube-version", "1.36.0"]
    made = subprocess.run(command, capture_output=True, text=True, check=False)
    assert made.returncode != 0
    assert "image: build it from deploy/Dockerfile and name it here" in made.stderr


@pytest.mark.parametrize("chosen", CHOICES.values(), ids=CHOICES)
def test_the_chart_equals_the_installation(helm: str, chosen: dict[str, Any], tmp_path: Path) -> None:
    options = InstallOptions(**chosen, createNamespace=False)
    values = tmp_path / "values.json"
    values.write_text(json.dumps(asdict(options)))
    command = [helm, "template", "x", str(CHART), "-n", options.namespace, "-f", str(values), "--include-crds"]
    made = subprocess.run([*command, "--kube-version", "1.36.0"], stdout=subprocess.PIPE, text=True, check=True)
    found = [obj for obj in yaml.safe_load_all(made.stdout) if obj]
    assert by_identity(found) == by_identity([*definitions(NAMES), *render(options)])


def test_the_base_equals_the_installation() -> None:
    kubectl = binaries(("kubectl",)) / "kubectl"
    made = subprocess.run(
        [kubectl, "kustomize", ROOT / "deploy/kustomize/base"], stdout=subprocess.PIPE, text=True, check=True
    )
    found = list(yaml.safe_load_all(made.stdout))
    assert by_identity(found) == by_identity([*definitions(DEFAULT), *render(InstallOptions())])


@pytest.mark.kubernetes
@pytest.mark.parametrize("chosen", CHOICES.values(), ids=CHOICES)
async def test_a_real_server_accepts_every_object(ground: Ground, chosen: dict[str, Any]) -> None:
    if "serviceMonitor" in chosen:
        await define_service_monitors(ground)
    options = InstallOptions(**{**chosen, "namespace": ground.jobs, "createNamespace": False})
    if options.watchNamespace:
        options = InstallOptions(**{**asdict(options), "watchNamespace": ground.jobs})
    for obj in [*definitions(NAMES), *render(options)]:
        kind = await ground.admin.find_kind(obj["apiVersion"], obj["kind"])
        assert kind is not None, obj["kind"]
        await ground.admin.patch(
            kind, name_of(obj), namespace_of(obj),
            patch=obj, patch_type=PatchType.APPLY, field_manager="test", force=True, dry_run=True,
        )  # fmt: skip


@pytest.mark.kubernetes
async def test_the_operators_pod_passes_where_pods_are_restricted(ground: Ground) -> None:
    """The namespace that is installed enforces the strictest rules Kubernetes has."""
    await ground.install(webhook=True)
    (deployment,) = [obj for obj in render(ground.options) if obj["kind"] == "Deployment"]
    template = deployment["spec"]["template"]
    pod = {"metadata": {"name": "try", **template["metadata"]}, "spec": template["spec"]}
    made = await ground.admin.create(POD, pod, ground.own, dry_run=True)
    assert made["spec"]["containers"][0]["securityContext"]["readOnlyRootFilesystem"]
    with pytest.raises(ApiError, match='violates PodSecurity "restricted:latest"'):
        await ground.admin.create(POD, {"metadata": {"name": "try"}, "spec": LOOSE}, ground.own, dry_run=True)


LOOSE = {"containers": [{"name": "main", "image": "any"}]}


def test_the_image_runs_as_the_user_the_deployment_names() -> None:
    lines = (ROOT / "deploy/Dockerfile").read_text().splitlines()
    (deployment,) = [obj for obj in render(InstallOptions()) if obj["kind"] == "Deployment"]
    context = deployment["spec"]["template"]["spec"]["securityContext"]
    assert f"USER {context['runAsUser']}:{context['runAsGroup']}" in lines
    assert 'ENTRYPOINT ["shoal"]' in lines


async def define_service_monitors(ground: Ground) -> None:
    """As much of the Prometheus operator as it takes to be asked."""
    schema = {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}}
    names = {"kind": "ServiceMonitor", "listKind": "ServiceMonitorList", "plural": "servicemonitors"}
    version = {"name": "v1", "served": True, "storage": True, "schema": schema}
    name = "servicemonitors.monitoring.coreos.com"
    definition = {
        "metadata": {"name": name},
        "spec": {
            "group": "monitoring.coreos.com", "scope": "Namespaced",
            "names": {**names, "singular": "servicemonitor"}, "versions": [version],
        },
    }  # fmt: skip
    whole = {"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", **definition}
    await ground.admin.patch(
        CUSTOM_RESOURCE_DEFINITION, name, patch=whole, patch_type=PatchType.APPLY, field_manager="test", force=True
    )
    await wait_established(ground.admin, name)
