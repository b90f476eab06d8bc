"""A control plane for operators: strict about owners, without streaming lists, and with a record of every request.

Strict, so that a right that is only needed where owners are checked shows itself; without streaming lists, as older
servers are, so that both ways of reading are used; the record (the server's audit log) says who asked for what.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from kit import control_plane
from kit.control_plane import ControlPlane
from shoal.controller_runtime.crd_installer import MANAGER
from shoal.dialects import NAMES
from shoal.install import manifests

POLICY = {
    "apiVersion": "audit.k8s.io/v1",
    "kind": "Policy",
    "omitStages": ["RequestReceived", "ResponseStarted"],
    "rules": [
        {"level": "None", "users": ["admin"]},
        {"level": "None", "userGroups": ["system:masters"]},
        {"level": "Metadata"},
    ],
}


@contextmanager
def shared(folder: Path) -> Iterator[ControlPlane]:
    with control_plane.shared(folder, keeper=__file__) as plane:
        yield plane


def requests(plane: ControlPlane, user: str) -> list[dict[str, Any]]:
    """Every request of a user that was answered so far, in order."""
    whole, _, _ = (Path(plane.folder) / "audit.log").read_text().rpartition("\n")  # the last line may be half there
    told = [json.loads(line) for line in whole.splitlines() if user in line]
    return [entry for entry in told if entry["user"]["username"] == user]


class OperatedKeeper(control_plane.Keeper):
    def more_flags(self, program: str) -> Sequence[str]:
        if program == "kube-controller-manager":
            self.define()
        if program != "kube-apiserver":
            return ()
        policy, log = self.folder / "audit-policy.json", self.folder / "audit.log"
        policy.write_text(json.dumps(POLICY))
        log.unlink(missing_ok=True)
        return [
            "--enable-admission-plugins=OwnerReferencesPermissionEnforcement", "--feature-gates=WatchList=false",
            f"--audit-policy-file={policy}", f"--audit-log-path={log}", "--audit-log-mode=blocking-strict",
        ]  # fmt: skip

    def define(self) -> None:
        """Before the garbage collector starts: it looks for new kinds every half minute only."""
        kubeconfig, definitions = str(self.folder / "kubeconfig"), self.folder / "definitions.json"
        items = manifests.definitions(NAMES)
        definitions.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": items}))
        names = [f"customresourcedefinition/{item['metadata']['name']}" for item in items]
        kubectl = [str(self.bin / "kubectl"), "--kubeconfig", kubeconfig]
        applying = [*kubectl, "apply", "--server-side", f"--field-manager={MANAGER}", "-f", str(definitions)]
        subprocess.run(applying, check=True, stdout=subprocess.DEVNULL)
        waiting = [*kubectl, "wait", "--for=condition=Established", "--timeout=120s", *names]
        subprocess.run(waiting, check=True, stdout=subprocess.DEVNULL)


if __name__ == "__main__":
    control_plane.keep(OperatedKeeper, Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3:])
