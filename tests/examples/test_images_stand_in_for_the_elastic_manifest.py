"""examples/pytorch-elastic: the manifest reads, and its configuration has a stand-in for each of its images."""

from __future__ import annotations

from typing import Any

import yaml

from kit.elastic_group import EXAMPLE
from shoal.local.config import load
from shoal.node.sandbox.interface import Mount

CONFIG = load(EXAMPLE / "shoal.yaml")


def manifest() -> dict[str, dict[str, Any]]:
    objects = list(yaml.safe_load_all((EXAMPLE / "pet.yaml").read_text()))
    return {f"{item['kind']}/{item['metadata']['name']}": item for item in objects}


def containers() -> dict[str, dict[str, Any]]:
    roles = manifest()["Framework/pet"]["spec"]["taskRoles"]
    return {role["name"]: role["task"]["pod"]["spec"]["containers"][0] for role in roles}


def test_the_manifest_is_two_services_and_a_framework() -> None:
    assert list(manifest()) == ["Service/pet-etcd", "Service/pet-worker", "Framework/pet"]


def test_commands_are_one_line_for_the_shell() -> None:
    assert {name: container["command"] for name, container in containers().items()} == {
        "etcd": [
            "sh",
            "-c",
            "/usr/local/bin/etcd --data-dir /var/lib/etcd --enable-v2 --listen-client-urls http://0.0.0.0:2379 "
            "--advertise-client-urls http://0.0.0.0:2379 --initial-cluster-state new",
        ],
        "worker": [
            "sh",
            "-c",
            "python -m torchelastic.distributed.launch --rdzv_backend=etcd "
            "--rdzv_endpoint=${FC_FRAMEWORK_NAME}-etcd:2379 --rdzv_id=${FC_FRAMEWORK_NAME} --nnodes=1:4 "
            "--nproc_per_node=1 /workspace/examples/imagenet/main.py --arch=resnet18 --batch-size=32 --epochs=2 "
            "/workspace/data/tiny-imagenet-200",
        ],
    }


def test_the_node_declares_a_device_for_each_worker() -> None:
    assert CONFIG.settings.capacity == {"nvidia.com/gpu": "4"}


def test_every_image_has_a_stand_in() -> None:
    assert {name: CONFIG.images.mounts(container["image"]) for name, container in containers().items()} == {
        "etcd": (
            Mount("/usr/local/bin/etcd", EXAMPLE / "environment" / "libexec" / "etcd"),
            Mount("/var/lib/etcd", None),
        ),
        "worker": (Mount("/scratch", None), Mount("/workspace", EXAMPLE / "workspace")),
    }


def test_the_worker_s_python_and_checkpoints_are_its_own() -> None:
    env = CONFIG.images.env(containers()["worker"]["image"], "/usr/bin")
    assert env == {
        "PATH": f"{EXAMPLE / 'environment' / 'bin'}:/usr/bin",
        "VIRTUAL_ENV": str(EXAMPLE / "environment"),
        "PYTHONPATH": "/workspace/lib",
        "TMPDIR": "/scratch",
        "METRICS_FILE": "/workspace/out/metrics.jsonl",
        "OMP_NUM_THREADS": "1",
    }
