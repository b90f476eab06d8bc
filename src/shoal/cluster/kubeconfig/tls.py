"""TLS to an API server: verification of its certificate, and our client certificate."""

from __future__ import annotations

import os
import ssl
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from shoal.cluster.kubeconfig.connection_config import ConnectionConfigError, RequestCredentials


@dataclass(frozen=True, slots=True)
class TlsConfig:
    """Which server to trust: the holder of a certificate signed by `authority` (PEM), by default a system one."""

    authority: str = ""
    skip_verify: bool = False  # insecure-skip-tls-verify

    def context(self) -> ssl.SSLContext:
        """Raises ssl.SSLError where the authority is no certificate."""
        context = ssl.create_default_context(cadata=self.authority or None)
        # Kubernetes' own authorities leave out extensions that the strict reading of newer Pythons demands.
        context.verify_flags &= ~ssl.VERIFY_X509_STRICT
        if self.skip_verify:
            context.check_hostname = False
            context.verify_mode = ssl.CERT_NONE
        return context

    def context_with_certificate(self, certificate: bytes, key: bytes) -> ssl.SSLContext:
        """The same, and a certificate of our own. Raises ssl.SSLError where the two do not belong together."""
        context = self.context()
        # A client certificate can only be loaded from a file: a temporary one that only this user can read.
        handle, name = tempfile.mkstemp(prefix="shoal-")
        try:
            with os.fdopen(handle, "wb") as file:
                file.write(certificate + b"\n" + key)
            # A key that needs a password is rejected: without one given here, OpenSSL would prompt for it.
            context.load_cert_chain(name, password="")
        finally:
            Path(name).unlink()
        return context


class CertificateFiles:
    """A client certificate in files that others renew: read again when they have changed, for new connections."""

    def __init__(
        self, certificate: Path, key: Path, context_with_certificate: Callable[[bytes, bytes], ssl.SSLContext]
    ) -> None:
        self._files = (certificate, key)
        self._make_context = context_with_certificate
        self._signature: object = None
        self._credentials = RequestCredentials()

    def cached(self) -> RequestCredentials:
        try:
            signature = [(found.st_ino, found.st_mtime_ns) for found in (file.stat() for file in self._files)]
            if signature != self._signature:
                self._credentials = RequestCredentials(
                    ssl_context=self._make_context(*(file.read_bytes() for file in self._files))
                )
                self._signature = signature
        except (OSError, ssl.SSLError) as problem:
            if self._signature is None:
                certificate, key = self._files
                message = f"the client certificate {certificate} with its key {key} cannot be used: {problem}"
                raise ConnectionConfigError(message) from None
            # Else they are just being renewed, one after the other, and are no pair yet: the next request sees.
        return self._credentials

    def fetch(self) -> RequestCredentials:
        return self.cached()
