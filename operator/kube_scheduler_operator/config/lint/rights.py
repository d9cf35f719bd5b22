"""What kube-scheduler has to read before it places Pods, and whether roles of the files permit it.

It waits until it has a list of each kind that it watches (WaitForHandlersSync): without the right
to one of them it starts, and places no Pod. tests/integration/test_watched_resources.py compares
the lists with the programs.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from ...base.findings import WARNING, Problem
from ...base.objects import entries, mapping
from ..language.feature_gates import Gates
from ..language.plugins.effective_plugins import configured_plugins, effective_plugins
from .checks import CheckOptions, Item, known_scheduler, stock_of, target_of
from .forms.document_fields import at, name_of, objects, text
from .forms.form import CommandLine

WATCH_FORBIDDEN: Final = "WatchForbidden"
Resource = tuple[str, str]
"""(API group, plural)."""

_STORAGE: Final = "storage.k8s.io"
_DEVICES: Final = "resource.k8s.io"
_CLAIM: Final = ("", "persistentvolumeclaims")
_VOLUMES: Final = (_CLAIM, ("", "persistentvolumes"), (_STORAGE, "storageclasses"))
_ALWAYS: Final = (("", "namespaces"), ("", "nodes"), ("", "pods"))
_OF_PLUGINS: Final[Mapping[str, tuple[Resource, ...]]] = {
    "VolumeRestrictions": (_CLAIM,),
    "NodeVolumeLimits": (*_VOLUMES, (_STORAGE, "csinodes"), (_STORAGE, "volumeattachments")),
    "VolumeBinding": (
        *_VOLUMES, (_STORAGE, "csidrivers"), (_STORAGE, "csinodes"),
        (_STORAGE, "csistoragecapacities"),
    ),
    "VolumeZone": _VOLUMES,
    "DefaultPreemption": (("policy", "poddisruptionbudgets"),),
}  # fmt: skip
_SPREAD: Final = "PodTopologySpread"
_WORKLOADS: Final = (
    ("", "replicationcontrollers"), ("", "services"), ("apps", "replicasets"),
    ("apps", "statefulsets"),
)  # fmt: skip
"""What PodTopologySpread watches to find the Pods of its default constraints."""
_OF_GATES: Final[Mapping[str, tuple[Resource, ...]]] = {
    "DynamicResourceAllocation": (
        (_DEVICES, "deviceclasses"), (_DEVICES, "resourceclaims"), (_DEVICES, "resourceslices"),
    ),
    "DRADeviceTaintRules": ((_DEVICES, "devicetaintrules"),),
}  # fmt: skip
OLDEST_KNOWN: Final = 34
"""The minor of 1.x from which on the lists were compared with the program."""

_ALL: Final = "system:kube-scheduler"
_MOST: Final = 5  # kinds that a message names
_KNOWN_ROLES: Final[Mapping[str, frozenset[Resource]]] = {
    "system:volume-scheduler": frozenset(_VOLUMES),
    "system:auth-delegator": frozenset(),
}
"""Role of Kubernetes -> what it lets a scheduler watch."""


def watched_resources(config: Mapping[str, Any], gates: Gates) -> set[Resource]:
    """Return what a kube-scheduler of 1.34 or later watches at least, with a valid configuration.

    Kinds that plugins of an image's own watch are not known.
    """
    watched = set(_ALWAYS)
    for profile in map(mapping, entries(config.get("profiles")) or [{}]):
        points = effective_plugins(profile, gates).points.values()
        running = {entry.name for listed in points for entry in listed}
        for name in running:
            watched |= set(_OF_PLUGINS.get(name, ()))
        if _SPREAD in running and _has_default_constraints(profile):
            watched |= set(_WORKLOADS)
    for gate, resources in _OF_GATES.items():
        if gates.enabled(gate):
            watched |= set(resources)
    return watched


def _has_default_constraints(profile: Mapping[str, Any]) -> bool:
    for _, entry in configured_plugins(profile):
        args = mapping(entry.get("args"))
        if entry.get("name") == _SPREAD and args.get("defaultingType") == "List":
            return bool(args.get("defaultConstraints"))
    return True


def check_rights(
    configured: Sequence[tuple[Item, Mapping[str, Any]]],
    items: Sequence[Item],
    options: CheckOptions,
) -> Iterator[tuple[Item, Problem]]:
    """Warn about schedulers whose cluster-wide roles let them watch too little.

    A role that is not among the files may permit anything.
    """
    for item, config in configured:
        reader, gates = item.reader, target_of(item, options).gates
        if reader is None or not reader.account or gates.version.minor < OLDEST_KNOWN:
            continue
        if not (stock_of(reader) or known_scheduler(reader)):
            continue
        roles = _bound_roles(reader, items)
        missing = sorted(watched_resources(config, gates) - _permitted(roles)) if roles else []
        own = [role for role in roles or () if isinstance(role, Item)]
        if missing and own:
            yield own[0], _forbidden(missing, reader, gates)


def _forbidden(missing: Sequence[Resource], reader: CommandLine, gates: Gates) -> Problem:
    names = [f"{plural}.{group}" if group else plural for group, plural in missing]
    more = len(names) - _MOST
    named = ", ".join(names[:_MOST]) + (f" and {more} more" if more > 0 else "")
    message = (
        f"no role of these files lets ServiceAccount {reader.account} list and watch {named}: "
        f"kube-scheduler {gates.version.short} waits for them, and places no Pod"
    )
    fix = f"bind the ClusterRole {_ALL} as well, which each version completes"
    if len(names) <= _MOST:
        groups: dict[str, list[str]] = {}
        for group, plural in missing:
            groups.setdefault(group, []).append(plural)
        rules = ", ".join(
            f"{{apiGroups: ['{group}'], resources: [{', '.join(plurals)}], verbs: [list, watch]}}"
            for group, plurals in groups.items()
        )
        fix += f", or add {rules}"
    return Problem(WATCH_FORBIDDEN, ("rules",), message, fix, WARNING)


def _bound_roles(reader: CommandLine, items: Sequence[Item]) -> list[Item | str] | None:
    """Return the cluster-wide roles of a ServiceAccount, as names those of Kubernetes.

    None: one of them is neither among the files nor known, so it may permit anything.
    """
    defined = {name_of(item.value): item for item in items if item.kind == "ClusterRole"}
    roles: list[Item | str] = []
    for item in items:
        if item.kind != "ClusterRoleBinding" or not is_subject(item.value, reader):
            continue
        name = text(at(item.value, "roleRef", "name"))
        role = defined.get(name)
        if role is not None and not role.value.get("aggregationRule"):
            roles.append(role)
        elif name in _KNOWN_ROLES:
            roles.append(name)
        else:
            return None
    return roles


def _permitted(roles: Sequence[Item | str]) -> set[Resource]:
    """Return the listed resources that roles let a subject list and watch."""
    known = {*_ALWAYS, *_WORKLOADS, *(one for of in _OF_PLUGINS.values() for one in of)}
    known |= {one for of in _OF_GATES.values() for one in of}
    by_name = {one for role in roles if isinstance(role, str) for one in _KNOWN_ROLES[role]}
    rules = [
        rule
        for role in roles
        if isinstance(role, Item)
        for _, rule in objects(role.value.get("rules"))
        if not entries(rule.get("resourceNames"))
    ]
    return by_name | {
        resource
        for resource in known
        if all(any(_permits(rule, resource, verb) for rule in rules) for verb in ("list", "watch"))
    }


def _permits(rule: Mapping[str, Any], resource: Resource, verb: str) -> bool:
    wanted = zip(("apiGroups", "resources", "verbs"), (*resource, verb), strict=True)
    return all({name, "*"} & set(map(str, entries(rule.get(key)))) for key, name in wanted)


def is_subject(binding: Mapping[str, Any], reader: CommandLine) -> bool:
    """Report whether a binding is for the ServiceAccount of a scheduler."""
    for _, subject in objects(binding.get("subjects")):
        namespaces = (text(subject.get("namespace")), reader.namespace)
        same = namespaces[0] == namespaces[1] or "" in namespaces
        account = ("ServiceAccount", reader.account)
        if same and (subject.get("kind"), subject.get("name")) == account:
            return True
    return False
