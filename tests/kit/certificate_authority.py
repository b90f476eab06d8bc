"""Certificates for tests, good and bad ones: an authority that signs servers and people, also with dates long past."""

from __future__ import annotations

import ipaddress
import ssl
import tempfile
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

PEM = serialization.Encoding.PEM


@dataclass(frozen=True)
class Pair:
    """A certificate and its key, both in PEM."""

    certificate: bytes
    key: bytes

    def context(self) -> ssl.SSLContext:
        """For a server that shows this certificate."""
        made = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        with tempfile.NamedTemporaryFile() as file:
            Path(file.name).write_bytes(self.certificate + self.key)
            made.load_cert_chain(file.name)
        return made


@dataclass(frozen=True)
class Authority:
    certificate: bytes
    secret: ec.EllipticCurvePrivateKey

    @classmethod
    def make(cls) -> Authority:
        secret = ec.generate_private_key(ec.SECP256R1())
        made = _draft("authority", secret, days=365).add_extension(
            x509.BasicConstraints(ca=True, path_length=None), critical=True
        )
        return cls(made.issuer_name(_name("authority")).sign(secret, hashes.SHA256()).public_bytes(PEM), secret)

    def sign(self, name: str, *, days: int = 365, organisation: str = "") -> Pair:
        """For `name` and 127.0.0.1; negative `days` make one that ended so long ago."""
        secret = ec.generate_private_key(ec.SECP256R1())
        names = [x509.DNSName(name), x509.IPAddress(ipaddress.ip_address("127.0.0.1"))]
        draft = _draft(name, secret, days=days, organisation=organisation)
        draft = draft.issuer_name(_name("authority")).add_extension(x509.SubjectAlternativeName(names), critical=False)
        key = secret.private_bytes(PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
        return Pair(draft.sign(self.secret, hashes.SHA256()).public_bytes(PEM), key)


def _draft(
    name: str, secret: ec.EllipticCurvePrivateKey, *, days: int, organisation: str = ""
) -> x509.CertificateBuilder:
    end = datetime.now(UTC) + timedelta(days=days)
    begin = min(datetime.now(UTC), end) - timedelta(days=1)
    return (
        x509.CertificateBuilder()
        .subject_name(_name(name, organisation))
        .public_key(secret.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(begin)
        .not_valid_after(end)
    )


def _name(name: str, organisation: str = "") -> x509.Name:
    parts = [x509.NameAttribute(NameOID.COMMON_NAME, name)]
    if organisation:
        parts.append(x509.NameAttribute(NameOID.ORGANIZATION_NAME, organisation))
    return x509.Name(parts)
