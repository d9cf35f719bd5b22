"""What is made for the agents of one SchedulerExtender on the control-plane nodes."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import Any, Final

from ..base import names
from ..base.objects import Object, annotation
from ..base.platform import Platform
from ..kube.resource import CONFIG_MAPS, DAEMON_SETS, Resource
from ..manifests.pods import canonical_json, render_file
from ..model.apply import keep
from ..model.plan import Action, Delete, Event
from ..model.workloads import digest, keep_workload
from .agent import CONFIG_KEY, Agent, agent_file, container, volumes
from .entry import agent_url

Existing = Mapping[Resource, Mapping[str, Object]]
"""What was made for one SchedulerExtender: kind -> name -> object."""

ACCOUNT: Final = "scheduler-extender"
BINDING_ACCOUNT: Final = "scheduler-extender-binder"
"""Of agents that bind pods; deploy/ has both accounts and their rights."""

USER: Final = 65532


def keep_agent(
    platform: Platform,
    agent: Agent,
    image: str,
    pull_secrets: tuple[str, ...],
    existing: Existing,
) -> tuple[Action, ...]:
    """Make or correct what runs an agent; its configuration reaches it without a restart."""
    config_map, daemon_set, spec_hash = _made(
        platform, canonical_json(_plain(agent)), image, pull_secrets
    )
    found = existing.get(DAEMON_SETS, {}).get(agent.object_name)
    return (
        *keep(CONFIG_MAPS, existing.get(CONFIG_MAPS, {}), config_map, ("data",)),
        *keep_workload(
            DAEMON_SETS,
            found,
            daemon_set,
            spec_hash,
            what=f"agents of SchedulerExtender {agent.name} on port {agent.port}",
            why="the SchedulerExtender or the operator's image changed",
        ),
    )


def remove_agent(name: str, existing: Existing) -> Iterator[Action]:
    """Delete what was made for agents that nobody calls any more."""
    for resource in (DAEMON_SETS, CONFIG_MAPS):
        for _, obj in sorted(existing.get(resource, {}).items()):
            if "deletionTimestamp" not in obj["metadata"]:
                where = f"{resource.kind}/{obj['metadata']['name']}"
                message = f"Deleted {where}: no scheduler calls SchedulerExtender {name} any more"
                yield Delete(resource, obj, (Event(f"{resource.kind}Deleted", message),))


def known_url(name: str, existing: Existing) -> str:
    """Where schedulers call the agents that exist; empty if nothing says so."""
    for daemon_set in existing.get(DAEMON_SETS, {}).values():
        port = annotation(daemon_set, names.EXTENDER_PORT_ANNOTATION)
        if port.isdecimal():
            return agent_url(name, int(port))
    return ""


def _plain(agent: Agent) -> list[Any]:
    return [agent.name, agent.spec, agent.port]


# A template costs more than everything else in a pass.
@lru_cache(maxsize=64)
def _made(
    platform: Platform, key: str, image: str, pull_secrets: tuple[str, ...]
) -> tuple[dict[str, Any], dict[str, Any], str]:
    """(ConfigMap, DaemonSet, hash over its spec); the same each time, so nobody may change them."""
    agent = Agent(*json.loads(key))
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
