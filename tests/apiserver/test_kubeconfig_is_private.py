"""The kubeconfig holds the token: only its owner can read it, and it is never seen half-written."""

from __future__ import annotations

import base64
import os
from pathlib import Path

import yaml

from shoal.apiserver import kubeconfig_file


def test_it_names_the_server_the_token_and_the_authority(tmp_path: Path) -> None:
    file = tmp_path / "deep" / "kubeconfig"
    kubeconfig_file.write(file, server="https://127.0.0.1:6443", token="secret", context="mine", ca_pem=b"PEM")
    assert yaml.safe_load(file.read_text()) == {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [
            {
                "name": "mine",
                "cluster": {
                    "server": "https://127.0.0.1:6443",
                    "certificate-authority-data": base64.b64encode(b"PEM").decode(),
                },
            }
        ],
        "users": [{"name": "mine-shoal-admin", "user": {"token": "secret"}}],
        "contexts": [
            {"name": "mine", "context": {"cluster": "mine", "user": "mine-shoal-admin", "namespace": "default"}}
        ],
        "current-context": "mine",
        "preferences": {},
    }


def test_only_its_owner_may_read_it(tmp_path: Path) -> None:
    file = tmp_path / "kubeconfig"
    file.write_text("older, readable by all")
    file.chmod(0o644)
    before = os.umask(0)
    try:
        kubeconfig_file.write(file, server="https://127.0.0.1:1", token="secret")
    finally:
        os.umask(before)
    assert file.stat().st_mode & 0o777 == 0o600
    assert list(tmp_path.iterdir()) == [file]
