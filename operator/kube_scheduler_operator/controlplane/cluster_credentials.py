"""How schedulers find the API and whom they trust, where the cluster keeps that and not the node.

The kubeconfig and the CA bundle are parts of a revision. The client certificate is not: it is
renewed every few weeks, and a scheduler reads it again while it runs.
"""

from __future__ import annotations

import re
import ssl
from collections.abc import Iterable, Mapping
from datetime import datetime
from functools import lru_cache
from typing import Any, Final

from ..base import names
from ..base.platform import Credentials, Platform
from ..manifests.pods import STATIC_POD_RESOURCES, canonical_json

_BLOCK: Final = re.compile(
    r"-----BEGIN CERTIFICATE-----\n[A-Za-z0-9+/=\s]+?\n-----END CERTIFICATE-----"
)


class BundleError(ValueError):
    """A CA bundle with something in it that is no certificate."""


def ca_bundle(texts: Iterable[str], now: datetime) -> str:
    """One bundle of several, as the reference combines them: in order, without expired ones.

    Args:
        texts: PEM; text around certificates is left out, as is a certificate seen before.
        now: what counts as expired.

    Raises:
        BundleError: a text has no certificate, or one that cannot be read.
    """
    found: dict[bytes, str] = {}
    for text in texts:
        for block, der, expires in _certificates(text):
            if expires is None or expires > now.timestamp():
                found.setdefault(der, block)
    return "".join(f"{block}\n" for block in found.values())


# Every pass asks for the same bundles again.
@lru_cache(maxsize=16)
def _certificates(text: str) -> tuple[tuple[str, bytes, float | None], ...]:
    """(PEM, DER, when it expires) of each certificate; None for one that is no CA's own."""
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
        raise BundleError(f"a certificate in it cannot be read: {error}") from error
    expires = [str(one["notAfter"]) for one in context.get_ca_certs()]
    return block, der, float(ssl.cert_time_to_seconds(expires[0])) if expires else None


def kubeconfig(kept: Credentials, server: str) -> str:
    """The kubeconfig of schedulers: everything in it is a path that they see.

    Args:
        kept: where things are.
        server: URL of the API server.
    """
    secret = f"{kept.mounted}/secrets/{kept.client_certificate}"
    bundle = f"{STATIC_POD_RESOURCES}/configmaps/{names.CA_BUNDLE}/{names.CA_BUNDLE_KEY}"
    user = names.OPERAND
    return canonical_json(
        {
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [
                {"name": "lb-int", "cluster": {"server": server, "certificate-authority": bundle}}
            ],
            "users": [
                {
                    "name": user,
                    "user": {
                        "client-certificate": f"{secret}/tls.crt",
                        "client-key": f"{secret}/tls.key",
                    },
                }
            ],
            "contexts": [{"name": user, "context": {"cluster": "lb-int", "user": user}}],
            "current-context": user,
        }
    )


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
