"""Reads the operator's objects from the API."""

from __future__ import annotations

from ...base import names
from ...base.platform import Platform
from ...kube.api import Api, Object
from ...kube.errors import NotFound
from ...kube.resource import CONFIG_MAPS, KUBE_SCHEDULERS, ObjectRef, Resource
from ..console.errors import CommandError


async def find_object(api: Api, ref: ObjectRef) -> Object | None:
    try:
        return await api.get(ref)
    except NotFound:
        return None


async def find_singleton(api: Api, resource: Resource) -> Object | None:
    """Return the object "cluster" of a kind; None if it does not exist."""
    return await find_object(api, ObjectRef(resource, None, names.CLUSTER))


async def get_kubescheduler(api: Api) -> Object:
    """Return KubeScheduler "cluster".

    Raises:
        CommandError: it does not exist.
    """
    kubescheduler = await find_singleton(api, KUBE_SCHEDULERS)
    if kubescheduler is None:
        raise CommandError(
            f'KubeScheduler "{names.CLUSTER}" does not exist: is the operator installed in this '
            "cluster?"
        )
    return kubescheduler


async def list_by_name(api: Api, resource: Resource) -> dict[str, Object] | None:
    """Return the objects of a kind by name; None if the kind is not installed."""
    try:
        listed = await api.list(resource)
    except NotFound:
        return None
    return {obj["metadata"]["name"]: obj for obj in listed.items}


async def list_config_maps(api: Api, platform: Platform) -> dict[str, Object]:
    """Return the operator's own ConfigMaps in the target namespace, by name."""
    selector = f"{names.MANAGED_BY_LABEL}={names.PROGRAM}"
    listed = await api.list(CONFIG_MAPS, platform.target_namespace, label_selector=selector)
    return {obj["metadata"]["name"]: obj for obj in listed.items}
