"""The version skew policy of Kubernetes (https://kubernetes.io/releases/version-skew-policy/).

kube-scheduler must not be newer than the API server, and may be one minor version older.
"""

from __future__ import annotations

from typing import Final

from .versions import Version

MINORS_BEHIND: Final = 1


def version_skew(scheduler: Version, api_server: Version) -> str:
    """Explain why Kubernetes does not support the pair; empty if it does."""
    if (scheduler.major, scheduler.minor) > (api_server.major, api_server.minor):
        return (
            f"kube-scheduler {scheduler} is newer than the API server ({api_server}), which "
            f"Kubernetes does not support; use {api_server.short}"
        )
    if api_server.minor - scheduler.minor > MINORS_BEHIND:
        return (
            f"kube-scheduler {scheduler} is more than one minor version older than the API server "
            f"({api_server}), which Kubernetes does not support; use {api_server.short}"
        )
    return ""
