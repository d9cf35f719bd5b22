"""The objects of one SchedulerExtender's agents on control-plane nodes."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import Any, Final

from ...base import names
from ...base.objects import Object, annotation, is_being_deleted
from ...base.platform import Platform
from ...base.templates import canonical_json, render_file
from ...config.effective.extenders.agent import (
    CONFIG_KEY,
    ManagedAgent,
    agent_file,
    container,
    volumes,
)
from ...config.effective.extenders.entry import agent_url
from ...kube.resource import CONFIG_MAPS, DAEMON_SETS, Resource
from ..model.apply import keep
from ..model.plan import Action, Delete, Event
from ..model.workloads import digest, keep_workload

Existing = Mapping[Resource, Mapping[str, Object]]
"""The objects of one SchedulerExtender: kind -> name -> object."""

ACCOUNT: Final = "scheduler-extender"
BINDING_ACCOUNT: Final = "scheduler-extender-binder"
"""For agents that bind pods; deploy/ has both ServiceAccounts and their rights."""

USER: Final = 65532


def keep_agent(
    platform: Platform,
    agent: ManagedAgent,
    image: str,
    pull_secrets: tuple[str, ...],
    existing: Existing,
) -> tuple[Action, ...]:
    """Create or correct an agent's objects; it reads a new configuration without a restart."""
    key = canonical_json([agent.name, agent.spec, agent.port])
    config_map, daemon_set, spec_hash = _rendered(platform, key, image, pull_secrets)
    return (
        *keep(CONFIG_MAPS, existing.get(CONFIG_MAPS, {}), config_map, ("data",)),
        *keep_workload(
            DAEMON_SETS,
            existing.get(DAEMON_SETS, {}).get(agent.object_name),
            daemon_set,
            spec_hash,
            what=f"agents of SchedulerExtender {agent.name} on port {agent.port}",
            why="the SchedulerExtender or the operator's image changed",
        ),
    )


def remove_agent(name: str, existing: Existing) -> Iterator[Action]:
    """Delete the objects of an agent that no scheduler calls any more."""
    for resource in (DAEMON_SETS, CONFIG_MAPS):
        for _, obj in sorted(existing.get(resource, {}).items()):
            if not is_being_deleted(obj):
                where = f"{resource.kind}/{obj['metadata']['name']}"
                message = f"Deleted {where}: no scheduler calls SchedulerExtender {name} any more"
                yield Delete(resource, obj, (Event(f"{resource.kind}Deleted", message),))


def known_url(name: str, existing: Existing) -> str:
    """Return the URL of the existing agents; empty if their objects do not have it."""
    for daemon_set in existing.get(DAEMON_SETS, {}).values():
        port = annotation(daemon_set, names.EXTENDER_PORT_ANNOTATION)
        if port.isdecimal():
            return agent_url(name, int(port))
    return ""


# Rendering a template costs more than the rest of a reconcile.
@lru_cache(maxsize=64)
def _rendered(
    platform: Platform, key: str, image: str, pull_secrets: tuple[str, ...]
) -> tuple[dict[str, Any], dict[str, Any], str]:
    """Return (ConfigMap, DaemonSet, hash of its spec); cached, so callers must not change them."""
    agent = ManagedAgent(*json.loads(key))
    config_map, daemon_set = render_file(
        "extender.yaml.j2",
        platform=platform,
        agent=agent,
        names=names,
        labels={
            "app": names.EXTENDER,
            names.EXTENDER_LABEL: agent.name,
            **names.OWN_LABELS,
        },
        annotations=dict(platform.static_pod_annotations),
        account=BINDING_ACCOUNT if agent.binds else ACCOUNT,
        config_key=CONFIG_KEY,
        config=agent_file(agent),
        container=container(agent, image),
        volumes=volumes(agent, agent.object_name, CONFIG_KEY),
        pull_secrets=[{"name": name} for name in pull_secrets],
        user=USER,
    )
    return config_map, daemon_set, digest(canonical_json(daemon_set["spec"]))
