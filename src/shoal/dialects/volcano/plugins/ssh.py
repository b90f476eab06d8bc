"""Plugin ssh: the pods of a job may log into each other.

One key for the life of the job, in a Secret. Drawing it is the one thing in this language that is not a function of
its input, which is why it happens only where there is no Secret yet; later changes touch the list of hosts alone.
"""

from __future__ import annotations

import base64
from typing import Any

from shoal.dialects.volcano.plugins.pods import PluginJob, PluginPod, mount
from shoal.kube.objects import Obj

FLAGS: dict[str, Any] = {
    "ssh-key-file-path": "/root/.ssh",
    "ssh-private-key": "",
    "ssh-public-key": "",
    "ssh-port": 22,
}
ROOTS = "/root/.ssh"
KEY_BITS = 2048
_FILES = ("id_rsa", "id_rsa.pub", "authorized_keys", "config")


def secret_name(job: str) -> str:
    return f"{job}-ssh"


def configure_pod(pod: Obj, place: PluginPod, flags: dict[str, Any]) -> None:
    name, folder = secret_name(place.scene.job), flags["ssh-key-file-path"].rstrip("/")
    mode = 0o600 if folder == ROOTS else 0o644  # users other than root could not read their own key
    items = [{"key": file, "path": f".ssh/{file}"} for file in _FILES]
    volume = {"name": name, "secret": {"secretName": name, "items": items, "defaultMode": mode}}
    mount(pod, volume, [{"name": name, "mountPath": f"{folder}/{file}", "subPath": f".ssh/{file}"} for file in _FILES])


def secret(scene: PluginJob, flags: dict[str, Any], *, is_new: bool) -> Obj:
    """Its data; without the key where there is one."""
    files = {"config": config(scene, flags["ssh-port"])}
    if is_new:
        private, public = flags["ssh-private-key"], flags["ssh-public-key"]
        if not private:
            private, public = _generate_keys()
        files |= {"id_rsa": private, "id_rsa.pub": public, "authorized_keys": public}
    return {"type": "Opaque", "data": {name: base64.b64encode(text.encode()).decode() for name, text in files.items()}}


def config(scene: PluginJob, port: int) -> str:
    """A block per pod: the keys of these hosts are not known yet, so they are not checked."""
    lines = ["StrictHostKeyChecking no", "UserKnownHostsFile /dev/null"]
    for task in scene.spec.tasks:
        for host in scene.hosts(task):
            lines += [f"Host {host.partition('.')[0]}", f"  HostName {host}"]
            lines += [f"  Port {port}"] if port != FLAGS["ssh-port"] else []
    return "\n".join(lines) + "\n"


def _generate_keys() -> tuple[str, str]:
    from cryptography.hazmat.primitives import serialization
    from cryptography.hazmat.primitives.asymmetric import rsa

    key = rsa.generate_private_key(public_exponent=65537, key_size=KEY_BITS)
    private = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.TraditionalOpenSSL, serialization.NoEncryption()
    )
    public = key.public_key().public_bytes(serialization.Encoding.OpenSSH, serialization.PublicFormat.OpenSSH)
    return private.decode(), public.decode() + "\n"
