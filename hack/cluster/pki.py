"""The certificates of a cluster, as kubeadm makes them, by the openssl program.

The standard library cannot sign certificates. Keys are on P-256: making them takes no time.
"""

from __future__ import annotations

import base64
import string
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from cluster import paths
from cluster.console import run

if TYPE_CHECKING:
    from collections.abc import Sequence

_DAYS = "3650"
_CONFIG = """\
[req]
distinguished_name = name
x509_extensions = extensions
[name]
[extensions]
subjectKeyIdentifier = hash
"""
_AUTHORITY = """\
basicConstraints = critical, CA:TRUE
keyUsage = critical, keyCertSign, cRLSign, digitalSignature
"""
_LEAF = """\
basicConstraints = critical, CA:FALSE
keyUsage = critical, digitalSignature
extendedKeyUsage = serverAuth, clientAuth
"""


class Authority:
    """A certificate authority in a folder, made on first use."""

    def __init__(self, folder: Path, name: str) -> None:
        self._folder = folder
        self.certificate = folder / f"{name}.crt"
        self.key = folder / f"{name}.key"
        if not self.certificate.exists():
            _request(self.certificate, self.key, f"/CN={name}", _AUTHORITY)

    def issue(
        self, name: str, common_name: str, *, organization: str = "", hosts: Sequence[str] = ()
    ) -> tuple[Path, Path]:
        """Sign NAME.crt with NAME.key, unless that has been done; return the two."""
        certificate, key = self._folder / f"{name}.crt", self._folder / f"{name}.key"
        if not certificate.exists():
            subject = (f"/O={organization}" if organization else "") + f"/CN={common_name}"
            names = ", ".join(f"{'IP' if _is_address(host) else 'DNS'}:{host}" for host in hosts)
            extensions = _LEAF + (f"subjectAltName = {names}\n" if names else "")
            signer = ("-CA", str(self.certificate), "-CAkey", str(self.key))
            _request(certificate, key, subject, extensions, *signer)
        return certificate, key


def service_account_keys(folder: Path) -> tuple[Path, Path]:
    """Make the pair that signs and checks service-account tokens: private key, public key."""
    private, public = folder / "sa.key", folder / "sa.pub"
    if not public.exists():
        folder.mkdir(parents=True, exist_ok=True)
        run("openssl", "genpkey", "-quiet", "-algorithm", "EC", "-pkeyopt",
            "ec_paramgen_curve:P-256", "-out", private)  # fmt: skip
        private.chmod(0o600)
        paths.write_atomically(public, run("openssl", "pkey", "-in", private, "-pubout"))
    return private, public


def kubeconfig(server: str, authority: Path, user: str, credentials: tuple[Path, Path]) -> str:
    """Write out a kubeconfig with everything embedded, as kubeadm does."""
    template = string.Template((paths.TEMPLATES / "kubeconfig.yaml").read_text())
    certificate, key = credentials
    return template.substitute(
        server=server,
        user=user,
        authority=_base64(authority),
        certificate=_base64(certificate),
        key=_base64(key),
    )


def _base64(path: Path) -> str:
    return base64.b64encode(path.read_bytes()).decode()


def _is_address(host: str) -> bool:
    return host.replace(".", "").isdigit()


def _request(certificate: Path, key: Path, subject: str, extensions: str, *signer: str) -> None:
    """Make a key and a certificate; the certificate appears last, and whole."""
    certificate.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        config, made = Path(folder, "config"), Path(folder, "certificate")
        config.write_text(_CONFIG + extensions)
        run("openssl", "req", "-x509", "-config", config, "-newkey", "ec", "-pkeyopt",
            "ec_paramgen_curve:P-256", "-noenc", "-days", _DAYS, "-subj", subject,
            "-keyout", key, "-out", made, *signer)  # fmt: skip
        key.chmod(0o600)
        paths.write_atomically(certificate, made.read_bytes())
