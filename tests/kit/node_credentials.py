"""Credentials of nodes: what docs/node.md has an administrator make, made here with the key of the test's authority."""

from __future__ import annotations

import base64
import json
import re
import subprocess
from datetime import UTC, datetime, timedelta
from pathlib import Path

import yaml
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from kit.control_plane import ROOT, ControlPlane
from shoal.kube.objects import Obj

AUTHORITY = "ca"
PEM = serialization.Encoding.PEM


def docs_block(language: str) -> str:
    """The one block of that language in docs/node.md."""
    (shown,) = re.findall(rf"```{language}\n(.*?)```", (ROOT / "docs" / "node.md").read_text(), re.DOTALL)
    return str(shown)


def roles_shown() -> list[Obj]:
    return list(yaml.safe_load_all(docs_block("yaml")))


def apply_roles(kubectl: Path, kubeconfig: str) -> None:
    command = [kubectl, f"--kubeconfig={kubeconfig}", "apply", "-f", "-"]
    subprocess.run(command, input=docs_block("yaml"), text=True, check=True, stdout=subprocess.DEVNULL)


def make_authority(folder: Path) -> None:
    """For client certificates: its own certificate and key."""
    _write(folder, AUTHORITY, x509.Name([_named(NameOID.COMMON_NAME, "clients of the test")]), signed_by=None)


def make_client(folder: Path, file: str, user: str, *groups: str) -> None:
    """FILE.crt and FILE.key in the folder, signed by its authority."""
    pairs = [_named(NameOID.ORGANIZATION_NAME, group) for group in groups] + [_named(NameOID.COMMON_NAME, user)]
    _write(folder, file, x509.Name(pairs), signed_by=AUTHORITY)


def node_kubeconfig(plane: ControlPlane, node: str, folder: Path) -> Path:
    """A kubeconfig in `folder` whose user is that node, with the certificate and the key in files beside it."""
    folder.mkdir(parents=True, exist_ok=True)
    clients = Path(plane.folder) / "clients"
    make_client(clients, node, f"system:node:{node}", "system:nodes")
    for ending in ("crt", "key"):
        (clients / f"{node}.{ending}").rename(folder / f"{node}.{ending}")
    config = json.loads(Path(plane.kubeconfig).read_text())
    authority = base64.b64encode(Path(plane.ca_file).read_bytes()).decode()
    config["clusters"][0]["cluster"] = {"server": plane.url, "certificate-authority-data": authority}
    config["users"][0]["user"] = {"client-certificate": f"{node}.crt", "client-key": f"{node}.key"}
    path = folder / f"{node}.kubeconfig"
    path.write_text(json.dumps(config))
    path.chmod(0o600)
    return path


def _named(kind: x509.ObjectIdentifier, value: str) -> x509.NameAttribute[str]:
    return x509.NameAttribute(kind, value)


def _write(folder: Path, file: str, subject: x509.Name, *, signed_by: str | None) -> None:
    key = ec.generate_private_key(ec.SECP256R1())
    signer, issuer = key, subject
    if signed_by is not None:
        loaded = serialization.load_pem_private_key((folder / f"{signed_by}.key").read_bytes(), None)
        assert isinstance(loaded, ec.EllipticCurvePrivateKey)
        signer = loaded
        issuer = x509.load_pem_x509_certificate((folder / f"{signed_by}.crt").read_bytes()).subject
    now = datetime.now(UTC)
    builder = x509.CertificateBuilder().subject_name(subject).issuer_name(issuer).public_key(key.public_key())
    builder = builder.serial_number(x509.random_serial_number())
    builder = builder.not_valid_before(now - timedelta(hours=1)).not_valid_after(now + timedelta(days=2))
    builder = builder.add_extension(x509.BasicConstraints(ca=signed_by is None, path_length=None), critical=True)
    if signed_by is not None:
        builder = builder.add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.CLIENT_AUTH]), critical=False)
    (folder / f"{file}.crt").write_bytes(builder.sign(signer, hashes.SHA256()).public_bytes(PEM))
    place = folder / f"{file}.key"
    place.touch(mode=0o600)
    plain = serialization.NoEncryption()
    place.write_bytes(key.private_bytes(PEM, serialization.PrivateFormat.PKCS8, plain))
