"""The folder of a cluster on this machine, and whether the cluster is running.

One folder is one cluster. The process that runs it holds a lock on the folder for as long as it lives, so 'is it up' is
answered by the kernel and not by a file that a crash could leave behind.
"""

from __future__ import annotations

import fcntl
import json
import os
import secrets
import shlex
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import IO, Any

import click

VARIABLE = "SHOAL_DATA"
LOCK, STORE, TOKEN, SANDBOXES = "lock", "store.sqlite", "token", "sandboxes"
ESSENTIAL = {LOCK, STORE, SANDBOXES}  # removing one of these means removing the cluster


def default_folder() -> Path:
    base = os.environ.get("XDG_DATA_HOME") or Path.home() / ".local" / "share"
    return Path(base) / "shoal" / "default"


def folder_of(_: click.Context, __: click.Parameter, given: str | Path) -> Path:
    """A folder that exists or can be created; it is not used yet."""
    if not str(given).strip():
        raise click.BadParameter(
            "the name of the folder is empty. Leave --data out for the default folder, or name one."
        )
    path = Path(given).expanduser()
    if os.path.lexists(path) and not path.is_dir():
        raise click.BadParameter(f"{path} is not a folder. Choose a new or empty folder, or that of a cluster.")
    return path


data_option = click.option(
    "--data",
    "folder",
    metavar="DIRECTORY",
    callback=folder_of,
    envvar=VARIABLE,
    default=default_folder,
    show_default="~/.local/share/shoal/default",
    show_envvar=True,
    help="Data folder of the cluster. Each folder holds one cluster.",
)


@dataclass(frozen=True, slots=True)
class ClusterInfo:
    """What a running cluster records about itself in its folder."""

    pid: int
    url: str
    started: float  # seconds since the epoch
    settings: dict[str, Any] | None = (
        None  # of its nodes and network, as in shoal.yaml; None: an older Shoal did not say
    )


class FolderLocked(click.ClickException):
    """Another process runs this cluster."""


class FolderUnusable(click.ClickException):
    """The folder cannot be a cluster's, or not ours."""

    def __init__(self, folder: Path, refused: OSError) -> None:
        super().__init__(
            f"cannot use {folder} as the cluster's folder: {refused.strerror}. Choose another with --data DIR."
        )


class ForeignFolder(FolderUnusable):
    """The folder, or what decides over the cluster in it, belongs to another user, who could put anything there."""

    def __init__(self, path: Path, owner: int) -> None:
        click.ClickException.__init__(
            self, f"{path} belongs to user {owner}. Run shoal as that user, or choose another folder with --data DIR."
        )


class DataFolder:
    def __init__(self, path: Path) -> None:
        self.path = path.expanduser().absolute()

    @property
    def name(self) -> str:
        return self.path.name

    @property
    def store(self) -> Path:
        return self.path / STORE

    @property
    def kubeconfig(self) -> Path:
        return self.path / "kubeconfig"

    @property
    def log(self) -> Path:
        return self.path / "shoal.log"

    @property
    def certificates(self) -> Path:
        return self.path / "tls"

    @property
    def sandboxes(self) -> Path:
        return self.path / SANDBOXES

    @property
    def volumes(self) -> Path:
        return self.path / "volumes"

    @property
    def loopback(self) -> Path:
        return self.path / "loopback"

    @property
    def _lock(self) -> Path:
        return self.path / LOCK

    def command(self, name: str) -> str:
        """How to type a command about this cluster: with --data unless it is the one meant anyway."""
        usual = DataFolder(Path(os.environ.get(VARIABLE) or default_folder())).path
        return f"shoal {name}" if self.path == usual else f"shoal {name} --data {shlex.quote(str(self.path))}"

    def count_sandboxes(self) -> int:
        """How many pods may have processes although no cluster runs: they go on when it is killed."""
        try:
            return sum(entry.is_dir() for entry in os.scandir(self.sandboxes))
        except (FileNotFoundError, NotADirectoryError):
            return 0

    def has_file(self, path: Path) -> bool:
        """Whether `path` exists and is ours; another user's folder raises an error."""
        try:
            path.lstat()
        except (FileNotFoundError, NotADirectoryError):
            return False
        except OSError as refused:
            raise FolderUnusable(self.path, refused) from None
        self.check_owner()
        return True

    def make(self) -> None:
        """The folder with its owner as the only reader: it holds a token, logs and other people's secrets."""
        try:
            self.path.mkdir(parents=True, exist_ok=True)
            self.check_owner()
            if not self._lock.exists() and any(self.path.iterdir()):
                # Making a user's home or /tmp private would be a poor way to begin.
                raise click.ClickException(
                    f"{self.path} is not empty and holds no cluster. Choose a new or empty folder with --data DIR."
                )
            self.path.chmod(0o700)
        except OSError as refused:
            raise FolderUnusable(self.path, refused) from None

    def check_owner(self) -> None:
        """Refuse a folder, lock, token or store of another user: who owns one of them owns the cluster."""
        if (owner := self.path.stat().st_uid) != os.geteuid():
            raise ForeignFolder(self.path, owner)
        for name in (LOCK, TOKEN, STORE):
            try:
                owner = (self.path / name).lstat().st_uid
            except FileNotFoundError:
                continue
            if owner != os.geteuid():
                raise ForeignFolder(self.path / name, owner)

    def token(self) -> str:
        """The bearer token, made on first use."""
        path = self.path / TOKEN
        try:
            return path.read_text().strip()
        except FileNotFoundError:
            token = secrets.token_urlsafe(32)
            descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
            with os.fdopen(descriptor, "w") as file:
                file.write(token)
            return token

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Hold the folder; a cluster that already runs there is named."""
        with self._open_lock() as file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                known = self._current_info()
                where = f" (pid {known.pid}, {known.url})" if known else ""
                raise FolderLocked(
                    f"a cluster already runs in {self.path}{where}. Stop it with `{self.command('down')}`, or choose "
                    "another folder with --data DIR."
                ) from None
            file.truncate()
            file.write(str(os.getpid()))
            file.flush()
            yield

    def write_info(self, running: ClusterInfo) -> None:
        """Say where the cluster is reached; valid for as long as the lock is held."""
        draft = self.path / ".running.new"
        draft.write_text(json.dumps(asdict(running)))
        draft.replace(self.path / "running.json")

    def last_holder(self) -> str:
        """The id of the process that holds or held the lock; '' where none did."""
        try:
            return self._lock.read_text()
        except OSError:
            return ""

    def last_port(self) -> int:
        """The port of the last run, so that kubeconfigs handed out keep working; 0 where there was none."""
        known = self._read_info()
        return int(known.url.rsplit(":", 1)[1]) if known else 0

    def running(self) -> ClusterInfo | None:
        """The cluster that runs in this folder now, or None."""
        if not self.has_file(self._lock):
            return None
        with self._open_lock() as file:
            try:
                fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
            except BlockingIOError:
                return self._current_info()
        return None

    def _current_info(self) -> ClusterInfo | None:
        """The record of the lock's holder; None where it has not written one yet.
        Until then the last holder's record is still there, with a pid that may be any process's by now."""
        known = self._read_info()
        return known if known is not None and self._lock.read_text() == str(known.pid) else None

    def _read_info(self) -> ClusterInfo | None:
        try:
            return ClusterInfo(**json.loads((self.path / "running.json").read_text()))
        except (FileNotFoundError, ValueError, TypeError):
            return None

    def _open_lock(self) -> IO[str]:
        try:
            descriptor = os.open(self._lock, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        except OSError as refused:
            raise FolderUnusable(self.path, refused) from None
        return os.fdopen(descriptor, "r+")
