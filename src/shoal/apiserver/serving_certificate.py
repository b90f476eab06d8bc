"""The server's own certificate, made once per data folder.

kubectl sends a token over TLS only, so the API uses TLS on loopback too. The certificate is self-signed and is the
authority in the kubeconfig: a client with that file connects to this server and to no other.
"""

from __future__ import annotations

import ipaddress
import os
import ssl
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from fnmatch import fnmatchcase
from pathlib import Path
from typing import TYPE_CHECKING

from shoal.apiserver.server import ServerListenError, tls_context

if TYPE_CHECKING:
    from cryptography import x509

ALWAYS = ("localhost", "127.0.0.1", "::1")
LIFETIME = timedelta(days=3650)
RENEW_BEFORE = timedelta(days=30)


@dataclass(frozen=True, slots=True)
class Certificate:
    certificate: Path
    key: Path

    def authority(self) -> bytes:
        """What a client must trust, in PEM."""
        return self.certificate.read_bytes()

    def context(self) -> ssl.SSLContext:
        """For a server; ServerListenError where the two cannot be used together."""
        return tls_context(self.certificate, self.key)

    def names(self) -> tuple[str, ...]:
        """The names and addresses it is for. ServerListenError if it has none: every client would reject it."""
        from cryptography import x509

        try:
            found = x509.load_pem_x509_certificate(self.certificate.read_bytes())
            alternatives = found.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
        except (ValueError, x509.ExtensionNotFound):
            raise ServerListenError(
                f"the certificate {self.certificate} has no subjectAltName, and clients refuse a server whose "
                'certificate has none. Make one with it: openssl req ... -addext "subjectAltName=IP:ADDRESS,DNS:NAME"'
            ) from None
        return tuple(str(name.value) for name in alternatives)

    def is_for(self, host: str) -> bool:
        """Whether a client that connects to `host` accepts it."""
        return any(fnmatchcase(host.lower(), name.lower()) for name in self.names())


def ensure(folder: Path, *hosts: str, subject: str = "shoal", now: datetime | None = None) -> Certificate:
    """The certificate in `folder`, remade if it is missing, about to expire, or made for other names.
    Two that one client trusts need different subjects: OpenSSL looks a certificate up by its subject."""
    made = Certificate(folder / "server.crt", folder / "server.key")
    moment = now or datetime.now(UTC)
    names = tuple(dict.fromkeys((*ALWAYS, *hosts)))
    if not _is_valid(made, names, moment):
        folder.mkdir(parents=True, exist_ok=True)
        key, certificate = generate(names, moment, subject=subject)
        _write(made.key, key)
        _write(made.certificate, certificate)
    return made


def _is_valid(made: Certificate, names: tuple[str, ...], now: datetime) -> bool:
    from cryptography import x509

    if not made.key.exists() or not made.certificate.exists():
        return False
    try:
        found = x509.load_pem_x509_certificate(made.certificate.read_bytes())
        made.context()  # the key belongs to it
        stored_names = set(made.names())
    except (ValueError, ServerListenError):
        return False
    return set(names) <= stored_names and now + RENEW_BEFORE < found.not_valid_after_utc


def generate(
    names: tuple[str, ...], now: datetime, *, subject: str = "shoal", lifetime: timedelta = LIFETIME
) -> tuple[bytes, bytes]:
    """A key, and a certificate for these names that it signed itself; both in PEM."""
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec
    from cryptography.x509.oid import NameOID

    alternatives: list[x509.GeneralName] = []
    for host in names:
        try:
            alternatives.append(x509.IPAddress(ipaddress.ip_address(host)))
        except ValueError:
            alternatives.append(x509.DNSName(host))
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, subject)])
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(hours=1))  # clocks of other machines may be behind
        .not_valid_after(now + lifetime)
        .add_extension(x509.SubjectAlternativeName(alternatives), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .sign(key, hashes.SHA256())
    )
    private = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    return private, certificate.public_bytes(serialization.Encoding.PEM)


def _write(path: Path, content: bytes) -> None:
    """Whole or not at all, and readable by its owner alone."""
    draft = path.with_name(f".{path.name}.new")
    descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(descriptor, "wb") as file:
        file.write(content)
    draft.replace(path)
