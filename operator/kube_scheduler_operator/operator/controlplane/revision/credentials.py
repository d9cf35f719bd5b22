"""Credentials that the cluster keeps for its schedulers: parts of a revision, and copied Secrets.

The kubeconfig and the CA bundle are parts of a revision. The client certificate is not: it is
renewed every few weeks, and a running scheduler reloads it. On platforms whose nodes have the
scheduler's kubeconfig there is nothing to do.
"""

from __future__ import annotations

import re
import ssl
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from functools import lru_cache
from typing import Any, Final

from ....base import names
from ....base.findings import Finding
from ....base.objects import Object
from ....base.platform import Platform, SchedulerCredentials
from ....kube.resource import SECRETS
from ...model.apply import apply, new_object
from ...model.plan import Action
from ...model.snapshot import Snapshot
from ..node_pods import STATIC_POD_RESOURCES, kubeconfig_text

_PAIR = ("tls.crt", "tls.key")
_BLOCK: Final = re.compile(
    r"-----BEGIN CERTIFICATE-----\n[A-Za-z0-9+/=\s]+?\n-----END CERTIFICATE-----"
)


class BundleError(ValueError):
    """A part of a CA bundle is not a certificate."""


@dataclass(frozen=True, slots=True)
class GatheredCredentials:
    parts: Mapping[str, Mapping[str, str]] = field(default_factory=dict)  # of a revision, by name
    actions: tuple[Action, ...] = ()  # writes to perform before a revision is installed
    findings: tuple[Finding, ...] = ()  # what is missing or malformed, and where


def gather_credentials(snapshot: Snapshot) -> GatheredCredentials:
    """All credentials that schedulers need to reach the API and that are not on their nodes."""
    source = snapshot.platform.credentials
    if source is None:
        return GatheredCredentials()
    gathered = (
        _bundle_part(snapshot, source),
        _kubeconfig_part(snapshot, source),
        _certificate_copy(snapshot, source),
    )
    return GatheredCredentials(
        parts={name: data for credentials in gathered for name, data in credentials.parts.items()},
        actions=tuple(action for credentials in gathered for action in credentials.actions),
        findings=tuple(finding for credentials in gathered for finding in credentials.findings),
    )


def has_serving_certificate(snapshot: Snapshot) -> bool:
    source = snapshot.platform.credentials
    return source is not None and _is_pair(snapshot.secrets.get(source.serving_certificate))


def _bundle_part(snapshot: Snapshot, source: SchedulerCredentials) -> GatheredCredentials:
    """The CA bundle. A missing source is not an error; a missing bundle is."""
    texts = []
    for name in source.ca_bundles:
        config_map = snapshot.source_config_maps.get(name)
        text = ((config_map or {}).get("data") or {}).get(names.CA_BUNDLE_KEY)
        if text is None:
            continue
        try:
            ca_bundle([text], snapshot.now)
        except BundleError as error:
            path = f'configmap/{name} in "{source.namespace}": data.{names.CA_BUNDLE_KEY}'
            return _missing("CABundleMalformed", path, f"is malformed: {error}")
        texts.append(text)
    bundle = ca_bundle(texts, snapshot.now)
    if bundle:
        return GatheredCredentials({names.CA_BUNDLE: {names.CA_BUNDLE_KEY: bundle}})
    listed = ", ".join(f"configmap/{name}" for name in source.ca_bundles)
    path = f'{listed} in "{source.namespace}"'
    return _missing("CABundleMissing", path, "no valid CA certificate for schedulers to trust")


def _kubeconfig_part(snapshot: Snapshot, source: SchedulerCredentials) -> GatheredCredentials:
    if snapshot.infrastructure is None:
        path = f"Infrastructure/{names.CLUSTER}"
        message = "does not exist: schedulers find the API at its status.apiServerInternalURI"
        return _missing("InfrastructureMissing", path, message)
    status = snapshot.infrastructure.get("status") or {}
    server = str(status.get("apiServerInternalURI") or "")
    if not server:  # validation of the configuration reports an empty one
        return GatheredCredentials()
    return GatheredCredentials(
        {names.KUBECONFIG: {names.KUBECONFIG_KEY: kubeconfig(source, server)}}
    )


def _certificate_copy(snapshot: Snapshot, source: SchedulerCredentials) -> GatheredCredentials:
    """The copy of the client certificate that installers put on nodes.

    If its source is missing, the copy stays: running schedulers keep using it.
    """
    name = source.client_certificate
    path = f'secret/{name} in "{source.namespace}"'
    secret, copy = snapshot.source_secrets.get(name), snapshot.secrets.get(name)
    if secret is not None and _is_pair(secret):
        desired = client_certificate(snapshot.platform, secret)
        actions = apply(SECRETS, snapshot.secrets, desired, ("data",))
        return GatheredCredentials(actions=tuple(actions))
    what = "does not exist" if secret is None else f"lacks {' or '.join(_PAIR)}"
    if copy is None:
        message = f"{what}: schedulers cannot authenticate without it"
    else:
        message = f'{what}; the copy in "{snapshot.platform.target_namespace}" stays in use'
    return _missing("ClientCertificateMissing", path, message, blocking=copy is None)


def _is_pair(secret: Object | None) -> bool:
    data = (secret or {}).get("data") or {}
    return all(data.get(key) for key in _PAIR)


def _missing(reason: str, path: str, message: str, *, blocking: bool = True) -> GatheredCredentials:
    finding = Finding(names.TARGET_CONFIG_DEGRADED, reason, path, message, blocking)
    return GatheredCredentials(findings=(finding,))


# --- documents ---------------------------------------------------------------------------------


def ca_bundle(texts: Iterable[str], now: datetime) -> str:
    """Combine PEM bundles as the reference does: in order, without what has expired by `now`.

    Text around certificates and duplicates are dropped.

    Raises:
        BundleError: a text has no certificate, or an unreadable one.
    """
    certificates: dict[bytes, str] = {}
    for text in texts:
        for block, der, expires in _certificates(text):
            if expires is None or expires > now.timestamp():
                certificates.setdefault(der, block)
    return "".join(f"{block}\n" for block in certificates.values())


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
    expires = [str(certificate["notAfter"]) for certificate in context.get_ca_certs()]
    return block, der, float(ssl.cert_time_to_seconds(expires[0])) if expires else None


def kubeconfig(source: SchedulerCredentials, server: str) -> str:
    """The kubeconfig of schedulers; its paths are those inside their containers."""
    secret = f"{source.mounted}/secrets/{source.client_certificate}"
    bundle = f"{STATIC_POD_RESOURCES}/configmaps/{names.CA_BUNDLE}/{names.CA_BUNDLE_KEY}"
    cluster = {"server": server, "certificate-authority": bundle}
    user = {"client-certificate": f"{secret}/tls.crt", "client-key": f"{secret}/tls.key"}
    return kubeconfig_text("lb-int", cluster, names.OPERAND, user)


def client_certificate(platform: Platform, source: Mapping[str, Any]) -> dict[str, Any]:
    return {
        **new_object(SECRETS, source["metadata"]["name"], platform.target_namespace),
        "type": source.get("type") or "Opaque",
        "data": dict(source.get("data") or {}),
    }
