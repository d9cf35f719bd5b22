"""Schedulers besides those that the operator configures, as their Pods and workloads show them.

Volcano, Koordinator, YuniKorn, a kube-scheduler of a user's own: what they decide is not
simulated, but a Pod that names one of them waits for it, and not for a scheduler that is missing.
Anybody may create such objects, so they are named in every answer that rests on them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

from ..base.foreign_text import foreign
from ..base.images import repository
from ..base.limits import FOREIGN_MESSAGE, FOREIGN_NAME
from ..base.objects import entries, mapping

MOST: Final = 1000
"""Schedulers, and groups of Pods, that are kept of a cluster."""
VOLCANO: Final = "scheduling.volcano.sh"
GROUP_ANNOTATIONS: Final = ("scheduling.k8s.io/group-name", f"{VOLCANO}/group-name")
"""Where Volcano's controller names the PodGroup of a Pod."""

_WORD: Final = "scheduler"
_NONE: Final = "descheduler"
"""It evicts Pods, and places none."""
_FLAG: Final = "--scheduler-name="
_SUFFIX: Final = "-scheduler"
_NAMING: Final = ("app", "component", "app.kubernetes.io/name", "app.kubernetes.io/component")
_TEMPLATES: Final = ("Deployment", "StatefulSet", "DaemonSet")
_NOT_NAMES: Final = frozenset({"", "kube-scheduler", "kube", "scheduler", "default-scheduler"})
"""What a kube-scheduler of the control plane is called; none is a schedulerName of another one."""
_OF_IMAGE: Final[Mapping[str, tuple[str, ...]]] = {
    "vc-scheduler": ("volcano",),
    "scheduler-plugins/kube-scheduler": ("scheduler-plugins-scheduler",),
    "kai-scheduler/scheduler": ("kai-scheduler",),
    "yunikorn": ("yunikorn",),
}
"""The end of an image's name -> the schedulerNames that its product serves by default."""


@dataclass(frozen=True, slots=True)
class FoundScheduler:
    """A Pod or a workload that runs a scheduler."""

    title: str  # for messages: Deployment volcano-system/volcano-scheduler
    image: str  # for messages
    names: frozenset[str]  # the schedulerNames that it serves, as far as is known
    is_ready: bool  # False only if a status shows it
    log: str  # the command that shows its log
    config_maps: tuple[tuple[str, str], ...] = ()  # (namespace, name) of those that it mounts

    @property
    def problem(self) -> str:
        """Why its decisions are not known, and where they are."""
        ready = "" if self.is_ready else ", and none of its Pods is ready"
        return (
            f"it is another scheduler (image {self.image}){ready}; its log has what it decides "
            f"({self.log})"
        )


def found_scheduler(obj: Mapping[str, Any]) -> FoundScheduler | None:
    """Recognize a Pod or a workload that runs a scheduler; None for any other object."""
    kind, spec = str(obj.get("kind")), mapping(obj.get("spec"))
    status = mapping(obj.get("status"))
    if kind == "Pod":
        is_ready = status.get("phase", "Running") == "Running"
    elif kind in _TEMPLATES:
        spec = mapping(mapping(spec.get("template")).get("spec"))
        is_ready = not status or bool(status.get("readyReplicas") or status.get("numberReady"))
    else:
        return None
    running = [item for item in map(mapping, entries(spec.get("containers"))) if _runs_one(item)]
    if not running:
        return None
    metadata = mapping(obj.get("metadata"))
    namespace = str(metadata.get("namespace") or "default")
    name = str(metadata.get("name") or "")
    reference = name if kind == "Pod" else f"{kind.lower()}/{name}"
    volumes = (mapping(volume) for volume in entries(spec.get("volumes")))
    maps = (str(mapping(volume.get("configMap")).get("name") or "") for volume in volumes)
    return FoundScheduler(
        foreign(f"{kind} {namespace}/{name}", FOREIGN_NAME),
        foreign(str(running[0].get("image") or ""), FOREIGN_NAME),
        frozenset(_names(metadata, running)) - _NOT_NAMES,
        is_ready,
        foreign(f"kubectl -n {namespace} logs {reference}", FOREIGN_NAME),
        tuple((namespace, config_map) for config_map in maps if config_map)[:MOST],
    )


def _runs_one(container: Mapping[str, Any]) -> bool:
    # Most containers have none of these words, and a world has tens of thousands of them.
    command, args = container.get("command"), container.get("args")
    named = [container.get("image"), container.get("name")]
    if command or args:
        named += entries(command)
    for text in map(str, named):
        if _WORD in text and _NONE not in text:
            return True
    return bool(command or args) and any(_flags(container))


def _flags(container: Mapping[str, Any]) -> Iterator[str]:
    for field in ("command", "args"):
        for word in entries(container.get(field)):
            if isinstance(word, str) and word.startswith(_FLAG):
                yield word.removeprefix(_FLAG)


def _names(metadata: Mapping[str, Any], running: Iterable[Mapping[str, Any]]) -> Iterator[str]:
    """Yield the schedulerNames of its flags, its product, and those that it is named after."""
    labels = mapping(metadata.get("labels"))
    own = [str(metadata.get("name") or ""), *(str(labels.get(key) or "") for key in _NAMING)]
    for container in running:
        yield from _flags(container)
        image = repository(str(container.get("image") or ""))
        for end, names in _OF_IMAGE.items():
            if image.endswith(end):
                yield from names
        own += [image.rpartition("/")[2], str(container.get("name") or "")]
    for name in own:
        yield name
        yield name.removesuffix(_SUFFIX)


def merged(
    schedulers: Iterable[FoundScheduler], served: Mapping[tuple[str, str], Iterable[str]]
) -> list[FoundScheduler]:
    """Return those that serve a schedulerName, workloads before Pods; each name has one.

    `served` has the schedulerNames of configurations in ConfigMaps, by (namespace, name).
    """
    taken: set[str] = set()
    chosen = []
    order = sorted(schedulers, key=lambda one: (one.title.startswith("Pod "), not one.is_ready))
    for scheduler in order:
        configured = {
            name for config_map in scheduler.config_maps for name in served.get(config_map, ())
        }
        scheduler = replace(scheduler, names=scheduler.names | configured - _NOT_NAMES)
        if scheduler.names - taken:
            chosen.append(scheduler)
            taken |= scheduler.names
    return chosen


# --- groups of Pods -------------------------------------------------------------------------------


def found_group(obj: Mapping[str, Any]) -> tuple[str, str] | None:
    """Return (namespace/name, what a PodGroup of Volcano waits for); None for any other object."""
    if obj.get("kind") != "PodGroup" or not str(obj.get("apiVersion")).startswith(f"{VOLCANO}/"):
        return None
    metadata, status = mapping(obj.get("metadata")), mapping(obj.get("status"))
    key = f"{metadata.get('namespace') or 'default'}/{metadata.get('name')}"
    spec = mapping(obj.get("spec"))
    facts = [f"phase {status.get('phase') or 'not known'}"]
    facts += [f"{field} {spec[field]}" for field in ("queue", "minMember") if spec.get(field)]
    conditions = [mapping(item) for item in entries(status.get("conditions"))]
    for condition in conditions[-1:]:
        parts = (condition.get("type"), condition.get("reason"), condition.get("message"))
        facts.append(": ".join(str(part) for part in parts if part))
    return foreign(key, FOREIGN_NAME), foreign(", ".join(facts), FOREIGN_MESSAGE)


def group_of(pod: Mapping[str, Any]) -> str:
    """Return the PodGroup of Volcano that a Pod names, as namespace/name; empty without one."""
    metadata = mapping(pod.get("metadata"))
    annotations = mapping(metadata.get("annotations"))
    for key in GROUP_ANNOTATIONS:
        if name := annotations.get(key):
            return foreign(f"{metadata.get('namespace')}/{name}", FOREIGN_NAME)
    return ""


def where_to_look(pod: Mapping[str, Any], groups: Mapping[str, str]) -> str:
    """Return what the PodGroup of a Pod shows, as the end of a sentence; empty without one."""
    group = group_of(pod)
    if not group:
        return ""
    namespace, _, name = group.partition("/")
    if group in groups:
        return f"; its PodGroup {group} has {groups[group]}"
    shown = f"kubectl -n {namespace} describe podgroups.{VOLCANO} {name}"
    return f"; its PodGroup {group} shows what it waits for ({shown})"
