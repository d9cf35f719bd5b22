"""What a scheduler of the cluster runs, from objects that no tenant can write.

A simulation starts the image and the command found here, in the namespace of the operator. They
come from the revisions in that namespace, or from the status of a SecondaryScheduler. A label
proves nothing: everyone who may write an object sets its labels.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final

from ...base import names
from ...base.objects import age, mapping
from ...base.platform import Platform
from ...config.effective.attachment import is_ours
from ...config.language.feature_gates import FLAG_PREFIX
from ...config.language.schema import DEFAULT_SCHEDULER
from ...kube.api import Object
from ...kube.client import ApiClient
from ...kube.errors import KubeError, NotFound
from ...kube.resource import CONFIG_MAPS, KUBE_SCHEDULERS, LEASES, SECONDARY_SCHEDULERS, ObjectRef
from ...operator.secondary.content import config_map_name, content_of
from ...operator.secondary.status import LEASE_SHARED
from ...operator.status.conditions import condition_in
from ...operator.status.lease_reading import lease_problem
from ...operator.status.running import reported_image
from ...simulate.configuration import profiles_of
from ..cluster.compare import ParsedRevision, parse_revision
from ..cluster.operands import lease_of
from ..cluster.operator_objects import find_object, find_singleton, get_kubescheduler
from ..cluster.revisions import find_running_revision, list_revisions, nodes_by_revision
from ..cluster.scheduler_contents import parse_content, read_config_maps, running_hash
from ..console.errors import CommandError, error_message
from .refused_schedulers import refused_in_cluster

CONTROL_PLANE: Final = "the control plane's scheduler"


@dataclass(frozen=True, slots=True)
class Operand:
    image: str
    command: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class RunningConfiguration:
    title: str = CONTROL_PLANE  # for messages
    names: tuple[str, ...] = (DEFAULT_SCHEDULER,)  # the schedulerNames that only this one serves
    config: Mapping[str, Any] | None = None  # its KubeSchedulerConfiguration; None: not known
    origin: str = ""  # what the configuration is, for messages; empty: not known
    flags: Sequence[str] = ()  # its flags that matter to a simulation
    operand: Operand | None = None  # its image and command; None: not known
    unknown: str = ""  # why its configuration is not known; empty: it is
    doubts: tuple[str, ...] = ()  # why observed values cannot be its operand
    idle: str = ""  # why it schedules nothing now, or why that is not known; empty: it schedules


@dataclass(frozen=True, slots=True)
class RunningSchedulers:
    """The schedulers of a cluster; no schedulerName is that of two."""

    control_plane: RunningConfiguration = RunningConfiguration()
    secondary: tuple[RunningConfiguration, ...] = ()
    unread: str = ""  # why SecondarySchedulers cannot be read; empty: they can
    # by schedulerName, in words, the object that has it and is not in use
    refused: Mapping[str, str] = field(default_factory=dict)
    # the title of the one that the operator makes of Scheduler on a managed control plane
    made_of_scheduler: str = ""

    @property
    def all(self) -> tuple[RunningConfiguration, ...]:
        return (self.control_plane, *self.secondary)

    def of(self, scheduler_name: str | None) -> RunningConfiguration:
        """Return the one that serves this name; the control plane's if none does."""
        serving = (running for running in self.all if scheduler_name in running.names)
        return next(serving, self.control_plane)

    def instead(
        self, config: Mapping[str, Any], scheduler_name: str | None = None, origin: str = ""
    ) -> RunningSchedulers:
        """Return them with a configuration in the place of that of one of them.

        It is the one that serves `scheduler_name`; without it, the only one that serves the
        schedulerNames of the configuration, or else that of the control plane.
        """
        served = tuple(str(profile["schedulerName"]) for profile in profiles_of(config))
        replaced = self.of(scheduler_name)
        if scheduler_name is None:
            same = (running for running in self.secondary if {*served} <= {*running.names})
            replaced = next(same, replaced)
        made = replace(replaced, names=served, config=config, origin=origin, flags=(), unknown="")
        if replaced is self.control_plane:
            return replace(self, control_plane=made)
        others = (made if running is replaced else running for running in self.secondary)
        return replace(self, secondary=tuple(others))

    @property
    def idle(self) -> dict[str, str]:
        """Why pods of a schedulerName are not scheduled now, or why that is not known."""
        return {name: one.idle for one in self.all if one.idle for name in one.names}


async def running_schedulers(api: ApiClient, platform: Platform) -> RunningSchedulers:
    """Return what the schedulers run that the operator configures."""
    control_plane = await _of_control_plane(api, platform)
    if platform.owns_static_pods:
        idle = await _idle(api, lease_of(platform), CONTROL_PLANE)
        control_plane = replace(control_plane, idle=idle or await _held_by_another(api))
    try:
        listed = (await api.list(SECONDARY_SCHEDULERS)).items
        taken = set(control_plane.names)
        secondary = []
        for obj in sorted(listed, key=age):  # the older one keeps a name that two claim
            own = tuple(name for name in _served_names(obj) if name not in taken)
            taken.update(own)
            if own:
                running = await _of_secondary(api, platform, obj, own, control_plane.operand)
                secondary.append(running)
    except NotFound:  # the kind is not installed
        return RunningSchedulers(control_plane)
    except KubeError as error:
        problem = f"SecondarySchedulers are left out: {error_message(error)}"
        return RunningSchedulers(control_plane, unread=problem)
    refused = await refused_in_cluster(api, listed)
    made = next((title_of(obj) for obj in listed if is_ours(obj)), "")
    return RunningSchedulers(
        control_plane,
        tuple(secondary),
        refused=refused,
        made_of_scheduler="" if platform.owns_static_pods else made,
    )


def gate_flags(content: ParsedRevision) -> list[str]:
    """Return the flags that set feature gates."""
    return [flag for flag in content.arguments if flag.startswith(FLAG_PREFIX)]


async def _of_control_plane(api: ApiClient, platform: Platform) -> RunningConfiguration:
    if not platform.owns_static_pods:
        return RunningConfiguration(
            unknown=f"{CONTROL_PLANE} is the provider's, and its configuration is not known: it is "
            "simulated with its defaults"
        )
    try:
        nodes = nodes_by_revision(await get_kubescheduler(api))
        revision = find_running_revision(await list_revisions(api, platform), nodes)
    except (KubeError, CommandError) as error:
        return RunningConfiguration(
            unknown="the scheduler's configuration is not known, so it runs with its defaults: "
            f"{error}"
        )
    content = parse_revision(revision.content)
    operand = _operand(content.image, _command(content) or platform.operand_command)
    served = tuple(str(profile["schedulerName"]) for profile in profiles_of(content.config))
    flags, origin = gate_flags(content), f"the configuration of revision {revision.number}"
    return RunningConfiguration(CONTROL_PLANE, served, content.config, origin, flags, operand)


async def _idle(api: ApiClient, lease: ObjectRef, title: str) -> str:
    """Return why a scheduler schedules nothing now, or why that is not known; empty: it does."""
    try:
        observed = await find_object(api, lease)
    except KubeError as error:
        return f"whether {title} schedules is not known: {error_message(error)}"
    place = f"{lease.namespace}/{lease.name}"
    problem = lease_problem(observed, place, "scheduler", api.clock.now())
    return f"{title} schedules nothing now: {problem}" if problem else ""


async def _held_by_another(api: ApiClient) -> str:
    """Return why another scheduler may have the Lease of the control plane's; empty: none has."""
    kubescheduler = await find_singleton(api, KUBE_SCHEDULERS)
    holder = condition_in(mapping(mapping(kubescheduler).get("status")), names.UNKNOWN_LEASE_HOLDER)
    return _may_wait(CONTROL_PLANE, holder) if holder.get("status") == "True" else ""


def _may_wait(title: str, condition: Mapping[str, Any]) -> str:
    return f"whether {title} schedules is not known: {condition.get('message', '')}"


# --- SecondarySchedulers ------------------------------------------------------------------------


def title_of(scheduler: Mapping[str, Any]) -> str:
    """Return what messages call a SecondaryScheduler; files may have one without a name."""
    return f"{SECONDARY_SCHEDULERS.kind} {mapping(scheduler.get('metadata')).get('name')}"


def _served_names(scheduler: Object) -> Iterator[str]:
    """Yield the schedulerNames that the operator reports for a SecondaryScheduler."""
    for profile in mapping(scheduler.get("status")).get("profiles") or ():
        yield str(mapping(profile).get("schedulerName") or "")


async def _of_secondary(
    api: ApiClient,
    platform: Platform,
    scheduler: Object,
    served: tuple[str, ...],
    instead: Operand | None,
) -> RunningConfiguration:
    """Return what it runs for the names that it serves.

    The operand is that of the control plane, `instead`, if its own cannot be verified.
    """
    name, content_hash = str(scheduler["metadata"]["name"]), running_hash(scheduler)
    namespace = str(scheduler["spec"]["namespace"])
    title = title_of(scheduler)
    degraded = condition_in(mapping(scheduler.get("status")), names.DEGRADED)
    shared = degraded.get("status") == "True" and degraded.get("reason") == LEASE_SHARED
    idle = await _idle(api, LEASES.named(name, namespace), title)
    idle = idle or (_may_wait(title, degraded) if shared else "")
    running = RunningConfiguration(title, served, operand=instead, idle=idle)
    config_map = (await read_config_maps(api, scheduler, [content_hash])).get(content_hash)
    if config_map is None:
        ref = CONFIG_MAPS.named(config_map_name(name, content_hash), namespace)
        unknown = (
            f"the configuration of {title} is not known: there is no {ref} with the owner and the "
            "content that its status names"
        )
        return replace(running, unknown=unknown)
    content = parse_content(content_of(config_map))
    profiles = [own for own in profiles_of(content.config) if own["schedulerName"] in served]
    if not profiles:
        unknown = f"the configuration that {title} runs has no profile {served[0]}"
        return replace(running, unknown=unknown)
    served = tuple(str(profile["schedulerName"]) for profile in profiles)
    running = replace(
        running,
        names=served,
        config={**content.config, "profiles": profiles},
        origin=str(CONFIG_MAPS.named(config_map_name(name, content_hash), namespace)),
    )
    if problem := _operand_problem(scheduler, content, platform):
        return replace(running, doubts=(f"the image of {title} is not started: {problem}",))
    return replace(running, operand=_operand(content.image, _command(content)))


def _operand_problem(scheduler: Object, content: ParsedRevision, platform: Platform) -> str:
    """Return why this content does not show the image and command that run; empty: it does.

    The hash that the status has is short enough for a search for another content with it, so image
    and command have to agree with what administrators and the operator wrote as well.
    """
    spec = mapping(scheduler.get("spec"))
    reported = reported_image(scheduler, running_hash(scheduler))
    if not content.image or content.image != reported:
        return (
            f'its content has the image "{content.image}", but its status has "{reported}" for it'
        )
    command = tuple(map(str, spec.get("command") or ()))
    allowed = (command,) if command else ((names.OPERAND,), platform.operand_command)
    if _command(content) not in allowed:
        return (
            f'its content has the command "{" ".join(_command(content))}", but spec.command is '
            f'"{" ".join(allowed[0])}"'
        )
    return ""


def _operand(image: str, command: Sequence[str]) -> Operand | None:
    return Operand(image, tuple(command)) if image else None


def _command(content: ParsedRevision) -> tuple[str, ...]:
    containers = mapping(content.pod.get("spec")).get("containers") or ()
    operand: Mapping[str, Any] = next((c for c in containers if c.get("name") == names.OPERAND), {})
    return tuple(map(str, operand.get("command") or ()))
