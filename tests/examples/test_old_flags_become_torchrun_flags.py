"""`python -m torchelastic.distributed.launch`: the flags of 2020, forwarded to today's torchrun."""

from __future__ import annotations

import pytest
from torchelastic.distributed.flags import Launch, NotElastic, forward

OF_THE_MANIFEST = [
    "--rdzv_backend=etcd",
    "--rdzv_endpoint=pet-etcd:2379",
    "--rdzv_id=pet",
    "--nnodes=1:4",
    "--nproc_per_node=1",
    "/workspace/examples/imagenet/main.py",
    "--arch=resnet18",
    "--batch-size=32",
    "--epochs=2",
    "/workspace/data/tiny-imagenet-200",
]


def test_the_manifest_s_command_line() -> None:
    assert forward(OF_THE_MANIFEST) == Launch(
        torchrun=(
            "--nnodes=1:4",
            "--nproc-per-node=1",
            "--rdzv-backend=etcd-prompt",
            "--rdzv-endpoint=pet-etcd:2379",
            "--rdzv-id=pet",
            "--max-restarts=3",
            "--monitor-interval=0.1",
            "--start-method=spawn",
            "--role=default",
            "--shutdown-timeout=10",
            "--signals-to-handle=SIGHUP,SIGQUIT",
            "/workspace/examples/imagenet/main.py",
            "--arch=resnet18",
            "--batch-size=32",
            "--epochs=2",
            "/workspace/data/tiny-imagenet-200",
        ),
        endpoint="pet-etcd:2379",
        max_nodes=4,
        uses_etcd=True,
    )


FORWARDED = {
    "words-with-dashes": (["--max-restarts", "7"], "--max-restarts=7"),
    "a-flag-only-torchrun-has": (["--local-addr=10.0.0.1"], "--local-addr=10.0.0.1"),
    "settings-of-the-rendezvous": (["--rdzv_conf=last_call_timeout=9"], "--rdzv-conf=last_call_timeout=9"),
    "a-module": (["-m"], "--module"),
    "no-python": (["--no_python"], "--no-python"),
}


@pytest.mark.parametrize(("given", "forwarded"), FORWARDED.values(), ids=FORWARDED)
def test_what_is_given_is_forwarded(given: list[str], forwarded: str) -> None:
    launch = forward(["--rdzv_endpoint=etcd", "--rdzv_id=job", *given, "train.py"])
    assert forwarded in launch.torchrun
    assert launch.torchrun[-1] == "train.py"


def test_flags_after_the_script_are_the_script_s() -> None:
    launch = forward(["--rdzv_endpoint=etcd", "--rdzv_id=job", "train.py", "--role=actor", "--nnodes", "9"])
    assert launch.torchrun[-4:] == ("train.py", "--role=actor", "--nnodes", "9")
    assert launch.max_nodes == 1


def test_other_rendezvous_are_left_to_torchrun() -> None:
    launch = forward(["--rdzv_backend=c10d", "--rdzv_endpoint=host:29400", "--nnodes=2", "train.py"])
    assert ("--rdzv-backend=c10d" in launch.torchrun, launch.uses_etcd, launch.max_nodes) == (True, False, 2)


REFUSED = {
    "no-endpoint": (["--rdzv_id=job"], "the etcd rendezvous needs a place to meet: add --rdzv_endpoint=HOST:2379"),
    "no-id": (["--rdzv_endpoint=etcd"], "workers find their own job by its id: add --rdzv_id=NAME"),
    "nonsense": (["--standalone", "--nnodes=few"], "--nnodes=few: write MIN:MAX, for example 1:4"),
    "backwards": (["--standalone", "--nnodes=4:1"], "--nnodes=4:1: at least one node, and the larger number last"),
}


@pytest.mark.parametrize(("given", "message"), REFUSED.values(), ids=REFUSED)
def test_what_cannot_work_is_refused_with_the_way_out(given: list[str], message: str) -> None:
    with pytest.raises(NotElastic) as refused:
        forward([*given, "train.py"])
    assert str(refused.value).startswith(message)
