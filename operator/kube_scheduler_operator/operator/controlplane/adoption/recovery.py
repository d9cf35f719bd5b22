"""Recovers what was adopted if all revisions, which have its record, are lost.

The operator's own schedulers still have it: their mirror Pods show the settings of the Pod, and
`spec.observedConfig` of KubeScheduler has the fields of the configuration, as it has the flags.
Otherwise the next revision would start the schedulers without these settings.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from ....base import names
from ....base.objects import Object, mapping
from ....config.effective.attachment import last_accepted, name_of
from ....config.effective.control_plane.observe_attached import EXTENDERS, PROFILES
from ....config.effective.control_plane.overrides import ARGUMENTS, SERVING_INFO
from ....config.effective.settings.requested_pod import OWN_RESOURCES, requested_pod
from ...model import operand_pods
from ...model.snapshot import Snapshot
from ..node_pods import OWN_VOLUMES
from .inventory import take_inventory
from .pod_settings import NO_SETTINGS, PodSettings

_GRACE: Final = "terminationGracePeriodSeconds"
_OWN_GRACE: Final = 10


def recovered_settings(snapshot: Snapshot) -> PodSettings:
    """The settings of the newest scheduler of the operator, without the operator's own.

    Settings that OperatorSettings replaces are omitted: their adopted values are unknown.
    """
    pods = [operand_pods.read(pod) for pod in snapshot.operand_pods.values()]
    ours = [pod for pod in pods if pod.ours]
    if not ours:
        return NO_SETTINGS
    newest = max(ours, key=lambda pod: (pod.revision, pod.node))
    theirs = _without_own(snapshot.operand_pods[newest.node])
    settings = take_inventory(theirs, snapshot.platform).settings
    return _without_requested(settings, snapshot)


def recovered_config(snapshot: Snapshot) -> dict[str, Any]:
    """The adopted fields of the configuration, from `spec.observedConfig`."""
    observed = mapping(snapshot.spec.get("observedConfig"))
    config = {
        key: value
        for key, value in observed.items()
        if key not in (ARGUMENTS, SERVING_INFO, PROFILES, EXTENDERS)
    }
    profiles = observed.get(PROFILES)
    if isinstance(profiles, list) and snapshot.scheduler_profiles is not None:
        taken = _scheduler_names(snapshot.scheduler_profiles)
        kept = [
            profile for profile in profiles if mapping(profile).get("schedulerName") not in taken
        ]
        config |= {PROFILES: kept} if kept else {}
    # Those of SchedulerExtenders look like any other.
    if snapshot.scheduler_extenders == {} and observed.get(EXTENDERS):
        config[EXTENDERS] = observed[EXTENDERS]
    return config


def _scheduler_names(objects: Mapping[str, Object]) -> set[str]:
    return {
        str(version.get("schedulerName") or name_of(obj))
        for obj in objects.values()
        for version in (mapping(obj.get("spec")), last_accepted(obj) or {})
    }


def _without_own(pod: Object) -> dict[str, Any]:
    """A mirror Pod of the operator as kubeadm would write it, with the settings that it keeps."""
    spec = dict(mapping(pod.get("spec")))
    if spec.get(_GRACE) == _OWN_GRACE:
        del spec[_GRACE]
    containers = []
    for container in map(dict, spec.get("containers") or ()):
        container["volumeMounts"] = [
            mount
            for mount in container.get("volumeMounts") or ()
            if not str(mount.get("name")).startswith(OWN_VOLUMES)
        ]
        if container.get("resources") == OWN_RESOURCES:
            del container["resources"]
        containers.append(container)
    return {**pod, "spec": {**spec, "containers": containers}}


def _without_requested(settings: PodSettings, snapshot: Snapshot) -> PodSettings:
    obj = (snapshot.operator_settings or {}).get(names.CLUSTER)
    if obj is None:
        return settings
    request = requested_pod(mapping(last_accepted(obj)))
    return settings.without(frozenset(request.replaced))
