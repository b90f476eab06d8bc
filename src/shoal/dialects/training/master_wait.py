"""An init container that waits until the Master has an address, so that workers do not fail before it is there."""

from __future__ import annotations

from shoal.kube.objects import Obj

TRIES, SECONDS_BETWEEN = 100, 2


def wait_container(name: str, image: str, host: str) -> Obj:
    """`getent` also finds names that are not in a name server, such as those of an embedded cluster."""
    look_up = f"getent hosts {host} > /dev/null 2>&1 || nslookup {host} > /dev/null 2>&1"
    script = f"for try in $(seq {TRIES}); do {{ {look_up}; }} && exit 0; sleep {SECONDS_BETWEEN}; done; exit 1"
    resources = {"limits": {"cpu": "100m", "memory": "20Mi"}, "requests": {"cpu": "50m", "memory": "10Mi"}}
    return {"name": name, "image": image, "command": ["sh", "-c", script], "resources": resources}
