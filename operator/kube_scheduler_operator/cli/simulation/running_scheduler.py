"""What a scheduler of the cluster runs, from objects that no tenant can write.

A simulation starts the image and the command found here, in the namespace of the operator. They
come from the revisions in that namespace, or from the status of a SecondaryScheduler. A label
proves nothing: everyone who may write an object sets its labels.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from ...base import names
from ...base.objects import age, mapping
from ...base.platform import Platform
from ...config.language.feature_gates import FLAG_PREFIX
from ...kube.api import Api, Object
from ...kube.errors import KubeError, NotFound
from ...kube.resource import CONFIG_MAPS, SECONDARY_SCHEDULERS
from ...operator.secondary.content import config_map_name, content_of
from ..cluster.compare import ParsedRevision, parse_revision, profiles_of
from ..cluster.operator_objects import get_kubescheduler
from ..cluster.revisions import find_running_revision, list_revisions, nodes_by_revision
from ..cluster.scheduler_contents import parse_content, read_config_maps, running_hash
from ..console.errors import CommandError, error_message


@dataclass(frozen=True, slots=True)
class Operand:
    image: str
    command: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class RunningConfiguration:
    config: Mapping[str, Any] | None = None  # its KubeSchedulerConfiguration; None: not known
    flags: Sequence[str] = ()  # its flags that matter to a simulation
    operand: Operand | None = None  # its image and command; None: not known
    unknown: str = ""  # why its configuration is not known; empty: it is
    doubts: tuple[str, ...] = ()  # why observed values cannot be its configuration or operand


async def running_scheduler(
    api: Api, platform: Platform, scheduler_name: str | None
) -> RunningConfiguration:
    """Return what the scheduler runs that serves this name; the control plane's if none does."""
    own = await _of_control_plane(api, platform)
    if scheduler_name is None or scheduler_name in (profiles_of(own.config or {}) or {}):
        return own
    try:
        listed = (await api.list(SECONDARY_SCHEDULERS)).items
        for obj in sorted(listed, key=age):  # the older one keeps a name that two claim
            if scheduler_name in _served_names(obj):
                return await _of_secondary(api, platform, obj, own)
    except NotFound:  # the kind is not installed
        return own
    except KubeError as error:
        problem = f"SecondarySchedulers are left out: {error_message(error)}"
        return replace(own, doubts=(problem,))
    return own


def gate_flags(content: ParsedRevision) -> list[str]:
    """Return the flags that set feature gates."""
    return [flag for flag in content.arguments if flag.startswith(FLAG_PREFIX)]


async def _of_control_plane(api: Api, platform: Platform) -> RunningConfiguration:
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
    return RunningConfiguration(content.config, gate_flags(content), operand)


# --- SecondarySchedulers ------------------------------------------------------------------------


def _served_names(scheduler: Object) -> Iterator[str]:
    """Yield the schedulerNames that the operator reports for a SecondaryScheduler."""
    for profile in mapping(scheduler.get("status")).get("profiles") or ():
        yield str(mapping(profile).get("schedulerName") or "")


async def _of_secondary(
    api: Api, platform: Platform, scheduler: Object, own: RunningConfiguration
) -> RunningConfiguration:
    """Return what it runs; the operand is that of `own` if it cannot be verified."""
    name, content_hash = str(scheduler["metadata"]["name"]), running_hash(scheduler)
    config_map = (await read_config_maps(api, scheduler, [content_hash])).get(content_hash)
    if config_map is None:
        namespace = str(scheduler["spec"]["namespace"])
        ref = CONFIG_MAPS.named(config_map_name(name, content_hash), namespace)
        doubt = (
            f"the configuration of SecondaryScheduler {name} is not known: there is no {ref} with "
            "the owner and the content that its status names"
        )
        return replace(own, doubts=(doubt,))
    content = parse_content(content_of(config_map))
    if problem := _operand_problem(scheduler, content, platform):
        doubt = f"the image of SecondaryScheduler {name} is not started: {problem}"
        return RunningConfiguration(content.config, (), own.operand, doubts=(doubt,))
    return RunningConfiguration(content.config, (), _operand(content.image, _command(content)))


def _operand_problem(scheduler: Object, content: ParsedRevision, platform: Platform) -> str:
    """Return why this content does not show the image and command that run; empty: it does.

    The hash that the status has is short enough for a search for another content with it, so image
    and command have to agree with what administrators and the operator wrote as well.
    """
    spec, status = mapping(scheduler.get("spec")), mapping(scheduler.get("status"))
    if not content.image or content.image != status.get("image"):
        return (
            f'its content has the image "{content.image}", but status.image is '
            f'"{status.get("image") or ""}"'
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
