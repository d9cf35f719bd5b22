"""Objects in the target namespace: the desired configuration, and what every revision needs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cache, lru_cache
from typing import Any, Final

import yaml

from ...base import assets, names
from ...base.bounded_cache import cached_by_identity
from ...base.objects import mapping
from ...base.platform import Platform
from ...base.recognition import Remembered
from ...base.templates import canonical_json
from ...config.effective.control_plane.compose import Composition
from ...config.effective.settings.requested_pod import NOTHING_REQUESTED, RequestedPod
from ...config.language.command_line import probe_target
from ...kube.resource import (
    CONFIG_MAPS,
    DISRUPTION_BUDGETS,
    NETWORK_POLICIES,
    SERVICE_ACCOUNTS,
)
from ..model.apply import apply, new_object
from ..model.plan import Action, Delete, Event
from ..model.snapshot import Snapshot
from .adoption.adopted import NOTHING, Adopted
from .adoption.pod_settings import apply_settings, merged_settings, parse_settings, settings_text
from .node_pods import render_static_pod, stub_kubeconfig


def target_data(
    platform: Platform,
    composition: Composition,
    image: str,
    force_redeployment_reason: str,
    adopted: Adopted = NOTHING,
    requested: RequestedPod = NOTHING_REQUESTED,
) -> dict[str, dict[str, str]]:
    """The data of the target ConfigMaps, by name; a revision is a copy of them.

    The composition must have a configuration; `adopted` is from the schedulers that predate the
    operator, and `requested` is what OperatorSettings has in its place. The operator's version is
    not part of the data: a new operator that renders the same bytes does not restart a scheduler.
    """
    assert composition.config is not None  # noqa: S101 - callers check `blocking`
    settings = settings_text(merged_settings(adopted.settings, requested))
    record = adopted.record
    return {
        names.CONFIG: {names.CONFIG_KEY: _config_text(composition.config)},
        names.POD: {
            names.POD_KEY: _pod_text(platform, image, composition.arguments, settings),
            **({names.ADOPTED_KEY: record} if record else {}),
            names.PREFLIGHT_KUBECONFIG_KEY: stub_kubeconfig(),
            names.FORCE_REDEPLOYMENT_KEY: force_redeployment_reason,
        },
    }


_POLICY_CONTENT: Final = ("data", "binaryData")

_config_text = cached_by_identity(4)(canonical_json)


# Cached, because rendering a template costs more than the rest of a reconcile.
@lru_cache(maxsize=8)
def _pod_text(platform: Platform, image: str, arguments: tuple[str, ...], settings: str) -> str:
    pod = render_static_pod(platform, image, arguments, probe_target(arguments, platform))
    return canonical_json(apply_settings(pod, parse_settings(settings)) if settings else pod)


def config_map(platform: Platform, name: str, data: Mapping[str, str]) -> dict[str, Any]:
    made = new_object(CONFIG_MAPS, name, platform.target_namespace)
    if name == names.CA_BUNDLE:
        made["metadata"]["annotations"] = {names.OWNING_COMPONENT_ANNOTATION: names.OPERAND}
    return {**made, "data": dict(data)}


def keep_record(snapshot: Snapshot) -> tuple[Action, ...]:
    """Record the platform, which then never changes by itself."""
    decided = snapshot.decision
    if decided is None or not decided.remember:
        return ()
    used = decided.used
    record = Remembered(used.platform.name, used.provider, used.reason)
    if not used.platform.owns_static_pods:
        record = replace(record, version=snapshot.server_version)
    desired = config_map(snapshot.platform, names.PLATFORM_RECORD, record.data())
    return apply(CONFIG_MAPS, snapshot.config_maps, desired, ("data",))


def mirror_policy(snapshot: Snapshot) -> tuple[Action, ...]:
    """Create, correct or delete the copy of the ConfigMap that `spec.policy` names, on OpenShift.

    kube-scheduler no longer reads a Policy, so the copy is not part of a revision. It exists
    because OpenShift's tools and tests look for it.
    """
    platform = snapshot.platform
    if not platform.config_namespace:
        return ()
    spec = mapping((snapshot.scheduler or {}).get("spec"))
    source = snapshot.user_config_maps.get(str(mapping(spec.get("policy")).get("name") or ""))
    copy = snapshot.config_maps.get(names.POLICY)
    if source is None:
        if copy is None:
            return ()
        text = f"Deleted ConfigMap/{names.POLICY} -n {platform.target_namespace}"
        return (Delete(CONFIG_MAPS, copy, (Event("ConfigMapDeleted", text),)),)
    content: dict[str, Any] = {key: dict(mapping(source.get(key))) for key in _POLICY_CONTENT}
    # The API server leaves empty fields out.
    fields = [key for key in _POLICY_CONTENT if content[key] or (copy or {}).get(key)]
    desired = {**config_map(platform, names.POLICY, {}), **{key: content[key] for key in fields}}
    return apply(CONFIG_MAPS, snapshot.config_maps, desired, fields)


def guard_disruption_budget(platform: Platform, nodes: int) -> dict[str, Any]:
    """The PodDisruptionBudget of guard pods: of `nodes` schedulers, one at a time may go."""
    name = f"{platform.static_pod_name}-{names.GUARD}-pdb"
    return {
        **new_object(DISRUPTION_BUDGETS, name, platform.target_namespace),
        "spec": {
            "minAvailable": nodes - 1,
            "selector": {"matchLabels": {"app": names.GUARD}},
            # A guard whose scheduler is down protects nothing, so it must not block a drain.
            "unhealthyPodEvictionPolicy": "AlwaysAllow",
        },
    }


def installer_service_account(
    platform: Platform, pull_secrets: Sequence[str] = ()
) -> dict[str, Any]:
    """The ServiceAccount of installer pods (bindata/static/installer-sa.yaml)."""
    document = _static("installer-sa.yaml")
    name = document["metadata"]["name"]
    account = {**document, **new_object(SERVICE_ACCOUNTS, name, platform.target_namespace)}
    if pull_secrets:
        account["imagePullSecrets"] = [{"name": name} for name in pull_secrets]
    return account


def network_policies(platform: Platform) -> Iterator[dict[str, Any]]:
    """The NetworkPolicies of the target namespace (bindata/static/networkpolicy-NAME.yaml)."""
    for name in platform.network_policies:
        made = new_object(NETWORK_POLICIES, name, platform.target_namespace)
        yield {**_static(f"networkpolicy-{name}.yaml"), **made}


@cache
def _static(name: str) -> Mapping[str, Any]:
    document: dict[str, Any] = yaml.safe_load(assets.text("bindata", f"static/{name}"))
    return document
