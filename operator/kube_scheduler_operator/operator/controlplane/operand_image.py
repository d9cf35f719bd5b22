"""kube-scheduler's image and version: as configured, or as observed in the cluster."""

from __future__ import annotations

from contextlib import suppress
from itertools import chain

from ...base import names
from ...base.revision_number import revision_number
from ...config.language.versions import Version, upstream_tag
from ..model import operand_pods
from ..model.snapshot import Snapshot
from .revision.history import read
from .rollout.kubeadm_upgrades import requested_image
from .rollout.observe import Observation, observe


def operand_image(snapshot: Snapshot) -> str:
    """kube-scheduler's image: as configured, as kubeadm requests, as last installed, or as running.

    A configured image that never ran does not count. The image of a revision that a node runs, or
    is moving to, does. Where the provider runs the control plane's scheduler, it is Kubernetes' own
    image of the API server's version.
    """
    if snapshot.settings.operand_image:
        return snapshot.settings.operand_image
    if not snapshot.platform.owns_static_pods:
        tag = upstream_tag(snapshot.server_version)
        return f"{snapshot.settings.operand_repository}:{tag}" if tag else ""
    history = [
        revision
        for revision in reversed(read(snapshot.config_maps, snapshot.platform.parts))
        if revision.ready
    ]
    observation = observe(snapshot)
    running = _running(snapshot, observation)
    installed = [
        revision
        for revision in history
        if revision.outcome == names.OUTCOME_INSTALLED
        or (revision.number in running and not revision.bad)
    ]
    pods = [operand_pods.read(pod) for _, pod in sorted(snapshot.operand_pods.items())]
    # Lazy: every reconcile needs this, and nearly always the first candidate has it.
    candidates = chain(
        (revision.content.image for revision in installed),
        (pod.image for pod in pods),
        (revision.content.image for revision in history),
    )
    own = next((image for image in candidates if image), "")
    return requested_image(snapshot, observation.disks, own) or own


def _running(snapshot: Snapshot, observation: Observation) -> set[int]:
    """The revisions that a node runs, by its status or its disk, or that it is moving to."""
    statuses = snapshot.status.get("nodeStatuses") or ()
    revisions = {revision_number(status.get("currentRevision")) for status in statuses}
    for disk in observation.disks.values():
        revisions |= {disk.revision, disk.labelled}
    return revisions | {pod.revision for pod in observation.installers if pod.is_moving}


def operand_version(snapshot: Snapshot, image: str) -> Version:
    """The operand's version: its image's tag if that is one, else the API server's."""
    with suppress(ValueError):
        return Version.of_image(image)
    with suppress(ValueError):
        return Version.parse(snapshot.server_version)
    return Version(1, 35, 0)
