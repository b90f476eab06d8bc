"""Knowing the server by its certificate, and showing it ours."""

from __future__ import annotations

import os
import ssl
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from shoal.cluster.kubeconfig.connection import NoConnection, Shown


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


class CertificateFiles:
    """A client certificate in files that others renew: read again when they have changed, for new connections."""

    def __init__(self, certificate: Path, key: Path, showing: Callable[[bytes, bytes], ssl.SSLContext]) -> None:
        self._files = (certificate, key)
        self._showing = showing
        self._seen: object = None
        self._shown = Shown()

    def at_hand(self) -> Shown:
        try:
            signature = [(found.st_ino, found.st_mtime_ns) for found in (file.stat() for file in self._files)]
            if signature != self._seen:
                self._shown = Shown(trust=self._showing(*(file.read_bytes() for file in self._files)))
                self._seen = signature
        except (OSError, ssl.SSLError) as problem:
            if self._seen is None:
                certificate, key = self._files
                told = f"the client certificate {certificate} with its key {key} cannot be used: {problem}"
                raise NoConnection(told) from None
            # Else they are just being renewed, one after the other, and are no pair yet: the next request sees.
        return self._shown

    def fetch(self) -> Shown:
        return self.at_hand()


def _show(trust: ssl.SSLContext, certificate: bytes, key: bytes) -> None:
    """A client certificate can only be loaded from a file, so there is one for a moment that only we can read."""
    handle, name = tempfile.mkstemp(prefix="shoal-")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(certificate + b"\n" + key)
        # A key that wants a password is refused: without one given here, OpenSSL would ask the terminal.
        trust.load_cert_chain(name, password="")
    finally:
        Path(name).unlink()
