"""The settings of a container of a Paddle job in its variables, and the errors in them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

PSERVER, TRAINER = "PSERVER", "TRAINER"
SERVER_LABEL, TRAINER_LABEL = "paddle-job-pserver", "paddle-job"


class LauncherEnvironmentInvalid(ValueError):
    """The variables are wrong; the message lists every mistake, one per line."""


@dataclass(frozen=True, slots=True)
class LauncherConfig:
    """What this process is, which pods it waits for, and what it becomes."""

    job: str
    role: str  # PSERVER or TRAINER
    pod: str
    namespace: str
    servers: int
    trainers: int
    port: int  # of the first server; the next one has the next
    entry: str  # a command line for the shell
    max_failed: int = 1  # trainers that may have failed when another one starts

    @property
    def server_label(self) -> str:
        return f"{SERVER_LABEL}={self.job}"

    @property
    def trainer_label(self) -> str:
        return f"{TRAINER_LABEL}={self.job}"

    @property
    def required_peers(self) -> tuple[tuple[str, int], ...]:
        """Labels of those it waits for, and how many. A server waits for no trainer: they come later, or never."""
        servers = (self.server_label, self.servers)
        return (servers,) if self.role == PSERVER else (servers, (self.trainer_label, self.trainers))


def read(variables: Mapping[str, str]) -> LauncherConfig:
    mistakes: list[str] = []
    role = variables.get("TRAINING_ROLE") or variables.get("PADDLE_TRAINING_ROLE") or ""
    if role not in (PSERVER, TRAINER):
        mistakes.append(f"TRAINING_ROLE is {role!r}; it must be {PSERVER} or {TRAINER}")
    job = _text(variables, "PADDLE_JOB_NAME", "it names the pods of the job by their label", mistakes)
    pod = variables.get("POD_NAME") or variables.get("HOSTNAME") or ""
    if not pod:
        mistakes.append("POD_NAME is not set; take it from the field metadata.name")
    entry = _text(variables, "ENTRY", "it is the command line to run", mistakes)
    servers = _number(variables, "PADDLE_PSERVERS_NUM", mistakes)
    trainers = _number(variables, "PADDLE_TRAINERS_NUM", mistakes)
    port = _number(variables, "PADDLE_PORT", mistakes)
    if mistakes:
        raise LauncherEnvironmentInvalid("\n".join(mistakes))
    return LauncherConfig(job, role, pod, variables.get("NAMESPACE") or "", servers, trainers, port, entry)


def _text(variables: Mapping[str, str], name: str, why: str, mistakes: list[str]) -> str:
    found = variables.get(name) or ""
    if not found:
        mistakes.append(f"{name} is not set; {why}")
    return found


def _number(variables: Mapping[str, str], name: str, mistakes: list[str]) -> int:
    written = variables.get(name) or ""
    if not (written.isascii() and written.isdigit() and int(written) > 0):
        mistakes.append(f"{name} is {written!r}; it must be a whole number of 1 or more")
        return 0
    return int(written)
