"""Where the agents of SchedulerExtenders can be queried: only in Pods that the operator made.

Agents of the control plane's scheduler are Pods of the DaemonSet extender-NAME in the operator's
target namespace, where no tenant writes; the others are containers in Pods of SecondarySchedulers.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Final

from ...base import names
from ...base.json_text import parse_json
from ...base.objects import Object, is_controlled_by, label, mapping
from ...base.platform import Platform
from ...config.effective.attachment import CONTROL_PLANE, scheduler_of
from ...kube.api import Api
from ...kube.errors import KubeError, NotFound
from ...kube.resource import DAEMON_SETS, PODS, SCHEDULER_EXTENDERS, SECONDARY_SCHEDULERS
from ...operator.secondary.content import content_of
from ...operator.secondary.history import read as read_history
from ...operator.status.running import hashes_that_run
from ...simulate.kinds import pod_name
from ..cluster.operator_objects import list_by_name
from ..cluster.scheduler_contents import desired_hash, list_scheduler_pods, read_config_maps
from ..console.errors import CommandError, error_message

_CONTAINER: Final = "extender-"
"""The beginning of the names of DaemonSets and containers of agents."""


@dataclass(frozen=True, slots=True)
class AgentEndpoint:
    extender: str
    namespace: str
    pod: str
    node: str
    port: int

    def __str__(self) -> str:
        return f"{self.extender} in pod {self.namespace}/{self.pod} on {self.node}"


@dataclass(slots=True)
class LocatedAgents:
    agents: list[AgentEndpoint] = field(default_factory=list)
    # Pods that look like those of agents, and what could not be read
    notes: list[str] = field(default_factory=list)

    @contextmanager
    def readable(self, what: str) -> Iterator[None]:
        """Note that agents cannot be read: others are still queried."""
        try:
            yield
        except KubeError as error:
            self.notes.append(f"{what} are left out: {error_message(error)}")


async def find_agents(api: Api, platform: Platform) -> LocatedAgents:
    """Find all running agents.

    Raises:
        CommandError: no agent runs; the message has the reason.
        KubeError: the SchedulerExtenders cannot be read.
    """
    try:
        extenders = (await api.list(SCHEDULER_EXTENDERS)).items
    except NotFound as error:
        raise CommandError(
            "the kind SchedulerExtender is not installed: install its CRD, or query an extender "
            "with --url"
        ) from error
    if not any(mapping(obj.get("spec")).get("agent") for obj in extenders):
        raise CommandError(
            "no SchedulerExtender has an agent (spec.agent), so there are no decisions to "
            "show; the scheduler's own reasons are in the Pod's events: kubectl describe pod"
        )
    located = LocatedAgents()
    ports = _ports(extenders)
    with located.readable("agents of the control plane's scheduler"):
        located.agents += await _of_control_plane(api, platform, ports)
    with located.readable("agents of SecondarySchedulers"):
        schedulers = await list_by_name(api, SECONDARY_SCHEDULERS) or {}
        for name in sorted(_attached_to(extenders) & schedulers.keys()):
            with located.readable(f"agents of SecondaryScheduler {name}"):
                await _add_secondary(api, schedulers[name], ports, located)
    if not located.agents:
        reason = "no agent is running; see its condition Available: kubectl get schedulerextenders"
        raise CommandError("; ".join((reason, *located.notes)))
    return located


def _ports(extenders: Iterable[Object]) -> dict[str, int]:
    """Map SchedulerExtenders to the port of their agents, which the operator has chosen."""
    ports = {
        str(obj["metadata"]["name"]): mapping(mapping(obj.get("status")).get("agent")).get("port")
        for obj in extenders
    }
    return {name: int(port) for name, port in ports.items() if port}


def _attached_to(extenders: Iterable[Object]) -> set[str]:
    """Return the SecondarySchedulers whose Pods have agents."""
    specs = (
        mapping(spec)
        for obj in extenders
        for spec in (obj.get("spec"), mapping(obj.get("status")).get("accepted"))
    )
    return {scheduler_of(spec) for spec in specs if spec.get("agent")} - {CONTROL_PLANE}


async def _of_control_plane(
    api: Api, platform: Platform, ports: Mapping[str, int]
) -> list[AgentEndpoint]:
    selector, target = f"app={names.EXTENDER}", platform.target_namespace
    daemon_sets = (await api.list(DAEMON_SETS, target, label_selector=selector)).items
    pods = (await api.list(PODS, target, label_selector=selector)).items
    return list(agents_of_daemon_sets(ports, daemon_sets, pods))


def agents_of_daemon_sets(
    ports: Mapping[str, int], daemon_sets: Sequence[Object], pods: Iterable[Object]
) -> Iterator[AgentEndpoint]:
    """Find the agents of the control plane's scheduler among objects of the target namespace.

    DaemonSets have no owner, because the scheduler stops calling agents before they are deleted.
    """
    uids = {str(obj["metadata"]["name"]): str(obj["metadata"]["uid"]) for obj in daemon_sets}
    for pod in pods:
        for name, port in ports.items():
            uid = uids.get(f"{_CONTAINER}{name}", "")
            if is_controlled_by(pod, uid) and _runs(pod, name):
                yield _endpoint(pod, name, port)


async def _add_secondary(
    api: Api, scheduler: Object, ports: Mapping[str, int], located: LocatedAgents
) -> None:
    """Add the agents in the Pods of a SecondaryScheduler."""
    pods = await list_scheduler_pods(api, scheduler)
    hashes = {desired_hash(scheduler), *hashes_that_run(scheduler)}
    hashes |= {entry.hash for entry in read_history(scheduler)}
    config_maps = await read_config_maps(api, scheduler, hashes - {""})
    containers = {key: _containers(config_map) for key, config_map in config_maps.items()}
    for pod in pods:
        made_of = containers.get(label(pod, names.CONFIG_HASH_LABEL), {})
        for name, port in ports.items():
            if not _runs(pod, name):
                continue
            if _program(_container(pod["spec"], name)) == made_of.get(f"{_CONTAINER}{name}"):
                located.agents.append(_endpoint(pod, name, port))
            else:
                located.notes.append(
                    f"the agent {name} in pod {pod_name(pod)} is left out: its image, command or "
                    "arguments are not those of the configuration that the SecondaryScheduler's "
                    "status names"
                )


def _containers(config_map: Object) -> dict[str, Any]:
    """Return the programs of the containers of a content, by name."""
    spec = parse_json(content_of(config_map).data.get(names.POD_KEY, "{}"))
    containers = mapping(spec).get("containers") or ()
    return {str(container["name"]): _program(container) for container in containers}


def _program(container: Mapping[str, Any]) -> tuple[Any, ...]:
    return tuple(container.get(key) for key in ("image", "command", "args"))


def _container(spec: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    containers = spec.get("containers") or ()
    return next((c for c in containers if c["name"] == f"{_CONTAINER}{name}"), {})


def _runs(pod: Object, name: str) -> bool:
    running = mapping(pod.get("status")).get("phase") == "Running"
    return running and bool(_container(pod["spec"], name))


def _endpoint(pod: Object, name: str, port: int) -> AgentEndpoint:
    metadata, node = pod["metadata"], str(pod["spec"].get("nodeName") or "")
    return AgentEndpoint(name, str(metadata["namespace"]), str(metadata["name"]), node, port)
