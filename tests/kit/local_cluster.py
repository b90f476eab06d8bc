"""A cluster as people start it: `shoal up` in a process of its own, which a test may kill."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import yaml

from kit.raw_api import Api


class LocalCluster:
    """One data folder. `start` returns when the cluster says that it is ready; every start is a new process."""

    def __init__(self, data: Path, *options: str) -> None:
        self.data = data
        self._options = options
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def pid(self) -> int:
        assert self._process is not None
        return self._process.pid

    def start(self) -> Api:
        reading, writing = os.pipe()
        words = ["up", "--data", str(self.data), *self._options, "--ready-fd", str(writing)]
        self._process = subprocess.Popen(
            [sys.executable, "-m", "shoal", *words],
            pass_fds=[writing],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            env={name: value for name, value in os.environ.items() if not name.startswith("SHOAL_")},
        )
        os.close(writing)
        with os.fdopen(reading, "rb") as word:
            said = word.read()
        if said != b"ready\n":
            output = self._process.communicate()[0].decode()
            raise AssertionError(f"the cluster did not start: {output}\n{self.log()}")
        return self.api()

    def kill(self) -> None:
        """As the kernel would: at once, with nothing said."""
        assert self._process is not None
        self._process.kill()
        self._process.communicate()

    def wait(self) -> tuple[int, str]:
        """Until it has ended by itself; its code and what it printed."""
        assert self._process is not None
        output, _ = self._process.communicate()
        return self._process.returncode, output.decode()

    def stop(self) -> str:
        """Ask nicely and wait; what it printed."""
        assert self._process is not None
        self._process.send_signal(signal.SIGTERM)
        output, _ = self._process.communicate()
        assert self._process.returncode == 0, f"{output.decode()}\n{self.log()}"
        return output.decode()

    def api(self) -> Api:
        config = yaml.safe_load((self.data / "kubeconfig").read_text())
        server, token = config["clusters"][0]["cluster"]["server"], config["users"][0]["user"]["token"]
        return Api(server, token, str(self.data / "tls" / "server.crt"))

    def log(self) -> str:
        file = self.data / "shoal.log"
        return file.read_text() if file.exists() else ""
