"""Certificates that are not as they should be."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from shoal.apiserver.serving_certificate import Certificate


def nameless(folder: Path) -> Certificate:
    """As `openssl req -x509 -subj /CN=shoal` makes one: a common name, and no subjectAltName."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "shoal")])
    began = datetime.now(UTC) - timedelta(hours=1)
    made = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(began)
        .not_valid_after(began + timedelta(days=9))
        .sign(key, hashes.SHA256())
    )
    encoding, plain = serialization.Encoding.PEM, serialization.NoEncryption()
    files = Certificate(folder / "nameless.crt", folder / "nameless.key")
    files.certificate.write_bytes(made.public_bytes(encoding))
    files.key.write_bytes(key.private_bytes(encoding, serialization.PrivateFormat.PKCS8, plain))
    return files
