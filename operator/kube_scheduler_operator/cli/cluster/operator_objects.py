"""Reads the operator's objects from the API."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from ...base import names
from ...base.platform import Platform
from ...base.settings import Settings
from ...kube import resource as kinds
from ...kube.api import Api, Object
from ...kube.errors import NotFound
from ...kube.resource import ObjectRef, Resource
from ...operator.model.snapshot import Snapshot
from ..console.errors import CommandError

if TYPE_CHECKING:
    from ...kube.client import ApiClient


async def find_object(api: Api, ref: ObjectRef) -> Object | None:
    try:
        return await api.get(ref)
    except NotFound:
        return None


async def find_singleton(api: Api, resource: Resource) -> Object | None:
    """Return the object "cluster" of a kind; None if it does not exist."""
    return await find_object(api, resource.named(names.CLUSTER))


async def get_kubescheduler(api: Api) -> Object:
    """Return KubeScheduler "cluster".

    Raises:
        CommandError: it does not exist.
    """
    kubescheduler = await find_singleton(api, kinds.KUBE_SCHEDULERS)
    if kubescheduler is None:
        raise CommandError(
            f'KubeScheduler "{names.CLUSTER}" does not exist: is the operator installed in this '
            "cluster?"
        )
    return kubescheduler


async def list_names(api: ApiClient, resource: Resource, namespace: str | None = None) -> list[str]:
    """Return the names of the objects of a kind; none if the kind is not installed."""
    try:
        listed = await api.list(resource, namespace, keep=_name)
    except NotFound:
        return []
    return [obj["name"] for obj in listed.items]


def _name(obj: Object) -> Object:
    return {"name": obj["metadata"]["name"]}


async def list_by_name(api: Api, resource: Resource) -> dict[str, Object] | None:
    """Return the objects of a kind by name; None if the kind is not installed."""
    try:
        listed = await api.list(resource)
    except NotFound:
        return None
    return {obj["metadata"]["name"]: obj for obj in listed.items}


async def read_snapshot(api: Api, platform: Platform) -> Snapshot:
    """Read what users have set, and the operator's ConfigMaps, as the operator sees them.

    Kinds that are not installed, and objects that do not exist, are None.
    """
    snapshot = Snapshot(
        now=datetime.now(UTC),
        platform=platform,
        settings=Settings(),
        config_maps=await list_config_maps(api, platform),
        scheduler=await find_singleton(api, kinds.SCHEDULERS),
        kubescheduler=await find_singleton(api, kinds.KUBE_SCHEDULERS),
        scheduler_profiles=await list_by_name(api, kinds.SCHEDULER_PROFILES),
        scheduler_extenders=await list_by_name(api, kinds.SCHEDULER_EXTENDERS),
        operator_settings=await list_by_name(api, kinds.OPERATOR_SETTINGS),
    )
    if platform.cluster_config:
        snapshot = replace(
            snapshot,
            apiserver=await find_singleton(api, kinds.API_SERVERS),
            feature_gate=await find_singleton(api, kinds.FEATURE_GATES),
            infrastructure=await find_singleton(api, kinds.INFRASTRUCTURES),
        )
    if platform.credentials is not None:
        # A flag depends on whether it exists.
        name = platform.credentials.serving_certificate
        secret = await find_object(api, kinds.SECRETS.named(name, platform.target_namespace))
        snapshot = replace(snapshot, secrets={name: secret} if secret is not None else {})
    return snapshot


async def list_config_maps(api: Api, platform: Platform) -> dict[str, Object]:
    """Return the operator's own ConfigMaps in the target namespace, by name."""
    selector = f"{names.MANAGED_BY_LABEL}={names.PROGRAM}"
    listed = await api.list(kinds.CONFIG_MAPS, platform.target_namespace, label_selector=selector)
    return {obj["metadata"]["name"]: obj for obj in listed.items}
