"""Starts a cluster in a temporary folder, applies pods.yaml with kubectl, shows the pods finish, stops the cluster.

Every command it runs is printed first, so that it can be repeated by hand.
"""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent


def show(*words: str) -> None:
    colour, end = ("\033[1m", "\033[0m") if sys.stdout.isatty() else ("", "")
    print(f"\n{colour}$ {shlex.join(words)}{end}", flush=True)


def run(*words: str, env: dict[str, str]) -> None:
    show(*words)
    subprocess.run(words, check=True, env=env, cwd=ROOT)


def kubectl() -> str:
    """kubectl from PATH, or one built from Go modules."""
    found = shutil.which("kubectl")
    if found:
        return found
    built = subprocess.run([ROOT / "tools" / "control-plane", "kubectl"], check=True, stdout=subprocess.PIPE, text=True)
    return str(Path(built.stdout.strip()) / "kubectl")


def main() -> None:
    shoal = str(Path(sys.executable).with_name("shoal"))
    with tempfile.TemporaryDirectory(prefix="shoal-demo-") as folder:
        tools = f"{Path(shoal).parent}:{Path(kubectl()).parent}"
        env = {**os.environ, "PATH": f"{tools}:{os.environ['PATH']}", "SHOAL_DATA": folder}
        env["KUBECONFIG"] = f"{folder}/kubeconfig"
        try:
            run("shoal", "up", "--detach", env=env)
            run("kubectl", "get", "nodes", env=env)
            run("kubectl", "apply", "-f", "examples/two-pods/pods.yaml", env=env)
            for pod in ("greeter", "visitor"):
                succeeded = "--for=jsonpath={.status.phase}=Succeeded"
                run("kubectl", "wait", succeeded, f"pod/{pod}", "--timeout=60s", env=env)
            run("kubectl", "get", "pods", "-o", "wide", env=env)
            run("kubectl", "logs", "visitor", env=env)
        except subprocess.CalledProcessError as failed:
            sys.exit(f"demo: `{shlex.join(map(str, failed.cmd))}` ended with code {failed.returncode}")
        finally:
            run("shoal", "down", env=env)


if __name__ == "__main__":
    main()
