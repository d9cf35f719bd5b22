"""Kubeconfig, CA bundle and client certificate of schedulers where the cluster keeps them.

The kubeconfig and the CA bundle are parts of a revision. The client certificate is not: it is
renewed every few weeks, and a running scheduler reloads it.
"""

from __future__ import annotations

import re
import ssl
from collections.abc import Iterable, Mapping
from datetime import datetime
from functools import lru_cache
from typing import Any, Final

from ..base import names
from ..base.platform import Platform, SchedulerCredentials
from .node_pods import STATIC_POD_RESOURCES, kubeconfig_text

_BLOCK: Final = re.compile(
    r"-----BEGIN CERTIFICATE-----\n[A-Za-z0-9+/=\s]+?\n-----END CERTIFICATE-----"
)


class BundleError(ValueError):
    """A CA bundle contains something that is not a certificate."""


def ca_bundle(texts: Iterable[str], now: datetime) -> str:
    """Combine PEM bundles as the reference does: in order, less what has expired by `now`.

    Text around certificates and duplicates are dropped.

    Raises:
        BundleError: a text has no certificate, or an unreadable one.
    """
    found: dict[bytes, str] = {}
    for text in texts:
        for block, der, expires in _certificates(text):
            if expires is None or expires > now.timestamp():
                found.setdefault(der, block)
    return "".join(f"{block}\n" for block in found.values())


# Every reconcile reads the same bundles again.
@lru_cache(maxsize=16)
def _certificates(text: str) -> tuple[tuple[str, bytes, float | None], ...]:
    """(PEM, DER, expiry) of each certificate; the expiry is None if it is not a CA's."""
    blocks = _BLOCK.findall(text.replace("\r\n", "\n"))
    if not blocks or len(blocks) != text.count("-----BEGIN"):
        raise BundleError("it must consist of PEM certificates")
    return tuple(_certificate(block) for block in blocks)


def _certificate(block: str) -> tuple[str, bytes, float | None]:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    try:
        der = ssl.PEM_cert_to_DER_cert(block)
        context.load_verify_locations(cadata=der)
    except (ValueError, ssl.SSLError) as error:
        raise BundleError(f"it contains an unreadable certificate: {error}") from error
    expires = [str(one["notAfter"]) for one in context.get_ca_certs()]
    return block, der, float(ssl.cert_time_to_seconds(expires[0])) if expires else None


def kubeconfig(source: SchedulerCredentials, server: str) -> str:
    """The kubeconfig of schedulers; its paths are those inside their containers."""
    secret = f"{source.mounted}/secrets/{source.client_certificate}"
    bundle = f"{STATIC_POD_RESOURCES}/configmaps/{names.CA_BUNDLE}/{names.CA_BUNDLE_KEY}"
    cluster = {"server": server, "certificate-authority": bundle}
    user = {"client-certificate": f"{secret}/tls.crt", "client-key": f"{secret}/tls.key"}
    return kubeconfig_text("lb-int", cluster, names.OPERAND, user)


def client_certificate(platform: Platform, source: Mapping[str, Any]) -> dict[str, Any]:
    """The copy of the client certificate's Secret in the target namespace."""
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {
            "name": source["metadata"]["name"],
            "namespace": platform.target_namespace,
            "labels": dict(names.OWN_LABELS),
        },
        "type": source.get("type") or "Opaque",
        "data": dict(source.get("data") or {}),
    }
