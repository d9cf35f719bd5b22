from __future__ import annotations

from collections.abc import Container, Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from types import MappingProxyType
from typing import Any

from ...base import names
from ...base.objects import NamespacedName, Object, label
from ...base.platform import AUTHENTICATION_NAMESPACE, Platform
from ...base.settings import Settings
from ...kube import resource as kinds
from ...kube.resource import Resource
from ...kube.store import Fields, Store, StoreView
from ..model.operand_pods import foreign_by_node, of_manifest, schedulers_by_node
from ..model.snapshot import Loads, Secondaries, Snapshot
from .node_clocks import translated
from .watches import AGENT_KINDS, LOAD_KINDS, SECONDARY_KINDS


def take_snapshot(
    store: Store,
    platform: Platform,
    settings: Settings,
    now: datetime,
    *,
    missing_kinds: Container[Resource] = (),
    leases_seen: Mapping[NamespacedName, datetime] = MappingProxyType({}),
    clocks: Mapping[str, timedelta] = MappingProxyType({}),
) -> Snapshot:
    """Take one immutable view of the cluster for a reconcile; the process adds what it knows.

    A kind that cannot be read becomes None, such as one that the API server does not serve; a kind
    without objects is empty.
    `leases_seen` has when renewals of Leases were last observed; `clocks` maps nodes to what to add
    to the times that their kubelets write.
    """
    view = _ByOneClock(store.view(), clocks, now) if clocks else store.view()
    target = platform.target_namespace
    source = platform.credentials.namespace if platform.credentials else ""
    users = platform.config_namespace
    nodes = _by_name(filter(platform.is_control_plane, view.list(kinds.NODES)))
    pods = _operand_pods(view, platform, nodes)
    lease = (platform.operand_lease_namespace, platform.operand_lease_name)

    def served(resource: Resource) -> dict[str, Object] | None:
        return None if resource in missing_kinds else _by_name(view.list(resource))

    return Snapshot(
        now=now,
        platform=platform,
        settings=settings,
        scheduler=view.get(kinds.SCHEDULERS, names.CLUSTER),
        kubescheduler=view.get(kinds.KUBE_SCHEDULERS, names.CLUSTER),
        cluster_operator=view.get(kinds.CLUSTER_OPERATORS, names.CLUSTEROPERATOR),
        scheduler_profiles=served(kinds.SCHEDULER_PROFILES),
        scheduler_extenders=served(kinds.SCHEDULER_EXTENDERS),
        operator_settings=served(kinds.OPERATOR_SETTINGS),
        aks_configurations=None
        if platform.owns_static_pods
        else served(kinds.AKS_SCHEDULER_CONFIGURATIONS),
        config_maps=_by_name(_control_plane_objects(view.list(kinds.CONFIG_MAPS, target))),
        secrets=_by_name(view.list(kinds.SECRETS, target)),
        source_config_maps=_by_name(view.list(kinds.CONFIG_MAPS, source)),
        source_secrets=_by_name(view.list(kinds.SECRETS, source)),
        user_config_maps=_by_name(view.list(kinds.CONFIG_MAPS, users) if users else ()),
        apiserver=view.get(kinds.API_SERVERS, names.CLUSTER),
        feature_gate=view.get(kinds.FEATURE_GATES, names.CLUSTER),
        infrastructure=view.get(kinds.INFRASTRUCTURES, names.CLUSTER),
        service_accounts=_by_name(
            _control_plane_objects(view.list(kinds.SERVICE_ACCOUNTS, target))
        ),
        nodes=nodes,
        operand_pods={node: of_manifest(pod) for node, pod in pods.items()},
        foreign_metadata=foreign_by_node(pods),
        installer_pods=_labelled(view.list(kinds.PODS, target), names.INSTALLER),
        guard_pods=_labelled(view.list(kinds.PODS, target), names.GUARD),
        config_reader_pods=_labelled(view.list(kinds.PODS, target), names.CONFIG_READER),
        disruption_budgets=_by_name(
            _control_plane_objects(view.list(kinds.DISRUPTION_BUDGETS, target))
        ),
        network_policies=_by_name(view.list(kinds.NETWORK_POLICIES, target)),
        operand_lease=view.get(kinds.LEASES, lease[1], lease[0]),
        lease_seen=leases_seen.get(lease),
        secondaries=_secondaries(view, leases_seen),
        agents=_agents(view, target),
        loads=_loads(view, target, served(kinds.LOAD_POLICIES)),
    )


def _operand_pods(view: StoreView, platform: Platform, nodes: Container[str]) -> dict[str, Object]:
    """The schedulers of control-plane nodes; a manifest on another node is not the cluster's."""
    if not platform.owns_static_pods:
        return {}
    labels = dict(platform.static_pod_labels)
    pods = view.list(kinds.PODS, platform.operand_namespace, labels=labels)
    return {node: pod for node, pod in schedulers_by_node(pods, platform) if node in nodes}


class _ByOneClock(StoreView):
    """A view with the times of kubelets by the operator's clock."""

    __slots__ = ("_clocks", "_now", "_view")

    def __init__(self, view: StoreView, clocks: Mapping[str, timedelta], now: datetime) -> None:
        self._view, self._clocks, self._now = view, clocks, now

    def get(self, resource: Resource, name: str, namespace: str | None = None) -> Fields | None:
        return self._view.get(resource, name, namespace)

    def list(
        self,
        resource: Resource,
        namespace: str | None = None,
        labels: Mapping[str, str] | None = None,
    ) -> tuple[Fields, ...]:
        objects = self._view.list(resource, namespace, labels)
        if resource not in (kinds.NODES, kinds.PODS):
            return objects
        return translated(resource, objects, self._clocks, self._now)


def _loads(view: StoreView, target: str, policies: dict[str, Object] | None) -> Loads:
    objects = {
        resource: _by_name(
            obj for obj in view.list(resource, target) if names.LOAD_LABEL in _labels(obj)
        )
        for resource in LOAD_KINDS
    }
    return Loads(
        policies,
        objects,
        _by_name(
            obj for obj in view.list(kinds.SECRETS, target) if names.TOKEN_FOR_LABEL in _labels(obj)
        ),
    )


def _agents(view: StoreView, target: str) -> dict[str, dict[Resource, dict[str, Object]]]:
    objects: dict[str, dict[Resource, dict[str, Object]]] = {}
    for resource in AGENT_KINDS:
        for obj in view.list(resource, target):
            owner = label(obj, names.EXTENDER_LABEL)
            if owner:
                by_name = objects.setdefault(owner, {}).setdefault(resource, {})
                by_name[obj["metadata"]["name"]] = obj
    return objects


def _secondaries(view: StoreView, leases_seen: Mapping[NamespacedName, datetime]) -> Secondaries:
    schedulers = _by_name(view.list(kinds.SECONDARY_SCHEDULERS))
    objects: dict[str, dict[Resource, dict[str, Object]]] = {name: {} for name in schedulers}
    for resource in SECONDARY_KINDS if schedulers else ():
        for obj in view.list(resource):
            owner = label(obj, names.SECONDARY_LABEL)
            if owner not in schedulers:
                continue
            spec = schedulers[owner].get("spec") or {}
            # An object in another namespace belongs to a deleted scheduler of the same name.
            namespaces = (spec.get("namespace"), AUTHENTICATION_NAMESPACE, None)
            if obj["metadata"].get("namespace") in namespaces:
                objects[owner].setdefault(resource, {})[obj["metadata"]["name"]] = obj
    leases = {
        (obj["metadata"]["namespace"], obj["metadata"]["name"]): obj
        for obj in view.list(kinds.LEASES)
    }
    return Secondaries(schedulers, objects, leases, dict(leases_seen))


def _control_plane_objects(objects: Sequence[Object]) -> Iterator[Object]:
    """Leave out the objects of secondary schedulers, extenders and load policies."""
    others = {names.SECONDARY_LABEL, names.EXTENDER_LABEL, names.LOAD_LABEL}
    return (obj for obj in objects if others.isdisjoint(_labels(obj)))


def _labels(obj: Object) -> Mapping[str, str]:
    labels: Mapping[str, str] = obj["metadata"].get("labels") or {}
    return labels


def _by_name(objects: Any) -> dict[str, Object]:
    return {obj["metadata"]["name"]: obj for obj in objects}


def _labelled(pods: Any, app: str) -> dict[str, Object]:
    return _by_name(pod for pod in pods if label(pod, "app") == app)
