"""What helps where the API server refuses the pods of a workload.

Sources: the admission plugins resourcequota, limitranger, priority, serviceaccount, podsecurity,
runtimeclass and webhook of Kubernetes 1.35, whose messages these are.
"""

from __future__ import annotations

import re
from typing import Final

from ..base.foreign_text import foreign
from ..base.limits import FOREIGN_NAME, FOREIGN_REASON

_NAME: Final = r"[^\s\",:;]+"
_RULES: Final = (
    (rf"exceeded quota: ({_NAME}),", "raise ResourceQuota {namespace}/{0}, or request less"),
    (rf"failed quota: ({_NAME}): must specify (.+)", ""),  # see `_unspecified`
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


def remedy(cause: str, namespace: str) -> str:
    """Return what helps, in the imperative; empty if the cause is not known."""
    for pattern, text in _RULES:
        if match := re.search(pattern, cause):
            if not text:
                lacking = foreign(match[2], FOREIGN_REASON)
                return _unspecified(lacking, f"{namespace}/{foreign(match[1], FOREIGN_NAME)}")
            return text.format(foreign(match[1], FOREIGN_NAME), namespace=namespace)
    return ""


def _unspecified(lacking: str, quota: str) -> str:
    """Return all that containers have to specify: `limits.cpu for: a,b; memory for: a`."""
    unset = ", ".join(part.strip().replace(" for: ", " of ") for part in lacking.split(";"))
    return f"set {unset}, as ResourceQuota {quota} requires"
