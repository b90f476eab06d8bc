"""Translates the launcher's old flags to torchrun's.

torchrun still accepts every old name, but its defaults changed: without flags it restarts nothing and expects a fixed
set of nodes. So each flag is passed explicitly, with the old default if the old one was elastic, and with a new one if
it only caused delays (see DEFAULTS). Flags that only torchrun has are passed through when written as --flag=value. No
torch is imported here.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import dataclass

# Flags of the old launcher, in its order.
DEFAULTS = {
    "nnodes": "1:1",
    "nproc_per_node": "auto",
    "rdzv_backend": "etcd",
    "rdzv_endpoint": "",
    "rdzv_id": "",
    "rdzv_conf": "",
    "max_restarts": "3",
    "monitor_interval": "0.1",  # was 5: delay until a change of the group is detected
    "start_method": "spawn",
    "role": "default",
}
# SIGTERM ends a worker at once; one that hangs in a driver should not delay the others for torchrun's 30 seconds.
SHUTDOWN_SECONDS = 10
BACKEND = "etcd-prompt"  # torch's etcd rendezvous, with deregistration; see torchelastic.rendezvous


class NotElastic(ValueError):
    """The command line is invalid; the message has the correction."""


@dataclass(frozen=True, slots=True)
class Launch:
    """One launch: torchrun's arguments, and the launcher's own settings."""

    torchrun: tuple[str, ...]
    endpoint: str
    max_nodes: int
    uses_etcd: bool


def forward(argv: Sequence[str]) -> Launch:
    """Read the old command line; raises NotElastic, and exits as argparse does on a malformed one."""
    given, only_torchrun = _parser().parse_known_args(argv)
    uses_etcd = given.rdzv_backend == "etcd" and not given.standalone
    if uses_etcd and not given.rdzv_endpoint:
        raise NotElastic("the etcd rendezvous needs a place to meet: add --rdzv_endpoint=HOST:2379")
    if uses_etcd and not given.rdzv_id:
        raise NotElastic("workers find their own job by its id: add --rdzv_id=NAME, the same for every worker")
    values = {name: getattr(given, name) for name in DEFAULTS}
    if uses_etcd:
        values["rdzv_backend"] = BACKEND
    flags = [f"--{name.replace('_', '-')}={value}" for name, value in values.items() if value]
    flags.append(f"--shutdown-timeout={SHUTDOWN_SECONDS}")
    if uses_etcd:
        flags.append("--signals-to-handle=SIGHUP,SIGQUIT")  # torchelastic.stopping handles the others
    flags += [f"--{name.replace('_', '-')}" for name in ("standalone", "module", "no_python") if getattr(given, name)]
    return Launch(
        torchrun=(*flags, *only_torchrun, given.training_script, *given.training_script_args),
        endpoint=given.rdzv_endpoint,
        max_nodes=most(given.nnodes),
        uses_etcd=uses_etcd,
    )


def most(nnodes: str) -> int:
    """The larger number of MIN:MAX."""
    lowest, _, highest = nnodes.partition(":")
    try:
        least, largest = int(lowest), int(highest or lowest)
    except ValueError:
        raise NotElastic(f"--nnodes={nnodes}: write MIN:MAX, for example 1:4") from None
    if not 1 <= least <= largest:
        raise NotElastic(f"--nnodes={nnodes}: at least one node, and the larger number last")
    return largest


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="torchelastic.distributed.launch", allow_abbrev=False)
    for name, default in DEFAULTS.items():
        parser.add_argument(f"--{name}", f"--{name.replace('_', '-')}", default=default)
    parser.add_argument("--standalone", action="store_true")
    parser.add_argument("-m", "--module", action="store_true")
    parser.add_argument("--no_python", "--no-python", action="store_true")
    parser.add_argument("training_script")
    parser.add_argument("training_script_args", nargs=argparse.REMAINDER)
    return parser
