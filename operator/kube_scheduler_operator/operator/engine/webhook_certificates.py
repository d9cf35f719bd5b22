"""The certificates of the webhook: issued, trusted by the API server, and renewed, step by step.

Each step is one write, decided by what is stored, so that another process can continue after one
that ends in between. A new certificate is trusted before it is served: first it is stored beside
the one in use, then its authority is added to the MutatingWebhookConfiguration, and a minute later
it replaces the other, whose authority stays trusted until the next renewal.
"""

from __future__ import annotations

import base64
import binascii
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, Final

from ...base import x509
from ...base.objects import Object, mapping
from ...serving.certificate import NEW_KEY, run_openssl

DAYS: Final = 365
"""The lifetime of a certificate and of its authority."""

RENEW_BEFORE: Final = timedelta(days=120)
"""The time before the expiry of a certificate at which the next one is issued."""

TRUST_SECONDS: Final = 60.0
"""The time after which every API server has the new authority; their watches take less."""

AUTHORITIES: Final = "ca.crt"
CERTIFICATE: Final = "tls.crt"
KEY: Final = "tls.key"
NEXT: Final = "next-"

_END: Final = "-----END CERTIFICATE-----"

Data = Mapping[str, str]
"""The texts of the Secret."""

Issue = Callable[[], Data]
"""Returns a certificate, its key and its authority, by their keys in the Secret."""


@dataclass(frozen=True, slots=True)
class CertificateStep:
    """The next write."""

    data: Data | None = None  # the texts of the Secret; None: unchanged
    bundle: str = ""  # the authorities that the API server trusts; empty: unchanged
    reason: str = ""  # for the log


def data_of(secret: Object) -> dict[str, str]:
    """Decode the texts of a Secret, without those that are invalid."""
    texts = {}
    for key, value in mapping(secret.get("data")).items():
        try:
            texts[key] = base64.b64decode(value, validate=True).decode()
        except (ValueError, TypeError, binascii.Error):
            continue
    return texts


def encoded(data: Data) -> dict[str, str]:
    return {key: base64.b64encode(text.encode()).decode() for key, text in sorted(data.items())}


def bundle_of(configuration: Object) -> str:
    """Return the authorities that the API server trusts; empty if they differ by webhook."""
    bundles = {
        str(mapping(webhook.get("clientConfig")).get("caBundle") or "")
        for webhook in configuration.get("webhooks") or ()
    }
    try:
        return base64.b64decode(bundles.pop()).decode() if len(bundles) == 1 else ""
    except ValueError:
        return ""


def with_bundle(configuration: Object, bundle: str) -> dict[str, Any]:
    text = base64.b64encode(bundle.encode()).decode()
    webhooks = [
        {**webhook, "clientConfig": {**webhook["clientConfig"], "caBundle": text}}
        for webhook in configuration.get("webhooks") or ()
    ]
    return {**configuration, "webhooks": webhooks}


def next_step(
    data: Data, bundle: str, now: datetime, trusted_for: float, issue: Issue
) -> CertificateStep | None:
    """Decide the next write; None if there is nothing to do.

    `now` is the API server's time, and `trusted_for` the seconds since this process first saw
    `bundle`.
    """
    expiry = _expiry(data, "")
    if expiry is None or expiry <= now:
        return CertificateStep(issue(), reason="there is no valid one")
    pending = _expiry(data, NEXT)
    if expiry - now < RENEW_BEFORE and (pending is None or pending - now < RENEW_BEFORE):
        following = {NEXT + key: text for key, text in issue().items()}
        return CertificateStep({**data, **following}, reason=f"the one in use expires {expiry:%F}")
    trusted = data[AUTHORITIES] + data.get(NEXT + AUTHORITIES, "")
    if bundle != trusted:
        return CertificateStep(bundle=trusted, reason="the API server trusts another authority")
    if pending is not None and trusted_for >= TRUST_SECONDS:
        return CertificateStep(_promoted(data), reason="the next one is trusted")
    return None


def _expiry(data: Data, prefix: str) -> datetime | None:
    """Read the expiry of a complete certificate; None if a part of it is missing."""
    if not all(data.get(prefix + key) for key in (AUTHORITIES, CERTIFICATE, KEY)):
        return None
    return x509.expires(data[prefix + CERTIFICATE].encode())


def _promoted(data: Data) -> dict[str, str]:
    """Replace the certificate in use by the next one; its authority stays trusted."""
    before = data[AUTHORITIES].split(_END, 1)[0] + _END + "\n"
    return {
        AUTHORITIES: data[NEXT + AUTHORITIES] + before,
        CERTIFICATE: data[NEXT + CERTIFICATE],
        KEY: data[NEXT + KEY],
    }


# --- a certificate with an authority of its own -----------------------------------------------


def issue(host: str, days: int) -> dict[str, str]:
    """Return a certificate for the DNS name `host`, valid for `days`; blocks for about 0.1 s.

    The authority's key signs this certificate and is then deleted: no stored key can sign another.

    Raises:
        CertificateError: the program openssl is missing or failed.
    """
    with tempfile.TemporaryDirectory(prefix="webhook-cert-") as name:
        directory = Path(name)
        # The common name is limited to 64 characters; clients read subjectAltName.
        run_openssl(
            directory, "req", "-x509", *NEW_KEY, "-sha256", "-days", str(days),
            "-subj", "/CN=kube-scheduler-operator webhook",
            "-addext", "basicConstraints=critical,CA:TRUE,pathlen:0",
            "-addext", "keyUsage=critical,keyCertSign",
            "-keyout", "ca.key", "-out", "ca.crt",
        )  # fmt: skip
        run_openssl(
            directory, "req", "-new", *NEW_KEY, "-sha256", "-subj", "/CN=webhook",
            "-keyout", "tls.key", "-out", "tls.csr",
        )  # fmt: skip
        extensions = (
            f"subjectAltName=DNS:{host}\nextendedKeyUsage=serverAuth\n"
            "basicConstraints=critical,CA:FALSE\nkeyUsage=critical,digitalSignature\n"
        )
        (directory / "extensions").write_text(extensions)
        run_openssl(
            directory, "x509", "-req", "-in", "tls.csr", "-CA", "ca.crt", "-CAkey", "ca.key",
            "-CAcreateserial", "-sha256", "-days", str(days), "-extfile", "extensions",
            "-out", "tls.crt",
        )  # fmt: skip
        return {key: (directory / key).read_text() for key in (AUTHORITIES, CERTIFICATE, KEY)}
