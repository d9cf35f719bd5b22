"""The Pod with which checks try a cluster."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from ...base.templates import render_object

_IMAGE: Final = "registry.k8s.io/pause:3.10"


def small_pod(
    name: str, namespace: str, labels: Mapping[str, str], scheduler_name: str
) -> dict[str, Any]:
    """Return a Pod that asks for almost nothing and meets the Pod Security level `restricted`."""
    return render_object(
        "self-test-pod.yaml.j2",
        pod_name=name,
        namespace=namespace,
        labels=labels,
        scheduler_name=scheduler_name,
        image=_IMAGE,
    )
