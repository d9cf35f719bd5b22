"""What the cluster keeps for its schedulers: parts of a revision, and what is copied beside it.

On platforms whose nodes bring the scheduler's kubeconfig there is nothing to do.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from ...base import names
from ...base.findings import Finding
from ...base.objects import Object
from ...base.platform import Credentials
from ...kube.resource import SECRETS
from ...model.apply import apply
from ...model.plan import Action
from ...model.snapshot import Snapshot
from ..cluster_credentials import BundleError, ca_bundle, client_certificate, kubeconfig

_PAIR = ("tls.crt", "tls.key")


@dataclass(slots=True)
class Gathered:
    """What was found.

    Attributes:
        parts: data of ConfigMaps that belong to a revision, by name.
        actions: writes that have to come before a revision is installed.
        findings: what is missing or wrong, and where.
    """

    parts: dict[str, Mapping[str, str]] = field(default_factory=dict)
    actions: list[Action] = field(default_factory=list)
    findings: list[Finding] = field(default_factory=list)


def gather(snapshot: Snapshot) -> Gathered:
    """Everything that schedulers need to get at the API and that is not on their nodes."""
    found = Gathered()
    kept = snapshot.platform.credentials
    if kept is not None:
        _trust(snapshot, kept, found)
        _find_the_api(snapshot, kept, found)
        _copy_the_certificate(snapshot, kept, found)
    return found


def has_serving_certificate(snapshot: Snapshot) -> bool:
    """Whether the cluster has made a certificate for schedulers to serve with."""
    kept = snapshot.platform.credentials
    return kept is not None and _is_pair(snapshot.secrets.get(kept.serving_certificate))


def _trust(snapshot: Snapshot, kept: Credentials, found: Gathered) -> None:
    """The CA bundle. A source that is missing is no mistake, but there must be one."""
    texts = []
    for name in kept.ca_bundles:
        source = snapshot.source_config_maps.get(name)
        text = ((source or {}).get("data") or {}).get(names.CA_BUNDLE_KEY)
        if text is None:
            continue
        try:
            ca_bundle([text], snapshot.now)
        except BundleError as error:
            path = f'configmap/{name} in "{kept.namespace}": data.{names.CA_BUNDLE_KEY}'
            found.findings.append(_finding("CABundleMalformed", path, f"is malformed: {error}"))
            return
        texts.append(text)
    bundle = ca_bundle(texts, snapshot.now)
    if bundle:
        found.parts[names.CA_BUNDLE] = {names.CA_BUNDLE_KEY: bundle}
        return
    path = ", ".join(f"configmap/{name}" for name in kept.ca_bundles) + f' in "{kept.namespace}"'
    message = "schedulers could trust nobody: there is no certificate that has not expired"
    found.findings.append(_finding("CABundleMissing", path, message))


def _find_the_api(snapshot: Snapshot, kept: Credentials, found: Gathered) -> None:
    if snapshot.infrastructure is None:
        path = f"Infrastructure/{names.CLUSTER}"
        message = "does not exist: its status.apiServerInternalURI is where schedulers find the API"
        found.findings.append(_finding("InfrastructureMissing", path, message))
        return
    status = snapshot.infrastructure.get("status") or {}
    server = str(status.get("apiServerInternalURI") or "")
    if server:  # the check of the configuration says what is wrong with an empty one
        found.parts[names.KUBECONFIG] = {names.KUBECONFIG_KEY: kubeconfig(kept, server)}


def _copy_the_certificate(snapshot: Snapshot, kept: Credentials, found: Gathered) -> None:
    """Keep the copy that installers give to new nodes as it is where it is renewed.

    If the source is gone, the copy stays: schedulers that run with it go on.
    """
    name = kept.client_certificate
    path = f'secret/{name} in "{kept.namespace}"'
    source, copy = snapshot.source_secrets.get(name), snapshot.secrets.get(name)
    if source is not None and _is_pair(source):
        wanted = client_certificate(snapshot.platform, source)
        found.actions.extend(apply(SECRETS, snapshot.secrets, wanted, ("data",)))
        return
    what = "does not exist" if source is None else f"has not both {' and '.join(_PAIR)}"
    if copy is None:
        message = f"{what}: schedulers cannot identify themselves without it"
    else:
        message = f'{what}; the copy in "{snapshot.platform.target_namespace}" stays in use'
    finding = _finding("ClientCertificateMissing", path, message, blocking=copy is None)
    found.findings.append(finding)


def _is_pair(secret: Object | None) -> bool:
    data = (secret or {}).get("data") or {}
    return all(data.get(key) for key in _PAIR)


def _finding(reason: str, path: str, message: str, *, blocking: bool = True) -> Finding:
    return Finding(names.TARGET_CONFIG_DEGRADED, reason, path, message, blocking)
