"""`convert --to second`: the Pod of the old scheduler as fields of a SecondaryScheduler."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from ...base.findings import Path, format_path, listing
from ...base.images import EVERY_IMAGE, SETTING, repository
from ...base.objects import entries, mapping
from ...config.effective.secondary.compose import ELECTION, RESERVED
from ...config.effective.secondary.confinement import confinement_problems
from ...config.language.command_line import LOG_LEVEL, LOG_LEVELS
from ...config.language.feature_gates import FLAG as FEATURE_GATES
from ...config.language.feature_gates import parse_gates
from ...config.language.flags import VOID_WITH_CONFIG, validate_flags
from ...config.language.validation.configuration import Target
from ...config.language.warnings.unsafe_flags import unsafe_flags
from ...config.lint.forms.document_fields import at, group_kind, label_of, namespace_of, text
from ...config.lint.forms.form import CommandLine
from ...config.lint.forms.products import OPENSHIFT_PROGRAM, OPENSHIFT_SEVERAL
from ...config.lint.forms.workload import is_stock, scheduler_container
from ...config.migrate.changes import ConversionLog
from ...config.migrate.convert import POLICY_FLAGS
from ...config.migrate.operator_objects import ConvertedObjects
from ...kube.resource import SECONDARY_SCHEDULERS
from .change_over import SCALED
from .plugin_rights import plugin_rights

_MOST_REPLICAS: Final = 20
_KEPT: Final = ("nodeSelector", "tolerations", "priorityClassName", "imagePullSecrets")
"""Fields of a Pod that a SecondaryScheduler has as well."""
_OPENSHIFT: Final = ("operator.openshift.io", "SecondaryScheduler")
_PLACED: Final = ("spec", "topology", "highlyAvailableTopology")
_HYPERKUBE: Final = "hyperkube"
_LATER: Final = "set spec.extraArguments of the SecondaryScheduler"


@dataclass(frozen=True, slots=True)
class SchedulerWorkload:
    """The object whose Pod ran the scheduler."""

    command: CommandLine
    value: Mapping[str, Any]  # the object; empty without a Pod, if only the image is known
    pod: Mapping[str, Any]  # the spec of its Pod
    path: Path  # of that spec in the object
    index: int  # of the scheduler's container

    @property
    def container(self) -> Mapping[str, Any]:
        containers = entries(self.pod.get("containers"))
        return mapping(containers[self.index]) if self.index < len(containers) else {}

    def field(self, *path: str | int) -> str:
        """Name a field of its Pod, for messages."""
        return f"{format_path((*self.path, *path))} of {self.command.label}"


def workload_of(command: CommandLine, documents: Sequence[Any]) -> SchedulerWorkload:
    """Find the object that a command line comes from."""
    where = command.image_at
    if "containers" in where:
        for document in map(mapping, documents):
            if (label_of(document), namespace_of(document)) == (command.label, command.namespace):
                pod = mapping(at(document, *where[:-3]))
                return SchedulerWorkload(command, document, pod, where[:-3], int(where[-2]))
    for document in map(mapping, documents):
        if group_kind(document) == _OPENSHIFT and label_of(document) == command.label:
            return _of_openshift(command, document)
    return SchedulerWorkload(command, {}, {}, (), 0)


def _of_openshift(command: CommandLine, document: Mapping[str, Any]) -> SchedulerWorkload:
    """Return the Pod that secondary-scheduler-operator makes, as far as it differs from ours."""
    topology = mapping(at(document, "spec", "topology"))
    several = topology.get("mode") == OPENSHIFT_SEVERAL
    placed = mapping(topology.get("highlyAvailableTopology")) if several else {}
    container = {"name": "secondary-scheduler", "command": [OPENSHIFT_PROGRAM]}
    return SchedulerWorkload(command, document, {**placed, "containers": [container]}, _PLACED, 0)


def with_pod(
    converted: ConvertedObjects,
    workload: SchedulerWorkload,
    documents: Sequence[Any],
    target: Target,
    agents: Collection[str],
    *,
    own_image: bool,
) -> ConvertedObjects:
    """Add what the old Pod had to the SecondaryScheduler among the objects.

    `agents` are the containers that SchedulerExtenders replace. `own_image` states that the image
    is needed, if it is not Kubernetes' own; its plugins then keep their rights.
    """
    log = ConversionLog()
    settings = {
        **(_image(workload, log) if own_image else {}),
        **_replicas(workload, log),
        **_flags(workload, target, log),
        **_pod_fields(workload, log),
        **_sidecars(workload, agents, log),
    }
    objects = [
        {**obj, "spec": {**obj["spec"], **settings}}
        if obj["kind"] == SECONDARY_SCHEDULERS.kind
        else obj
        for obj in converted.objects
    ]
    if "image" in settings:
        second = next(obj for obj in objects if obj["kind"] == SECONDARY_SCHEDULERS.kind)
        objects += plugin_rights(workload.command, documents, second, log)
    changes = dict.fromkeys((*converted.changes, *log.changes()))
    return replace(converted, objects=tuple(objects), changes=tuple(changes))


def _replicas(workload: SchedulerWorkload, log: ConversionLog) -> dict[str, Any]:
    is_openshifts = group_kind(workload.value) == _OPENSHIFT
    if workload.value.get("kind") not in SCALED and not is_openshifts:
        return {}
    old = workload.command.replicas
    replicas = min(max(old, 1), _MOST_REPLICAS)
    if replicas != old:
        why = f"a SecondaryScheduler has 1 to {_MOST_REPLICAS}; delete the object to stop it"
        log.differs((), f"spec.replicas of {workload.command.label} changed to {replicas}", why)
    return {"replicas": replicas}


def _image(workload: SchedulerWorkload, log: ConversionLog) -> dict[str, Any]:
    image = workload.command.image
    if not image:
        return {}
    if is_stock(image) or repository(image).endswith(_HYPERKUBE):
        why = (
            "the SecondaryScheduler runs the version of the control plane's scheduler and follows "
            "its upgrades; set spec.image to run another one"
        )
        log.differs((), f"image {image} of {workload.command.label} removed", why)
        return {}
    log.differs(
        (),
        f"image {image} of {workload.command.label} kept in spec.image",
        f"the operator runs it only if it is allowed; add it to {SETTING}",
    )
    return {"image": image, **_program(workload, log)}


def _program(workload: SchedulerWorkload, log: ConversionLog) -> dict[str, Any]:
    container = scheduler_container(workload.container, ())
    if container is None or not workload.container.get("command"):
        return {}
    if container.in_shell:
        why = "a SecondaryScheduler starts the program itself; set spec.command if it is not found"
        log.lost((), f"{workload.field('containers', workload.index, 'command')} removed", why)
        return {}
    return {"command": [container.words[0][0]]}


# --- flags ---------------------------------------------------------------------------------------


def _flags(workload: SchedulerWorkload, target: Target, log: ConversionLog) -> dict[str, Any]:
    command = workload.command
    for name in sorted(command.unknown):
        why = f"only the cluster has its value; {_LATER}"
        log.lost((), f"--{name} of {command.label} removed", why)
    flags = {name: values[-1] for name, values in command.flags.items()}
    settings = _log_level(flags.get(LOG_LEVEL, ""), command, log)
    try:
        gates = parse_gates(command.flags.get(FEATURE_GATES, ()))
    except ValueError as error:
        log.lost((), f"--{FEATURE_GATES} of {command.label} removed", str(error))
        gates = {}
    if gates:
        settings["featureGates"] = gates
    read = {
        command.config_flag,
        LOG_LEVEL,
        FEATURE_GATES,
        *(POLICY_FLAGS if not command.config else ()),
    }
    extra = {}
    for name, value in flags.items():
        if name in read:
            continue
        if reason := _replaced_by(name):
            log.same((), f"--{name} of {command.label} removed", reason)
        elif problem := _problem(name, value, target):
            log.lost((), f"--{name} of {command.label} removed", problem)
        else:
            extra[name] = value
    return {**settings, **({"extraArguments": extra} if extra else {})}


def _replaced_by(name: str) -> str:
    """Return why a flag of the old scheduler has no effect on the new one; empty if it has."""
    if name.startswith(ELECTION):
        return "the SecondaryScheduler has a Lease of its own"
    if name in VOID_WITH_CONFIG:
        return "kube-scheduler ignores it beside --config"
    return RESERVED.get(name, "")


def _problem(name: str, value: str, target: Target) -> str:
    """Return why the operator or kube-scheduler would reject a flag; empty if neither does."""
    flags = {name: [value]}
    version = target.gates.version
    problems = (*unsafe_flags(flags), *validate_flags(flags, version, stock=target.stock))
    return problems[0].message if problems else ""


def _log_level(value: str, command: CommandLine, log: ConversionLog) -> dict[str, Any]:
    """Convert a verbosity to the next level that has at least its messages."""
    if not (value.isascii() and value.isdigit()) or int(value) <= LOG_LEVELS["Normal"]:
        return {}
    level = next((key for key, v in LOG_LEVELS.items() if v >= int(value)), "TraceAll")
    if LOG_LEVELS[level] != int(value):
        why = f"spec.logLevel has {listing(LOG_LEVELS)}"
        what = f"--{LOG_LEVEL}={value} of {command.label} changed to {LOG_LEVELS[level]}"
        log.same((), what, why)
    return {"logLevel": level}


# --- the Pod -------------------------------------------------------------------------------------


def _pod_fields(workload: SchedulerWorkload, log: ConversionLog) -> dict[str, Any]:
    pod = workload.pod
    fields: dict[str, Any] = {name: pod[name] for name in _KEPT if pod.get(name)}
    resources = mapping(workload.container.get("resources"))
    if kept := {name: resources[name] for name in ("requests", "limits") if resources.get(name)}:
        fields["resources"] = kept
    affinity = mapping(pod.get("affinity"))
    if nodes := affinity.get("nodeAffinity"):
        fields["affinity"] = {"nodeAffinity": nodes}
    for name in ("podAffinity", "podAntiAffinity"):
        if affinity.get(name):
            _report_spread(workload.field("affinity", name), log)
    if pod.get("topologySpreadConstraints"):
        _report_spread(workload.field("topologySpreadConstraints"), log)
    if pod.get("imagePullSecrets"):
        what = f"{workload.field('imagePullSecrets')} kept"
        log.differs((), what, "the Secrets must be in spec.namespace of the SecondaryScheduler")
    if pod.get("hostNetwork"):
        why = "the Pods of a SecondaryScheduler are on the Pod network"
        log.differs((), f"{workload.field('hostNetwork')} removed", why)
    return fields


def _report_spread(field: str, log: ConversionLog) -> None:
    why = (
        "it selects Pods by labels that the new ones do not have; by default they are spread over "
        "nodes and zones"
    )
    log.differs((), f"{field} removed", why)


def _sidecars(
    workload: SchedulerWorkload, agents: Collection[str], log: ConversionLog
) -> dict[str, Any]:
    """Convert the other containers, as far as a SecondaryScheduler supports them."""
    kept: list[Mapping[str, Any]] = []
    volumes: dict[str, Mapping[str, Any]] = {}
    for index, container in enumerate(map(mapping, entries(workload.pod.get("containers")))):
        if index == workload.index or container.get("name") in agents:
            continue
        mounted = {text(volume.get("name")): volume for volume in _mounted(workload.pod, container)}
        label = f'container "{text(container.get("name"))}" of {workload.command.label}'
        problem = next(confinement_problems([container], [*mounted.values()], EVERY_IMAGE), None)
        if problem is not None:
            refusal = f"{format_path(problem.path[2:])}: {problem.message}"
            why = f"a sidecar of a SecondaryScheduler does not allow it: {refusal}"
            log.lost((), f"{label} removed", f"{why}; run it as a workload of its own")
            continue
        kept.append(container)
        volumes |= mounted
        why = (
            "it has no privileges and no token there, and its image must be allowed; add it to "
            f"{SETTING}"
        )
        log.differs((), f"{label} kept in spec.sidecars", why)
    if not kept:
        return {}
    return {"sidecars": kept, **({"volumes": [*volumes.values()]} if volumes else {})}


def _mounted(pod: Mapping[str, Any], container: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    names = {
        text(mount.get("name")) for mount in map(mapping, entries(container.get("volumeMounts")))
    }
    for volume in map(mapping, entries(pod.get("volumes"))):
        if text(volume.get("name")) in names:
            yield volume
