"""The copy of the ConfigMap that `spec.policy` of Scheduler names, on OpenShift.

kube-scheduler no longer reads a Policy, so the copy is not part of a revision. It exists because
OpenShift's tools and tests look for it.
"""

from __future__ import annotations

from typing import Any, Final

from ...base import names
from ...base.objects import mapping
from ...kube.resource import CONFIG_MAPS
from ..model.apply import apply
from ..model.plan import Action, Delete, Event
from ..model.snapshot import Snapshot
from .target_config_maps import config_map

_CONTENT: Final = ("data", "binaryData")


def mirror_policy(snapshot: Snapshot) -> tuple[Action, ...]:
    """Create or correct the copy; delete it if its source does not exist."""
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
    content: dict[str, Any] = {key: dict(mapping(source.get(key))) for key in _CONTENT}
    # The API server leaves empty fields out.
    fields = [key for key in _CONTENT if content[key] or (copy or {}).get(key)]
    desired = {**config_map(platform, names.POLICY, {}), **{key: content[key] for key in fields}}
    return apply(CONFIG_MAPS, snapshot.config_maps, desired, fields)
