"""The kinds, namespaces and selectors that the operator watches."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from ...base import names
from ...base.platform import AUTHENTICATION_NAMESPACE, Platform
from ...config.effective.profiles import aks_support
from ...kube import resource as kinds
from ...kube.resource import Stream, WatchSpec

AGENT_KINDS: Final = (kinds.CONFIG_MAPS, kinds.DAEMON_SETS, kinds.PODS)
"""Kinds of the objects that serve a SchedulerExtender."""

SECONDARY_KINDS: Final = (
    kinds.CLUSTER_ROLE_BINDINGS,
    kinds.CONFIG_MAPS,
    kinds.DEPLOYMENTS,
    kinds.DISRUPTION_BUDGETS,
    kinds.PODS,
    kinds.ROLES,
    kinds.ROLE_BINDINGS,
    kinds.SERVICES,
    kinds.SERVICE_ACCOUNTS,
)
"""Kinds of the objects that serve a SecondaryScheduler."""

LOAD_KINDS: Final = (kinds.CONFIG_MAPS, kinds.DAEMON_SETS, kinds.DEPLOYMENTS, kinds.JOBS)
"""Kinds of the objects that serve a LoadPolicy."""

_MANAGED: Final = f"{names.MANAGED_BY_LABEL}={names.PROGRAM}"


def watches(platform: Platform, secondary: Sequence[str] | None = None) -> tuple[WatchSpec, ...]:
    """List all watches of the operator, which needs no other rights to list or watch.

    `secondary` has the namespaces that may run secondary schedulers; None: the target namespace.
    """
    namespaces = platform.secondary_namespaces(secondary)
    target = platform.target_namespace
    specs: dict[Stream, WatchSpec] = {}
    for spec in (
        *_shared_watches(target),
        *_platform_watches(platform, namespaces),
        *_secondary_watches(namespaces),
        *_load_watches(target),
    ):
        # Of a stream, the first selection has what the others need.
        specs.setdefault(spec.stream, spec)
    return tuple(specs.values())


def _shared_watches(target: str) -> Iterator[WatchSpec]:
    yield WatchSpec(kinds.SCHEDULERS)
    yield WatchSpec(kinds.KUBE_SCHEDULERS)
    yield WatchSpec(kinds.SCHEDULER_PROFILES, optional=True)
    yield WatchSpec(kinds.SCHEDULER_EXTENDERS, optional=True)
    yield WatchSpec(kinds.OPERATOR_SETTINGS, optional=True)
    yield WatchSpec(
        kinds.CLUSTER_OPERATORS, field_selector=f"metadata.name={names.CLUSTEROPERATOR}"
    )
    yield WatchSpec(kinds.CONFIG_MAPS, target, label_selector=_MANAGED)


def _platform_watches(platform: Platform, namespaces: Sequence[str]) -> Iterator[WatchSpec]:
    target, own = platform.target_namespace, platform.operator_namespace
    if platform.owns_static_pods:
        yield from _static_pod_watches(platform, namespaces)
    else:
        aks = f"metadata.name={aks_support.NAME}"
        yield WatchSpec(kinds.AKS_SCHEDULER_CONFIGURATIONS, field_selector=aks, optional=True)
    if platform.client_certificates and AUTHENTICATION_NAMESPACE not in namespaces:
        client_ca = f"metadata.name={names.CLIENT_CA}"
        yield WatchSpec(kinds.CONFIG_MAPS, AUTHENTICATION_NAMESPACE, field_selector=client_ca)
    if platform.operator.config and own not in namespaces:
        config = f"metadata.name={platform.operator.config}"
        yield WatchSpec(kinds.CONFIG_MAPS, own, field_selector=config)
    if platform.network_policies:
        # Without a selector: earlier releases applied them with other labels.
        yield WatchSpec(kinds.NETWORK_POLICIES, target)
    if platform.cluster_config:
        yield WatchSpec(kinds.API_SERVERS)
        yield WatchSpec(kinds.FEATURE_GATES)
        yield WatchSpec(kinds.INFRASTRUCTURES)
    if platform.config_namespace:
        yield WatchSpec(kinds.CONFIG_MAPS, platform.config_namespace)
    if (credentials := platform.credentials) is not None:
        certificate = f"metadata.name={credentials.client_certificate}"
        yield WatchSpec(kinds.SECRETS, target)
        yield WatchSpec(kinds.CONFIG_MAPS, credentials.namespace)
        yield WatchSpec(kinds.SECRETS, credentials.namespace, field_selector=certificate)


def _static_pod_watches(platform: Platform, namespaces: Sequence[str]) -> Iterator[WatchSpec]:
    target = platform.target_namespace
    # A large cluster has thousands of other nodes.
    first, *others = platform.node_selectors
    yield WatchSpec(kinds.NODES, label_selector=first, or_label_selectors=tuple(others))
    for resource in (kinds.SERVICE_ACCOUNTS, kinds.DISRUPTION_BUDGETS, kinds.DAEMON_SETS):
        yield WatchSpec(resource, target, label_selector=_MANAGED)
    pods = _pods_in_target(platform, secondaries=target in namespaces)
    yield WatchSpec(kinds.PODS, target, label_selector=pods)
    operand = ",".join(f"{key}={value}" for key, value in platform.static_pod_labels)
    if platform.operand_namespace != target:
        if platform.operand_namespace in namespaces:
            operand = f"component in ({names.OPERAND},{names.SECONDARY})"
        yield WatchSpec(kinds.PODS, platform.operand_namespace, label_selector=operand)
    lease = f"metadata.name={platform.operand_lease_name}"
    if platform.operand_lease_namespace not in namespaces:
        yield WatchSpec(kinds.LEASES, platform.operand_lease_namespace, field_selector=lease)


def _secondary_watches(namespaces: Sequence[str]) -> Iterator[WatchSpec]:
    """Watch SecondarySchedulers and the objects that serve them."""
    if not namespaces:
        return
    yield WatchSpec(kinds.SECONDARY_SCHEDULERS)
    yield WatchSpec(kinds.CLUSTER_ROLE_BINDINGS, label_selector=_MANAGED)
    for namespace in dict.fromkeys((*namespaces, AUTHENTICATION_NAMESPACE)):
        yield WatchSpec(kinds.ROLE_BINDINGS, namespace, label_selector=_MANAGED)
    for namespace in namespaces:
        for resource in (
            kinds.DEPLOYMENTS,
            kinds.SERVICES,
            kinds.ROLES,
            kinds.CONFIG_MAPS,
            kinds.SERVICE_ACCOUNTS,
            kinds.DISRUPTION_BUDGETS,
        ):
            yield WatchSpec(resource, namespace, label_selector=_MANAGED)
        yield WatchSpec(kinds.PODS, namespace, label_selector=f"app={names.SECONDARY}")
        # Schedulers create their Leases themselves, without labels.
        yield WatchSpec(kinds.LEASES, namespace)


def _load_watches(target: str) -> Iterator[WatchSpec]:
    """Watch LoadPolicies, their Secrets and the objects that serve them."""
    yield WatchSpec(kinds.LOAD_POLICIES, optional=True)
    yield WatchSpec(kinds.SECRETS, target, label_selector=names.TOKEN_FOR_LABEL)
    for resource in LOAD_KINDS:
        yield WatchSpec(resource, target, label_selector=_MANAGED)


def _pods_in_target(platform: Platform, *, secondaries: bool) -> str:
    """Select all of the operator's Pods in the target namespace, including schedulers.

    The label `app` distinguishes schedulers on every platform that runs them in that namespace.
    """
    apps = [names.INSTALLER, names.GUARD, names.EXTENDER]
    if platform.adopts_pods:
        apps.append(names.CONFIG_READER)
    if secondaries:
        apps.append(names.SECONDARY)
    if platform.operand_namespace == platform.target_namespace:
        apps.append(dict(platform.static_pod_labels)["app"])
    return f"app in ({','.join(apps)})"
