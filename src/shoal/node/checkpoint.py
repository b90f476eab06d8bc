"""The agent's record of a pod, on disk, so that an agent killed at any moment can continue.

One folder per pod, named by its uid, under `<data>/nodes/<node>/pods/`. The record in it holds what the agent *meant*
to do before it does it: a start is written down before it is requested from the sandbox, and the sandbox starts a
process id once only, so that a repeated request after a crash is harmless. Restart counts are read from here and
therefore never fall. Logs, volumes and the hosts file lie in the same folder and are removed with it.

Records survive the death of the agent; they are not flushed to the disk itself, since a machine that loses power loses
the processes too and the sandboxes then report what is known.
"""

from __future__ import annotations

import errno
import os
import re
import shutil
from collections.abc import Collection, Iterator
from contextlib import suppress
from pathlib import Path

import msgspec

from shoal.kube.job_annotations import JOB, JOB_UID, TASK
from shoal.kube.messages import Message
from shoal.kube.objects import Key, Obj, annotations_of, key_of, uid_of
from shoal.logs import Logger
from shoal.node.sandbox.shim_client import remove_folder

log = Logger(__name__)

RECORD = "record.jsonl"
_NAME = re.compile(r"(?!\.+$)[A-Za-z0-9._-]{1,253}")  # one path component, never of dots alone
MAX_BYTES = 256 << 10  # after which older versions of a record are thrown away


class Ended(msgspec.Struct, frozen=True):
    """How a run of a container ended. `exit_code` is what a shell would report: 128 + n for signal n.

    A message of the node holds plain values alone: messages within messages are not decoded again."""

    at: float
    exit_code: int
    signal: int | None = None
    reason: str = ""  # '' means: Completed or Error, by the code
    message: Message | str = ""  # text: by the container or the sandbox, or in a record of an earlier version


class Stopping(msgspec.Struct):
    """A container that is being stopped, how far that is and when the grace period is over."""

    at: float
    grace_seconds: float
    hook: str = ""  # '', running, done: the preStop hook
    termed_at: float | None = None
    killed: bool = False


class ContainerRun(msgspec.Struct):
    """One start of a container. `started_at` None: the start is intended, its result not known yet."""

    attempt: int
    intended_at: float
    started_at: float | None = None
    ended: Ended | None = None
    stopping: Stopping | None = None
    passed_startup: bool = False
    ready: bool = False
    hook: str = ""  # '', running, done, failed: the postStart hook

    @property
    def is_over(self) -> bool:
        return self.ended is not None

    @property
    def is_running(self) -> bool:
        return self.started_at is not None and self.ended is None


class ContainerRecord(msgspec.Struct):
    """A container over all its runs. `attempts` counts the starts that were meant."""

    attempts: int = 0
    run: ContainerRun | None = None
    last: ContainerRun | None = None
    backoff_seconds: float = 0.0  # to wait after the end of the current run before the next

    @property
    def restarts(self) -> int:
        return max(self.attempts - 1, 0)

    def mark_intended(self, now: float, backoff_seconds: float) -> ContainerRun:
        self.last, self.run = self.run or self.last, ContainerRun(attempt=self.attempts, intended_at=now)
        self.attempts += 1
        self.backoff_seconds = backoff_seconds
        return self.run

    def mark_started(self, at: float) -> None:
        if self.run is not None and self.run.started_at is None:
            self.run.started_at = at

    def mark_ended(self, ended: Ended) -> None:
        if self.run is not None and self.run.ended is None:
            self.run.ended = ended
            self.run.ready = False

    def mark_stopping(self, now: float, grace_seconds: float) -> None:
        """A second request may shorten the grace of the first, never lengthen it."""
        if self.run is None or self.run.is_over:
            return
        known = self.run.stopping
        if known is None:
            self.run.stopping = Stopping(at=now, grace_seconds=grace_seconds)
        elif now + grace_seconds < known.at + known.grace_seconds:
            known.grace_seconds = max(now + grace_seconds - known.at, 0.0)

    def mark_for_rerun(self) -> None:
        """An init container whose work went with the sandbox."""
        if self.run is not None and self.run.is_over:
            self.last, self.run = self.run, None


class PodOutcome(msgspec.Struct, frozen=True):
    """The outcome of the pod as a whole, which no container's end can change: deadline exceeded, evicted, rejected."""

    phase: str
    reason: str
    message: Message | str  # text: by another component, or in a record of an earlier version


class JobReference(msgspec.Struct, frozen=True):
    """The job and the task a pod was made for."""

    kind: str  # <Kind>.<group>
    name: str
    uid: str
    task: str


class PodRecord(msgspec.Struct):
    """Everything about one pod that must outlive the agent."""

    uid: str
    namespace: str
    name: str
    accepted_at: float
    ip: str = ""
    gpus: dict[str, list[int]] = {}  # container -> device indices
    containers: dict[str, ContainerRecord] = {}
    outcome: PodOutcome | None = None
    sandboxed_at: float = 0.0  # when its current sandbox was requested; 0: none yet
    job: JobReference | None = None
    finished: bool = False  # the sandbox is closed for good and what it held is free again

    @property
    def key(self) -> Key:
        return Key(self.namespace, self.name)

    def container(self, name: str) -> ContainerRecord:
        return self.containers.setdefault(name, ContainerRecord())

    def running(self) -> list[str]:
        return [name for name, c in self.containers.items() if c.run is not None and c.run.is_running]


def new_record(pod: Obj, now: float) -> PodRecord:
    key = key_of(pod)
    return PodRecord(uid=uid_of(pod), namespace=key.namespace, name=key.name, accepted_at=now, job=job_of(pod))


def job_of(pod: Obj) -> JobReference | None:
    """The job and task that the annotations of a pod name; None where they are missing or no names."""
    written = annotations_of(pod)
    kind, _, name = written.get(JOB, "").partition("/")
    uid, task = written.get(JOB_UID, ""), written.get(TASK, "")
    if not all(_NAME.fullmatch(part) for part in (kind, name, uid, task)):
        return None
    return JobReference(kind, name, uid, task)


class PodFolder:
    """The folder of one pod and the names in it.

    Containers have no dots in their names, so all lies side by side: a folder made costs as much as several files.

    The record is written at every step of the pod's life, so it is appended as a line, which takes three system calls
    where writing beside and moving takes eight. The last whole line holds. A line cut short by a full disk stays alone
    on its line, since each begins on a new one.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._appended_bytes: int | None = None  # bytes in the file; None: not measured yet

    @property
    def hosts_file(self) -> Path:
        return self.path / "hosts"

    @property
    def volumes(self) -> Path:
        return self.path / "volumes"

    def log_file(self, container: str, attempt: int) -> Path:
        return self.path / f"{container}.{attempt}.log"

    def message_file(self, container: str, attempt: int) -> Path:
        return self.path / f"{container}.{attempt}.message"

    def save(self, record: PodRecord) -> None:
        """A reader, and an agent after a crash, sees all or nothing."""
        # A newline before it too: a line that a full disk cut short before then spoils no other.
        line = b"\n%b\n" % msgspec.json.encode(record)
        if self._appended_bytes is None:
            record_file = self.path / RECORD
            self._appended_bytes = record_file.stat().st_size if record_file.exists() else 0
        if self._appended_bytes + len(line) > MAX_BYTES:
            self.path.mkdir(parents=True, exist_ok=True)
            draft = self.path / f"{RECORD}.new"
            draft.write_bytes(line)
            draft.replace(self.path / RECORD)
            self._appended_bytes = len(line)
            return
        name, flags = f"{self.path}/{RECORD}", os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC
        try:
            file = os.open(name, flags, 0o600)
        except FileNotFoundError:  # the folder is made by the first save: most find it there
            self.path.mkdir(parents=True, exist_ok=True)
            file = os.open(name, flags, 0o600)
        try:
            written = os.write(file, line)
        finally:
            os.close(file)
        if written < len(line):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(self.path / RECORD))
        self._appended_bytes += written

    def load(self) -> PodRecord | None:
        """None where there is no record, or none that can be read (the machine lost power while it was written)."""
        try:
            lines = (self.path / RECORD).read_bytes().splitlines()
        except FileNotFoundError:
            return None
        except OSError as unreadable:
            log.warning("pod record unreadable", folder=str(self.path), error=str(unreadable))
            return None
        for line in reversed(lines):
            with suppress(msgspec.DecodeError):
                return msgspec.json.decode(line, type=PodRecord)
        log.warning("pod record unreadable", folder=str(self.path), error="no line of it is whole")
        return None

    def drop_logs_before(self, container: str, attempt: int) -> None:
        """Only the current run and the one before it keep their logs, as on any node."""
        if attempt <= 0:
            return
        for old in self.path.glob(f"{container}.*.log*"):
            number = old.name.split(".", 2)[1]
            if number.isdigit() and int(number) < attempt:
                old.unlink(missing_ok=True)

    def remove(self) -> None:
        remove_folder(self.path)


class NodeFolder:
    """All pods of one node: `<data>/nodes/<node>/pods/<uid>/`."""

    def __init__(self, data: Path, node: str) -> None:
        self.pods = data / "nodes" / node / "pods"
        self.pods.mkdir(parents=True, exist_ok=True)

    def pod(self, uid: str) -> PodFolder:
        return PodFolder(self.pods / uid)

    def all(self) -> Iterator[tuple[str, PodFolder]]:
        for path in sorted(self.pods.iterdir()):
            yield path.name, PodFolder(path)

    def of_other_nodes(self, ours: Collection[str]) -> list[PodFolder]:
        others = (node for node in self.pods.parent.parent.iterdir() if node.name not in ours)
        return [PodFolder(path) for node in others for path in sorted(node.glob("pods/*"))]

    def remove_other_nodes(self, ours: Collection[str]) -> None:
        """Folders of nodes that this data folder had when the machine was split another way."""
        for node in self.pods.parent.parent.iterdir():
            if node.name not in ours:
                shutil.rmtree(node, ignore_errors=True)
