"""What helps where the API server refuses the pods of a workload.

Sources: the admission plugins resourcequota, limitranger, priority, serviceaccount, podsecurity,
runtimeclass and webhook of Kubernetes 1.35, whose messages these are.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from ..base.foreign_text import foreign
from ..base.limits import FOREIGN_NAME, FOREIGN_REASON
from ..base.objects import entries, mapping
from .kinds import pod_name
from .quotas import UsedUp

_NAMED: Final = 5
_NAME: Final = r"[^\s\",:;]+"
_RULES: Final = (
    (
        rf"no PriorityClass with name ({_NAME}) was found",
        "create PriorityClass {0}, or correct priorityClassName",
    ),
    (
        r'serviceaccount "([^"]+)" not found',
        "create ServiceAccount {namespace}/{0}, or correct serviceAccountName",
    ),
    (
        r'RuntimeClass(?:\.\S+)? "([^"]+)" not found',
        "create RuntimeClass {0}, or correct runtimeClassName",
    ),
    (
        r'violates PodSecurity "([^":]+)',
        "change what it names in the template of the pods, or let namespace {namespace} run them: "
        "the label pod-security.kubernetes.io/enforce, which is {0}",
    ),
    (
        r"insufficient quota to match these scopes: \[\{PriorityClass In \[([^\]]+)\]",
        "create a ResourceQuota in namespace {namespace} whose scopeSelector has scopeName "
        "PriorityClass, operator In and the class of the pods, or use a priorityClassName other "
        "than {0}: the API server admits pods of these classes only where such a quota is",
    ),
    (r'failed calling webhook "([^"]+)"', "make the service of admission webhook {0} answer"),
    (
        r'admission webhook "([^"]+)" denied the request',
        "change what it names; admission webhook {0} forbids it",
    ),
)
"""A part of the message of an admission plugin, and what helps."""


_BOUND: Final = re.compile(
    rf"(maximum|minimum) ({_NAME}) usage per (\w+) is ([^,.\]]+(?:\.\d[^,.\]]*)?)"
    r"(?:, but (limit|request) is [^,\]]+)?"
)
"""What a LimitRange demands of a container or a pod, and which field breaks it."""
_ABOVE_LIMIT: Final = re.compile(
    rf"must be (?:less than or )?equal to ({_NAME}) limit of ({_NAME})"
)
"""A request beyond the limit, which may be the default of a LimitRange."""
_ENTRIES: Final = re.compile(r"(\S+) for: ")
_EXCEEDED: Final = re.compile(rf"exceeded quota: ({_NAME}), requested: (\S+),")
_UNSPECIFIED: Final = re.compile(rf"failed quota: ({_NAME}): must specify (.+)")
_COUNTS: Final = {"pods", "count/pods"}
"""Entries of a quota that each pod uses, whatever it requests."""


def remedy(
    cause: str,
    namespace: str,
    quotas: Sequence[UsedUp] = (),
    ranges: Sequence[Mapping[str, Any]] = (),
) -> str:
    """Return what helps, in the imperative; empty if the cause is not known.

    `quotas` has what is used up in the namespace: the API server names the first quota alone, and
    first what containers have to specify. `ranges` has the LimitRanges of the namespace.
    """
    if match := _EXCEEDED.search(cause):
        named = {part.partition("=")[0] for part in match[2].split(",")}
        title = f"{namespace}/{foreign(match[1], FOREIGN_NAME)}"
        less = " or delete other pods" if named <= _COUNTS else " or request less"
        also = _also([one for one in quotas if one.quota != match[1] and one.entry in _COUNTS])
        return f"raise ResourceQuota {title},{less}{also}"
    if match := _UNSPECIFIED.search(cause):
        lacking = foreign(match[2], FOREIGN_REASON)
        needed = _COUNTS | set(_ENTRIES.findall(match[2]))
        also = _also([one for one in quotas if one.entry in needed])
        return _unspecified(lacking, f"{namespace}/{foreign(match[1], FOREIGN_NAME)}") + also
    if bounds := list(_BOUND.finditer(cause)):
        kept = ", and ".join(_within(match, namespace, ranges) for match in bounds[:_NAMED])
        return f"{kept}: kubectl describe limitrange -n {namespace}"
    if match := _ABOVE_LIMIT.search(cause):
        return _raised_limit(match[1], match[2], ranges)
    for pattern, text in _RULES:
        if match := re.search(pattern, cause):
            return text.format(foreign(match[1], FOREIGN_NAME), namespace=namespace)
    return ""


def _also(quotas: Sequence[UsedUp]) -> str:
    """Return which other entries have to be raised, of which nothing is left."""
    if not quotas:
        return ""
    named = [
        f"{foreign(one.entry, FOREIGN_NAME)} of ResourceQuota {foreign(one.quota, FOREIGN_NAME)} "
        f"({foreign(one.used, FOREIGN_NAME)} of {foreign(one.hard, FOREIGN_NAME)} used)"
        for one in quotas[:_NAMED]
    ]
    more = f" and {len(quotas) - _NAMED} more" if len(quotas) > _NAMED else ""
    return f"; and raise {', '.join(named)}{more}"


def _unspecified(lacking: str, quota: str) -> str:
    """Return all that containers have to specify: `limits.cpu for: a,b; memory for: a`."""
    unset = ", ".join(part.strip().replace(" for: ", " of ") for part in lacking.split(";"))
    return f"set {unset}, as ResourceQuota {quota} requires"


def _within(match: re.Match[str], namespace: str, ranges: Sequence[Mapping[str, Any]]) -> str:
    """Return how a container or a pod keeps a bound, and which LimitRange has it."""
    which, resource, kind = match[1], foreign(match[2], FOREIGN_NAME), match[3]
    field, most = ("max", "most") if which == "maximum" else ("min", "least")
    own = match[5] or ("limit" if which == "maximum" else "request")
    holder = "the containers" if kind == "Container" else "the pod"
    named = " or ".join(_ranges_with(ranges, kind, field, match[2])) or f"of namespace {namespace}"
    return (
        f"set the {own} of {resource} of {holder} to at {most} {foreign(match[4], FOREIGN_NAME)}, "
        f"or change {field}.{resource} of the LimitRange {named}"
    )


def _raised_limit(resource: str, limit: str, ranges: Sequence[Mapping[str, Any]]) -> str:
    shown, most = foreign(resource, FOREIGN_NAME), foreign(limit, FOREIGN_NAME)
    named = [
        name
        for field in ("default", "max")
        for name in _ranges_with(ranges, "Container", field, resource, limit)
    ]
    origin = (
        f"; a container without one gets {most} from LimitRange {' or '.join(dict.fromkeys(named))}"
        if named
        else ""
    )
    return f"set the limit of {shown} to at least the request of it{origin}"


def _ranges_with(
    ranges: Sequence[Mapping[str, Any]], kind: str, field: str, resource: str, value: str = ""
) -> Iterator[str]:
    """Yield the LimitRanges with a bound, as namespace/name."""
    for one in ranges:
        limits = entries(mapping(one.get("spec")).get("limits"))
        bounds = [mapping(limit.get(field)) for limit in limits if limit.get("type") == kind]
        if any(str(bound.get(resource)) == (value or str(bound.get(resource))) for bound in bounds
               if resource in bound):  # fmt: skip
            yield foreign(pod_name(one), FOREIGN_NAME)
