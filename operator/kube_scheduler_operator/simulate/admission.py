"""What the API server makes of a new pod: defaults, admission, and why it refuses one.

In the order of its own plugins (pkg/kubeapiserver/options/plugins.go in Kubernetes): LimitRanges,
priority, default tolerations, RuntimeClass. `quotas.py` counts how many pods quotas admit; webhooks
are not known. Messages are those of the API server.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from ..base.objects import mapping
from ..base.priorities import BUILT_IN_PRIORITIES
from ..base.quantities import amounts
from ..config.language.versions import Version
from ..kube.resource import Resource
from .api_defaults import complete_pod
from .cluster_version import cluster_version
from .kinds import PRIORITY_CLASSES, RUNTIME_CLASSES, Object
from .limit_ranges import set_defaults, violations
from .resource_rules import default_pod_requests, invalid_resources
from .runtime_classes import class_selector, runtime_class
from .world import World

_DEFAULT_SECONDS: Final = 300
_NOT_READY: Final = ("node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable")
_PREEMPT: Final = "PreemptLowerPriority"
_POD_REQUESTS_COME_LAST: Final = Version(1, 37)
"""The version from which the API server completes the requests of a pod after LimitRanges."""


@dataclass(slots=True)
class Admission:
    """What became of a new pod."""

    refused: list[str] = field(default_factory=list)  # why the API server refuses it
    unknown: list[str] = field(default_factory=list)  # what could not be applied to it


def admit(pod: Object, world: World) -> Admission:
    """Complete a pod in place, as the API server does when it is created."""
    spec, admission = pod["spec"], Admission()
    version = cluster_version(world).version
    completes_before = version is not None and version < _POD_REQUESTS_COME_LAST
    complete_pod(spec)
    if completes_before:
        default_pod_requests(spec)
    set_defaults(spec, world, pod["metadata"]["namespace"])
    _prioritize(spec, world, admission)
    _tolerate_failing_nodes(spec)
    _apply_runtime_class(spec, world, admission)
    if not completes_before:
        default_pod_requests(spec)
    admission.refused += invalid_resources(spec)
    admission.refused += violations(spec, world, pod["metadata"]["namespace"])
    return admission


def admit_group(group: Object, world: World) -> Admission:
    """Set the priority of a new PodGroup in place, with which its pods have to agree."""
    admission = Admission()
    _prioritize(group.setdefault("spec", {}), world, admission)
    return admission


def _not_found(world: World, kind: Resource, name: str, message: str) -> Admission:
    """Return that an object does not exist, or, if the world has none of its kind, may not."""
    if world.objects[kind]:
        return Admission(refused=[message])
    return Admission(unknown=[f'{kind.kind} "{name}" is not known, so it changes nothing'])


# --- priority -------------------------------------------------------------------------------------


def _prioritize(spec: Object, world: World, admission: Admission) -> None:
    name = str(spec.get("priorityClassName") or "")
    chosen = world.get(PRIORITY_CLASSES, name) if name else _default_priority(world)
    priority, policy = 0, None if name else _PREEMPT
    if chosen is not None:
        spec["priorityClassName"] = chosen["metadata"]["name"]
        priority = int(chosen.get("value") or 0)
        policy = chosen.get("preemptionPolicy") or _PREEMPT
    elif name in BUILT_IN_PRIORITIES:
        priority, policy = BUILT_IN_PRIORITIES[name], _PREEMPT
    elif name:
        message = f"no PriorityClass with name {name} was found"
        missing = _not_found(world, PRIORITY_CLASSES, name, message)
        admission.refused += missing.refused
        admission.unknown += missing.unknown
        priority = int(spec.get("priority") or 0)
    own = spec.get("priority")
    if own is not None and own != priority:
        admission.refused.append(
            f"the integer value of priority ({own}) must not be provided in pod spec; priority "
            f"admission controller computed {priority} from the given PriorityClass name"
        )
    wanted = spec.get("preemptionPolicy")
    if wanted is not None and policy is not None and wanted != policy:
        admission.refused.append(
            f"the string value of PreemptionPolicy ({wanted}) must not be provided in pod spec; "
            f"priority admission controller computed {policy} from the given PriorityClass name"
        )
    spec["priority"] = priority
    if policy is not None:
        spec["preemptionPolicy"] = policy


def _default_priority(world: World) -> Object | None:
    """Return the default PriorityClass; of several, the API server takes the lowest."""
    classes = (item for item in world.all(PRIORITY_CLASSES) if item.get("globalDefault"))
    return min(classes, key=lambda item: int(item.get("value") or 0), default=None)


# --- tolerations ----------------------------------------------------------------------------------


def _tolerate_failing_nodes(spec: Object) -> None:
    tolerations = list(spec.get("tolerations") or ())
    for key in _NOT_READY:
        if not any(_tolerates_no_execute(toleration, key) for toleration in tolerations):
            tolerations.append(
                {
                    "key": key,
                    "operator": "Exists",
                    "effect": "NoExecute",
                    "tolerationSeconds": _DEFAULT_SECONDS,
                }
            )
    spec["tolerations"] = tolerations


def _tolerates_no_execute(toleration: Mapping[str, Any], key: str) -> bool:
    return toleration.get("key") in (None, "", key) and toleration.get("effect") in (
        None, "", "NoExecute",
    )  # fmt: skip


# --- RuntimeClass ---------------------------------------------------------------------------------


def _apply_runtime_class(spec: Object, world: World, admission: Admission) -> None:
    name, runtime = spec.get("runtimeClassName"), runtime_class(spec, world)
    if name and runtime is None:
        message = f'pod rejected: RuntimeClass "{name}" not found'
        missing = _not_found(world, RUNTIME_CLASSES, str(name), message)
        admission.refused += missing.refused
        admission.unknown += missing.unknown
        return
    admission.refused += _set_overhead(spec, runtime)
    if runtime is None:
        return
    selector = dict(mapping(spec.get("nodeSelector")))
    for key, value in class_selector(runtime).items():
        if selector.setdefault(key, value) != value:
            admission.refused.append(
                f"conflict: runtimeClass.scheduling.nodeSelector[{key}] = {value}; "
                f"pod.spec.nodeSelector[{key}] = {selector[key]}"
            )
    if selector:
        spec["nodeSelector"] = selector
    for toleration in mapping(runtime.get("scheduling")).get("tolerations") or ():
        if toleration not in spec["tolerations"]:
            spec["tolerations"].append(toleration)


def _set_overhead(spec: Object, runtime: Mapping[str, Any] | None) -> Iterator[str]:
    fixed = mapping(mapping(mapping(runtime).get("overhead")).get("podFixed"))
    own = mapping(spec.get("overhead"))
    if own and not fixed:
        yield "pod rejected: Pod Overhead set without corresponding RuntimeClass defined Overhead"
    elif own and amounts(own) != amounts(fixed):
        yield "pod rejected: Pod's Overhead doesn't match RuntimeClass's defined Overhead"
    if fixed:
        spec["overhead"] = dict(fixed)
