"""The certificates of the webhook: made, trusted by the API server, and renewed, step by step.

Each step is one write, decided from what is stored, so that a process that ends in between is
continued by another one. A new certificate is trusted before it is served: first it is stored
beside the one in use, then its authority is added to the MutatingWebhookConfiguration, and a minute
later it takes the place of the other, whose authority stays trusted until the next renewal.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final

from ..base import x509
from ..base.objects import Object, mapping
from ..telemetry.issued_certificate import Issued

DAYS: Final = 365
"""The lifetime of a certificate and of its authority."""

RENEW_BEFORE: Final = timedelta(days=120)
"""The time before the expiry of a certificate at which the next one is made."""

TRUST_SECONDS: Final = 60.0
"""The time after which every API server has the new authority; their watches take less."""

AUTHORITIES: Final = "ca.crt"
CERTIFICATE: Final = "tls.crt"
KEY: Final = "tls.key"
NEXT: Final = "next-"

_END: Final = "-----END CERTIFICATE-----"

Data = Mapping[str, str]
"""The texts of the Secret."""

Issue = Callable[[], Issued]


@dataclass(frozen=True, slots=True)
class CertificateStep:
    """The next write."""

    data: Data | None = None  # the texts of the Secret; None: it stays
    bundle: str = ""  # what the API server trusts; empty: it stays
    reason: str = ""  # what happens, for the log


def data_of(secret: Object) -> dict[str, str]:
    """The texts of a Secret; what cannot be decoded is left out."""
    found = {}
    for key, value in mapping(secret.get("data")).items():
        try:
            found[key] = base64.b64decode(value, validate=True).decode()
        except (ValueError, TypeError, binascii.Error):
            continue
    return found


def encoded(data: Data) -> dict[str, str]:
    """The `data` of a Secret."""
    return {key: base64.b64encode(text.encode()).decode() for key, text in sorted(data.items())}


def bundle_of(configuration: Object) -> str:
    """What the API server trusts; empty unless it is the same for every webhook."""
    found = {
        str(mapping(each.get("clientConfig")).get("caBundle") or "")
        for each in configuration.get("webhooks") or ()
    }
    try:
        return base64.b64decode(found.pop()).decode() if len(found) == 1 else ""
    except ValueError:
        return ""


def with_bundle(configuration: Object, bundle: str) -> dict[str, Any]:
    """The configuration with another caBundle, and nothing else changed."""
    text = base64.b64encode(bundle.encode()).decode()
    webhooks = [
        {**each, "clientConfig": {**each["clientConfig"], "caBundle": text}}
        for each in configuration.get("webhooks") or ()
    ]
    return {**configuration, "webhooks": webhooks}


def next_step(
    data: Data, bundle: str, now: datetime, trusted_for: float, issue: Issue
) -> CertificateStep | None:
    """The next write; None if there is nothing to do.

    Args:
        data: the texts of the Secret.
        bundle: what the API server trusts.
        now: the API server's time.
        trusted_for: seconds for which `bundle` has been what it is, as far as this process knows.
        issue: makes a certificate.
    """
    expiry = _expiry(data, "")
    if expiry is None or expiry <= now:
        return CertificateStep(_first(issue()), reason="there is no valid one")
    pending = _expiry(data, NEXT)
    if expiry - now < RENEW_BEFORE and (pending is None or pending - now < RENEW_BEFORE):
        made = issue()
        beside = {
            NEXT + AUTHORITIES: made.authority,
            NEXT + CERTIFICATE: made.certificate,
            NEXT + KEY: made.key,
        }
        return CertificateStep({**data, **beside}, reason=f"the one in use expires {expiry:%F}")
    trusted = data[AUTHORITIES] + data.get(NEXT + AUTHORITIES, "")
    if bundle != trusted:
        return CertificateStep(bundle=trusted, reason="the API server trusts another authority")
    if pending is not None and trusted_for >= TRUST_SECONDS:
        return CertificateStep(_promoted(data), reason="the next one is trusted")
    return None


def _expiry(data: Data, prefix: str) -> datetime | None:
    """The expiry of a complete certificate; None if a part of it is missing."""
    if not all(data.get(prefix + key) for key in (AUTHORITIES, CERTIFICATE, KEY)):
        return None
    return x509.expires(data[prefix + CERTIFICATE].encode())


def _first(made: Issued) -> dict[str, str]:
    return {AUTHORITIES: made.authority, CERTIFICATE: made.certificate, KEY: made.key}


def _promoted(data: Data) -> dict[str, str]:
    """The next certificate in use; the authority of the one before stays."""
    before = data[AUTHORITIES].split(_END, 1)[0] + _END + "\n"
    return {
        AUTHORITIES: data[NEXT + AUTHORITIES] + before,
        CERTIFICATE: data[NEXT + CERTIFICATE],
        KEY: data[NEXT + KEY],
    }
