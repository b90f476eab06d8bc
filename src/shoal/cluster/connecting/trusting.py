"""Knowing the server by its certificate, and showing it ours."""

from __future__ import annotations

import os
import ssl
import tempfile
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Trust:
    """Whom to believe: the holder of a certificate signed by `authority` (PEM), by default one the system trusts."""

    authority: str = ""
    is_blind: bool = False  # insecure-skip-tls-verify

    def context(self) -> ssl.SSLContext:
        """Raises ssl.SSLError where the authority is no certificate."""
        made = ssl.create_default_context(cadata=self.authority or None)
        # Kubernetes' own authorities leave out extensions that the strict reading of newer Pythons demands.
        made.verify_flags &= ~ssl.VERIFY_X509_STRICT
        if self.is_blind:
            made.check_hostname = False
            made.verify_mode = ssl.CERT_NONE
        return made

    def showing(self, certificate: bytes, key: bytes) -> ssl.SSLContext:
        """The same, and a certificate of our own. Raises ssl.SSLError where the two do not belong together."""
        made = self.context()
        _show(made, certificate, key)
        return made


def _show(trust: ssl.SSLContext, certificate: bytes, key: bytes) -> None:
    """A client certificate can only be loaded from a file, so there is one for a moment that only we can read."""
    handle, name = tempfile.mkstemp(prefix="shoal-")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(certificate + b"\n" + key)
        trust.load_cert_chain(name)
    finally:
        Path(name).unlink()
