"""Commands (`bus.volcano.sh/v1alpha1`): one-shot orders to a Job, and the ones `shoal stop` and `shoal start` give.

An order names its target by name and, where its author knew it, by uid. One for another uid, from before the Job was
created, or with an unknown action is rejected with an Event and removed like any other.
"""

from __future__ import annotations

from shoal.dialects.capabilities import JobCommands
from shoal.dialects.volcano import names
from shoal.dialects.volcano.completion_codes import COMPLETED
from shoal.dialects.volcano.lifecycle_policies import ACTIONS, OUTCOMES
from shoal.engine import Command
from shoal.engine.policies import Reaction
from shoal.kube.objects import Key, Obj, name_of, namespace_of, uid_of
from shoal.scheduler.api.pod_groups import COMMAND

COMMANDS = ("AbortJob", "ResumeJob", "RestartJob", "TerminateJob", "CompleteJob")


def reactions_to_commands() -> dict[str, Reaction]:
    """The reaction to a Command's action; partial restarts need a target and have no command."""
    return {word: Reaction(ACTIONS[word], outcome=OUTCOMES.get(word, COMPLETED)) for word in COMMANDS}


def target(command: Obj) -> Key | None:
    """The Job an order is for; None for a queue's."""
    meant = command.get("target") or {}
    if meant.get("kind") != "Job" or not str(meant.get("apiVersion") or "").startswith(f"{names.GROUP}/"):
        return None
    return Key(namespace_of(command), str(meant.get("name") or ""))


def read(command: Obj, manifest: Obj) -> Command:
    """The order as a Command; an unknown action is reported as such."""
    action, meant = str(command.get("action") or ""), (command.get("target") or {}).get("uid")
    if meant and meant != uid_of(manifest):
        action = f"{action} for a Job with uid {meant}"
    elif "" < _created(command) < _created(manifest):  # RFC 3339 in UTC and whole seconds, so text compares as time
        action = f"{action} from {_created(command)}, before this Job was created"
    return Command(uid_of(command), action)


def _created(obj: Obj) -> str:
    return str(obj["metadata"].get("creationTimestamp") or "")


def new_command(manifest: Obj, action: str) -> Obj:
    """A Command of that action for this Job, and no other of its name."""
    whom = {"apiVersion": names.API_VERSION, "kind": "Job", "name": name_of(manifest), "uid": uid_of(manifest)}
    return {
        "apiVersion": COMMAND.api_version,
        "kind": COMMAND.kind,
        "metadata": {
            "generateName": f"{name_of(manifest)}-{action.lower()}-",
            "namespace": namespace_of(manifest),
            "ownerReferences": [whom],
        },
        "action": action,
        "target": {**whom, "controller": True},
    }


class VolcanoCommands(JobCommands):
    kind = COMMAND

    def target(self, command: Obj) -> Key | None:
        return target(command)

    def read(self, command: Obj, manifest: Obj) -> Command:
        return read(command, manifest)

    def stop(self, manifest: Obj) -> Obj:
        return new_command(manifest, "TerminateJob")

    def start(self, manifest: Obj) -> Obj:
        return new_command(manifest, "ResumeJob")
