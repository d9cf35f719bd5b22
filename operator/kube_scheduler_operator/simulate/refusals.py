"""What helps where the API server refuses the pods of a workload.

Sources: the admission plugins resourcequota, limitranger, priority, serviceaccount, podsecurity,
runtimeclass and webhook of Kubernetes 1.35, whose messages these are.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from ..base.foreign_text import foreign
from ..base.limits import FOREIGN_NAME, FOREIGN_REASON
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
        r"((?:maximum|minimum) \S+ usage per \w+ is [^,\]]+)",
        "keep the LimitRange of namespace {namespace} ({0}): kubectl describe limitrange -n "
        "{namespace}",
    ),
    (r'failed calling webhook "([^"]+)"', "make the service of admission webhook {0} answer"),
    (
        r'admission webhook "([^"]+)" denied the request',
        "change what it names; admission webhook {0} forbids it",
    ),
)
"""A part of the message of an admission plugin, and what helps."""


_ENTRIES: Final = re.compile(r"(\S+) for: ")
_EXCEEDED: Final = re.compile(rf"exceeded quota: ({_NAME}), requested: (\S+),")
_UNSPECIFIED: Final = re.compile(rf"failed quota: ({_NAME}): must specify (.+)")
_COUNTS: Final = {"pods", "count/pods"}
"""Entries of a quota that each pod uses, whatever it requests."""


def remedy(cause: str, namespace: str, quotas: Sequence[UsedUp] = ()) -> str:
    """Return what helps, in the imperative; empty if the cause is not known.

    `quotas` has what is used up in the namespace: the API server names the first quota alone, and
    first what containers have to specify.
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
