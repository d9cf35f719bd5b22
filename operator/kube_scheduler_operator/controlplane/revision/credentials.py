"""Credentials that the cluster keeps for its schedulers: parts of a revision, and copied Secrets.

On platforms whose nodes have the scheduler's kubeconfig there is nothing to do.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from ...base import names
from ...base.findings import Finding
from ...base.objects import Object
from ...base.platform import SchedulerCredentials
from ...kube.resource import SECRETS
from ...model.apply import apply
from ...model.plan import Action
from ...model.snapshot import Snapshot
from ..cluster_credentials import BundleError, ca_bundle, client_certificate, kubeconfig

_PAIR = ("tls.crt", "tls.key")


@dataclass(frozen=True, slots=True)
class GatheredCredentials:
    """Credentials for schedulers."""

    # data of ConfigMaps that belong to a revision, by name
    parts: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    actions: tuple[Action, ...] = ()  # writes to perform before a revision is installed
    findings: tuple[Finding, ...] = ()  # what is missing or malformed, and where


def gather_credentials(snapshot: Snapshot) -> GatheredCredentials:
    """Everything that schedulers need to reach the API and that is not on their nodes."""
    source = snapshot.platform.credentials
    if source is None:
        return GatheredCredentials()
    found = (
        _ca_bundle(snapshot, source),
        _kubeconfig(snapshot, source),
        _client_certificate(snapshot, source),
    )
    return GatheredCredentials(
        parts={name: data for one in found for name, data in one.parts.items()},
        actions=tuple(action for one in found for action in one.actions),
        findings=tuple(finding for one in found for finding in one.findings),
    )


def has_serving_certificate(snapshot: Snapshot) -> bool:
    """Whether the cluster has issued a serving certificate for schedulers."""
    source = snapshot.platform.credentials
    return source is not None and _is_pair(snapshot.secrets.get(source.serving_certificate))


def _ca_bundle(snapshot: Snapshot, source: SchedulerCredentials) -> GatheredCredentials:
    """The CA bundle. A missing source is not an error, but there must be one."""
    texts = []
    for name in source.ca_bundles:
        found = snapshot.source_config_maps.get(name)
        text = ((found or {}).get("data") or {}).get(names.CA_BUNDLE_KEY)
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


def _kubeconfig(snapshot: Snapshot, source: SchedulerCredentials) -> GatheredCredentials:
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


def _client_certificate(snapshot: Snapshot, source: SchedulerCredentials) -> GatheredCredentials:
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
