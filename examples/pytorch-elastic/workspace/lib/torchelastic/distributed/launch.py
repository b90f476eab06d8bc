"""`python -m torchelastic.distributed.launch FLAGS SCRIPT ARGS`: one agent, which runs this node's workers.

Reads the old flags, waits until etcd responds, runs torchrun with the modified rendezvous, and leaves the group
cleanly in all cases. Exit code 0 when the training is complete, 128 + the signal's number after a signal, 1 when the
training failed, 2 for an invalid command line.
"""

from __future__ import annotations

import contextlib
import logging
import os
import signal
import socket
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from torchelastic.distributed.flags import BACKEND, Launch, NotElastic, forward

if TYPE_CHECKING:
    from torch.distributed.elastic.rendezvous import RendezvousParameters

    from torchelastic.rendezvous import PromptHandler

LOG_FORMAT = "[%(levelname)s] %(asctime)s %(module)s: %(message)s"  # torchelastic's format: with time, without paths
ETCD_SECONDS = 600  # as long as torch waits for a rendezvous


def main(argv: Sequence[str] = ()) -> int:
    try:
        launch = forward(argv or sys.argv[1:])
    except NotElastic as wrong:
        print(f"torchelastic: {wrong}", file=sys.stderr)
        return 2
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda told, _: os._exit(128 + told))  # this worker is not registered yet
    os.environ.setdefault("LOGLEVEL", "INFO")  # read by torch when it is imported
    os.environ.setdefault("TORCHELASTIC_MAX_NODES", str(launch.max_nodes))  # the trainer's batch follows from it
    if launch.uses_etcd:
        wait_for(launch.endpoint)
    return run(launch)


def wait_for(endpoint: str) -> None:
    """Return when etcd responds. No event signals an open port, so this polls with backoff. Without it a worker that
    starts before etcd fails, and the failure counts against the job."""
    give_up = time.monotonic() + ETCD_SECONDS
    pause = 0.05
    while not answers(endpoint):
        if time.monotonic() > give_up:
            raise SystemExit(
                f"torchelastic: no etcd answers at {endpoint} after {ETCD_SECONDS} seconds. Is it running?"
            )
        time.sleep(pause)
        pause = min(pause * 1.5, 1.0)


def answers(endpoint: str) -> bool:
    """Whether a server responds. A Service's address may accept connections before it has endpoints."""
    host, _, port = endpoint.partition(":")
    try:
        with socket.create_connection((host, int(port or 2379)), timeout=5) as connection:
            connection.sendall(b"GET /version HTTP/1.0\r\n\r\n")
            return bool(connection.recv(1))
    except OSError:
        return False


def run(launch: Launch) -> int:
    # Imported late: torch takes seconds, and invalid flags should be rejected at once.
    from torch.distributed import run as torchrun
    from torch.distributed.elastic.multiprocessing.api import SignalException
    from torch.distributed.elastic.multiprocessing.errors import ChildFailedError
    from torch.distributed.elastic.rendezvous import RendezvousClosedError, rendezvous_handler_registry

    from torchelastic.rendezvous import create
    from torchelastic.stopping import Stopping

    stopping = Stopping()
    if launch.uses_etcd:
        stopping.listen()
    for handler in logging.getLogger("torch.distributed").handlers:
        handler.setFormatter(logging.Formatter(LOG_FORMAT))
    handlers: list[PromptHandler] = []

    def create_and_remember(params: RendezvousParameters) -> PromptHandler:
        handlers.append(create(params, stopping))
        return handlers[-1]

    rendezvous_handler_registry.register(BACKEND, create_and_remember)
    try:
        torchrun.run(torchrun.parse_args(list(launch.torchrun)))
    except SignalException as stopped:
        return 128 + int(stopped.sigval)
    except ChildFailedError as failed:
        print(failed, file=sys.stderr)
        return 1
    except RendezvousClosedError:
        # Closed before this worker joined: the training ended while it was starting.
        return _came_too_late(handlers)
    finally:
        for handler in handlers:
            handler.rendezvous.leave()
        _end_orphans()
    return 0


def _end_orphans() -> None:
    """Kill workers unknown to torch: a signal between the start of a worker and its registration orphans it."""
    for children in Path("/proc/self/task").glob("*/children"):
        for pid in children.read_text().split():
            with contextlib.suppress(ProcessLookupError):
                os.kill(int(pid), signal.SIGKILL)


def _came_too_late(handlers: list[PromptHandler]) -> int:
    if any(handler.has_met for handler in handlers):
        print("torchelastic: the others have closed the job; this worker cannot go on alone", file=sys.stderr)
        return 1
    print("=> the training is over, nothing is left to do")
    return 0


if __name__ == "__main__":
    sys.exit(main())
